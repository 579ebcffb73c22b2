"""Several variables: distances and tolerance ellipses, principal components and their outliers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import chi2
from statsmodels.stats.weightstats import DescrStatsW

from rrmstats.plotting import canvas
from rrmstats.plotting.canvas import Style
from rrmstats.plotting.catalog import Array, Axes, Figure, Results, checked_picture

# A scree plot shows at most so many classical components that have no robust counterpart, and a
# biplot names at most so many arrows.
MOST_NAMES = 12


def plot_distances(
    results: Results, ax: Axes | None = None, level: float | None = None, label: int = 5
) -> Figure:
    """Plot robust against classical distances of the rows.

    Rows above the horizontal cutoff but left of the vertical one are masked: they pull the
    classical estimates so far towards themselves that they no longer look like outliers.

    Parameters
    ----------
    results : results of RRMCov
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows within the cutoffs, in (0, 1); rows beyond are flagged. By default
        it is 0.975, and the flags are those of `outliers`.
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_distances
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> res = rrmstats.RRMCov(hbk.exog, eps_bar=0.2).fit()
    >>> fig = plot_distances(res)
    >>> fig.axes[0].get_ylabel()
    'robust distance'
    """
    picture = checked_picture("plot_distances", results)
    if results.singular:
        raise ValueError(
            "the covariance is singular, so that rows off its hyperplane are infinitely far: "
            "there is nothing to plot; see hyperplane"
        )
    data, within = results.model.endog, canvas.cutoff_level(level)
    robust, cutoff = np.asarray(results.mahalanobis()), results.cutoff(within)
    classical = distances_from(*classical_moments(data, results.model.freq_weights), data)
    across = float(np.sqrt(chi2.ppf(within, data.shape[1])))
    fig, ax = axes_with_cutoffs(ax, picture.size, across, cutoff, within)
    ax.axline((cutoff, cutoff), slope=1, **canvas.REFERENCE, label="equal distances")
    names = {"xlabel": "classical distance", "ylabel": "robust distance", **canvas.FROM_ZERO}
    canvas.name_rows(canvas.draw_rows(ax, results, classical, robust, level, label, **names))
    return fig


def axes_with_cutoffs(
    ax: Axes | None, size: tuple[float, float], across: float, up: float, within: float
) -> tuple[Any, Any]:
    """Return a figure and axes with a cutoff in each direction, of clean rows within."""
    fig, ax = canvas.one_axes(ax, size)
    ax.axvline(across, **canvas.CUTOFF)
    ax.axhline(up, **canvas.CUTOFF, label=f"cutoffs, {within:.1%}")
    return fig, ax


def plot_ellipse(
    results: Results,
    variables: tuple[int | str, int | str] = (0, 1),
    level: float | None = None,
    ax: Axes | None = None,
    label: int = 5,
) -> Figure:
    """Plot the tolerance ellipse of two variables beside the classical one.

    Parameters
    ----------
    results : results of RRMCov
    variables : pair of int or str, optional
        The two variables, by position or name.
    level : float, optional
        Fraction of clean rows within the robust ellipse, in (0, 1); rows beyond are flagged. By
        default it is 0.975, and the flags are those of `outliers`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_ellipse
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> res = rrmstats.RRMCov(hbk.exog, eps_bar=0.2).fit()
    >>> fig = plot_ellipse(res, ("x1", "x3"))
    >>> fig.axes[0].get_xlabel(), fig.axes[0].get_ylabel()
    ('x1', 'x3')
    """
    picture = checked_picture("plot_ellipse", results)
    names = results.model.variables
    pair = variable_positions(variables, names)
    fig, ax = canvas.one_axes(ax, picture.size)
    data = results.model.endog[:, pair]
    robust = np.asarray(results.mean)[pair], np.asarray(results.cov)[np.ix_(pair, pair)]
    classical = classical_moments(data, results.model.freq_weights)
    inside = canvas.cutoff_level(level)
    radius = float(np.sqrt(chi2.ppf(inside, 2)))
    drawn = ((robust, canvas.ROBUST, "robust"), (classical, canvas.CLASSICAL, "classical"))
    for (mean, cov), style, name in drawn:
        lined: Style = {**style, **canvas.outline(len(data)), "label": f"{name}, {inside:.1%}"}
        ax.plot(*ellipse(mean, cov, radius).T, **lined)
    xlabel, ylabel = (canvas.plain(names[place]) for place in pair)
    axes: Style = {"xlabel": xlabel, "ylabel": ylabel}
    canvas.name_rows(canvas.draw_rows(ax, results, data[:, 0], data[:, 1], level, label, **axes))
    return fig


def variable_positions(variables: Iterable[int | str], names: Sequence[str]) -> list[int]:
    """Return the positions of two different variables given by position or name."""
    given = list(variables)
    known = [v in names if isinstance(v, str) else 0 <= v < len(names) for v in given]
    numbers = [names.index(v) if isinstance(v, str) else int(v) for v in given if all(known)]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"variables must be two of {', '.join(names)}, got {given!r}")
    return numbers


def classical_moments(data: Array, freq_weights: Array | None) -> tuple[Array, Array]:
    """Return the mean, shape (d,), and covariance, shape (d, d), of all rows."""
    moments = DescrStatsW(data, freq_weights, ddof=1)
    return moments.mean, np.asarray(moments.cov)


def distances_from(mean: Array, cov: Array, data: Array) -> Array:
    """Return Mahalanobis distances of the rows of data, shape (n,); `cov` may be singular."""
    unit = np.sqrt(np.diag(cov))
    unit = np.where(unit > 0, unit, 1.0)
    inverse = np.linalg.pinv(cov / np.outer(unit, unit), hermitian=True)
    return cdist(data / unit, [mean / unit], "mahalanobis", VI=inverse)[:, 0]


def ellipse(mean: Array, cov: Array, radius: float, count: int = 200) -> Array:
    """Return points at a given Mahalanobis distance from a mean, shape (count, 2)."""
    values, vectors = np.linalg.eigh(cov)
    angle = np.linspace(0, 2 * np.pi, count)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    return mean + radius * (circle * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def plot_scree(results: Results, ax: Axes | None = None) -> Figure:
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
    fig, ax = canvas.one_axes(ax, checked_picture("plot_scree", results).size)
    model, robust = results.model, np.asarray(results.eigenvals)
    mean, cov = classical_moments(model.endog / results.column_unit, model.freq_weights)
    around = cov if model.demean else cov + np.outer(mean, mean)
    classical = np.maximum(np.linalg.eigvalsh(around)[::-1], 0.0)
    classical = classical[: max(len(robust), MOST_NAMES)]
    numbers = np.arange(1, len(classical) + 1)
    ax.plot(numbers, classical, **canvas.CLASSICAL, marker="s", mfc="none", label="classical")
    name = "robust, with its share of the variance"
    ax.plot(numbers[: len(robust)], robust, **canvas.ROBUST, marker="o", label=name)
    ax.margins(x=0.1, y=0.15)
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="component", ylabel="variance")
    if classical.max() > 100 * min(classical.min(), robust.min()) > 0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    places, others = (np.c_[numbers[: len(curve)], curve] for curve in (robust, classical))
    both = np.vstack([places, others]).astype(float)
    canvas.legend_below(ax)
    canvas.lay_out(ax)
    shares = np.asarray(results.explained_variance_ratio)
    named = np.flatnonzero(shares[:MOST_NAMES] >= 0.005)  # others are written as 0 %
    canvas.write_names(ax, both[named], [f"{share:.0%}" for share in shares[named]], both)
    return fig


def plot_biplot(
    results: Results,
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
    fig, ax = canvas.one_axes(ax, picture.size)
    scores = np.asarray(results.scores)[:, pair]
    loadings = np.asarray(results.loadings)[:, pair]
    length = np.linalg.norm(loadings, axis=1).max()
    arrows = loadings * (0.6 * np.abs(scores).max() / length)
    style: Style = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.004, "zorder": 4}
    ax.quiver(*np.zeros((2, len(arrows))), *arrows.T, **style)
    ax.update_datalim(arrows)
    ratio = np.asarray(results.explained_variance_ratio)
    xlabel, ylabel = (f"component {c + 1} ({ratio[c]:.0%} of the variance)" for c in pair)
    total = len(loadings)
    some = f"The {MOST_NAMES} longest of {total} arrows are named." if total > MOST_NAMES else ""
    canvas.write_caption(ax, some, canvas.flags_note(results, level))
    axes: Style = {"xlabel": xlabel, "ylabel": ylabel}
    drawn = canvas.draw_rows(ax, results, scores[:, 0], scores[:, 1], level, label, **axes)
    canvas.legend_below(ax)
    canvas.lay_out(ax)
    longest = np.sort(np.argsort(-np.linalg.norm(arrows, axis=1), kind="stable")[:MOST_NAMES])
    names = [canvas.short_names(results.model.variables)[j] for j in longest]
    along = np.concatenate([share * arrows for share in np.linspace(0.1, 1.0, 10)])
    markers, ends = np.vstack([scores[drawn.flagged], along]), arrows[longest]
    others, outward = scores[~drawn.flagged], np.sign(ends)
    taken = canvas.write_names(ax, ends, names, markers, others, sides=outward, weight="bold")
    canvas.name_settled_rows(drawn, along, taken)
    return fig


def plot_outlier_map(
    results: Results, ax: Axes | None = None, level: float | None = None, label: int = 5
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
    size, within = checked_picture("plot_outlier_map", results).size, canvas.cutoff_level(level)
    each = float(np.sqrt(within))  # outliers() gives each of the two cutoffs this level
    cutoffs = results.score_cutoff(each), results.orthogonal_cutoff(each)
    fig, ax = axes_with_cutoffs(ax, size, *cutoffs, within)
    x, y = np.asarray(results.score_distance), np.asarray(results.orthogonal_distance)
    names = {"xlabel": "score distance", "ylabel": "orthogonal distance", **canvas.FROM_ZERO}
    canvas.write_caption(ax, canvas.flags_note(results, level))
    canvas.name_rows(canvas.draw_rows(ax, results, x, y, level, label, **names))
    return fig
