"""Paths of two steps: probabilities in place of weights, and a band that tells explanations."""

import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import rrmstats
from rrmstats import datasets, plotting
from rrmstats.plotting.path_arrays import leaving_groups, most_suspicious, row_values
from rrmstats.plotting.path_explanations import explanation_colors, explanation_runs

from .axes_content import overlap

NAMES = [
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
    a, b = NAMES[:2]
    runs = explanation_runs(told(stars, [a, b, b, b, a, a]))
    assert [(run.name, run.first, run.last) for run in runs] == [(a, 0, 0), (b, 1, 3), (a, 4, 5)]
    ends = [(run.left, run.right) for run in runs]
    np.testing.assert_allclose(ends, [(0, 0.01), (0.01, 0.15), (0.15, 0.3)])
    assert len(set(explanation_colors(runs).values())) == 2
    assert explanation_runs(stars.model.path([0, 0.1], steps=1)) == []


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2], NAMES])
def test_the_band_has_a_color_for_each_explanation(names, stars):
    path = told(stars, (names * 6)[:6] if len(names) < 3 else [*names, names[-1]])
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
    assert [text.get_text() for text in legend.get_texts()] == names
    assert [to_hex(p.get_fc()).upper() for p in legend.get_patches()] == list(colors.values())


@pytest.mark.parametrize("draw", ["plot_path", "plot_path_weights", "plot_path_residuals"])
def test_long_names_stay_within_the_figure_and_clear_of_each_other(draw, stars):
    fig = getattr(plotting, draw)(told(stars, [*NAMES, NAMES[-1]]))
    fig.draw_without_rendering()
    (legend,) = [each for each in fig.legends if "explanation" in each.get_title().get_text()]
    boxes = [tuple(text.get_window_extent().extents) for text in legend.get_texts()]
    assert len(boxes) == len(NAMES)
    for i, box in enumerate(boxes):
        assert 0 <= box[0] and box[2] <= fig.bbox.width
        assert not any(overlap(box, other) for other in boxes[:i])
    for ax in fig.axes:
        title = tuple(ax.title.get_window_extent().extents)
        if ax.get_title():
            assert title[1] >= max((p.get_extents().y1 for p in ax.patches), default=0)
    plt.close(fig)


def test_rows_are_shown_by_their_probability_to_be_bad(stars):
    ax = plotting.plot_path(stars).axes[-1]
    assert ax.get_title() == "prob_bad of the rows" and ax.get_ylabel() == "prob_bad"
    values = stars.prob_bad.to_numpy()
    lines = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == len(stars)]
    (gray,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    drawn = np.array([*lines, *(segment[:, 1] for segment in gray.get_segments())])
    np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], values[np.lexsort(values.T)])
    ever = stars.flags.any(axis=1).to_numpy()
    assert len(gray.get_segments()) == (~ever).sum()


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
    gone = np.concatenate([group.rows for group in leaving_groups(stars)])
    assert set(np.flatnonzero(flags[:, -1])) <= set(gone)
    shown = row_values(stars)
    worst = most_suspicious(stars, 5)
    assert shown.values[worst].max(axis=1).min() >= np.sort(shown.values.max(axis=1))[-5]
