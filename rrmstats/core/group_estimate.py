"""Estimates under weights of groups, made from those of the problem of the rows.

The search gives each group a weight; the problem of the rows then makes its classical estimate
under the weights of the rows. What remains is that good groups too were given unequal weights: the
problem undoes what that has done (`untilted`), and the influence functions account for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate, Untilted
from rrmstats.core.group_law import GroupLaw
from rrmstats.core.group_rows import row_influence
from rrmstats.core.sandwich import (
    Dependence,
    influence_covariance,
    minimum_influence,
    relative_weights,
    wald_pvalue,
)
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting

if TYPE_CHECKING:
    from rrmstats.core.grouped import GroupedProblem

# Fraction of good groups that a second step keeps, and that are not counted as corrupted.
KEPT_LEVEL = 0.999
# P-value below which a second step differs from the first by more than chance.
DISAGREES = 0.01
# Share of the groups of opposite responses that must be beyond KEPT_LEVEL for a second step.
TOLD_SHARE = 0.8


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedEstimate(Estimate):
    """An estimate whose weights are of groups.

    What only the model of the rows has, such as a scale, is read from `row_estimate`.

    Attributes
    ----------
    found : Solution
        Losses and weights of the groups; `solution` has those of the rows.
    row_estimate : Estimate
        The classical estimate under the weights of the rows, made consistent.
    untilted : Untilted
        How that estimate moves with the weights, with theta and with lambda.
    law : GroupLaw
        The mean losses of good groups.
    """

    problem: GroupedProblem
    found: Solution
    row_estimate: Estimate
    untilted: Untilted
    law: GroupLaw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "row_estimate":  # not there yet while unpickling
            raise AttributeError(name)
        return getattr(self.row_estimate, name)

    @property
    def rows_per_group(self) -> float:
        """Mean number of rows of a group."""
        sizes = self.problem.groups.sizes
        return float(sizes[sizes > 0].mean())

    @property
    def stayed(self) -> bool:
        """Whether the second step is the first, with which it would not agree."""
        return self.first is not None and self.params is self.first.params

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: the effective number of groups less one."""
        return max(float(1 / np.sum(self.found.weights**2)) - 1, 1.0)

    @cached_property
    def hidden(self) -> bool:
        """Whether groups of opposite responses, such as wrong labels, often are not far out."""
        if isinstance(self.first, GroupedEstimate):
            return self.first.hidden
        opposite = self.problem.problem.opposite_losses(self.found.theta)
        if opposite is None or not 0 < self.found.lambda_ < np.inf:
            return False
        scores = self.law.scores(self.problem.groups.means(opposite))
        return bool(self.found.weights @ (scores > norm.ppf(KEPT_LEVEL)) < TOLD_SHARE)

    @cached_property
    def scores(self) -> Array:
        """Mean losses of the groups in units of chance among good groups, shape (g,)."""
        return self.law.scores(self.found.losses)

    def flags(self, level: float) -> np.ndarray:
        """Tell which groups lie beyond a level, shape (g,)."""
        return np.asarray(self.scores > norm.ppf(level))

    def influence(self) -> Array:
        """Return the influence functions of `params`, one per group, shape (g, k)."""
        told = self.untilted
        return self.group_influence(told.row_influence, told.by_theta, told.by_log_lambda)

    def deletion_influence(self) -> Array:
        """Return the influence functions of the rows of a regression, shape (n, k).

        They account for the weights of the groups being estimated, and have the residuals as
        they are.
        """
        rows: Any = self.row_estimate  # of a regression: no other estimate is asked for them
        return row_influence(self, rows.deletion_influence())

    def loadings_influence(self) -> Array:
        """Return those of the loadings of principal components, shape (g, d, q)."""
        rows: Any = self.row_estimate  # of components: no other estimate is asked for loadings
        by_row = rows.loadings_influence()
        found = self.group_influence(by_row.reshape(len(by_row), -1))
        return found.reshape(-1, *by_row.shape[1:])

    def group_influence(
        self,
        by_row: Array,
        by_theta: Array | None = None,
        by_log_lambda: Array | None = None,
    ) -> Array:
        r"""Return influence functions of groups for an estimate that weights of rows make.

        With :math:`\pi` the weights of the groups, :math:`\omega` the relative ones and
        :math:`\phi` the mean of `by_row` in a group, the mass of group g moves the estimate by

        .. math:: \omega_g \phi_g - \tfrac1\lambda \mathrm{Cov}_\pi(\phi, \nabla\ell)\,
                  \dot\theta_g + \tfrac1\lambda \mathrm{Cov}_\pi(\phi, \ell)\,
                  \dot{\ln\lambda}_g

        and by what it does through theta and lambda themselves.

        Parameters
        ----------
        by_row : ndarray, shape (n, m)
            Influence functions of the rows, their weights taken as known.
        by_theta : ndarray, shape (k, m), optional
            Derivative with respect to theta.
        by_log_lambda : ndarray, shape (m,), optional
            Derivative with respect to ln(lambda).

        Returns
        -------
        ndarray, shape (g, m)
        """
        found, grouped = self.found, self.problem
        phi = grouped.groups.means(by_row)
        phi = phi - found.weights @ phi
        moved = relative_weights(found.weights, self.base)[:, None] * phi
        if not 0 < found.lambda_ < np.inf:
            return moved
        of_theta, of_log_lambda = self._search_influence
        spread = np.where(found.weights > 0, found.losses, 0.0) / found.lambda_
        gradients = grouped.gradients(found.theta)
        gradients[found.weights == 0] = 0.0
        weighted = found.weights[:, None] * phi
        moved -= of_theta @ (gradients.T @ weighted) / found.lambda_
        moved += np.outer(of_log_lambda, spread @ weighted)
        if by_theta is not None:
            moved += of_theta @ by_theta
        if by_log_lambda is not None:
            moved += np.outer(of_log_lambda, by_log_lambda)
        return moved

    @cached_property
    def _search_influence(self) -> tuple[Array, Array]:
        found = self.found
        return minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )

    def covariance(self, dependence: Dependence | None = None) -> Array:
        """Return the covariance of `params`, shape (k, k), clustered by the groups at least."""
        return self.covariance_of(self.influence(), dependence)

    def covariance_of(self, influence: Array, dependence: Dependence | None = None) -> Array:
        """Return the covariance of what has given influence functions (g, m), shape (m, m)."""
        if dependence is None or dependence.none:
            used = self.problem.groups.sizes > 0
            dependence = Dependence(groups=np.cumsum(used) - 1)
        return influence_covariance(influence, self.base, self.wnobs, dependence)


