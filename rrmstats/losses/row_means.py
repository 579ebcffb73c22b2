"""Means over rows of what depends on estimated parameters, with their standard errors."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array


def mean_and_error(
    values: Array, change: Array, influence: Array, exog: Array, mass: Array
) -> tuple[float, float]:
    """Return a mean over rows, and its standard error; two passes over rows in blocks.

    Each row moves the mean by its own value, and through the parameters.

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

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.row_means import mean_and_error
    >>> ones, exog = np.ones(4), np.ones((4, 1))
    >>> mean, error = mean_and_error(np.arange(4.0), 0 * ones, 0 * exog, exog, ones)
    >>> mean, bool(np.isclose(error**2, np.var(np.arange(4)) / 4))
    (1.5, True)
    """
    total, first, slope = row_sums(_mean_sums, values, change, exog, mass)
    mean = float(first / total)
    moved = (values - mean) / total + influence @ (slope / total)
    return mean, float(np.sqrt(mass @ moved**2))


def _mean_sums(values: Array, change: Array, exog: Array, mass: Array) -> tuple[Array, ...]:
    return mass.sum(), mass @ values, (mass * change) @ exog
