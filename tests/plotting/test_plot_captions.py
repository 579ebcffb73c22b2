"""Captions explain flagged rows of large weight."""

import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats import plotting


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


def test_unusual_rows_that_the_second_step_keeps_are_explained(fits):
    stars = fits["stars"].model
    results = stars.fit(efficiency=0.95)
    large = np.asarray(results.outliers()) & (np.asarray(results.relative_weights) > 0.5)
    text = (
        f"{large.sum()} flagged rows have a large weight: unusual at the level 97.5%, but not so "
        "far out that the fit gives up on them."
    )
    assert large.sum() > 1
    for draw in (plotting.plot_weights, plotting.plot_fit):
        assert caption(draw(results)) == text
        assert caption(draw(fits["stars"])) == ""  # no flagged row has much weight there


def test_rows_of_good_groups_are_explained():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(200), "unit": np.repeat(np.arange(20), 10)})
    data["y"] = data["x"] + rng.standard_normal(200)
    data.loc[3, "y"] += 4
    results = rrmstats.ols("y ~ x", data, 0.1, groups="unit").fit()
    assert "have a large weight: rows share the weight of their group." in caption(
        plotting.plot_fit(results)
    )
