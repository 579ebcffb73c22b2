"""Counts: good ones of a family, overdispersed ones; bad ones far off or false zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import betaln, digamma, gammaln, xlogy

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.mixture import Bounds, GoodRows, NoParameters

# Overdispersion, as a correlation or as what alpha adds to the variance, that counts as none.
LEAST_DISPERSION = 1e-4
MOST_CORRELATION = 0.99
# Largest alpha of bad counts around one mean; beyond they are wide.
MOST_ALPHA = 1.0
# Standard deviations from which counts are far when a fit starts.
FAR = 3.0
# Least median of wide counts: with less they would be zeros.
LEAST_MEDIAN = 1.0
# Bounds of the shapes of wide shares.
SHAPES = (1e-2, 1e1)
# Share of flipped labels in bad groups from which a fit starts.
START_FLIPPED = 0.9
TINY = float(np.finfo(float).tiny)
# Largest change of a dispersion in one step, as a factor.
LARGEST_FACTOR = 3.0


class Mean(Protocol):
    """The mean of a linear predictor."""

    def mean_and_slope(self, eta: Array) -> tuple[Array, Array]:
        """Return the means at linear predictors, and their derivatives."""


class CountFamily(Protocol):
    """An exponential family of counts ``size * y``."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""

    def log_pmf(self, count: Array, mean: Array, size: Array) -> Array:
        """Return the log-probabilities of counts, given their means."""


def _one(values: Array) -> Array:
    return values[None]


@dataclass(frozen=True, eq=False)
class PlainCounts(NoParameters):
    """Counts of an exponential family, whose variance is what the mean says."""

    family: CountFamily
    mean: Mean
    kind: ClassVar[Good] = Good.PLAIN

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n)."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        variance = self.family.variance(mu)
        per_unit = size * slope / variance
        return GoodRows(
            self.family.log_pmf(size * endog, size * mu, size),
            _one((endog - mu) * per_unit),
            _one(_one(slope * per_unit)),
            size * mu,
            np.sqrt(size * variance),
            np.zeros((0, len(endog))),
            np.zeros((0, len(endog))),
        )


