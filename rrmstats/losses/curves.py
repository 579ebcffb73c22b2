"""Nonlinear regression: squared residuals of a curve, and the linear regression in its place.

Near its end a curve is its tangent, so that both steps, their explanations and their errors are
those of a linear regression on the derivatives of the curve; it is made anew where the parameters
have moved. The search for the minimum takes the curve as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import qmc

from rrmstats.core.design import solve_gram
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.starts import affordable_starts
from rrmstats.core.tolerances import HALVINGS, SUM_ROUNDING
from rrmstats.laws.gaussian_choice import explanation
from rrmstats.laws.gaussian_equations import Equations, polished
from rrmstats.losses.finite_differences import STEP
from rrmstats.losses.gaussian_rows import ExplainedRows
from rrmstats.losses.regression import (
    ExplainedRegression,
    RegressionEstimate,
    RegressionProblem,
)

#: Predictions (b, n) of a batch of parameters (b, k).
Curve = Callable[[Array], Array]
#: Derivatives (n, k) of the predictions at one parameter vector (k,).
Jacobian = Callable[[Array], Array]

# What a residual counts as where a curve is not defined: no step leads there.
BEYOND = 1e100
# Random subsets at most: each has a search of its own.
MOST_SUBSETS = 60
# Steps of a weighted fit, of a fit to a subset, and of one that only improves a start.
FIT_STEPS, SUBSET_STEPS, IMPROVING_STEPS = 100, 20, 3
# Tangents at most, and the change of the parameters, in standard errors, at which they end.
TANGENTS, SETTLED = 20, 1e-6


class CurveProblem(EstimableProblem):
    """Squared residuals of a curve; the weighted fit is Levenberg and Marquardt's.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    curve : callable
        Takes parameters (b, k) and returns predictions (b, n).
    starts : ndarray, shape (s, k)
        Parameters to start from, the user's first.
    bounds : tuple of ndarray, shapes (k,)
        Least and largest values of the parameters.
    jacobian : callable, optional
        Takes parameters (k,) and returns derivatives (n, k); by default differences.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses.curves import CurveProblem
    >>> x = np.linspace(0, 4, 30)
    >>> y = 3 * np.exp(-x) + 0.01 * np.sin(50 * x)
    >>> y[::7] += 2
    >>> ends = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])
    >>> curve = lambda theta: theta[:, :1] * np.exp(-theta[:, 1:] * x)
    >>> minimize(CurveProblem(y, curve, np.ones((1, 2)), ends), eps_bar=0.3).theta.round(1)
    array([3., 1.])
    """

    seeks_minima = True

    def __init__(
        self,
        endog: Array,
        curve: Curve,
        starts: Array,
        bounds: tuple[Array, Array],
        jacobian: Jacobian | None = None,
    ) -> None:
        self.endog, self.curve, self.starts, self.bounds = endog, curve, starts, bounds
        self._jacobian = jacobian
        self.n_obs, self.n_params = len(endog), starts.shape[1]
        self.unit = np.where(starts[0] == 0, 1.0, np.abs(starts[0]))

    def residuals(self, theta: Array) -> Array:
        """Return the residuals, BEYOND where the curve is not defined, shape (..., n)."""
        batch = theta.reshape(-1, self.n_params)
        with np.errstate(all="ignore"):
            found = self.endog - self.curve(batch)
        found = np.where(np.abs(found) < BEYOND, found, BEYOND)
        return found.reshape(*theta.shape[:-1], self.n_obs)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        return self.residuals(theta) ** 2

    def jacobian(self, theta: Array) -> Array:
        """Return the derivatives of the predictions at one theta, shape (n, k)."""
        if self._jacobian is not None:
            with np.errstate(all="ignore"):
                found = np.asarray(self._jacobian(theta), dtype=float)
            return np.where(np.isfinite(found), found, 0.0)
        return self._jacobians(theta[None])[0]

    def _jacobians(self, theta: Array) -> Array:
        """Return the derivatives at a batch of parameters (b, k), shape (b, n, k)."""
        if self._jacobian is not None:
            return np.stack([self.jacobian(each) for each in theta])
        b, k = theta.shape
        step = STEP * np.maximum(np.abs(theta), STEP * self.unit)
        steps = step[:, None, :] * np.eye(k)
        up, down = (self.within(theta[:, None, :] + sign * steps) for sign in (1.0, -1.0))
        with np.errstate(all="ignore"):
            ends = self.curve(np.concatenate([up, down]).reshape(-1, k)).reshape(2, b, k, -1)
            width = np.einsum("bii->bi", up - down)[:, :, None]
            found = (ends[0] - ends[1]) / width
        return np.where(np.isfinite(found), found, 0.0).swapaxes(1, 2)

    def gradients(self, theta: Array) -> Array:
        """Return the gradients of the losses at one theta, shape (n, k)."""
        return -2.0 * self.residuals(theta)[:, None] * self.jacobian(theta)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of their Hessians as if the curve were straight, (k, k).

        Where a parameter does not matter, a ridge within rounding keeps it where it is.
        """
        slopes = self.jacobian(theta)
        gram = slopes.T @ (weights[:, None] * slopes)
        ridge = SUM_ROUNDING * float(np.diag(gram) @ self.unit**2) / self.unit**2
        return 2.0 * (gram + np.diag(ridge))

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away, within the bounds, shape (..., k)."""
        return self.within(theta + step)

    def within(self, theta: Array) -> Array:
        """Return parameters within the bounds, shape (..., k)."""
        return np.clip(theta, *self.bounds)

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        batch = weights.reshape(-1, self.n_obs)
        if theta is not None:
            starts = np.broadcast_to(theta, (*weights.shape[:-1], self.n_params))
            found = self._fits(batch, starts.reshape(-1, self.n_params), FIT_STEPS)
        else:
            found = np.stack([self._best_fit(each) for each in batch])
        return found.reshape(*weights.shape[:-1], self.n_params)

    def _best_fit(self, weights: Array) -> Array:
        """Return the fit under weights (n,) from the best of all starts, shape (k,)."""
        many = np.broadcast_to(weights, (len(self.starts), self.n_obs))
        found = self._fits(many, self.starts, SUBSET_STEPS)
        best = found[np.argmin(self.losses(found) @ weights)]
        return self._fits(weights[None], best[None], FIT_STEPS)[0]

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        return self._fits(weights, theta, IMPROVING_STEPS)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return fits to subsets of rows, from one start after the other, shape (m, k)."""
        weights = np.zeros((len(subsets), self.n_obs))
        np.put_along_axis(weights, subsets, 1.0 / subsets.shape[1], axis=1)
        starts = self.starts[np.arange(len(subsets)) % len(self.starts)]
        return self._fits(weights, starts, SUBSET_STEPS)

    def robust_starts(self) -> Array:
        """Return the fits to all rows from each start, shape (s, k)."""
        equal = np.full((len(self.starts), self.n_obs), 1.0 / self.n_obs)
        return self._fits(equal, self.starts, SUBSET_STEPS)

    def _fits(self, weights: Array, theta: Array, steps: int) -> Array:
        """Return fits under weights (b, n) from parameters (b, k): damped Gauss-Newton steps."""
        resid = self.residuals(theta)
        value = np.einsum("bn,bn->b", weights, resid**2)
        damping = np.full(len(theta), 1e-3)
        for _ in range(steps):
            slopes = self._jacobians(theta)
            weighted = weights[:, :, None] * slopes
            gradient = np.einsum("bnk,bn->bk", weighted, resid)
            gram = weighted.swapaxes(1, 2) @ slopes
            held = self._held(theta, gradient)
            gradient = np.where(held, 0.0, gradient)
            gram = np.where(held[:, :, None] | held[:, None, :], 0.0, gram)
            size = np.einsum("bii->bi", gram)
            size = np.where(size > 0, size, 1.0)
            damped = gram + (damping[:, None] * size)[:, :, None] * np.eye(self.n_params)
            step = solve_gram(damped, gradient)[0]
            trial = self.within(theta + np.where(np.isfinite(step), step, 0.0))
            new = self.residuals(trial)
            ahead = np.einsum("bn,bn->b", weights, new**2)
            lower = ahead < value
            gain = np.where(lower, value - ahead, 0.0)
            theta = np.where(lower[:, None], trial, theta)
            resid = np.where(lower[:, None], new, resid)
            settled = np.where(lower, gain <= 1e-14 * value, damping > 1e8)
            value = np.where(lower, ahead, value)
            damping = np.where(lower, 0.1 * damping, 10.0 * damping)
            if settled.all():
                break
        return theta

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.subset_size, eps_bar, MOST_SUBSETS)

    @property
    def subset_size(self) -> int:
        """Rows of a random subset: twice as many as parameters, so that noise counts less."""
        return min(2 * self.n_params, self.n_obs)

    def tangent(self, params: Array, weights: Array) -> TangentProblem:
        """Return the linear regression that takes the place of the curve at parameters (k,).

        Parameters at a bound beyond which the fit under weights (n,) would go are held there.
        """
        slopes = self.jacobian(params)
        held = self._held(params, (weights * self.residuals(params)) @ slopes)
        return TangentProblem(self, params, slopes, held)

    def _held(self, theta: Array, descent: Array) -> np.ndarray:
        """Tell which parameters are at a bound that a descent would cross, shape (..., k)."""
        lower, upper = self.bounds
        return ((theta <= lower) & (descent < 0)) | ((theta >= upper) & (descent > 0))

    def consistent(self, solution: Solution, setting: Setting) -> Estimate:
        """Return the estimate of the first step, as that of the tangent at the minimum."""
        problem = self.tangent(solution.theta, solution.weights)
        theta = problem.from_params(solution.theta)
        there = global_minimum(problem, replace(setting, n_starts=0), theta)
        ends, elsewhere = solution.ends, solution.elsewhere
        found = replace(
            solution,
            theta=theta,
            losses=there.losses,
            risk=there.risk,
            lambda_=there.lambda_,
            ends=np.stack([problem.from_params(each) for each in ends]),
            elsewhere=None
            if elsewhere is None
            else np.stack([problem.from_params(each) for each in elsewhere]),
        )
        return problem.consistent(found, setting)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, from the tangent of the first step."""
        return first.problem.second_step(first)


def starts_within(p0: Array, bounds: tuple[Array, Array], count: int = 16) -> Array:
    """Return parameters to start from: those given, and others within the bounds, (count, k).

    Between finite bounds anywhere, elsewhere within a factor of ten of those given.
    """
    lower, upper = bounds
    finite = np.isfinite(lower) & np.isfinite(upper)
    spread = qmc.Halton(len(p0), scramble=False).random(count)[1:]
    with np.errstate(invalid="ignore"):
        between = np.where(finite, lower + spread * (upper - lower), 0.0)
    near = np.where(p0 == 0, 2 * spread - 1, p0 * 10.0 ** (2 * spread - 1))
    return np.vstack([p0, np.clip(np.where(finite, between, near), lower, upper)])


class TangentProblem(RegressionProblem):
    """The linear regression on the derivatives of a curve at given parameters.

    Parameters
    ----------
    whole : CurveProblem
    at : ndarray, shape (k,)
        Parameters at which the curve is taken to be straight.
    slopes : ndarray, shape (n, k)
        Derivatives of the curve there.
    held : ndarray of bool, shape (k,)
        Parameters that stay where they are.
    """

    def __init__(self, whole: CurveProblem, at: Array, slopes: Array, held: np.ndarray) -> None:
        self.whole, self.at, self.slopes, self.held = whole, at, slopes, held
        free = slopes[:, ~held]
        super().__init__(whole.residuals(at) + free @ at[~held], free)
        if held.any():
            self.design.place(np.eye(len(at))[:, ~held])

    def to_params(self, theta: Array) -> Array:
        """Return all parameters in the units of the data."""
        return super().to_params(theta) + np.where(self.held, self.at, 0.0)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, on the tangent at its own parameters.

        It is chosen on this tangent, and again on that at its end where the curve departs from
        the first by more than the noise.
        """
        found = super().second_step(self._own_minima(first))
        if not isinstance(found, ExplainedRegression):
            return found
        chosen_on = self
        for _ in range(TANGENTS):
            found = followed(found)
            there = tangent_of(found)
            if chosen_on.departs(found.params, there) <= np.sqrt(found.scale):
                break
            found, chosen_on = there.chosen_anew(found), there
        return found

    def _own_minima(self, first: Estimate) -> Estimate:
        """Return a first step without minima of tangents that have other coordinates."""
        there = first.solution.elsewhere
        if there is None or there.shape[1] == self.n_params:
            return first
        return replace(first, solution=replace(first.solution, elsewhere=None))

    def explained_by(
        self, first: RegressionEstimate, rows: ExplainedRows, basis: Array
    ) -> ExplainedRegression:
        """Return the estimate of an explanation of the rows, whose only minimum is its own."""
        found = super().explained_by(first, rows, basis)
        return replace(found, solution=alone(found.solution, found.solution.theta))

    def chosen_anew(self, found: ExplainedRegression) -> ExplainedRegression:
        """Return the best explanation of the rows on this tangent, from another one."""
        there = alone(found.solution, self.from_params(found.params))
        first = found.first
        assert first is not None
        anew = super().second_step(replace(first, problem=self, solution=there))
        assert isinstance(anew, ExplainedRegression)
        return replace(anew, first=first)

    def toward(self, params: Array, weights: Array) -> Array:
        """Return parameters (k,), or those part of the way to them, where the curve is no worse.

        By its squared residuals under weights (n,).
        """
        here = self.whole.losses(self.at) @ weights
        for _ in range(HALVINGS):
            params = self.whole.within(params)
            if self.whole.losses(params) @ weights <= here * (1 + SUM_ROUNDING):
                return params
            params = 0.5 * (params + self.at)
        return self.at

    def departs(self, params: Array, other: TangentProblem) -> float:
        """Return how far two tangents are apart at parameters (k,)."""
        own, others = (
            each.endog - each.predictor(each.from_params(params)) for each in (self, other)
        )
        return float(np.abs(own - others).max())


