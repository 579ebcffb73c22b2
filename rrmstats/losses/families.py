"""Exponential families: unit deviances, variances, and their expectations under weights.

A row has a size N, its variance weight over the dispersion: its variance is V(mu) / N, and its
scaled deviance D = N d(y, mu) is nearly chi-square with one degree of freedom. Weights of order a
are ``exp(-(a - 1) D / 2)``. They turn a Gaussian, gamma or inverse Gaussian law into the one of
size a N with the same mean, so that their expectations have closed forms; those of counts are
sums, in `rrmstats.losses.counts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, digamma, gammainc, gammaincc, gammaln, ndtri, xlogy
from scipy.stats import invgauss

from rrmstats.core.entropy import Array

# Means are kept within this factor of the smallest and the largest response.
MEAN_REACH = 1e8
# Means within this factor of a bound are at the edge.
NEAR_EDGE = 10.0


class Moments(NamedTuple):
    """Expectations under the model, each of shape (n,).

    Attributes
    ----------
    mass : ndarray
        E(w).
    first, second : ndarray
        E(w (y - mu)) and E(w (y - mu)^2).
    deviance : ndarray
        E(w D).
    """

    mass: Array
    first: Array
    second: Array
    deviance: Array


class Tails(NamedTuple):
    """Probabilities of responses under the model, each of shape (n,).

    Attributes
    ----------
    at_most, at_least : ndarray
        P(Y <= y) and P(Y >= y).
    mass : ndarray
        P(Y = y).
    """

    at_most: Array
    at_least: Array
    mass: Array


@dataclass(frozen=True)
class Family:
    """A family of distributions with mean mu and variance V(mu) / N.

    Attributes
    ----------
    dispersed : bool
        Whether it has an unknown dispersion.
    positive : bool
        Whether means must be positive.
    zeros : bool
        Whether responses may be zero.
    """

    dispersed = True
    positive = True
    zeros = False

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        raise NotImplementedError

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        raise NotImplementedError

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        raise NotImplementedError

    def moments(self, mu: Array, size: Array, order: float, n_sizes: int | None = None) -> Moments:
        """Return expectations under weights of an order, at means and sizes of shape (n,).

        `n_sizes` is the number of different sizes, where it is known.
        """
        mass, deviance = self.tilted(size, order)
        second = mass * self.variance(mu) / (order * size)
        return Moments(mass, np.zeros_like(mass), second, mass * deviance)

    def log_norm(self, y: Array, size: Array) -> Array:
        """Return the logarithm of the factor of ``exp(-size d / 2)`` in the density, (n,).

        That of the saddlepoint approximation, which is exact for normal and inverse Gaussian
        responses; one for an atom at zero.
        """
        some = np.where(y == 0, 1.0, y) if self.zeros and self.positive else y
        found = -0.5 * np.log(2.0 * np.pi * self.variance(some) / size)
        return np.where(y == 0, 0.0, found) if self.zeros and self.positive else found

    def tilted(self, size: Array, order: float) -> tuple[Array, Array]:
        """Return E(w), and the mean of D under the weights, where these only change the size."""
        return np.full_like(size, order**-0.5), np.full_like(size, 1.0 / order)

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,).

        Deviances are chi-square once divided by their mean, nearly or exactly.
        """
        mean = self.tilted(size, 1.0)[1]
        return chdtrc(1.0, size * self.deviance(y, mu) / mean)

    def tails(self, y: Array, mu: Array, size: Array) -> Tails | None:
        """Return the probabilities of each response and those beyond, where they are known."""
        return None

    def quantile_residuals(self, y: Array, mu: Array, size: Array, u: Array) -> Array:
        """Return normal quantiles at the probabilities of the responses, shape (n,).

        Counts are spread over the probability that each has by uniform numbers `u`. Where
        probabilities are not known, or vanish, they are signed roots of deviances.
        """
        roots = np.sign(y - mu) * np.sqrt(size * self.deviance(y, mu))
        found = self.tails(y, mu, size)
        if found is None:
            return np.asarray(roots)
        low = found.at_most - u * found.mass
        high = found.at_least - (1.0 - u) * found.mass
        known = np.minimum(low, high) > 0
        quantiles = np.where(low < high, ndtri(low), -ndtri(high))
        return np.where(known, quantiles, roots)

    def mean_bounds(self, y: Array) -> tuple[float, float]:
        """Return the least and the largest mean that is computed with."""
        most = float(np.maximum(np.max(y), -np.min(y)))
        if most == 0:
            return 1.0 / MEAN_REACH, MEAN_REACH
        least = float(np.min(np.where(y == 0, most, np.abs(y))))
        return least / MEAN_REACH, most * MEAN_REACH

    def at_edge(self, mu: Array, low: float, high: float) -> np.ndarray:
        """Tell which means are near bounds that only keep them finite, shape (n,)."""
        if not self.positive:
            return np.zeros_like(mu) > 0
        return (mu <= low * NEAR_EDGE) | (mu >= high / NEAR_EDGE)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y

    def kept_kinds(self, y: Array) -> list[np.ndarray]:
        """Return the kinds of rows, as masks, each of which weights must keep a part of."""
        return []


@dataclass(frozen=True)
class Gaussian(Family):
    """Normal distributions."""

    positive = False
    zeros = True

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return np.ones_like(mu)

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return np.zeros_like(mu)

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        return (y - mu) ** 2

    def mean_bounds(self, y: Array) -> tuple[float, float]:
        """Return bounds with the sign of most responses, for links that need one."""
        low, high = super().mean_bounds(y)
        return (low, high) if np.mean(y >= 0) >= 0.5 else (-high, -low)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        low, high = self.mean_bounds(y)
        return np.clip(y, low, high)


@dataclass(frozen=True)
class Gamma(Family):
    """Gamma distributions; the inverse of the dispersion is their shape."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu * mu

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return 2.0 * mu

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        ratio = y / mu
        return 2.0 * (ratio - 1.0 - np.log(ratio))

    def tilted(self, size: Array, order: float) -> tuple[Array, Array]:
        """Return E(w), and the mean of D under the weights."""
        narrow = order * size
        log_mass = _gamma_norm(size) - _gamma_norm(narrow)
        return np.exp(log_mass), 2.0 * size * (np.log(narrow) - digamma(narrow))

    def log_norm(self, y: Array, size: Array) -> Array:
        """Return the logarithm of the factor of ``exp(-size d / 2)`` in the density, (n,)."""
        return _gamma_norm(size) - np.log(y)

    def tails(self, y: Array, mu: Array, size: Array) -> Tails:
        """Return the probabilities of each response and those beyond."""
        at = size * y / mu
        return Tails(gammainc(size, at), gammaincc(size, at), np.zeros_like(at))


def _gamma_norm(shape: Array) -> Array:
    """Return the logarithm of the factor of ``exp(-shape d / 2) / y`` in a gamma density."""
    return xlogy(shape, shape) - shape - gammaln(shape)


@dataclass(frozen=True)
class InverseGaussian(Family):
    """Inverse Gaussian distributions."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu**3

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return 3.0 * mu * mu

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        return ((y - mu) / mu) ** 2 / y

    def tails(self, y: Array, mu: Array, size: Array) -> Tails:
        """Return the probabilities of each response and those beyond."""
        law = invgauss(mu / size, scale=size)
        return Tails(law.cdf(y), law.sf(y), np.zeros_like(y))
