"""Regressions: a page of diagnostics, and the fit on one predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    REFERENCE,
    ROBUST,
    DrawnRows,
    add_legend,
    axes_grid,
    cutoff_level,
    draw_colored_rows,
    draw_rows,
    one_axes,
    outline,
)
from rrmstats.plotting.captions import flags_note, write_caption, write_caption_below
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.classification import BINS, draw_reliability
from rrmstats.plotting.explanations import draw_explanation, is_explained
from rrmstats.plotting.generalized import (
    deviance_residuals,
    draw_means,
    draw_quantile_residuals,
    draw_residuals_by_fit,
    response_name,
)
from rrmstats.plotting.names import name_rows
from rrmstats.plotting.offers import Array, GeneralizedResults, LabelResults, RegressionResults
from rrmstats.plotting.weights import draw_weights, weights_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import TypeIs

AnyRegression = RegressionResults | GeneralizedResults | LabelResults
LEVERAGE = "Residuals and leverage"


def is_generalized(results: AnyRegression) -> TypeIs[GeneralizedResults]:
    """Return whether results are those of a generalized linear model."""
    return "resid_quantile" in dir(results)


def is_binary(results: AnyRegression) -> TypeIs[LabelResults]:
    """Return whether results are those of a logistic regression."""
    return "pred_table" in dir(results)


def plot_diagnostics(
    results: AnyRegression,
    fig: Figure | None = None,
    level: float | None = None,
    label: int = 5,
) -> Figure:
    """Plot a page of diagnostics of a linear, generalized linear or logistic regression.

    Residuals against robust distances of the rows of the design, which distinguish good from bad
    leverage points; a QQ plot; the explanation of the rows, as `plot_explanation` has it, or in
    one step their weights; and the roots of the residuals against the fit. If the design has no
    robust distances, as with dummies alone, leverages take their place.

    Residuals of generalized linear and logistic models are deviance residuals, and the last panel
    has them with their signs, against the linear predictor. The QQ plot of a generalized linear
    model has quantile residuals, which are normal for counts too. In its place a logistic
    regression has observed against fitted shares of ones, as `plot_reliability` has them.

    Parameters
    ----------
    results : results of RRMOLS, RRMGLM or RRMLogit
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
    ['Residuals and leverage', 'Normal QQ', 'Explanation', 'Scale and location']
    """
    picture = checked_picture("plot_diagnostics", results)
    fig, axes = axes_grid(fig, (2, 2), picture.size)
    (leverage_ax, second_ax), (rows_ax, fit_ax) = axes
    drawn = [_draw_leverage(leverage_ax, results, level, label)]
    second, last = "Normal QQ", "Residuals and fit"
    if is_binary(results):
        second = "Reliability"
        draw_reliability(second_ax, results, BINS)
        drawn.append(draw_residuals_by_fit(fit_ax, results, level, label))
    elif is_generalized(results):
        drawn.append(draw_quantile_residuals(second_ax, results, level, label))
        drawn.append(draw_residuals_by_fit(fit_ax, results, level, label))
    else:
        last = "Scale and location"
        drawn.append(_draw_qq(second_ax, results, level, label))
        drawn.append(_draw_scale_location(fit_ax, results, level, label))
    if is_explained(results):
        rows, note = "Explanation", results.explanation.sentence
        drawn += draw_explanation(rows_ax, results, level, label)
    else:
        weights = draw_weights(rows_ax, results, "index", label)
        rows, note = "Weights", weights_note(weights.results, results, level)
        drawn.append(weights)
    for ax, title in zip(axes.flat, (LEVERAGE, second, rows, last), strict=True):
        ax.set_title(title)
    write_caption_below(fig, note)
    name_rows(*drawn)
    return fig


def _residuals(results: AnyRegression) -> tuple[Array, str]:
    """Return the residuals to show and their name; an exact fit cannot standardize them."""
    if is_binary(results):
        return np.asarray(results.resid_dev), "deviance residual"
    if is_generalized(results):
        return deviance_residuals(results), "deviance residual"
    if results.scale > 0:
        return np.asarray(results.resid_scaled), "standardized residual"
    return np.asarray(results.resid), "residual"


def _draw_leverage(ax: Axes, results: AnyRegression, level: float | None, label: int) -> DrawnRows:
    model = results.model
    x = model.design_distances()
    if x is None:
        x, xlabel = model.leverages(), "leverage"
        limit = 2 * x.mean()
    else:
        xlabel = "robust distance of the predictors"
        limit = np.sqrt(chi2.ppf(cutoff_level(level), len(varying_columns(model.exog))))
    cutoff = np.sqrt(chi2.ppf(cutoff_level(level), 1))
    if is_binary(results):  # the deviance residual of a label of probability 1 - level
        cutoff = np.sqrt(-2 * np.log(1 - cutoff_level(level)))
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
    """Plot a regression on one predictor beside the classical fit.

    Colors tell how likely each row is bad, or in one step its weight.

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
    x, y, name = model.exog[:, column], model.endog, model.endog_names
    if is_generalized(results):
        y, name = results.model.rates, response_name(results)
    flagged = draw_colored_rows(ax, results, x, y)
    if is_generalized(results):
        draw_means(ax, results, column)
    else:
        _draw_lines(ax, results, column)
    ax.set(xlabel=plain(model.exog_names[column]), ylabel=plain(name))
    alone = len(varying_columns(model.exog)) == 1
    lines = "" if alone else "The lines have the other predictors at their weighted means."
    write_caption(ax, lines, flags_note(results))
    add_legend(ax, x, y)
    name_rows(DrawnRows(ax, results, x, y, flagged, label))
    return fig


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
