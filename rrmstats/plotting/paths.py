"""Pictures of a path: estimates along a grid of eps_bar, rows as a heat map, and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.canvas import (
    CUTOFF,
    FONT_SIZE,
    REFERENCE,
    ROBUST,
    SKY,
    Style,
    lay_out,
    new_figure,
    one_axes,
    pixels_per_point,
    short_names,
    write_names,
)
from rrmstats.plotting.catalog import Array, FittedPath, Rows, checked_picture
from rrmstats.plotting.path_values import (
    ever_flagged,
    explanation_colors,
    explanation_runs,
    flagged_that_stay,
    jump_places,
    leaving_groups,
    leaving_positions,
    most_suspicious,
    path_residuals,
    row_names,
    row_values,
    rows_text,
    shown_terms,
    term_values,
    value_edges,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colors of groups of rows; the green of Okabe and Ito is that of the chosen value.
GROUP_COLORS = ("#D55E00", "#CC79A7", "#E69F00", "#0072B2", "#56B4E9", "#6A3D9A")
NEVER: Style = {"color": "#CFCFCF", "linewidth": 0.7}
STAYS: Style = {"color": "#8C8C8C", "linewidth": 0.9}
JUMP: Style = {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 0.9}
CHOSEN: Style = {"color": "#009E73", "linestyle": "-", "linewidth": 1.8, "alpha": 0.8}
FLAGGED_SHARE: Style = {"color": "black", "linestyle": "-.", "linewidth": 1.0}
INTERVAL: Style = {"color": SKY, "alpha": 0.35}
MOST_TERMS = 12
# Of more rows that are never flagged, and of larger groups of others, only so many are drawn.
MOST_LINES, MOST_OF_A_GROUP = 2000, 200
# Height of the band of explanations relative to its panel.
BAND = 0.03
# Height of a line of text in points.
LINE = 1.45 * FONT_SIZE


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
    ['Intercept', 'log_te', 'Scale', 'Contamination', 'prob_bad of the rows']
    """
    wide, high = checked_picture("plot_path", path).size
    shown, known = shown_terms(path.frame, terms, MOST_TERMS), path.frame["term"].nunique()
    per_row = len(shown) if len(shown) <= 4 else 3 if len(shown) in (5, 6, 9) else 4
    rows = -(-len(shown) // per_row)
    figure: Any = new_figure((wide, high + (rows - 1) * 2.1)) if fig is None else fig
    columns = 12  # of the grid: it can be divided by 1, 2, 3 and 4
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[1.0] * rows + [1.35])
    span, titles = columns // per_row, short_names(shown, 88 // per_row)
    axes = []
    for number, (term, title) in enumerate(zip(shown, titles, strict=True)):
        row, column = divmod(number, per_row)
        place = grid[row, column * span : (column + 1) * span]
        ax = figure.add_subplot(place, title=title, xlabel="eps_bar")
        draw_term(ax, path, term)
        axes.append(ax)
    axes += draw_below(figure, grid[rows, :], path)
    lines: list[tuple[str, Style]] = [
        ("estimate", ROBUST),
        ("95 % interval", {**INTERVAL, "linewidth": 8}),
        (f"share of {path.unit}s flagged", FLAGGED_SHARE),
        ("eps_bar itself", CUTOFF),
        (f"{path.unit} never flagged", {**NEVER, "linewidth": 1.6}),
    ]
    if flagged_that_stay(path).any():
        lines.append((f"{path.unit} that does not leave", {**STAYS, "linewidth": 1.6}))
    mark_places(figure, axes, path, lines)
    if len(shown) < known:
        figure.suptitle(f"{len(shown)} of {known} coefficients, those that change most")
    name_groups(axes[-1], path)
    return figure


def draw_term(ax: Axes, path: FittedPath, term: str) -> None:
    """Draw the estimates of one coefficient with their intervals."""
    y, low, high, (bottom, top) = term_values(path, term)
    ax.fill_between(path.eps_bars, low, high, **INTERVAL, linewidth=0, label="95 % interval")
    ax.plot(path.eps_bars, y, **ROBUST, label="estimate")
    if bottom < top:
        ax.set_ylim(bottom, top)
    if bottom <= 0 <= top:
        ax.axhline(0.0, **REFERENCE)


