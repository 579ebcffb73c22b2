"""Regressions: a page of diagnostics, the fit on one predictor, and pictures of labels 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import chi2, norm, rankdata
from statsmodels.stats.proportion import proportion_confint

from rrmstats.plotting import canvas
from rrmstats.plotting.any_model import draw_explanation, draw_weights, is_explained, weights_note
from rrmstats.plotting.canvas import Style
from rrmstats.plotting.catalog import (
    SMALL,
    Array,
    Axes,
    Figure,
    Results,
    Rows,
    checked_picture,
    varying_columns,
)

# Groups of similar probability.
BINS = 10


def is_generalized(results: Results) -> bool:
    """Return whether results are those of a generalized linear model."""
    return "resid_quantile" in dir(results)


def is_binary(results: Results) -> bool:
    """Return whether results are those of a logistic regression."""
    return "pred_table" in dir(results)


def plot_diagnostics(
    results: Results, fig: Figure | None = None, level: float | None = None, label: int = 5
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
    size = checked_picture("plot_diagnostics", results).size
    figure: Any = canvas.new_figure(size) if fig is None else fig
    (leverage_ax, second_ax), (rows_ax, fit_ax) = figure.subplots(2, 2)
    draw = partial(canvas.draw_rows, results=results, level=level, label=label)
    resid, name = shown_residuals(results)
    at = canvas.cutoff_level(level)

    distance, xlabel = results.model.design_distances(), "robust distance of the predictors"
    if distance is None:
        distance, xlabel = results.model.leverages(), "leverage"
        far = 2 * distance.mean()
    else:
        far = np.sqrt(chi2.ppf(at, len(varying_columns(results.model.exog))))
    cutoff = np.sqrt(chi2.ppf(at, 1))
    if is_binary(results):  # the deviance residual of a label of probability 1 - level
        cutoff = np.sqrt(-2 * np.log(1 - at))
    leverage_ax.axhline(-cutoff, **canvas.CUTOFF)
    leverage_ax.axhline(cutoff, **canvas.CUTOFF, label="cutoffs")
    leverage_ax.axvline(far, **canvas.CUTOFF)
    leverage_ax.set_title("Residuals and leverage")
    drawn = [draw(leverage_ax, x=distance, y=resid, xlabel=xlabel, ylabel=name)]

    if is_binary(results):
        draw_reliability(second_ax, results, BINS)
        second_ax.set_title("Reliability")
    else:
        y, ylabel = resid, name
        if is_generalized(results) and results.scale > 0:
            y, ylabel = np.asarray(results.resid_quantile), "quantile residual"
        second_ax.axline((0, 0), slope=1, **canvas.REFERENCE, label="normal")
        second_ax.set_title("Normal QQ")
        quantile = norm.ppf((rankdata(y, "ordinal") - 0.5) / len(y))
        drawn.append(draw(second_ax, x=quantile, y=y, xlabel="normal quantile", ylabel=ylabel))

    fitted = np.asarray(results.fittedvalues)
    if is_binary(results) or is_generalized(results):
        fit_ax.axhline(0.0, **canvas.CUTOFF)
        title, xlabel, y, ylabel = "Residuals and fit", "fitted linear predictor", resid, name
        fitted = fitted if is_binary(results) else np.asarray(results.model.family.link(fitted))
    else:
        fit_ax.axhline(np.sqrt(cutoff), **canvas.CUTOFF, label="cutoff")
        title, xlabel, ylabel = "Scale and location", "fitted value", f"root of |{name}|"
        y = np.sqrt(np.abs(resid))
    fit_ax.set_title(title)
    drawn.append(draw(fit_ax, x=fitted, y=y, xlabel=xlabel, ylabel=ylabel))

    if is_explained(results):
        title, note = "Explanation", results.explanation.sentence
        drawn.append(draw_explanation(rows_ax, results, level, label))
    else:
        title, note = "Weights", weights_note(results, level)
        drawn.append(draw_weights(rows_ax, results, "index", label))
    rows_ax.set_title(title)
    canvas.write_caption_below(figure, note)
    canvas.name_rows(*drawn)
    return figure


def shown_residuals(results: Results) -> tuple[Array, str]:
    """Return the residuals to show and their name; an exact fit cannot standardize them."""
    if is_binary(results):  # labels have no dispersion
        return np.asarray(results.resid_dev), "deviance residual"
    if is_generalized(results):
        name = "resid_scaled" if results.scale > 0 else "resid_deviance"
        return np.asarray(getattr(results, name)), "deviance residual"
    if results.scale > 0:
        return np.asarray(results.resid_scaled), "standardized residual"
    return np.asarray(results.resid), "residual"


def plot_fit(
    results: Results, exog_idx: int | str | None = None, ax: Axes | None = None, label: int = 5
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
    checked_picture("plot_fit", results)
    model, classical, bands = results.model, "least squares", []
    if hasattr(model, "axis"):
        if model.axis is None:
            raise ValueError("plot_fit needs a curve of one variable; use plot_diagnostics")
        (xlabel, x), y, ylabel = model.axis, model.endog, model.endog_names
        grid = np.linspace(x.min(), x.max(), 200)
        rows = model.at_axis(grid)
        frame = results.get_prediction(rows).summary_frame()
        for ends, shade in (("mean_ci", 0.35), ("obs_ci", 0.12)):
            bands.append((frame[f"{ends}_lower"], frame[f"{ends}_upper"], shade))
        caption = "Bands: 95 % confidence of the curve, and prediction of good rows."
    else:
        column = predictor_column(model.exog, model.exog_names, exog_idx)
        x, y, xlabel, ylabel = model.exog[:, column], model.endog, model.exog_names[column], ""
        if is_generalized(results):
            y, classical = model.rates, "maximum likelihood"
            if not isinstance(model.endog_names, str):
                ylabel = f"share of {model.endog_names[0]}"
            elif not np.array_equal(y, model.endog):
                ylabel = f"{model.endog_names} at an offset of 0"
        ylabel, grid = ylabel or model.endog_names, np.linspace(x.min(), x.max(), 200)
        rows = np.repeat((np.asarray(results.weights) @ model.exog)[None], len(grid), axis=0)
        rows[:, column] = grid
        alone = len(varying_columns(model.exog)) == 1
        caption = "" if alone else "The lines have the other predictors at their weighted means."
    curves = [
        (model.predict(np.asarray(results.params), rows), "robust", canvas.ROBUST),
        (model.predict(model.classical_params(), rows), classical, canvas.CLASSICAL),
    ]
    _, ax = canvas.one_axes(ax, SMALL)
    for low, high, shade in bands:
        ax.fill_between(grid, low, high, color=canvas.BLUE, alpha=shade, lw=0, zorder=1)
    words = xlabel, ylabel
    return draw_rows_and_curves(results, ax, label, words, (x, y), grid, curves, caption)


def plot_partial_residuals(
    results: Results, focus_exog: int | str | None = None, ax: Axes | None = None, label: int = 5
) -> Figure:
    """Plot what the other predictors leave of the response against one predictor.

    Residuals on the scale of the linear predictor, with the part of the predictor added to them.
    A curve among the good rows calls for another form of the predictor.

    Parameters
    ----------
    results : results of RRMOLS, RRMGLM or RRMLogit
    focus_exog : int or str, optional
        The predictor, by its position in the design or its name. May be left out if only one
        column varies.
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
    >>> from rrmstats.plotting import plot_partial_residuals
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> fig = plot_partial_residuals(res, "x3")
    >>> fig.axes[0].get_ylabel()
    'partial residual'
    """
    column = term_column("plot_partial_residuals", results, focus_exog)
    names = results.model.exog_names[column], "partial residual"
    return draw_term(results, ax, label, names, column, results.model.exog[:, column])


def plot_added_variable(
    results: Results, focus_exog: int | str | None = None, ax: Axes | None = None, label: int = 5
) -> Figure:
    """Plot what one predictor adds to the others, which are taken out of both axes.

    Both axes have residuals of weighted fits on the other predictors, under the weights of this
    fit; the slope of the line through 0 is the coefficient.

    Parameters
    ----------
    results : results of RRMOLS, RRMGLM or RRMLogit
    focus_exog : int or str, optional
        The predictor, by its position in the design or its name. May be left out if only one
        column varies.
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
    >>> from rrmstats.plotting import plot_added_variable
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> fig = plot_added_variable(res, "x3")
    >>> fig.axes[0].get_xlabel()
    'x3 | others'
    """
    column = term_column("plot_added_variable", results, focus_exog)
    model = results.model
    others = np.delete(model.exog, column, axis=1)
    weights = np.asarray(results.working_weights)
    if model.freq_weights is not None:
        weights = weights * model.freq_weights
    roots = np.sqrt(weights)
    x = model.exog[:, column]
    x = x - others @ np.linalg.lstsq(roots[:, None] * others, roots * x, rcond=None)[0]
    names = f"{model.exog_names[column]} | others", "response | others"
    return draw_term(results, ax, label, names, column, x)


def term_column(function: str, results: Results, focus_exog: int | str | None) -> int:
    """Return the column of the predictor of a picture."""
    checked_picture(function, results)
    model = results.model
    if hasattr(model, "axis"):
        raise ValueError(f"{function} needs a linear predictor; use plot_fit or plot_diagnostics")
    return predictor_column(model.exog, model.exog_names, focus_exog, function)


def draw_term(
    results: Results, ax: Axes | None, label: int, names: tuple[str, str], column: int, x: Array
) -> Figure:
    """Draw working residuals plus one term against x, with the line of the term."""
    generalized = is_generalized(results) or is_binary(results)
    resid = np.asarray(results.resid_working if generalized else results.resid)
    slope, ends = np.asarray(results.params)[column], np.array([x.min(), x.max()])
    y = resid + slope * results.model.exog[:, column]
    curves = [(slope * ends, "robust", canvas.ROBUST)]
    return draw_rows_and_curves(results, ax, label, names, (x, y), ends, curves)


def draw_rows_and_curves(
    results: Results,
    ax: Axes | None,
    label: int,
    names: tuple[str, str],
    points: tuple[Array, Array],
    grid: Array,
    curves: Sequence[tuple[Array, str, Style]],
    caption: str = "",
) -> Figure:
    """Draw the rows in colors, curves on a grid over them, and a caption.

    Parameters
    ----------
    results : results of a regression
    ax : matplotlib Axes or None
    label : int
        How many of the flagged rows to name.
    names : (str, str)
        Of the axes.
    points : (ndarray, ndarray), shapes (n,)
    grid : ndarray, shape (m,)
    curves : sequence of (ndarray of shape (m,), str, dict)
        Heights, names and styles.
    caption : str, optional
    """
    fig, ax = canvas.one_axes(ax, SMALL)
    xlabel, ylabel = map(canvas.plain, names)
    words: Style = {"xlabel": xlabel, "ylabel": ylabel}
    drawn = canvas.draw_rows(ax, results, *points, label=label, colored=True, **words)
    for heights, name, style in curves:
        edges = canvas.outline(len(points[0]))
        ax.plot(grid, heights, **style, **edges, zorder=4, label=name)
    canvas.write_caption(ax, caption, canvas.flags_note(results))
    canvas.name_rows(drawn)
    return fig


def predictor_column(
    exog: Array, names: list[str], chosen: int | str | None, function: str = "plot_fit"
) -> int:
    """Return the column of a predictor that is given by name or position; None if it varies alone.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
    names : list of str, length k
    chosen : int, str or None
    function : str, optional
        What is to be drawn, for errors.
    """
    varying = varying_columns(exog)
    found = ", ".join(names[j] for j in varying) or "none"
    argument = "exog_idx" if function == "plot_fit" else "focus_exog"
    if chosen is None:
        if len(varying) != 1:
            raise ValueError(
                f"{function} needs one predictor, got {found}; choose one by {argument}=, or use "
                "plot_diagnostics"
            )
        return int(varying[0])
    columns = [j for j in varying if chosen in (names[j], int(j))]
    if not columns:
        raise ValueError(
            f"{argument} must be one of the predictors {found}, or its position among "
            f"{', '.join(names)}; got {chosen!r}"
        )
    return int(columns[0])


def plot_separation(results: Results, ax: Axes | None = None) -> Figure:
    """Plot labels in the order of their fitted probabilities.

    A blue band is a row labeled 1; if the model separates well, these gather on the right. The
    line is the fitted probability, and triangles at the top show the flagged rows. The number of
    rows to the right of the marker at the bottom is the number of ones that the fit expects.

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
    fig, ax = canvas.one_axes(ax, checked_picture("plot_separation", results).size)
    probability = np.asarray(results.predict())
    order = np.argsort(probability, kind="stable")
    n, image = len(order), len(order) > canvas.MANY_ROWS
    edges, labels = np.arange(n + 1) - 0.5, results.model.endog[np.r_[order, order[-1]]]
    bands = ax.fill_between(edges, labels, step="post", color=canvas.SKY, linewidth=0)
    bands.set(label="labeled 1", rasterized=image)
    ax.plot(probability[order], color="black", linewidth=1.4, label="fitted probability")
    places = np.flatnonzero(canvas.flagged_rows(results)[order])
    style: Style = {"linestyle": "none", "clip_on": False, "rasterized": image}
    style |= {**canvas.FLAGGED, "marker": "v"}
    if len(places):
        ax.plot(places, np.full(len(places), 1.04), **style, label=f"flagged ({len(places):,})")
    expected = n - float(probability.sum())
    ax.plot(expected, -0.04, "^", color="black", clip_on=False, label="expected start of ones")
    ax.set(xlabel="rows by fitted probability", ylabel="fitted probability")
    ax.set(xlim=(-0.5, n - 0.5), ylim=(-0.08, 1.08))
    canvas.legend_below(ax)
    return fig


