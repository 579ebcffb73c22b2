"""What pictures share: colors, axes, rows drawn as points, their names, legends and captions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import product
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from rrmstats.optional import require
from rrmstats.plotting.catalog import Array, Axes, Figure, Flags, Results, Rows

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
# Size of letters of captions in points.
CAPTION_SIZE = 8.5
FONT_SIZE = 8
PLAIN_LEGEND: Style = {"ncols": 2, "frameon": False, "fontsize": FONT_SIZE}
# Offsets of the nearest corner of a name from its point, in points.
FARTHER = product((13, 21, 29, 41, 53, 65, 77), (1, -1), (1, -1, 0))
PLACES = np.array(
    [
        *((5, 4), (-5, 4), (5, -4), (-5, -4), (0, 5), (0, -5)),
        *((right * min(away, 29), up * away) for away, up, right in FARTHER),
    ]
)
# A name that is farther from its point than this is connected to it by a line.
NEAR = 6
# What is under a name shines through only a little.
GROUND: Style = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.4}
NO_POINTS = np.empty((0, 2))


class DrawnRows(NamedTuple):
    """Rows on axes, the worst of which are still to be named.

    Attributes
    ----------
    ax : matplotlib Axes
    results : results of any model
    points : ndarray, shape (n, 2)
        Positions of the rows.
    flagged : ndarray of bool, shape (n,)
    label : int
        How many of the flagged rows to name.
    """

    ax: Axes
    results: Results
    points: Array
    flagged: Flags
    label: int


def new_figure(size: tuple[float, float]) -> Any:
    """Return a figure that `plt.show` shows, and a notebook once."""
    require("matplotlib", "plot")
    kind = import_module("rrmstats.plotting.notebook_figure").NotebookFigure
    return import_module("matplotlib.pyplot").figure(
        figsize=size, layout="constrained", FigureClass=kind
    )


def one_axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return the figure and axes to draw on: new ones if none are given."""
    if ax is None:
        ax = new_figure(size).subplots()
    return ax.figure, ax


def lay_out(ax: Axes) -> None:
    """Lay out the figure of axes, so that sizes are known."""
    ax.figure.canvas.figure.draw_without_rendering()


def pixels_per_point(ax: Axes) -> float:
    """Return how many pixels a point has, of which an inch has 72."""
    return float(ax.figure.get_dpi()) / 72


def weighed(results: Results) -> tuple[Results, str]:
    """Return what has the weights, the rows of results or their groups, and what it is called."""
    groups = getattr(results, "group_view", None)
    return (results, "row") if groups is None else (groups, "group")


def plain(name: str) -> str:
    """Return a name from the data that matplotlib writes as it is: no `$` begins a formula."""
    return name.replace("$", r"\$")


def cutoff_level(level: float | None) -> float:
    """Return the level of the cutoffs to draw, the usual one for None."""
    return LEVEL if level is None else level


def flagged_rows(results: Results, level: float | None = None) -> Flags:
    """Return whether each row is an outlier, shape (n,); see `outliers` of the results."""
    return np.asarray(results.outliers(level), dtype=bool)


def order_of_suspicion(results: Results) -> Rows:
    """Return the positions of the rows, the most likely bad first, or of smallest weight."""
    prob_bad = getattr(results, "prob_bad", None)
    if prob_bad is None:
        return np.asarray(results.order_by_weight())
    return np.lexsort((-np.asarray(results.losses), -np.asarray(prob_bad)))


def row_colors(results: Results) -> tuple[Array, str, Style]:
    """Return the values that color rows, their name and their colors.

    They are the probabilities to be bad, or in one step the relative weights.
    """
    prob_bad = getattr(results, "prob_bad", None)
    if prob_bad is not None:
        return np.asarray(prob_bad), "prob_bad", PROBABILITY_COLORS
    relative = np.asarray(results.relative_weights)
    return relative, "weight * n", {**WEIGHT_COLORS, "vmax": float(relative.max())}


