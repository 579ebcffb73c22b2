"""Log-densities of responses as functions of few predictors, with their slopes in closed form.

A kernel knows nothing of parameters or designs: its predictors are arrays that broadcast with the
responses, the linear predictors of a model and its dispersion. Each remains accurate as the
dispersion falls to zero, where differences of log-gamma functions lose all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit, log_ndtr, xlogy

from rrmstats.core.entropy import Array
from rrmstats.laws.counts import log_negative_binomial, shape_slope

# Logarithms of means beyond which exponentials over- or underflow.
FARTHEST_LOG = 300.0


class Kernel(Protocol):
    """The log-density of a response, given predictors."""

    @property
    def log_density(self) -> Callable[..., Array]:
        """Function of responses and predictors that returns log-densities."""

    @property
    def slopes(self) -> Callable[..., Array]:
        """Function of both that returns the derivatives in each predictor, shape (q, ...)."""


class CountKernel(Kernel, Protocol):
    """The log-probability of a count, given predictors."""

    @property
    def moments(self) -> Callable[..., tuple[Array, Array]]:
        """Function of predictors that returns means and variances."""


@dataclass(frozen=True)
class PoissonKernel:
    """Counts whose variance is their mean; the predictor is the logarithm of the mean."""

    def log_density(self, y: Array, log_mean: Array) -> Array:
        """Return the log-probabilities of counts."""
        return y * log_mean - _exp(log_mean) - gammaln(y + 1.0)

    def slopes(self, y: Array, log_mean: Array) -> Array:
        """Return their derivatives, shape (1, ...)."""
        return np.asarray(y - _exp(log_mean))[None]

    def moments(self, log_mean: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean = _exp(log_mean)
        return mean, mean


@dataclass(frozen=True)
class NegativeBinomialKernel:
    """Counts of variance mu + alpha mu^power; predictors are the logarithm of mu, and alpha.

    Attributes
    ----------
    power : float
    alpha : float or None
        Given where it is no predictor.
    """

    power: float
    alpha: float | None = None

    def _sizes(self, log_mean: Array, alpha: Array | None) -> tuple[Array, Array, Array]:
        mean = _exp(log_mean)
        given = np.asarray(self.alpha if alpha is None else alpha, dtype=float)
        given = np.where(given > 0, given, np.nan)
        return mean, mean ** (2.0 - self.power) / given, given

    def log_density(self, y: Array, log_mean: Array, alpha: Array | None = None) -> Array:
        """Return the log-probabilities of counts."""
        mean, size, _ = self._sizes(log_mean, alpha)
        return log_negative_binomial(y, mean, size)

    def slopes(self, y: Array, log_mean: Array, alpha: Array | None = None) -> Array:
        """Return their derivatives, shape (1 or 2, ...)."""
        mean, size, given = self._sizes(log_mean, alpha)
        by_size = shape_slope(y, mean, size)
        by_mean = y - (y + size) * mean / (size + mean) + (2.0 - self.power) * size * by_size
        if alpha is None:
            return np.asarray(by_mean)[None]
        return np.stack(np.broadcast_arrays(by_mean, -size / given * by_size))

    def moments(self, log_mean: Array, alpha: Array | None = None) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, size, _ = self._sizes(log_mean, alpha)
        return mean, mean + mean**2 / size


@dataclass(frozen=True)
class GeneralizedPoissonKernel:
    """Counts of variance mu (1 + alpha mu^power)^2; predictors are ln(mu) and alpha.

    Attributes
    ----------
    power : float
        Statsmodels' parameterization.
    """

    power: float

    def _parts(self, y: Array, log_mean: Array, alpha: Array) -> tuple[Array, ...]:
        mean = _exp(log_mean)
        tilt = alpha * mean**self.power
        return mean, tilt, mean + tilt * y, 1.0 + tilt

    def log_density(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return the log-probabilities of counts, -inf outside of the domain."""
        _, _, rate, stretch = self._parts(y, log_mean, alpha)
        found = (
            _bounded(log_mean)
            + (y - 1.0) * np.log(rate)
            - y * np.log(stretch)
            - rate / stretch
            - gammaln(y + 1.0)
        )
        return np.where((rate > 0) & (stretch > 0), found, -np.inf)

    def slopes(self, y: Array, log_mean: Array, alpha: Array) -> Array:
        """Return their derivatives, shape (2, ...)."""
        mean, tilt, rate, stretch = self._parts(y, log_mean, alpha)
        by_mean = 1.0 / mean + (y - 1.0) / rate - 1.0 / stretch
        by_tilt = (y - 1.0) * y / rate - y / stretch - (y - mean) / stretch**2
        slope = mean * by_mean + self.power * tilt * by_tilt
        return np.stack(np.broadcast_arrays(slope, mean**self.power * by_tilt))

    def moments(self, log_mean: Array, alpha: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, _, _, stretch = self._parts(np.zeros(1), log_mean, alpha)
        return mean, mean * stretch**2


@dataclass(frozen=True)
class ZeroInflatedKernel:
    """Counts some of which are zero whatever their law; the first predictor tells how many.

    Attributes
    ----------
    main : CountKernel
        The law of the other counts.
    probit : bool
        Whether the share of added zeros is Gaussian in its predictor; logistic otherwise.
    """

    main: CountKernel
    probit: bool = False

    def _log_shares(self, inflation: Array) -> tuple[Array, Array]:
        """Return the logarithms of the shares of added zeros and of the rest."""
        log = log_ndtr if self.probit else log_expit
        return np.asarray(log(inflation)), np.asarray(log(-inflation))

    def log_density(self, y: Array, inflation: Array, *rest: Array) -> Array:
        """Return the log-probabilities of counts."""
        added, kept = self._log_shares(inflation)
        plain = kept + self.main.log_density(y, *rest)
        return np.where(y == 0, np.logaddexp(added, plain), plain)

    def slopes(self, y: Array, inflation: Array, *rest: Array) -> Array:
        """Return their derivatives, shape (q, ...)."""
        added, kept = self._log_shares(inflation)
        if self.probit:
            log_bell = -0.5 * inflation**2 - 0.5 * np.log(2.0 * np.pi)
            up, down = np.exp(log_bell - added), np.exp(log_bell - kept)
        else:
            up, down = np.exp(kept), np.exp(added)
        plain = kept + self.main.log_density(y, *rest)
        # Probability that a zero is one of the main law.
        own = np.where(y == 0, expit(plain - added), 1.0)
        first = (1.0 - own) * up - own * down
        others = own * self.main.slopes(y, *rest)
        return np.concatenate([np.broadcast_to(first, others.shape[1:])[None], others])

    def moments(self, inflation: Array, *rest: Array) -> tuple[Array, Array]:
        """Return means and variances."""
        mean, variance = self.main.moments(*rest)
        added, kept = (np.exp(share) for share in self._log_shares(inflation))
        return kept * mean, kept * (variance + added * mean**2)


@dataclass(frozen=True)
class BetaKernel:
    """Shares; predictors are the logit of the mean and the logarithm of the precision."""

    def log_density(self, y: Array, logit_mean: Array, log_precision: Array) -> Array:
        """Return the log-densities of shares."""
        precision = _exp(log_precision)
        a, b = expit(logit_mean) * precision, expit(-logit_mean) * precision
        norm = gammaln(precision) - gammaln(a) - gammaln(b)
        return norm + xlogy(a - 1.0, y) + (b - 1.0) * np.log1p(-y)

    def slopes(self, y: Array, logit_mean: Array, log_precision: Array) -> Array:
        """Return their derivatives, shape (2, ...)."""
        precision, mean, rest = _exp(log_precision), expit(logit_mean), expit(-logit_mean)
        low = np.log(y) - digamma(mean * precision)
        high = np.log1p(-y) - digamma(rest * precision)
        by_mean = mean * rest * precision * (low - high)
        by_precision = precision * (digamma(precision) + mean * low + rest * high)
        return np.stack(np.broadcast_arrays(by_mean, by_precision))


@dataclass(frozen=True)
class ProbitKernel:
    """Labels 0 and 1; the predictor is the normal quantile of the probability of 1."""

    def log_density(self, y: Array, quantile: Array) -> Array:
        """Return the log-probabilities of labels."""
        return np.asarray(log_ndtr((2.0 * y - 1.0) * quantile))

    def slopes(self, y: Array, quantile: Array) -> Array:
        """Return their derivatives, shape (1, ...)."""
        side = 2.0 * y - 1.0
        z = side * quantile
        bell = -0.5 * (z**2 + np.log(2.0 * np.pi))
        return np.asarray(side * np.exp(bell - log_ndtr(z)))[None]


def _exp(log_mean: Array) -> Array:
    """Return exponentials that neither overflow nor vanish."""
    return np.exp(_bounded(log_mean))


def _bounded(log_mean: Array) -> Array:
    """Return logarithms whose exponentials are finite; terms that cancel must share them."""
    return np.clip(log_mean, -FARTHEST_LOG, FARTHEST_LOG)
