"""Exponential families and links: unit deviances, variances, and their expectations under weights.

A row has a size N, its variance weight over the dispersion: its variance is V(mu) / N, and its
scaled deviance D = N d(y, mu) is nearly chi-square with one degree of freedom. Weights of order a
are ``exp(-(a - 1) D / 2)``. They turn a Gaussian, gamma or inverse Gaussian distribution into
the one of size a N with the same mean, so that their expectations have closed forms; those of
counts are sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import chdtrc, digamma, expit, gammaln, logit, ndtri, xlog1py, xlogy
from scipy.stats import binom, gamma, invgauss, nbinom, poisson

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import BLOCK_ENTRIES, ROUNDING

# Means are kept within this factor of the smallest and the largest response.
MEAN_REACH = 1e8
# Means within this factor of a bound are at the edge.
NEAR_EDGE = 10.0
# Standard deviations, and counts more, within which a sum over counts runs.
REACH, MORE = 9.0, 25.0
# Minus the logarithm of a probability that is not worth a term.
FAINT = 36.0
# Probabilities are kept this far from 0 and 1.
LEAST_PROBABILITY = 1e-10
# Counts that are summed one by one; a longer range is integrated at N_NODES nodes.
ONE_BY_ONE, N_NODES = 64, 96
# Nodes of the integral over positive responses.
COMPOUND_NODES = 48
# Size from which Stirling's series is exact to rounding.
LARGE = 50.0


@dataclass(frozen=True, slots=True)
class Link:
    """A link function and its inverse.

    Attributes
    ----------
    forward : callable
        Linear predictor of a mean.
    inverse, slope, curvature : callable
        Mean of a linear predictor, and its first and second derivative.
    """

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]

    @classmethod
    def identity(cls) -> Link:
        """Return the link whose mean is the linear predictor."""
        return cls(np.positive, np.positive, np.ones_like, np.zeros_like)

    @classmethod
    def log(cls) -> Link:
        """Return the link whose mean is the exponential of the linear predictor."""
        return cls(np.log, np.exp, np.exp, np.exp)

    @classmethod
    def logit(cls) -> Link:
        """Return the link whose linear predictor is the log-odds."""
        return cls(logit, expit, _logistic_slope, _logistic_curvature)


def _logistic_slope(eta: Array) -> Array:
    return np.asarray(expit(eta) * expit(-eta))


def _logistic_curvature(eta: Array) -> Array:
    return np.asarray(_logistic_slope(eta) * (expit(-eta) - expit(eta)))


@dataclass(frozen=True, slots=True)
class MeanFunction:
    """The mean of a linear predictor, constant beyond some bounds.

    A search tries fits to very few rows, at which others may have any linear predictor. Beyond the
    bounds a mean is not defined, or too large or too small to compute with.

    Attributes
    ----------
    link : Link
    low, high : float
        Bounds of the linear predictor.
    """

    link: Link
    low: float = -np.inf
    high: float = np.inf

    @classmethod
    def between(cls, link: Link, least: float, most: float) -> MeanFunction:
        """Return the mean function of a link with bounds of the mean."""
        with np.errstate(all="ignore"):
            ends = link.forward(np.array([least, most]))
        return cls(link, float(ends.min()), float(ends.max()))

    def bounds(self) -> tuple[float, float]:
        """Return the least and the largest mean."""
        ends = self.link.inverse(np.array([self.low, self.high]))
        return float(ends.min()), float(ends.max())

    def mean(self, eta: Array) -> Array:
        """Return the means at linear predictors of any shape."""
        return row_map(_at_kept, eta, self.link.inverse, self.low, self.high, tail=())

    def mean_and_slope(self, eta: Array) -> tuple[Array, Array]:
        """Return the means at linear predictors in memory, and their first derivatives."""
        kept = np.clip(eta, self.low, self.high)
        return self.link.inverse(kept), np.where(kept == eta, self.link.slope(kept), 0.0)

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the mean; zero beyond the bounds."""
        first, second = (
            row_map(_at_inside, eta, function, self.low, self.high, tail=())
            for function in (self.link.slope, self.link.curvature)
        )
        return first, second