def draw_rows(
    ax: Axes,
    results: Results,
    x: Array,
    y: Array,
    level: float | None = None,
    label: int = 5,
    unit: str = "row",
    colored: bool = False,
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
    colored : bool, optional
        Whether each row has a color by `row_colors`, with a color bar; the legend then shows
        their shapes without a color.
    **settings
        Passed on to ``ax.set``.

    Returns
    -------
    DrawnRows
        To be passed on to `name_rows`.
    """
    flagged, many = flagged_rows(results, level), len(x) > MANY_ROWS
    values, name, colors = row_colors(results) if colored else (x, "", {})
    points: Any = None
    for rows, shape, text in (
        (~flagged, KEPT, unit),
        (flagged, FLAGGED, f"flagged ({flagged.sum():,})"),
    ):
        if not rows.any():
            continue
        style: Style = {**shape, "linestyle": "none", "rasterized": many, "label": text}
        if colored:  # edges of many rows would hide their colors
            ax.plot([], [], **{**style, "color": GRAY, "markerfacecolor": "none"})
            dots: Style = {"s": 9, "linewidths": 0.1} if many else {"s": 36, "linewidths": 0.7}
            dots |= {"edgecolors": GRAY, "zorder": 3, "rasterized": many, **colors}
            points = ax.scatter(x[rows], y[rows], c=values[rows], marker=shape["marker"], **dots)
            continue
        if many:  # below the lines, which they would hide
            style |= {"markersize": 3, "zorder": 1.9}
        ax.plot(x[rows], y[rows], **style)
    if colored:
        ax.figure.colorbar(points, ax=ax, label=name)
    ax.margins(0.08)
    ax.set(**settings)
    return DrawnRows(ax, results, np.c_[x, y], flagged, label)


def outline(count: int) -> Style:
    """Return white edges for a line on so many rows that it would not be seen otherwise."""
    if count <= MANY_ROWS:
        return {}
    stroke = import_module("matplotlib.patheffects").withStroke
    return {"path_effects": [stroke(linewidth=3.5, foreground="white")]}


def legend_below(ax: Axes, **handles: Any) -> None:
    """Add a legend in two columns below the label of the horizontal axis, where it covers nothing.

    Parameters
    ----------
    ax : matplotlib Axes
    **handles
        Passed on to ``ax.legend``.
    """
    below: Style = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 4.5}
    ax.legend(**below, **PLAIN_LEGEND, **handles)


def name_rows(*drawn: DrawnRows) -> None:
    """Add legends, and write the names of the worst flagged rows.

    Parameters
    ----------
    *drawn : DrawnRows
        All rows drawn on one figure, whose layout must otherwise be complete.
    """
    for rows in drawn:
        legend_below(rows.ax)
    lay_out(drawn[0].ax)
    for rows in drawn:
        if len(rows.points):
            name_settled_rows(rows)


def name_settled_rows(
    drawn: DrawnRows, avoid: Array = NO_POINTS, taken: Sequence[Array] = ()
) -> None:
    """Write the names of the worst flagged rows on axes that have their layout.

    Parameters
    ----------
    drawn : DrawnRows
    avoid : ndarray, shape (p, 2), optional
        Further points that no name should cover.
    taken : sequence of ndarray, shape (4,), optional
        Boxes that no name should cover, in pixels.
    """
    points, finite = drawn.points, np.isfinite(drawn.points).all(axis=1)
    order, names = order_of_suspicion(drawn.results), short_names(drawn.results.row_names)
    rows = order[(drawn.flagged & finite)[order]][: max(drawn.label, 0)]
    markers, others = points[drawn.flagged & finite], points[~drawn.flagged & finite]
    markers, texts = np.vstack([markers, avoid]), [names[row] for row in rows]
    write_names(drawn.ax, points[rows], texts, markers, others, taken)


def short_names(names: Sequence[str], longest: int = 28) -> list[str]:
    """Return names, long ones with fewer letters: without their middles, if they differ elsewhere.

    They are for matplotlib, which would take what is between two `$` for a formula.

    Examples
    --------
    >>> from rrmstats.plotting.canvas import short_names
    >>> short_names(["ward 12", "the second ward of the third building"], 20)
    ['ward 12', 'the second… building']
    >>> short_names([f"the hospital number {i} of the county" for i in (1, 2)], 24)
    ['the hospital number 1…ty', 'the hospital number 2…ty']
    """
    kept = longest - 1
    tried = [
        [n if len(n) <= longest else f"{n[:head]}…{n[len(n) - kept + head :]}" for n in names]
        for head in (kept - kept // 2, kept - kept // 8, kept // 8, kept, 0)
    ]
    return [plain(name) for name in max(tried, key=lambda short: len(set(short)))]


def write_names(
    ax: Axes,
    points: Array,
    names: Sequence[str],
    markers: Array,
    others: Array = NO_POINTS,
    taken: Sequence[Array] = (),
    sides: Array | None = None,
    **kwargs: Any,
) -> list[Array]:
    """Write names beside points, and return their boxes.

    Parameters
    ----------
    ax : matplotlib Axes
        With a figure whose layout is complete.
    points : ndarray, shape (m, 2)
        In units of the data.
    names : sequence of str
    markers, others : ndarray, shape (p, 2)
        Points that no name should cover, and points that it covers only if all places nearby do.
    taken : sequence of ndarray, shape (4,), optional
        Left, lower, right and upper limits, in pixels, of boxes that no name should cover, besides
        those of other names.
    sides : ndarray, shape (m, 2), optional
        Signs of the offsets that are preferred.
    **kwargs
        Passed on to ``ax.annotate``.
    """
    unit, boxes, kwargs = pixels_per_point(ax), [*taken], {"fontsize": FONT_SIZE, **kwargs}
    marked, rest = (  # thousands of points cover a place as some of them do
        ax.transData.transform(some[:: 1 + len(some) // 2000]) for some in (markers, others)
    )
    around = 3.0 * unit  # half the size of a marker
    for number, (point, name) in enumerate(zip(points, names, strict=True)):
        written = ax.text(0.0, 0.0, name, **kwargs)
        size = np.array(written.get_window_extent().size) + 1
        written.remove()
        at = ax.transData.transform(point)
        # How much of a name is left of its place, and below it.
        back = np.c_[(1 - np.sign(PLACES[:, 0])) / 2, PLACES[:, 1] < 0]
        low, away = at + PLACES * unit - size * back, np.abs(PLACES).max(axis=1)
        tried = np.hstack([low, low + size])
        # Nearer to another point than to its own, without a line, a name would mislead.
        own, nearest = (
            np.linalg.norm(low[:, None] + size / 2 - some, axis=2).min(axis=1, initial=np.inf)
            for some in (at[None], marked)
        )
        foreign = (away <= NEAR) & (nearest < own - 1)
        # Worst is a place outside the axes, then on other names, on markers, on the wrong side, on
        # other rows, and far away.
        costs = (
            1e5 * ((low < ax.bbox.p0) | (low + size > ax.bbox.p1)).any(axis=1)
            + 1e4 * covered(tried, np.array(boxes).reshape(-1, 4))
            + 1e2 * (foreign + covered(tried, np.tile(marked, 2), around))
            + 2.0 * covered(tried, np.tile(rest, 2), around)
            - 4.0 * np.sign(PLACES) @ (np.zeros(2) if sides is None else sides[number])
            + 0.05 * away
        )
        best = int(np.argmin(costs))
        boxes.append(tried[best])
        right, up = PLACES[best]
        style: Style = {"xytext": (right, up), "textcoords": "offset points", "zorder": 5}
        style["ha"] = {-1: "right", 0: "center", 1: "left"}[int(np.sign(right))]
        style["va"] = "top" if up < 0 else "bottom"
        if away[best] > NEAR:
            style["arrowprops"] = {"arrowstyle": "-", "color": GRAY, "linewidth": 0.5}
        annotation = ax.annotate(name, tuple(point), bbox=GROUND, **style, **kwargs)
        # Its place was chosen for the layout that the figure has.
        annotation.set_in_layout(False)
    return boxes[len(taken) :]


def covered(boxes: Array, others: Array, margin: float = 0.0) -> Array:
    """Return how many of other boxes, shape (p, 4), each of some boxes, shape (m, 4), touches."""
    beyond = boxes[:, None, :2] - margin < others[:, 2:]
    before = others[:, :2] < boxes[:, None, 2:] + margin
    return (beyond & before).all(axis=2).sum(axis=1)


def wrapped(text: str, points: float) -> str:
    """Return a text in lines of a given width; letters are about half as wide as high."""
    return fill(text, max(int(points / (0.52 * CAPTION_SIZE)), 20))


def write_caption(ax: Axes, *sentences: str) -> None:
    """Write sentences above axes, at the left; empty ones are left out."""
    wide = ax.bbox.width / pixels_per_point(ax)
    lines = [wrapped(text, wide) for text in sentences if text]
    ax.set_title("\n".join(lines), loc="left", fontsize=CAPTION_SIZE)


def write_caption_below(fig: Figure, text: str) -> None:
    """Write a text below all panels of a figure, at the left; nothing if it is empty."""
    if text:
        lines = wrapped(text, fig.bbox.width * 72 / fig.dpi)
        fig.supxlabel(lines, x=0.01, ha="left", fontsize=CAPTION_SIZE)


def take_captions(fig: Figure) -> str:
    """Remove the captions of a figure and its axes, and return them as one text."""
    found = [*(ax.get_title(loc="left") for ax in fig.axes), fig.get_supxlabel()]
    for ax in fig.axes:
        ax.set_title("", loc="left")
    fig.supxlabel("")
    return " ".join(" ".join(text.split()) for text in found if text)


def flags_note(results: Results, level: float | None = None) -> str:
    """Return why flagged rows have large weights, for pictures that do not show weights.

    The flags of a second step need no reason: they go by probabilities.
    """
    by_probability = level is None and getattr(results, "prob_bad", None) is not None
    return "" if by_probability else large_weights_note(results, level)


def large_weights_note(results: Results, level: float | None = None, unit: str = "row") -> str:
    """Return why flagged rows have large weights; an empty text if none has.

    A weight says how much a row counts in the fit, a flag that it is unusual. Rows far out in the
    subspace of principal components are both.
    """
    relative, at = np.asarray(results.relative_weights), cutoff_level(level)
    kept = flagged_rows(results, level) & (relative > 0.5)
    inside = kept & score_outliers(results, level)
    other = f"unusual at the level {at:.1%}, but not so far out that the fit gives up on them."
    if np.ptp(relative) <= 1e-9:
        inside, other = kept & False, f"all {unit}s have equal weights here."
    elif getattr(results, "group_view", None) is not None:
        other = "rows share the weight of their group."
    elif level is None and getattr(results, "prob_bad", None) is not None:
        other = "more likely bad than good, but not surely bad."
    score = "in the subspace, and weights depend only on the distance from it."
    notes = []
    for rows, reason in (
        (inside, f" (score outliers): far from the center, but {score}"),
        (kept & ~inside, f": {other}"),
    ):
        has = " has" if rows.sum() == 1 else "s have"
        if rows.any():
            notes.append(f"{rows.sum():,} flagged {unit}{has} a large weight{reason}")
    return " ".join(notes)


def score_outliers(results: Results, level: float | None = None) -> Flags:
    """Return which rows are far from the center of a subspace and not off it, shape (n,)."""
    if "score_cutoff" not in dir(results):
        return np.zeros(np.size(results.losses), dtype=bool)
    each = float(np.sqrt(cutoff_level(level)))  # outliers() gives each of two cutoffs this level
    far = np.asarray(results.score_distance) > results.score_cutoff(each)
    off = np.asarray(results.orthogonal_distance) > results.orthogonal_cutoff(each)
    return np.asarray(far & ~off)
