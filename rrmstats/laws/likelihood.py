"""Any likelihood: good rows by their log-densities, bad ones by those without predictors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.mixture import Bounds, GoodRows, NoParameters
from rrmstats.laws.positive import LOG_PI
from rrmstats.laws.rows import Responses

# Change of a predictor over which second derivatives are differences.
DELTA = 1e-4
# Steps of EM of a Cauchy distribution, each of which halves the distance or more.
CAUCHY_STEPS = 50


@dataclass(frozen=True, eq=False)
class KernelRows(NoParameters):
    """Rows whose log-density is a function of the response and a few predictors.

    Attributes
    ----------
    log_density, slopes : callable
        Functions of responses and predictors; the second returns derivatives, shape (q, n).
    moments : callable or None
        Function of the predictors that returns means and variances.
    """

    kind: ClassVar[Good] = Good.PLAIN
    log_density: Callable[..., Array]
    slopes: Callable[..., Array]
    moments: Callable[..., tuple[Array, Array]] | None = None

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at predictors (q, n)."""
        endog = seen.endog
        with np.errstate(all="ignore"):
            found = self.log_density(endog, *predictors)
            center = spread = np.ones(len(endog))
            if self.moments is not None:
                center, variance = np.broadcast_arrays(*self.moments(*predictors))
                spread = np.sqrt(variance)
            slopes = np.asarray(self.slopes(endog, *predictors))
            information = self._information(endog, predictors)
        return GoodRows(
            np.where(np.isnan(found), -np.inf, found),
            np.where(np.isfinite(slopes), slopes, 0.0),
            np.where(np.isfinite(information), information, 0.0),
            center,
            spread,
        )

    def _information(self, endog: Array, predictors: Array) -> Array:
        """Return minus the second derivatives, shape (q, q, n)."""
        found = []
        for j in range(len(predictors)):
            step = np.zeros_like(predictors)
            step[j] = DELTA * np.maximum(np.abs(predictors[j]), DELTA)
            low, high = (
                self.slopes(endog, *predictors - step),
                self.slopes(endog, *predictors + step),
            )
            found.append((np.asarray(low) - high) / (2.0 * step[j]))
        both = np.array(found)
        return 0.5 * (both + both.swapaxes(0, 1))


@dataclass(frozen=True, eq=False)
class WholeRows(NoParameters):
    """Rows whose log-likelihoods only the whole of a model tells, as functions of theta.

    The predictors are the parameters, the same for all rows.

    Attributes
    ----------
    log_likelihood, slopes : callable
        Functions of theta (k,) that return (n,) and (n, k).
    """

    kind: ClassVar[Good] = Good.PLAIN
    log_likelihood: Callable[[Array], Array]
    slopes: Callable[[Array], Array]

    def rows(self, seen: Responses, predictors: Array, own: Array) -> GoodRows:
        """Return the rows at parameters; those that differ by row are taken from the first."""
        theta = predictors[:, 0].copy()
        with np.errstate(all="ignore"):
            found, slopes = self.log_likelihood(theta), self.slopes(theta).T
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        ones = np.ones(len(seen.endog))
        return GoodRows(
            np.where(np.isnan(found), -np.inf, found),
            slopes,
            slopes[:, None] * slopes[None],
            ones,
            ones,
        )


@dataclass(frozen=True, eq=False)
class Unpredicted:
    """Responses without predictors: Cauchy on the line, on a log scale or on one of odds.

    The parameters are its center and its scale, at least that of all responses.

    Attributes
    ----------
    support : {"line", "positive", "unit"}
    center, scale : float
        Those of all responses.
    """

    support: str
    center: float
    scale: float

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the center and scale of all responses."""
        return np.array([self.center, self.scale])

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        at, log_slope = _on_line(seen.endog, self.support)
        return log_slope - LOG_PI - np.log(own[1]) - np.log1p(((at - own[0]) / own[1]) ** 2)

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return their derivatives in center and scale."""
        off = (_on_line(seen.endog, self.support)[0] - own[0]) / own[1]
        weight = 2.0 / (1.0 + off**2)
        return np.stack([weight * off, weight * off**2 - 1.0]) / own[1]

    @property
    def bounds(self) -> Bounds:
        """Least and largest center and scale."""
        return np.array([-np.inf, self.scale]), np.array([np.inf, np.inf])


def unpredicted(endog: Array, mass: Array) -> Unpredicted:
    """Return the distribution of responses without predictors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.likelihood import unpredicted
    >>> y = np.tan(np.pi * (np.arange(1, 200) / 200 - 0.5))
    >>> law = unpredicted(5 + 2 * y, np.ones(199))
    >>> law.support, round(law.center, 2), round(law.scale, 1)
    ('line', 5.0, 2.0)
    """
    inside, positive = ((endog > 0) & (endog < 1)).all(), (endog > 0).all()
    support = "unit" if inside else "positive" if positive else "line"
    at = _on_line(endog, support)[0]
    center = float(np.median(at))
    scale = float(np.median(np.abs(at - center))) or float(np.std(at)) or 1.0
    for _ in range(CAUCHY_STEPS):
        weights = mass / (1.0 + ((at - center) / scale) ** 2)
        center = float(weights @ at / weights.sum())
        squares = (at - center) ** 2
        scale *= float(np.sqrt(2.0 * (mass @ (squares / (scale**2 + squares))) / mass.sum()))
    return Unpredicted(support, center, scale)


def _on_line(endog: Array, support: str) -> tuple[Array, Array]:
    """Return responses on a scale without ends, and the logarithms of its slopes."""
    if support == "line":
        return endog, np.zeros(len(endog))
    if support == "positive":
        return np.log(endog), -np.log(endog)
    return np.log(endog) - np.log1p(-endog), -np.log(endog) - np.log1p(-endog)
