"""Rows of a generalized linear model under weights of an order, and what the model expects.

Weights ``w = exp(-(a - 1) D / 2)`` of order a, with D the deviance over the dispersion, tilt the
law of good rows. The mean score under the tilted law, c = E(w u) / E(w), is known at each row, so
that ``sum w (u - c) = 0`` is solved by the true parameters (Fisher consistency). Rows without
weight play no part in it, wherever their predictors are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.families import Moments
from rrmstats.losses.noise import scale_factor, share_factor

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a generalized linear model, with what a fit was asked for.

    Attributes
    ----------
    problem : DevianceProblem
    setting : Setting
    """

    problem: DevianceProblem
    setting: Setting

    @cached_property
    def mass(self) -> Array:
        """How often each row counts, shape (n,)."""
        counts = self.setting.freq_weights
        return np.ones(self.problem.n_obs) if counts is None else np.asarray(counts, float)

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    def taken(self, good: float) -> float:
        """Return parameters per good row, given the share of the good."""
        return self.problem.n_params / max(self.total * good, 1.0)

    def gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.gram(weights, np.empty((0, len(weights))))[0]

    def at(self, theta: Array, dispersion: float, order: float) -> TiltedRows:
        """Return the rows under weights of an order."""
        return TiltedRows(self, theta, dispersion, order)


class TiltedRows:
    """Rows under weights of an order at some parameters and dispersion.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
    dispersion, order : float
    """

    def __init__(self, sample: Sample, theta: Array, dispersion: float, order: float) -> None:
        self.sample, self.theta = sample, theta
        self.dispersion, self.order = dispersion, order
        problem = sample.problem
        self.eta = problem.predictor(theta)
        self.mu = problem.mean.mean(self.eta + problem.offset)
        self.size = problem.var_weights / dispersion

    @cached_property
    def deviance(self) -> Array:
        """Deviances over the dispersion, shape (n,)."""
        problem = self.sample.problem
        return self.size * problem.family.deviance(problem.endog, self.mu)

    @cached_property
    def weights(self) -> Array:
        """Weights of the rows, in [0, 1]."""
        return np.exp(-0.5 * (self.order - 1.0) * self.deviance)

    @cached_property
    def moments(self) -> Moments:
        """Expectations under the model."""
        return self.sample.problem.family.moments(self.mu, self.size, self.order)

    @cached_property
    def _scores(self) -> tuple[Array, Array, Array]:
        """Scores in the linear predictor, information, and the rest of the derivative."""
        first, expected, swing = self.sample.problem.score_parts(self.eta)
        phi = self.dispersion
        return first / phi, expected / phi, swing / phi

    @cached_property
    def _per_response(self) -> Array:
        """Change of a score with its response, shape (n,)."""
        problem = self.sample.problem
        slope = problem.mean.slopes(self.eta + problem.offset)[0]
        return self.size * slope / problem.family.variance(self.mu)

    @cached_property
    def center(self) -> Array:
        """Mean score of a row under the tilted law, shape (n,)."""
        return self._per_response * self.moments.first / self.moments.mass

    @cached_property
    def scores(self) -> Array:
        """Contributions of the rows to the estimating equation, in the linear predictor."""
        return self.weights * (self._scores[0] - self.center)

    @cached_property
    def spread(self) -> Array:
        """Variance of a row's score under the tilted law, shape (n,)."""
        second = self._per_response**2 * self.moments.second / self.moments.mass
        return np.maximum(second - self.center**2, 0.0)

    @cached_property
    def bread(self) -> Array:
        """Minus the expected derivative of the equation at rows with weight, shape (k, k).

        Under the model ``E(w u (u - c))`` is the expected derivative, and ``w / E(w)`` has mean
        one at good rows and is zero at bad ones.
        """
        return self.sample.gram(self.sample.mass * self.weights * self.spread)

    @cached_property
    def observed_bread(self) -> Array:
        """Minus the derivative of the equation, shape (k, k)."""
        u, expected, swing = self._scores
        c, w, mass = self.center, self.weights, self.moments.mass
        per_response = self._per_response
        second = per_response**2 * self.moments.second / mass
        off = self.sample.problem.endog - self.mu
        bend = np.divide(swing, off, out=np.zeros_like(swing), where=off != 0)
        mean_swing = bend * self.moments.first / mass
        drift = self.order * second - expected + mean_swing - self.order * c**2
        slope = w * ((self.order - 1.0) * u * (u - c) - expected + swing - drift)
        return self.sample.gram(-self.sample.mass * slope)

    @cached_property
    def _relative_bread(self) -> tuple[Array, Array]:
        """Eigenvalues of the observed bread in units of the expected one, and the axes."""
        root = inverse_root(self.bread)
        values, vectors = np.linalg.eigh(root @ self.observed_bread @ root.T)
        return values, vectors.T @ root

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the observed bread, kept near the expected one, shape (k, k)."""
        values, axes = self._relative_bread
        return (axes.T / np.clip(values, *BREAD)) @ axes

    @cached_property
    def influence(self) -> Array:
        """Influence functions of theta, with HC3's factors, shape (n, k): it moves by the sum."""
        exog = self.sample.problem.exog
        moved = exog @ self.inverse
        reach = np.einsum("ni,ni->n", moved, exog)
        leverage = np.clip(reach * self.weights * self.spread, 0.0, LEVERAGE_MAX)
        return moved * (self.scores / (1.0 - leverage))[:, None]

    @cached_property
    def ratio(self) -> Array:
        """Weights over their expectations, shape (n,): mean one at good rows, zero at bad ones."""
        return self.weights / self.moments.mass

    def good(self, factor: float = 1.0) -> float:
        """Return the share of good rows, at least what the budget leaves."""
        found = float(self.sample.mass @ self.ratio) / self.sample.total / factor
        return float(np.clip(found, 1.0 - self.sample.setting.eps_bar, 1.0))

    def share_error(self) -> float:
        """Return the standard error of the share of good rows."""
        mass, total = self.sample.mass, self.sample.total
        u = self._scores[0]
        change = mass * self.ratio * ((self.order - 1.0) * u - self.order * self.center)
        slope = change @ self.sample.problem.exog / total
        mean = float(mass @ self.ratio) / total
        moved = (self.ratio - mean) / total + self.influence @ slope
        return float(np.sqrt(mass @ moved**2))

    def step(self) -> tuple[Array, float]:
        """Return a step towards the root of the equation, and its size in standard errors.

        Newton's where the derivative is near what it is expected to be, else that of scoring.
        """
        pull = (self.sample.mass * self.scores) @ self.sample.problem.exog
        values, axes = self._relative_bread
        near = bool((values > BREAD[0]).all())
        scaled = axes @ pull / (values if near else 1.0)
        return axes.T @ scaled, float(np.sqrt(scaled @ scaled))

    def log_growth(self, fitted: float) -> float:
        """Return the change of the log dispersion in one step of its fixed point.

        Parameters
        ----------
        fitted : float
            Order of the fit that left the residuals.
        """
        mass = self.sample.mass * self.weights
        found = float(mass @ self.deviance)
        wanted = float(mass @ (self.moments.deviance / self.moments.mass))
        factor = scale_factor(self.sample.taken(self.good()), self.order, fitted)
        return float(np.log(factor * found / wanted))

    def least_share(self, fitted: float) -> float:
        """Return the least mean of `ratio` that the budget allows."""
        left = 1.0 - self.sample.setting.eps_bar
        factor = share_factor(self.sample.taken(self.good()), self.order, fitted)
        return min(left * factor, 1.0)
