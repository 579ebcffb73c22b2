"""Regressions: a page of diagnostics, and the fit on one predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from rrmstats.plotting.arrays import (
    least_squares_params,
    normal_quantiles,
    plain,
    predictor_column,
    typical_rows,
    varying_columns,
)
from rrmstats.plotting.canvas import (
    CLASSICAL,
    CUTOFF,
    GRAY,
    REFERENCE,
    ROBUST,
    WEIGHT_COLORS,
    DrawnRows,
    add_legend,
    axes_grid,
    cutoff_level,
    draw_rows,
    flagged_rows,
    is_many,
    one_axes,
    outline,
)
from rrmstats.plotting.captions import large_weights_note, write_caption, write_caption_below
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.generalized import (
    deviance_residuals,
    draw_means,
    draw_quantile_residuals,
    draw_residuals_by_fit,
    response_name,
)
from rrmstats.plotting.names import name_rows
from rrmstats.plotting.offers import Array, Flags, GeneralizedResults, RegressionResults
from rrmstats.plotting.weights import draw_weights, weights_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import TypeIs


def is_generalized(
    results: RegressionResults | GeneralizedResults,
) -> TypeIs[GeneralizedResults]:
    """Return whether results are those of a generalized linear model."""
    return "resid_quantile" in dir(results)


def plot_diagnostics(
    results: RegressionResults | GeneralizedResults,
    fig: Figure | None = None,
    level: float | None = None,
    label: int = 5,
) -> Figure:
    """Plot a page of diagnostics of a linear or generalized linear regression.

    Residuals against robust distances of the rows of the design, which distinguish good from bad
    leverage points; a QQ plot; the weights; and the roots of the residuals against the fit. If
    the design has no robust distances, as with dummies alone, leverages take their place.

    Residuals of a generalized linear model are deviance residuals, and the last panel has them
    with their signs, against the linear predictor. Its QQ plot has quantile residuals, which are
    normal for counts too.

    Parameters
    ----------
    results : results of RRMOLS or RRMGLM
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.
    level : float, optional
        Fraction of clean rows within the cutoffs, in (0, 1); rows beyond are flagged. By default
        it is 0.975, and the flags are those of `outliers`.
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
    picture = checked_picture("plot_diagnostics", results)
    fig, axes = axes_grid(fig, (2, 2), picture.size)
    (leverage_ax, qq_ax), (weights_ax, fit_ax) = axes
    drawn = [
        _draw_leverage(leverage_ax, results, level, label),
        draw_weights(weights_ax, results, "index", label),
    ]
    last = "Scale and location"
    if is_generalized(results):
        last = "Residuals and fit"
        drawn.append(draw_quantile_residuals(qq_ax, results, level, label))
        drawn.append(draw_residuals_by_fit(fit_ax, results, level, label))
    else:
        drawn.append(_draw_qq(qq_ax, results, level, label))
        drawn.append(_draw_scale_location(fit_ax, results, level, label))
    titles = ["Residuals and leverage", "Normal QQ", "Weights", last]
    for ax, title in zip(axes.flat, titles, strict=True):
        ax.set_title(title)
    write_caption_below(fig, weights_note(drawn[1].results, results, level))
    name_rows(*drawn)
    return fig


def _residuals(results: RegressionResults | GeneralizedResults) -> tuple[Array, str]:
    """Return the residuals to show and their name; an exact fit cannot standardize them."""
    if is_generalized(results):
        return deviance_residuals(results), "deviance residual"
    if results.scale > 0:
        return np.asarray(results.resid_scaled), "standardized residual"
    return np.asarray(results.resid), "residual"


def _draw_leverage(
    ax: Axes, results: RegressionResults | GeneralizedResults, level: float | None, label: int
) -> DrawnRows:
    model = results.model
    x = model.design_distances()
    if x is None:
        x, xlabel = model.leverages(), "leverage"
        limit = 2 * x.mean()
    else:
        xlabel = "robust distance of the predictors"
        limit = np.sqrt(chi2.ppf(cutoff_level(level), len(varying_columns(model.exog))))
    cutoff = np.sqrt(chi2.ppf(cutoff_level(level), 1))
    ax.axhline(-cutoff, **CUTOFF)
    ax.axhline(cutoff, **CUTOFF, label="cutoffs")
    ax.axvline(limit, **CUTOFF)
    y, ylabel = _residuals(results)
    return draw_rows(ax, results, x, y, level, label, xlabel=xlabel, ylabel=ylabel)


