"""What pictures share: colors, axes, rows drawn as points, and legends."""

from __future__ import annotations

from collections.abc import Sized
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rrmstats.optional import require
from rrmstats.plotting.offers import Array, Flags, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style = dict[str, Any]

BLUE, VERMILLION, SKY, GRAY = "#0072B2", "#D55E00", "#56B4E9", "#666666"
KEPT: Style = {"marker": "o", "color": BLUE, "markerfacecolor": "none", "markersize": 5}
FLAGGED: Style = {"marker": "^", "color": VERMILLION, "markersize": 6}
ROBUST: Style = {"linestyle": "-", "color": BLUE}
CLASSICAL: Style = {"linestyle": "--", "color": VERMILLION}
CUTOFF: Style = {"linestyle": ":", "color": GRAY, "linewidth": 1.2}
REFERENCE: Style = {"color": GRAY, "linewidth": 0.8}
FROM_ZERO: Style = {"xlim": (0, None), "ylim": (0, None)}
# Colors of weights: the scale begins at 0, so that rows without weight are yellow in all pictures.
# So are rows that are surely bad.
WEIGHT_COLORS: Style = {"cmap": "cividis_r", "vmin": 0.0}
PROBABILITY_COLORS: Style = {"cmap": "cividis", "vmin": 0.0, "vmax": 1.0}
# More points than this are drawn as an image: in SVG and PDF each of them is a path otherwise.
MANY_ROWS = 5000
# Fraction of clean rows within the cutoffs that are drawn.
LEVEL = 0.975


class DrawnRows(NamedTuple):
    """Rows on axes, the worst of which are still to be named.

    Attributes
    ----------
    ax : matplotlib Axes
    results : results of any model
    x, y : ndarray, shape (n,)
        Positions of the rows.
    flagged : ndarray of bool, shape (n,)
    label : int
        How many of the flagged rows to name.
    """

    ax: Axes
    results: Results
    x: Array
    y: Array
    flagged: Flags
    label: int


