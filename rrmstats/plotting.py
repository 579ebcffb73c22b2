"""Pictures of fits, in statsmodels' manners: a Figure is returned and nothing is shown.

Rows that look wrong are drawn as triangles, the rest as circles; robust fits as solid lines,
classical ones as dashed. The colours are those of Okabe and Ito, which colour-blind people tell
apart. matplotlib is imported when a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import chi2, norm

from rrmstats.bootstrap import optional
from rrmstats.core import minimise
from rrmstats.core.consistency import second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import relative_weights
from rrmstats.core.scatter import ScatterProblem, check_range, unit_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "plot_biplot",
    "plot_diagnostics",
    "plot_distances",
    "plot_ellipse",
    "plot_fit",
    "plot_outlier_map",
    "plot_reliability",
    "plot_scree",
    "plot_separation",
    "plot_trace",
    "plot_weights",
]

BLUE, VERMILLION, ORANGE, SKY = "#0072B2", "#D55E00", "#E69F00", "#56B4E9"
GREY = "#666666"
KEPT: dict[str, Any] = {"marker": "o", "color": BLUE, "markerfacecolor": "none", "markersize": 5}
FLAGGED: dict[str, Any] = {"marker": "^", "color": VERMILLION, "markersize": 6}
ROBUST: dict[str, Any] = {"linestyle": "-", "color": BLUE}
CLASSICAL: dict[str, Any] = {"linestyle": "--", "color": VERMILLION}
FROM_ZERO: dict[str, Any] = {"xlim": (0, None), "ylim": (0, None)}
CUTOFF: dict[str, Any] = {"linestyle": ":", "color": GREY, "linewidth": 1.2}
# Rows beyond which points are drawn as an image, which in SVG and PDF would else be a path each.
MANY_ROWS = 5000
# Weights, times n, below which a row counts as given up where the results name no outliers.
SMALL_WEIGHT = 0.1
# Variances of a design, in units of its spread, below which it counts as flat.
FLAT_DESIGN = 1e-8
# Names of points: size in points, and where around the point they may stand.
NAME_SIZE = 8
NEAR_PLACES = [(5, 4), (-5, 4), (5, -4), (-5, -4), (0, 5), (0, -5)]
# Names farther off, in points, are tied to their point by a line.
FAR_PLACES = [(sx * r, sy * r) for r in (13, 21, 29) for sy in (1, -1) for sx in (1, -1, 0)]
NAME_NEAR = 5
# Half the size of a marker, in points: names keep off it.
MARKER_RADIUS = 4
# Most components that a scree plot shows of the classical analysis, and the ratio of variances
# from which its axis is logarithmic.
MOST_COMPONENTS = 12
LOG_RATIO = 100


def plot_weights(
    results: Any, against: str = "index", ax: Axes | None = None, label: int = 5
) -> Figure:
    """Plot the weights of the rows.

    Parameters
    ----------
    results : results of any model
    against : {"index", "losses"}, optional
        What the horizontal axis shows: positions of the rows or their losses.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged rows to label by their index, those of least weight first.

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
    check_data(results, "plot_weights")
    fig, ax = _one_axes(ax)
    _name_rows(_draw_weights(ax, results, against, label))
    return fig


