"""Responses with a dispersion: bad ones far off or in a cluster, positive ones on a log scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.counts import Mean
from rrmstats.laws.mixture import LEAST_SHARE, Bounds, GoodRows

# Median of the square of a standard normal variable.
MEDIAN_SQUARE = 0.4549364
# Squared distances from which rows are far when a fit starts: mean and four standard deviations
# of those of good rows.
FAR = 1.0 + 4.0 * 2.0**0.5
LOG_PI, LOG_2PI = float(np.log(np.pi)), float(np.log(2.0 * np.pi))


class DispersedFamily(Protocol):
    """An exponential family with a dispersion."""

    @property
    def positive(self) -> bool:
        """Whether means must be positive."""

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""

    def log_norm(self, y: Array, size: Array) -> Array:
        """Return the logarithm of the factor of ``exp(-size d / 2)`` in the density."""


@dataclass(frozen=True, eq=False)
class Dispersed:
    """Responses of an exponential family; the parameter is the dispersion.

    Its equation is that of Pearson's estimate with the degrees of freedom of a fit.

    Attributes
    ----------
    family : DispersedFamily
    mean : Mean
    n_params : int
        Parameters of the mean.
    total : float
        Number of observations.
    """

    family: DispersedFamily
    mean: Mean
    n_params: int
    total: float
    kind: ClassVar[Good] = Good.PLAIN

    def start(self, endog: Array, size: Array, predictors: Array) -> Array:
        """Return the dispersion of the middle of the squared residuals."""
        mu = self.mean.mean_and_slope(predictors[0])[0]
        squares = size * (endog - mu) ** 2 / self.family.variance(mu)
        found = float(np.median(squares)) / MEDIAN_SQUARE
        return np.array([found if found > 0 else max(float(np.mean(squares)), 1e-300)])

    def rows(self, endog: Array, size: Array, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a dispersion."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        variance, nu = self.family.variance(mu), size / own[0]
        per_unit, off = nu * slope / variance, endog - mu
        norm = self.family.log_norm(endog, nu)
        spread = np.sqrt(variance / nu)
        return GoodRows(
            norm - 0.5 * nu * self.family.deviance(endog, mu),
            (off * per_unit)[None],
            (slope * per_unit)[None, None],
            mu,
            spread / mu if self.family.positive else spread,
            (size * off**2 / variance - own[0])[None],
            own * (self.n_params / self.total),
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return Pearson's dispersion, with the degrees of freedom of a fit."""
        squares = np.where(mass > 0, rows.own[0] + own[0], 0.0)
        free = float(mass.sum()) - self.n_params
        found = float(mass @ squares) / free if free > 0 else 0.0
        return np.array([found if found > 0 else own[0]])

    @property
    def bounds(self) -> Bounds:
        """Least and largest dispersion."""
        return np.array([np.finfo(float).tiny]), np.array([np.inf])


@dataclass(frozen=True, eq=False)
class _Around:
    """Bad rows around the fit, on a log scale where responses are positive.

    Attributes
    ----------
    log_scale : bool
    """

    log_scale: bool

    def distances(self, endog: Array, rows: GoodRows) -> tuple[Array, Array]:
        """Return distances in units of the spread, and the logarithms of their slopes, (n,)."""
        if not self.log_scale:
            return (endog - rows.center) / rows.spread, -np.log(rows.spread)
        some = np.where(endog > 0, endog, 1.0)
        off = (np.log(some) - np.log(rows.center)) / rows.spread
        return off, -np.log(rows.spread * some)


@dataclass(frozen=True, eq=False)
class WideAround(_Around):
    """Bad rows with a Cauchy distribution around the fit; the parameter is its squared scale.

    Attributes
    ----------
    zeros : bool
        Whether responses may be zero; the second parameter is the share of zeros among them.
    """

    zeros: bool = False

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the middle of the squared distances of rows that are far."""
        squares = self.distances(endog, rows)[0] ** 2
        far = (squares > FAR) & ~(self.zeros & (endog == 0))
        found = np.array([max(float(np.median(squares[far])), 2.0) if far.any() else 4.0])
        return np.append(found, 0.5) if self.zeros else found

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        off, log_slope = self.distances(endog, rows)
        found = log_slope - LOG_PI - 0.5 * np.log(own[0]) - np.log1p(off**2 / own[0])
        if not self.zeros:
            return found
        return np.where(endog == 0, np.log(own[1]), found + np.log1p(-own[1]))

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equations of the scale, and of the share of zeros."""
        squares = self.distances(endog, rows)[0] ** 2
        scale = 2.0 * squares / (own[0] + squares) - 1.0
        if not self.zeros:
            return scale[None]
        zero = endog == 0
        return np.stack([np.where(zero, 0.0, scale), zero - own[1]])

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return the parameters after a step."""
        squares, some = self.distances(endog, rows)[0] ** 2, mass
        if self.zeros:
            some = mass * (endog > 0)
        total = max(float(some.sum()), np.finfo(float).tiny)
        new = own[0] * float(some @ (2.0 * squares / (own[0] + squares))) / total
        if not self.zeros:
            return np.array([new])
        zeros = 1.0 - total / max(float(mass.sum()), np.finfo(float).tiny)
        return np.array([new, zeros])

    @property
    def bounds(self) -> Bounds:
        """Least and largest scale, and share of zeros."""
        least, most = np.array([1.0, LEAST_SHARE]), np.array([np.inf, 1.0 - LEAST_SHARE])
        return (least, most) if self.zeros else (least[:1], most[:1])


@dataclass(frozen=True, eq=False)
class Cluster(_Around):
    """Bad rows in a cluster: normal with a mean and a variance, at least that of good rows."""

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the middle of the distances of rows that are far, above and below, (2, 2)."""
        off = self.distances(endog, rows)[0][endog != 0]
        sides = [sign * off[(sign * off > 0) & (off**2 > FAR)] for sign in (1.0, -1.0)]
        above, below = (float(np.median(far)) if len(far) else 3.0 for far in sides)
        return np.array([[above, 1.0], [-below, 1.0]])

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows; zeros are in no cluster of a log scale."""
        off, log_slope = self.distances(endog, rows)
        found = log_slope - 0.5 * (LOG_2PI + np.log(own[1]) + (off - own[0]) ** 2 / own[1])
        return np.where(endog > 0, found, -np.inf) if self.log_scale else found

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the equations of mean and variance."""
        off = self.distances(endog, rows)[0] - own[0]
        return np.stack([off, off**2 - own[1]])

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return mean and variance of the rows."""
        off, total = self.distances(endog, rows)[0], float(mass.sum())
        if total < LEAST_SHARE:
            return own
        mean = float(mass @ off) / total
        return np.array([mean, float(mass @ (off - mean) ** 2) / total])

    @property
    def bounds(self) -> Bounds:
        """Least and largest mean and variance."""
        return np.array([-np.inf, 1.0]), np.array([np.inf, np.inf])
