"""The rows along a grid of eps_bar: how likely they are bad as a heat map, and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rrmstats.plotting.canvas import CUTOFF, Style, lay_out, one_axes
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.names import FONT_SIZE, short_names
from rrmstats.plotting.offers import Array, FittedPath
from rrmstats.plotting.path_arrays import (
    Rows,
    band_floor,
    beyond_band,
    is_far,
    jump_places,
    leaving_positions,
    merged_places,
    most_suspicious,
    residual_kind,
    row_names,
    row_values,
    rows_text,
    value_edges,
)
from rrmstats.plotting.path_explanations import BAND, draw_explanations
from rrmstats.plotting.path_labels import (
    LANE,
    heights_in_points,
    label_at_ends,
    size_in_points,
    values_at_points,
)
from rrmstats.plotting.paths import (
    CHOSEN,
    JUMP,
    STAYS,
    draw_flagged_rows,
    draw_rows_in_gray,
    group_color,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A heat map shows at most so many rows, and labels each of at most so many.
MOST_ROWS = 200
MOST_SINGLE_LABELS = 60
# Distance of a title from its panel where a legend is between, in points.
ABOVE_LEGEND = 27.0


def plot_path_weights(path: FittedPath, ax: Axes | None = None) -> Figure:
    """Plot how likely the rows, or groups, are bad along a grid of eps_bar as a heat map.

    In one step it shows their weights. Rows are in the order in which they leave: they become
    more likely bad than good, or lose half their weight. More than 60 rows are labeled in groups
    of those that leave at the same value, and of more than 200 rows only those most likely bad,
    or of smallest weight, are shown.

    Parameters
    ----------
    path : path of any model
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_path_weights
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2, 0.3])
    >>> fig = plot_path_weights(path)
    >>> sorted(text.get_text() for text in fig.axes[0].get_yticklabels()[:4])
    ['10', '19', '29', '33']
    """
    picture = checked_picture("plot_path_weights", path)
    fig, ax = one_axes(ax, picture.size)
    rows = leaving_order(path, most_suspicious(path, MOST_ROWS))
    shown, edges = row_values(path), np.arange(len(rows) + 1) - 0.5
    image = ax.pcolormesh(
        value_edges(path.eps_bars), edges, shown.values[rows], **shown.colors, rasterized=True
    )
    fig.colorbar(image, ax=ax, label=shown.name)
    ax.set(xlabel="eps_bar", ylabel=f"{path.unit}s, the first to leave at the top")
    ax.invert_yaxis()
    total = len(path.weights)
    if len(rows) < total:
        ax.set_title(f"{len(rows)} of {total} {path.unit}s, {shown.worst}", pad=ABOVE_LEGEND)
    _label_rows(ax, path, rows)
    _mark(ax, path)
    draw_explanations(fig, [ax], path, pad=ABOVE_LEGEND)
    add_legend_above(ax)
    return fig


def leaving_order(path: FittedPath, rows: Rows) -> Rows:
    """Return rows in the order in which they leave."""
    total = row_values(path).kept.sum(axis=1)
    at = leaving_positions(path)
    return rows[np.lexsort((total[rows], at[rows]))]


def _label_rows(ax: Axes, path: FittedPath, rows: Rows) -> None:
    """Label each row, or if there are many each group of rows that leave together."""
    names = short_names(row_names(path))
    if len(rows) <= MOST_SINGLE_LABELS:
        size = 8 if len(rows) <= 40 else 6.5
        ax.set_yticks(np.arange(len(rows)), [names[row] for row in rows], fontsize=size)
        return
    starts, at = leaving_blocks(path, rows)
    middles = (starts[1:] + starts[:-1] - 1) / 2
    lay_out(ax)
    gap = LANE / size_in_points(ax)[1] * len(rows)
    ticks, texts = [], []
    for merged in merged_places(middles, gap):
        block = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in merged])
        stays = at[merged[0]] == len(path.eps_bars)
        ticks.append(float(middles[merged].mean()))
        text = f"{len(block)} {path.unit}s"
        if not stays:
            text = rows_text(np.sort(rows[block]), names, path.unit)
        texts.append(text + " stay" if stays else text)
    ax.set_yticks(ticks, texts, fontsize=FONT_SIZE)
    for start in starts[1:-1]:
        ax.axhline(start - 0.5, color="white", linewidth=0.4)


def leaving_blocks(path: FittedPath, rows: Rows) -> tuple[Rows, Rows]:
    """Return where blocks of rows that leave together begin, and the places where they leave.

    Parameters
    ----------
    path : path of any model
    rows : ndarray of int
        In the order in which they leave.

    Returns
    -------
    starts : ndarray of int, shape (b + 1,)
        The last is the number of rows.
    at : ndarray of int, shape (b,)
        Positions on the grid.
    """
    at, first = np.unique(leaving_positions(path)[rows], return_index=True)
    return np.r_[first, len(rows)], at


def plot_path_residuals(path: FittedPath, ax: Axes | None = None, level: float = 0.975) -> Figure:
    """Plot the residuals or distances of the rows, or groups, along a grid of eps_bar.

    The band holds the residuals of clean rows. Rows that are outside at the last value are drawn
    in color, and labeled at their ends; rows whose ends are close share a label and a color.

    Parameters
    ----------
    path : path of any model
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows within the band, in (0, 1).

    Returns
    -------
    matplotlib Figure

    References
    ----------
    Riani, Cerioli, Atkinson and Perrotta (2014), "Monitoring robust regression", Electronic
    Journal of Statistics 8, 646-677.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_path_residuals
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2, 0.3])
    >>> fig = plot_path_residuals(path)
    >>> fig.axes[0].get_ylabel()
    'standardized residual'
    """
    picture = checked_picture("plot_path_residuals", path)
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level:g}")
    fig, ax = one_axes(ax, picture.size)
    name, cutoff = residual_kind(path, level)
    values = np.asarray(path.residuals, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    outside = beyond_band(path, cutoff)
    _draw_band(ax, path.eps_bars, band_floor(path, cutoff), cutoff, level)
    passing = values[outside.any(axis=1) & ~outside[:, -1]]
    drawn = draw_rows_in_gray(ax, path.eps_bars, values[~outside.any(axis=1)])
    drawn += draw_flagged_rows(ax, path.eps_bars, passing, **STAYS)
    first, last = path.eps_bars[0], path.eps_bars[-1]
    ax.set(xlabel="eps_bar", ylabel=name, xlim=(first if first < last else last - 0.01, last))
    if is_far(values, cutoff):
        ax.set_yscale("symlog", linthresh=float(cutoff.max()), linscale=1.5)
    _mark(ax, path)
    drawn += _draw_outside(ax, path, values, np.flatnonzero(outside[:, -1]))
    if drawn < len(values):
        ax.set_title(f"{drawn:,} of {len(values):,} {path.unit}s are drawn", pad=ABOVE_LEGEND)
    draw_explanations(fig, [ax], path, pad=ABOVE_LEGEND)
    add_legend_above(ax)
    return fig


def _draw_band(ax: Axes, x: Array, low: Array, cutoff: Array, level: float) -> None:
    ax.fill_between(x, low, cutoff, color="#F0E442", alpha=0.18, linewidth=0)
    ax.plot(x, cutoff, **CUTOFF, label=f"cutoff, {level:.1%}")
    if (low == -cutoff).all():
        ax.plot(x, low, **CUTOFF)


def _draw_outside(ax: Axes, path: FittedPath, values: Array, rows: Rows) -> int:
    """Draw the rows that end outside the band, label their ends, and return how many are drawn."""
    ax.update_datalim(np.c_[np.tile(path.eps_bars, len(rows)), values[rows].ravel()])
    ax.autoscale_view()
    lay_out(ax)
    heights, names = heights_in_points(ax, values[rows, -1]), short_names(row_names(path))
    groups = merged_places(heights, LANE)
    style = {"linewidth": 1.2}
    drawn = sum(
        draw_flagged_rows(
            ax, path.eps_bars, values[rows[group]], color=group_color(number), **style
        )
        for number, group in enumerate(groups)
    )
    ends = values_at_points(ax, np.array([heights[group].mean() for group in groups]))
    texts = [rows_text(rows[group], names, path.unit) for group in groups]
    label_at_ends(ax, ends, texts, [group_color(number) for number in range(len(groups))])
    return drawn


def _mark(ax: Axes, path: FittedPath) -> None:
    """Draw the jumps and the chosen value."""
    for number, place in enumerate(jump_places(path)):
        ax.axvline(place, **JUMP, label="" if number else "jump")
    if path.choice is not None:
        ax.axvline(path.choice.eps_bar, **CHOSEN, label=f"chosen: {path.choice.eps_bar:g}")


def add_legend_above(ax: Axes) -> None:
    """Add a legend above axes, if there is anything to explain."""
    handles, names = ax.get_legend_handles_labels()
    if handles:
        above = 1 + BAND  # also of the explanations, where there are any
        style: Style = {"bbox_to_anchor": (0.0, above), "borderaxespad": 0.2, "frameon": False}
        ax.legend(handles, names, loc="lower left", ncols=len(handles), **style)
