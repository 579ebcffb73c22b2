"""Pictures of a path, and what they show."""

import copy
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

import rrmstats
from rrmstats import datasets, plotting
from rrmstats.plotting.paths import (
    CHOSEN,
    JUMP,
    NEVER,
    STAYS,
    explanation_colors,
    explanation_runs,
    leaving_groups,
    most_suspicious,
    path_residuals,
    row_values,
    rows_text,
    shown_terms,
    some_lines,
    term_values,
    value_edges,
)

from .axes_content import named, overlap, texts


def panel(fig, title):
    (ax,) = [ax for ax in fig.axes if ax.get_title() == title]
    return ax


def with_choice(path, eps_bar):
    chosen = copy.copy(path)
    chosen.choice = SimpleNamespace(eps_bar=eps_bar, reason="it is the smallest that agrees")
    return chosen


def vertical_lines(ax, style):
    return sorted(
        line.get_xdata()[0]
        for line in ax.lines
        if list(line.get_ydata()) == [0, 1] and line.get_color() == style["color"]
    )


@pytest.fixture(scope="module")
def hbk_figure(paths):
    return plotting.plot_path(paths["hbk"])


def test_coefficients_with_their_intervals(paths, hbk_figure):
    path, fig = paths["hbk"], hbk_figure
    for term in ("Intercept", "x1", "x2", "x3"):
        frame = path.frame[path.frame["term"] == term]
        ax = panel(fig, term)
        x, y = named(ax, "estimate").get_data()
        np.testing.assert_array_equal(x, path.eps_bars)
        np.testing.assert_array_equal(y, frame["estimate"])
        (band,) = ax.collections
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
        limits = [*zip(x, frame["lower"], strict=True), *zip(x, frame["upper"], strict=True)]
        assert set(limits) <= corners
        low, high = ax.get_ylim()
        assert low <= y.min() and y.max() <= high


def test_a_few_wide_intervals_do_not_flatten_the_estimates():
    y = np.linspace(1.0, 2.0, 26)
    low, high = y - 0.5, y + 0.5
    high[-1], low[0], low[-1] = 1e6, np.nan, -np.inf
    for lower, upper, expected in ((low, high, (0.5, 2.5)), (y * np.nan, y * np.nan, (1.0, 2.0))):
        frame = pd.DataFrame({"term": "x", "estimate": y, "lower": lower, "upper": upper})
        bottom, top = term_values(SimpleNamespace(frame=frame), "x")[-1]
        assert expected[0] - 0.3 < bottom < expected[0] + 0.1
        assert expected[1] - 0.1 < top < expected[1] + 0.3


def test_scale_and_contamination(paths, hbk_figure):
    path, fig = paths["hbk"], hbk_figure
    frame = path.frame.drop_duplicates("eps_bar")
    (line,) = [line for line in panel(fig, "Scale").lines if len(line.get_xdata()) == len(path)]
    np.testing.assert_array_equal(line.get_ydata(), frame["scale"])
    ax = panel(fig, "Share of bad rows")
    np.testing.assert_array_equal(named(ax, "eps_hat").get_ydata(), frame["eps_hat"])
    np.testing.assert_allclose(named(ax, "share").get_ydata(), path.flags.mean())
    x, y = named(ax, "eps_bar").get_data()
    assert list(x) == list(y) == [0, path.eps_bars[-1]]


def test_weights_of_flagged_rows_are_colored_and_named_once(paths, hbk_figure):
    path = paths["hbk"]
    ax = panel(hbk_figure, "Weights of the rows")
    relative = path.weights.to_numpy() * 75
    never = ~path.flags.to_numpy().any(axis=1)
    lines = [line for line in ax.lines if len(line.get_xdata()) == len(path)]
    gray = [line for line in lines if to_hex(line.get_color()).upper() == NEVER["color"]]
    np.testing.assert_allclose([line.get_ydata() for line in gray], relative[never])
    lines = [line for line in lines if line not in gray]
    colored = np.array([line.get_ydata() for line in lines])
    order = np.lexsort(colored.T)
    np.testing.assert_allclose(colored[order], relative[~never][np.lexsort(relative[~never].T)])
    own = [
        line for line in lines if np.abs(relative[:10] - line.get_ydata()).max(axis=1).min() < 1e-9
    ]
    colors = {to_hex(line.get_color()) for line in own}
    # Row 3 loses half its weight before the others.
    assert len(own) == 10 and len(colors) == 2
    (label,) = [text for text in ax.texts if text.get_text() == "0-2, 4-9"]
    assert to_hex(label.get_color()) in colors


