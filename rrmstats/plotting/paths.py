"""The fits along a grid of eps_bar: coefficients, scale, contamination and rows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.optional import require
from rrmstats.plotting.canvas import CUTOFF, REFERENCE, ROBUST, SKY, Style, lay_out, new_figure
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.names import short_names
from rrmstats.plotting.offers import Array, FittedPath
from rrmstats.plotting.path_arrays import (
    checked_terms,
    ever_flagged,
    flagged_that_stay,
    jump_places,
    leaving_groups,
    row_names,
    row_values,
    rows_text,
    some_lines,
)
from rrmstats.plotting.path_explanations import draw_explanations
from rrmstats.plotting.path_labels import Label, label_above, line_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colors of groups of rows; the green of Okabe and Ito is that of the chosen value.
GROUP_COLORS = ("#D55E00", "#CC79A7", "#E69F00", "#0072B2", "#56B4E9", "#6A3D9A")
NEVER: Style = {"color": "#CFCFCF", "linewidth": 0.7}
STAYS: Style = {"color": "#8C8C8C", "linewidth": 0.9}
JUMP: Style = {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 0.9}
CHOSEN: Style = {"color": "#009E73", "linestyle": "-", "linewidth": 1.8, "alpha": 0.8}
MOST_TERMS = 12
# Columns of the grid of panels: it can be divided by 1, 2, 3 and 4.
COLUMNS = 12
HEIGHT_OF_TERMS = 2.1
# So many letters have room above the panels of a row.
LETTERS_OF_TITLES = 88
# A panel has room for this share of the confidence limits, on either side.
SHARE_OF_LIMITS = 0.9
# Groups of more rows are drawn in thin lines.
MANY_LINES = 30
# Of more rows that are never flagged, and of larger groups of others, only so many are drawn.
MOST_LINES, MOST_OF_A_GROUP = 2000, 200
FLAGGED_SHARE: Style = {"color": "black", "linestyle": "-.", "linewidth": 1.0}


def plot_path(
    path: FittedPath, fig: Figure | None = None, terms: Sequence[str] | None = None
) -> Figure:
    """Plot the fits along a grid of eps_bar.

    Coefficients with their confidence intervals; the scale; the estimated contamination and the
    share of flagged rows; and the probabilities of the rows to be bad, or of the groups of a
    model that has groups; in one step their weights. Rows that leave at the same value are
    labeled once; rows that are never flagged are light gray. Of thousands of rows some are drawn,
    and the title says how many. Dashed vertical lines are the jumps, a solid one is the chosen
    value. The colored band above the panels tells the explanation of the rows.

    Parameters
    ----------
    path : path of any model
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.
    terms : sequence of str, optional
        The coefficients to show; by default the twelve that change most in standard errors.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_path
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2, 0.3])
    >>> fig = plot_path(path)
    >>> [ax.get_title() for ax in fig.axes]
    ['Intercept', 'log_te', 'Scale', 'Contamination', 'prob_bad of the rows']
    """
    picture = checked_picture("plot_path", path)
    shown = checked_terms(path.frame, terms, MOST_TERMS)
    rows, per_row = term_grid(len(shown))
    fig = _figure(fig, picture.size, rows)
    grid: Any = fig.add_gridspec(rows + 1, COLUMNS, height_ratios=[1.0] * rows + [1.35])
    span, titles = COLUMNS // per_row, short_names(shown, LETTERS_OF_TITLES // per_row)
    axes = []
    for number, term in enumerate(shown):
        row, column = divmod(number, per_row)
        ax = fig.add_subplot(grid[row, column * span : (column + 1) * span])
        _draw_term(ax, path, term)
        ax.set_title(titles[number])
        axes.append(ax)
    axes += _draw_below(fig, grid[rows, :], path)
    _mark_places(axes, path)
    draw_explanations(fig, axes, path)
    _add_legend(fig, path, len(shown))
    _name_groups(axes[-1], path)
    return fig


def term_grid(count: int) -> tuple[int, int]:
    """Return how many rows and columns of panels so many terms need."""
    per_row = count if count <= 4 else 3 if count in (5, 6, 9) else 4
    return -(-count // per_row), per_row


def _figure(fig: Figure | None, size: tuple[float, float], rows: int) -> Figure:
    require("matplotlib", "plot")
    if fig is not None:
        return fig
    high = size[1] + (rows - 1) * HEIGHT_OF_TERMS
    figure: Figure = new_figure((size[0], high))
    return figure


def _draw_term(ax: Axes, path: FittedPath, term: str) -> None:
    """Draw the estimates of one coefficient with their intervals."""
    frame = path.frame[path.frame["term"] == term]
    x, y = frame["eps_bar"].to_numpy(float), frame["estimate"].to_numpy(float)
    low, high = frame["lower"].to_numpy(float), frame["upper"].to_numpy(float)
    ax.fill_between(x, low, high, color=SKY, alpha=0.35, linewidth=0, label="95 % interval")
    ax.plot(x, y, **ROBUST, label="estimate")
    ax.set_xlabel("eps_bar")
    bottom, top = term_limits(y, low, high)
    if bottom < top:
        ax.set_ylim(bottom, top)
    if bottom <= 0 <= top:
        ax.axhline(0.0, **REFERENCE)


def term_limits(y: Array, low: Array, high: Array) -> tuple[float, float]:
    """Return limits of a panel that hold all estimates and most of their intervals.

    The few widest intervals would otherwise flatten the estimates.
    """
    bottom = float(np.nanmin([*y, finite_quantile(low, 1 - SHARE_OF_LIMITS)]))
    top = float(np.nanmax([*y, finite_quantile(high, SHARE_OF_LIMITS)]))
    room = 0.05 * (top - bottom)
    return bottom - room, top + room


def finite_quantile(values: Array, share: float) -> float:
    """Return a quantile of the finite ones of some values; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, share)) if len(finite) else np.nan


