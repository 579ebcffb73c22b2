"""Captions explain flagged rows of large weight."""

import copy

import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats import plotting
from rrmstats.plotting.captions import large_weights_note


@pytest.fixture(scope="module")
def doubtful():
    """Return a fit where some rows between the good and the bad may be either."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.standard_normal(300)})
    data["y"] = data["x"] + rng.standard_normal(300)
    data.loc[:59, "y"] += 4
    return rrmstats.ols("y ~ x", data, 0.3).fit()


def caption(fig):
    return " ".join(fig.axes[0].get_title(loc="left").split())


@pytest.mark.parametrize("draw", ["plot_weights", "plot_biplot", "plot_outlier_map"])
def test_score_outliers_are_explained(draw, fits):
    results = fits["pca"]
    large = np.asarray(results.outliers()) & (np.asarray(results.relative_weights) > 0.5)
    assert large.sum() == 10
    assert caption(getattr(plotting, draw)(results)) == (
        "10 flagged rows have a large weight (score outliers): far from the center, but in the "
        "subspace, and weights depend only on the distance from it."
    )


def test_rows_that_are_hardly_more_likely_bad_than_good_are_explained(fits, doubtful):
    """The second step flags the rows that are more likely bad than good."""
    large = np.asarray(doubtful.outliers()) & (np.asarray(doubtful.relative_weights) > 0.5)
    text = (
        f"{large.sum()} flagged rows have a large weight: more likely bad than good, but not "
        "surely bad."
    )
    assert large.sum() > 1
    assert caption(plotting.plot_weights(doubtful)) == text
    assert caption(plotting.plot_fit(doubtful)) == ""  # it shows probabilities, not weights
    for draw in (plotting.plot_weights, plotting.plot_fit):
        assert caption(draw(fits["stars"])) == ""  # no flagged row has much weight there


def test_unusual_rows_that_the_second_step_keeps_are_explained(fits):
    results = fits["stars"].model.fit()
    large = np.asarray(results.outliers(0.9)) & (np.asarray(results.relative_weights) > 0.5)
    assert large.sum() > 1
    assert large_weights_note(results, 0.9) == (
        f"{large.sum()} flagged rows have a large weight: unusual at the level 90.0%, but not so "
        "far out that the fit gives up on them."
    )


def test_rows_of_good_groups_are_explained():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(200), "unit": np.repeat(np.arange(20), 10)})
    data["y"] = data["x"] + rng.standard_normal(200)
    data.loc[3, "y"] += 4
    results = rrmstats.ols("y ~ x", data, 0.1, groups="unit").fit(steps=1)
    assert "have a large weight: rows share the weight of their group." in caption(
        plotting.plot_fit(results)
    )


def test_equal_weights_are_explained_as_such(fits):
    for name in ("pca", "stars"):
        model = copy.copy(fits[name].model)
        model.eps_bar = 0.0
        results = model.fit(steps=1)
        total = np.asarray(results.outliers(0.9)).sum()
        note = large_weights_note(results, 0.9)
        assert total > 1 and note == (
            f"{total} flagged rows have a large weight: all rows have equal weights here."
        )


def test_rows_off_the_subspace_are_not_explained_as_score_outliers():
    data = np.random.default_rng(0).standard_normal((100, 3)) * [5, 3, 1]
    results = rrmstats.RRMPCA(data, 2, 0.05).fit(steps=1)
    off = np.asarray(results.orthogonal_distance) > results.orthogonal_cutoff(0.5**0.5)
    large = np.asarray(results.outliers(0.5)) & (np.asarray(results.relative_weights) > 0.5)
    inside, others = (large & ~off).sum(), (large & off).sum()
    note = large_weights_note(results, 0.5)
    assert inside > 1 and others > 1
    assert note.startswith(f"{inside} flagged rows have a large weight (score outliers)")
    assert f"{others} flagged rows have a large weight: unusual at the level 50.0%" in note


def test_diagnostics_are_explained_below(fits, doubtful):
    assert plotting.plot_diagnostics(doubtful).get_supxlabel() == doubtful.explanation.sentence
    assert plotting.plot_diagnostics(fits["stars"]).get_supxlabel() == ""
    first = fits["stars"].model.fit(steps=1)
    assert large_weights_note(first, 0.5) != ""
    fig = plotting.plot_diagnostics(first, level=0.5)
    assert fig.get_supxlabel() == large_weights_note(first, 0.5)