def test_jumps_and_the_chosen_value_are_in_every_panel(paths):
    path = with_choice(paths["hbk"], 0.2)
    fig = plotting.plot_path(path)
    middles = path.jumps[["eps_bar_from", "eps_bar_to"]].mean(axis=1)
    assert len(middles) >= 1 and len(fig.axes) == 7
    for ax in fig.axes:
        np.testing.assert_allclose(vertical_lines(ax, JUMP), middles)
        assert vertical_lines(ax, CHOSEN) == [0.2]
    (legend,) = fig.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert "chosen: 0.2" in names and "jump" in names


def test_without_jumps_the_legend_does_not_name_them(paths):
    path = copy.copy(paths["hbk"])
    path.__dict__["jumps"] = path.jumps.iloc[:0]
    (legend,) = plotting.plot_path(path).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert "jump" not in names


def test_of_many_terms_those_that_change_most_are_shown(paths, hbk_figure):
    fig = plotting.plot_path(paths["cov"])
    titles = [ax.get_title() for ax in fig.axes]
    assert len(titles) == 12 + 2  # a covariance has no scale
    assert titles[-2:] == ["Share of bad rows", "Weights of the rows"] and "Scale" not in titles
    assert fig.get_suptitle() == "12 of 14 coefficients, those that change most"
    assert fig.get_size_inches()[1] > hbk_figure.get_size_inches()[1]


def test_terms_can_be_asked_for(paths):
    fig = plotting.plot_path(paths["hbk"], terms=["x3", "x1"])
    assert [ax.get_title() for ax in fig.axes[:2]] == ["x3", "x1"]
    for terms in (["x1", "z"], []):
        with pytest.raises(ValueError, match="terms must be some of Intercept, x1, x2, x3, got"):
            plotting.plot_path(paths["hbk"], terms=terms)


@pytest.mark.parametrize("name", ["hbk", "logit"])
def test_labels_of_rows_do_not_cover_each_other_or_leave_the_panel(name, paths):
    fig = plotting.plot_path(paths[name])
    ax = fig.axes[-1]
    fig.draw_without_rendering()
    found = [tuple(Text.get_window_extent(text).extents) for text in ax.texts]
    frame = ax.get_window_extent()
    assert found
    for i, box in enumerate(found):
        assert not any(overlap(box, other) for other in found[:i])
        assert frame.y0 <= box[1] and box[3] <= frame.y1 + 1


def test_long_names_of_terms_do_not_run_into_each_other(paths):
    path = copy.copy(paths["hbk"])
    names = {f"x{i}": f"C(hospital, Treatment('reference'))[T.University {i}]" for i in (1, 2, 3)}
    path.__dict__["frame"] = path.frame.replace({"term": names})
    fig = plotting.plot_path(path)
    fig.draw_without_rendering()
    boxes = [tuple(ax.title.get_window_extent().extents) for ax in fig.axes[:4]]
    assert len({ax.get_title() for ax in fig.axes[:4]}) == 4
    for i, box in enumerate(boxes):
        assert not any(overlap(box, other) for other in boxes[:i])
        assert 0 <= box[0] and box[2] <= fig.bbox.width


def test_of_thousands_of_rows_some_are_drawn(paths, monkeypatch):
    monkeypatch.setattr("rrmstats.plotting.paths.MOST_LINES", 20)
    monkeypatch.setattr("rrmstats.plotting.paths.MOST_OF_A_GROUP", 3)
    fig = plotting.plot_path(paths["hbk"])
    title = fig.axes[-1].get_title()
    drawn = [line for line in fig.axes[-1].lines if len(line.get_xdata()) == len(paths["hbk"])]
    assert title == f"Weights of {len(drawn)} of 75 rows" and 20 < len(drawn) < 40
    fig = plotting.plot_path_residuals(paths["hbk"])
    assert fig.axes[0].get_title().endswith(" of 75 rows are drawn")
    assert "0-9" in [text.get_text() for text in fig.axes[0].texts]


def test_the_scale_stays_below_the_frame(paths, hbk_figure):
    path = paths["hbk"]
    ax = panel(hbk_figure, "Scale")
    assert ax.get_ylim() == pytest.approx((0.0, 1.08 * path.frame["scale"].max()))


