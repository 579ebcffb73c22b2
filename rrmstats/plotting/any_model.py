"""Pictures of the results of any model: the explanation of the rows, weights, and iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from rrmstats.plotting import canvas
from rrmstats.plotting.canvas import Style
from rrmstats.plotting.catalog import SMALL, Array, Axes, Figure, Flags, Results, checked_picture

GOOD: Style = {"color": canvas.BLUE, "linewidth": 1.8}
BAD: Style = {"color": canvas.VERMILLION, "linewidth": 1.8, "linestyle": "--"}
SUM: Style = {"color": "black", "linewidth": 0.9}
# Name and marker of each kind of step.
STEPS = {
    "start": ("start", "s"),
    "newton": ("Newton step", "o"),
    "quasi-newton": ("quasi-Newton step", "^"),
    "algorithm 1": ("Algorithm 1", "D"),
    "extrapolated": ("extrapolated step", "v"),
    "second step": ("second step", "*"),
}


def plot_explanation(results: Results, ax: Axes | None = None, label: int = 5) -> Figure:
    """Plot how the second step explains the rows.

    A histogram of standardized residuals or distances, in which flagged rows have their own
    color, with the densities of good and of bad rows, each times its share, and their sum. Of
    models whose explanation has no simple density, such as those of counts, the histogram alone.
    Labels of 0 and 1 are drawn by their predicted probability, the flagged ones as triangles.

    Where rows are very far out the axis is compressed away from zero, in such a way that areas
    remain shares.

    Parameters
    ----------
    results : results of two steps, of any model that explains its rows
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged labels to label by their index.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_explanation
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> fig = plot_explanation(rrmstats.ols("log_light ~ log_te", stars).fit())
    >>> fig.axes[0].get_xlabel()
    'standardized residual'
    """
    picture = checked_picture("plot_explanation", results)
    if not is_explained(results):
        raise ValueError(
            "plot_explanation needs an explanation of the rows: a second step, fit(steps=2), of a "
            "model that has one, with eps_bar > 0 and noise"
        )
    fig, ax = canvas.one_axes(ax, picture.size)
    drawn = draw_explanation(ax, results, None, label)
    flagged = canvas.flagged_rows(results)
    inside, note = int((flagged & canvas.score_outliers(results)).sum()), ""
    if 0 < inside < flagged.sum():
        rows = "1 flagged row is" if inside == 1 else f"{inside:,} flagged rows are"
        note = f"{rows} far from the center, but in the subspace."
    canvas.write_caption(ax, results.explanation.sentence, note)
    canvas.name_rows(drawn)
    return fig


def is_explained(results: Results) -> bool:
    """Tell whether the rows have an explanation that can be drawn."""
    if getattr(results, "explanation", None) is None or results.eps_bar == 0:
        return False
    return has_labels(results) or bool(np.isfinite(results.explained_distances().values).all())


def has_labels(results: Results) -> bool:
    """Tell whether the responses are labels 0 and 1."""
    if "pred_table" in dir(results):
        return True
    family = type(getattr(results.model, "family", None)).__name__
    return family == "Binomial" and bool(np.isin(results.model.endog, (0, 1)).all())


def draw_explanation(
    ax: Axes, results: Results, level: float | None, label: int
) -> canvas.DrawnRows:
    """Draw the explanation, and return the rows to be named, which a histogram has not."""
    shown, unit = canvas.weighed(results)
    if not has_labels(results) or unit == "group":
        draw_histogram(ax, results, canvas.flagged_rows(shown, level))
        return canvas.DrawnRows(ax, results, canvas.NO_POINTS, canvas.flagged_rows(results), 0)
    labels = np.asarray(results.model.endog, dtype=float)
    x = logit(np.clip(np.asarray(results.predict(), dtype=float), 1e-4, 1 - 1e-4))
    # Labels of a kind are near one height; multiples of the golden ratio keep neighbors apart.
    y = labels + 0.5 * (np.arange(len(labels)) * (np.sqrt(5) - 1) / 2 % 1 - 0.5)
    settings: Style = {"xlabel": "predicted probability of 1", "ylim": (-0.4, 1.4)}
    drawn = canvas.draw_rows(ax, results, x, y, level, label, **settings)
    ax.set_yticks([0, 1], ["labeled 0", "labeled 1"])
    usual = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
    ticks = [p for p in usual if x.min() <= logit(p) <= x.max()]
    ax.set_xticks([float(logit(p)) for p in ticks], [f"{p:g}" for p in ticks])
    return drawn


def draw_histogram(ax: Axes, results: Results, flagged: Flags) -> None:
    """Draw residuals or distances of good and bad rows, or groups, with their densities."""
    shown = results.explained_distances()
    values, counts = np.asarray(shown.values), results.model.freq_weights
    if canvas.weighed(results)[1] == "group" or counts is None:
        counts = np.ones(len(values))
    good = values[~flagged] if (~flagged).any() else values
    width = max(float(np.abs(good).max()), 3.0)
    width = width if np.abs(values).max() > 4 * width else np.inf  # else nothing is compressed
    places = axis_places(values, width)
    edges = bin_edges(places, axis_places(good, width))
    ends = axis_places(edges, width, inverse=True)
    heights = np.zeros(len(edges) - 1)
    for rows, color, name in (
        (~flagged, canvas.SKY, "not flagged"),
        (flagged, canvas.VERMILLION, "flagged"),
    ):
        if rows.any():
            area = np.histogram(places[rows], edges, weights=counts[rows])[0] / counts.sum()
            style: Style = {"color": color, "alpha": 0.45, "linewidth": 0, "fill": True}
            top = heights + area / np.diff(edges)
            ax.stairs(top, ends, baseline=heights, label=f"{name} ({rows.sum():,})", **style)
            heights = top
    if shown.densities is not None:
        beyond = 0.05 * (edges[-1] - edges[0])
        low = edges[0] - beyond if edges[0] < 0 else max(edges[0] - beyond, 0.0)
        at = axis_places(np.linspace(low, edges[-1] + beyond, 400), width, inverse=True)
        stretch = np.sqrt(1 + (at / width) ** 2)  # of the axis: areas remain shares
        of_good, of_bad = (stretch * each for each in shown.densities(at))
        ax.plot(at, of_good, **GOOD, label="density of good rows")
        if of_bad.any():
            ax.plot(at, of_bad, **BAD, label="density of bad rows")
            ax.plot(at, of_good + of_bad, **SUM, label="their sum")
    if np.isfinite(width):
        ax.set_xscale("asinh", linear_width=width)
        ticks = compressed_ticks(*ax.get_xlim(), width)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    ax.set(xlabel=shown.name, ylabel="density", ylim=(0, None))


def axis_places(values: Array, width: float, inverse: bool = False) -> Array:
    """Return where values are on an axis that is logarithmic beyond a width; or values there."""
    if np.isinf(width):
        return values
    return width * np.sinh(values / width) if inverse else width * np.arcsinh(values / width)


def compressed_ticks(low: float, high: float, width: float) -> Array:
    """Return round numbers for an axis that is logarithmic beyond a width, well apart on it.

    Examples
    --------
    >>> from rrmstats.plotting.any_model import compressed_ticks
    >>> compressed_ticks(-3.0, 60.0, 3.0)
    array([-2.,  0.,  2.,  5., 10., 20., 50.])
    """
    ends = axis_places(np.array([low, high]), width)
    powers = 10.0 ** np.arange(np.ceil(np.log10(max(-low, high, 10.0))) + 1)
    ticks = [0.0]
    for side in (-1, 1):
        last = 0.0
        for value in side * np.outer(powers, (1.0, 2.0, 5.0)).ravel():
            place = float(axis_places(np.array(value), width))
            if low <= value <= high and abs(place - last) >= 0.08 * np.ptp(ends):
                ticks, last = [*ticks, value], place
    return np.sort([tick for tick in ticks if low <= tick <= high])


def bin_edges(values: Array, good: Array) -> Array:
    """Return the edges of bins of one width for all values, by Scott's rule for the good ones.

    Parameters
    ----------
    values, good : ndarray, shapes (n,) and (p,)
    """
    scott = float(np.diff(np.histogram_bin_edges(good, "scott"))[0])
    width = max(scott, float(np.ptp(values)) / 200)  # bins at most
    count = int(np.ptp(values) // width) + 1
    return values.min() + width * np.arange(count + 1)


def plot_weights(
    results: Results, against: str = "index", ax: Axes | None = None, label: int = 5
) -> Figure:
    """Plot the weights of the rows, or of the groups of a model that has groups.

    In two steps the color of a row tells how likely it is bad.

    Parameters
    ----------
    results : results of any model
    against : {"index", "losses"}, optional
        What the horizontal axis shows: positions of the rows or their losses.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged rows to label by their index, those most likely bad or of least
        weight first.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_weights
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> fig = plot_weights(res, against="losses")
    >>> fig.axes[0].get_xlabel()
    'loss'
    """
    if against not in ("index", "losses"):
        raise ValueError(f"against must be 'index' or 'losses', got {against!r}")
    fig, ax = canvas.one_axes(ax, checked_picture("plot_weights", results).size)
    drawn = draw_weights(ax, results, against, label)
    canvas.write_caption(ax, weights_note(results))
    canvas.name_rows(drawn)
    return fig


def weights_note(results: Results, level: float | None = None) -> str:
    """Return why flagged rows, or groups of a model that has them, have large weights."""
    shown, unit = canvas.weighed(results)
    return canvas.large_weights_note(shown, level, unit)


def draw_weights(ax: Axes, results: Results, against: str, label: int) -> canvas.DrawnRows:
    """Draw the weights by position of the row or group, or by loss."""
    shown, unit = canvas.weighed(results)
    relative = np.asarray(shown.relative_weights)
    top = 1.1 * max(relative.max(), 1.0)
    settings: Style = {"xlabel": "loss", "ylabel": "weight * n", "ylim": (-0.06 * top, top)}
    x = np.asarray(shown.losses)
    if against == "index":
        x, settings["xlabel"] = np.arange(float(len(relative))), unit
        ax.locator_params(axis="x", integer=True)
    ax.axhline(1.0, **canvas.CUTOFF, label="equal weights")
    colored = getattr(shown, "prob_bad", None) is not None
    return canvas.draw_rows(ax, shown, x, relative, None, label, unit, colored, **settings)


def plot_trace(results: Results, fig: Figure | None = None) -> Figure:
    """Plot the risk and lambda by iteration; a dotted line marks where the second step begins.

    Parameters
    ----------
    results : results of any model
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.

    Returns
    -------
    matplotlib Figure
        With two axes, the risk above lambda.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_trace
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> fig = plot_trace(res)
    >>> [ax.get_ylabel() for ax in fig.axes]
    ['risk', 'lambda']
    """
    size = checked_picture("plot_trace", results).size
    figure: Any = canvas.new_figure(size) if fig is None else fig
    (risk_ax, lambda_ax), trace = figure.subplots(2, 1, sharex=True), results.trace
    draw_column(risk_ax, trace, "risk", canvas.BLUE)
    draw_column(lambda_ax, trace, "lambda_", canvas.VERMILLION)
    lambda_ax.set(xlabel="iteration", xlim=(-0.6, len(trace) - 0.4))
    lambda_ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    if results.steps == 2:
        second = trace["step"].to_numpy() == "second step"
        where = (int(second.argmax()) if second.any() else len(second)) - 0.5
        for ax in (risk_ax, lambda_ax):
            ax.axvline(where, **canvas.CUTOFF)
        text = "second step begins" if second.any() else "the second step kept the first"
        above: Style = {"xytext": (0, 3), "textcoords": "offset points", "va": "bottom"}
        above["ha"] = "right" if where > len(second) / 2 else "left"
        # Above the panel, where no legend can cover it.
        place = risk_ax.get_xaxis_transform()
        risk_ax.annotate(text, (where, 1.0), xycoords=place, fontsize=canvas.FONT_SIZE, **above)
    canvas.legend_below(lambda_ax)
    return figure


def draw_column(ax: Axes, trace: pd.DataFrame, column: str, color: str) -> None:
    """Draw a column of a trace, each iteration marked by its kind."""
    values = trace[column].to_numpy(float)
    values = np.where(np.isfinite(values), values, np.nan)
    iteration = trace.index.to_numpy()
    ax.plot(iteration, values, color=color)
    for step, (name, marker) in STEPS.items():
        here = (trace["step"] == step).to_numpy()
        if here.any():
            ax.plot(iteration[here], values[here], marker, color=color, label=name)
    ax.set_ylabel(column.rstrip("_"))
    if np.isnan(values).all():
        ax.set_yticks([])
        text = "infinite: all rows have equal weights"
        ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")
    else:
        ax.set_ylim(*value_limits(values))


def value_limits(values: Array) -> tuple[float, float]:
    """Return limits with room around the finite values, and not so close that ticks look equal."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = max(0.15 * (high - low), 1e-3 * max(abs(low), abs(high)), np.finfo(float).tiny)
    return low - room, high + room


