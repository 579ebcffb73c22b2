"""Estimates under weights of groups, made from those of the problem of the rows.

In the first step the search gives each group a weight; the problem of the rows then makes its
classical estimate under the weights of the rows. What remains is that good groups too were given
unequal weights: the problem undoes what that has done (`untilted`), and the influence functions
account for it. The second step is that of the rows, whose groups are good or bad as a whole.
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
from rrmstats.core.sandwich import (
    Dependence,
    influence_covariance,
    minimum_influence,
    relative_weights,
)
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting

if TYPE_CHECKING:
    from rrmstats.core.grouped import GroupedProblem

#: Fraction of good groups that are not counted as bad in the first step. Derived: the normal score
#: beyond which a good group lies once in a thousand.
COUNTED_LEVEL = 0.999


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedEstimate(Estimate):
    """An estimate of the second step, whose weights are of groups.

    What only the model of the rows has, such as a scale, is read from `row_estimate`.

    Attributes
    ----------
    found : Solution
        Losses and weights of the groups; `solution` has those of the rows.
    row_estimate : Estimate
        The estimate of the rows.
    law : GroupLaw
        The mean losses of good groups, as the first step tells them.
    effect : float
        The design effect; see `design_effect`.
    """

    problem: GroupedProblem
    found: Solution
    row_estimate: Estimate
    law: GroupLaw
    effect: float = 1.0

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
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: the effective number of groups less one."""
        return max(float(1 / np.sum(self.found.weights**2)) - 1, 1.0)

    @cached_property
    def scores(self) -> Array:
        """Mean losses of the groups in units of chance among good groups, shape (g,)."""
        return self.law.scores(self.found.losses)

    def flags(self, level: float) -> np.ndarray:
        """Tell which groups lie beyond a level, shape (g,)."""
        return np.asarray(self.scores > norm.ppf(level))

    def influence(self) -> Array:
        """Return the influence functions of `params`, one per group, shape (g, k)."""
        return self._of_rows(self.row_estimate.influence())

    def departures(self, other: Estimate) -> Array:
        """Return how far off another estimate is in standard errors, NaN where there are none."""
        if getattr(self.row_estimate, "plane", None) is not None:  # of a singular covariance
            return np.full(len(self.params), np.nan)
        return super().departures(other)

    def deletion_influence(self) -> Array:
        """Return the influence functions of the rows of a regression, shape (n, k).

        They have the residuals as they are.
        """
        rows: Any = self.row_estimate  # of a regression: no other estimate is asked for them
        return np.asarray(rows.deletion_influence())

    def loadings_influence(self) -> Array:
        """Return those of the loadings of principal components, shape (g, d, q)."""
        rows: Any = self.row_estimate  # of components: no other estimate is asked for loadings
        return self._of_rows(rows.loadings_influence())

    def _of_rows(self, by_row: Array) -> Array:
        """Return influence functions (g, ...) of groups from those of their rows (n, ...)."""
        return self.problem.groups.means(by_row)

    def covariance_of(self, influence: Array, dependence: Dependence | None = None) -> Array:
        """Return the covariance of what has given influence functions (g, m), shape (m, m)."""
        if dependence is None or dependence.none:
            used = self.problem.groups.sizes > 0
            dependence = Dependence(groups=np.cumsum(used) - 1)
        return influence_covariance(influence, self.base, self.wnobs, dependence)


