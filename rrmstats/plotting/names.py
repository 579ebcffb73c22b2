"""Names of points, placed so that they stay clear of each other, the points and the legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rrmstats.plotting.arrays import plain
from rrmstats.plotting.canvas import GRAY, DrawnRows, Style, is_many, lay_out, order_of_suspicion
from rrmstats.plotting.legends import clear_legend, covers, legend_box, points_per_pixel
from rrmstats.plotting.offers import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
Offset = tuple[int, int]

# All sizes and offsets are in points.
FONT_SIZE = 8
NEAR_PLACES = [(5, 4), (-5, 4), (5, -4), (-5, -4), (0, 5), (0, -5)]
FAR_PLACES = [
    (sx * min(r, 29), sy * r)
    for r in (13, 21, 29, 41, 53, 65, 77)
    for sy in (1, -1)
    for sx in (1, -1, 0)
]
# A name that is farther from its point than this is connected to it by a line.
NEAR = 6
MARKER_RADIUS = 4
# A longer name loses letters.
LONGEST_NAME = 28
# What a place costs that is not clear; a legend would hide the name, others only touch it.
UNDER_LEGEND, OUTSIDE, ON_NAME, ON_MARKER, FOREIGN = 1e6, 1e5, 1e4, 1e3, 1e2
# To cover a row that is not flagged costs as much as to be 40 points away, or on the wrong side.
ON_ROW, ON_SIDE, AWAY = 2.0, 2.0, 0.05
NO_BOXES = np.empty((0, 4))
# What is under a name shines through only a little.
GROUND: Style = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.2}


def name_rows(*drawn: DrawnRows) -> None:
    """Write the names of the worst flagged rows.

    Parameters
    ----------
    *drawn : DrawnRows
        All rows drawn on one figure, whose layout must otherwise be complete.
    """
    if drawn:
        settle(*drawn)
    for rows in drawn:
        name_settled_rows(rows)


def settle(*drawn: DrawnRows) -> None:
    """Lay out a figure, with legends that cover no row."""
    lay_out(drawn[0].ax)
    moved = [clear_legend(rows.ax, marker_boxes(rows.ax, rows.x, rows.y)) for rows in drawn]
    if any(moved):
        lay_out(drawn[0].ax)


def name_settled_rows(drawn: DrawnRows, taken: Array = NO_BOXES) -> None:
    """Write the names of the worst flagged rows on axes that have their layout.

    Parameters
    ----------
    drawn : DrawnRows
    taken : ndarray, shape (p, 4), optional
        Boxes that no name should cover.
    """
    x, y = drawn.x, drawn.y
    shown = drawn.flagged & np.isfinite(x) & np.isfinite(y)
    order = order_of_suspicion(drawn.results)
    rows = order[shown[order]][: max(drawn.label, 0)]
    names = short_names(drawn.results.row_names)
    write_names(
        drawn.ax,
        np.c_[x[rows], y[rows]],
        [names[row] for row in rows],
        marker_boxes(drawn.ax, x[shown], y[shown]),
        taken,
        others=other_rows(drawn),
    )


def other_rows(drawn: DrawnRows) -> Array:
    """Return the boxes of rows that are not flagged, shape (p, 4); none if they are everywhere."""
    if is_many(drawn.x):
        return NO_BOXES
    return marker_boxes(drawn.ax, drawn.x[~drawn.flagged], drawn.y[~drawn.flagged])


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Return names, long ones with fewer letters: without their middles, if they differ elsewhere.

    They are for matplotlib, which would take what is between two `$` for a formula.

    Examples
    --------
    >>> from rrmstats.plotting.names import short_names
    >>> short_names(["ward 12", "the second ward of the third building"], 20)
    ['ward 12', 'the second… building']
    >>> short_names([f"the hospital number {i} of the county" for i in (1, 2)], 24)
    ['the hospital number 1…ty', 'the hospital number 2…ty']
    """
    if max(map(len, names), default=0) <= longest:
        return [plain(name) for name in names]
    kept = longest - 1
    tried = [
        [cut_name(name, head, kept - head) for name in names]
        for head in (kept - kept // 2, kept - kept // 8, kept // 8, kept, 0)
    ]
    return [plain(name) for name in max(tried, key=lambda short: len(set(short)))]


def cut_name(name: str, head: int, tail: int) -> str:
    """Return the first and last letters of a name, so many of each; all if it has no more."""
    if len(name) <= head + tail + 1:
        return name
    return f"{name[:head]}…{name[len(name) - tail :]}"


def marker_boxes(ax: Axes, x: Array, y: Array) -> Array:
    """Return the boxes of points that are finite, shape (p, 4), in points."""
    finite = np.isfinite(x) & np.isfinite(y)
    middle = ax.transData.transform(np.c_[x[finite], y[finite]]) * points_per_pixel(ax)
    return np.hstack([middle - MARKER_RADIUS, middle + MARKER_RADIUS])


def write_names(
    ax: Axes,
    points: Array,
    names: Sequence[str],
    markers: Array,
    taken: Array = NO_BOXES,
    others: Array = NO_BOXES,
    outward: bool = False,
    **kwargs: Any,
) -> Array:
    """Write names beside points, and return their boxes, shape (m, 4), in points.

    Parameters
    ----------
    ax : matplotlib Axes
        With a figure whose layout is complete.
    points : ndarray, shape (m, 2)
        In units of the data.
    names : sequence of str
    markers : ndarray, shape (p, 4)
        Boxes of points that no name should cover, in points.
    taken : ndarray, shape (q, 4), optional
        Boxes of other names.
    others : ndarray, shape (r, 4), optional
        Boxes that names cover only if all places nearby do.
    outward : bool, optional
        Whether a name should be on the side of its point that is away from the origin.
    **kwargs
        Passed on to ``ax.annotate``.
    """
    unit = points_per_pixel(ax)
    at = ax.transData.transform(points.reshape(-1, 2)) * unit
    legend = legend_box(ax)
    sizes = [text_size(ax, name, **kwargs) for name in names]
    places = free_places(
        at,
        sizes,
        markers,
        np.array(ax.bbox.extents) * unit,
        taken,
        NO_BOXES if legend is None else legend[None],
        others,
        np.sign(points) if outward else None,
    )
    for point, name, place in zip(points, names, places, strict=True):
        write_name(ax, point, name, place, **kwargs)
    boxes = [name_box(*which) for which in zip(at, places, sizes, strict=True)]
    return np.array(boxes).reshape(-1, 4)


def text_size(ax: Axes, text: str, **kwargs: Any) -> tuple[float, float]:
    """Return the width and height of a name, in points."""
    written = ax.text(0.0, 0.0, text, fontsize=FONT_SIZE, **kwargs)
    width, height = np.array(written.get_window_extent().size) * points_per_pixel(ax)
    written.remove()
    return float(width) + 1, float(height) + 1


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
    written = ax.annotate(
        text,
        at,
        xytext=(right, up),
        textcoords="offset points",
        ha={-1: "right", 0: "center", 1: "left"}[int(np.sign(right))],
        va="top" if up < 0 else "bottom",
        fontsize=FONT_SIZE,
        bbox=GROUND,
        zorder=5,
        **kwargs,
    )
    # Its place was chosen for the layout that the figure has.
    written.set_in_layout(False)


def free_places(
    points: Array,
    sizes: Sequence[tuple[float, float]],
    markers: Array,
    frame: Array,
    taken: Array = NO_BOXES,
    legend: Array = NO_BOXES,
    others: Array = NO_BOXES,
    sides: Array | None = None,
) -> list[Offset]:
    """Return a place for each name that is clear of others and visibly its point's own.

    Parameters
    ----------
    points : ndarray, shape (m, 2)
    sizes : sequence of (width, height)
        Sizes of the m names.
    markers : ndarray, shape (p, 4)
        Boxes of points that no name should cover.
    frame : ndarray, shape (4,)
        Left, lower, right and upper limits of the axes.
    taken, legend, others : ndarray, shape (q, 4), optional
        Boxes of other names, of the legend, and of what a name may cover.
    sides : ndarray, shape (m, 2), optional
        Signs of the offsets that are preferred.

    Returns
    -------
    list of (int, int)
        Offsets of the nearest corner of each name from its point. A name for which no place is
        clear gets the one where it covers least.
    """
    chosen: list[Offset] = []
    for number, (point, size) in enumerate(zip(points, sizes, strict=True)):
        tried = NEAR_PLACES + FAR_PLACES
        side = np.zeros(2) if sides is None else sides[number]
        boxes = [name_box(point, place, size) for place in tried]
        costs = [
            UNDER_LEGEND * covered_share(box, legend)
            + OUTSIDE * (not inside(box, frame))
            + ON_NAME * covered_share(box, taken)
            + ON_MARKER * covered_share(box, markers)
            + FOREIGN * (place in NEAR_PLACES and not belongs(box, point, markers))
            + ON_ROW * covered_share(box, others)
            - ON_SIDE * float(np.sign(place) @ side)
            + AWAY * float(np.abs(place).max())
            for place, box in zip(tried, boxes, strict=True)
        ]
        best = int(np.argmin(costs))
        chosen.append(tried[best])
        taken = np.vstack([taken, boxes[best]])
    return chosen


def covered_share(box: Box, boxes: Array) -> float:
    """Return how much of a name lies on boxes: 0 if none of it, and at least 1 otherwise."""
    covered = float(covers(np.array(box), boxes).sum())
    return 1 + covered / ((box[2] - box[0]) * (box[3] - box[1])) if covered else 0.0


def name_box(point: Array, place: Offset, size: tuple[float, float]) -> Box:
    """Return left, lower, right and upper limits of a name at a place beside a point."""
    left = point[0] + place[0] - size[0] * (1 - np.sign(place[0])) / 2
    low = point[1] + place[1] - (size[1] if place[1] < 0 else 0)
    return left, low, left + size[0], low + size[1]


def inside(box: Box, frame: Array) -> bool:
    """Return whether a box lies within a frame."""
    left, low, right, high = frame
    return bool(left <= box[0] and low <= box[1] and box[2] <= right and box[3] <= high)


def belongs(box: Box, point: Array, markers: Array) -> bool:
    """Return whether no marker is nearer to the middle of a box than its own point is."""
    middle = np.array([box[0] + box[2], box[1] + box[3]]) / 2
    centers = (markers[:, :2] + markers[:, 2:]) / 2
    nearest = np.linalg.norm(centers - middle, axis=1).min(initial=np.inf)
    return bool(np.linalg.norm(point - middle) <= nearest + 1e-9)