def plot_trace(results: Any, fig: Figure | None = None) -> Figure:
    """Plot the risk and lambda by iteration.

    Parameters
    ----------
    results : results of any model
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.

    Returns
    -------
    matplotlib Figure
        With two axes, the risk over lambda.

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
    trace = results.trace
    fig, axes = _grid(fig, 2, 1, (6.4, 4.8), sharex=True)
    kinds = {"start": "s", "newton": "o", "algorithm 1": "D"}
    for ax, column, colour in zip(axes, ("risk", "lambda_"), (BLUE, VERMILLION), strict=True):
        values = trace[column].to_numpy(float)
        values = np.where(np.isfinite(values), values, np.nan)
        ax.plot(trace.index, values, color=colour)
        for kind, marker in kinds.items():
            here = (trace["step"] == kind).to_numpy()
            if here.any():
                name = {"start": "start", "newton": "Newton step"}.get(kind, "Algorithm 1")
                ax.plot(trace.index[here], values[here], marker, color=colour, label=name)
        ax.set_ylabel(column.rstrip("_"))
        ax.margins(y=0.15)
    axes[1].set_xlabel("iteration")
    axes[1].xaxis.get_major_locator().set_params(integer=True)
    axes[0].legend()
    return fig


def plot_diagnostics(
    results: Any, fig: Figure | None = None, level: float = 0.975, label: int = 5
) -> Figure:
    """Plot a page of diagnostics of a linear regression.

    Residuals against robust distances of the rows of the design, which tell good from bad
    leverage points; a QQ plot; the weights; and the roots of the residuals against the fit.
    Where the design has no robust distances, as with dummies alone, leverages stand for them.

    Parameters
    ----------
    results : results of RRMOLS
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.
    level : float, optional
        Fraction of clean rows within the cut-offs, in (0, 1).
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure
        With four axes.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_diagnostics
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> fig = plot_diagnostics(res)
    >>> [ax.get_title() for ax in fig.axes]
    ['Residuals and leverage', 'Normal QQ', 'Weights', 'Scale and location']
    """
    check_model(results, "RRMOLS", "plot_diagnostics")
    check_data(results, "plot_diagnostics")
    fig, axes = _grid(fig, 2, 2, (9.6, 7.6))
    (leverage_ax, qq_ax), (weights_ax, scale_ax) = axes
    drawn = [
        _draw_leverage(leverage_ax, results, level, label),
        _draw_qq(qq_ax, results, level, label),
        _draw_weights(weights_ax, results, "index", label),
        _draw_scale_location(scale_ax, results, level, label),
    ]
    titles = ["Residuals and leverage", "Normal QQ", "Weights", "Scale and location"]
    for ax, title in zip(axes.flat, titles, strict=True):
        ax.set_title(title)
    _name_rows(*drawn)
    return fig


def plot_fit(results: Any, ax: Axes | None = None, label: int = 5) -> Figure:
    """Plot a regression on one predictor, its weights as colours, beside least squares.

    Parameters
    ----------
    results : results of RRMOLS
        The design has one column that varies, and may have a constant.
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
    >>> from rrmstats.plotting import plot_fit
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> fig = plot_fit(res)
    >>> fig.axes[0].get_xlabel(), fig.axes[0].get_ylabel()
    ('log_te', 'log_light')
    """
    check_model(results, "RRMOLS", "plot_fit")
    check_data(results, "plot_fit")
    model = results.model
    column = only_predictor(model.exog, model.exog_names)
    fig, ax = _one_axes(ax)
    x, y = model.exog[:, column], model.endog
    relative, flagged = weights_times_n(results), flags(results)
    scale = import_module("matplotlib.colors").Normalize(0.0, float(relative.max()))
    for rows, marker, name in ((~flagged, "o", "row"), (flagged, "^", "flagged")):
        if rows.any():
            points = ax.scatter(
                x[rows],
                y[rows],
                c=relative[rows],
                marker=marker,
                s=36 if len(x) <= MANY_ROWS else 9,
                cmap="cividis_r",
                norm=scale,
                edgecolors=GREY,
                linewidths=0.7,
                label=name,
                zorder=3,
                rasterized=len(x) > MANY_ROWS,
            )
    grid = np.repeat(model.exog[:1], 2, axis=0)
    grid[:, column] = x.min(), x.max()
    least_squares = least_squares_params(model.exog, y, model._prior)
    ax.plot(grid[:, column], grid @ np.asarray(results.params), **ROBUST, zorder=4, label="robust")
    ax.plot(grid[:, column], grid @ least_squares, **CLASSICAL, zorder=4, label="least squares")
    fig.colorbar(points, ax=ax, label="weight * n")
    ax.set(xlabel=model.exog_names[column], ylabel=model.endog_names)
    ax.margins(0.08)
    _add_legend(ax, x, y)
    _name_rows(Drawn(ax, results, x, y, flagged, label))
    return fig


def plot_distances(
    results: Any, ax: Axes | None = None, level: float = 0.975, label: int = 5
) -> Figure:
    """Plot robust against classical distances of the rows.

    Rows over the horizontal cut-off but left of the vertical one are masked: they made the
    classical estimates their own.

    Parameters
    ----------
    results : results of RRMCov
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows within the cut-offs, in (0, 1).
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
    check_model(results, "RRMCov", "plot_distances")
    check_data(results, "plot_distances")
    if results.singular:
        raise ValueError(
            "the covariance is singular, so that rows off its hyperplane are infinitely far: "
            "there is nothing to plot; see hyperplane"
        )
    fig, ax = _one_axes(ax)
    data = results.model.endog
    robust = np.asarray(results.mahalanobis())
    classical = distances(data, *classical_moments(data, results.model._prior))
    cutoff = np.sqrt(chi2.ppf(level, data.shape[1]))
    ax.axvline(cutoff, **CUTOFF)
    ax.axhline(cutoff, **CUTOFF, label=f"cut-offs, {level:.1%}")
    ax.axline((cutoff, cutoff), slope=1, color=GREY, linewidth=0.8, label="equal distances")
    names = {"xlabel": "classical distance", "ylabel": "robust distance"}
    _name_rows(_draw_rows(ax, results, classical, robust, level, label, **names, **FROM_ZERO))
    return fig


