"""Pictures of the explanation: bars of good and flagged rows, densities, and labels."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import logit
from scipy.stats import norm

import rrmstats
from rrmstats import datasets, plotting
from rrmstats.plotting.arrays import axis_places, bin_edges, compressed_ticks

from .axes_content import flagged, named, overlap, texts
from .conftest import counts


@pytest.fixture(scope="module")
def explained():
    """Return one fit of two steps of each model; tests must not change them."""
    hbk = datasets.hbk.load_pandas().data
    stars = datasets.stars_cyg.load_pandas().data
    return {
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, 0.2).fit(),
        "stars": rrmstats.ols("log_light ~ log_te", stars, 0.2).fit(),
        "cov": rrmstats.RRMCov(hbk, 0.3).fit(),
        "pca": rrmstats.RRMPCA(hbk, 2, 0.3).fit(),
        "counts": rrmstats.poisson("count ~ x", counts(), 0.2).fit(),
        "logit": rrmstats.logit("label ~ x", wrong_labels(), 0.1).fit(),
    }


def wrong_labels():
    """Return labels that a predictor tells well, the first 20 of which are wrong."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(600)
    x[:20] = np.sign(x[:20]) * (1.5 + np.abs(x[:20]))
    label = rng.random(600) < 1 / (1 + np.exp(-6 * x))
    label[:20] = x[:20] < 0
    return pd.DataFrame({"x": x, "label": 1 * label})


def bars(ax):
    """Return the label, the sum of the areas and the heights of each kind of bars."""
    found = {}
    for patch in ax.patches:
        heights, edges, base = patch.get_data()
        found[patch.get_label()] = heights - np.broadcast_to(base, heights.shape), edges
    return found


def areas(ax, width=np.inf):
    """Return the area of bars of each kind, on an axis that is linear within a width."""
    return {
        name: float(heights @ np.diff(axis_places(edges, width)))
        for name, (heights, edges) in bars(ax).items()
    }


def axis_width_of(ax):
    return ax.xaxis.get_transform().linear_width if ax.get_xscale() == "asinh" else np.inf


@pytest.mark.parametrize("name", ["hbk", "stars", "cov", "pca", "counts"])
def test_areas_of_bars_are_shares_of_rows(name, explained):
    results = explained[name]
    ax = plotting.plot_explanation(results).axes[0]
    bad = flagged(results)
    assert areas(ax, axis_width_of(ax)) == pytest.approx(
        {f"not flagged ({(~bad).sum()})": (~bad).mean(), f"flagged ({bad.sum()})": bad.mean()}
    )
    assert bad.any()
    np.testing.assert_array_equal(bad, np.asarray(results.prob_bad) > 0.5)


@pytest.mark.parametrize("name", ["hbk", "stars", "cov", "pca"])
def test_areas_of_densities_are_estimated_shares(name, explained):
    results = explained[name]
    ax = plotting.plot_explanation(results).axes[0]
    width = axis_width_of(ax)
    found = {}
    for label in ("density of good rows", "density of bad rows", "their sum"):
        x, y = named(ax, label).get_data()
        place = axis_places(np.asarray(x), width)
        found[label] = float((y[1:] + y[:-1]) @ np.diff(place) / 2)
    share = results.eps_hat
    if name == "pca":  # the four rows that are bad within the subspace are good off it
        share = 10 / 75
    assert found["density of bad rows"] == pytest.approx(share, abs=0.015)
    assert found["density of good rows"] == pytest.approx(1 - share, abs=0.015)
    assert found["their sum"] == pytest.approx(1, abs=0.02)


def test_the_density_of_good_rows_is_normal_on_an_axis_that_is_linear(explained):
    results = explained["stars"]
    ax = plotting.plot_explanation(results).axes[0]
    assert ax.get_xscale() == "linear" and ax.get_xlabel() == "standardized residual"
    x, y = named(ax, "density of good rows").get_data()
    np.testing.assert_allclose(y, (1 - results.eps_hat) * norm.pdf(x), rtol=1e-4, atol=1e-9)


def test_far_rows_compress_the_axis_and_leave_its_middle(explained):
    ax = plotting.plot_explanation(explained["hbk"]).axes[0]
    width = axis_width_of(ax)
    assert 3 <= width < 5
    x, y = named(ax, "density of good rows").get_data()
    plain = (1 - explained["hbk"].eps_hat) * norm.pdf(x)
    np.testing.assert_allclose(y, plain * np.sqrt(1 + (x / width) ** 2), rtol=1e-4, atol=1e-9)
    ax.figure.draw_without_rendering()
    boxes = [tuple(text.get_window_extent().extents) for text in ax.get_xticklabels()]
    assert len(boxes) >= 4
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_sentence_is_the_caption(explained):
    for results in explained.values():
        caption = plotting.plot_explanation(results).axes[0].get_title(loc="left")
        assert " ".join(caption.split()).startswith(results.explanation.sentence)
    caption = plotting.plot_explanation(explained["pca"]).axes[0].get_title(loc="left")
    assert caption.endswith("4 flagged rows are far from the center, but in the subspace.")


def test_counts_have_bars_alone(explained):
    ax = plotting.plot_explanation(explained["counts"]).axes[0]
    assert ax.get_xlabel() == "deviance residual" and not ax.lines


def test_frequency_weights_count_in_bars():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((60, 2))
    z[:6] += 30
    times = np.where(np.arange(60) < 6, 3, 1)
    weighted = rrmstats.RRMCov(z, 0.4, freq_weights=times).fit()
    ax = plotting.plot_explanation(weighted).axes[0]
    assert areas(ax, axis_width_of(ax))["flagged (6)"] == pytest.approx(18 / 72)


