"""Estimates of logistic regression: consistent coefficients, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rrmstats.core.block_array import aligned
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.sandwich import minimum_influence, relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.families import Binomial, Link, MeanFunction
from rrmstats.laws.mixture import Laws
from rrmstats.laws.responses import laws_of_family
from rrmstats.laws.rows import PredictorRows
from rrmstats.losses.explained import ExplainedEstimate, ExplainedProblem
from rrmstats.losses.label_explanations import ExplainedLabels
from rrmstats.losses.logistic import LogisticProblem, TiltedLabels, contamination


class ClassificationProblem(LogisticProblem, ExplainedProblem):
    """Cross-entropy losses on a design of any rank and scale, and their estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import ClassificationProblem
    >>> x = np.c_[np.ones(200), rng.standard_normal(200)]
    >>> y = (x[:, 1] + rng.standard_normal(200) > 0).astype(float)
    >>> found = minimize(ClassificationProblem(y, x, alpha=1e-5), eps_bar=0.1)
    >>> found.converged
    True
    """

    def __init__(
        self,
        endog: Array,
        exog: Array,
        offset: Array | None = None,
        *,
        alpha: float = 0.0,
        ridge: Array | None = None,
    ) -> None:
        self.design = Design(exog)
        if ridge is not None and self.design.back is not None:
            ridge = self.design.back.T @ ridge @ self.design.back
        super().__init__(endog, self.design.exog, offset, alpha=alpha, ridge=ridge)
        self.columns = exog
        self.plain = LogisticProblem(endog, self.exog, offset)
        self.plain.columns = exog

    @property
    def labels(self) -> LogisticProblem:
        """The labels without penalties, which play no part in the second step."""
        return self.plain

    def consistent(self, solution: Solution, setting: Setting) -> ClassificationEstimate:
        """Return the estimate of the first step, its coefficients corrected."""
        separated = self.separated(solution.theta)
        finite = bool(np.isfinite(solution.risk))
        found = self._estimate(
            self._consistent_theta(solution),
            setting=setting,
            solution=replace(solution, converged=solution.converged and not separated and finite),
            raw_params=self.design.to_params(solution.theta),
            separated=separated,
        )
        eps_hat, error = found.visible_contamination()
        return replace(found, eps_hat=eps_hat, eps_hat_se=error)

    def _consistent_theta(self, solution: Solution) -> Array | None:
        """Return consistent coefficients; None where the direction of theta is all there is.

        So it is where lambda is 1 or less, or the weighted data are separated.
        """
        theta, weights, lambda_ = solution.theta, solution.weights, solution.lambda_
        if not (np.isfinite(solution.risk) and lambda_ > 1) or self.separated(theta):
            return None
        if lambda_ == np.inf:
            return theta
        found = self.tilted(solution).coefficients()
        if found is None:
            return None
        agrees = self.predictor(found) @ (weights * self.predictor(theta)) > 0
        return found if agrees else None

    def tilted(self, solution: Solution) -> TiltedLabels:
        """Return the labels as the weights of a first step tilt them."""
        rate = 1.0 / solution.lambda_
        rates = 0.0 * solution.weights + rate
        return TiltedLabels(self, solution.theta, rates, solution.weights, rate)

    def _estimate(self, theta: Array | None, **found: Any) -> ClassificationEstimate:
        """Return the estimate with given coefficients, those of least risk in place of None."""
        used = found["solution"].theta if theta is None else theta
        params = self.design.to_params(used)
        known = {"raw_params": params, "identified": theta is not None, **found}
        return ClassificationEstimate(problem=self, params=params, theta=used, **known)

    def law_rows(self, first: ClassificationEstimate) -> PredictorRows:
        """Return the rows as laws take them."""
        mass = aligned(first.setting.counts(self.n_obs), self.blocks)
        return PredictorRows.plain(
            mass, first.wnobs, self.endog, (self.exog,), self.offset, self.row_groups
        )

    def laws(self, rows: PredictorRows) -> Laws:
        """Return what labels that are good or bad by whole groups may look like."""
        mean = MeanFunction.between(Link.logit(), *Binomial().mean_bounds(self.endog))
        return laws_of_family(Binomial(), mean, rows)

    def candidates(self, first: ClassificationEstimate) -> list[Array]:
        """Return parameters to start from, those of maximum likelihood first."""
        return [self.plain.weighted_fit(first.setting.spread(self.n_obs)), first.theta]

    def explained_by(self, first: ClassificationEstimate, found: Any) -> ClassificationEstimate:
        """Return the estimate of the explanation that was found."""
        theta, labels = found.theta, isinstance(found, ExplainedLabels)
        sound = labels or first.solution.converged
        return self._estimate(
            theta,
            **found.reported(first, self.plain.losses(theta), sound),
            identified=not (found.separated if labels else self.plain.separated(theta)),
            shift=found.shift if labels else None,
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, its coefficients consistent.

        Where there is no such fit only the direction of theta is known.
        """
        assert isinstance(estimate, ClassificationEstimate)
        fit = TiltedLabels(self, estimate.solution.theta, rates, estimate.solution.weights)
        theta = fit.coefficients() if estimate.identified else None
        if theta is None:
            unknown = replace(estimate, identified=False)
            return Untilted(unknown, np.full((self.n_obs, len(estimate.params)), np.nan))
        told = replace(estimate, params=self.design.to_params(theta), theta=theta)
        back = self.design.to_params(np.eye(self.n_params))
        return Untilted(told, *fit.influence(theta, back.T))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationEstimate(ExplainedEstimate):
    """The estimate of a logistic regression.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        `params` in the coordinates of the problem.
    separated : bool
        Whether the fit was stopped because a hyperplane separates the rows with weight.
    shift : ndarray, shape (k,), or None
        How far the prior moved `theta`.
    """

    problem: ClassificationProblem
    theta: Array
    separated: bool = False
    shift: Array | None = None

    def visible_contamination(self) -> tuple[float, float]:
        """Return the share of wrong labels that a first step shows, and its standard error."""
        if self.setting.eps_bar == 0:
            return 0.0, 0.0
        if not self.identified:
            return np.nan, np.nan
        gamma = 1.0 / (self.solution.lambda_ - 1.0)  # zero where lambda is infinite
        counts = aligned(self.setting.counts(self.problem.n_obs), self.problem.blocks)
        return contamination(self.problem, gamma, self.theta, self.first_moves, counts)

    def departures(self, other: Estimate) -> Array:
        """Return how far off another estimate is in standard errors, shape (k,).

        NaN where only the direction of the coefficients is identified.
        """
        both = self.identified and isinstance(other, ClassificationEstimate) and other.identified
        return super().departures(other) if both else np.full(len(self.params), np.nan)

    def first_moves(self, onto: Array | None = None) -> Array:
        """Return the influence functions of the first step, in directions (k, m) if given.

        The consistent coefficients move with the data, and with theta and lambda, by which the
        weights move too.
        """
        found, onto = self.solution, np.eye(len(self.theta)) if onto is None else onto
        of_theta, of_log_lambda = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )
        if not self.identified or found.lambda_ == np.inf:
            return of_theta @ onto
        by_row, by_theta, by_log_lambda = self.problem.tilted(found).influence(self.theta, onto)
        weighted = (found.weights / found.lambda_)[:, None] * by_row
        by_theta = by_theta - self.problem.gradients(found.theta).T @ weighted
        by_log_lambda = by_log_lambda + found.losses @ weighted
        own = by_row * relative_weights(found.weights, self.base)[:, None]
        return own + of_theta @ by_theta + of_log_lambda[:, None] * by_log_lambda