def draw_below(fig: Any, place: Any, path: FittedPath) -> list[Any]:
    """Draw scale, contamination and rows side by side, and return their axes."""
    by_value = path.frame.drop_duplicates("eps_bar")
    x, has_scale = by_value["eps_bar"].to_numpy(float), by_value["scale"].nunique() > 1
    widths = [1.0, 1.0, 2.0] if has_scale else [1.0, 2.0]
    cells = place.subgridspec(1, len(widths), width_ratios=widths)
    axes = [fig.add_subplot(cell, xlabel="eps_bar") for cell in cells]
    *before, ax, rows_ax = axes
    for scale_ax in before:
        scale_ax.plot(x, by_value["scale"], **ROBUST)
        scale_ax.set(title="Scale", ylim=(0, 1.08 * by_value["scale"].max()))
    ax.plot([0, x.max()], [0, x.max()], **CUTOFF, label="eps_bar")
    if by_value["eps_hat"].notna().any():
        ax.plot(x, by_value["eps_hat"], **ROBUST, label="eps_hat")
    share = by_value["n_flagged"].to_numpy(float) / len(path.weights)
    ax.plot(x, share, **FLAGGED_SHARE, label="share flagged")
    ax.set(title="Contamination", ylim=(0, None))
    shown = row_values(path)
    drawn = draw_rows_in_gray(rows_ax, x, shown.values[~ever_flagged(path)])
    drawn += draw_flagged_rows(rows_ax, x, shown.values[flagged_that_stay(path)], **STAYS)
    for number, group in enumerate(leaving_groups(path)):
        thin = len(group.rows) > 30
        style: Style = {"linewidth": 0.5, "alpha": 0.5} if thin else {"linewidth": 1.1}
        style["color"] = group_color(number)
        drawn += draw_flagged_rows(rows_ax, x, shown.values[group.rows], **style)
    total, some = len(path.weights), f"the {path.unit}s"
    if drawn < total:
        some = f"{drawn:,} of {total:,} {path.unit}s"
    rows_ax.set(title=f"{shown.title} of {some}", ylabel=shown.name, ylim=(0, None))
    return axes


def group_color(number: int) -> str:
    """Return the color of a group of rows."""
    return GROUP_COLORS[number % len(GROUP_COLORS)]


def name_groups(ax: Axes, path: FittedPath) -> None:
    """Write the rows that leave together beside the place where they leave."""
    values, x, names = row_values(path).values, path.eps_bars, short_names(row_names(path))
    lay_out(ax)
    taken: list[Any] = []
    along = np.c_[np.tile(x, len(values)), values.ravel()]
    for number, group in enumerate(leaving_groups(path)[:8]):
        text, color = rows_text(group.rows, names, path.unit), group_color(number)
        point = np.array([[x[group.at], values[group.rows, group.at].mean()]])
        taken += write_names(ax, point, [text], point, along, taken, color=color)


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


def some_lines(values: Array, most: int) -> Array:
    """Return at most `most` of some lines, shape (p, m), spread evenly over their ends."""
    if len(values) <= most:
        return values
    order = np.argsort(values[:, -1], kind="stable")
    return values[order[np.linspace(0, len(order) - 1, most).astype(int)]]


def mark_places(
    where: Any, axes: Sequence[Axes], path: FittedPath, lines: Sequence[tuple[str, Style]]
) -> None:
    """Mark jumps, the chosen value and the explanations in every panel, with a legend below.

    Parameters
    ----------
    where : matplotlib Figure or Axes
        Where the legend belongs.
    axes : sequence of matplotlib Axes
    path : path of any model
    lines : sequence of (str, dict)
        Names and styles of the lines that the legend explains besides.
    """
    runs = explanation_runs(path)
    colors, lines = explanation_colors(runs), list(lines)
    marks = [(float(place), JUMP) for place in jump_places(path)]
    if marks:
        lines.append(("jump", JUMP))
    if path.choice is not None:
        marks.append((path.choice.eps_bar, CHOSEN))
        lines.append((f"chosen: {path.choice.eps_bar:g}", CHOSEN))
    pixels = pixels_per_point(axes[0])
    for ax in axes:
        for place, style in marks:
            ax.axvline(place, **style)
        limits = ax.get_xlim()
        for run in runs:  # a band above the panel
            band: Style = {"color": colors[run.name], "linewidth": 0, "clip_on": False}
            ax.axvspan(run.left, run.right, 1.0, 1 + BAND, **band)
        ax.set_xlim(limits)
        if runs:
            ax.set_title(ax.get_title(), pad=BAND * ax.bbox.height / pixels + 4)
    line = import_module("matplotlib.lines").Line2D
    patch = import_module("matplotlib.patches").Patch
    handles = [line([], [], **style, label=name) for name, style in lines]
    handles += [patch(color=colors[name], label=f"explanation: {name}") for name in colors]
    if handles:
        longest = max(len(handle.get_label()) for handle in handles)
        room = int(
            where.bbox.width / pixels / (5.6 * longest + 42)
        )  # a letter, and the sample of a line
        below: Style = {"loc": "outside lower center"}
        if where in axes:  # four lines of text below the panel
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 4.0}
        columns = max(min(len(handles), room), 1)
        where.legend(handles=handles, ncols=columns, frameon=False, **below)


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
    fig, ax = one_axes(ax, checked_picture("plot_path_weights", path).size)
    shown, at, total = row_values(path), leaving_positions(path), len(path.weights)
    rows = most_suspicious(path, 200)
    rows = rows[np.lexsort((shown.kept.sum(axis=1)[rows], at[rows]))]
    x, y = value_edges(path.eps_bars), np.arange(len(rows) + 1) - 0.5
    image = ax.pcolormesh(x, y, shown.values[rows], **shown.colors, rasterized=True)
    fig.colorbar(image, ax=ax, label=shown.name)
    ax.set(xlabel="eps_bar", ylabel=f"{path.unit}s, the first to leave at the top")
    if len(path.eps_bars) > 1:
        ax.set_xlim(path.eps_bars[0], path.eps_bars[-1])
    ax.invert_yaxis()
    if len(rows) < total:
        ax.set_title(f"{len(rows)} of {total:,} {path.unit}s, {shown.worst}")
    mark_places(ax, [ax], path, [])
    label_heat_map(ax, path, rows)
    return fig


