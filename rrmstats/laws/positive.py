"""Responses with a dispersion: bad ones far off or in a cluster, positive ones on a log scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.counts import Mean
from rrmstats.laws.mixture import LEAST_SHARE, Bounds, GoodRows
from rrmstats.laws.rows import Responses

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
    bounds: ClassVar[Bounds] = (np.array([np.finfo(float).tiny]), np.array([np.inf]))

    def start(self, seen: Responses, predictors: Array) -> Array:
        """Return the dispersion of the middle of the squared residuals."""
        mu = self.mean.mean_and_slope(predictors[0])[0]
        squares = seen.size * (seen.endog - mu) ** 2 / self.family.variance(mu)
        found = float(np.median(squares)) / MEDIAN_SQUARE
        return np.array([found if found > 0 else max(float(np.mean(squares)), 1e-300)])

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (1, n) and a dispersion."""
        mu, slope = self.mean.mean_and_slope(predictors[0])
        variance, nu = self.family.variance(mu), seen.size / own[0]
        per_unit, off = nu * slope / variance, seen.endog - mu
        norm = self.family.log_norm(seen.endog, nu)
        spread = np.sqrt(variance / nu)
        return GoodRows(
            norm - 0.5 * nu * self.family.deviance(seen.endog, mu),
            (off * per_unit)[None],
            (slope * per_unit)[None, None],
            mu,
            spread / mu if self.family.positive else spread,
            0.5 * (nu * off**2 / variance - 1.0)[None] / own[:1],
            0.5 * (self.n_params / self.total) / own,
        )

    def updated(self, own: Array, mass: Array, rows: GoodRows) -> Array:
        """Return Pearson's dispersion, with the degrees of freedom of a fit."""
        squares = np.where(mass > 0, 1.0 + 2.0 * own[0] * rows.own[0], 0.0)
        free = float(mass.sum()) - self.n_params
        found = float(mass @ squares) / free if free > 0 else 0.0
        return own * found if found > 0 else own


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

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the squared distances of rows that are far."""
        squares = self.distances(seen.endog, rows)[0] ** 2
        far = (squares > FAR) & ~(self.zeros & (seen.endog == 0))
        found = max(float(np.median(squares[far])), 2.0) if far.any() else 4.0
        return np.array([found, 0.5])[: 1 + self.zeros]

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        off, log_slope = self.distances(seen.endog, rows)
        found = log_slope - LOG_PI - 0.5 * np.log(own[0]) - np.log1p(off**2 / own[0])
        if not self.zeros:
            return found
        return np.where(seen.endog == 0, np.log(own[1]), found + np.log1p(-own[1]))

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in the scale, and in the share of zeros."""
        squares = self.distances(seen.endog, rows)[0] ** 2
        scale = (squares / (own[0] + squares) - 0.5) / own[0]
        if not self.zeros:
            return scale[None]
        zero, share = seen.endog == 0, own[1]
        return np.stack([np.where(zero, 0.0, scale), (zero - share) / (share * (1.0 - share))])

    @property
    def bounds(self) -> Bounds:
        """Least and largest scale, and share of zeros."""
        least, most = np.array([1.0, LEAST_SHARE]), np.array([np.inf, 1.0 - LEAST_SHARE])
        return least[: 1 + self.zeros], most[: 1 + self.zeros]


@dataclass(frozen=True, eq=False)
class Cluster(_Around):
    """Bad rows in a cluster: normal with a mean and a variance, at least that of good rows."""

    bounds: ClassVar[Bounds] = (np.array([-np.inf, 1.0]), np.array([np.inf, np.inf]))

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the middle of the distances of rows that are far, above and below, (2, 2)."""
        off = self.distances(seen.endog, rows)[0][seen.endog != 0]
        sides = [sign * off[(sign * off > 0) & (off**2 > FAR)] for sign in (1.0, -1.0)]
        above, below = (float(np.median(far)) if len(far) else 3.0 for far in sides)
        return np.array([[above, 1.0], [-below, 1.0]])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows; zeros are in no cluster of a log scale."""
        off, log_slope = self.distances(seen.endog, rows)
        found = log_slope - 0.5 * (LOG_2PI + np.log(own[1]) + (off - own[0]) ** 2 / own[1])
        return np.where(seen.endog > 0, found, -np.inf) if self.log_scale else found

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in mean and variance."""
        off = (self.distances(seen.endog, rows)[0] - own[0]) / own[1]
        return np.stack([off, 0.5 * (off**2 - 1.0 / own[1])])