@dataclass(frozen=True, eq=False, kw_only=True)
class TiltedGroups(GroupedEstimate):
    """An estimate of the first step: the classical one under weights of groups, made consistent.

    Attributes
    ----------
    untilted : Untilted
        How that estimate moves with the weights, with theta and with lambda.
    """

    untilted: Untilted

    def influence(self) -> Array:
        """Return the influence functions of `params`, one per group, shape (g, k)."""
        told = self.untilted
        return self.group_influence(told.row_influence, told.by_theta, told.by_log_lambda)

    def deletion_influence(self) -> Array:
        """Return the influence functions of the rows of a regression, shape (n, k).

        They account for the weights of the groups being estimated, and have the residuals as
        they are.
        """
        return self.row_influence(super().deletion_influence())

    def _of_rows(self, by_row: Array) -> Array:
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
        found = self.found
        phi = self.problem.groups.means(by_row)
        phi = phi - found.weights @ phi
        moved = relative_weights(found.weights, self.base)[:, None] * phi
        if not 0 < found.lambda_ < np.inf:
            return moved
        return moved + self._by_search(phi, *self._search_influence, by_theta, by_log_lambda)

    def _by_search(
        self,
        phi: Array,
        of_theta: Array,
        of_log_lambda: Array,
        by_theta: Array | None,
        by_log_lambda: Array | None,
    ) -> Array:
        """Return how an estimate moves with theta and ln(lambda), and with the weights by them.

        `phi`, shape (g, m), is centered; `of_theta` (..., k) and `of_log_lambda` (...,) are the
        moves of theta and ln(lambda).
        """
        found, used = self.found, self.found.weights > 0
        weighted = found.weights[:, None] * phi / found.lambda_
        gradients = np.where(used[:, None], self.problem.gradients(found.theta), 0.0)
        to_theta = -gradients.T @ weighted
        to_log_lambda = np.where(used, found.losses, 0.0) @ weighted
        if by_theta is not None:
            to_theta = to_theta + by_theta
        if by_log_lambda is not None:
            to_log_lambda = to_log_lambda + by_log_lambda
        return of_theta @ to_theta + np.outer(of_log_lambda, to_log_lambda)

    def row_influence(self, by_row: Array) -> Array:
        r"""Return the influence functions of the rows, the weights of their groups estimated.

        A row is a part of its group in three ways: of the mass of the group, of the rows over
        which the estimate is made, and of the mean loss, which decides the weight of all its rows.
        With :math:`\omega` the relative weight of a group, :math:`\ell` its mean loss and
        :math:`\phi` the mean of `by_row`, a row adds to the influence of its group
        :math:`\omega (\phi_i - \phi)`, and what follows from a mean loss that is higher by
        :math:`\omega (\ell_i - \ell)`.

        Parameters
        ----------
        by_row : ndarray, shape (n, m)
            Influence functions of the rows, their weights taken as known.

        Returns
        -------
        ndarray, shape (n, m)
        """
        found, told, codes = self.found, self.untilted, self.problem.groups.codes
        phi = self.problem.groups.means(by_row)
        omega = relative_weights(found.weights, self.base)
        moved = omega[codes, None] * (by_row - phi[codes])
        moved += self.group_influence(by_row, told.by_theta, told.by_log_lambda)[codes]
        if not 0 < found.lambda_ < np.inf:
            return moved
        of_theta, of_log_lambda, raised = self._loss_moves(omega)
        phi = phi - found.weights @ phi
        moved -= raised[:, None] * phi[codes] / found.lambda_
        return moved + self._by_search(
            phi, of_theta, of_log_lambda, told.by_theta, told.by_log_lambda
        )

    def _loss_moves(self, omega: Array) -> tuple[Array, Array, Array]:
        """Return how theta (n, k) and ln(lambda) (n,) move with the mean losses that rows raise.

        The third answer is by how much they raise them, in relative weights, shape (n,).
        """
        found, grouped = self.found, self.problem
        groups, rows, codes = grouped.groups, grouped.problem, grouped.groups.codes
        here = found.theta, found.losses, found.weights, np.array(found.lambda_)
        _, (hessian,), (drift,) = grouped.concentrated(*(each[None] for each in here))
        off = found.losses - found.weights @ found.losses
        spread = float(found.weights @ off**2)
        far = off / spread if spread > 0 else np.zeros_like(off)
        gradients = rows.gradients(found.theta)
        means = groups.means(gradients)
        raised = omega[codes] * (rows.losses(found.theta) - found.losses[codes])
        pull = means - np.outer(far, spread * drift)
        scores = omega[codes, None] * (gradients - means[codes])
        scores -= (raised / found.lambda_)[:, None] * pull[codes]
        of_theta = -scores @ np.linalg.pinv(hessian, hermitian=True)
        return of_theta, of_theta @ drift + raised * far[codes], raised

    @cached_property
    def _search_influence(self) -> tuple[Array, Array]:
        found = self.found
        return minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        )


def consistent_groups(
    problem: GroupedProblem, solution: Solution, setting: Setting
) -> TiltedGroups:
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


def explained_groups(problem: GroupedProblem, first: Estimate) -> Estimate:
    """Return the estimate of the best explanation of the rows, good or bad by whole groups.

    Where rows of a group depend on each other, they tell less than as many rows by themselves:
    each counts for the inverse of the design effect. The weights of a first step hide a part of
    it, so that it is looked for again in the second.
    """
    assert isinstance(first, TiltedGroups)
    effect = design_effect(problem, first.found)
    for _ in range(5):  # mostly one or two
        second = _explained(problem, first, effect)
        if second.explained is None:
            break
        last, effect = effect, design_effect(problem, second.found)
        if effect <= last:
            break
    return second