@dataclass(frozen=True, eq=False)
class OverdispersedCounts:
    """Negative binomial counts of variance ``m + (alpha + given) m^2 / size``.

    Attributes
    ----------
    mean : Mean
    given : float
        The alpha that the family has.
    """

    mean: Mean
    given: float = 0.0
    kind: ClassVar[Good] = Good.OVERDISPERSED

    def start(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return the alpha of the middle of the squared residuals, and a small one at least."""
        m = size * self.mean.mean_and_slope(predictors[0])[0]
        alpha = np.median(((size * endog - m) ** 2 - m) / np.maximum(m, 1.0) ** 2)
        return np.array([float(np.clip(alpha, 0.05, 5.0))])

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and the added alpha."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        y, m, slope = size * endog, size * mu, size * slope
        alpha = own[0] + self.given
        shape = size / alpha
        weight = shape / (m * (shape + m))
        return GoodRows(
            log_negative_binomial(y, m, shape),
            _one((y - m) * slope * weight),
            _one(_one(slope**2 * weight)),
            m,
            np.sqrt(1.0 / weight),
            _one(-shape_slope(y, m, shape) * shape / alpha),
            np.zeros((1, len(endog))),
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return alpha after a step of scoring."""
        return _scored(own, mass, rows.own[0])

    @property
    def bounds(self) -> Bounds:
        """Least and largest alpha."""
        return np.array([LEAST_DISPERSION]), np.array([np.inf])


@dataclass(frozen=True, eq=False)
class OverdispersedShares:
    """Beta-binomial counts; the parameter is the correlation of two trials of a row."""

    mean: Mean
    kind: ClassVar[Good] = Good.OVERDISPERSED

    def start(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return a small correlation."""
        return np.array([0.05])

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a correlation."""
        p, slope = self.mean.mean_and_slope(predictors[0])
        trials = np.maximum(np.round(size), 1.0)
        y, rho = np.clip(size * endog, 0.0, trials), own[0]
        total = (1.0 - rho) / rho
        a, b, rest = p * total, (1.0 - p) * total, trials - y
        choices = gammaln(trials + 1.0) - gammaln(y + 1.0) - gammaln(rest + 1.0)
        up, down = digamma(y + a) - digamma(a), digamma(rest + b) - digamma(b)
        both = digamma(trials + total) - digamma(total)
        variance = p * (1.0 - p) * trials * (1.0 + (trials - 1.0) * rho)
        return GoodRows(
            choices + betaln(y + a, rest + b) - betaln(a, b),
            _one(slope * total * (up - down)),
            _one(_one((slope * trials) ** 2 / variance)),
            trials * p,
            np.sqrt(variance),
            _one((both - p * up - (1.0 - p) * down) / rho**2),
            np.zeros((1, len(endog))),
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return the correlation after a step of scoring."""
        return _scored(own, mass, rows.own[0])

    @property
    def bounds(self) -> Bounds:
        """Least and largest correlation."""
        return np.array([LEAST_DISPERSION]), np.array([MOST_CORRELATION])


def _scored(own: Array, mass: Array, scores: Array) -> Array:
    """Return a dispersion after a step of scoring in its logarithm."""
    scores = np.where(mass > 0, scores, 0.0) * own[0]
    spread = float(mass @ scores**2)
    step = float(mass @ scores) / spread if spread > 0 else 0.0
    limit = float(np.log(LARGEST_FACTOR))
    return own * np.exp(np.clip(step, -limit, limit))


@dataclass(frozen=True, eq=False)
class WideCounts:
    """Counts without predictors and without moments: discrete Lomax, ``s / ((y + s)(y + s + 1))``.

    The parameter s is their median.
    """

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        far = endog[np.abs(endog - rows.center) > FAR * rows.spread]
        middle = float(np.median(far)) if len(far) else float(np.mean(rows.center))
        return np.array([max(middle, LEAST_MEDIAN)])

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_lomax(size * endog, own[0])

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equation of the median."""
        at = size * endog + own[0]
        return _one(1.0 - own[0] / at - own[0] / (at + 1.0))

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return the median after a step."""
        off = float(mass @ (1.0 - self.equations(endog, size, rows, own)[0]))
        return own * float(mass.sum()) / max(off, LEAST_DISPERSION)

    @property
    def bounds(self) -> Bounds:
        """Least and largest median."""
        return np.array([LEAST_MEDIAN]), np.array([np.inf])


def log_lomax(count: Array, scale: Array | float) -> Array:
    """Return the log-probabilities of counts whose distribution function is y / (y + scale).

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.counts import log_lomax
    >>> float(np.exp(log_lomax(np.arange(3.0), 3.0)).sum().round(6))
    0.5
    """
    return np.log(scale) - np.log(count + scale) - np.log(count + scale + 1.0)


class EitherLabel(NoParameters):
    """Labels 0 and 1, one as likely as the other."""

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.full(len(endog), -np.log(2.0))


class OftenFlipped:
    """Labels of a bad group: each is flipped with a probability f, the parameter.

    At f = 1/2 they do not depend on the predictors, at f = 1 all are the opposite.
    """

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return a large share of flipped labels."""
        return np.array([START_FLIPPED])

    def _flipped(self, rows: GoodRows, own: Array) -> tuple[Array, Array]:
        """Return the probabilities of the labels if not flipped, and of those seen, (n,) each."""
        label = np.exp(rows.log_density)
        return label, np.maximum((1.0 - own[0]) * label + own[0] * (1.0 - label), TINY)

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.log(self._flipped(rows, own)[1])

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equation of f: the probability of a flip, given the label, less f."""
        label, seen = self._flipped(rows, own)
        return _one(own[0] * (1.0 - label) / seen - own[0])

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return f after a step of EM."""
        off = float(mass @ self.equations(endog, size, rows, own)[0])
        return own + off / max(float(mass.sum()), TINY)

    @property
    def bounds(self) -> Bounds:
        """Least and largest f."""
        return np.array([LEAST_DISPERSION]), np.array([1.0])


@dataclass(frozen=True, eq=False)
class AnyShare:
    """Counts of successes without predictors: beta-binomial, with the shapes of its beta law."""

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the shapes at which any number of successes is as likely as any other."""
        return np.ones(2)

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        trials = np.maximum(np.round(size), 1.0)
        y = np.clip(size * endog, 0.0, trials)
        choices = gammaln(trials + 1.0) - gammaln(y + 1.0) - gammaln(trials - y + 1.0)
        return choices + betaln(y + own[0], trials - y + own[1]) - betaln(*own)

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equations of the shapes."""
        trials = np.maximum(np.round(size), 1.0)
        y = np.clip(size * endog, 0.0, trials)
        both = digamma(own.sum(axis=0)) - digamma(trials + own.sum(axis=0))
        up = digamma(y + own[0]) - digamma(own[0]) + both
        down = digamma(trials - y + own[1]) - digamma(own[1]) + both
        return np.stack([up, down])

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return the shapes after a step of their fixed point (Minka's)."""
        trials = np.maximum(np.round(size), 1.0)
        both = float(mass @ (digamma(trials + own.sum()) - digamma(own.sum())))
        pull = self.equations(endog, size, rows, own) @ mass
        return own * (1.0 + pull / max(both, LEAST_DISPERSION))

    @property
    def bounds(self) -> Bounds:
        """Least and largest shapes."""
        return np.full(2, SHAPES[0]), np.full(2, SHAPES[1])


@dataclass(frozen=True, eq=False)
class CountCluster:
    """Counts without predictors around one mean: negative binomial, with its mean and alpha."""

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        far = endog[np.abs(endog - rows.center) > FAR * rows.spread]
        middle = float(np.median(far)) if len(far) else 2.0 * float(np.mean(rows.center))
        return np.array([max(middle, LEAST_MEDIAN), 0.1])

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_negative_binomial(size * endog, own[0], 1.0 / own[1])

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equations of mean and alpha."""
        return np.stack([size * endog - own[0], self._alpha_scores(size * endog, own)])

    def _alpha_scores(self, count: Array, own: Array) -> Array:
        return -shape_slope(count, own[0], 1.0 / own[1]) / own[1] ** 2

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return the mean, and alpha after a step."""
        count, total = size * endog, max(float(mass.sum()), LEAST_DISPERSION)
        mean = max(float(mass @ count) / total, LEAST_MEDIAN)
        scores = self._alpha_scores(count, np.array([mean, own[1]]))
        return np.append(mean, _scored(own[1:], mass, scores))

    @property
    def bounds(self) -> Bounds:
        """Least and largest mean and alpha."""
        return np.array([LEAST_MEDIAN, LEAST_DISPERSION]), np.array([np.inf, MOST_ALPHA])


def log_negative_binomial(count: Array, mean: Array | float, shape: Array | float) -> Array:
    """Return the log-probabilities of counts of variance ``mean + mean^2 / shape``."""
    ways = gammaln(count + shape) - gammaln(shape) - gammaln(count + 1.0)
    return ways - shape * np.log1p(mean / shape) + xlogy(count, mean / (mean + shape))


def shape_slope(count: Array, mean: Array | float, shape: Array | float) -> Array:
    """Return the derivatives of these in the shape."""
    log = digamma(count + shape) - digamma(shape) - np.log1p(mean / shape)
    return log + (mean - count) / (mean + shape)


class FalseZeros(NoParameters):
    """Zeros whatever the predictors are."""

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.where(endog == 0, 0.0, -np.inf)
