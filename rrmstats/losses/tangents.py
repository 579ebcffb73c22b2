"""Regressions that are fitted as linear ones, each time on the tangent where they have arrived.

The tangent of a curve is made of its derivatives at parameters; that of a regression with absorbed
effects of the rows less their weighted means at weights. Both steps, their explanations and their
errors are those of a linear regression on the tangent, which is made anew until the parameters
stay where they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.regression import (
    ExplainedRegression,
    RegressionEstimate,
    RegressionProblem,
)

# Tangents on which an estimate is followed, at most.
TANGENTS = 20
# Changes at which an estimate has settled: of fitted values in standard deviations of residuals in
# a first step, of parameters in standard errors in a second.
SETTLED = 1e-3


class FittedOnTangents(EstimableProblem):
    """A problem whose estimates are those of its tangents."""

    seeks_minima = True

    def to_params(self, theta: Array) -> Array:
        """Return the parameters in the units of the data."""
        raise NotImplementedError

    def tangent(self, params: Array, weights: Array) -> TangentProblem:
        """Return the linear regression that takes its place at parameters (k,), weights (n,)."""
        raise NotImplementedError

    def consistent(self, solution: Solution, setting: Setting) -> RegressionEstimate:
        """Return the estimate of the first step, as that of the tangent at the minimum."""
        params, weights = self.to_params(solution.theta), solution.weights
        alone_from = replace(setting, n_starts=0)
        for _ in range(TANGENTS):
            problem = self.tangent(params, weights)
            start = problem.from_params(params)
            # Without bad rows no descent follows a start.
            there = global_minimum(problem, alone_from, start if setting.eps_bar > 0 else None)
            params, weights = problem.to_params(there.theta), there.weights
            moved_by = problem.predictor(there.theta - start)
            if weights @ moved_by**2 <= SETTLED**2 * there.risk:
                break
        found = replace(
            carried(solution, self, problem),
            theta=there.theta,
            losses=there.losses,
            weights=there.weights,
            risk=there.risk,
            lambda_=there.lambda_,
        )
        return problem.consistent(found, setting)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, from the tangent of the first step."""
        return first.problem.second_step(first)


class TangentProblem(RegressionProblem):
    """The linear regression that takes the place of another problem.

    Parameters
    ----------
    whole : FittedOnTangents
    at : ndarray, shape (k,)
        Parameters at which it was made.
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
    """

    is_linear = False

    def __init__(self, whole: FittedOnTangents, at: Array, endog: Array, exog: Array) -> None:
        self.whole, self.at = whole, at
        super().__init__(endog, exog)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the best explanation of the rows, on the tangent at its own parameters."""
        found = super().second_step(self._own_minima(first))
        return on_own_tangent(found) if isinstance(found, ExplainedRegression) else found

    def _own_minima(self, first: Estimate) -> Estimate:
        """Return a first step without minima of tangents that have other coordinates."""
        there = first.solution.elsewhere
        if there is None or there.shape[1] == self.n_params:
            return first
        return replace(first, solution=replace(first.solution, elsewhere=None))

    def explained_in(self, *args: Any, **kwargs: Any) -> ExplainedRegression:
        """Return the best explanation of the rows, whose only minimum is its own."""
        found = super().explained_in(*args, **kwargs)
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
        """Return parameters (k,), or some on the way to them, at which to make the next tangent.

        Those of weights (n,).
        """
        return params

    def departs(self, params: Array, other: TangentProblem) -> float:
        """Return how far two tangents are apart at parameters (k,)."""
        own, others = (
            each.endog - each.predictor(each.from_params(params)) for each in (self, other)
        )
        return float(np.abs(own - others).max())


def carried(found: Solution, before: FittedOnTangents | TangentProblem, after: Any) -> Solution:
    """Return a solution in the coordinates of another problem of the same parameters."""

    def moved(ends: Array) -> Array:
        return np.stack([after.from_params(before.to_params(each)) for each in ends])

    return replace(
        found,
        theta=moved(found.theta[None])[0],
        ends=moved(found.ends),
        elsewhere=None if found.elsewhere is None else moved(found.elsewhere),
    )


def alone(found: Solution, theta: Array) -> Solution:
    """Return a solution that met no other minimum than parameters (k,)."""
    risks = np.array([found.risk])
    return replace(
        found, theta=theta, ends=theta[None], final_risks=risks, n_reached=1, elsewhere=None
    )


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


def on_own_tangent(found: ExplainedRegression) -> ExplainedRegression:
    """Return an explanation on the tangent at its own parameters.

    It is chosen again on that at its end where this departs from the first by more than the noise.
    """
    chosen_on = tangent_of(found)
    for _ in range(TANGENTS):
        found = followed(found)
        there = tangent_of(found)
        if chosen_on.departs(found.params, there) <= np.sqrt(found.scale):
            break
        found, chosen_on = there.chosen_anew(found), there
    return found


def moved_to(found: ExplainedRegression, params: Array) -> ExplainedRegression:
    """Return the same explanation on the tangent at other parameters.

    Where columns are dependent it is chosen anew.
    """
    problem, first = tangent_of(found).whole.tangent(params, found.solution.weights), found.first
    if any(each.design.back is not None for each in (problem, found.problem)):
        return problem.chosen_anew(found)
    assert isinstance(first, RegressionEstimate)
    return problem.explained_in(found.basis, first, (), known=found.rows)
