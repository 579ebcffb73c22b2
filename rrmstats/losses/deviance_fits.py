"""Generalized linear models at a fixed order of the weights: fits, dispersion, contamination.

Weights ``w = exp(-(a - 1) D / 2)`` of order a, with D the deviance over the dispersion, tilt the
law of good rows. The mean score under the tilted law, c = E(w u) / E(w), is known at each row, so
that ``sum w (u - c) = 0`` is solved by the true parameters (Fisher consistency). Rows without
weight play no part in it, wherever their predictors are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.families import Moments
from rrmstats.losses.noise import scale_factor, share_factor

# Longest step of a linear predictor, in the root mean square over the rows with weight.
LONGEST = 1.0
# Size of the last step in standard errors, in units of the tolerance, and at least.
STEP_SIZE, LEAST_STEP = 100.0, 1e-9
# Steps of a fit: they converge in a few, and a fit that does not never will.
MOST_STEPS = 100
# Change of a log dispersion, and of a fit in standard errors, that has converged for all purposes.
SETTLED = 1e-4
# Eigenvalues of the observed bread, relative to the expected one, are kept between these.
BREAD = (0.5, 2.0)
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9
# Accuracy and number of steps of a root in the log dispersion.
ROOT_TOL, ROOT_MAXITER = 1e-10, 100


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
    def inverse(self) -> Array:
        """Inverse of the observed bread, kept near the expected one, shape (k, k)."""
        root = _root(self.bread)
        values, vectors = np.linalg.eigh(root @ self.observed_bread @ root.T)
        turned = vectors.T @ root
        return (turned.T / np.clip(values, *BREAD)) @ turned

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
        """Return the step towards the root of the equation, and its size in standard errors."""
        pull = (self.sample.mass * self.scores) @ self.sample.problem.exog
        root = _root(self.bread)
        values, vectors = np.linalg.eigh(root @ self.observed_bread @ root.T)
        newton = values[0] > BREAD[0] if len(values) else False
        turned = vectors.T @ root
        scaled = turned @ pull / (np.minimum(values, 4.0) if newton else 1.0)
        return turned.T @ scaled, float(np.sqrt(scaled @ scaled))

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


def _root(matrix: Array) -> Array:
    """Return R with ``R matrix R' = 1`` in the directions that rows reach, shape (k, k)."""
    unit = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
    seen = values > len(values) * np.finfo(float).eps
    root = np.zeros_like(values)
    root[seen] = values[seen] ** -0.5
    return (vectors * root).T / unit


@dataclass(frozen=True, slots=True, eq=False)
class TiltedFit:
    """Parameters and dispersion of an order.

    Attributes
    ----------
    rows : TiltedRows
        The rows at both.
    converged : bool
    """

    rows: TiltedRows
    converged: bool


def tilted_fit(
    sample: Sample, theta: Array, dispersion: float, order: float, dispersed: bool
) -> TiltedFit:
    """Return the consistent fit of an order, from a start.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
    dispersion, order : float
    dispersed : bool
        Whether the dispersion is estimated too.
    """
    tol = max(STEP_SIZE * sample.setting.tol, LEAST_STEP)
    rows, change, length = sample.at(theta, dispersion, order), np.inf, 1.0
    for _ in range(min(MOST_STEPS, sample.setting.maxiter)):
        step, size = rows.step()
        moved = sample.problem.predictor(step)
        pull = sample.mass * rows.weights
        reach = float(np.sqrt(pull @ (moved * moved) / max(pull.sum(), np.finfo(float).tiny)))
        growth = 0.0
        if dispersed:
            growth = grown(rows, order)
        last, change = change, max(size, abs(growth))
        length = max(0.5 * length, 0.05) if change > 0.9 * last else min(1.0, 1.5 * length)
        factor = length * min(1.0, LONGEST / max(reach, np.finfo(float).tiny))
        theta = theta + factor * step
        dispersion *= float(np.exp(growth))
        rows = sample.at(theta, dispersion, order)
        if change < tol:
            break
    return TiltedFit(rows, change < max(tol, SETTLED))


def grown(rows: TiltedRows, fitted: float) -> float:
    """Return the change of the log dispersion, which never ends below what the budget allows."""
    growth = rows.log_growth(fitted)
    if growth >= 0:
        return growth
    least, sample = rows.least_share(fitted), rows.sample
    after = sample.at(rows.theta, rows.dispersion * float(np.exp(growth)), rows.order)
    if float(sample.mass @ after.ratio) / sample.total >= least:
        return growth
    found = budget_dispersion(sample, rows.theta, rows.order, least, rows.dispersion)
    return float(np.log(found / rows.dispersion))


def budget_dispersion(
    sample: Sample, theta: Array, order: float, good: float, start: float
) -> float:
    """Return the dispersion at which the weights leave exactly a share of good rows.

    The root of ``log(mean(w / E(w))) = log(good)`` in the log dispersion.
    """
    low, high, at = -np.inf, np.inf, float(np.log(start))
    for _ in range(ROOT_MAXITER):
        rows = sample.at(theta, float(np.exp(at)), order)
        mean = float(sample.mass @ rows.ratio) / sample.total
        gap = float(np.log(max(mean, np.finfo(float).tiny) / good))
        if abs(gap) < ROOT_TOL or high - low < ROOT_TOL:
            break
        low, high = (at, high) if gap < 0 else (low, at)
        pulled = sample.mass @ (rows.ratio * rows.deviance) / max(sample.mass @ rows.ratio, 1e-300)
        step = -gap / max(0.5 * (order - 1.0) * float(pulled), 0.1)
        at += float(np.clip(step, -3.0, 3.0))
        if not low < at < high:
            at = 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else at
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
        length = order if change < min(0.05, last) else 1.0
        dispersion *= float(np.exp(length * growth))
        if change < tol:
            break
    return dispersion, change < SETTLED