def plot_ellipse(
    results: Any,
    variables: tuple[int | str, int | str] = (0, 1),
    level: float = 0.975,
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
        Fraction of clean rows within the robust ellipse, in (0, 1).
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
    check_model(results, "RRMCov", "plot_ellipse")
    check_data(results, "plot_ellipse")
    names = results.model.variables
    pair = variable_numbers(variables, names)
    fig, ax = _one_axes(ax)
    data = results.model.endog[:, pair]
    radius = float(np.sqrt(chi2.ppf(level, 2)))
    cov = np.asarray(results.cov)[np.ix_(pair, pair)]
    robust = ellipse(np.asarray(results.mean)[pair], cov, radius)
    classical = ellipse(*classical_moments(data, results.model._prior), radius)
    ax.plot(*robust.T, **ROBUST, label=f"robust, {level:.1%}")
    ax.plot(*classical.T, **CLASSICAL, label=f"classical, {level:.1%}")
    labels = {"xlabel": names[pair[0]], "ylabel": names[pair[1]]}
    _name_rows(_draw_rows(ax, results, data[:, 0], data[:, 1], level, label, **labels))
    return fig


def plot_scree(results: Any, ax: Axes | None = None) -> Figure:
    """Plot the variances along the components, beside those of the classical analysis.

    The axis is logarithmic where they differ by a factor of 100 or more.

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
    check_model(results, "RRMPCA", "plot_scree")
    check_data(results, "plot_scree")
    fig, ax = _one_axes(ax)
    model = results.model
    robust = np.asarray(results.eigenvals)
    scaled = model.endog / results._column_unit
    classical = classical_variances(scaled, model.demean, model._prior)
    classical = classical[: max(len(robust), MOST_COMPONENTS)]
    places = np.arange(1, len(classical) + 1)
    ax.plot(places, classical, **CLASSICAL, marker="s", mfc="none", label="classical")
    name = "robust, with its share of the variance"
    ax.plot(places[: len(robust)], robust, **ROBUST, marker="o", label=name)
    ratio = np.asarray(results.explained_variance_ratio)
    for place, value, share in zip(places, robust, ratio, strict=False):
        _name(ax, (place, value), f"{share:.0%}", (6, 4))
    ax.margins(x=0.1, y=0.15)
    ax.set(xlabel="component", ylabel="variance", xticks=places)
    if classical.max() > LOG_RATIO * min(classical.min(), robust.min()) > 0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    ax.legend()
    return fig


def plot_biplot(
    results: Any,
    components: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    level: float = 0.975,
    label: int = 5,
) -> Figure:
    """Plot the scores on two components with the variables as arrows.

    Parameters
    ----------
    results : results of RRMPCA
    components : pair of int, optional
        Which components, from zero.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows that are not flagged, in (0, 1).
    label : int, optional
        How many of the flagged rows to label by their index.

    Returns
    -------
    matplotlib Figure
        The arrows are the loadings times one factor; only their directions and relative
        lengths mean anything.

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
    check_model(results, "RRMPCA", "plot_biplot")
    check_data(results, "plot_biplot")
    pair = list(components)
    q = len(results.eigenvals)
    if len(set(pair)) != 2 or not all(0 <= c < q for c in pair):
        raise ValueError(
            f"components must be two different numbers from 0 to {q - 1}, got {components!r}"
            + ("; fit with n_components=2 or more" if q < 2 else "")
        )
    fig, ax = _one_axes(ax)
    scores = np.asarray(results.scores)[:, pair]
    loadings = np.asarray(results.loadings)[:, pair]
    length = np.linalg.norm(loadings, axis=1)
    ends = loadings * (0.6 * np.abs(scores).max() / length.max())
    start = np.zeros(len(ends))
    ax.quiver(start, start, *ends.T, angles="xy", scale_units="xy", scale=1, width=0.004, zorder=4)
    ax.update_datalim(ends)
    for end, name in zip(ends, results.model.variables, strict=True):
        _name(ax, end, name, np.copysign(3, end), weight="bold")
    ratio = np.asarray(results.explained_variance_ratio)
    names = [f"component {c + 1} ({ratio[c]:.0%} of the variance)" for c in pair]
    labels = {"xlabel": names[0], "ylabel": names[1]}
    _name_rows(_draw_rows(ax, results, scores[:, 0], scores[:, 1], level, label, **labels))
    return fig


def plot_outlier_map(
    results: Any, ax: Axes | None = None, level: float = 0.975, label: int = 5
) -> Figure:
    """Plot the distances of the rows within the subspace against those from it.

    Parameters
    ----------
    results : results of RRMPCA
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    level : float, optional
        Fraction of clean rows within both cut-offs, in (0, 1).
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
    check_model(results, "RRMPCA", "plot_outlier_map")
    check_data(results, "plot_outlier_map")
    fig, ax = _one_axes(ax)
    each = float(np.sqrt(level))  # outliers() gives each of the two cut-offs this level
    ax.axvline(results.score_cutoff(each), **CUTOFF)
    ax.axhline(results.orthogonal_cutoff(each), **CUTOFF, label=f"cut-offs, {level:.1%}")
    x, y = np.asarray(results.score_distance), np.asarray(results.orthogonal_distance)
    names = {"xlabel": "score distance", "ylabel": "orthogonal distance"}
    _name_rows(_draw_rows(ax, results, x, y, level, label, **names, **FROM_ZERO))
    return fig


def plot_separation(results: Any, ax: Axes | None = None) -> Figure:
    """Plot labels in the order of their fitted probabilities.

    A dark band is a row labelled 1; where the model separates well they gather on the right.
    The line is the fitted probability, and triangles at the top show the flagged rows. Of the
    rows right of the marker at the bottom there are as many as the fit expects ones.

    Parameters
    ----------
    results : results of RRMLogit
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    References
    ----------
    Greenhill, Ward and Sacks (2011), "The separation plot: a new visual method for evaluating
    the fit of binary models", American Journal of Political Science 55, 991-1002.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_separation
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> fig = plot_separation(res)
    >>> fig.axes[0].get_ylabel()
    'fitted probability'
    """
    check_model(results, "RRMLogit", "plot_separation")
    check_data(results, "plot_separation")
    fig, ax = _one_axes(ax, (7.2, 3.2))
    probability, labels = fitted_probability(results), results.model.endog
    order = np.argsort(probability, kind="stable")
    n = len(order)
    bands = ax.stairs(labels[order], np.arange(n + 1) - 0.5, fill=True, color=SKY)
    bands.set(label="labelled 1", rasterized=n > MANY_ROWS)
    ax.plot(probability[order], color="black", linewidth=1.4, label="fitted probability")
    places = np.flatnonzero(flags(results)[order])
    style = {
        **FLAGGED,
        "marker": "v",
        "linestyle": "none",
        "clip_on": False,
        "rasterized": n > MANY_ROWS,
    }
    ax.plot(places, np.full(len(places), 1.04), **style, label=f"flagged ({len(places)})")
    expected = n - float(probability.sum())
    ax.plot(expected, -0.04, "^", color="black", clip_on=False, label="expected start of ones")
    ax.set(xlabel="rows by fitted probability", ylabel="fitted probability")
    ax.set(xlim=(-0.5, n - 0.5), ylim=(-0.08, 1.08))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.02), ncols=2)
    return fig


def plot_reliability(results: Any, ax: Axes | None = None, bins: int = 10) -> Figure:
    """Plot observed against fitted shares of ones, in groups of like probability.

    Parameters
    ----------
    results : results of RRMLogit
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    bins : int, optional
        Number of groups, of about equal size.

    Returns
    -------
    matplotlib Figure
        One curve for all rows and one without the flagged rows. Bars are Wilson's 95 %
        intervals.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_reliability
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> fig = plot_reliability(res, bins=5)
    >>> fig.axes[0].get_xlabel()
    'fitted probability'
    """
    check_model(results, "RRMLogit", "plot_reliability")
    check_data(results, "plot_reliability")
    if bins < 1:
        raise ValueError(f"bins must be 1 or more, got {bins!r}")
    fig, ax = _one_axes(ax, (5.4, 5.0))
    probability, labels = fitted_probability(results), results.model.endog
    kept = ~flags(results)
    ax.plot([0, 1], [0, 1], **CUTOFF, label="perfect")
    every = {**CLASSICAL, "marker": "s", "mfc": "none"}
    _draw_reliability(ax, probability, labels, bins, every, "all rows")
    if not kept.all():
        clean = {**ROBUST, "marker": "o"}
        name = f"without {(~kept).sum()} flagged"
        _draw_reliability(ax, probability[kept], labels[kept], bins, clean, name)
    ax.set(xlabel="fitted probability", ylabel="observed share of ones")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.legend()
    return fig


# What the pictures show, as arrays.


def check_model(results: Any, model: str, picture: str) -> None:
    """Raise where a picture is not for the results of this model."""
    own = type(results.model)
    if model not in {base.__name__ for base in own.__mro__}:
        raise TypeError(f"{picture} needs results of {model}, got those of {own.__name__}")


def check_data(results: Any, picture: str) -> None:
    """Raise where the results no longer hold their rows."""
    if results.weights is None:
        raise ValueError(f"{picture} needs the data, which remove_data dropped; fit again")


def weights_times_n(results: Any) -> Array:
    """Return the weights in units of equal ones, shape (n,)."""
    return relative_weights(np.asarray(results.weights), results._share)


def flags(results: Any, level: float = 0.975) -> np.ndarray:
    """Tell which rows look wrong, shape (n,)."""
    outliers = getattr(results, "outliers", None)
    if outliers is None:
        return weights_times_n(results) < SMALL_WEIGHT
    return np.asarray(outliers(level), dtype=bool)


def row_names(results: Any) -> list[str]:
    """Return the labels of the rows, or their positions where they have none."""
    labels = results.model.data.row_labels
    return [str(name) for name in (range(len(results.weights)) if labels is None else labels)]


def worst_rows(results: Any, flagged: np.ndarray, count: int) -> np.ndarray:
    """Return the flagged rows of least weight, those of larger loss first among equals."""
    order = np.lexsort((-np.asarray(results.losses), weights_times_n(results)))
    return order[flagged[order]][: max(count, 0)]


def standardised_residuals(results: Any) -> Array:
    """Return residuals in standard deviations; as they are where the fit is exact."""
    residual = np.asarray(results.resid)
    return residual / np.sqrt(results.scale) if results.scale > 0 else residual


def varying_columns(exog: Array) -> np.ndarray:
    """Return which columns of a design are not constant."""
    return np.flatnonzero(np.ptp(exog, axis=0) > 0)


def only_predictor(exog: Array, names: Sequence[str]) -> int:
    """Return the one column of a design that varies, or raise."""
    varying = varying_columns(exog)
    if len(varying) != 1:
        found = ", ".join(names[j] for j in varying) or "none"
        raise ValueError(f"plot_fit needs one predictor, got {found}; use plot_diagnostics")
    return int(varying[0])


def least_squares_params(exog: Array, endog: Array, prior: Array | None) -> Array:
    """Return the least squares fit, shape (k,)."""
    root = np.ones(len(endog)) if prior is None else np.sqrt(prior)
    return np.linalg.lstsq(exog * root[:, None], endog * root, rcond=None)[0]


def classical_moments(data: Array, prior: Array | None) -> tuple[Array, Array]:
    """Return the mean (d,) and covariance (d, d) that take every row for good."""
    total = len(data) if prior is None else prior.sum()
    share = np.full(len(data), 1 / total) if prior is None else prior / total
    mean = share @ data
    centred = data - mean
    return mean, centred.T @ (share[:, None] * centred) * total / max(total - 1, 1)


def classical_variances(data: Array, demean: bool, prior: Array | None) -> Array:
    """Return the variances along the classical components, largest first, shape (d,)."""
    mean, cov = classical_moments(data, prior)
    values = np.linalg.eigvalsh(cov if demean else cov + np.outer(mean, mean))
    return np.maximum(values[::-1], 0.0)


def distances(data: Array, mean: Array, cov: Array) -> Array:
    """Return distances from a mean in the metric of a covariance, shape (n,)."""
    unit = np.sqrt(np.diag(cov))
    unit = np.where(unit > 0, unit, 1.0)
    u = (data - mean) / unit
    inverse = np.linalg.pinv(cov / np.outer(unit, unit), hermitian=True)
    return np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", u, inverse, u), 0.0))


def design_distances(exog: Array, eps_bar: float, prior: Array | None = None) -> Array | None:
    """Return robust distances of the rows of a design, or None where it has none.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
        Design; constants play no part.
    eps_bar : float
        Upper bound on the fraction of corrupted rows.
    prior : ndarray, shape (n,), optional
        Prior weights of the rows.

    Returns
    -------
    ndarray, shape (n,), or None
        None without predictors, with too few rows, or where the design is flat in the rows
        with weight, as with rare dummies.
    """
    columns = exog[:, varying_columns(exog)]
    n, d = columns.shape
    if d == 0 or (1 - eps_bar) * n < 2 * (d + 1) or np.linalg.matrix_rank(columns) < d:
        return None
    centre, unit = unit_spread(columns)
    scaled = (columns - centre) / unit
    check_range(scaled)
    problem = ScatterProblem(scaled)
    location, scatter = problem.split(minimise(problem, eps_bar, prior=prior).theta)
    if np.linalg.eigvalsh(scatter)[0] < FLAT_DESIGN:
        return None
    return distances(scaled, location, scatter / second_moment_ratio(eps_bar, d))


def leverages(exog: Array, prior: Array | None = None) -> Array:
    """Return the diagonal of the hat matrix, shape (n,)."""
    root = np.ones(len(exog)) if prior is None else np.sqrt(prior)
    left, values, _ = np.linalg.svd(exog * root[:, None], full_matrices=False)
    used = values > values.max() * max(exog.shape) * np.finfo(float).eps
    return (left[:, used] ** 2).sum(axis=1)


def ellipse(mean: Array, cov: Array, radius: float, count: int = 200) -> Array:
    """Return points of the ellipse at a distance from a mean, shape (count, 2)."""
    values, vectors = np.linalg.eigh(cov)
    angle = np.linspace(0, 2 * np.pi, count)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    return mean + radius * (circle * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def variable_numbers(variables: Iterable[int | str], names: Sequence[str]) -> list[int]:
    """Return the positions of two variables given by position or name."""
    given = list(variables)
    known = [v in names if isinstance(v, str) else 0 <= v < len(names) for v in given]
    numbers = [names.index(v) if isinstance(v, str) else int(v) for v in given if all(known)]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"variables must be two of {', '.join(names)}, got {given!r}")
    return numbers


def fitted_probability(results: Any) -> Array:
    """Return the fitted probabilities of ones, shape (n,)."""
    return expit(np.asarray(results.model.exog @ np.asarray(results.params)))


def reliability(probability: Array, labels: Array, bins: int) -> tuple[Array, Array, np.ndarray]:
    """Return mean probabilities, shares of ones and counts of groups of like probability.

    Groups are of about equal size; rows of equal probability share one.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, bins + 1)))
    group = np.searchsorted(edges[1:-1], probability, side="left")
    count = np.bincount(group)
    used = count > 0
    mean = np.bincount(group, probability)[used] / count[used]
    return mean, np.bincount(group, labels)[used] / count[used], count[used]


