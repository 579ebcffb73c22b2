from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

import rrmstats
from rrmstats import plotting
from rrmstats.plotting.path_arrays import value_edges
from rrmstats.plotting.paths import NEVER, STAYS

from .axes_content import texts


def tick_texts(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def heights_overlap(boxes):
    ends = sorted((box.y0, box.y1) for box in boxes)
    return any(low < high - 0.5 for (_, high), (low, _) in pairwise(ends))


def test_the_heat_map_shows_the_weights_in_the_order_of_leaving(paths):
    path = paths["stars"]
    ax, bar = plotting.plot_path_weights(path).axes
    names = tick_texts(ax)
    assert sorted(names, key=int) == [str(i) for i in range(47)]
    (image,) = ax.collections
    rows = [int(name) for name in names]
    np.testing.assert_allclose(image.get_array(), path.weights.to_numpy()[rows] * 47)
    leaves = path.leaves["below_half"].fillna(1.0).to_numpy()[rows]
    assert (np.diff(leaves) >= 0).all()
    assert {"10", "19", "29", "33"} < set(names[:6]) and ax.yaxis_inverted()
    assert bar.get_ylabel() == "weight * n" and ax.get_title() == ""


def test_many_rows_are_labeled_by_when_they_leave(paths):
    fig = plotting.plot_path_weights(paths["hbk"])
    ax = fig.axes[0]
    names = tick_texts(ax)
    assert len(names) < 40 and names[-1].endswith("rows stay")
    assert any(name.startswith(("0-9", "0-2, 4-9")) for name in names)
    fig.draw_without_rendering()
    assert not heights_overlap([Text.get_window_extent(text) for text in ax.get_yticklabels()])


def test_of_very_many_rows_those_of_smallest_weight_are_shown(paths):
    path = paths["logit"]
    ax = plotting.plot_path_weights(path).axes[0]
    assert ax.get_title() == "200 of 699 rows, those of smallest weight"
    (image,) = ax.collections
    assert image.get_array().shape == (200, 5)
    flagged = path.flags.any(axis=1).to_numpy()
    least = (path.weights.to_numpy()[flagged] * 699).min()
    np.testing.assert_allclose(image.get_array().min(), least)


def test_cells_surround_their_values():
    np.testing.assert_allclose(value_edges(np.array([0.0, 0.1, 0.4])), [-0.05, 0.05, 0.25, 0.55])
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
    (always,) = [c for c in ax.collections if hasattr(c, "get_segments") and c.get_segments()]
    assert len(always.get_segments()) + len(found) + len(lines) == 75


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hbk", "stars", "cov", "pca", "logit"])
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
