"""Squared residuals: linear regression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rrmstats.core.block_array import blocked
from rrmstats.core.blocks import sample_places
from rrmstats.core.entropy import Array
from rrmstats.core.linear import LinearProblem


class SquaresProblem(LinearProblem):
    """Squared residuals; the weighted fit is weighted least squares.

    Residuals that rounding alone could produce count as zero, so that exact fits are seen.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
        Design of full column rank and moderate condition.
    column_noise : ndarray, shape (k,), optional
        What rounding adds to a squared residual for each squared parameter; by default found
        from the design.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> x = np.arange(10.0)
    >>> y = 2 * x + 0.1 * np.sin(x)
    >>> y[0] = 50
    >>> minimize(SquaresProblem(y, x[:, None]), eps_bar=0.2).theta.round(1)
    array([2.])
    """

    least_risk = 0.0

    def __init__(self, endog: Array, exog: Array, column_noise: Array | None = None) -> None:
        super().__init__(endog, exog)
        drawn = sample_places(len(exog))
        some = drawn[:: max(1, len(drawn) // 1000)]
        unit = 4 * (exog.shape[1] + 4) * np.finfo(float).eps
        if column_noise is None:
            column_noise = (unit * np.median(np.abs(exog[some]), axis=0)) ** 2
        self._column_noise = column_noise
        self._row_noise = (unit * endog) ** 2

    def link_losses(self, eta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        residual = self.endog - eta
        return residual * residual

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the squared residuals in the linear predictor."""
        return 2.0 * (eta - self.endog), np.full_like(eta, 2.0)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, zero where they are within rounding of it."""
        losses = super().losses(theta)
        # An infinite loss is not within rounding, however large the parameters are.
        by_theta = np.minimum(theta * theta @ self._column_noise, np.finfo(float).max / 2)
        noise = self._row_noise + by_theta[..., None]
        if blocked(losses):
            return np.where(losses <= noise, 0.0, losses)
        losses[losses <= noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        return self.weighted_least_squares(weights, self.endog)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return the weighted least squares fit, shape (b, k)."""
        return self.weighted_fit(weights)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return exact fits to subsets of rows, shape (m, k); NaN where rows are dependent."""
        return self.subset_solutions(subsets, self.endog)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the exact fit to the first independent rows of a random order, shape (k,)."""
        return self.independent_fit(drawn, self.endog)

    @property
    def with_rows(self) -> Callable[..., SquaresProblem]:
        """A function that makes the problem of other rows, with the same rounding."""
        return partial(SquaresProblem, column_noise=self._column_noise)
