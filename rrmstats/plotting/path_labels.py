"""Labels of lines: above the panel's lines in lanes, or at their right ends."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rrmstats.plotting.names import FONT_SIZE
from rrmstats.plotting.offers import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Heights and distances in points.
LANE = 1.45 * FONT_SIZE
GAP = 5.0
BESIDE = 3.0
MOST_LANES = 3


class Label(NamedTuple):
    """A text that belongs to a point of a line."""

    x: float
    y: float
    text: str
    color: str


def text_width(text: str) -> float:
    """Return about how wide a text is, in points."""
    return 0.6 * FONT_SIZE * len(text)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes, whose figure must have its layout."""
    figure: Any = ax.figure
    box: Any = ax.bbox
    unit = 72 / figure.get_dpi()
    return float(box.width * unit), float(box.height * unit)


def free_lanes(places: Array, widths: Sequence[float], most: int) -> list[int | None]:
    """Return a lane for each text, in which it overlaps no other; None where none is free.

    Parameters
    ----------
    places : ndarray, shape (p,)
        Middles of the texts.
    widths : sequence of float
    most : int
        Number of lanes.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.plotting.path_labels import free_lanes
    >>> free_lanes(np.array([10.0, 12.0, 40.0]), [20, 20, 20], 2)
    [0, 1, 0]
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(most)]
    lanes: list[int | None] = []
    for place, width in zip(places, widths, strict=True):
        left, right = place - width / 2 - GAP / 2, place + width / 2 + GAP / 2
        free = [
            lane
            for lane, spans in enumerate(taken)
            if all(right <= start or end <= left for start, end in spans)
        ]
        lanes.append(free[0] if free else None)
        if free:
            taken[free[0]].append((left, right))
    return lanes


def label_above(ax: Axes, labels: Sequence[Label]) -> None:
    """Write labels above all lines, each connected to its point.

    Labels for which there is no room are left out.

    Parameters
    ----------
    ax : matplotlib Axes
        With a figure whose layout must otherwise be complete.
    labels : sequence of Label
        The most important first.
    """
    wide, high = size_in_points(ax)
    left, right = ax.get_xlim()
    unit = wide / (right - left)
    widths = [text_width(label.text) for label in labels]
    # A text begins at its point, but does not leave the panel.
    middles = [
        min((label.x - left) * unit + BESIDE + width / 2, wide - width / 2)
        for label, width in zip(labels, widths, strict=True)
    ]
    lanes = free_lanes(np.array(middles), widths, MOST_LANES)
    used = 1 + max((lane for lane in lanes if lane is not None), default=-1)
    low, top = ax.get_ylim()
    room = min(used * LANE + GAP, 0.6 * high)
    ax.set_ylim(low, low + (top - low) * high / (high - room))
    step = (ax.get_ylim()[1] - low) / high
    for label, middle, lane in zip(labels, middles, lanes, strict=True):
        if lane is not None:
            y = top + (GAP / 2 + LANE * lane) * step
            _write_above(ax, label, left + middle / unit, y)


def _write_above(ax: Axes, label: Label, x: float, y: float) -> None:
    ax.plot([label.x, label.x], [label.y, y], color=label.color, linewidth=0.6, alpha=0.5)
    ax.text(
        x,
        y,
        label.text,
        color=label.color,
        fontsize=FONT_SIZE,
        ha="center",
        va="bottom",
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def label_at_ends(ax: Axes, ends: Array, texts: Sequence[str], colors: Sequence[str]) -> None:
    """Write labels to the right of axes, each in the middle of its lines' ends.

    Parameters
    ----------
    ax : matplotlib Axes
    ends : ndarray, shape (p,)
        Heights, in units of the data.
    texts, colors : sequence of str, length p
    """
    transform: Any = ax.get_yaxis_transform()
    style: dict[str, Any] = {"ha": "left", "va": "center", "fontsize": FONT_SIZE}
    for end, text, color in zip(ends, texts, colors, strict=True):
        ax.text(1.01, end, text, transform=transform, color=color, clip_on=False, **style)


def heights_in_points(ax: Axes, values: Array) -> Array:
    """Return where values are on the vertical axis, in points."""
    figure: Any = ax.figure
    places = ax.transData.transform(np.c_[np.full(len(values), ax.get_xlim()[0]), values])
    return np.asarray(places[:, 1] * 72 / figure.get_dpi())


def values_at_points(ax: Axes, heights: Array) -> Array:
    """Return the values at heights on the vertical axis, which are in points."""
    figure: Any = ax.figure
    pixels = np.asarray(heights) * figure.get_dpi() / 72
    return np.asarray(
        ax.transData.inverted().transform(np.c_[np.zeros(len(pixels)), pixels])[:, 1]
    )


def line_legend(fig: Any, entries: Sequence[tuple[str, dict[str, Any]]], title: str) -> None:
    """Add one legend above all panels.

    Parameters
    ----------
    fig : matplotlib Figure
    entries : sequence of (str, dict)
        Names of lines or bands and their styles.
    title : str
        Empty for none.
    """
    line = import_module("matplotlib.lines").Line2D
    handles = [line([], [], **style, label=name) for name, style in entries]
    fig.legend(
        handles=handles,
        loc="outside upper center",
        ncols=-(-len(handles) // (2 if len(handles) > 5 else 1)),
        title=title or None,
        frameon=False,
    )
