import copy
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from rrmstats import plotting
from rrmstats.plotting.paths import CHOSEN, JUMP, NEVER, term_grid, term_limits

from .axes_content import named, overlap


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


def test_coefficients_with_their_intervals(paths):
    path = paths["hbk"]
    fig = plotting.plot_path(path)
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
    bottom, top = term_limits(y, low, high)
    assert -1 < bottom < 0.6 and 2.4 < top < 4
    assert term_limits(y, y * np.nan, y * np.nan) == pytest.approx((0.95, 2.05))


def test_scale_and_contamination(paths):
    path = paths["hbk"]
    fig = plotting.plot_path(path)
    frame = path.frame.drop_duplicates("eps_bar")
    (line,) = [line for line in panel(fig, "Scale").lines if len(line.get_xdata()) == len(path)]
    np.testing.assert_array_equal(line.get_ydata(), frame["scale"])
    ax = panel(fig, "Contamination")
    np.testing.assert_array_equal(named(ax, "eps_hat").get_ydata(), frame["eps_hat"])
    np.testing.assert_allclose(named(ax, "share").get_ydata(), path.flags.mean())
    x, y = named(ax, "eps_bar").get_data()
    assert list(x) == list(y) == [0, path.eps_bars[-1]]


def test_models_without_a_scale_have_no_such_panel(paths):
    titles = [ax.get_title() for ax in plotting.plot_path(paths["cov"]).axes]
    assert titles[-2:] == ["Contamination", "Weights of the rows"] and "Scale" not in titles


def test_weights_of_flagged_rows_are_colored_and_named_once(paths):
    path = paths["hbk"]
    ax = panel(plotting.plot_path(path), "Weights of the rows")
    relative = path.weights.to_numpy() * 75
    never = ~path.flags.to_numpy().any(axis=1)
    (gray,) = ax.collections
    drawn = np.array([segment[:, 1] for segment in gray.get_segments()])
    np.testing.assert_allclose(drawn, relative[never])
    assert to_hex(gray.get_color()[0]).upper() == NEVER["color"]
    lines = [line for line in ax.lines if len(line.get_xdata()) == len(path)]
    colored = np.array([line.get_ydata() for line in lines])
    order = np.lexsort(colored.T)
    np.testing.assert_allclose(colored[order], relative[~never][np.lexsort(relative[~never].T)])
    assert NEVER["color"] not in {to_hex(line.get_color()).upper() for line in lines}
    own = [
        line for line in lines if np.abs(relative[:10] - line.get_ydata()).max(axis=1).min() < 1e-9
    ]
    colors = {to_hex(line.get_color()) for line in own}
    assert len(own) == 10 and len(colors) == 1
    (label,) = [text for text in ax.texts if text.get_text() == "0-9"]
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


def test_of_many_terms_those_that_change_most_are_shown(paths):
    path = paths["cov"]
    fig = plotting.plot_path(path)
    assert len(fig.axes) == 12 + 2
    assert fig.legends[0].get_title().get_text() == (
        "12 of 14 coefficients, those that change most"
    )
    assert fig.get_size_inches()[1] > plotting.plot_path(paths["hbk"]).get_size_inches()[1]


def test_terms_can_be_asked_for(paths):
    fig = plotting.plot_path(paths["hbk"], terms=["x3", "x1"])
    assert [ax.get_title() for ax in fig.axes[:2]] == ["x3", "x1"]
    for terms in (["x1", "z"], []):
        with pytest.raises(ValueError, match="terms must be some of Intercept, x1, x2, x3, got"):
            plotting.plot_path(paths["hbk"], terms=terms)


@pytest.mark.parametrize("count", range(1, 13))
def test_the_grid_of_terms_has_room_for_all(count):
    rows, per_row = term_grid(count)
    assert (rows - 1) * per_row < count <= rows * per_row
    assert 12 % per_row == 0 and per_row <= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hbk", "stars", "cov", "pca", "logit"])
def test_labels_of_rows_do_not_cover_each_other_or_leave_the_panel(name, paths):
    fig = plotting.plot_path(paths[name])
    ax = fig.axes[-1]
    fig.draw_without_rendering()
    found = [Text.get_window_extent(text).extents for text in ax.texts]
    frame = ax.get_window_extent()
    assert found
    for i, box in enumerate(found):
        assert not any(overlap(tuple(box), tuple(other)) for other in found[:i])
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
    assert title == f"Weights of {20 + len(drawn)} of 75 rows" and len(drawn) < 20
    fig = plotting.plot_path_residuals(paths["hbk"])
    assert fig.axes[0].get_title().endswith(" of 75 rows are drawn")
    assert "0-9" in [text.get_text() for text in fig.axes[0].texts]


def test_the_scale_stays_below_the_frame(paths):
    path = paths["hbk"]
    ax = panel(plotting.plot_path(path), "Scale")
    assert ax.get_ylim() == pytest.approx((0.0, 1.08 * path.frame["scale"].max()))