def alone(found: Solution, theta: Array) -> Solution:
    """Return a solution that met no other minimum than parameters (k,)."""
    risks = np.array([found.risk])
    return replace(found, theta=theta, ends=theta[None], final_risks=risks, elsewhere=None)


def tangent_of(found: ExplainedRegression) -> TangentProblem:
    """Return the tangent on which an estimate was made."""
    assert isinstance(found.problem, TangentProblem)
    return found.problem


def followed(found: ExplainedRegression) -> ExplainedRegression:
    """Return an explanation on the tangent at its own parameters."""
    errors = np.sqrt(np.diag(found.covariance()))
    for _ in range(TANGENTS):
        tangent = tangent_of(found)
        params = tangent.toward(found.params, found.solution.weights)
        if (np.abs(params - tangent.at) <= SETTLED * errors).all():
            break
        found = moved_to(found, params)
        errors = np.sqrt(np.diag(found.covariance()))
    return found


def moved_to(found: ExplainedRegression, params: Array) -> ExplainedRegression:
    """Return the same explanation on the tangent at other parameters.

    Where columns are dependent, or the rows are too many to look at all of them at once, it is
    chosen anew.
    """
    problem = tangent_of(found).whole.tangent(params, found.solution.weights)
    rows, eps_bar = found.rows, found.setting.eps_bar
    dependent = any(each.design.back is not None for each in (problem, found.problem))
    if dependent or len(rows.fitted.decided.rows.data) < problem.n_obs:
        return problem.chosen_anew(found)
    decided = rows.fitted.decided
    some = replace(decided.rows, data=problem.endog[:, None], exog=problem.exog @ found.basis)
    mixture, settled = polished(some, rows.fitted.mixture, eps_bar)
    told = explanation(some, mixture)
    fitted = replace(rows.fitted, mixture=mixture, decided=Equations(some, mixture, eps_bar))
    rows = replace(
        rows,
        data=some.data,
        exog=some.exog,
        fitted=fitted,
        converged=settled,
        explained=rows.explained.with_chosen(told),
    )
    first = found.first
    assert isinstance(first, RegressionEstimate)
    return problem.explained_by(first, rows, found.basis)