def wilson_interval(share: Array, count: np.ndarray, level: float = 0.95) -> tuple[Array, Array]:
    """Return Wilson's confidence limits of shares."""
    z = norm.ppf((1 + level) / 2)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)


# How they are drawn.


def _one_axes(ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> tuple[Any, Any]:
    """Return the figure and axes to draw on; new ones where none are given."""
    optional("matplotlib", "plot")
    if ax is not None:
        return ax.figure, ax
    return import_module("matplotlib.pyplot").subplots(figsize=size, layout="constrained")


def _grid(
    fig: Any, rows: int, columns: int, size: tuple[float, float], **kwargs: Any
) -> tuple[Any, Any]:
    """Return a figure and its grid of axes; a new one where none is given."""
    optional("matplotlib", "plot")
    if fig is None:
        fig = import_module("matplotlib.pyplot").figure(figsize=size, layout="constrained")
    return fig, fig.subplots(rows, columns, **kwargs)


def _add_legend(ax: Any, x: Array, y: Array) -> None:
    """Add the legend; among many rows in a corner, as the best place takes long to find."""
    if len(x) <= MANY_ROWS:
        ax.legend()
        return
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    place = emptiest_corner((x - left) / (right - left), (y - low) / (high - low))
    ax.legend(loc=place)


def emptiest_corner(x: Array, y: Array) -> str:
    """Return the corner of the unit square with the fewest points."""
    sides = {"left": x < 0.4, "right": x > 0.6}
    heights = {"upper": y > 0.7, "lower": y < 0.3}
    counts = {f"{h} {s}": (heights[h] & sides[s]).sum() for h in heights for s in sides}
    return min(counts, key=lambda corner: counts[corner])


class Drawn(NamedTuple):
    """Rows on axes, of which the worst flagged ones are still to be named."""

    ax: Any
    results: Any
    x: Array
    y: Array
    flagged: np.ndarray
    label: int


def _draw_rows(
    ax: Any,
    results: Any,
    x: Array,
    y: Array,
    level: float = 0.975,
    label: int = 5,
    **settings: Any,
) -> Drawn:
    """Draw the rows, flagged ones apart; `settings` are those of the axes."""
    flagged = flags(results, level)
    many = len(x) > MANY_ROWS
    style: dict[str, Any] = {"linestyle": "none", "rasterized": many}
    if many:
        style["markersize"] = 3
    ax.plot(x[~flagged], y[~flagged], **{**KEPT, **style}, label="row")
    if flagged.any():
        name = f"flagged ({flagged.sum()})"
        ax.plot(x[flagged], y[flagged], **{**FLAGGED, **style}, label=name)
    ax.margins(0.08)
    ax.set(**settings)
    _add_legend(ax, x, y)
    return Drawn(ax, results, x, y, flagged, label)


def _name_rows(*drawn: Drawn) -> None:
    """Write the names of the worst flagged rows of axes of one figure, once it is laid out."""
    drawn[0].ax.figure.canvas.figure.draw_without_rendering()
    for ax, results, x, y, flagged, label in drawn:
        names = row_names(results)
        flagged = flagged & np.isfinite(x) & np.isfinite(y)
        rows = worst_rows(results, flagged, label)
        in_points = 72 / ax.figure.get_dpi()
        markers = ax.transData.transform(np.c_[x[flagged], y[flagged]]) * in_points
        points = ax.transData.transform(np.c_[x[rows], y[rows]]) * in_points
        sizes = [(0.65 * NAME_SIZE * len(names[row]) + 1, 1.2 * NAME_SIZE) for row in rows]
        frame = ax.bbox.extents * in_points
        for row, place in zip(rows, free_places(points, sizes, markers, frame), strict=True):
            _name(ax, (x[row], y[row]), names[row], place)


def free_places(
    points: Array, sizes: Sequence[tuple[float, float]], markers: Array, frame: Array
) -> list[tuple[int, int]]:
    """Return where around each point its name is clear of others and seen to be its own.

    Parameters
    ----------
    points : ndarray, shape (m, 2)
    sizes : sequence of (width, height)
        Sizes of the m names.
    markers : ndarray, shape (p, 2)
        Points that no name may cover.
    frame : ndarray, shape (4,)
        Left, lower, right and upper limits of the picture.

    Returns
    -------
    list of (int, int)
        Offsets of the nearer corner of each name from its point; the first place where none is
        clear.
    """
    r = MARKER_RADIUS
    taken = [(px - r, py - r, px + r, py + r) for px, py in markers]
    places = []
    for point, size in zip(points, sizes, strict=True):
        clear = [
            place
            for place in NEAR_PLACES + FAR_PLACES
            if inside(box(point, place, size), frame)
            and not any(overlap(box(point, place, size), other) for other in taken)
        ]
        sure = [
            place
            for place in clear
            if place in FAR_PLACES or belongs(box(point, place, size), point, markers)
        ]
        places.append([*sure, *clear, NEAR_PLACES[0]][0])
        taken.append(box(point, places[-1], size))
    return places


Box = tuple[float, float, float, float]


def box(point: Any, place: tuple[float, float], size: tuple[float, float]) -> Box:
    """Return left, lower, right and upper limits of a name at a place beside a point."""
    left = point[0] + place[0] - size[0] * (1 - np.sign(place[0])) / 2
    low = point[1] + place[1] - (size[1] if place[1] < 0 else 0)
    return left, low, left + size[0], low + size[1]


def inside(a: Box, frame: Sequence[float] | Array) -> bool:
    """Tell whether a box lies within a frame."""
    return bool(frame[0] <= a[0] and frame[1] <= a[1] and a[2] <= frame[2] and a[3] <= frame[3])


def belongs(a: Box, point: Array, markers: Array) -> bool:
    """Tell whether no marker is nearer to the middle of a box than its own point is."""
    middle = np.array([a[0] + a[2], a[1] + a[3]]) / 2
    nearest = np.linalg.norm(markers - middle, axis=1).min()
    return bool(np.linalg.norm(point - middle) <= nearest + 1e-9)


def overlap(a: Box, b: Box) -> bool:
    """Tell whether two boxes overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _name(ax: Any, point: Any, text: str, place: Any, **kwargs: Any) -> None:
    """Write a text beside a point, `place` points away from it."""
    if np.abs(place).max() > NAME_NEAR:
        kwargs["arrowprops"] = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5}
    ax.annotate(
        text,
        point,
        xytext=tuple(place),
        textcoords="offset points",
        ha={-1: "right", 0: "center", 1: "left"}[int(np.sign(place[0]))],
        va="top" if place[1] < 0 else "bottom",
        fontsize=NAME_SIZE,
        **kwargs,
    )


def _residual_label(results: Any) -> str:
    return "standardised residual" if results.scale > 0 else "residual"


def _draw_weights(ax: Any, results: Any, against: str, label: int) -> Drawn:
    relative = weights_times_n(results)
    x = np.arange(float(len(relative))) if against == "index" else np.asarray(results.losses)
    ax.axhline(1.0, **CUTOFF, label="equal weights")
    name = "row" if against == "index" else "loss"
    top = 1.2 * max(relative.max(), 1.0)
    limits: dict[str, Any] = {"xlabel": name, "ylabel": "weight * n", "ylim": (-0.06 * top, top)}
    drawn = _draw_rows(ax, results, x, relative, label=label, **limits)
    ax.legend(loc="upper center", ncols=3)
    return drawn


def _draw_leverage(ax: Any, results: Any, level: float, label: int) -> Drawn:
    exog, prior = np.asarray(results.model.exog, float), results.model._prior
    x = design_distances(exog, results.eps_bar, prior)
    if x is None:
        x, name = leverages(exog, prior), "leverage"
        limit = 2 * x.sum() / len(x)
    else:
        name = "robust distance of the predictors"
        limit = np.sqrt(chi2.ppf(level, len(varying_columns(exog))))
    cutoff = np.sqrt(chi2.ppf(level, 1))
    ax.axhline(-cutoff, **CUTOFF)
    ax.axhline(cutoff, **CUTOFF, label="cut-offs")
    ax.axvline(limit, **CUTOFF)
    names = {"xlabel": name, "ylabel": _residual_label(results)}
    return _draw_rows(ax, results, x, standardised_residuals(results), level, label, **names)


def _draw_qq(ax: Any, results: Any, level: float, label: int) -> Drawn:
    residual = standardised_residuals(results)
    n = len(residual)
    normal = np.empty(n)
    normal[np.argsort(residual, kind="stable")] = norm.ppf((np.arange(n) + 0.5) / n)
    ax.axline((0, 0), slope=1, color=GREY, linewidth=0.8, label="normal")
    names = {"xlabel": "normal quantile", "ylabel": _residual_label(results)}
    return _draw_rows(ax, results, normal, residual, level, label, **names)


def _draw_scale_location(ax: Any, results: Any, level: float, label: int) -> Drawn:
    fitted = np.asarray(results.fittedvalues)
    root = np.sqrt(np.abs(standardised_residuals(results)))
    ax.axhline(chi2.ppf(level, 1) ** 0.25, **CUTOFF, label="cut-off")
    names = {"xlabel": "fitted value", "ylabel": f"root of |{_residual_label(results)}|"}
    return _draw_rows(ax, results, fitted, root, level, label, **names)


def _draw_reliability(
    ax: Any, probability: Array, labels: Array, bins: int, style: dict[str, Any], name: str
) -> None:
    mean, share, count = reliability(probability, labels, bins)
    low, high = wilson_interval(share, count)
    ax.errorbar(
        mean, share, [share - low, high - share], **style, capsize=2, elinewidth=0.8, label=name
    )
