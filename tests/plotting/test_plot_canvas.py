import numpy as np
import pytest
from matplotlib.colors import to_rgb

import rrmstats
from rrmstats import plotting
from rrmstats.plotting.canvas import emptiest_corner

from .axes_content import named


def test_flagged_rows_differ_in_shape_fill_and_color(fits):
    ax = plotting.plot_weights(fits["hbk"]).axes[0]
    kept, marked = named(ax, "row"), named(ax, "flagged")
    assert kept.get_marker() != marked.get_marker()
    assert kept.get_markerfacecolor() == "none" != marked.get_markerfacecolor()
    assert to_rgb(kept.get_color()) != to_rgb(marked.get_color())


def test_many_rows_are_drawn_as_an_image():
    x = np.random.default_rng(0).standard_normal((6000, 2))
    few, many = (rrmstats.RRMCov(x[:n], 0.0).fit(steps=1) for n in (100, 6000))
    for results, image in ((few, False), (many, True)):
        ax = plotting.plot_distances(results).axes[0]
        assert named(ax, "row").get_rasterized() == image
        assert named(ax, "flagged").get_rasterized() == image
        assert (named(ax, "row").get_zorder() < named(ax, "cutoffs").get_zorder()) == image


@pytest.mark.parametrize("place", ["upper left", "upper right", "lower left", "lower right"])
def test_the_legend_stands_in_the_emptiest_corner(place):
    x, y = np.random.default_rng(0).random((2, 1000))
    far = (x > 0.5) == ("right" in place), (y > 0.5) == ("upper" in place)
    rest = ~(far[0] & far[1])
    assert emptiest_corner(x[rest], y[rest]) == place


def test_lines_on_many_rows_have_white_edges():
    x = np.random.default_rng(0).standard_normal((6000, 2))
    for count, edges in ((100, 0), (6000, 1)):
        ax = plotting.plot_ellipse(rrmstats.RRMCov(x[:count], 0.0).fit(steps=1)).axes[0]
        for name in ("robust", "classical"):
            assert len(named(ax, name).get_path_effects()) == edges
