"""Principal components: their variances, a biplot, and a map of outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rrmstats.plotting.arrays import classical_variances
from rrmstats.plotting.canvas import (
    CLASSICAL,
    CUTOFF,
    FROM_ZERO,
    ROBUST,
    DrawnRows,
    cutoff_level,
    draw_rows,
    lay_out,
    one_axes,
)
from rrmstats.plotting.captions import flags_note, write_caption
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.legends import clear_legend
from rrmstats.plotting.names import (
    marker_boxes,
    name_rows,
    name_settled_rows,
    other_rows,
    settle,
    short_names,
    write_names,
)
from rrmstats.plotting.offers import Array, ComponentsResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A scree plot shows at most so many classical components that have no robust counterpart.
MOST_COMPONENTS = 12
# Its axis has room for fewer numbers than this.
MOST_TICKS = 20
# A smaller share of the variance is not written.
LEAST_SHARE = 0.005
# A biplot names at most so many arrows.
MOST_NAMES = 12
# Variances that differ by this factor are drawn on a logarithmic axis.
LOG_RATIO = 100


def plot_scree(results: ComponentsResults, ax: Axes | None = None) -> Figure:
    """Plot the variances along the components, beside those of the classical analysis.

    The axis is logarithmic if they differ by a factor of 100 or more.

    Parameters
    ----------
    results : results of RRMPCA
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_scree
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> res = rrmstats.RRMPCA(hbk.data, 2, eps_bar=0.2).fit()
    >>> fig = plot_scree(res)
    >>> fig.axes[0].get_ylabel()
    'variance'
    """
    picture = checked_picture("plot_scree", results)
    fig, ax = one_axes(ax, picture.size)
    model, robust = results.model, np.asarray(results.eigenvals)
    scaled = model.endog / np.asarray(results.column_unit)
    classical = classical_variances(scaled, model.demean, model.freq_weights)
    classical = classical[: max(len(robust), MOST_COMPONENTS)]
    numbers = np.arange(1, len(classical) + 1)
    ax.plot(numbers, classical, **CLASSICAL, marker="s", mfc="none", label="classical")
    name = "robust, with its share of the variance"
    ax.plot(numbers[: len(robust)], robust, **ROBUST, marker="o", label=name)
    ax.margins(x=0.1, y=0.15)
    ticks = numbers[:: 1 + len(numbers) // MOST_TICKS]
    ax.set(xlabel="component", ylabel="variance", xticks=ticks)
    if classical.max() > LOG_RATIO * min(classical.min(), robust.min()) > 0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    ax.legend()
    _write_shares(ax, results, classical)
    return fig


def _write_shares(ax: Axes, results: ComponentsResults, classical: Array) -> None:
    """Write the shares of the first components beside their variances, clear of the curves."""
    robust, shares = np.asarray(results.eigenvals), np.asarray(results.explained_variance_ratio)
    places = np.c_[np.arange(1.0, len(robust) + 1), robust]
    named = np.flatnonzero(shares[:MOST_COMPONENTS] >= LEAST_SHARE)
    others = np.c_[np.arange(1.0, len(classical) + 1), classical]
    lay_out(ax)
    if clear_legend(ax, marker_boxes(ax, *np.vstack([places, others]).T)):
        lay_out(ax)
    markers = marker_boxes(ax, *np.vstack([places, others]).T)
    write_names(ax, places[named], [f"{share:.0%}" for share in shares[named]], markers)


def plot_biplot(
    results: ComponentsResults,
    components: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    level: float | None = None,
    label: int = 5,
) -> Figure:
    """Plot the scores on two components with the variables as arrows.

    Parameters
    ----------
    results : results of RRMPCA
    components : pair of int, optional
        Which components, counted from zero.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows that are not flagged, in (0, 1); by default the flags are those of
        `outliers`.
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure
        The arrows are the loadings times a common factor; only their directions and relative
        lengths have a meaning. Of more than twelve, the twelve longest are named, and the caption
        says so.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_biplot
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> res = rrmstats.RRMPCA(hbk.data, 2, eps_bar=0.2).fit()
    >>> fig = plot_biplot(res)
    >>> [text.get_text() for text in fig.axes[0].texts[:4]]
    ['x1', 'x2', 'x3', 'y']
    """
    picture = checked_picture("plot_biplot", results)
    pair = list(components)
    q = np.size(results.eigenvals)
    if len(set(pair)) != 2 or not all(0 <= c < q for c in pair):
        raise ValueError(
            f"components must be two different numbers from 0 to {q - 1}, got {components!r}"
            + ("; fit with n_components=2 or more" if q < 2 else "")
        )
    fig, ax = one_axes(ax, picture.size)
    scores = np.asarray(results.scores)[:, pair]
    loadings = np.asarray(results.loadings)[:, pair]
    longest = np.linalg.norm(loadings, axis=1).max()
    arrows = loadings * (0.6 * np.abs(scores).max() / longest)
    _draw_arrows(ax, arrows)
    ratio = np.asarray(results.explained_variance_ratio)
    names = [f"component {c + 1} ({ratio[c]:.0%} of the variance)" for c in pair]
    settings = {"xlabel": names[0], "ylabel": names[1]}
    total = len(loadings)
    some = f"The {MOST_NAMES} longest of {total} arrows are named." if total > MOST_NAMES else ""
    write_caption(ax, some, flags_note(results, level))
    drawn = draw_rows(ax, results, scores[:, 0], scores[:, 1], level, label, **settings)
    settle(drawn)
    name_settled_rows(drawn, _name_arrows(drawn, arrows, results.model.variables))
    return fig


def _draw_arrows(ax: Axes, ends: Array) -> None:
    """Draw arrows from the origin to the ends, shape (d, 2)."""
    start = np.zeros(len(ends))
    ax.quiver(start, start, *ends.T, angles="xy", scale_units="xy", scale=1, width=0.004, zorder=4)
    ax.update_datalim(ends)


def _name_arrows(drawn: DrawnRows, ends: Array, names: list[str]) -> Array:
    """Name the longest arrows, and return the boxes of names and arrows, shape (m, 4)."""
    ax = drawn.ax
    order = np.argsort(-np.linalg.norm(ends, axis=1), kind="stable")
    longest = np.sort(order[:MOST_NAMES])
    along = np.concatenate([share * ends for share in np.linspace(0.1, 1.0, 10)])
    lines, shown = marker_boxes(ax, *along.T), [short_names(names)[j] for j in longest]
    flagged = marker_boxes(ax, drawn.x[drawn.flagged], drawn.y[drawn.flagged])
    markers, others = np.vstack([flagged, lines]), other_rows(drawn)
    boxes = write_names(
        ax, ends[longest], shown, markers, others=others, outward=True, weight="bold"
    )
    return np.vstack([boxes, lines])


def plot_outlier_map(
    results: ComponentsResults, ax: Axes | None = None, level: float | None = None, label: int = 5
) -> Figure:
    """Plot the distances of the rows from the subspace against those within it.

    Parameters
    ----------
    results : results of RRMPCA
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows within both cutoffs, in (0, 1); rows beyond are flagged. By
        default it is 0.975, and the flags are those of `outliers`.
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_outlier_map
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> res = rrmstats.RRMPCA(hbk.data, 2, eps_bar=0.2).fit()
    >>> fig = plot_outlier_map(res)
    >>> fig.axes[0].get_xlabel(), fig.axes[0].get_ylabel()
    ('score distance', 'orthogonal distance')
    """
    picture = checked_picture("plot_outlier_map", results)
    fig, ax = one_axes(ax, picture.size)
    drawn_level = cutoff_level(level)
    each = float(np.sqrt(drawn_level))  # outliers() gives each of the two cutoffs this level
    ax.axvline(results.score_cutoff(each), **CUTOFF)
    ax.axhline(results.orthogonal_cutoff(each), **CUTOFF, label=f"cutoffs, {drawn_level:.1%}")
    x, y = np.asarray(results.score_distance), np.asarray(results.orthogonal_distance)
    settings = {"xlabel": "score distance", "ylabel": "orthogonal distance", **FROM_ZERO}
    write_caption(ax, flags_note(results, level))
    name_rows(draw_rows(ax, results, x, y, level, label, **settings))
    return fig
