"""Legends cover neither rows nor what is written on a picture."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

import rrmstats
from rrmstats import datasets, plotting

from .axes_content import overlap, written_boxes


def crowd(label="{}"):
    """Return a regression whose rows fill the picture, with outliers in every corner."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, (150, 2)), columns=["x", "y"])
    data.iloc[:8] = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]] * 2) * [1, 1.5]
    data["y"] *= np.where(np.arange(150) < 8, 2, 0.7)
    data.index = [label.format(i) for i in range(150)]
    return data


def long_names(data):
    return data.set_axis([f"observation number {i}" for i in range(len(data))])


def covered(ax):
    """Return what a legend covers: texts, and points of rows."""
    found = written_boxes(ax)  # lays out the figure
    legend = ax.get_legend().get_window_extent()
    texts = [
        text.get_text()
        for text, box in zip(ax.texts, found, strict=True)
        if overlap(box.extents, legend.extents)
    ]
    drawn = [line.get_xydata() for line in ax.lines if line.get_marker() not in ("None", None)]
    drawn += [part.get_offsets() for part in ax.collections if isinstance(part, PathCollection)]
    points = ax.transData.transform(np.vstack(drawn))
    return texts, sum(legend.contains(*point) for point in points)


HBK = datasets.hbk.load_pandas().data
CASES = {
    "fit": lambda: plotting.plot_fit(rrmstats.ols("y ~ x", crowd(), 0.1).fit(steps=1)),
    "fit, long": lambda: plotting.plot_fit(
        rrmstats.ols("y ~ x", crowd("row of the table number {}"), 0.1).fit(steps=1), label=8
    ),
    "losses, long": lambda: plotting.plot_weights(
        rrmstats.ols("y ~ x1 + x2 + x3", long_names(HBK), 0.2).fit(steps=1),
        against="losses",
        label=10,
    ),
    "distances, long": lambda: plotting.plot_distances(
        rrmstats.RRMCov(long_names(HBK), 0.2).fit(steps=1), label=14
    ),
    "ellipse": lambda: plotting.plot_ellipse(rrmstats.RRMCov(crowd(), 0.1).fit(steps=1), label=8),
    "biplot": lambda: plotting.plot_biplot(
        rrmstats.RRMPCA(crowd().assign(z=crowd()["x"] ** 2), 2, 0.1).fit(steps=1), label=8
    ),
    "outlier map": lambda: plotting.plot_outlier_map(
        rrmstats.RRMPCA(long_names(HBK), 2, 0.2).fit(steps=1), label=15
    ),
    "scree": lambda: plotting.plot_scree(
        rrmstats.RRMPCA(np.random.default_rng(0).standard_normal((80, 9)), 8, 0.1).fit(steps=1)
    ),
    "trace": lambda: plotting.plot_trace(rrmstats.RRMCov(HBK, 0.2).fit()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_legend_covers_nothing(name):
    with_legend = [ax for ax in CASES[name]().axes if ax.get_legend() is not None]
    assert with_legend
    for ax in with_legend:
        assert covered(ax) == ([], 0)


def test_many_rows_have_their_legend_above():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, (6000, 2)), columns=["x", "y"])
    ax = plotting.plot_fit(rrmstats.ols("y ~ x", data, 0.0).fit(steps=1)).axes[0]
    assert covered(ax) == ([], 0)


def test_a_legend_is_not_wider_than_its_panel(fits):
    fig = Figure((4.0, 3.0), layout="constrained")
    ax = fig.subplots()
    plotting.plot_weights(fits["hbk"], ax=ax)
    fig.draw_without_rendering()
    assert ax.get_legend().get_window_extent().width <= ax.bbox.width
    assert covered(ax) == ([], 0)
