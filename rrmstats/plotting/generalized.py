"""Generalized linear models: panels of their diagnostics, and the curve of their means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.arrays import normal_quantiles, typical_rows
from rrmstats.plotting.canvas import (
    CLASSICAL,
    CUTOFF,
    REFERENCE,
    ROBUST,
    DrawnRows,
    draw_rows,
    outline,
)
from rrmstats.plotting.offers import Array, GeneralizedResults, LabelResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a curve of means.
CURVE = 200


def deviance_residuals(results: Any) -> Array:
    """Return deviance residuals, in units of the dispersion unless the fit is exact."""
    if "resid_dev" in dir(results):  # labels have no dispersion
        return np.asarray(results.resid_dev)
    return np.asarray(results.resid_scaled if results.scale > 0 else results.resid_deviance)


def draw_quantile_residuals(
    ax: Axes, results: GeneralizedResults, level: float | None, label: int
) -> DrawnRows:
    """Draw quantile residuals against normal quantiles."""
    exact = results.scale == 0
    y = deviance_residuals(results) if exact else np.asarray(results.resid_quantile)
    ax.axline((0, 0), slope=1, **REFERENCE, label="normal")
    name = "deviance residual" if exact else "quantile residual"
    settings = {"xlabel": "normal quantile", "ylabel": name}
    return draw_rows(ax, results, normal_quantiles(y), y, level, label, **settings)


def draw_residuals_by_fit(
    ax: Axes, results: GeneralizedResults | LabelResults, level: float | None, label: int
) -> DrawnRows:
    """Draw deviance residuals against the linear predictor."""
    x, y = linear_predictor(results), deviance_residuals(results)
    ax.axhline(0.0, **CUTOFF)
    settings = {"xlabel": "fitted linear predictor", "ylabel": "deviance residual"}
    return draw_rows(ax, results, x, y, level, label, **settings)


def linear_predictor(results: Any) -> Array:
    """Return the linear predictor of the rows: the link of the means of a GLM."""
    fitted = np.asarray(results.fittedvalues)
    if "resid_dev" in dir(results):
        return fitted
    return np.asarray(results.model.family.link(fitted))


def draw_means(ax: Axes, results: GeneralizedResults, column: int) -> None:
    """Draw the means by a predictor, robust and by maximum likelihood, at an offset of zero."""
    model = results.model
    x = model.exog[:, column]
    values = np.linspace(x.min(), x.max(), CURVE)
    rows = typical_rows(model.exog, np.asarray(results.weights), column, values)
    for params, style, name in (
        (np.asarray(results.params), ROBUST, "robust"),
        (model.likelihood_params(), CLASSICAL, "maximum likelihood"),
    ):
        means: Array = model.predict(params, rows)
        ax.plot(rows[:, column], means, **style, **outline(x), zorder=4, label=name)


def response_name(results: GeneralizedResults) -> str:
    """Return what the responses of a picture are called."""
    model = results.model
    name = model.endog_names
    if not isinstance(name, str):
        return f"share of {name[0]}"
    return name if np.array_equal(model.rates, model.endog) else f"{name} at an offset of 0"