def consistent_groups(
    problem: GroupedProblem, solution: Solution, setting: Setting
) -> GroupedEstimate:
    """Return the estimate of the first step.

    A row of a group of m rows, the others of which are independent of it, has its loss tilted by
    ``exp(-loss / (m lambda))``.

    Parameters
    ----------
    problem : GroupedProblem
    solution : Solution
        The minimum, with weights of the groups.
    setting : Setting
        Its frequency weights are the sizes of the groups.
    """
    sizes = problem.groups.sizes[problem.groups.codes]
    rates = np.zeros(len(sizes))
    if 0 < solution.lambda_ < np.inf:
        rates = np.divide(1 / solution.lambda_, sizes, out=rates, where=sizes > 0)
    law = GroupLaw.of(
        solution.losses,
        solution.weights,
        solution.lambda_,
        problem.groups.sizes,
        problem.problem.least_loss(solution.theta),
    )
    return _estimate(problem, solution, setting, rates, law)


def kept_groups(problem: GroupedProblem, first: Estimate) -> GroupedEstimate:
    """Return the classical estimate of the groups that a first step does not give up.

    Groups beyond KEPT_LEVEL are left out; the others have their full weight. Where that differs
    from the first step by more than chance, corrupted groups have come back, and the first step
    is kept. So it is where corrupted groups are hidden: they would come back.
    """
    assert isinstance(first, GroupedEstimate)
    if first.hidden:
        return replace(first, first=first)
    setting = first.setting
    kept = setting.spread(problem.n_obs) * ~first.flags(KEPT_LEVEL)
    weights = kept / kept.sum()
    theta = problem.weighted_fit(weights, first.found.theta)
    found = first.found.continued(theta, problem.losses(theta), weights, np.inf, setting)
    rates = np.zeros(len(problem.groups.codes))
    second = _estimate(problem, found, setting, rates, first.law)
    told = first if _disagree(first, second) else second
    return replace(
        told,
        first=first,
        eps_hat=first.eps_hat,
        eps_hat_se=first.eps_hat_se,
    )


def _disagree(first: GroupedEstimate, second: GroupedEstimate) -> bool:
    """Tell whether two steps differ by more than chance (Hausman's test)."""
    moves = second.influence() - first.influence()
    if not np.isfinite(moves).all():
        return False
    return wald_pvalue(second.params - first.params, second.covariance_of(moves)) < DISAGREES


def _estimate(
    problem: GroupedProblem, found: Solution, setting: Setting, rates: Array, law: GroupLaw
) -> GroupedEstimate:
    """Return the estimate of the rows under weights of their groups."""
    inner: EstimableProblem = problem.problem
    weights, losses = problem.groups.rows(found.weights), inner.losses(found.theta)
    by_row = replace(found, losses=losses, weights=weights)
    classical = replace(setting, eps_bar=0.0, freq_weights=weights * setting.wnobs(problem.n_obs))
    told = inner.untilted(
        inner.consistent(replace(by_row, lambda_=np.inf, divergence=0.0), classical), rates
    )
    estimate = told.estimate
    estimated = GroupedEstimate(
        problem=problem,
        setting=setting,
        solution=replace(by_row, converged=estimate.solution.converged),
        params=estimate.params,
        raw_params=estimate.raw_params,
        loss_unit=estimate.loss_unit,
        loss_shift=estimate.loss_shift,
        found=found,
        row_estimate=estimate,
        untilted=told,
        law=law,
    )
    share, error = contamination(estimated)
    return replace(estimated, eps_hat=share, eps_hat_se=error)


def contamination(estimate: GroupedEstimate) -> tuple[float, float]:
    """Return the share of the rows in groups beyond KEPT_LEVEL, and its standard error.

    NaN where corrupted groups are hidden.
    """
    spread = estimate.setting.spread(estimate.problem.n_obs)
    if estimate.setting.eps_bar == 0:
        return 0.0, 0.0
    if estimate.hidden:
        return np.nan, np.nan
    share, count = float(spread @ estimate.flags(KEPT_LEVEL)), np.count_nonzero(spread)
    likely = min(max(share, 1 / count), 0.5)
    return share, float(np.sqrt(likely * (1 - likely) / count))