def plot_few_rows(found: Any, ax: Axes | None = None) -> Figure:
    """Plot an estimate against the number of rows removed.

    Refits with their 95 % intervals, of those with as many rows the one that moved most, and what
    influence functions tell of the fit to all rows.

    Parameters
    ----------
    found : FewRows
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats, statsmodels.formula.api as smf
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> few = rrmstats.few_rows(smf.ols("log_light ~ log_te", stars).fit(), "log_te")
    >>> few.plot().axes[0].get_ylabel()
    'log_te'
    """
    fig, ax = canvas.one_axes(ax, SMALL)
    side = 1.0 if found.after.estimate >= found.before.estimate else -1.0
    order = np.argsort(-side * found.refits["estimate"], kind="stable")
    best = found.refits.iloc[order].groupby("n_removed").first()
    moves = side * np.sort(side * found.moves)[::-1][: best.index.max()]
    told = found.before.estimate + np.r_[0.0, np.cumsum(moves)]
    ax.axhline(0.0, **canvas.CUTOFF)
    ax.plot(np.arange(len(told)), told, label="influence functions", **canvas.CLASSICAL)
    bars = 1.96 * best["bse"]
    ax.errorbar(best.index, best["estimate"], bars, fmt="none", ecolor=canvas.BLUE, elinewidth=1)
    ax.plot(best.index, best["estimate"], linestyle="none", label="refits", **canvas.KEPT)
    ax.set(xlabel="rows removed", ylabel=found.term)
    ax.locator_params(axis="x", integer=True)
    canvas.legend_below(ax)
    return fig
