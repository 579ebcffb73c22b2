"""The explanation of the rows: histograms of good and bad ones, with their densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from rrmstats.plotting.arrays import (
    axis_places,
    axis_width,
    bin_edges,
    compressed_ticks,
    golden_jitter,
)
from rrmstats.plotting.canvas import (
    BLUE,
    SKY,
    VERMILLION,
    DrawnRows,
    Style,
    draw_rows,
    flagged_rows,
    one_axes,
)
from rrmstats.plotting.captions import inside_note, write_caption
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.legends import leave_room_above
from rrmstats.plotting.names import name_rows
from rrmstats.plotting.offers import Array, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD: Style = {"color": BLUE, "linewidth": 1.8}
BAD: Style = {"color": VERMILLION, "linewidth": 1.8, "linestyle": "--"}
SUM: Style = {"color": "black", "linewidth": 0.9}
# Points of a density.
CURVE = 400
# Probabilities nearer to 0 or 1 are drawn there.
NEAREST = 1e-4
PROBABILITIES = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
# How far densities go on beyond the histogram, relative to its length.
BEYOND = 0.05
# Share of the height of a panel for its legend.
LEGEND_ROOM = 0.28


def plot_explanation(results: Results, ax: Axes | None = None, label: int = 5) -> Figure:
    """Plot how the second step explains the rows.

    A histogram of standardized residuals or distances, in which flagged rows have their own
    color, with the densities of good and of bad rows, each times its share, and their sum. Of
    models whose explanation has no simple density, such as those of counts, the histogram alone.
    Labels of 0 and 1 are drawn by their predicted probability, the flagged ones as triangles.

    Where rows are very far out the axis is compressed away from zero, in such a way that areas
    remain shares.

    Parameters
    ----------
    results : results of two steps, of any model that explains its rows
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged labels to label by their index.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_explanation
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> fig = plot_explanation(rrmstats.ols("log_light ~ log_te", stars).fit())
    >>> fig.axes[0].get_xlabel()
    'standardized residual'
    """
    picture = checked_picture("plot_explanation", results)
    if not is_explained(results):
        raise ValueError(
            "plot_explanation needs an explanation of the rows: a second step, fit(steps=2), of a "
            "model that has one, with eps_bar > 0 and noise"
        )
    fig, ax = one_axes(ax, picture.size)
    drawn = draw_explanation(ax, results, None, label)
    write_caption(ax, results.explanation.sentence, inside_note(results))
    name_rows(*drawn)
    return fig


def is_explained(results: Results) -> bool:
    """Tell whether the rows have an explanation that can be drawn."""
    if getattr(results, "explanation", None) is None or results.eps_bar == 0:
        return False
    return has_labels(results) or bool(np.isfinite(results.explained_distances().values).all())


def has_labels(results: Any) -> bool:
    """Tell whether the responses are labels 0 and 1."""
    if "pred_table" in dir(results):
        return True
    family = type(getattr(results.model, "family", None)).__name__
    return family == "Binomial" and bool(np.isin(results.model.endog, (0, 1)).all())


def draw_explanation(
    ax: Axes, results: Results, level: float | None, label: int
) -> list[DrawnRows]:
    """Draw the explanation, and return the rows that are still to be named."""
    if has_labels(results) and getattr(results, "group_view", None) is None:
        return [_draw_labels(ax, results, level, label)]
    _draw_histogram(ax, results, level)
    return []


def _draw_histogram(ax: Axes, results: Results, level: float | None) -> None:
    """Draw residuals or distances of good and bad rows, with their densities."""
    shown = results.explained_distances()
    groups = getattr(results, "group_view", None)
    values, counts = np.asarray(shown.values), results.model.freq_weights
    if groups is not None or counts is None:
        counts = np.ones(len(values))
    flagged = flagged_rows(results if groups is None else groups, level)
    width = axis_width(values[~flagged] if (~flagged).any() else values, values)
    places = axis_places(values, width)
    edges = bin_edges(places, flagged)
    heights = np.zeros(len(edges) - 1)
    unit = counts.sum() * np.diff(edges)
    for rows, color, name in ((~flagged, SKY, "not flagged"), (flagged, VERMILLION, "flagged")):
        if rows.any():
            more = np.histogram(places[rows], edges, weights=counts[rows])[0] / unit
            ends = axis_places(edges, width, inverse=True)
            style: Style = {"color": color, "alpha": 0.45, "linewidth": 0}
            name = f"{name} ({rows.sum():,})"
            ax.stairs(heights + more, ends, baseline=heights, fill=True, label=name, **style)
            heights = heights + more
    if shown.densities is not None:
        _draw_densities(ax, shown.densities, edges, width)
    if np.isfinite(width):
        ax.set_xscale("asinh", linear_width=width)
        ticks = compressed_ticks(*ax.get_xlim(), width)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    ax.set(xlabel=shown.name, ylabel="density", ylim=(0, None))
    ax.legend(loc="upper center", ncols=2)
    leave_room_above(ax, LEGEND_ROOM)


def _draw_densities(ax: Axes, densities: Any, edges: Array, width: float) -> None:
    """Draw the densities of good and of bad rows, and their sum, a little beyond the bins."""
    beyond = BEYOND * (edges[-1] - edges[0])
    low = edges[0] - beyond if edges[0] < 0 else max(edges[0] - beyond, 0.0)
    along = np.linspace(low, edges[-1] + beyond, CURVE)
    at = axis_places(along, width, inverse=True)
    stretch = np.sqrt(1 + (at / width) ** 2)  # of the axis: areas remain shares
    good, bad = (stretch * each for each in densities(at))
    ax.plot(at, good, **GOOD, label="density of good rows")
    if bad.any():
        ax.plot(at, bad, **BAD, label="density of bad rows")
        ax.plot(at, good + bad, **SUM, label="their sum")


def _draw_labels(ax: Axes, results: Any, level: float | None, label: int) -> DrawnRows:
    """Draw labels by the log odds of their prediction, those of a kind near one height."""
    labels = np.asarray(results.model.endog, dtype=float)
    x = logit(np.clip(np.asarray(results.predict(), dtype=float), NEAREST, 1 - NEAREST))
    y = labels + 0.5 * golden_jitter(len(labels))
    settings: dict[str, Any] = {"xlabel": "predicted probability of 1", "ylim": (-0.4, 1.4)}
    drawn = draw_rows(ax, results, x, y, level, label, **settings)
    ax.set_yticks([0, 1], ["labeled 0", "labeled 1"])
    shown = [p for p in PROBABILITIES if x.min() <= logit(p) <= x.max()]
    ax.set_xticks([float(logit(p)) for p in shown], [f"{p:g}" for p in shown])
    return drawn
