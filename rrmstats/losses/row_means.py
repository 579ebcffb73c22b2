"""Means over rows of what depends on estimated parameters, with their standard errors."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array


def mean_sums(
    values: Array, change: Array, influence: Array, exog: Array, mass: Array
) -> tuple[Array, ...]:
    """Return the sums over rows that `mean_error` needs.

    Parameters
    ----------
    values : ndarray, shape (n,)
    change : ndarray, shape (n,)
        Derivatives of the values in the linear predictor.
    influence : ndarray, shape (n, k)
        Influence functions of the parameters: they move by the sum.
    exog : ndarray, shape (n, k)
    mass : ndarray, shape (n,)
        How often each row counts.
    """
    counted = mass[:, None] * influence
    return (
        mass.sum(),
        mass @ values,
        mass @ (values * values),
        (mass * change) @ exog,
        counted.sum(axis=0),
        values @ counted,
        influence.T @ counted,
    )


def mean_error(
    total: float,
    first: float,
    second: float,
    slope: Array,
    drift: Array,
    cross: Array,
    square: Array,
) -> tuple[float, float]:
    """Return a mean over rows, and its standard error, from the sums of `mean_sums`.

    Each row moves the mean by its own value, and through the parameters.
    """
    mean, slope = first / total, slope / total
    own = second / total**2 - mean**2 / total
    through = 2.0 * slope @ (cross - mean * drift) / total + slope @ square @ slope
    return float(mean), float(np.sqrt(max(own + through, 0.0)))