def one_axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return the figure and axes to draw on: new ones if none are given."""
    require("matplotlib", "plot")
    if ax is not None:
        return ax.figure, ax
    fig = new_figure(size)
    return fig, fig.subplots()


def new_figure(size: tuple[float, float]) -> Any:
    """Return a figure that `plt.show` shows, and a notebook once."""
    kind = import_module("rrmstats.plotting.notebook_figure").NotebookFigure
    return import_module("matplotlib.pyplot").figure(
        figsize=size, layout="constrained", FigureClass=kind
    )


def axes_grid(
    fig: Figure | None, shape: tuple[int, int], size: tuple[float, float], **kwargs: Any
) -> tuple[Any, Any]:
    """Return the figure and its grid of axes: a new figure if none is given."""
    require("matplotlib", "plot")
    found: Any = new_figure(size) if fig is None else fig
    return found, found.subplots(*shape, **kwargs)


def lay_out(ax: Axes) -> None:
    """Lay out the figure of axes, so that sizes are known."""
    figure: Any = ax.figure
    figure.canvas.figure.draw_without_rendering()


def cutoff_level(level: float | None) -> float:
    """Return the level of the cutoffs to draw, the usual one for None."""
    return LEVEL if level is None else level


def flagged_rows(results: Results, level: float | None = None) -> Flags:
    """Return whether each row is an outlier, shape (n,); see `outliers` of the results."""
    return np.asarray(results.outliers(level), dtype=bool)


def row_colors(results: Results) -> tuple[Array, str, Style]:
    """Return the values that color rows, their name and their colors.

    They are the probabilities to be bad, or in one step the relative weights.
    """
    prob_bad = getattr(results, "prob_bad", None)
    if prob_bad is not None:
        return np.asarray(prob_bad), "prob_bad", PROBABILITY_COLORS
    relative = np.asarray(results.relative_weights)
    return relative, "weight * n", {**WEIGHT_COLORS, "vmax": float(relative.max())}


def draw_colored_rows(ax: Axes, results: Results, x: Array, y: Array, unit: str = "row") -> Flags:
    """Draw rows in the colors of `row_colors`, with a color bar, and return which are flagged.

    The legend shows their shapes without a color, since each row has its own.
    """
    flagged, many = flagged_rows(results), is_many(x)
    values, name, colors = row_colors(results)
    style: Style = {
        **colors,
        "s": 9 if many else 36,
        "edgecolors": GRAY,
        "linewidths": 0.1 if many else 0.7,  # edges of many rows would hide their colors
        "zorder": 3,
        "rasterized": many,
    }
    shape: Style = {"linestyle": "none", "mfc": "none", "mec": GRAY}
    points: Any = None
    names = (unit, f"flagged ({flagged.sum()})")
    for rows, marker, text in zip((~flagged, flagged), "o^", names, strict=True):
        if rows.any():
            points = ax.scatter(x[rows], y[rows], c=values[rows], marker=marker, **style)
            ax.plot([], [], marker=marker, label=text, **shape)
    ax.figure.colorbar(points, ax=ax, label=name)
    ax.margins(0.08)
    return flagged


def order_of_suspicion(results: Results) -> npt.NDArray[np.intp]:
    """Return the positions of the rows, the most likely bad first, or of smallest weight."""
    prob_bad = getattr(results, "prob_bad", None)
    if prob_bad is None:
        return results.order_by_weight()
    return np.lexsort((-np.asarray(results.losses), -np.asarray(prob_bad)))


def outline(rows: Sized) -> Style:
    """Return white edges for a line on so many rows that it would not be seen otherwise."""
    if not is_many(rows):
        return {}
    stroke = import_module("matplotlib.patheffects").withStroke
    return {"path_effects": [stroke(linewidth=3.5, foreground="white")]}


def is_many(rows: Sized) -> bool:
    """Return whether there are so many rows that they are drawn as an image."""
    return len(rows) > MANY_ROWS


def draw_rows(
    ax: Axes,
    results: Results,
    x: Array,
    y: Array,
    level: float | None = None,
    label: int = 5,
    unit: str = "row",
    **settings: Any,
) -> DrawnRows:
    """Draw the rows, the flagged ones as triangles.

    Parameters
    ----------
    ax : matplotlib Axes
    results : results of any model
    x, y : ndarray, shape (n,)
        Positions of the rows.
    level : float, optional
        Level at which rows are flagged.
    label : int, optional
        How many of the flagged rows are to be named.
    unit : str, optional
        What the legend calls them.
    **settings
        Passed on to ``ax.set``.

    Returns
    -------
    DrawnRows
        To be passed on to `name_rows`.
    """
    flagged = flagged_rows(results, level)
    style: Style = {"linestyle": "none", "rasterized": is_many(x)}
    if is_many(x):  # below the lines, which they would hide
        style |= {"markersize": 3, "zorder": 1.9}
    ax.plot(x[~flagged], y[~flagged], **{**KEPT, **style}, label=unit)
    if flagged.any():
        name = f"flagged ({flagged.sum()})"
        ax.plot(x[flagged], y[flagged], **{**FLAGGED, **style}, label=name)
    ax.margins(0.08)
    ax.set(**settings)
    add_legend(ax, x, y)
    return DrawnRows(ax, results, x, y, flagged, label)


def add_legend(ax: Axes, x: Array, y: Array) -> None:
    """Add a legend; with many rows in a corner, because the best place takes long to find."""
    if not is_many(x):
        ax.legend()
        return
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    corner: Any = emptiest_corner((x - left) / (right - left), (y - low) / (high - low))
    ax.legend(loc=corner)


def emptiest_corner(x: Array, y: Array) -> str:
    """Return the corner of the unit square with the fewest points."""
    sides = {"left": x < 0.4, "right": x > 0.6}
    heights = {"upper": y > 0.7, "lower": y < 0.3}
    counts = {f"{h} {s}": (heights[h] & sides[s]).sum() for h in heights for s in sides}
    return min(counts, key=lambda corner: counts[corner])
