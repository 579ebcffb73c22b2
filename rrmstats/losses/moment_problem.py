"""Problems whose weighted fit is a function of the weighted mean and second moment."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem


class MomentProblem(EstimableProblem):
    """Losses of rows whose weighted fit needs two moments of them, all of one scale or whitened.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Observations in units near their spread.
    demean : bool
        False fixes the location at zero.
    """

    def __init__(self, data: Array, demean: bool) -> None:
        self.data, self.demean = data, demean
        self.n_obs, self.dim = data.shape

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The observations."""
        return (self.data,)

    def weighted_moments(self, weights: Array) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) under weights (n,), in one pass over the rows.

        Zero, and second moments about it, where the location is fixed.
        """
        return self.central(self.normalized(row_sums(moment_sums, self.data, weights)))

    def normalized(self, sums: tuple[Array, Array, Array]) -> Array:
        """Return sums as the mean and second moment about zero, shape (d + d * d,)."""
        mass, first, second = sums
        return np.concatenate([first, second.ravel()]) / mass

    def central(self, moments: Array) -> tuple[Array, Array]:
        """Return the location (d,) and the covariance (d, d) of moments about zero."""
        d = self.dim
        location, second = moments[:d] * self.demean, moments[d:].reshape(d, d)
        return location, second - np.outer(location, location)


def moment_sums(data: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the sums of weights w, w z and w z z' over rows z."""
    weighted = weights[:, None] * data
    return weights.sum(), weighted.sum(axis=0), data.T @ weighted
