"""Estimates of generalized linear models: consistent parameters, and the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import aligned, in_blocks
from rrmstats.core.consistency import robust_order, second_moment_ratio, untilted_variance
from rrmstats.core.conventions import FAR
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.problem import KEPT_FRACTION
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.laws.families import (
    Binomial,
    Counts,
    Gaussian,
    Link,
)
from rrmstats.laws.mixture import Laws
from rrmstats.laws.responses import laws_of_family
from rrmstats.laws.rows import PredictorRows, Responses
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.explained import ExplainedEstimate, ExplainedProblem
from rrmstats.losses.label_explanations import ExplainedLabels
from rrmstats.losses.likelihood import LikelihoodProblem
from rrmstats.losses.likelihood_laws import FamilyKernel, Likelihood, PredictorLikelihood
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.regression import RegressionEstimate, RegressionProblem
from rrmstats.losses.tilted_rows import (
    FamilyRows,
    LawRows,
    Sample,
    budget_dispersion,
    dispersion_fit,
    tilted_fit,
)


class GeneralizedProblem(DevianceProblem, ExplainedProblem):
    """Half the unit deviances on a design of any rank and scale, and their estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import GeneralizedProblem
    >>> from rrmstats.laws.families import Link, MeanFunction, Poisson
    >>> counts = np.r_[rng.poisson(2.0, 50), np.full(5, 90)].astype(float)
    >>> problem = GeneralizedProblem(
    ...     counts, np.ones((55, 1)), family=Poisson(), mean=MeanFunction(Link.log()))
    >>> minimize(problem, eps_bar=0.2).converged
    True
    """

    def __init__(self, endog: Array, exog: Array, *args: Any, **options: Any) -> None:
        self.design = Design(exog)
        super().__init__(endog, self.design.exog, *args, **options)
        self.columns = exog

    @property
    def labels(self) -> LogisticProblem | None:
        """The rows where they are single labels, 0 or 1, whose log-odds are linear."""
        if not (isinstance(self.family, Binomial) and self.mean.link == Link.logit()):
            return None
        labels = (self.endog == 0) | (self.endog == 1)
        if not (labels & (self.var_weights == 1)).all():
            return None
        plain = LogisticProblem(self.endog, self.exog, self.offset)
        plain.columns = self.columns
        return plain

    def consistent(self, solution: Solution, setting: Setting) -> GeneralizedEstimate:
        """Return the estimate of the first step, its parameters and dispersion corrected."""
        sample = Sample(self, setting)
        lambda_ = solution.lambda_
        exact = lambda_ == 0 and self.family.dispersed
        if exact or lambda_ == np.inf:
            dispersion = self._plain_dispersion(solution, sample)
            rows = FamilyRows(sample, solution.theta, dispersion, 1.0)
            estimate = self._first(solution, rows)
            good = float(setting.spread(self.n_obs) @ (solution.weights > 0))
            return replace(estimate, exact=exact, eps_hat=1.0 - min(good, 1.0) if exact else 0.0)
        theta, eps_bar, dispersion, settled = solution.theta, setting.eps_bar, 1.0, True
        if self.family.dispersed:
            # Many bad rows can leave two fixed points, of which the lower is the robust one: it
            # starts from the least that the budget allows.
            order = robust_order(eps_bar)
            least = budget_dispersion(sample, theta, order, 1.0 - eps_bar, lambda_)
            dispersion, settled = dispersion_fit(sample, theta, order, least, lambda_)
        # Counts near zero, and labels, can be fitted so closely that lambda tells nothing: the
        # order is at most that of clean data.
        clean = 1.0 / second_moment_ratio(eps_bar)
        order = min(1.0 + dispersion / lambda_, clean) if lambda_ > 0 else clean
        rows, root = tilted_fit(FamilyRows(sample, theta, dispersion, order))
        sound = solution.converged and root and settled
        return self._first(replace(solution, converged=sound), rows)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, from the first step."""
        assert isinstance(first, GeneralizedEstimate)
        if self._is_regression and first.setting.eps_bar > 0 and not first.exact:
            return self._of_regression(first)
        return super().second_step(first)

    def laws(self, rows: PredictorRows) -> Laws:
        """Return what rows may look like."""
        return laws_of_family(self.family, self.mean, rows)

    def explained_by(self, first: GeneralizedEstimate, found: Any) -> GeneralizedEstimate:
        """Return the estimate of the explanation that was found."""
        labels = isinstance(found, ExplainedLabels)
        dispersion = float(found.fit.others[0]) if self.family.dispersed else 1.0
        ended = FamilyRows(Sample(self, first.setting), found.theta, dispersion, 1.0)
        boundary = not labels and self.at_boundary(ended, found.good)
        sound = labels or (first.solution.converged and not boundary)
        return self._estimate(
            ended,
            first.raw_params,
            boundary=boundary,
            identified=not (labels and found.separated),
            **found.reported(first, self.losses(ended.theta), sound),
        )

    def _estimate(self, rows: FamilyRows, raw: Array, **found: Any) -> GeneralizedEstimate:
        """Return the estimate whose parameters and dispersion are those of the rows."""
        return GeneralizedEstimate(
            problem=self,
            params=self.design.to_params(rows.theta),
            raw_params=raw,
            loss_unit=1.0 / rows.dispersion,
            rows=rows,
            **found,
        )

    def candidates(self, first: GeneralizedEstimate) -> list[Array]:
        """Return parameters to start from: of maximum likelihood, and the ends of the search."""
        most_likely = self.weighted_fit(first.setting.spread(self.n_obs))
        return [most_likely, first.rows.theta, *first.solution.other_minima()]

    @property
    def _is_regression(self) -> bool:
        """Whether responses are Gaussian around a linear predictor."""
        return isinstance(self.family, Gaussian) and self.mean.link == Link.identity()

    def _of_regression(self, first: GeneralizedEstimate) -> GeneralizedEstimate:
        """Return the second step of linear regression, so that one model has one answer.

        Losses are half the squares, and rows of larger `var_weights` have less noise.
        """
        root = np.sqrt(self.var_weights)
        problem = RegressionProblem(root * (self.endog - self.offset), root[:, None] * self.exog)
        second = take_steps(problem.in_groups(self.row_groups), first.setting)
        assert isinstance(second, RegressionEstimate) and second.explained is not None
        told, shift = second.explained, self._log_density_shift(second)
        each = [
            replace(
                other, theta=second.params_of(other), log_likelihood=other.log_likelihood + shift
            )
            for other in told.explanations
        ]
        chosen = each[told.explanations.index(told.chosen)]
        theta, last = problem.to_params(second.solution.theta), second.solution
        solution = first.solution.continued(
            theta, self.losses(theta), last.weights, first.solution.lambda_, first.setting
        )
        return self._estimate(
            FamilyRows(Sample(self, first.setting), theta, second.scale, 1.0),
            first.raw_params,
            first=first,
            setting=first.setting,
            solution=replace(solution, converged=last.converged),
            explained=replace(told, explanations=tuple(each), chosen=chosen),
            eps_hat=second.eps_hat,
            eps_hat_se=second.eps_hat_se,
            moves=second.influence(),
            inference_freedom=second.inference_freedom,
        )

    def _log_density_shift(self, second: RegressionEstimate) -> float:
        """Return what takes log-likelihoods of rows in other units to those of the data."""
        if in_blocks(self.endog) is not None:  # explained on a sample, which has no likelihood
            return 0.0
        spread = second.setting.spread(self.n_obs)
        log_units = np.log(self.var_weights) - np.log(second.loss_unit)
        return 0.5 * second.wnobs * float(spread @ log_units)

    def law_rows(self, first: Estimate) -> PredictorRows:
        """Return the rows as laws take them."""
        mass = aligned(first.setting.counts(self.n_obs), self.blocks)
        far = self.far(first.solution.weights) if self.family.dispersed else 0.0 * self.endog
        seen, designs = Responses(self.endog, self.var_weights, far), (self.exog,)
        return PredictorRows(mass, first.wnobs, seen, designs, (self.offset,), self.row_groups)

    def far(self, weights: Array) -> Array:
        """Tell which rows are far in X from those with weight, as one in 1 / FAR is, (n,).

        By Hotelling's T^2, the distance of another row of the same normal distribution.
        """
        (gram,), (mean,), (squares,) = self.products([weights], [weights], [weights**2])
        values, axes = np.linalg.eigh(gram - np.outer(mean, mean))
        varying = values > 1e-10 * values[-1]  # constant columns vary by rounding
        n, p = 1.0 / squares, int(varying.sum())
        if not n > p + 1 > 1:
            return 0.0 * weights
        most = p * (n + 1) * (n - 1) / (n * (n - p)) * float(f_distribution.isf(FAR, p, n - p))
        axes = axes[:, varying] / np.sqrt(most * values[varying])
        off = self.exog @ axes - mean @ axes
        return 1.0 * (np.einsum("ni,ni->n", off, off) > 1.0)

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, its parameters and dispersion consistent.

        Weights narrow Gaussian, gamma and inverse Gaussian distributions, which keep their means;
        they move those of counts. Those of Tweedie distributions, nearly gamma, stay as they are.
        """
        assert isinstance(estimate, GeneralizedEstimate)
        if estimate.exact or estimate.boundary or not rates.any():
            return super().untilted(estimate, rates)
        sample, weights = Sample(self, estimate.setting), estimate.solution.weights
        dispersion = estimate.rows.dispersion
        if self.family.dispersed:  # the loss is half a square
            dispersion = untilted_variance(dispersion, weights, 0.5 * rates * self.var_weights)
        theta, converged, moves = estimate.solution.theta, True, None
        if isinstance(self.family, Counts):
            counts = LikelihoodProblem(self.counts_likelihood(theta, dispersion))
            whole = Sample(counts, estimate.setting)
            rows, converged = tilted_fit(LawRows.weighed(whole, theta, dispersion * rates))
            back = np.eye(self.n_params) if self.design.back is None else self.design.back
            theta, moves = rows.theta, tuple(part @ back.T for part in rows.moves())
        found = replace(estimate.solution, converged=estimate.solution.converged and converged)
        told = self._first(found, FamilyRows(sample, theta, dispersion, 1.0))
        return Untilted(told, told.influence()) if moves is None else Untilted(told, *moves)

    def counts_likelihood(self, theta: Array, dispersion: float) -> Likelihood:
        """Return the likelihood of a family of counts, to start from theta."""
        assert isinstance(self.family, Counts)
        kernel = FamilyKernel(self.family, self.mean, self.var_weights / dispersion)
        rows = PredictorLikelihood(kernel, self.endog, (self.exog,), (self.offset,))
        return Likelihood(rows=rows, start=theta, largest=kernel.largest)

    def at_boundary(self, rows: FamilyRows, weights: Array) -> bool:
        """Tell whether rows with weight have means that only bounds keep from the edge."""
        edge = self.family.at_edge(rows.mu, *self.mean.bounds())
        most = float(np.max(np.where(edge, weights, 0.0)))
        return most > KEPT_FRACTION * max(float(np.mean(weights)), np.finfo(float).tiny)

    def _plain_dispersion(self, solution: Solution, sample: Sample) -> float:
        """Return Pearson's estimate of the dispersion, for rows of equal weight.

        At an exact fit one stands for it.
        """
        if not self.family.dispersed:
            return 1.0
        rows = FamilyRows(sample, solution.theta, 1.0, 1.0)
        squares = (self.endog - rows.mu) ** 2 * self.var_weights / self.family.variance(rows.mu)
        total = float(sample.mass @ np.where(solution.weights > 0, squares, 0.0))
        free = sample.total - self.n_params
        return total / free if total > 0 and free > 0 else 1.0

    def _first(self, solution: Solution, rows: FamilyRows) -> GeneralizedEstimate:
        """Return the estimate of a first step."""
        (share, error), boundary = rows.bad_share(), self.at_boundary(rows, rows.weights)
        return self._estimate(
            rows,
            self.design.to_params(solution.theta),
            setting=rows.sample.setting,
            solution=replace(solution, converged=solution.converged and not boundary),
            eps_hat=share,
            eps_hat_se=error,
            boundary=boundary,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneralizedEstimate(ExplainedEstimate):
    """The estimate of a generalized linear model.

    Attributes
    ----------
    rows : FamilyRows
        The rows at `params` and the dispersion, in the coordinates of the problem.
    boundary : bool
        Whether rows with weight have means at the boundary, where no parameters are finite.
    inference_freedom : float
        Degrees of freedom of t tests.
    """

    problem: GeneralizedProblem
    rows: FamilyRows
    boundary: bool = False
    inference_freedom: float = np.inf

    @property
    def scale(self) -> float:
        """Consistent dispersion; one where the family has none, zero at an exact fit."""
        return 0.0 if self.exact else self.rows.dispersion

    def first_moves(self) -> Array:
        """Return the influence functions of a first step, in the coordinates of the problem."""
        moves = self.wnobs * self.rows.influence
        return np.zeros_like(moves) if self.exact else moves

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of `params`; NaN where only their direction is identified."""
        covariance = super().covariance(dependence)
        return covariance if self.identified else np.full_like(covariance, np.nan)

    def tail(self) -> Array:
        """Return the probability of a deviance as large as each row's, shape (n,)."""
        if self.exact:
            return (self.solution.weights > 0).astype(float)
        return self.problem.family.tail(self.problem.endog, self.rows.mu, self.rows.size)

    def quantile_residuals(self) -> Array:
        """Return normal quantiles at the probabilities of the responses, shape (n,)."""
        rows = self.rows
        u = np.random.default_rng(0).uniform(size=self.problem.n_obs)
        return self.problem.family.quantile_residuals(self.problem.endog, rows.mu, rows.size, u)
