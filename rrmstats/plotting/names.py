"""Names of points, placed so that they stay clear of each other and of the points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rrmstats.plotting.canvas import GRAY, DrawnRows
from rrmstats.plotting.offers import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
Offset = tuple[int, int]

# All sizes and offsets are in points.
FONT_SIZE = 8
NEAR_PLACES = [(5, 4), (-5, 4), (5, -4), (-5, -4), (0, 5), (0, -5)]
FAR_PLACES = [(sx * r, sy * r) for r in (13, 21, 29) for sy in (1, -1) for sx in (1, -1, 0)]
# A name that is farther from its point than this is connected to it by a line.
NEAR = 6
MARKER_RADIUS = 4


def name_rows(*drawn: DrawnRows) -> None:
    """Write the names of the worst flagged rows.

    Parameters
    ----------
    *drawn : DrawnRows
        All rows drawn on one figure, whose layout must otherwise be complete.
    """
    figure: Any = drawn[0].ax.figure
    figure.canvas.figure.draw_without_rendering()
    for rows in drawn:
        _name_rows_of_axes(rows)


def _name_rows_of_axes(drawn: DrawnRows) -> None:
    ax: Any = drawn.ax
    x, y, names = drawn.x, drawn.y, drawn.results.row_names
    shown = drawn.flagged & np.isfinite(x) & np.isfinite(y)
    order = drawn.results.order_by_weight()
    rows = order[shown[order]][: max(drawn.label, 0)]
    in_points = 72 / ax.figure.get_dpi()
    markers = ax.transData.transform(np.c_[x[shown], y[shown]]) * in_points
    points = ax.transData.transform(np.c_[x[rows], y[rows]]) * in_points
    sizes = [(0.65 * FONT_SIZE * len(names[row]) + 1, 1.2 * FONT_SIZE) for row in rows]
    frame = ax.bbox.extents * in_points
    for row, place in zip(rows, free_places(points, sizes, markers, frame), strict=True):
        write_name(ax, (x[row], y[row]), names[row], place)


def write_name(
    ax: Axes, point: npt.ArrayLike, text: str, place: npt.ArrayLike, **kwargs: Any
) -> None:
    """Write a text beside a point.

    Parameters
    ----------
    ax : matplotlib Axes
    point : (float, float)
        In units of the data.
    text : str
    place : (float, float)
        Offset of the text from the point, in points.
    **kwargs
        Passed on to ``ax.annotate``.
    """
    right, up = np.asarray(place, dtype=float)
    if max(abs(right), abs(up)) > NEAR:
        kwargs["arrowprops"] = {"arrowstyle": "-", "color": GRAY, "linewidth": 0.5}
    at: Any = tuple(np.asarray(point, dtype=float))
    ax.annotate(
        text,
        at,
        xytext=(right, up),
        textcoords="offset points",
        ha={-1: "right", 0: "center", 1: "left"}[int(np.sign(right))],
        va="top" if up < 0 else "bottom",
        fontsize=FONT_SIZE,
        **kwargs,
    )


def free_places(
    points: Array, sizes: Sequence[tuple[float, float]], markers: Array, frame: Array
) -> list[Offset]:
    """Return a place for each name that is clear of others and visibly its point's own.

    Parameters
    ----------
    points : ndarray, shape (m, 2)
    sizes : sequence of (width, height)
        Sizes of the m names.
    markers : ndarray, shape (p, 2)
        Points that no name may cover.
    frame : ndarray, shape (4,)
        Left, lower, right and upper limits of the axes.

    Returns
    -------
    list of (int, int)
        Offsets of the nearest corner of each name from its point. A name for which no place is
        clear gets the first place.
    """
    r = MARKER_RADIUS
    taken = [(px - r, py - r, px + r, py + r) for px, py in markers]
    places: list[Offset] = []
    for point, size in zip(points, sizes, strict=True):
        boxes = {place: name_box(point, place, size) for place in NEAR_PLACES + FAR_PLACES}
        clear = [
            place
            for place, box in boxes.items()
            if inside(box, frame) and not any(overlap(box, other) for other in taken)
        ]
        own = [p for p in clear if p in FAR_PLACES or belongs(boxes[p], point, markers)]
        places.append([*own, *clear, NEAR_PLACES[0]][0])
        taken.append(boxes[places[-1]])
    return places


def name_box(point: Array, place: Offset, size: tuple[float, float]) -> Box:
    """Return left, lower, right and upper limits of a name at a place beside a point."""
    left = point[0] + place[0] - size[0] * (1 - np.sign(place[0])) / 2
    low = point[1] + place[1] - (size[1] if place[1] < 0 else 0)
    return left, low, left + size[0], low + size[1]


def inside(box: Box, frame: Array) -> bool:
    """Return whether a box lies within a frame."""
    left, low, right, high = frame
    return bool(left <= box[0] and low <= box[1] and box[2] <= right and box[3] <= high)


def overlap(a: Box, b: Box) -> bool:
    """Return whether two boxes overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def belongs(box: Box, point: Array, markers: Array) -> bool:
    """Return whether no marker is nearer to the middle of a box than its own point is."""
    middle = np.array([box[0] + box[2], box[1] + box[3]]) / 2
    nearest = np.linalg.norm(markers - middle, axis=1).min()
    return bool(np.linalg.norm(point - middle) <= nearest + 1e-9)