def _explained(problem: GroupedProblem, first: TiltedGroups, effect: float) -> GroupedEstimate:
    """Return the second step at a design effect.

    It is the first where the problem of the rows has no other.
    """
    groups = problem.groups
    setting = replace(
        first.setting,
        freq_weights=groups.rows(first.setting.counts(problem.n_obs)) / effect,
        groups=groups.codes,
        accelerate=True,
        theta_step=None,
    )
    start = replace(
        first.row_estimate,
        setting=setting,
        solution=first.solution,
        eps_hat=first.eps_hat,
        eps_hat_se=first.eps_hat_se,
    )
    second = problem.problem.second_step(start)
    if second is start or second.explained is None:
        return first if second is start else replace(first, first=first)
    theta = second.solution.theta
    weights = np.bincount(groups.codes, second.solution.weights, groups.count).astype(float)
    found = first.found.continued(
        theta, problem.losses(theta), weights, first.found.lambda_, first.setting
    )
    return GroupedEstimate(
        problem=problem,
        setting=first.setting,
        solution=replace(second.solution, n_eff=effect * second.solution.n_eff),
        params=second.params,
        raw_params=second.raw_params,
        first=first,
        explained=second.explained,
        eps_hat=second.eps_hat,
        eps_hat_se=second.eps_hat_se,
        loss_unit=second.loss_unit,
        loss_shift=second.loss_shift,
        found=found,
        row_estimate=second,
        law=first.law,
        effect=effect,
    )


def design_effect(problem: GroupedProblem, found: Solution) -> float:
    r"""Return by how much the rows of good groups tell less than as many independent ones.

    It is the largest variance, over all directions, of the gradients of groups relative to that
    of as many gradients of independent rows. With k parameters and g groups the largest of
    independent ones is :math:`(1 + \sqrt\gamma)^2`, :math:`\gamma = k / g`, by chance; one
    beyond it estimates :math:`\ell (1 + \gamma / (\ell - 1))` (Donoho, Gavish and Johnstone,
    2018), which is solved for :math:`\ell`.
    """
    groups = problem.groups
    weights, gradients = groups.rows(found.weights), problem.problem.gradients(found.theta)
    gradients = np.where(weights[:, None] > 0, gradients, 0.0)
    values, axes = np.linalg.eigh((weights[:, None] * gradients).T @ gradients)
    used = values > np.finfo(float).eps * len(gradients) * values.max(initial=0.0)
    if not used.any():
        return 1.0
    white = groups.means(gradients @ (axes[:, used] / np.sqrt(values[used])))
    among = (found.weights * groups.sizes)[:, None] * white
    largest = float(np.linalg.eigvalsh(among.T @ white)[-1])
    gamma = float(used.sum() * np.sum(found.weights**2))
    if largest <= (1 + np.sqrt(gamma)) ** 2:
        return 1.0
    middle = 1 + largest - gamma
    return 0.5 * (middle + float(np.sqrt(middle**2 - 4 * largest)))


def _estimate(
    problem: GroupedProblem, found: Solution, setting: Setting, rates: Array, law: GroupLaw
) -> TiltedGroups:
    """Return the estimate of the rows under weights of their groups."""
    inner: EstimableProblem = problem.problem
    weights, losses = problem.groups.rows(found.weights), inner.losses(found.theta)
    by_row = replace(found, losses=losses, weights=weights)
    classical = replace(setting, eps_bar=0.0, freq_weights=weights * setting.wnobs(problem.n_obs))
    told = inner.untilted(
        inner.consistent(replace(by_row, lambda_=np.inf, divergence=0.0), classical), rates
    )
    estimate = told.estimate
    estimated = TiltedGroups(
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


def contamination(estimate: TiltedGroups) -> tuple[float, float]:
    """Return the share of the rows in groups beyond COUNTED_LEVEL, and its standard error."""
    spread = estimate.setting.spread(estimate.problem.n_obs)
    if estimate.setting.eps_bar == 0:
        return 0.0, 0.0
    share, count = float(spread @ estimate.flags(COUNTED_LEVEL)), np.count_nonzero(spread)
    likely = min(max(share, 1 / count), 0.5)
    return share, float(np.sqrt(likely * (1 - likely) / count))