def _draw_qq(ax: Axes, results: RegressionResults, level: float | None, label: int) -> DrawnRows:
    y, ylabel = _residuals(results)
    ax.axline((0, 0), slope=1, **REFERENCE, label="normal")
    settings = {"xlabel": "normal quantile", "ylabel": ylabel}
    return draw_rows(ax, results, normal_quantiles(y), y, level, label, **settings)


def _draw_scale_location(
    ax: Axes, results: RegressionResults, level: float | None, label: int
) -> DrawnRows:
    residual, name = _residuals(results)
    fitted = np.asarray(results.fittedvalues)
    ax.axhline(chi2.ppf(cutoff_level(level), 1) ** 0.25, **CUTOFF, label="cutoff")
    settings = {"xlabel": "fitted value", "ylabel": f"root of |{name}|"}
    return draw_rows(ax, results, fitted, np.sqrt(np.abs(residual)), level, label, **settings)


def plot_fit(
    results: RegressionResults | GeneralizedResults,
    exog_idx: int | str | None = None,
    ax: Axes | None = None,
    label: int = 5,
) -> Figure:
    """Plot a regression on one predictor, its weights as colors, beside the classical fit.

    Parameters
    ----------
    results : results of RRMOLS or RRMGLM
        Responses with an offset or exposure are drawn as they would be without, which takes a log
        link.
    exog_idx : int or str, optional
        The predictor, by its position in the design or its name. The lines have the other columns
        of the design at their weighted means. May be left out if only one column varies.
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
    picture = checked_picture("plot_fit", results)
    model = results.model
    column = predictor_column(model.exog, model.exog_names, exog_idx)
    fig, ax = one_axes(ax, picture.size)
    x, flagged = model.exog[:, column], flagged_rows(results)
    y, name = model.endog, model.endog_names
    if is_generalized(results):
        y, name = results.model.rates, response_name(results)
    points = _draw_by_weight(ax, x, y, np.asarray(results.relative_weights), flagged)
    if is_generalized(results):
        draw_means(ax, results, column)
    else:
        _draw_lines(ax, results, column)
    fig.colorbar(points, ax=ax, label="weight * n")
    ax.set(xlabel=plain(model.exog_names[column]), ylabel=plain(name))
    alone = len(varying_columns(model.exog)) == 1
    lines = "" if alone else "The lines have the other predictors at their weighted means."
    write_caption(ax, lines, large_weights_note(results))
    ax.margins(0.08)
    add_legend(ax, x, y)
    name_rows(DrawnRows(ax, results, x, y, flagged, label))
    return fig


def _draw_by_weight(ax: Axes, x: Array, y: Array, relative: Array, flagged: Flags) -> Any:
    """Draw rows in the colors of their weights and return the points last drawn.

    The legend shows their shapes without a color, since each row has its own.
    """
    many = is_many(x)
    style: dict[str, Any] = {
        **WEIGHT_COLORS,
        "vmax": float(relative.max()),
        "s": 9 if many else 36,
        "edgecolors": GRAY,
        "linewidths": 0.1 if many else 0.7,  # edges of many rows would hide their colors
        "zorder": 3,
        "rasterized": many,
    }
    shape: dict[str, Any] = {"linestyle": "none", "mfc": "none", "mec": GRAY}
    points = None
    names = ("row", f"flagged ({flagged.sum()})")
    for rows, marker, name in zip((~flagged, flagged), "o^", names, strict=True):
        if rows.any():
            points = ax.scatter(x[rows], y[rows], c=relative[rows], marker=marker, **style)
            ax.plot([], [], marker=marker, label=name, **shape)
    return points


def _draw_lines(ax: Axes, results: RegressionResults, column: int) -> None:
    """Draw the robust line and the least squares line over the range of the predictor."""
    model = results.model
    x = model.exog[:, column]
    limits = np.array([x.min(), x.max()])
    ends = typical_rows(model.exog, np.asarray(results.weights), column, limits)
    least_squares = least_squares_params(model.exog, model.endog, model.freq_weights)
    for params, style, name in (
        (np.asarray(results.params), ROBUST, "robust"),
        (least_squares, CLASSICAL, "least squares"),
    ):
        ax.plot(ends[:, column], ends @ params, **style, **outline(x), zorder=4, label=name)