def test_labels_are_drawn_by_their_predicted_probability(explained):
    results = explained["logit"]
    bad, labels = flagged(results), np.asarray(results.model.endog)
    assert bad[:20].all() and bad.sum() < 40
    ax = plotting.plot_explanation(results, label=2).axes[0]
    x, y = named(ax, f"flagged ({bad.sum()})").get_data()
    np.testing.assert_allclose(x, logit(np.clip(results.predict(), 1e-4, 1 - 1e-4))[bad])
    np.testing.assert_array_equal(np.round(y), labels[bad])
    x, y = named(ax, "row").get_data()
    np.testing.assert_array_equal(np.round(y), labels[~bad])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["labeled 0", "labeled 1"]
    assert len(texts(ax)) == 2
    ticks = [
        (tick, float(text.get_text()))
        for tick, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    ]
    assert len(ticks) >= 5
    for tick, probability in ticks:
        assert tick == pytest.approx(logit(probability))


def test_a_binomial_glm_of_labels_has_the_picture_of_labels():
    family = sm.families.Binomial()
    results = rrmstats.glm("label ~ x", wrong_labels(), 0.1, family=family).fit()
    ax = plotting.plot_explanation(results).axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["labeled 0", "labeled 1"]


def test_diagnostics_of_labels(explained):
    results = explained["logit"]
    axes = plotting.plot_diagnostics(results).axes
    titles = ["Residuals and leverage", "Reliability", "Explanation", "Residuals and fit"]
    assert [ax.get_title() for ax in axes] == titles
    bad, resid = flagged(results), np.asarray(results.resid_dev)
    np.testing.assert_allclose(named(axes[0], "flagged").get_ydata(), resid[bad])
    cutoff = np.sqrt(-2 * np.log(0.025))  # of a label whose probability is 2.5 %
    heights = [line.get_ydata()[0] for line in axes[0].lines if line.get_linestyle() == ":"]
    assert max(heights) == pytest.approx(cutoff)
    linear = np.asarray(results.fittedvalues)
    np.testing.assert_allclose(named(axes[3], "row").get_data(), [linear[~bad], resid[~bad]])
    first = plotting.plot_diagnostics(results.first_step).axes
    assert first[2].get_title() == "Weights" and first[2].get_ylabel() == "weight * n"


def test_diagnostics_show_the_explanation(explained):
    axes = plotting.plot_diagnostics(explained["hbk"]).axes
    assert axes[2].get_title() == "Explanation"
    assert set(bars(axes[2])) == {"not flagged (65)", "flagged (10)"}
    level = plotting.plot_diagnostics(explained["hbk"], level=0.5).axes
    count = int(explained["hbk"].outliers(0.5).sum())
    assert f"flagged ({count})" in bars(level[2]) and count > 20


def test_groups_are_drawn_in_the_place_of_rows():
    rng = np.random.default_rng(0)
    z, unit = rng.standard_normal((200, 2)), np.repeat(np.arange(20), 10)
    z[unit == 7] += 6
    results = rrmstats.RRMCov(z, 0.2, groups=unit).fit()
    ax = plotting.plot_explanation(results).axes[0]
    found = bars(ax)
    assert set(found) == {"not flagged (19)", "flagged (1)"}
    heights, edges = found["flagged (1)"]
    place = np.searchsorted(edges, results.group_view.distances[7]) - 1
    assert np.flatnonzero(heights).tolist() == [place]


def test_what_explains_nothing_is_refused(fits):
    message = r"plot_explanation needs an explanation of the rows: a second step, fit\(steps=2\)"
    hbk = datasets.hbk.load_pandas().data
    for results in (fits["stars"], rrmstats.ols("y ~ x1", hbk, 0.0).fit()):
        with pytest.raises(ValueError, match=message):
            plotting.plot_explanation(results)


def test_weights_of_two_steps_have_the_colors_of_probabilities(explained):
    results = explained["stars"]
    ax, bar = plotting.plot_weights(results).axes
    bad, relative = flagged(results), np.asarray(results.relative_weights)
    kept, marked = ax.collections
    np.testing.assert_allclose(kept.get_offsets()[:, 1], relative[~bad])
    np.testing.assert_allclose(marked.get_offsets()[:, 1], relative[bad])
    np.testing.assert_allclose(marked.get_array(), np.asarray(results.prob_bad)[bad])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"flagged ({bad.sum()})" in names and bar.get_ylabel() == "prob_bad"


def test_rows_most_likely_bad_are_named_first(explained):
    results = explained["pca"]
    (first,) = texts(plotting.plot_outlier_map(results, label=1).axes[0])
    order = np.lexsort((-np.asarray(results.losses), -np.asarray(results.prob_bad)))
    assert first == str(order[0])


def test_bins_hold_all_values():
    values = np.r_[np.random.default_rng(0).standard_normal(50), 40.0]
    edges = bin_edges(values, values > 10)
    assert np.histogram(values, edges)[0].sum() == 51
    assert np.ptp(np.diff(edges)) < 1e-9 and 0.5 < np.diff(edges)[0] < 1.5
    distances = np.abs(values)
    assert bin_edges(distances, distances > 10)[0] >= 0
    assert np.histogram(np.ones(9), bin_edges(np.ones(9), np.zeros(9, bool)))[0].sum() == 9
    assert len(bin_edges(np.r_[values, 1e9], np.r_[values, 1e9] > 10)) <= 201


def test_ticks_of_huge_values_are_few():
    ticks = compressed_ticks(-3.0, 1e7, 3.0)
    assert 4 <= len(ticks) <= 14 and 0 in ticks and ticks.max() >= 1e5