def label_heat_map(ax: Axes, path: FittedPath, rows: Rows) -> None:
    """Label each row, or if there are many each group of rows that leave together.

    Parameters
    ----------
    ax : matplotlib Axes
    path : path of any model
    rows : ndarray of int
        In the order in which they leave.
    """
    names = short_names(row_names(path))
    if len(rows) <= 60:
        size = 8 if len(rows) <= 40 else 6.5
        ax.set_yticks(np.arange(len(rows)), [names[row] for row in rows], fontsize=size)
        return
    at, first = np.unique(leaving_positions(path)[rows], return_index=True)
    starts = np.r_[first, len(rows)]
    middles = (starts[1:] + starts[:-1] - 1) / 2
    lay_out(ax)
    gap = LINE * pixels_per_point(ax) / ax.bbox.height * len(rows)
    ticks, texts = [], []
    for merged in merged_places(middles, gap):
        block = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in merged])
        stays = at[merged[0]] == len(path.eps_bars)
        ticks.append(float(middles[merged].mean()))
        some = rows_text(np.sort(rows[block]), names, path.unit)
        texts.append(f"{len(block)} {path.unit}s stay" if stays else some)
    ax.set_yticks(ticks, texts, fontsize=FONT_SIZE)
    for start in starts[1:-1]:
        ax.axhline(start - 0.5, color="white", linewidth=0.4)


def merged_places(values: Array, gap: float) -> list[Rows]:
    """Return positions of values in groups, whose means are at least a gap apart.

    Parameters
    ----------
    values : ndarray, shape (p,)
    gap : float
    """
    order = np.argsort(values, kind="stable")
    groups = [np.array([i]) for i in order]
    if len(values) > 500:  # they are first put together in cells of a quarter of a gap
        cell = np.floor(values[order] / (0.25 * gap))
        groups = np.split(order, np.flatnonzero(np.diff(cell)) + 1)
    while True:
        distances = np.diff([values[group].mean() for group in groups])
        if not len(distances) or distances.min() >= gap:
            return [np.sort(group) for group in groups]
        k = int(distances.argmin())
        groups[k : k + 2] = [np.concatenate(groups[k : k + 2])]


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
    x, shown = path.eps_bars, path_residuals(path, level)
    values, outside = shown.values, shown.outside
    ax.fill_between(x, shown.low, shown.high, color="#F0E442", alpha=0.18, linewidth=0)
    for limit in (shown.high, shown.low) if (shown.low == -shown.high).all() else (shown.high,):
        ax.plot(x, limit, **CUTOFF)
    drawn = draw_rows_in_gray(ax, x, values[~outside.any(axis=1)])
    drawn += draw_flagged_rows(ax, x, values[outside.any(axis=1) & ~outside[:, -1]], **STAYS)
    ax.set(xlabel="eps_bar", ylabel=shown.name)
    ax.set_xlim(x[0] if len(x) > 1 else x[0] - 0.01, x[-1])
    if shown.far:
        ax.set_yscale("symlog", linthresh=float(shown.high.max()), linscale=1.5)
    ends = np.flatnonzero(outside[:, -1])
    ax.update_datalim(np.c_[np.tile(x, len(ends)), values[ends].ravel()])
    ax.autoscale_view()
    mark_places(ax, [ax], path, [(f"cutoff, {level:.1%}", CUTOFF)])
    drawn += draw_outside(ax, path, values, ends)
    if drawn < len(values):
        ax.title.set_text(f"{drawn:,} of {len(values):,} {path.unit}s are drawn")
    return fig


def draw_outside(ax: Axes, path: FittedPath, values: Array, rows: Rows) -> int:
    """Draw the rows that end outside the band, label their ends, and return how many are drawn."""
    lay_out(ax)
    ends = np.c_[np.repeat(path.eps_bars[-1], len(rows)), values[rows, -1]]
    heights = ax.transData.transform(ends)[:, 1]
    names, drawn = short_names(row_names(path)), 0
    for number, group in enumerate(merged_places(heights, LINE * pixels_per_point(ax))):
        color, some = group_color(number), rows[group]
        drawn += draw_flagged_rows(ax, path.eps_bars, values[some], linewidth=1.2, color=color)
        middle = ax.transData.inverted().transform((0.0, heights[group].mean()))[1]
        style: Style = {"va": "center", "color": color, "fontsize": FONT_SIZE}
        place, text = ax.get_yaxis_transform(), rows_text(some, names, path.unit)
        ax.annotate(text, (1.01, middle), xycoords=place, annotation_clip=False, **style)
    return drawn
