"""Exponential families: unit deviances, variances, and their expectations under weights.

A row has a size N, its variance weight over the dispersion: its variance is V(mu) / N, and its
scaled deviance D = N d(y, mu) is nearly chi-square with one degree of freedom. Weights of order a
are ``exp(-(a - 1) D / 2)``. They turn a Gaussian, gamma or inverse Gaussian law into the one of
size a N with the same mean, so that their expectations have closed forms; those of counts are
sums, in `rrmstats.losses.lattices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, xlog1py, xlogy
from scipy.stats import chi2

from rrmstats.core.entropy import Array

# Means are kept within this factor of the smallest and the largest response.
MEAN_REACH = 1e8
# Probabilities are kept this far from 0 and 1.
LEAST_PROBABILITY = 1e-10


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

    def moments(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations under weights of an order, at means and sizes of shape (n,)."""
        mass, deviance = self.tilted(size, order)
        second = mass * self.variance(mu) / (order * size)
        return Moments(mass, np.zeros_like(mass), second, mass * deviance)

    def tilted(self, size: Array, order: float) -> tuple[Array, Array]:
        """Return E(w), and the mean of D under the weights, where these only change the size."""
        return np.full_like(size, order**-0.5), np.full_like(size, 1.0 / order)

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,).

        Deviances are chi-square once divided by their mean, nearly or exactly.
        """
        mean = self.tilted(size, 1.0)[1]
        return np.asarray(chi2.sf(size * self.deviance(y, mu) / mean, 1))

    def mean_bounds(self, y: Array) -> tuple[float, float]:
        """Return the least and the largest mean that is computed with."""
        size = np.abs(y[y != 0])
        if not len(size):
            return 1.0 / MEAN_REACH, MEAN_REACH
        return float(size.min()) / MEAN_REACH, float(size.max()) * MEAN_REACH

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
        return (low, high) if np.median(y) >= 0 else (-high, -low)

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


@dataclass(frozen=True)
class Counts(Family):
    """Families of counts: N y has a distribution on whole numbers."""

    dispersed = False
    zeros = True

    def moments(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations under weights of an order, by sums over the counts."""
        from rrmstats.losses.lattices import lattice_moments

        return lattice_moments(self, mu, size, order)

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,)."""
        from rrmstats.losses.lattices import lattice_tail

        return lattice_tail(self, y, mu, size)

    def count_range(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        raise NotImplementedError

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        raise NotImplementedError

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y + (y == 0) * 0.25 / size

    def kept_kinds(self, y: Array) -> list[np.ndarray]:
        """Return the rows that are not zero."""
        return [y > 0]


# Standard deviations, and counts more, within which a sum over counts runs.
REACH, MORE = 9.0, 25.0
# Minus the logarithm of a probability that is not worth a term.
FAINT = 36.0


@dataclass(frozen=True)
class Poisson(Counts):
    """Poisson distributions."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return np.ones_like(mu)

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        return 2.0 * (xlogy(y, y / mu) - (y - mu))

    def count_range(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        reach = REACH * np.sqrt(mean)
        return np.floor(np.maximum(mean - reach, 0.0)), np.ceil(mean + reach + MORE)

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        return xlogy(count, mean) - mean - gammaln(count + 1.0)


@dataclass(frozen=True)
class DispersedPoisson(Poisson):
    """Poisson distributions in units of an unknown dispersion."""

    dispersed = True


@dataclass(frozen=True)
class Binomial(Counts):
    """Shares of successes; the size is the number of trials."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu * (1.0 - mu)

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return 1.0 - 2.0 * mu

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        rest = 1.0 - y
        return 2.0 * (xlogy(y, y / mu) + xlogy(rest, rest / (1.0 - mu)))

    def count_range(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        reach = REACH * np.sqrt(mean * (1.0 - mean / size)) + MORE
        trials = np.maximum(np.round(size), 1.0)
        return np.floor(np.maximum(mean - reach, 0.0)), np.minimum(np.ceil(mean + reach), trials)

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        trials = np.maximum(np.round(size), 1.0)
        p, rest = mean / size, trials - count
        choices = gammaln(trials + 1.0) - gammaln(count + 1.0) - gammaln(rest + 1.0)
        return choices + xlogy(count, p) + xlog1py(rest, -p)

    def mean_bounds(self, y: Array) -> tuple[float, float]:
        """Return the least and the largest probability that is computed with."""
        return LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY

    def near_means(self, y: Array, size: Array) -> Array:
        """Return probabilities near the shares that are not 0 or 1."""
        return (y * size + 0.5) / (size + 1.0)

    def kept_kinds(self, y: Array) -> list[np.ndarray]:
        """Return the rows with a success, and those with a failure."""
        return [y > 0, y < 1]


@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """Negative binomial distributions with variance mu + alpha mu^2.

    Parameters
    ----------
    alpha : float
        Positive.
    """

    alpha: float = 1.0

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu * (1.0 + self.alpha * mu)

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return 1.0 + 2.0 * self.alpha * mu

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        # Near y = mu the two terms cancel, and rounding may leave less than nothing.
        log_ratio = np.log1p(self.alpha * (y - mu) / (1.0 + self.alpha * mu))
        return np.maximum(2.0 * (xlogy(y, y / mu) - (y + 1.0 / self.alpha) * log_ratio), 0.0)

    def count_range(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        spread = np.sqrt(mean * (1.0 + self.alpha * mean / size))
        fall = np.log1p(size / (self.alpha * mean))
        low = np.floor(np.maximum(mean - REACH * spread, 0.0))
        return low, np.ceil(mean + REACH * spread + MORE + FAINT / fall)

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        shape = size / self.alpha
        ways = gammaln(count + shape) - gammaln(shape) - gammaln(count + 1.0)
        return ways - shape * np.log1p(mean / shape) + xlogy(count, mean / (mean + shape))
