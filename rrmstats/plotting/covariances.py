"""Means and covariances: distances of the rows, and tolerance ellipses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import chi2

from rrmstats.plotting.arrays import (
    classical_moments,
    distances_from,
    ellipse,
    plain,
    variable_positions,
)
from rrmstats.plotting.canvas import (
    CLASSICAL,
    CUTOFF,
    FROM_ZERO,
    REFERENCE,
    ROBUST,
    cutoff_level,
    draw_rows,
    one_axes,
    outline,
)
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.names import name_rows
from rrmstats.plotting.offers import CovarianceResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_distances(
    results: CovarianceResults, ax: Axes | None = None, level: float | None = None, label: int = 5
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
    fig, ax = one_axes(ax, picture.size)
    data = results.model.endog
    robust = np.asarray(results.mahalanobis())
    classical = distances_from(*classical_moments(data, results.model.freq_weights), data)
    drawn_level = cutoff_level(level)
    cutoff = results.cutoff(drawn_level)
    ax.axvline(np.sqrt(chi2.ppf(drawn_level, data.shape[1])), **CUTOFF)
    ax.axhline(cutoff, **CUTOFF, label=f"cutoffs, {drawn_level:.1%}")
    ax.axline((cutoff, cutoff), slope=1, **REFERENCE, label="equal distances")
    settings = {"xlabel": "classical distance", "ylabel": "robust distance", **FROM_ZERO}
    name_rows(draw_rows(ax, results, classical, robust, level, label, **settings))
    return fig


def plot_ellipse(
    results: CovarianceResults,
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
    fig, ax = one_axes(ax, picture.size)
    data = results.model.endog[:, pair]
    mean, cov = np.asarray(results.mean)[pair], np.asarray(results.cov)[np.ix_(pair, pair)]
    classical = classical_moments(data, results.model.freq_weights)
    inside = cutoff_level(level)
    radius = float(np.sqrt(chi2.ppf(inside, 2)))
    edge = outline(data)
    ax.plot(*ellipse(mean, cov, radius).T, **ROBUST, **edge, label=f"robust, {inside:.1%}")
    around = ellipse(*classical, radius)
    ax.plot(*around.T, **CLASSICAL, **edge, label=f"classical, {inside:.1%}")
    settings = {"xlabel": plain(names[pair[0]]), "ylabel": plain(names[pair[1]])}
    name_rows(draw_rows(ax, results, data[:, 0], data[:, 1], level, label, **settings))
    return fig