def tick_texts(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def heights_overlap(boxes):
    ends = sorted((box.y0, box.y1) for box in boxes)
    return any(low < high - 0.5 for (_, high), (low, _) in pairwise(ends))


def test_the_heat_map_shows_the_weights_in_the_order_of_leaving(paths):
    path = paths["stars"]
    ax, bar = plotting.plot_path_weights(path).axes
    names = tick_texts(ax)
    assert len(set(names)) == 40
    (image,) = ax.collections
    rows = [int(name) for name in names]
    np.testing.assert_allclose(image.get_array(), path.weights.to_numpy()[rows] * 47)
    leaves = path.leaves["below_half"].fillna(1.0).to_numpy()[rows]
    assert (np.diff(leaves) >= 0).all()
    assert {"10", "19", "29", "33"} < set(names[:6]) and ax.yaxis_inverted()
    assert bar.get_ylabel() == "weight * n"


def test_of_many_rows_those_of_smallest_weight_are_shown(paths):
    path = paths["logit"]
    ax = plotting.plot_path_weights(path).axes[0]
    assert ax.get_title() == "40 of 699 rows, those of smallest weight"
    (image,) = ax.collections
    assert image.get_array().shape == (40, 5)
    flagged = path.flags.any(axis=1).to_numpy()
    least = (path.weights.to_numpy()[flagged] * 699).min()
    np.testing.assert_allclose(image.get_array().min(), least)


def test_cells_surround_their_values():
    np.testing.assert_allclose(value_edges(np.array([0.0, 0.1, 0.4])), [0.0, 0.05, 0.25, 0.4])
    np.testing.assert_allclose(value_edges(np.array([0.2])), [0.19, 0.21])


def drawn_lines(ax, count):
    return [line for line in ax.lines if len(line.get_xdata()) == count]


def test_residuals_that_end_outside_are_colored_and_named(paths):
    path = paths["hbk"]
    ax = plotting.plot_path_residuals(path).axes[0]
    residuals = path.residuals.to_numpy()
    outside = np.abs(residuals[:, -1]) > np.sqrt(5.0239)
    gray = {NEVER["color"].lower(), STAYS["color"].lower(), "#666666"}
    lines = [line for line in drawn_lines(ax, len(path)) if to_hex(line.get_color()) not in gray]
    ends = sorted(line.get_ydata()[-1] for line in lines)
    np.testing.assert_allclose(ends, np.sort(residuals[outside, -1]))
    assert "0-9" in texts(ax)
    # Rows 10 to 12 are outside at first and within the band in the end.
    passing = [line for line in ax.lines if to_hex(line.get_color()) == STAYS["color"].lower()]
    found = np.array([line.get_ydata() for line in passing])
    for row in (10, 11, 12):
        assert np.abs(found - residuals[row]).max(axis=1).min() == 0
    always = [line for line in ax.lines if to_hex(line.get_color()).upper() == NEVER["color"]]
    assert len(always) + len(found) + len(lines) == 75


def test_the_band_is_that_of_the_level(paths):
    ax = plotting.plot_path_residuals(paths["hbk"], level=0.5).axes[0]
    dotted = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    np.testing.assert_allclose(sorted(dotted), [-0.67449, 0.67449], rtol=1e-4)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1"):
        plotting.plot_path_residuals(paths["hbk"], level=1)


def test_distances_have_no_lower_cutoff(paths):
    path = paths["cov"]
    ax = plotting.plot_path_residuals(path).axes[0]
    (cutoff,) = [line for line in ax.lines if line.get_linestyle() == ":"]
    own = [path.at(eps_bar).cutoff() for eps_bar in path.eps_bars]
    np.testing.assert_allclose(cutoff.get_ydata(), own)
    assert ax.get_ylabel() == "robust distance"


@pytest.mark.parametrize("name", ["hbk", "logit"])
def test_names_at_the_ends_do_not_cover_each_other(name, paths):
    fig = plotting.plot_path_residuals(paths[name])
    ax = fig.axes[0]
    fig.draw_without_rendering()
    assert ax.texts
    assert not heights_overlap([Text.get_window_extent(text) for text in ax.texts])


def test_huge_residuals_do_not_flatten_the_band(paths):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 40)
    frame = pd.DataFrame({"x": x, "y": x + 0.01 * rng.standard_normal(40)})
    frame.loc[:3, "y"] += [10, 11, 12, 13]
    path = rrmstats.ols("y ~ x", frame, eps_bar=0.2).path([0, 0.2, 0.3], steps=1)
    ax = plotting.plot_path_residuals(path).axes[0]
    assert ax.get_yscale() == "symlog" and texts(ax)[-1] == "0-3"
    assert plotting.plot_path_residuals(paths["hbk"]).axes[0].get_yscale() == "linear"


def test_a_path_of_one_value_has_pictures(paths):
    path = paths["stars"].model.path([0.2], steps=1)
    for draw in (plotting.plot_path, plotting.plot_path_weights, plotting.plot_path_residuals):
        draw(path).draw_without_rendering()


