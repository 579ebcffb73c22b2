"""Estimates of logistic regression: consistent coefficients, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.block_array import aligned, row_sums
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Explanation, of_groups, without_comparison
from rrmstats.core.linear import weighted_gram
from rrmstats.core.sandwich import minimum_influence, relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.explain import explained_rows
from rrmstats.laws.families import Binomial, Link, MeanFunction
from rrmstats.laws.responses import laws_of_family
from rrmstats.laws.rows import PredictorRows, Responses
from rrmstats.losses.label_explanations import explained_labels
from rrmstats.losses.logistic import LogisticProblem, OffsetLabels, contamination


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

    def __init__(
        self, endog: Array, exog: Array, alpha: float = 0.0, ridge: Array | None = None
    ) -> None:
        self.design = Design(exog)
        if ridge is not None and self.design.back is not None:
            ridge = self.design.back.T @ ridge @ self.design.back
        super().__init__(endog, self.design.exog, alpha, ridge)
        self.columns = exog
        self.plain = self.unpenalized()

    def consistent(self, solution: Solution, setting: Setting) -> ClassificationEstimate:
        """Return the estimate of the first step, its coefficients corrected."""
        separated = self.separated(solution.theta)
        sound = solution.converged and not separated and bool(np.isfinite(solution.risk))
        theta, fitted, identified = consistent_theta(
            self, solution.theta, solution.weights, solution.lambda_
        )
        if not np.isfinite(solution.risk):
            theta, identified = solution.theta, False
        found = ClassificationEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=sound),
            params=self.design.to_params(theta),
            raw_params=self.design.to_params(solution.theta),
            theta=theta,
            fitted=fitted,
            identified=identified,
            separated=separated,
        )
        eps_hat, error = found.visible_contamination()
        return replace(found, eps_hat=eps_hat, eps_hat_se=error)

    def second_step(self, first: Estimate) -> ClassificationEstimate:
        """Return the estimate of the best explanation of the labels; see `explained_labels`.

        Penalties of the problem play no part in it.
        """
        if not isinstance(first, ClassificationEstimate):
            raise TypeError(f"the first step must be of {type(self).__name__}, got {type(first)}")
        if first.setting.eps_bar == 0:
            nothing = of_groups(np.zeros(self.n_obs), first.setting.groups)
            return replace(first, first=first, explained=without_comparison(nothing, 0.0))
        if first.setting.groups is not None:
            return self._of_groups(first)
        found = explained_labels(self.plain, self.design, self.columns, first, first.theta)
        theta = found.fit.theta
        params = self.design.to_params(theta)
        return ClassificationEstimate(
            problem=self,
            **found.reported(first, theta, self.plain.losses(theta), first.solution.converged),
            params=params,
            raw_params=params,
            theta=theta,
            fitted=theta,
            identified=first.identified or not found.separated,
            row_influence=found.moves,
            shift=found.shift,
        )

    def _of_groups(self, first: ClassificationEstimate) -> ClassificationEstimate:
        """Return the second step of labels that are good or bad by whole groups."""
        setting, n = first.setting, self.n_obs
        zero, family = np.zeros(n), Binomial()
        seen = Responses(self.endog, np.ones(n), zero)
        mass, total = np.array(setting.counts(n)), setting.wnobs(n)
        rows = PredictorRows(mass, total, seen, (self.plain.exog,), (zero,), setting.groups)
        mean = MeanFunction.between(Link.logit(), *family.mean_bounds(self.endog))
        starts = [self.plain.weighted_fit(setting.spread(n)), first.theta]
        laws = laws_of_family(family, mean, rows)
        found = explained_rows(rows, laws, starts, setting.eps_bar)
        theta, kept = found.fit.theta, rows.mass * found.good
        losses, params = self.plain.losses(theta), self.design.to_params(theta)
        solution = first.solution.continued(
            theta, losses, kept / kept.sum(), first.solution.lambda_, setting
        )
        return ClassificationEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=first.solution.converged and found.converged),
            params=params,
            raw_params=params,
            first=first,
            explained=found.explained,
            eps_hat=found.explained.chosen.eps,
            eps_hat_se=found.eps_error,
            theta=theta,
            fitted=theta,
            identified=not self.plain.separated(theta),
            row_influence=found.moves.theta / rows.total,
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, its coefficients consistent.

        Under the weights the log-odds of clean labels at x are ``x' (true + rate * theta)``: the
        true coefficients are fitted, without the penalty, with the rest as an offset. Where that
        fit does not exist only the direction of theta is known. A ridge is kept as it is.
        """
        assert isinstance(estimate, ClassificationEstimate)
        found = estimate.solution
        fit = OffsetLabels(self, found.theta, rates, found.weights)
        beta = fit.coefficients()
        if not estimate.identified or self.plain.separated(beta):
            unknown = replace(estimate, identified=False)
            return Untilted(unknown, np.full((self.n_obs, len(estimate.params)), np.nan))
        params = self.design.to_params(beta)
        told = replace(estimate, params=params, theta=beta, fitted=beta)
        back = self.design.to_params(np.eye(self.n_params))
        by_row, by_theta, by_log_lambda = (part @ back.T for part in fit.moves(beta))
        return Untilted(told, by_row, by_theta, by_log_lambda)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationEstimate(Estimate):
    """The estimate of a logistic regression.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        `params` in the coordinates of the problem.
    fitted : ndarray, shape (k,)
        The weighted maximum likelihood fit that they rest on.
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
    fitted: Array
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

        The consistent coefficients are the weighted maximum likelihood fit less theta / lambda;
        the fit moves with the data, and with theta and lambda through the weights.
        """
        found = self.solution
        of_theta, of_log_lambda = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )
        beta = 1.0 / found.lambda_ if found.lambda_ > 0 else np.inf
        if not self.identified or beta == 0:
            return of_theta
        of_fit = of_theta
        if self.problem.alpha > 0:
            of_fit = self._influence_of_fit(of_theta, of_log_lambda)
        return of_fit - beta * (of_theta - of_log_lambda[:, None] * found.theta)

    def _influence_of_fit(self, of_theta: Array, of_log_lambda: Array) -> Array:
        """Return the influence functions of the weighted fit without the penalty."""
        found, plain = self.solution, self.problem.plain
        weights, beta = found.weights, 1.0 / found.lambda_
        gradients, own = plain.gradients(self.fitted), self.problem.gradients(found.theta)
        curvature = plain.link_slopes(plain.predictor(self.fitted))[1]
        # At the fit the weighted gradients have mean zero: their products are covariances.
        with_theta, with_loss, hessian = row_sums(
            _products, weights, found.losses, gradients, own, plain.exog, curvature
        )
        score = gradients * relative_weights(weights, self.base)[:, None]
        score = score + beta * (of_log_lambda[:, None] * with_loss - of_theta @ with_theta.T)
        return -score @ np.linalg.pinv(hessian, hermitian=True)


