"""Families of counts, whose expectations are sums over whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, expit, gammainc, gammaincc, gammaln, logit, xlog1py, xlogy

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.losses.families import NEAR_EDGE, Family, Moments, Tails
from rrmstats.losses.lattices import lattice_moments, lattice_tail

# Standard deviations, and counts more, within which a sum over counts runs.
REACH, MORE = 9.0, 25.0
# Minus the logarithm of a probability that is not worth a term.
FAINT = 36.0
# Probabilities are kept this far from 0 and 1.
LEAST_PROBABILITY = 1e-10


@dataclass(frozen=True)
class Counts(Family):
    """Families of counts: N y has a distribution on whole numbers."""

    dispersed = False
    zeros = True

    def moments(self, mu: Array, size: Array, order: float, n_sizes: int | None = None) -> Moments:
        """Return expectations under weights of an order, by sums over the counts."""
        return lattice_moments(self, mu, size, order, n_sizes)

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,)."""
        return row_map(lattice_tail, self, y, mu, size, tail=())

    def tails(self, y: Array, mu: Array, size: Array) -> Tails | None:
        """Return the probabilities of each response and those beyond."""
        count, mean = y * size, mu * size
        mass = np.exp(self.log_pmf(count, mean, size))
        return Tails(*self.count_tails(count, mean, size), mass)

    def count_tails(self, count: Array, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the probabilities of at most and of at least so many."""
        raise NotImplementedError

    def count_range(self, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        raise NotImplementedError

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        raise NotImplementedError

    def coordinate(self, mu: Array) -> Array:
        """Return a coordinate of the means in which expectations are smooth."""
        return np.log(mu)

    def from_coordinate(self, at: Array) -> Array:
        """Return the means of coordinates."""
        return np.exp(at)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y + (y == 0) * 0.25 / size

    def kept_kinds(self, y: Array) -> list[np.ndarray]:
        """Return the rows that are not zero."""
        return [y > 0]


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

    def count_tails(self, count: Array, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the probabilities of at most and of at least so many."""
        return gammaincc(count + 1.0, mean), gammainc(count, mean)


@dataclass(frozen=True)
class DispersedPoisson(Poisson):
    """Poisson distributions in units of an unknown dispersion."""

    dispersed = True

    def tails(self, y: Array, mu: Array, size: Array) -> None:
        """Return nothing: responses are not counts."""


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

    def count_tails(self, count: Array, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the probabilities of at most and of at least so many."""
        trials = np.maximum(np.round(size), 1.0)
        p, rest = mean / size, np.maximum(trials - count, 0.0)
        return _beta_law(rest, count + 1.0, 1.0 - p), _beta_law(count, rest + 1.0, p)

    def coordinate(self, mu: Array) -> Array:
        """Return the log-odds of the means."""
        return logit(mu)

    def from_coordinate(self, at: Array) -> Array:
        """Return the means of log-odds."""
        return expit(at)

    def mean_bounds(self, y: Array) -> tuple[float, float]:
        """Return the least and the largest probability that is computed with."""
        return LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY

    def at_edge(self, mu: Array, low: float, high: float) -> np.ndarray:
        """Tell which probabilities are 0 or 1 but for their bounds, shape (n,)."""
        return np.minimum(mu, 1.0 - mu) <= NEAR_EDGE * LEAST_PROBABILITY

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

    def count_tails(self, count: Array, mean: Array, size: Array) -> tuple[Array, Array]:
        """Return the probabilities of at most and of at least so many."""
        shape = size / self.alpha
        p = mean / (mean + shape)
        return _beta_law(shape, count + 1.0, 1.0 - p), _beta_law(count, shape, p)


def _beta_law(a: Array, b: Array, x: Array) -> Array:
    """Return the distribution function of a beta variable, which is zero itself for a = 0."""
    return np.where(a > 0, betainc(np.where(a > 0, a, 1.0), b, x), 1.0)