def test_exact_fits_have_pictures():
    x = np.linspace(0, 1, 40)
    frame = pd.DataFrame({"x": x, "y": 1 + 2 * x})
    frame.loc[:3, "y"] += 3
    path = rrmstats.ols("y ~ x", frame, eps_bar=0.2).path([0, 0.2, 0.3], steps=1)
    for draw in (plotting.plot_path, plotting.plot_path_weights, plotting.plot_path_residuals):
        draw(path).draw_without_rendering()


EXPLANATIONS = [
    "none",
    "changing noise, wide and cluster",
    "growing noise, wide and cluster",
    "heavy tails",
    "changing noise, scattered",
]


@pytest.fixture(scope="module")
def stars():
    data = datasets.stars_cyg.load_pandas().data
    return rrmstats.ols("log_light ~ log_te", data, 0.2).path([0, 0.02, 0.05, 0.1, 0.2, 0.3])


def told(path, names):
    """Return a path with other explanations."""
    other = copy.copy(path)
    by_value = dict(zip(path.eps_bars, names, strict=True))
    other.__dict__["frame"] = path.frame.assign(explanation=path.frame["eps_bar"].map(by_value))
    return other


def bands(ax):
    """Return left and right ends and the colors of the bands above axes."""
    found = [patch for patch in ax.patches if patch.get_extents().y0 >= ax.bbox.y1 - 1]
    return [
        (*ax.transData.inverted().transform(patch.get_extents())[:, 0], to_hex(patch.get_fc()))
        for patch in found
    ]


def test_runs_begin_between_the_values_of_the_grid(stars):
    a, b = EXPLANATIONS[:2]
    runs = explanation_runs(told(stars, [a, b, b, b, a, a]))
    assert [(run.name, run.first, run.last) for run in runs] == [(a, 0, 0), (b, 1, 3), (a, 4, 5)]
    ends = [(run.left, run.right) for run in runs]
    np.testing.assert_allclose(ends, [(0, 0.01), (0.01, 0.15), (0.15, 0.3)])
    assert len(set(explanation_colors(runs).values())) == 2
    assert explanation_runs(stars.model.path([0, 0.1], steps=1)) == []


def test_the_band_has_a_color_for_each_explanation(stars):
    names = EXPLANATIONS
    path = told(stars, [*names, names[-1]])
    fig = plotting.plot_path(path)
    fig.draw_without_rendering()
    runs = explanation_runs(path)
    colors = explanation_colors(runs)
    for ax in fig.axes:
        found = bands(ax)
        ends = [(r.left, r.right) for r in runs]
        np.testing.assert_allclose([f[:2] for f in found], ends, atol=1e-9)
        assert [f[2].upper() for f in found] == [colors[r.name] for r in runs]
    legend = fig.legends[0]
    told_names = [text.get_text() for text in legend.get_texts()][-len(names) :]
    assert told_names == [f"explanation: {name}" for name in names]
    patches = legend.get_patches()[-len(names) :]
    assert [to_hex(patch.get_fc()).upper() for patch in patches] == list(colors.values())


@pytest.mark.parametrize("draw", ["plot_path", "plot_path_weights", "plot_path_residuals"])
def test_long_names_stay_within_the_figure_and_clear_of_each_other(draw, stars):
    fig = getattr(plotting, draw)(told(stars, [*EXPLANATIONS, EXPLANATIONS[-1]]))
    fig.draw_without_rendering()
    (legend,) = fig.legends or [fig.axes[0].get_legend()]
    boxes = [tuple(text.get_window_extent().extents) for text in legend.get_texts()]
    assert len(boxes) > len(EXPLANATIONS)
    for i, box in enumerate(boxes):
        assert 0 <= box[0] and box[2] <= fig.bbox.width
        assert not any(overlap(box, other) for other in boxes[:i])
    for ax in fig.axes:
        title = tuple(ax.title.get_window_extent().extents)
        if ax.get_title():
            assert title[1] >= max((p.get_extents().y1 for p in ax.patches), default=0)


def test_rows_are_shown_by_their_probability_to_be_bad(stars):
    ax = plotting.plot_path(stars).axes[-1]
    assert ax.get_title() == "prob_bad of the rows" and ax.get_ylabel() == "prob_bad"
    values = stars.prob_bad.to_numpy()
    lines = [line for line in ax.lines if len(line.get_xdata()) == len(stars)]
    gray = [line for line in lines if to_hex(line.get_color()).upper() == NEVER["color"]]
    drawn = np.array([line.get_ydata() for line in lines])
    np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], values[np.lexsort(values.T)])
    ever = stars.flags.any(axis=1).to_numpy()
    assert len(gray) == (~ever).sum()


