"""Rows of a generalized linear model under weights of an order, and what the model expects.

Weights ``w = exp(-(a - 1) D / 2)`` of order a, with D the deviance over the dispersion, tilt the
law of good rows. The mean score under the tilted law, c = E(w u) / E(w), is known at each row, so
that ``sum w (u - c) = 0`` is solved by the true parameters (Fisher consistency). Rows without
weight play no part in it, wherever their predictors are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import aligned
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.counts import Counts
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.families import Moments
from rrmstats.losses.lattices import MANY_ROWS, different
from rrmstats.losses.noise import scale_factor, share_factor
from rrmstats.losses.row_means import mean_and_error

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Derivative, relative to the expected one, from which Newton's steps are taken.
LEAST_SLOPE = 0.05
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
        return aligned(self.setting.counts(self.problem.n_obs), self.problem.blocks)

    @cached_property
    def n_sizes(self) -> int | None:
        """Number of different sizes, where expectations ask for it."""
        problem = self.problem
        if not isinstance(problem.family, Counts):
            return None
        return different(problem.var_weights, problem.n_obs // MANY_ROWS)

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    def taken(self, good: float) -> float:
        """Return parameters per good row, given the share of the good."""
        return self.problem.n_params / max(self.total * good, 1.0)

    def gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.products([weights], [], [])[0][0]

    def at(self, theta: Array, dispersion: float, order: float) -> TiltedRows:
        """Return the rows under weights of an order."""
        return TiltedRows(self, theta, dispersion, order)


class Totals(NamedTuple):
    """Sums over rows, each as often as it counts.

    Attributes
    ----------
    ratio, weight, deviance : float
        Of the weights over their expectations, of the weights, and of weights times deviances.
    wanted : float
        Of weights times the deviances that the model expects under them.
    pulled : float
        Of `ratio` times the deviances.
    inverse : float
        Of one over the expected weights.
    """

    ratio: float
    weight: float
    deviance: float
    wanted: float
    pulled: float
    inverse: float


class Products(NamedTuple):
    """Sums of a row's products, of rows in blocks: see the properties of the same names."""

    bread: Array
    observed_bread: Array
    gram: Array
    pull: Array
    totals: Totals


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
        self._products: Products | None = None
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
        family, sizes = self.sample.problem.family, self.sample.n_sizes
        return family.moments(self.mu, self.size, self.order, sizes)

    @cached_property
    def totals(self) -> Totals:
        """Sums over the rows."""
        if self._products is not None:
            return self._products.totals
        return Totals(*self.sample.problem.products([], [], self._values)[2])

    @property
    def _values(self) -> list[Array]:
        """What `totals` are the sums of."""
        mass, moments = self.sample.mass, self.moments
        pull, share = mass * self.weights, mass * self.ratio
        return [
            share,
            pull,
            pull * self.deviance,
            pull * (moments.deviance / moments.mass),
            share * self.deviance,
            mass / moments.mass,
        ]

    def _found(self) -> Products:
        """Return all sums that a step needs, in one pass over rows in blocks."""
        if self._products is None:
            mass = self.sample.mass
            pull = mass * self.weights
            grams, (moment,), totals = self.sample.problem.products(
                [pull * self.spread, mass * self._observed, pull],
                [mass * self.scores],
                self._values,
            )
            bread, observed, gram = grams
            self._products = Products(bread, observed, gram, moment, Totals(*totals))
        return self._products

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
        if self._in_blocks:
            return self._found().bread
        return self.sample.gram(self.sample.mass * self.weights * self.spread)

    @cached_property
    def observed_bread(self) -> Array:
        """Minus the derivative of the equation, shape (k, k)."""
        if self._in_blocks:
            return self._found().observed_bread
        return self.sample.gram(self.sample.mass * self._observed)

    @property
    def _in_blocks(self) -> bool:
        return self.sample.problem.blocks is not None

    @property
    def _observed(self) -> Array:
        """Minus the derivative of each score in the linear predictor, shape (n,)."""
        u, expected, swing = self._scores
        c, w, mass = self.center, self.weights, self.moments.mass
        per_response = self._per_response
        second = per_response**2 * self.moments.second / mass
        off = self.sample.problem.endog - self.mu
        bend = swing / np.where(off == 0, 1.0, off)
        mean_swing = bend * self.moments.first / mass
        drift = self.order * second - expected + mean_swing - self.order * c**2
        return -w * ((self.order - 1.0) * u * (u - c) - expected + swing - drift)

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
        found = self.totals.ratio / self.sample.total / factor
        return float(np.clip(found, 1.0 - self.sample.setting.eps_bar, 1.0))

    def bad_share(self) -> float:
        """Return the estimated share of bad rows, at most eps_bar."""
        taken = self.sample.taken(self.good())
        return 1.0 - self.good(share_factor(taken, self.order, self.order))

    def share_error(self) -> float:
        """Return the standard error of the share of good rows."""
        change = self.ratio * ((self.order - 1.0) * self._scores[0] - self.order * self.center)
        exog, mass = self.sample.problem.exog, self.sample.mass
        return mean_and_error(self.ratio, change, self.influence, exog, mass)[1]

    def step(self) -> tuple[Array, float]:
        """Return a step towards the root of the equation, and its size in standard errors.

        Newton's in directions in which the derivative has the sign that is expected, else that of
        scoring.
        """
        pull = self._pull
        values, axes = self._relative_bread
        scaled = axes @ pull / np.where(values > LEAST_SLOPE, values, 1.0)
        return axes.T @ scaled, float(np.sqrt(scaled @ scaled))

    @property
    def _pull(self) -> Array:
        """Sum of the scores, shape (k,)."""
        if self._in_blocks:
            return self._found().pull
        return (self.sample.mass * self.scores) @ self.sample.problem.exog

    def product(self, step: Array, other: Array) -> float:
        """Return the mean, under the weights, of how far two steps move linear predictors."""
        if self._in_blocks:
            found = float(step @ self._found().gram @ other)
        else:
            moved = self.sample.problem.predictor(step) * self.sample.problem.predictor(other)
            found = float((self.sample.mass * self.weights) @ moved)
        return found / max(self.totals.weight, float(np.finfo(float).tiny))

    def log_growth(self, fitted: float) -> float:
        """Return the change of the log dispersion in one step of its fixed point.

        Parameters
        ----------
        fitted : float
            Order of the fit that left the residuals.
        """
        found, wanted = self.totals.deviance, self.totals.wanted
        factor = scale_factor(self.sample.taken(self.good()), self.order, fitted)
        return float(np.log(factor * found / wanted))

    def least_share(self, fitted: float) -> float:
        """Return the least mean of `ratio` that the budget allows."""
        left = 1.0 - self.sample.setting.eps_bar
        factor = share_factor(self.sample.taken(self.good()), self.order, fitted)
        return min(left * factor, 1.0)