def _products(
    weights: Array, losses: Array, gradients: Array, own: Array, exog: Array, curvature: Array
) -> tuple[Array, Array, Array]:
    """Return weighted sums: of products of gradients, with losses, and a Gram matrix."""
    weighted = weights[:, None] * gradients
    return weighted.T @ own, losses @ weighted, weighted_gram(exog, weights * curvature)


def consistent_theta(
    problem: LogisticProblem, theta: Array, weights: Array, lambda_: float
) -> tuple[Array, Array, bool]:
    """Return consistent coefficients, the weighted fit they rest on, and whether they exist.

    Under the weights the log-odds of clean labels at x are ``x' (true + theta / lambda)``. Their
    weighted maximum likelihood fit, without the penalty, less ``theta / lambda`` is therefore
    consistent. Where lambda is 1 or less, or the weighted data are separated, the direction of
    theta is all there is. A ridge is a choice of the user's, kept as it is.
    """
    if lambda_ == np.inf:
        return theta, theta, not problem.separated(theta)
    if not lambda_ > 1:
        return theta, theta, False
    fitted = theta
    if problem.alpha > 0:
        plain = problem.unpenalized()
        fitted = plain.weighted_fit(weights, theta)
        if plain.separated(fitted):
            return theta, theta, False
    elif problem.separated(theta):
        return theta, theta, False
    consistent = fitted - theta / lambda_
    if problem.predictor(consistent) @ (weights * problem.predictor(theta)) <= 0:
        return theta, theta, False
    return consistent, fitted, True
