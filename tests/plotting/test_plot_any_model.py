"""Pictures of any model: explanations, weights and iterations."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import logit
from scipy.stats import norm

import rrmstats
from rrmstats import datasets, plotting
from rrmstats.plotting import plot_trace
from rrmstats.plotting.any_model import (
    STEPS,
    axis_places,
    bin_edges,
    compressed_ticks,
    value_limits,
)

from .axes_content import flagged, level_lines, named, overlap, texts
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
    edges = bin_edges(values, values[values < 10])
    assert np.histogram(values, edges)[0].sum() == 51
    assert np.ptp(np.diff(edges)) < 1e-9 and 0.5 < np.diff(edges)[0] < 1.5
    assert np.histogram(np.ones(9), bin_edges(np.ones(9), np.ones(9)))[0].sum() == 9
    assert len(bin_edges(np.r_[values, 1e9], values)) <= 202


def test_ticks_of_huge_values_are_few():
    ticks = compressed_ticks(-3.0, 1e7, 3.0)
    assert 4 <= len(ticks) <= 14 and 0 in ticks and ticks.max() >= 1e5


@pytest.mark.parametrize("fit", ["stars", "hbk", "cov", "pca", "logit"])
def test_weights_against_index(fit, fits):
    results = fits[fit]
    ax = plotting.plot_weights(results).axes[0]
    bad, relative = flagged(results), np.asarray(results.weights) * results.nobs
    kept, marked = named(ax, "row"), named(ax, f"flagged ({bad.sum()})")
    np.testing.assert_array_equal(marked.get_xdata(), np.flatnonzero(bad))
    np.testing.assert_allclose(marked.get_ydata(), relative[bad])
    np.testing.assert_allclose(kept.get_ydata(), relative[~bad])
    assert level_lines(ax)[0] == [1.0]


def test_weights_against_losses(fits):
    ax = plotting.plot_weights(fits["stars"], against="losses").axes[0]
    x, y = named(ax, "row").get_data()
    log_ratio = np.log(y) + x / fits["stars"].lambda_
    np.testing.assert_allclose(log_ratio, log_ratio[0])
    with pytest.raises(ValueError, match="against must be 'index' or 'losses', got 'time'"):
        plotting.plot_weights(fits["stars"], against="time")


def test_the_worst_flagged_rows_are_named_by_index():
    stars = datasets.stars_cyg.load_pandas().data
    stars.index = [f"star {i}" for i in range(len(stars))]
    results = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(steps=1)
    for count in (0, 1, 4):
        ax = plotting.plot_weights(results, label=count).axes[0]
        assert texts(ax) == ["star 33", "star 29", "star 19", "star 10"][:count]
    most = plotting.plot_weights(results, label=1000).axes[0]
    assert len(texts(most)) == flagged(results).sum() < 47
    arrays = rrmstats.RRMOLS(stars["log_light"].to_numpy(), sm.add_constant(stars["log_te"]), 0.2)
    assert texts(plotting.plot_weights(arrays.fit(steps=1), label=2).axes[0])[0].endswith("33")


def test_a_row_counted_twice_is_at_the_height_of_two_rows():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((60, 2))
    twice = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = rrmstats.RRMCov(z, 0.2, freq_weights=twice).fit(steps=1)
    repeated = rrmstats.RRMCov(np.vstack([z, z[:20]]), 0.2).fit(steps=1)
    heights = []
    for results in (weighted, repeated):
        ax = plotting.plot_weights(results).axes[0]
        points = np.vstack([named(ax, label).get_xydata() for label in ("row", "flagged")])
        heights.append(points[np.argsort(points[:, 0]), 1])
    np.testing.assert_allclose(heights[0], heights[1][:60], rtol=1e-6)
    assert np.ptp(heights[0]) > 0.5


def test_rows_and_groups_are_counted_in_whole_numbers():
    z, unit = np.random.default_rng(0).standard_normal((90, 2)), np.repeat(np.arange(18), 5)
    fig = plotting.plot_weights(rrmstats.RRMCov(z, 0.1, groups=unit).fit(steps=1))
    fig.draw_without_rendering()
    assert (fig.axes[0].get_xticks() % 1 == 0).all()


NO_WEIGHT = matplotlib.colormaps["cividis_r"](0.0)


def line(clean=False):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(60), "unit": np.repeat(np.arange(12), 5)})
    data["y"] = data["x"] + rng.standard_normal(60)
    data.loc[:4, "y"] += 0 if clean else 12
    return data


FITS = {
    "one step": lambda: rrmstats.ols("y ~ x", line(), 0.2).fit(steps=1),
    "clean": lambda: rrmstats.ols("y ~ x", line(clean=True), 0.1).fit(steps=1),
    "equal weights": lambda: rrmstats.ols("y ~ x", line(), 0.0).fit(steps=1),
    "groups": lambda: rrmstats.ols("y ~ x", line(), 0.2, groups="unit").fit(steps=1),
}


@pytest.mark.parametrize("name", FITS)
def test_fits(name):
    results = FITS[name]()
    ax, bar = results.plot_fit().axes
    relative, drawn = np.asarray(results.relative_weights), 0
    for points in ax.collections:
        np.testing.assert_allclose(points.to_rgba(0.0), NO_WEIGHT)
        np.testing.assert_allclose(points.to_rgba(relative.max()), points.cmap(1.0))
        drawn += len(points.get_offsets())
    assert drawn == len(relative) and bar.get_ylim() == (0.0, relative.max())


def test_fits_of_two_steps_are_colored_by_the_probability_to_be_bad():
    results = rrmstats.ols("y ~ x", line(), 0.2).fit()
    ax, bar = results.plot_fit().axes
    prob_bad, flagged = np.asarray(results.prob_bad), np.asarray(results.outliers())
    for points, rows in zip(ax.collections, (~flagged, flagged), strict=True):
        np.testing.assert_allclose(points.get_array(), prob_bad[rows])
        np.testing.assert_allclose(points.to_rgba(1.0), NO_WEIGHT)
        np.testing.assert_allclose(points.to_rgba(0.0), points.cmap(0.0))
    assert bar.get_ylim() == (0.0, 1.0) and bar.get_ylabel() == "prob_bad"
    np.testing.assert_array_equal(flagged, prob_bad > 0.5)
    assert flagged.sum() == 5


def test_rows_without_weight_are_drawn_in_that_color():
    points = FITS["one step"]().plot_fit()
    points.draw_without_rendering()
    flagged = points.axes[0].collections[1]
    np.testing.assert_allclose(flagged.get_facecolors()[:5], [NO_WEIGHT] * 5)


@pytest.mark.parametrize("grid", [[0.0], [0.0, 0.1, 0.2]])
def test_paths(grid):
    stars = datasets.stars_cyg.load_pandas().data
    path = rrmstats.ols("log_light ~ log_te", stars, 0.2).path(grid, steps=1)
    cells = path.plot_weights().axes[0].collections[0]
    np.testing.assert_allclose(cells.to_rgba(0.0), NO_WEIGHT)
    assert cells.get_clim()[0] == 0


def test_trace(fits):
    results = fits["hbk"]
    fig = plotting.plot_trace(results)
    for ax, column in zip(fig.axes, ["risk", "lambda_"], strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_array_equal(x, results.trace.index)
        np.testing.assert_array_equal(y, results.trace[column])
    counts = {line.get_label(): len(line.get_xdata()) for line in fig.axes[0].lines[1:]}
    assert counts == {"start": 1, "Newton step": len(results.trace) - 1}
    paper = results.model.fit(n_starts=0, accelerate=False, steps=1)
    assert named(plotting.plot_trace(paper).axes[0], "Algorithm 1").get_marker() == "D"


def test_trace_without_robustness_has_no_lambda():
    results = rrmstats.RRMCov(np.random.default_rng(0).standard_normal((40, 2)), 0.0).fit(steps=1)
    fig = plotting.plot_trace(results)
    fig.draw_without_rendering()
    assert np.isnan(fig.axes[1].lines[0].get_ydata()).all()


HBK = rrmstats.datasets.hbk.load_pandas().data
MODELS = {
    "ols": rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.25),
    "cov": rrmstats.cov("~ x1 + x2 + x3", HBK, 0.25),
    "pca": rrmstats.pca("~ x1 + x2 + x3", HBK, 0.25, n_components=1),
    "wide pca": rrmstats.RRMPCA(np.random.default_rng(0).standard_normal((15, 30)), 2, 0.2),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_iteration_is_marked(name):
    res = MODELS[name].fit()
    assert set(res.trace["step"]) <= set(STEPS)
    line, *marked = [line for line in plot_trace(res).axes[0].lines if line.get_linestyle() != ":"]
    assert sum(len(part.get_xdata()) for part in marked) == len(line.get_xdata())


def second_step_marks(ax):
    """Return where dotted vertical lines are, and what is written beside them."""
    places = [line.get_xdata()[0] for line in ax.lines if list(line.get_ydata()) == [0, 1]]
    return places, [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", ["ols", "cov", "pca"])
def test_the_second_step_is_marked_in_both_panels(name):
    results = MODELS[name].fit()
    begin = int(np.flatnonzero(results.trace["step"] == "second step")[0])
    assert begin == len(results.first_step.trace)
    upper, lower = plot_trace(results).axes
    assert second_step_marks(upper) == ([begin - 0.5], ["second step begins"])
    assert second_step_marks(lower) == ([begin - 0.5], [])
    for ax in plot_trace(results.first_step).axes:
        assert second_step_marks(ax) == ([], [])


def test_a_second_step_that_kept_the_first_is_marked_at_the_end(fits):
    trace = fits["cov"].trace
    axes = plot_trace(SimpleNamespace(trace=trace, steps=2)).axes
    for ax in axes:
        places, _ = second_step_marks(ax)
        assert places == [len(trace) - 0.5]
        assert ax.get_xlim()[0] < places[0] < ax.get_xlim()[1]
    assert second_step_marks(axes[0])[1] == ["the second step kept the first"]


def test_a_fit_without_iterations_has_whole_numbers_and_says_why_lambda_is_missing():
    fig = plot_trace(rrmstats.ols("y ~ x1", HBK, 0.0).fit(steps=1))
    fig.draw_without_rendering()
    lower = fig.axes[1]
    low, high = lower.get_xlim()
    assert [tick for tick in lower.get_xticks() if low <= tick <= high] == [0]
    assert [text.get_text() for text in lower.texts] == ["infinite: all rows have equal weights"]


def test_small_changes_are_not_enlarged_until_ticks_look_equal():
    low, high = value_limits(np.array([2.0, np.nan, 2.0 + 1e-9]))
    assert low < 2 < high and 0.001 < high - low < 0.01
    assert value_limits(np.array([1.0, 3.0])) == pytest.approx((0.7, 3.3))
    low, high = value_limits(np.zeros(2))
    assert low < 0 < high