def plot_reliability(results: Results, ax: Axes | None = None, bins: int = BINS) -> Figure:
    """Plot observed against fitted shares of ones, in groups of similar probability.

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
    picture = checked_picture("plot_reliability", results)
    if bins < 1:
        raise ValueError(f"bins must be 1 or more, got {bins!r}")
    fig, ax = canvas.one_axes(ax, picture.size)
    draw_reliability(ax, results, bins)
    ax.set(aspect="equal")
    return fig


def draw_reliability(ax: Axes, results: Results, bins: int) -> None:
    """Draw observed against fitted shares of ones, of all rows and without the flagged ones."""
    kept = ~canvas.flagged_rows(results)
    ax.plot([0, 1], [0, 1], **canvas.CUTOFF, label="perfect")
    every: Style = {**canvas.CLASSICAL, "marker": "s", "mfc": "none", "label": "all rows"}
    curves = [(np.ones_like(kept), every)]
    if not kept.all():
        name = f"without {(~kept).sum()} flagged"
        curves.append((kept, {**canvas.ROBUST, "marker": "o", "label": name}))
    for rows, style in curves:
        probability, labels = np.asarray(results.predict())[rows], results.model.endog[rows]
        mean, share, count = reliability(probability, labels, bins)
        low, high = proportion_confint(share * count, count, method="wilson")
        bars = np.maximum([share - low, high - share], 0.0)
        ax.errorbar(mean, share, bars, **style, capsize=2, elinewidth=0.8)
    ax.set(xlabel="fitted probability", ylabel="observed share of ones")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    canvas.legend_below(ax)


def reliability(probability: Array, labels: Array, bins: int) -> tuple[Array, Array, Rows]:
    """Return mean probabilities, shares of ones and sizes of groups of similar probability.

    Groups are of about equal size; rows of equal probability are in the same group.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, bins + 1)))
    group = np.searchsorted(edges[1:-1], probability, side="left")
    count = np.bincount(group)
    used = count > 0
    mean = np.bincount(group, probability)[used] / count[used]
    return mean, np.bincount(group, labels)[used] / count[used], count[used]
