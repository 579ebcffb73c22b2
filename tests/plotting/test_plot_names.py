import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, datasets, plotting
from rrmstats.plotting.names import free_places, short_names

from .axes_content import overlap, written_boxes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("picture", "fit"),
    [
        ("plot_diagnostics", "hbk"),
        ("plot_diagnostics", "stars"),
        ("plot_fit", "stars"),
        ("plot_ellipse", "cov"),
    ],
)
def test_names_do_not_cover_each_other(picture, fit, fits):
    fig = getattr(plotting, picture)(fits[fit])
    for ax in fig.axes:
        found = [(box.x0, box.y0, box.x1, box.y1) for box in written_boxes(ax)]
        for i, box in enumerate(found):
            assert not any(overlap(box, other) for other in found[:i])


def test_names_stand_by_their_own_points(fits):
    """Of four giants one over the other, each has its name nearest, or tied to it by a line."""
    fig = plotting.plot_fit(fits["stars"])
    ax = fig.axes[0]
    bad = ax.transData.transform(ax.collections[1].get_offsets())
    for text, box in zip(ax.texts, written_boxes(ax), strict=True):
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        own = ax.transData.transform(text.xy)
        nearest = np.linalg.norm(bad - middle, axis=1).min()
        assert text.arrow_patch is not None or np.linalg.norm(own - middle) <= nearest + 2


def around(points):
    """Return the boxes of markers."""
    return np.hstack([points - 4, points + 4])


def test_free_places():
    frame = np.array([0.0, 0.0, 100.0, 100.0])
    alone = np.array([[50.0, 50.0]])
    assert free_places(alone, [(10, 10)], around(alone), frame) == [(5, 4)]
    corner = np.array([[98.0, 98.0]])
    assert free_places(corner, [(10, 10)], around(corner), frame) == [(-5, -4)]
    crowd = np.repeat(alone, 30, axis=0)
    assert len(free_places(crowd, [(10, 10)] * 30, around(crowd), frame)) == 30


def test_long_names_leave_the_panel_its_size():
    stars = datasets.stars_cyg.load_pandas().data
    widths = []
    for name in ("{}", "star number {} of the cluster CYG OB1 in the direction of Cygnus"):
        named = stars.set_axis([name.format(i) for i in range(len(stars))])
        fig = plotting.plot_fit(rrmstats.ols("log_light ~ log_te", named, 0.2).fit(steps=1))
        fig.draw_without_rendering()
        widths.append(fig.axes[0].bbox.width)
        frame = fig.axes[0].get_window_extent()
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in written_boxes(fig.axes[0]))
    assert widths[1] == pytest.approx(widths[0], rel=0.01)


@pytest.mark.parametrize("form", ["{} of a very long name", "a name {} long", "a long name {}"])
def test_short_names_still_differ(form):
    names = [form.format(f"{'so' * 5} {i} {'on' * 5}") for i in range(20)]
    short = short_names(names, 20)
    assert len(set(short)) == 20 and max(map(len, short)) <= 20
    assert short_names(names, 60) == names


def test_names_prefer_places_without_rows():
    frame, point = np.array([0.0, 0.0, 100.0, 100.0]), np.array([[50.0, 50.0]])
    right = around(np.array([[60.0, 59.0], [60.0, 41.0]]))
    assert free_places(point, [(10, 10)], around(point), frame, others=right) == [(-5, 4)]


@pytest.mark.slow
def test_names_with_dollars_are_no_formulas():
    rng = np.random.default_rng(0)
    names = ["cost $", "price $_$ per kg", "$_$"]
    data = pd.DataFrame(rng.standard_normal((40, 3)), columns=names)
    data.index = [f"$_$ {i}" for i in range(40)]
    data.iloc[:4] += [9.0, -9.0, 9.0]
    ols = RRMOLS(data[names[0]], data[names[1:2]], 0.2)
    figures = [ols.fit(steps=1).plot_fit(), RRMCov(data, 0.2).fit(steps=1).plot_ellipse((1, 2))]
    figures += [
        RRMPCA(data, 2, 0.2).fit(steps=1).plot_biplot(),
        ols.path([0.0, 0.2], steps=1).plot(),
    ]
    for figure in figures:
        figure.canvas.draw()  # which raises an error where "$_$" is a formula
    assert figures[0].axes[0].get_ylabel() == r"cost \$"
