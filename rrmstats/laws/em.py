"""Explanations fitted by EM, one step of Newton's method for theta in each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Explanation
from rrmstats.laws.mixture import Mixture, Parameters, Probabilities
from rrmstats.laws.rows import Rows, design_gram, design_sums

# Gain of the log-likelihood in one step below which an explanation is known well enough to be
# compared with others, and the steps that it may take.
ENOUGH, MOST_STEPS = 1e-2, 60
# Largest change of a predictor in one step, in the root mean square over the good rows.
LONGEST = 1.0
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Fit:
    """An explanation at some parameters.

    Attributes
    ----------
    rows : Rows
    mixture : Mixture
    theta : ndarray, shape (k,)
    at : Parameters
        The others.
    lower : ndarray, shape (k,), or None
        Least values of theta.
    """

    rows: Rows
    mixture: Mixture
    theta: Array
    at: Parameters
    lower: Array | None = None

    @cached_property
    def found(self) -> Probabilities:
        """Densities of rows in memory, and their probabilities to be good."""
        rows = self.rows
        predictors = rows.predictors(self.theta)
        return self.mixture.probabilities(rows.endog, rows.size, predictors, self.at)

    @cached_property
    def log_likelihood(self) -> float:
        """Log-likelihood of rows in memory; -inf where it is not defined."""
        value = float(self.rows.mass @ self.found.log_density)
        return value if np.isfinite(value) else -np.inf

    @property
    def bic_gain(self) -> float:
        """Log-likelihood less Schwarz's penalty."""
        return self.log_likelihood - 0.5 * self.mixture.n_extra * float(np.log(self.rows.total))

    @property
    def eps(self) -> float:
        """Share of bad rows."""
        return float(self.rows.mass @ self.found.bad_share) / self.rows.total

    def explanation(self) -> Explanation:
        """Return what is told of the fit."""
        return Explanation(
            good=self.mixture.good.kind,
            bad=self.mixture.bad,
            log_likelihood=self.log_likelihood,
            n_extra=self.mixture.n_extra,
            eps=self.eps,
            prob_bad=1.0 - self.found.good,
        )

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest values of all parameters, theta first."""
        low, high = self.mixture.bounds
        free = np.full(len(self.theta), np.inf)
        least = -free if self.lower is None else self.lower
        return np.concatenate([least, low]), np.concatenate([free, high])

    def moved(self, by_theta: Array, by_others: Array) -> Fit:
        """Return the fit at other parameters."""
        theta = self.theta + by_theta
        theta = theta if self.lower is None else np.maximum(theta, self.lower)
        at = self.mixture.bounded(self.at.like(self.at.flat() + by_others))
        return Fit(self.rows, self.mixture, theta, at, self.lower)

    def stepped(self, held: bool = False) -> Fit:
        """Return the fit after one step of EM; theta may be held."""
        rows, found = self.rows, self.found
        theta = self.theta if held else self.theta + self._theta_step(rows.mass * found.good)
        if self.lower is not None:
            theta = np.maximum(theta, self.lower)
        mixture, at = self.mixture.updated(
            self.at, rows.mass, rows.endog, rows.size, found, rows.predictors(theta)
        )
        return Fit(rows, mixture, theta, at, self.lower)

    def _theta_step(self, mass: Array) -> Array:
        """Return a step towards the weighted fit, at most as long as is safe."""
        good, designs = self.found.rows, self.rows.designs
        slopes, information = mass * good.slopes, mass * good.information
        if not (mass > 0).all():
            slopes[:, mass == 0], information[..., mass == 0] = 0.0, 0.0
        pull, bread = design_sums(designs, slopes), design_gram(designs, information)
        if self.lower is not None:
            held = (self.theta <= self.lower) & (pull <= 0)
            pull, bread = np.where(held, 0.0, pull), _without(bread, held)
        step = np.linalg.lstsq(self._definite(bread, mass), pull, rcond=None)[0]
        longest = np.sqrt((self.rows.changes(step) ** 2 @ mass).max() / max(mass.sum(), TINY))
        return step * min(1.0, LONGEST / max(float(longest), TINY))

    def _definite(self, bread: Array, mass: Array) -> Array:
        """Return a matrix, or the outer products of the slopes where it is not definite."""
        try:
            np.linalg.cholesky(bread)
        except np.linalg.LinAlgError:
            slopes = self.found.rows.slopes
            outer = np.where(mass > 0, mass * slopes[:, None] * slopes[None], 0.0)
            return design_gram(self.rows.designs, outer)
        return bread


def _without(bread: Array, held: np.ndarray) -> Array:
    """Return a matrix in which some parameters stay where they are."""
    return np.where(held[:, None] | held, np.diag(np.where(held, 1.0, 0.0)), bread)


def fitted(fit: Fit, steps: int = MOST_STEPS, enough: float = ENOUGH, held: bool = False) -> Fit:
    """Return a fit after steps of EM, as long as they change the likelihood by enough."""
    for _ in range(steps):
        new = fit.stepped(held)
        if not new.log_likelihood > -np.inf:
            break
        gain, fit = new.log_likelihood - fit.log_likelihood, new
        if abs(gain) < enough:
            break
    return fit
