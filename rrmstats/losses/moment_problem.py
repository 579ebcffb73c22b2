"""Problems whose weighted fit is a function of the weighted mean and second moment."""

from __future__ import annotations

from typing import Any

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem
from rrmstats.losses.matrices import root_values

# Standard deviations below this part of the largest are taken to be so large.
LEAST_ROOT = 1e-6


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

    def moments(self, weights: Array) -> Array:
        """Return the mean and second moment about zero under weights (n,), shape (d + d * d,).

        One pass over the rows.
        """
        return normalized(row_sums(moment_sums, self.data, weights))

    def moment_sums(self, weights: Array) -> Array | None:
        """Return the weighted sums of rows and their products, where Newton does not pay."""
        if self.newton_pays:
            return None
        _, first, second = moment_sums(self.data, weights)
        return np.concatenate([first, second.ravel()])

    def moment_changes(self, changes: Array, moments: Array) -> Array:
        """Return changes of moments in the frame in which the rows are white."""
        d = self.dim
        root, vectors = root_values(self.central(moments)[1])
        inverse = vectors / np.maximum(root, LEAST_ROOT * root[-1])
        shape = inverse.T @ changes[:, d:].reshape(-1, d, d) @ inverse
        return np.hstack([changes[:, :d] @ inverse, shape.reshape(-1, d * d)])

    def central(self, moments: Array) -> tuple[Array, Array]:
        """Return the location (d,) and the covariance (d, d) of moments about zero.

        Zero, and the second moments, where the location is fixed.
        """
        d = self.dim
        location, second = moments[:d] * self.demean, moments[d:].reshape(d, d)
        return location, second - np.outer(location, location)


def moment_sums(data: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the sums of weights w, w z and w z z' over rows z."""
    weighted = weights[:, None] * data
    return weights.sum(), weighted.sum(axis=0), data.T @ weighted


def normalized(sums: tuple[Any, Array, Array]) -> Array:
    """Return `moment_sums` as the mean and second moment about zero, shape (d + d * d,)."""
    mass, first, second = sums
    return np.concatenate([first, second.ravel()]) / mass
