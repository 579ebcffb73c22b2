"""Counts: good ones of a family, overdispersed ones; bad ones far off or false zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import betaln, digamma, gammaln, xlogy

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.mixture import LONGEST, Bounds, GoodRows, NoParameters
from rrmstats.laws.rows import Responses

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
# Size from which Stirling's series is exact to rounding.
LARGE = 50.0


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


@dataclass(frozen=True, eq=False)
class PlainCounts(NoParameters):
    """Counts of an exponential family, whose variance is what the mean says."""

    family: CountFamily
    mean: Mean
    kind: ClassVar[Good] = Good.PLAIN

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n)."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        variance, size = self.family.variance(mu), seen.size
        per_unit = size * slope / variance
        return GoodRows(
            self.family.log_pmf(seen.counts, size * mu, size),
            ((seen.endog - mu) * per_unit)[None],
            (slope * per_unit)[None, None],
            size * mu,
            np.sqrt(size * variance),
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
    bounds: ClassVar[Bounds] = (np.array([LEAST_DISPERSION]), np.array([np.inf]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return the alpha of the middle of the squared residuals, and a small one at least."""
        m = seen.size * self.mean.mean_and_slope(predictors[0])[0]
        alpha = np.median(((seen.counts - m) ** 2 - m) / np.maximum(m, 1.0) ** 2)
        return np.array([float(np.clip(alpha, 0.05, 5.0))])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and the added alpha."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        y, m, slope = seen.counts, seen.size * mu, seen.size * slope
        alpha = own[0] + self.given
        shape = seen.size / alpha
        weight = shape / (m * (shape + m))
        return GoodRows(
            log_negative_binomial(y, m, shape),
            ((y - m) * slope * weight)[None],
            (slope**2 * weight)[None, None],
            m,
            np.sqrt(1.0 / weight),
            (-shape_slope(y, m, shape) * shape / alpha)[None],
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return alpha after a step of scoring."""
        return scored(own, mass, rows)


@dataclass(frozen=True, eq=False)
class OverdispersedShares:
    """Beta-binomial counts; the parameter is the correlation of two trials of a row."""

    mean: Mean
    kind: ClassVar[Good] = Good.OVERDISPERSED
    bounds: ClassVar[Bounds] = (np.array([LEAST_DISPERSION]), np.array([MOST_CORRELATION]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return a small correlation."""
        return np.array([0.05])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a correlation."""
        p, slope = self.mean.mean_and_slope(predictors[0])
        trials, rho = seen.trials, own[0]
        shapes = np.stack([p, 1.0 - p]) * (1.0 - rho) / rho
        up, down = shape_slopes(seen, shapes)
        variance = p * (1.0 - p) * trials * (1.0 + (trials - 1.0) * rho)
        return GoodRows(
            log_beta_binomial(seen, shapes),
            (slope * (1.0 - rho) / rho * (up - down))[None],
            ((slope * trials) ** 2 / variance)[None, None],
            trials * p,
            np.sqrt(variance),
            (-(p * up + (1.0 - p) * down) / rho**2)[None],
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return the correlation after a step of scoring."""
        return scored(own, mass, rows)


def scored(own: Array, mass: Array, rows: GoodRows) -> Array:
    """Return a dispersion after a step of scoring in its logarithm."""
    scores = np.where(mass > 0, rows.own, 0.0)[0] * own[0]
    spread = float(mass @ scores**2)
    step = float(mass @ scores) / spread if spread > 0 else 0.0
    return own * np.exp(np.clip(step, -LONGEST, LONGEST))


@dataclass(frozen=True, eq=False)
class WideCounts:
    """Counts without predictors and without moments: discrete Lomax, ``s / ((y + s)(y + s + 1))``.

    The parameter s is their median.
    """

    bounds: ClassVar[Bounds] = (np.array([LEAST_MEDIAN]), np.array([np.inf]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        return np.array([_far_median(seen, rows, 1.0)])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_lomax(seen.counts, own[0])

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the median."""
        at = seen.counts + own[0]
        return (1.0 / own[0] - 1.0 / at - 1.0 / (at + 1.0))[None]


def _far_median(seen: Responses, rows: GoodRows, otherwise: float) -> float:
    """Return the median of counts that are far, or a multiple of the mean where none is."""
    far = seen.endog[np.abs(seen.endog - rows.center) > FAR * rows.spread]
    middle = float(np.median(far)) if len(far) else otherwise * float(np.mean(rows.center))
    return max(middle, LEAST_MEDIAN)


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

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.full(len(seen.endog), -np.log(2.0))


class OftenFlipped:
    """Labels of a bad group: each is flipped with a probability f, the parameter.

    At f = 1/2 they do not depend on the predictors, at f = 1 all are the opposite.
    """

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return a large share of flipped labels."""
        return np.array([START_FLIPPED])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        label = np.exp(rows.log_density)
        return np.log(np.maximum((1.0 - own[0]) * label + own[0] * (1.0 - label), TINY))

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the derivatives of the log-probabilities in f."""
        label = np.exp(rows.log_density)
        return (1.0 - 2.0 * label)[None] / np.exp(self.log_density(seen, rows, own))

    @property
    def bounds(self) -> Bounds:
        """Least and largest f."""
        return np.array([LEAST_DISPERSION]), np.array([1.0])


@dataclass(frozen=True, eq=False)
class AnyShare:
    """Counts of successes without predictors: beta-binomial, with the shapes of its beta law."""

    bounds: ClassVar[Bounds] = (np.full(2, SHAPES[0]), np.full(2, SHAPES[1]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the shapes at which any number of successes is as likely as any other."""
        return np.ones(2)

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_beta_binomial(seen, own)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the shapes."""
        return shape_slopes(seen, own)


def _results(seen: Responses) -> Array:
    """Return the numbers of successes and of failures, shape (2, n)."""
    successes = np.clip(seen.counts, 0.0, seen.trials)
    return np.stack([successes, seen.trials - successes])


def log_beta_binomial(seen: Responses, shapes: Array) -> Array:
    """Return the log-probabilities of successes, at the shapes (2, ...) of a beta law."""
    y, rest = _results(seen)
    choices = gammaln(seen.trials + 1.0) - gammaln(y + 1.0) - gammaln(rest + 1.0)
    return choices + betaln(y + shapes[0], rest + shapes[1]) - betaln(*shapes)


def shape_slopes(seen: Responses, shapes: Array) -> Array:
    """Return their derivatives in the shapes, shape (2, n)."""
    total = shapes.sum(axis=0)
    both = digamma(total) - digamma(seen.trials + total)
    each = shapes if shapes.ndim > 1 else shapes[:, None]
    return digamma(_results(seen) + each) - digamma(each) + both


@dataclass(frozen=True, eq=False)
class CountCluster:
    """Counts without predictors around one mean: negative binomial, with its mean and alpha."""

    bounds: ClassVar[Bounds] = (
        np.array([LEAST_MEDIAN, LEAST_DISPERSION]),
        np.array([np.inf, MOST_ALPHA]),
    )

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the counts of rows that are far."""
        return np.array([_far_median(seen, rows, 2.0), 0.1])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return log_negative_binomial(seen.counts, own[0], 1.0 / own[1])

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in mean and alpha."""
        mean, shape = own[0], 1.0 / own[1]
        by_mean = (seen.counts - mean) / (mean * (1.0 + mean * own[1]))
        return np.stack([by_mean, -shape_slope(seen.counts, mean, shape) * shape**2])


class FalseZeros(NoParameters):
    """Zeros whatever the predictors are."""

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-probabilities of the rows."""
        return np.where(seen.endog == 0, 0.0, -np.inf)


def log_negative_binomial(count: Array, mean: Array | float, shape: Array | float) -> Array:
    """Return the log-probabilities of counts of variance ``mean + mean^2 / shape``.

    They remain accurate where the shape is large and the distribution nearly Poisson.
    """
    ways = log_rising(count, shape) - gammaln(count + 1.0)
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
    >>> from rrmstats.laws.counts import log_rising
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
