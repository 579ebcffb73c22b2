"""Rows without weight, and rows that are surely bad, have the same color in every picture."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import rrmstats
from replication import EXPERIMENTS, simulate
from rrmstats import datasets

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


def test_experiments():
    experiment = EXPERIMENTS["figure1a"]
    table = simulate("figure1a")
    for rows in (table, table[table["x"] < 0]):  # with corrupted rows, and without
        figure = experiment.draw(rows, experiment.title, experiment.measure)
        np.testing.assert_allclose(figure.axes[0].collections[0].to_rgba(0.0), NO_WEIGHT)
