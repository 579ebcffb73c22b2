"""Pictures of a path: estimates along a grid of eps_bar, rows as a heat map, and residuals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from rrmstats.plotting import canvas
from rrmstats.plotting.canvas import Style
from rrmstats.plotting.catalog import Array, Axes, Figure, FittedPath, Flags, Rows, checked_picture

# Values of eps_bar that differ by less are equal.
TINY = 1e-9
# Colors of explanations, those of Paul Tol's muted scheme; rows without bad ones are gray.
COLORS = ("#332288", "#DDCC77", "#CC6677", "#44AA99", "#AA4499", "#88CCEE", "#999933", "#882255")
NO_BAD_ROWS, NO_COLOR = "none", "#BBBBBB"


class RowValues(NamedTuple):
    """What a picture shows of each row along the path.

    Attributes
    ----------
    values : ndarray, shape (n, m)
    name : str
        The name of the values, for axes.
    title : str
        What they are, such as "Weights".
    worst : str
        The rows that are shown where not all are.
    leave : str
        What happens to rows that leave.
    colors : dict
        Colors of the values.
    kept : ndarray, shape (n, m)
        How far the fit keeps each row: smaller where the row is more suspicious.
    """

    values: Array
    name: str
    title: str
    worst: str
    leave: str
    colors: Style
    kept: Array


def row_values(path: FittedPath) -> RowValues:
    """Return the probabilities of the rows to be bad, or in one step their relative weights."""
    if getattr(path, "prob_bad", None) is None:
        values = np.asarray(path.relative_weights, dtype=float)
        words = ("weight * n", "Weights", "those of smallest weight", "lose half their weight")
        return RowValues(values, *words, canvas.WEIGHT_COLORS, values)
    values = np.asarray(path.prob_bad, dtype=float)
    leave = "become more likely bad than good"
    words = ("prob_bad", "prob_bad", "those most likely bad", leave)
    return RowValues(values, *words, canvas.PROBABILITY_COLORS, 1 - values)


def row_names(path: FittedPath) -> list[str]:
    """Return the labels of the rows, or of the groups that have the weights."""
    return [str(label) for label in path.weights.index]


def ever_flagged(path: FittedPath) -> Flags:
    """Return whether each row is flagged somewhere on the path, shape (n,)."""
    return np.array(path.flags.any(axis=1), dtype=bool)


def leaving_positions(path: FittedPath) -> Rows:
    """Return the position on the grid where each row leaves; m if nowhere.

    There it becomes more likely bad than good, or in one step loses half its weight.
    """
    below = path.leaves["below_half"].to_numpy(float)
    m = len(path.eps_bars)
    found = np.searchsorted(path.eps_bars, below - TINY)
    return np.where(np.isnan(below), m, np.minimum(found, m - 1))


def leaving_groups(path: FittedPath) -> list[Rows]:
    """Return the flagged rows that leave, those of each value of the grid together."""
    at, left = leaving_positions(path), ever_flagged(path)
    places = np.unique(at[left & (at < len(path.eps_bars))])
    return [np.flatnonzero(left & (at == place)) for place in places]


def flagged_that_stay(path: FittedPath) -> Flags:
    """Return whether each row is flagged somewhere but does not leave, shape (n,)."""
    return ever_flagged(path) & (leaving_positions(path) == len(path.eps_bars))


def most_suspicious(path: FittedPath, most: int) -> Rows:
    """Return at most `most` rows, those most likely bad somewhere, as positions.

    In one step those of smallest weight. Rows that are flagged somewhere come before others, and
    rows that leave early before rows that leave late.
    """
    least = row_values(path).kept.min(axis=1)
    return np.lexsort((least, leaving_positions(path), ~ever_flagged(path)))[:most]


def jump_places(path: FittedPath) -> Array:
    """Return the middle of the step of the grid at which each jump happens."""
    return path.jumps[["eps_bar_from", "eps_bar_to"]].to_numpy(float).mean(axis=1)


def rows_text(rows: Sequence[int] | Rows, names: Sequence[str], unit: str = "row") -> str:
    """Return the names of rows, or of other units, in a few words.

    Examples
    --------
    >>> from rrmstats.plotting.paths import rows_text
    >>> names = [str(i) for i in range(30)]
    >>> rows_text(range(10), names), rows_text([3, 5, 7, 8, 9, 18], names)
    ('0-9', '3, 5, 7-9, 18')
    """
    if not len(rows):
        return "none"
    every = np.asarray(rows, dtype=int)
    runs = []
    for run in np.split(every, np.flatnonzero(np.diff(every) != 1) + 1):
        runs += [run] if len(run) > 2 else np.split(run, len(run))
    shown = runs if len(runs) <= 4 else runs[:3]
    text = ", ".join("-".join(names[row] for row in sorted({run[0], run[-1]})) for run in shown)
    if len(text) > 24 and len(rows) > 1:
        return f"{len(rows)} {unit}s"
    left = len(rows) - sum(len(run) for run in shown)
    return f"{text} and {left} more" if left else text


def shown_terms(frame: pd.DataFrame, terms: Sequence[str] | None, most: int) -> list[str]:
    """Return the terms asked for, or those whose estimates move most in standard errors."""
    by_term = frame.groupby("term", sort=False)
    unit = by_term["std_err"].median()
    change = (
        by_term["estimate"].agg(lambda each: each.max() - each.min()) / unit.where(unit > 0)
    ).fillna(0.0)
    if terms is None:
        kept = change.sort_values(ascending=False, kind="stable").index[:most]
        return [term for term in change.index if term in kept]
    asked = [terms] if isinstance(terms, str) else list(terms)
    if not asked or set(asked) - set(change.index):
        raise ValueError(f"terms must be some of {', '.join(change.index)}, got {terms!r}")
    return asked


def term_values(path: FittedPath, term: str) -> tuple[Array, Array, Array, tuple[float, float]]:
    """Return the estimates of a term, its lower and upper limits, and the limits of its panel.

    The panel has room for all estimates and most of their intervals: the few widest would
    otherwise flatten the estimates.
    """
    frame = path.frame[path.frame["term"] == term]
    y, low, high = frame[["estimate", "lower", "upper"]].to_numpy(float).T
    ends = [*y[np.isfinite(y)]]
    for limits, share in ((low, 0.1), (high, 0.9)):
        known = limits[np.isfinite(limits)]
        ends += [np.quantile(known, share)] if len(known) else []
    room = 0.05 * float(np.ptp(ends))
    return y, low, high, (float(min(ends)) - room, float(max(ends)) + room)


class Residuals(NamedTuple):
    """Residuals or distances along a path.

    Attributes
    ----------
    values : ndarray, shape (n, m)
        NaN where they are infinite.
    name : str
    low, high : ndarray, shape (m,)
        Limits of clean rows or groups.
    outside : ndarray of bool, shape (n, m)
    far : bool
        Whether some value is so large that it would flatten the band of clean rows.
    """

    values: Array
    name: str
    low: Array
    high: Array
    outside: Flags
    far: bool


def path_residuals(path: FittedPath, level: float) -> Residuals:
    """Return the residuals with the band that holds a share `level` of clean ones."""
    values = np.asarray(path.residuals, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    offered = set(dir(path.at(float(path.eps_bars[0]))))
    high = np.ones(len(path.eps_bars))
    if path.unit == "group":
        name, high = "mean loss as a normal score", high * norm.ppf(level)
    elif "pred_table" in offered:  # the deviance residual of a label of probability 1 - level
        name, high = "deviance residual", high * np.sqrt(-2 * np.log(1 - level))
    elif "score_cutoff" in offered:
        name = "larger distance / its cutoff"
    elif "mahalanobis" in offered:
        name = "robust distance"
        high = np.array([path.at(float(eps_bar)).cutoff(level) for eps_bar in path.eps_bars])
    else:
        name, high = "standardized residual", high * np.sqrt(chi2.ppf(level, 1))
    smallest = min(np.nanmin(values, initial=0.0), 0.0)
    # Distances begin at zero; a score of a group has no lower limit.
    low = np.full_like(high, smallest) if path.unit == "group" or smallest == 0 else -high
    far = bool(np.nanmax(np.abs(values), initial=0.0) > 20 * high.max())
    return Residuals(values, name, low, high, (values > high) | (values < low), far)


class Run(NamedTuple):
    """Neighboring values of eps_bar with the same explanation.

    Attributes
    ----------
    name : str
        The explanation.
    first, last : int
        Positions on the grid.
    left, right : float
        Where its band begins and ends.
    """

    name: str
    first: int
    last: int
    left: float
    right: float


def explanation_runs(path: FittedPath) -> list[Run]:
    """Return the explanations along a path; none in one step."""
    names = path.frame.drop_duplicates("eps_bar")["explanation"].to_numpy()
    if all(name is None for name in names):
        return []
    edges = value_edges(path.eps_bars)
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
    ends = np.r_[starts[1:], len(names)]
    return [
        Run(names[a] or "n/a", int(a), int(b) - 1, float(edges[a]), float(edges[b]))
        for a, b in zip(starts, ends, strict=True)
    ]


def explanation_colors(runs: Iterable[Run]) -> dict[str, str]:
    """Return a color for each explanation, in the order in which they first appear."""
    names, colors = dict.fromkeys(run.name for run in runs), cycle(COLORS)
    return {name: NO_COLOR if name == NO_BAD_ROWS else next(colors) for name in names}


def value_edges(values: Array) -> Array:
    """Return what lies half way between values, and the first and the last, shape (m + 1,)."""
    if len(values) == 1:
        return np.array([values[0] - 0.01, values[0] + 0.01])
    return np.r_[values[0], (values[1:] + values[:-1]) / 2, values[-1]]


# Colors of groups of rows; the green of Okabe and Ito is that of the chosen value.
GROUP_COLORS = ("#D55E00", "#CC79A7", "#E69F00", "#0072B2", "#56B4E9", "#6A3D9A")
NEVER: Style = {"color": "#CFCFCF", "linewidth": 0.7, "zorder": 1}
STAYS: Style = {"color": "#8C8C8C", "linewidth": 0.9}
JUMP: Style = {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 0.9}
CHOSEN: Style = {"color": "#009E73", "linestyle": "-", "linewidth": 1.8, "alpha": 0.8}
FLAGGED_SHARE: Style = {"color": "black", "linestyle": "-.", "linewidth": 1.0}
INTERVAL: Style = {"color": canvas.SKY, "alpha": 0.35}
MOST_TERMS, MOST_NAMED = 12, 40
# Of more rows that are never flagged, and of larger groups of others, only so many are drawn.
MOST_LINES, MOST_OF_A_GROUP = 2000, 200
# Height of the band of explanations relative to its panel.
BAND = 0.03
# Height of a line of text in points.
LINE = 1.45 * canvas.FONT_SIZE


def plot_path(
    path: FittedPath, fig: Figure | None = None, terms: Sequence[str] | None = None
) -> Figure:
    """Plot the fits along a grid of eps_bar.

    Coefficients with their confidence intervals; the scale; the estimated share of bad rows and
    that of flagged rows; and the probabilities of the rows to be bad, or of the groups of a
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
    ['Intercept', 'log_te', 'Scale', 'Share of bad rows', 'prob_bad of the rows']
    """
    wide, high = checked_picture("plot_path", path).size
    shown, known = shown_terms(path.frame, terms, MOST_TERMS), path.frame["term"].nunique()
    per_row = len(shown) if len(shown) <= 4 else 3 if len(shown) in (5, 6, 9) else 4
    rows = -(-len(shown) // per_row)
    figure: Any = canvas.new_figure((wide, high + (rows - 1) * 2.1)) if fig is None else fig
    columns = 12  # of the grid: it can be divided by 1, 2, 3 and 4
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[1.0] * rows + [1.35])
    span, titles = columns // per_row, canvas.short_names(shown, 88 // per_row)
    for number, (term, title) in enumerate(zip(shown, titles, strict=True)):
        row, column = divmod(number * span, columns)
        place = grid[row, column : column + span]
        draw_term(figure.add_subplot(place, title=title, xlabel="eps_bar"), path, term)
    axes = figure.axes[-len(shown) :] + draw_below(figure, grid[rows, :], path)
    mark_places(figure, axes, path)
    if len(shown) < known:
        figure.suptitle(f"{len(shown)} of {known} coefficients, those that change most")
    name_groups(axes[-1], path)
    return figure


def draw_term(ax: Axes, path: FittedPath, term: str) -> None:
    """Draw the estimates of one coefficient with their intervals."""
    y, low, high, (bottom, top) = term_values(path, term)
    ax.fill_between(path.eps_bars, low, high, **INTERVAL, linewidth=0, label="95 % interval")
    ax.plot(path.eps_bars, y, **canvas.ROBUST, label="estimate")
    if bottom < top:
        ax.set_ylim(bottom, top)
    if bottom <= 0 <= top:
        ax.axhline(0.0, **canvas.REFERENCE)


def draw_below(fig: Any, place: Any, path: FittedPath) -> list[Any]:
    """Draw scale, share of bad rows and rows side by side, and return their axes."""
    by_value = path.frame.drop_duplicates("eps_bar")
    x, has_scale = by_value["eps_bar"].to_numpy(float), by_value["scale"].nunique() > 1
    cells = place.subgridspec(1, 2 + has_scale, width_ratios=[1.0] * (1 + has_scale) + [2.0])
    axes = [fig.add_subplot(cell, xlabel="eps_bar") for cell in cells]
    *before, ax, rows_ax = axes
    for scale_ax in before:
        scale_ax.plot(x, by_value["scale"], **canvas.ROBUST)
        scale_ax.set(title="Scale", ylim=(0, 1.08 * by_value["scale"].max()))
    ax.plot([0, x.max()], [0, x.max()], **canvas.CUTOFF, label="eps_bar itself")
    if by_value["eps_hat"].notna().any():
        ax.plot(x, by_value["eps_hat"], **canvas.ROBUST, label="eps_hat")
    share = by_value["n_flagged"].to_numpy(float) / len(path.weights)
    ax.plot(x, share, **FLAGGED_SHARE, label=f"share of {path.unit}s flagged")
    ax.set(title="Share of bad rows", ylim=(0, None))
    shown = row_values(path)
    never, stay = ~ever_flagged(path), flagged_that_stay(path)
    style: Style = {**NEVER, "label": f"{path.unit} never flagged"}
    drawn = draw_lines(rows_ax, x, shown.values[never], MOST_LINES, **style)
    style = {**STAYS, "label": f"{path.unit} that does not leave"}
    drawn += draw_lines(rows_ax, x, shown.values[stay], **style)
    for group, color in zip(leaving_groups(path), cycle(GROUP_COLORS)):
        thin = len(group) > 30
        style = {"linewidth": 0.5, "alpha": 0.5} if thin else {"linewidth": 1.1}
        drawn += draw_lines(rows_ax, x, shown.values[group], color=color, **style)
    total, some = len(path.weights), f"the {path.unit}s"
    if drawn < total:
        some = f"{drawn:,} of {total:,} {path.unit}s"
    rows_ax.set(title=f"{shown.title} of {some}", ylabel=shown.name, ylim=(0, None))
    return axes


def name_groups(ax: Axes, path: FittedPath) -> None:
    """Write the rows that leave together beside the place where they leave."""
    values, x, names = row_values(path).values, path.eps_bars, canvas.short_names(row_names(path))
    canvas.lay_out(ax)
    taken: list[Any] = []
    along = np.c_[np.tile(x, len(values)), values.ravel()]
    for group, color in zip(leaving_groups(path)[:8], cycle(GROUP_COLORS)):
        text, at = rows_text(group, names, path.unit), leaving_positions(path)[group[0]]
        point = np.array([[x[at], values[group, at].mean()]])
        taken += canvas.write_names(ax, point, [text], point, along, taken, color=color)


def draw_lines(
    ax: Axes, x: Array, values: Array, most: int = MOST_OF_A_GROUP, **style: Any
) -> int:
    """Draw lines of rows, shape (p, m), at most so many, and return how many."""
    values = some_lines(values, most)
    ax.plot(x, values.T, rasterized=len(values) > 500, **style)
    return len(values)


def some_lines(values: Array, most: int) -> Array:
    """Return at most `most` of some lines, shape (p, m), spread evenly over their ends."""
    if len(values) <= most:
        return values
    order = np.argsort(values[:, -1], kind="stable")
    return values[order[np.linspace(0, len(order) - 1, most).astype(int)]]


def mark_places(where: Any, axes: Sequence[Axes], path: FittedPath) -> None:
    """Mark jumps, the chosen value and the explanations in every panel, with a legend below.

    Parameters
    ----------
    where : matplotlib Figure or Axes
        Where the legend belongs.
    axes : sequence of matplotlib Axes
    path : path of any model
    """
    runs, handles = explanation_runs(path), dict[str, Any]()
    colors = explanation_colors(runs)
    marks = [(float(place), {**JUMP, "label": "jump"}) for place in jump_places(path)]
    if path.choice is not None:
        chosen = float(path.choice.eps_bar)
        marks.append((chosen, {**CHOSEN, "label": f"chosen: {chosen:g}"}))
    pixels = canvas.pixels_per_point(axes[0])
    for ax in axes:
        for place, style in marks:
            ax.axvline(place, **style)
        limits = ax.get_xlim()
        for run in runs:  # a band above the panel
            band: Style = {"color": colors[run.name], "linewidth": 0, "clip_on": False}
            name = f"explanation: {run.name}"
            ax.axvspan(run.left, run.right, 1.0, 1 + BAND, **band, label=name)
        ax.set_xlim(limits)
        if runs:
            ax.set_title(ax.get_title(), pad=BAND * ax.bbox.height / pixels + 4)
        drawn, told = ax.get_legend_handles_labels()
        handles |= dict(zip(told, drawn, strict=True))
    names = sorted(handles, key=lambda name: name.startswith("explanation"))
    legend: Style = {"handles": [handles[name] for name in names], "labels": names}
    if where in axes:
        canvas.legend_below(where, **legend)
    else:
        where.legend(loc="outside lower center", **canvas.PLAIN_LEGEND | {"ncols": 3}, **legend)


def plot_path_weights(path: FittedPath, ax: Axes | None = None) -> Figure:
    """Plot how likely the rows, or groups, are bad along a grid of eps_bar as a heat map.

    In one step it shows their weights. Rows are in the order in which they leave: they become
    more likely bad than good, or lose half their weight. Of more than 40 rows those most likely
    bad, or of smallest weight, are shown.

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
    fig, ax = canvas.one_axes(ax, checked_picture("plot_path_weights", path).size)
    shown, at, total = row_values(path), leaving_positions(path), len(path.weights)
    rows = most_suspicious(path, MOST_NAMED)
    rows = rows[np.lexsort((shown.kept.sum(axis=1)[rows], at[rows]))]
    x, y = value_edges(path.eps_bars), np.arange(len(rows) + 1) - 0.5
    image = ax.pcolormesh(x, y, shown.values[rows], **shown.colors, rasterized=True)
    fig.colorbar(image, ax=ax, label=shown.name)
    ax.set(xlabel="eps_bar", ylabel=f"{path.unit}s, the first to leave at the top")
    ax.set_xlim(x[0], x[-1])
    ax.invert_yaxis()
    if len(rows) < total:
        ax.set_title(f"{len(rows)} of {total:,} {path.unit}s, {shown.worst}")
    names = canvas.short_names(row_names(path))
    ax.set_yticks(np.arange(len(rows)), [names[row] for row in rows], fontsize=canvas.FONT_SIZE)
    mark_places(ax, [ax], path)
    return fig


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
    fig, ax = canvas.one_axes(ax, picture.size)
    x, shown = path.eps_bars, path_residuals(path, level)
    values, outside = shown.values, shown.outside
    ax.fill_between(x, shown.low, shown.high, color="#F0E442", alpha=0.18, linewidth=0)
    cutoffs = np.c_[shown.high, shown.low][:, : 2 if (shown.low == -shown.high).all() else 1]
    ax.plot(x, cutoffs, **canvas.CUTOFF, label=f"cutoff, {level:.1%}")
    drawn = draw_lines(ax, x, values[~outside.any(axis=1)], MOST_LINES, **NEVER)
    drawn += draw_lines(ax, x, values[outside.any(axis=1) & ~outside[:, -1]], **STAYS)
    ax.set(xlabel="eps_bar", ylabel=shown.name)
    ax.set_xlim(x[0] if len(x) > 1 else x[0] - 0.01, x[-1])
    if shown.far:
        ax.set_yscale("symlog", linthresh=float(shown.high.max()), linscale=1.5)
    ends = np.flatnonzero(outside[:, -1])
    ax.update_datalim(np.c_[np.tile(x, len(ends)), values[ends].ravel()])
    ax.autoscale_view()
    mark_places(ax, [ax], path)
    drawn += draw_outside(ax, path, values, ends)
    if drawn < len(values):
        ax.title.set_text(f"{drawn:,} of {len(values):,} {path.unit}s are drawn")
    return fig


def draw_outside(ax: Axes, path: FittedPath, values: Array, rows: Rows) -> int:
    """Draw the rows that end outside the band, label their ends, and return how many are drawn."""
    if not len(rows):
        return 0
    canvas.lay_out(ax)
    ends = np.c_[np.repeat(path.eps_bars[-1], len(rows)), values[rows, -1]]
    heights = ax.transData.transform(ends)[:, 1]
    order, gap = np.argsort(heights, kind="stable"), LINE * canvas.pixels_per_point(ax)
    apart = np.flatnonzero(np.diff(heights[order]) >= gap) + 1
    names, drawn = canvas.short_names(row_names(path)), 0
    for group, color in zip(np.split(order, apart), cycle(GROUP_COLORS)):
        some, middle = np.sort(rows[group]), (0.0, heights[group].mean())
        drawn += draw_lines(ax, path.eps_bars, values[some], linewidth=1.2, color=color)
        height = ax.transData.inverted().transform(middle)[1]
        style: Style = {"va": "center", "color": color, "fontsize": canvas.FONT_SIZE}
        place, text = ax.get_yaxis_transform(), rows_text(some, names, path.unit)
        ax.annotate(text, (1.01, height), xycoords=place, annotation_clip=False, **style)
    return drawn