def _at_kept(eta: Array, function: Callable[[Array], Array], low: float, high: float) -> Array:
    return function(np.clip(eta, low, high))


def _at_inside(eta: Array, function: Callable[[Array], Array], low: float, high: float) -> Array:
    inside = (eta >= low) & (eta <= high)
    return np.where(inside, _at_kept(eta, function, low, high), 0.0)


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
    power : float
        Power of the mean that V is, where it is one.
    """

    dispersed = True
    positive = True
    zeros = False
    power = 0.0

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu**self.power

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return self.power * mu ** (self.power - 1.0)

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        raise NotImplementedError

    def moments(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations under weights of an order, at means and sizes of shape (n,)."""
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

    def log_density(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the log-densities of responses; of counts those of ``size * y``, shape (n,)."""
        return self.log_norm(y, size) - 0.5 * size * self.deviance(y, mu)

    def tilted(self, size: Array, order: float) -> tuple[Array, Array]:
        """Return E(w), and the mean of D under the weights, where these only change the size."""
        return np.full_like(size, order**-0.5), np.full_like(size, 1.0 / order)

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,).

        Deviances are chi-square once divided by their mean, nearly or exactly.
        """
        mean = self.tilted(size, 1.0)[1]
        return chdtrc(1.0, size * self.deviance(y, mu) / mean)

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy, of counts ``size * y``; None if not known."""
        return None

    def quantile_residuals(self, y: Array, mu: Array, size: Array, u: Array) -> Array:
        """Return normal quantiles at the probabilities of the responses, shape (n,).

        Counts are spread over the probability that each has by uniform numbers `u`. Where
        probabilities are not known, or vanish, they are signed roots of deviances.
        """
        roots = np.sign(y - mu) * np.sqrt(size * self.deviance(y, mu))
        law = self.distribution(mu, size)
        if law is None:
            return np.asarray(roots)
        discrete = isinstance(self, Counts)
        at = y * size if discrete else y
        mass = law.pmf(at) if discrete else 0.0
        low, high = law.cdf(at) - u * mass, law.sf(at) + u * mass
        quantiles = np.where(low < high, ndtri(low), -ndtri(high))
        return np.where(np.minimum(low, high) > 0, quantiles, roots)

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
        """Return the kinds of rows, as masks, each of which weights must keep a part of.

        Rows that are not zero, where some may be.
        """
        return [y > 0] if self.zeros and self.positive else []


@dataclass(frozen=True)
class Gaussian(Family):
    """Normal distributions."""

    positive = False
    zeros = True

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

    power = 2.0

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

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy."""
        return gamma(size, scale=mu / size)


def _gamma_norm(shape: Array) -> Array:
    """Return the logarithm of the factor of ``exp(-shape d / 2) / y`` in a gamma density."""
    return xlogy(shape, shape) - shape - gammaln(shape)


@dataclass(frozen=True)
class InverseGaussian(Family):
    """Inverse Gaussian distributions."""

    power = 3.0

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        return ((y - mu) / mu) ** 2 / y

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy."""
        return invgauss(mu / size, scale=size)


@dataclass(frozen=True)
class Counts(Family):
    """Families of counts: N y has a distribution on whole numbers.

    Attributes
    ----------
    smooth : Link
        Function of the means in which expectations are smooth.
    """

    dispersed = False
    zeros = True
    smooth = Link.log()

    def moments(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations under weights of an order, by sums over the counts.

        Those of many rows with few sizes are interpolated.
        """
        if len(mu) > 1500 * len(np.unique(size)):
            return self.interpolated(mu, size, order)
        return self.summed(mu, size, order)

    def summed(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations as sums over the counts."""
        laws = self.laws(mu, size)
        return joined([sum_moments(self, y, mass, m, s, order) for _, y, mass, m, s in laws])

    def interpolated(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations between sums at a lattice of means.

        In units of the standard deviation they are smooth functions of the logarithm of the mean,
        or of the odds.
        """
        at, found = self.smooth.forward(mu), np.empty((len(mu), 4))
        step, margin = 0.02, 24  # beyond both ends, so that a spline does not see these
        for value in np.unique(size):
            rows = size == value
            first, last = np.floor(at[rows].min() / step), np.ceil(at[rows].max() / step)
            knots = step * np.arange(first - margin, last + margin + 1)
            means = self.smooth.inverse(knots)
            sums = self.summed(means, np.full_like(means, value), order)
            unit = np.sqrt(self.variance(means) / value)
            smooth = np.c_[sums.mass, sums.first / unit, sums.second / unit**2, sums.deviance]
            found[rows] = CubicSpline(knots, smooth)(at[rows])
        mass, first, second, deviance = found.T
        unit = np.sqrt(self.variance(mu) / size)
        return Moments(mass, first * unit, second * unit**2, deviance)

    def laws(self, mu: Array, size: Array) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
        """Yield the distributions of the responses of blocks of rows.

        Each has the rows, their responses and probabilities, shape (b, m), and means and sizes,
        shape (b, 1).
        """
        low, high = self.count_range(size * mu, size)
        width = int(min((high - low).max() + 1, ONE_BY_ONE + N_NODES))
        step = max(1, BLOCK_ENTRIES // width)
        for i in range(0, len(mu), step):
            rows = slice(i, i + step)
            nodes, steps = count_nodes(low[rows], high[rows])
            m, s = mu[rows, None], size[rows, None]
            yield rows, nodes / s, steps * np.exp(self.log_pmf(nodes, s * m, s)), m, s

    def tail(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the probability of a deviance at least as large as each row's, shape (n,)."""
        return row_map(self._tail, y, mu, size, tail=())

    def _tail(self, y: Array, mu: Array, size: Array) -> Array:
        parts = []
        for rows, nodes, mass, m, _ in self.laws(mu, size):
            least = self.deviance(y[rows, None], m) * (1.0 - ROUNDING)  # ties count
            parts.append(np.sum(mass * (self.deviance(nodes, m) >= least), axis=-1))
        return np.minimum(np.concatenate(parts), 1.0)

    def count_range(self, mean: Array, size: Array, tail: Any = 0.0) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term.

        The largest is further out than of a Poisson distribution by what is given.
        """
        reach = REACH * np.sqrt(size * self.variance(mean / size))
        low = np.floor(np.maximum(mean - reach, 0.0))
        return low, np.ceil(mean + reach + MORE + tail)

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        raise NotImplementedError

    def log_density(self, y: Array, mu: Array, size: Array) -> Array:
        """Return the log-probabilities of responses, shape (n,)."""
        return self.log_pmf(size * y, size * mu, size)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y + (y == 0) * 0.25 / size


@dataclass(frozen=True)
class Poisson(Counts):
    """Poisson distributions."""

    power = 1.0

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        return 2.0 * (xlogy(y, y / mu) - (y - mu))

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        return xlogy(count, mean) - mean - log_factorial(count)

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy, of counts."""
        return poisson(size * mu)


@dataclass(frozen=True)
class DispersedPoisson(Poisson):
    """Poisson distributions in units of an unknown dispersion."""

    dispersed = True
    log_density = Family.log_density

    def distribution(self, mu: Array, size: Array) -> None:
        """Return nothing: responses are not counts."""


@dataclass(frozen=True)
class Binomial(Counts):
    """Shares of successes; the size is the number of trials."""

    smooth = Link.logit()

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

    def count_range(self, mean: Array, size: Array, tail: Any = 0.0) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        low, high = super().count_range(mean, size, tail)
        return np.maximum(low - MORE, 0.0), np.minimum(high, np.maximum(np.round(size), 1.0))

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        trials = np.maximum(np.round(size), 1.0)
        p, rest = mean / size, trials - count
        choices = gammaln(trials + 1.0) - gammaln(count + 1.0) - gammaln(rest + 1.0)
        return choices + xlogy(count, p) + xlog1py(rest, -p)

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy, of counts."""
        return binom(np.maximum(np.round(size), 1.0), mu)

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

    alpha: float | Array = 1.0

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

    def count_range(self, mean: Array, size: Array, tail: Any = 0.0) -> tuple[Array, Array]:
        """Return the least and the largest count that have a probability worth a term."""
        return super().count_range(mean, size, FAINT / np.log1p(size / (self.alpha * mean)))

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""
        return log_negative_binomial(count, mean, size / self.alpha)

    def distribution(self, mu: Array, size: Array) -> Any:
        """Return the frozen distribution of scipy, of counts."""
        return nbinom(size / self.alpha, 1.0 / (1.0 + self.alpha * mu))


@dataclass(frozen=True)
class Tweedie(Family):
    """Compound Poisson distributions with variance mu^p, 1 < p < 2.

    Parameters
    ----------
    power : float
        The power p of the variance.
    """

    power: float = 1.5
    zeros = True

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        one, two = 1.0 - self.power, 2.0 - self.power
        found = y**two / (one * two) - y * mu**one / one + mu**two / two
        return np.maximum(2.0 * found, 0.0)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y + (y == 0) * 0.1 * max(float(y.mean()), np.finfo(float).tiny)

    def moments(self, mu: Array, size: Array, order: float) -> Moments:
        """Return expectations under weights of an order: the atom, and an integral."""
        jumps = self.jumps(mu, size)
        found = super().moments(mu, size, order)
        few = np.flatnonzero(jumps < 50.0)  # with many, the law is nearly a gamma law
        if len(few):
            top = float(jumps[few].max())
            most = int(top + 6.0 * np.sqrt(top) + 10.0)  # more jumps have no probability
            step = max(1, BLOCK_ENTRIES // (COMPOUND_NODES * most))
            blocks = [few[i : i + step] for i in range(0, len(few), step)]
            parts = joined([self._integrals(mu[b], size[b], order, most) for b in blocks])
            for column, part in zip(found, parts, strict=True):
                column[few] = part
        return found

    def jumps(self, mu: Array, size: Array) -> Array:
        """Return the expected number of gamma variables in a sum, shape (n,)."""
        two = 2.0 - self.power
        return size * mu**two / two

    def _integrals(self, mu: Array, size: Array, order: float, most: int) -> Moments:
        """Return the expectations of a block of rows, with sums of up to `most` jumps."""
        shape = (2.0 - self.power) / (self.power - 1.0)
        jumps = self.jumps(mu, size)[:, None]
        scale = ((self.power - 1.0) * mu ** (self.power - 1.0) / size)[:, None]
        spread = np.sqrt(self.variance(mu) / size)[:, None]
        top = mu[:, None] + REACH * spread + FAINT * scale
        # The density of one jump has a pole at zero where its shape is below one.
        bend = max(1.0, 2.0 / shape)
        unit, rule = np.polynomial.legendre.leggauss(COMPOUND_NODES)
        t = 0.5 * (unit + 1.0)
        y = top * t**bend
        steps = top * bend * t ** (bend - 1.0) * 0.5 * rule
        count = np.arange(1.0, most + 1.0)
        ways = -jumps + xlogy(count, jumps) - gammaln(count + 1.0) - gammaln(shape * count)
        ratio = y / scale
        log_terms = shape * count * np.log(ratio)[:, :, None] - ratio[:, :, None]
        density = np.exp(ways[:, None, :] + log_terms).sum(axis=-1) / y
        values = np.concatenate([np.zeros_like(jumps), y], axis=1)
        mass = np.concatenate([np.exp(-jumps), steps * density], axis=1)
        return sum_moments(self, values, mass, mu[:, None], size[:, None], order)


def count_nodes(low: Array, high: Array) -> tuple[Array, Array]:
    """Return counts from `low` to `high` and their weights in a sum, shape (n, m) each.

    The first are whole numbers of weight one. Where there are more than a few, those further on
    stand for several: nodes of a Gauss-Legendre rule in the logarithm of the rest of the range.
    """
    span = int((high - low).max())
    step = np.arange(min(span, ONE_BY_ONE + N_NODES - 1) + 1.0)
    long = high - low >= len(step)
    last = np.where(long, ONE_BY_ONE - 1.0, len(step) - 1.0)[:, None]
    nodes = low[:, None] + step
    weights = np.where((step <= last) & (nodes <= high[:, None]), 1.0, 0.0)
    if long.any():
        unit, rule = np.polynomial.legendre.leggauss(N_NODES)
        start = np.log(low[long] + ONE_BY_ONE - 0.5)
        half = 0.5 * (np.log(high[long] + 0.5) - start)[:, None]
        far = np.exp(start[:, None] + half * (1.0 + unit))
        nodes[long, ONE_BY_ONE:], weights[long, ONE_BY_ONE:] = far, half * rule * far
    return np.minimum(nodes, high[:, None]), weights


def sum_moments(
    family: Family, y: Array, mass: Array, mu: Array, size: Array, order: float
) -> Moments:
    """Return expectations over responses y (n, m) that have probabilities `mass`.

    `mu` and `size` have shape (n, 1).
    """
    scaled = size * family.deviance(y, mu)
    tilted = mass * np.exp(-0.5 * (order - 1.0) * scaled)
    off = y - mu
    pulled = tilted * off
    return Moments(
        tilted.sum(axis=-1),
        pulled.sum(axis=-1),
        np.einsum("nm,nm->n", pulled, off),
        np.einsum("nm,nm->n", tilted, scaled),
    )


def joined(parts: list[Moments]) -> Moments:
    """Return the expectations of blocks of rows as one."""
    return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def of_counts(function: Callable[[Array], Array], count: Array) -> Array:
    """Return a function of counts (n,), shape (..., n), found once for each number."""
    whole, most = np.asarray(count).astype(int), np.max(count, initial=0.0)
    if whole.ndim != 1 or most >= len(whole) or (whole != count).any():
        return function(count)
    return function(np.arange(most + 1.0))[..., whole]


def log_factorial(count: Array) -> Array:
    """Return the logarithms of the factorials of counts."""
    return of_counts(lambda y: gammaln(y + 1.0), count)


def log_negative_binomial(count: Array, mean: Array | float, shape: Array | float) -> Array:
    """Return the log-probabilities of counts of variance ``mean + mean^2 / shape``.

    They remain accurate where the shape is large and the distribution nearly Poisson.
    """
    ways = log_rising(count, shape) - log_factorial(count)
    return ways - (count + shape) * np.log1p(mean / shape) + xlogy(count, mean)


def shape_slope(count: Array, mean: Array | float, shape: Array | float) -> Array:
    """Return the derivatives of these in the shape."""
    ratio = mean / shape
    log = rising_slope(count, shape) - np.log1p(ratio)
    return log + (count + shape) * ratio / (mean + shape)


def log_rising(y: Array, size: Array | float) -> Array:
    """Return ln[Gamma(size + y) / Gamma(size)] - y ln(size), without cancellation.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.families import log_rising
    >>> size = np.array([3.0, 1e9])
    >>> bool(np.allclose(log_rising(np.array(2.0), size), np.log1p(1 / size), rtol=1e-6, atol=0))
    True
    """
    large = np.maximum(size, LARGE)
    series = (large + y - 0.5) * np.log1p(y / large) - y + _stirling(large + y) - _stirling(large)
    if (np.asarray(size) >= LARGE).all():
        return np.asarray(series)
    exact = gammaln(size + y) - gammaln(size) - y * np.log(size)
    return np.where(size < LARGE, exact, series)


def rising_slope(y: Array, size: Array | float) -> Array:
    """Return the derivative of `log_rising` in the size."""
    large = np.maximum(size, LARGE)
    series = (
        np.log1p(y / large)
        - y / large
        + 0.5 * y / (large * (large + y))
        + _stirling_slope(large + y)
        - _stirling_slope(large)
    )
    if (np.asarray(size) >= LARGE).all():
        return np.asarray(series)
    return np.where(size < LARGE, digamma(size + y) - digamma(size) - y / size, series)


def _stirling(z: Array) -> Array:
    """Return what Stirling's formula lacks of ln Gamma(z)."""
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * z**2)) / z**2) / z


def _stirling_slope(z: Array) -> Array:
    """Return its derivative."""
    return -(1.0 / 12.0 - (1.0 / 120.0 - 1.0 / (252.0 * z**2)) / z**2) / z**2
