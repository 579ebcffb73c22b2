"""Estimates of logistic regression: consistent coefficients, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rrmstats.core.block_array import aligned
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Explanation, of_groups, without_comparison
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import minimum_influence, relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.explain import explained_rows
from rrmstats.laws.families import Binomial, Link, MeanFunction
from rrmstats.laws.responses import laws_of_family
from rrmstats.laws.rows import PredictorRows, Responses
from rrmstats.losses.label_explanations import explained_labels
from rrmstats.losses.logistic import LogisticProblem, TiltedLabels, contamination


class ClassificationProblem(LogisticProblem):
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

    nested = True
    follows_first = False

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

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them."""
        assert isinstance(other, ClassificationProblem)
        return self.design.back is None and other.design.back is None

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
        if self.alpha > 0 or self.offset is not None:
            found = self.tilted(solution).coefficients()
        else:
            found = (1.0 - 1.0 / lambda_) * theta
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

    def second_step(self, first: Estimate) -> ClassificationEstimate:
        """Return the estimate of the best explanation of the labels; see `explained_labels`.

        Penalties of the problem play no part in it.
        """
        if not isinstance(first, ClassificationEstimate):
            raise TypeError(f"the first step must be of {type(self).__name__}, got {type(first)}")
        if first.setting.eps_bar == 0:
            nothing = of_groups(np.zeros(self.n_obs), self.row_groups)
            return replace(first, first=first, explained=without_comparison(nothing, 0.0))
        if self.row_groups is not None:
            return self._of_groups(first)
        found = explained_labels(self.plain, self.design, self.columns, first)
        theta = found.fit.theta
        return self._estimate(
            theta,
            **found.reported(first, theta, self.plain.losses(theta)),
            identified=not found.separated,
            row_influence=found.moves,
            shift=found.shift,
        )

    def _of_groups(self, first: ClassificationEstimate) -> ClassificationEstimate:
        """Return the second step of labels that are good or bad by whole groups."""
        setting, one, zero = first.setting, np.ones(self.n_obs), np.zeros(self.n_obs)
        rows = PredictorRows(
            np.array(setting.counts(self.n_obs)),
            setting.wnobs(self.n_obs),
            Responses(self.endog, one, zero),
            (self.exog,),
            (zero if self.offset is None else self.offset,),
            self.row_groups,
        )
        mean = MeanFunction.between(Link.logit(), *Binomial().mean_bounds(self.endog))
        starts = [self.plain.weighted_fit(setting.spread(self.n_obs)), first.theta]
        laws = laws_of_family(Binomial(), mean, rows)
        found = explained_rows(rows, laws, starts, setting.eps_bar)
        theta = found.fit.theta
        return self._estimate(
            theta,
            **found.reported(first, self.plain.losses(theta)),
            identified=not self.plain.separated(theta),
            row_influence=found.moves.theta / rows.total,
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
        return Untilted(told, *(part @ back.T for part in fit.influence(theta)))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationEstimate(Estimate):
    """The estimate of a logistic regression.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        `params` in the coordinates of the problem.
    identified : bool
        Whether the size of the coefficients is identified, and not only their direction.
    separated : bool
        Whether the fit was stopped because a hyperplane separates the rows with weight.
    row_influence : ndarray, shape (n, k), or None
        Influence functions of `theta` in a second step, whose sum it moves by; None in the first.
    shift : ndarray, shape (k,), or None
        How far the prior moved `theta`.
    """

    problem: ClassificationProblem
    theta: Array
    identified: bool = True
    separated: bool = False
    row_influence: Array | None = None
    shift: Array | None = None

    def visible_contamination(self) -> tuple[float, float]:
        """Return the share of wrong labels that a first step shows, and its standard error."""
        if self.setting.eps_bar == 0:
            return 0.0, 0.0
        if not self.identified:
            return np.nan, np.nan
        gamma = 1.0 / (self.solution.lambda_ - 1.0)  # zero where lambda is infinite
        moves = self._first_step() / self.wnobs
        counts = aligned(self.setting.counts(self.problem.n_obs), self.problem.blocks)
        return contamination(self.problem, gamma, self.theta, moves, counts)

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared; None if not known."""
        theta = explanation.theta
        return None if theta is None else self.problem.design.to_params(theta)

    def departures(self, other: Estimate) -> Array:
        """Return how far off another estimate is in standard errors, shape (k,).

        NaN where only the direction of the coefficients is identified.
        """
        both = self.identified and isinstance(other, ClassificationEstimate) and other.identified
        return super().departures(other) if both else np.full(len(self.params), np.nan)

    def influence(self) -> Array:
        """Return the influence functions of the coefficients, shape (n, k)."""
        moves = self.row_influence
        influence = self._first_step() if moves is None else self.wnobs * moves
        back = self.problem.design.back
        return influence if back is None else influence @ back.T

    def _first_step(self) -> Array:
        """Return the influence functions of the first step.

        The consistent coefficients move with the data, and with theta and lambda, by which the
        weights move too.
        """
        found = self.solution
        of_theta, of_log_lambda = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )
        if not self.identified or found.lambda_ == np.inf:
            return of_theta
        by_row, by_theta, by_log_lambda = self.problem.tilted(found).influence(self.theta)
        weighted = (found.weights / found.lambda_)[:, None] * by_row
        by_theta = by_theta - self.problem.gradients(found.theta).T @ weighted
        by_log_lambda = by_log_lambda + found.losses @ weighted
        own = by_row * relative_weights(found.weights, self.base)[:, None]
        return own + of_theta @ by_theta + of_log_lambda[:, None] * by_log_lambda
