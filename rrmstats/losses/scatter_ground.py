"""Rows under the weights of an order: what the fits of location and scatter need of them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.descent import LINEAR_POWER
from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.matrices import FLAT, triangular_root
from rrmstats.losses.sizes import Sample, tilts

# Part of a second moment below which the variance that is left of it is lost to rounding.
CANCELED = 1e-6


class Moments(NamedTuple):
    """Sums over rows z of weights w, w (z - center) and w (z - center)(z - center)'.

    The weights are those of an order at a location and scatter, and the center is near the
    location, `shift` away from it.
    """

    mass: float
    first: Array
    second: Array
    shift: Array

    @property
    def step(self) -> Array:
        """From the location to the weighted mean, shape (d,)."""
        return self.shift + self.first / self.mass

    @property
    def cancels(self) -> bool:
        """Whether the mean is so far from the center that the covariance is lost to rounding."""
        square = np.diag(self.second) / self.mass
        return bool((square - (self.first / self.mass) ** 2 < CANCELED * square).any())


class Ground(NamedTuple):
    """What the rungs of a ladder stand on.

    Attributes
    ----------
    data : ndarray, shape (n, d)
        Rows in a frame where good ones are near the unit sphere.
    core : Core
    sample : Sample
    setting : Setting
    efficiency : float
        Efficiency of the location at the end of the ladder.
    """

    data: Array
    core: Core
    sample: Sample
    setting: Setting
    efficiency: float

    @property
    def tol(self) -> float:
        """Change of a rung, in its frame, at which it has converged."""
        return float(self.setting.tol**LINEAR_POWER)

    def good(self, order: float, mass: float) -> float:
        """Return the number of good observations where the weights of an order have a mean."""
        share = order ** (self.core.dim / 2) * mass
        return self.sample.total * min(1.0, max(share, 1 - self.sample.eps_bar))

    def moments(self, order: float, location: Array, scatter: Array) -> Moments:
        """Return the moments under the weights of an order, in one pass over the rows."""
        inverse, shift = np.linalg.inv(lower_root(scatter)).T, np.zeros_like(location)
        for _ in range(2):
            kernel = partial(tilted_sums, location, inverse, order, shift)
            mass, first, second = row_sums(kernel, self.data, self.sample.share)
            found = Moments(mass, first, second, shift)
            if not (self.core.regressors and found.mass > 0 and found.cancels):
                break
            shift = found.step
        return found

    def least_size(self, order: float, place: tuple[Array, Array], mass: float) -> float:
        """Return what the scatter of a place must grow by, so as not to give up too many rows.

        `mass` is the mean weight of the rows there.
        """
        dim, least = self.core.dim, 1 - self.sample.eps_bar
        if order ** (dim / 2) * mass >= least:
            return 1.0
        square, few = self.sample.compressed(squared(whiten(self.data, *place)), dim)
        return few.least_size(square, order, dim)


def tilted_sums(
    location: Array, inverse: Array, order: float, shift: Array, data: Array, share: Array
) -> tuple[Array, Array, Array]:
    """Return what some rows, shape (n, d), add to `Moments`; `inverse` whitens centered ones."""
    centered = data - location
    weights = share * tilts(squared(centered @ inverse), order)
    if shift.any():
        centered = centered - shift
    weighted = weights[:, None] * centered
    return weights.sum(), weighted.sum(axis=0), centered.T @ weighted


def lower_root(scatter: Array) -> Array:
    """Return the lower triangular root of a scatter, its variances at least FLAT, shape (d, d)."""
    root = triangular_root(scatter)
    if root is None:
        values, vectors = np.linalg.eigh(scatter)
        least = max(FLAT, np.finfo(float).eps * float(values[-1]))
        root = np.linalg.cholesky((vectors * np.maximum(values, least)) @ vectors.T)
    return root


def whiten(data: Array, location: Array, scatter: Array) -> Array:
    """Return rows in the frame of a location and a scatter, shape (n, d)."""
    return (data - location) @ np.linalg.inv(lower_root(scatter)).T


def squared(z: Array) -> Array:
    """Return squared lengths of rows, shape (n,)."""
    return np.einsum("nd,nd->n", z, z)