def _draw_below(fig: Figure, place: Any, path: FittedPath) -> list[Axes]:
    """Draw scale, contamination and rows side by side, and return their axes."""
    by_value = path.frame.drop_duplicates("eps_bar").set_index("eps_bar")
    has_scale = by_value["scale"].nunique() > 1
    widths = [1.0, 1.0, 2.0] if has_scale else [1.0, 2.0]
    axes: list[Any] = [
        fig.add_subplot(cell) for cell in place.subgridspec(1, len(widths), width_ratios=widths)
    ]
    if has_scale:
        axes[0].plot(by_value.index, by_value["scale"], **ROBUST)
        axes[0].set(title="Scale", xlabel="eps_bar", ylim=(0, 1.08 * by_value["scale"].max()))
    _draw_contamination(axes[-2], path, by_value)
    _draw_rows(axes[-1], path)
    return axes


def _draw_contamination(ax: Axes, path: FittedPath, by_value: Any) -> None:
    """Draw the estimated contamination and the share of flagged rows."""
    x = by_value.index.to_numpy(float)
    ax.plot([0, x.max()], [0, x.max()], **CUTOFF, label="eps_bar")
    if by_value["eps_hat"].notna().any():
        ax.plot(x, by_value["eps_hat"], **ROBUST, label="eps_hat")
    share = by_value["n_flagged"].to_numpy(float) / len(path.weights)
    ax.plot(x, share, **FLAGGED_SHARE, label="share flagged")
    ax.set(title="Contamination", xlabel="eps_bar", ylim=(0, None))


def _draw_rows(ax: Axes, path: FittedPath) -> None:
    """Draw the probabilities of the rows to be bad, or in one step their weights."""
    shown, x = row_values(path), path.eps_bars
    drawn = draw_rows_in_gray(ax, x, shown.values[~ever_flagged(path)])
    drawn += draw_flagged_rows(ax, x, shown.values[flagged_that_stay(path)], **STAYS)
    for number, group in enumerate(leaving_groups(path)):
        thin = len(group.rows) > MANY_LINES
        style: Style = {"linewidth": 0.5, "alpha": 0.5} if thin else {"linewidth": 1.1}
        values = shown.values[group.rows]
        drawn += draw_flagged_rows(ax, x, values, color=group_color(number), **style)
    title = f"{shown.title} of {drawn_text(drawn, path)}"
    ax.set(title=title, xlabel="eps_bar", ylabel=shown.name, ylim=(0, None))


def drawn_text(drawn: int, path: FittedPath) -> str:
    """Return in words how many rows are drawn."""
    total = len(path.weights)
    return f"the {path.unit}s" if drawn == total else f"{drawn:,} of {total:,} {path.unit}s"


def group_color(number: int) -> str:
    """Return the color of a group of rows."""
    return GROUP_COLORS[number % len(GROUP_COLORS)]


def _name_groups(ax: Axes, path: FittedPath) -> None:
    """Write the rows that leave together above the place where they leave."""
    values, x, names = row_values(path).values, path.eps_bars, short_names(row_names(path))
    labels = []
    for number, group in enumerate(leaving_groups(path)):
        height = float(values[group.rows, group.at].mean())
        text = rows_text(group.rows, names, path.unit)
        labels.append(Label(float(x[group.at]), height, text, group_color(number)))
    lay_out(ax)
    label_above(ax, labels)


def _mark_places(axes: list[Axes], path: FittedPath) -> None:
    """Draw the jumps and the chosen value in every panel."""
    for ax in axes:
        for place in jump_places(path):
            ax.axvline(place, **JUMP)
        if path.choice is not None:
            ax.axvline(path.choice.eps_bar, **CHOSEN)


def _add_legend(fig: Figure, path: FittedPath, shown: int) -> None:
    entries: list[tuple[str, Style]] = [
        ("estimate", ROBUST),
        ("95 % interval", {"color": SKY, "alpha": 0.35, "linewidth": 8}),
        (f"share of {path.unit}s flagged", FLAGGED_SHARE),
        ("eps_bar itself", CUTOFF),
        (f"{path.unit} never flagged", {**NEVER, "linewidth": 1.6}),
    ]
    if flagged_that_stay(path).any():
        entries.append((f"{path.unit} that does not leave", {**STAYS, "linewidth": 1.6}))
    if len(path.jumps):
        entries.append(("jump", JUMP))
    if path.choice is not None:
        entries.append((f"chosen: {path.choice.eps_bar:g}", CHOSEN))
    known = path.frame["term"].nunique()
    title = f"{shown} of {known} coefficients, those that change most" if shown < known else ""
    line_legend(fig, entries, title)


def draw_rows_in_gray(ax: Axes, x: Array, values: Array) -> int:
    """Draw lines, shape (p, m), of rows that are of no further interest, and return how many."""
    values = some_lines(values, MOST_LINES)
    lines = import_module("matplotlib.collections").LineCollection(
        [np.c_[x, line] for line in values], rasterized=len(values) > 500, **NEVER
    )
    ax.add_collection(lines)
    ax.autoscale_view()
    return len(values)


def draw_flagged_rows(ax: Axes, x: Array, values: Array, **style: Any) -> int:
    """Draw lines, shape (p, m), of rows that are flagged somewhere, and return how many."""
    values = some_lines(values, MOST_OF_A_GROUP)
    ax.plot(x, values.T, **style)
    return len(values)