def test_the_heat_map_shows_probabilities(stars):
    fig = plotting.plot_path_weights(stars)
    ax, bar = fig.axes
    rows = [int(text.get_text()) for text in ax.get_yticklabels()]
    image = ax.collections[0]
    np.testing.assert_allclose(image.get_array(), stars.prob_bad.to_numpy()[rows])
    assert image.get_clim() == (0, 1) and bar.get_ylabel() == "prob_bad"
    assert {10, 19, 29, 33} <= set(rows[:6])


def test_rows_leave_where_they_become_more_likely_bad_than_good(stars):
    flags, grid = stars.flags.to_numpy(), stars.eps_bars
    for row, below in enumerate(stars.leaves["below_half"]):
        late = grid >= below if below == below else np.zeros(len(grid), bool)
        np.testing.assert_array_equal(flags[row, late], True)
        assert not flags[row, -1] or late.any()
    gone = np.concatenate(leaving_groups(stars))
    assert set(np.flatnonzero(flags[:, -1])) <= set(gone)
    shown = row_values(stars)
    worst = most_suspicious(stars, 5)
    assert shown.values[worst].max(axis=1).min() >= np.sort(shown.values.max(axis=1))[-5]


NAMES = [str(i) for i in range(50)]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "none"),
        ([7], "7"),
        ([3, 4], "3, 4"),
        ([3, 4, 5], "3-5"),
        ([3, 5, 7, 18], "3, 5, 7, 18"),
        ([0, 2, 4, 6, 8, 9, 10], "0, 2, 4 and 4 more"),
    ],
)
def test_names_of_rows_in_a_few_words(rows, text):
    assert rows_text(rows, NAMES) == text


def test_long_names_give_way_to_a_number():
    long = [f"a row with a long name {i}" for i in range(5)]
    assert rows_text([0, 2], long) == "2 rows"
    assert rows_text([0], long) == long[0]


def test_rows_that_leave_together_are_one_group(paths):
    groups = leaving_groups(paths["hbk"])
    assert [0, 1, 2, 4, 5, 6, 7, 8, 9] in [list(group) for group in groups]
    every = np.concatenate(groups)
    assert len(every) == len(set(every))


def test_weights_are_relative_to_frequencies():
    rng = np.random.default_rng(0)
    data, counts = rng.standard_normal((40, 2)), rng.integers(1, 4, 40).astype(float)
    model = rrmstats.RRMCov(data, 0.1, freq_weights=counts)
    path = model.path([0, 0.1], steps=1)
    np.testing.assert_allclose(row_values(path).values[:, 0], 1.0)
    np.testing.assert_allclose(row_values(path).values[:, 1], model.fit(steps=1).relative_weights)


def test_terms_that_change_most_in_standard_errors():
    frame = pd.DataFrame(
        {
            "term": ["a", "b", "c"] * 2,
            "estimate": [0.0, 0.0, 0.0, 5.0, 1.0, 3.0],
            "std_err": [10.0, 0.1, 1.0] * 2,
        }
    )
    assert shown_terms(frame, None, 2) == ["b", "c"]
    assert shown_terms(frame, None, 5) == ["a", "b", "c"]


def test_flagged_rows_come_first(paths):
    path = paths["hbk"]
    flagged = np.flatnonzero(path.flags.any(axis=1))
    rows = most_suspicious(path, len(flagged))
    assert set(rows) == set(flagged)


def test_cutoffs_are_those_of_the_flags(paths):
    """A row is outside the band if and only if it is flagged, where the two use one quantile."""
    for name in ("logit", "cov"):
        outside = path_residuals(paths[name], 0.975).outside
        np.testing.assert_array_equal(outside, paths[name].flags.to_numpy())
    assert np.ptp(path_residuals(paths["cov"], 0.975).high) > 0


@pytest.mark.parametrize(
    ("name", "kind", "cutoff"),
    [
        ("hbk", "standardized residual", 2.2414),
        ("logit", "deviance residual", 2.7162),
        ("pca", "larger distance / its cutoff", 1.0),
    ],
)
def test_kinds_of_residuals(name, kind, cutoff, paths):
    found = path_residuals(paths[name], 0.975)
    assert found.name == kind
    np.testing.assert_allclose(found.high, cutoff, rtol=1e-4)


def test_some_lines_are_spread_over_their_ends():
    values = np.random.default_rng(0).permutation(1000)[:, None] * [1.0, 2.0]
    np.testing.assert_array_equal(some_lines(values, 1000), values)
    found = some_lines(values, 10)[:, 1]
    np.testing.assert_allclose(found, np.linspace(0, 1998, 10), atol=2)
