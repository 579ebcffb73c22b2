"""Rows of a generalized linear model under weights of an order, and fits at a fixed order.

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
from scipy.optimize import brentq

from rrmstats.core.block_array import aligned, row_map, row_reduce
from rrmstats.core.consistency import bad_share, scale_factor, share_factor
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_root
from rrmstats.core.sandwich import mean_and_error
from rrmstats.core.setting import Setting
from rrmstats.laws.families import MANY_ROWS, Counts, Family, Moments
from rrmstats.losses.deviance import DevianceProblem

# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Derivative, relative to the expected one, from which Newton's steps are taken.
LEAST_SLOPE = 0.05
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9
# Longest step of a linear predictor, in the root mean square over the rows with weight.
LONGEST = 1.0
# Size of the last step in standard errors, in units of the tolerance, and at least.
STEP_SIZE, LEAST_STEP = 100.0, 1e-9
# Steps of a fit: they converge in a few, and a fit that does not never will.
MOST_STEPS = 100
TINY = float(np.finfo(float).tiny)
# Under weights of groups: the same, the size of the last in the linear predictor, and one that has
# converged for all purposes.
COUNTS_STEPS, COUNTS_TOL, COUNTS_SETTLED = 200, 1e-11, 1e-6
# Change of a log dispersion, and of a fit in standard errors, that has converged for all purposes.
SETTLED = 1e-4
# Change of the log dispersion below which steps are lengthened to about Newton's.
NEAR = 0.05
# Accuracy of a root in the log dispersion, and the steps in which it is looked for.
ROOT_TOL, FARTHEST_STEP = 1e-12, 3.0


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
    def interpolates(self) -> bool:
        """Whether rows of few sizes are so many that expectations are interpolated."""
        problem = self.problem
        if not isinstance(problem.family, Counts):
            return False
        return problem.n_obs > MANY_ROWS * len(row_reduce(np.unique, _union, problem.var_weights))

    @property
    def total(self) -> float:
        """Number of observations that the rows stand for."""
        return self.setting.wnobs(self.problem.n_obs)

    def at(self, theta: Array, dispersion: float, order: float) -> TiltedRows:
        """Return the rows under weights of an order."""
        return TiltedRows(self, theta, dispersion, order)


class Totals(NamedTuple):
    """Sums over rows, each as often as it counts.

    Attributes
    ----------
    ratio, deviance : float
        Of the weights over their expectations, and of weights times deviances.
    wanted : float
        Of weights times the deviances that the model expects under them.
    """

    ratio: float
    deviance: float
    wanted: float


class Products(NamedTuple):
    """Sums of which a step is made.

    Attributes
    ----------
    bread : ndarray, shape (k, k)
        Minus the expected derivative of the equation at rows with weight. Under the model
        ``E(w u (u - c))`` is the expected derivative, and ``w / E(w)`` has mean one at good rows
        and is zero at bad ones.
    observed_bread : ndarray, shape (k, k)
        Minus the derivative of the equation.
    gram : ndarray, shape (k, k)
        Gram matrix of the design under the weights.
    pull : ndarray, shape (k,)
        Sum of the scores.
    weight : float
        Sum of the weights.
    """

    bread: Array
    observed_bread: Array
    gram: Array
    pull: Array
    weight: float


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
        columns = row_map(
            moment_columns, self.mu, self.size, tail=(4,), family=self.sample.problem.family,
            order=self.order, interpolates=self.sample.interpolates,
        )  # fmt: skip
        return Moments(*(columns[:, i] for i in range(4)))

    @cached_property
    def totals(self) -> Totals:
        """Sums over the rows."""
        moments, share = self.moments, self.sample.mass * self.ratio
        pull = self.sample.mass * self.weights
        values = [
            share,
            pull * self.deviance,
            pull * (moments.deviance / moments.mass),
        ]
        return Totals(*self.sample.problem.products([], [], values)[2])

    @cached_property
    def products(self) -> Products:
        """Sums of which a step is made, in one pass over rows in blocks."""
        mass = self.sample.mass
        weights = mass * self.weights
        (bread, observed, gram), (pull,), (weight,) = self.sample.problem.products(
            [weights * self.spread, mass * self._observed, weights],
            [mass * self.scores],
            [weights],
        )
        return Products(bread, observed, gram, pull, weight)

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
        root = inverse_root(self.products.bread)
        values, vectors = np.linalg.eigh(root @ self.products.observed_bread @ root.T)
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

    @property
    def params_per_row(self) -> float:
        """Parameters per good row; of these there are as many as the budget leaves at least."""
        sample = self.sample
        good = np.clip(self.totals.ratio / sample.total, 1.0 - sample.setting.eps_bar, 1.0)
        return sample.problem.n_params / max(sample.total * float(good), 1.0)

    def bad_share(self) -> float:
        """Return the estimated share of bad rows, at most eps_bar."""
        sample = self.sample
        ratio, eps_bar = self.totals.ratio / sample.total, sample.setting.eps_bar
        return bad_share(ratio, sample.problem.n_params, sample.total, self.order, eps_bar)

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
        values, axes = self._relative_bread
        scaled = axes @ self.products.pull / np.where(values > LEAST_SLOPE, values, 1.0)
        return axes.T @ scaled, float(np.sqrt(scaled @ scaled))

    def reach(self, step: Array) -> float:
        """Return how far a step moves linear predictors, in root mean square under weights."""
        square = float(step @ self.products.gram @ step)
        return (square / max(self.products.weight, TINY)) ** 0.5

    def log_growth(self, fitted: float) -> float:
        """Return the change of the log dispersion in one step of its fixed point.

        Parameters
        ----------
        fitted : float
            Order of the fit that left the residuals.
        """
        found, wanted = self.totals.deviance, self.totals.wanted
        factor = scale_factor(self.params_per_row, self.order, fitted)
        return float(np.log(factor * found / wanted))

    def least_share(self, fitted: float) -> float:
        """Return the least mean of `ratio` that the budget allows."""
        left = 1.0 - self.sample.setting.eps_bar
        factor = share_factor(self.params_per_row, self.order, fitted)
        return min(left * factor, 1.0)


def moment_columns(
    mu: Array, size: Array, family: Family, order: float, interpolates: bool
) -> Array:
    """Return the expectations of rows in memory as columns, shape (n, 4)."""
    if interpolates and isinstance(family, Counts):
        return np.column_stack(family.interpolated(mu, size, order))
    return np.column_stack(family.moments(mu, size, order))


def _union(parts: list[Array | None]) -> Array | None:
    found = [part for part in parts if part is not None]
    return np.unique(np.concatenate(found)) if found else None


def tilted_fit(
    sample: Sample, theta: Array, dispersion: float, order: float
) -> tuple[TiltedRows, bool]:
    """Return the rows at the consistent fit of an order, from a start, and whether it is one."""

    def step(rows: TiltedRows) -> tuple[Array, float]:
        step, size = rows.step()
        return step * min(1.0, LONGEST / max(rows.reach(step), TINY)), size

    def moved(rows: TiltedRows, step: Array) -> TiltedRows:
        return sample.at(rows.theta + step, dispersion, order)

    rows, size = damped_root(
        sample.at(theta, dispersion, order), step, moved, LEAST_STEP, MOST_STEPS
    )
    return rows, size < SETTLED


def grown(rows: TiltedRows, fitted: float) -> float:
    """Return the change of the log dispersion, which never ends below what the budget allows."""
    growth = rows.log_growth(fitted)
    if growth >= 0:
        return growth
    least, sample = rows.least_share(fitted), rows.sample
    after = sample.at(rows.theta, rows.dispersion * float(np.exp(growth)), rows.order)
    if after.totals.ratio / sample.total >= least:
        return growth
    found = budget_dispersion(sample, rows.theta, rows.order, least, rows.dispersion)
    return float(np.log(found / rows.dispersion))


def budget_dispersion(
    sample: Sample, theta: Array, order: float, good: float, start: float
) -> float:
    """Return the dispersion at which the weights leave exactly a share of good rows.

    The root of ``log(mean(w / E(w))) = log(good)`` in the log dispersion.
    """

    def gap(at: float) -> float:
        ratio = sample.at(theta, float(np.exp(at)), order).totals.ratio / sample.total
        return float(np.log(max(ratio, TINY) / good))

    at = float(np.log(start))
    below = gap(at) < 0
    for _ in range(MOST_STEPS):
        last, at = at, at + (FARTHEST_STEP if below else -FARTHEST_STEP)
        if (gap(at) < 0) != below:
            return float(np.exp(brentq(gap, last, at, xtol=ROOT_TOL)))
    return float(np.exp(at))


def dispersion_fit(
    sample: Sample, theta: Array, order: float, start: float, lambda_: float
) -> tuple[float, bool]:
    """Return the dispersion of an order around parameters, and whether it converged.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
        Parameters of a first step.
    order, start : float
    lambda_ : float
        Temperature of the first step's weights, in units of half the deviance.
    """
    dispersion, change = start, np.inf
    tol = max(STEP_SIZE * sample.setting.tol, LEAST_STEP)
    for _ in range(sample.setting.maxiter):
        rows = sample.at(theta, dispersion, order)
        growth = grown(rows, 1.0 + dispersion / lambda_)
        last, change = change, abs(growth)
        length = order if change < min(NEAR, last) else 1.0
        dispersion *= float(np.exp(length * growth))
        if change < tol:
            break
    return dispersion, change < SETTLED


class TiltedMoments(NamedTuple):
    """Expectations under the tilted law, each of shape (n,).

    Attributes
    ----------
    mean, variance : ndarray
        Of the responses.
    with_deviance : ndarray
        Covariance of the responses and half their unit deviances.
    """

    mean: Array
    variance: Array
    with_deviance: Array


class TiltedCounts:
    """Rows of a family of counts under weights that their groups were given.

    The weight of a row is proportional to ``exp(-rate * loss)``, with the loss at the parameters
    of least risk. That tilts the law of a good row at the true parameters, and the mean of the
    tilted law is what its response has on average. The parameters at which it does are consistent.

    Parameters
    ----------
    problem : DevianceProblem
        Its family is one of counts.
    theta : ndarray, shape (k,)
        Parameters of least risk, at which the rows had their losses.
    rates : ndarray, shape (n,)
    weights : ndarray, shape (n,)
        Weights, summing to one.
    dispersion : float
    """

    def __init__(
        self,
        problem: DevianceProblem,
        theta: Array,
        rates: Array,
        weights: Array,
        dispersion: float,
    ) -> None:
        assert isinstance(problem.family, Counts)
        self.problem, self.family = problem, problem.family
        self.theta, self.weights = theta, weights
        self.size, self.decay = problem.var_weights / dispersion, rates * problem.var_weights
        self.raw_mu, raw_slope = self._means(theta)
        self._raw_pull = self.decay * raw_slope / self.family.variance(self.raw_mu)

    def _means(self, theta: Array) -> tuple[Array, Array]:
        """Return the means of the rows and their slopes in the linear predictor."""
        eta = self.problem.predictor(theta) + self.problem.offset
        return self.problem.mean.mean(eta), self.problem.mean.slopes(eta)[0]

    def moments(self, mu: Array) -> TiltedMoments:
        """Return expectations under the tilted laws of rows with means `mu`."""
        parts = []
        for rows, y, mass, _, _ in self.family.laws(mu, self.size):
            deviance = 0.5 * self.family.deviance(y, self.raw_mu[rows, None])
            tilted = mass * np.exp(-self.decay[rows, None] * deviance)
            tilted /= tilted.sum(axis=1, keepdims=True)
            mean = np.einsum("nm,nm->n", tilted, y)
            off = tilted * (y - mean[:, None])
            parts.append(
                (mean, np.einsum("nm,nm->n", off, y), np.einsum("nm,nm->n", off, deviance))
            )
        return TiltedMoments(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _equation(self, theta: Array) -> tuple[Array, Array, TiltedMoments]:
        """Return change of a score with its response, scores and moments at parameters."""
        mu, slope = self._means(theta)
        per_response = self.size * slope / self.family.variance(mu)
        told = self.moments(mu)
        return per_response, per_response * (self.problem.endog - told.mean), told

    def coefficients(self) -> tuple[Array, bool]:
        """Return the parameters that solve the weighted equation, and whether they do."""

        def step(theta: Array) -> tuple[Array, float]:
            per_response, scores, told = self._equation(theta)
            pull = (self.weights * scores) @ self.problem.exog
            found = self._inverse(per_response, told) @ pull
            size = float(np.sqrt(self.weights @ self.problem.predictor(found) ** 2))
            return found * min(1.0, LONGEST / max(size, COUNTS_TOL)), size

        theta, size = damped_root(self.theta, step, np.add, COUNTS_TOL, COUNTS_STEPS)
        return theta, size < COUNTS_SETTLED

    def _gram(self, weights: Array) -> Array:
        return self.problem.gram(self.weights * weights, np.empty((0, len(weights))))[0]

    def _inverse(self, per_response: Array, told: TiltedMoments) -> Array:
        """Return the inverse of the expected derivative of the equation, shape (k, k)."""
        return np.linalg.pinv(self._gram(per_response**2 * told.variance), hermitian=True)

    def moves(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return how parameters move with the rows (n, k), theta (k, k) and ln(lambda) (k,)."""
        per_response, scores, told = self._equation(theta)
        inverse = self._inverse(per_response, told)
        exog = self.problem.exog
        by_theta = -self._gram(per_response * told.variance * self._raw_pull) @ inverse
        by_log_lambda = -(self.weights * per_response * self.decay * told.with_deviance) @ exog
        return scores[:, None] * (exog @ inverse), by_theta, by_log_lambda @ inverse
