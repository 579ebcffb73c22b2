"""Legends that cover neither rows nor their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.offers import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Distance of a legend from what it must not cover, in points.
CLEARANCE = 4.0


def points_per_pixel(ax: Axes) -> float:
    """Return how many points a pixel of the figure has."""
    figure: Any = ax.figure
    return float(72 / figure.get_dpi())


def legend_box(ax: Axes) -> Array | None:
    """Return left, lower, right and upper limits of a legend in points; None without one.

    The figure must have its layout.
    """
    legend: Any = ax.get_legend()
    if legend is None:
        return None
    return np.asarray(legend.get_window_extent().extents * points_per_pixel(ax))


def clear_legend(ax: Axes, boxes: Array) -> bool:
    """Keep a legend that fits and covers nothing, or put it above all; return whether it did that.

    Parameters
    ----------
    ax : matplotlib Axes
        With a figure whose layout is complete.
    boxes : ndarray, shape (p, 4)
        Left, lower, right and upper limits of what must not be covered, in points.
    """
    legend = legend_box(ax)
    if legend is None:
        return False
    wide, high = np.array(ax.bbox.size) * points_per_pixel(ax)
    fits = legend[2] - legend[0] <= wide
    if fits and not covers(legend + CLEARANCE * np.array([-1, -1, 1, 1]), boxes).any():
        left, low = legend[:2] - np.array(ax.bbox.extents[:2]) * points_per_pixel(ax)
        # The best place would move as soon as names are written.
        placed: Any = ax.get_legend()
        placed.set_loc((left / wide, low / high))
        return False
    flat = _flat_legend(ax, float(wide))
    room = min(flat[3] - flat[1] + 3 * CLEARANCE, 0.5 * high)
    leave_room_above(ax, room / high)
    return True


def covers(box: Array, boxes: Array) -> Array:
    """Return how much of each of several boxes, shape (p, 4), a box covers, shape (p,)."""
    wide = np.minimum(box[2], boxes[:, 2]) - np.maximum(box[0], boxes[:, 0])
    high = np.minimum(box[3], boxes[:, 3]) - np.maximum(box[1], boxes[:, 1])
    return np.asarray(np.maximum(wide, 0.0) * np.maximum(high, 0.0))


def _flat_legend(ax: Axes, wide: float) -> Array:
    """Replace a legend by one at the top with as many columns as fit, and return its box."""
    found: Array = np.zeros(4)
    for columns in range(len(ax.get_legend_handles_labels()[0]), 0, -1):
        ax.legend(loc="upper center", ncols=columns)
        box = legend_box(ax)
        found = found if box is None else box
        if found[2] - found[0] <= wide:
            break
    return found


def leave_room_above(ax: Axes, share: float) -> None:
    """Extend the vertical axis upward, so that this share of its height is above all there is."""
    scale: Any = ax.yaxis.get_transform()
    low, top = scale.transform(np.array(ax.get_ylim()))
    ax.set_ylim(top=float(scale.inverted().transform(low + (top - low) / (1 - share))))
