"""Any problem with one weight per group of rows: clusters that are bad as a whole.

In the first step the search gives each group a weight; the problem of the rows then makes its
classical estimate under the weights of the rows. What remains is that good groups too were given
unequal weights: the problem undoes what that has done (`untilted`), and the influence functions
account for it. The second step is that of the rows, whose groups are good or bad as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import norm

from rrmstats.core.consistency import untilted_variance
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate, Untilted
from rrmstats.core.sandwich import (
    Dependence,
    influence_covariance,
    minimum_influence,
    relative_weights,
)
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.starts import affordable_starts
from rrmstats.core.tolerances import BLOCK_ENTRIES, MAX_STEPS, ROUNDING, SUM_ROUNDING

#: Fraction of good groups that are not counted as bad in the first step. Derived: the normal score
#: beyond which a good group lies once in a thousand.
COUNTED_LEVEL = 0.999


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row belongs to, and what it counts for there.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        Number of the group of each row, from zero on.
    count : int
        Number of groups.
    counts : ndarray, shape (n,), or None
        How often each row counts; None where each counts once.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import Groups
    >>> groups = Groups(np.array([0, 0, 1]), count=2)
    >>> groups.means(np.array([1.0, 3.0, 5.0])), groups.members(np.array([0]))
    (array([2., 5.]), array([0, 1]))
    """

    codes: np.ndarray
    count: int
    counts: Array | None = None

    @cached_property
    def sizes(self) -> Array:
        """Rows of each group, in frequency weights, shape (g,)."""
        return np.bincount(self.codes, self.counts, self.count).astype(float)

    @cached_property
    def share(self) -> Array:
        """What each row counts for in the mean of its group, shape (n,)."""
        mass = np.ones(len(self.codes)) if self.counts is None else self.counts
        size = self.sizes[self.codes]
        return np.divide(mass, size, out=np.zeros(len(mass)), where=size > 0)

    @cached_property
    def _averages(self) -> csr_matrix:
        used = np.flatnonzero(self.share)
        shape = (self.count, len(self.codes))
        return csr_matrix((self.share[used], (self.codes[used], used)), shape=shape)

    def means(self, values: Array) -> Array:
        """Return the means over groups of values of the rows, (n, ...) to (g, ...)."""
        flat = values.reshape(len(values), -1)
        return np.asarray(self._averages @ flat).reshape(self.count, *values.shape[1:])

    def rows(self, weights: Array) -> Array:
        """Return the weights of the rows from those of the groups, (..., g) to (..., n)."""
        return weights[..., self.codes] * self.share

    def members(self, groups: np.ndarray) -> np.ndarray:
        """Return the rows of some groups, one group after the other."""
        rank = np.full(self.count, -1)
        rank[groups] = np.arange(len(groups))
        places = rank[self.codes]
        order = np.argsort(places, kind="stable")
        return order[np.count_nonzero(places < 0) :]


class GroupedProblem(EstimableProblem):
    """A problem whose observations are the groups of another: their losses are means.

    Weights are of groups, with the sizes of the groups as frequency weights. A row's weight is
    its group's divided by the size.

    Parameters
    ----------
    problem : EstimableProblem
        The problem of the rows.
    groups : Groups

    Examples
    --------
    Ten sensors, two of which are bad:

    >>> import numpy as np
    >>> from rrmstats.core import Groups, GroupedProblem, minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> sensor = np.repeat(np.arange(10), 6)
    >>> x = np.cos(np.arange(60.0))
    >>> y = np.where(sensor < 2, -2.0, 2.0) * x + 0.1 * np.sin(np.arange(60.0) ** 2)
    >>> problem = GroupedProblem(SquaresProblem(y, x[:, None]), Groups(sensor, 10))
    >>> found = minimize(problem, eps_bar=0.3)
    >>> found.theta.round(1), bool(found.weights[:2].sum() < 1e-6)
    (array([2.]), True)
    """

    def __init__(self, problem: EstimableProblem, groups: Groups) -> None:
        self.problem, self.groups = problem, groups
        self.n_obs, self.n_params = groups.count, problem.n_params

    def losses(self, theta: Array) -> Array:
        """Return the mean loss of each group, shape (..., g)."""
        found = self._batched(
            lambda some: self.groups.means(self.problem.losses(some).T).T,
            theta.reshape(-1, theta.shape[-1]),
        )
        return found.reshape(*theta.shape[:-1], self.n_obs)

    def _batched(self, function: Callable[..., Array], *values: Array) -> Array:
        """Return a function of batches (b, ...), portion by portion: rows are more than groups."""
        size = max(1, BLOCK_ENTRIES // self.problem.n_obs)
        places = range(0, len(values[0]), size)
        return np.concatenate([function(*(each[i : i + size] for each in values)) for i in places])

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of the weighted losses, shape (..., k)."""
        rows, fit = self.groups.rows, self.problem.weighted_fit
        if weights.ndim == 1:
            return fit(rows(weights), theta)
        if theta is None:
            return self._batched(lambda w: fit(rows(w)), weights)
        theta = np.broadcast_to(theta, (*weights.shape[:-1], theta.shape[-1]))
        return self._batched(lambda w, t: fit(rows(w), t), weights, theta)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        rows, fit = self.groups.rows, self.problem.improved
        return self._batched(lambda w, t: fit(rows(w), t), weights, theta)

    @property
    def row_kinds(self) -> Array | None:
        """What share of each group is of each kind that weights must keep, shape (g, m)."""
        kinds = self.problem.row_kinds
        return None if kinds is None else self.groups.means(kinds)

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each mean loss, shape (g, k)."""
        return self.groups.means(self.problem.gradients(theta))

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        return self.problem.hessian(theta, self.groups.rows(weights))

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away, shape (..., k)."""
        return self.problem.retract(theta, step)

    @property
    def newton_pays(self) -> bool:
        """Whether Newton's steps pay for the problem of the rows."""
        return self.problem.newton_pays

    def pulls(self, theta: Array) -> Array:
        """Return the mean pull of each group on a fit, shape (g, r)."""
        return self.groups.means(self.problem.pulls(theta))

    def robust_starts(self) -> Array:
        """Return fits that are robust but not of least risk, shape (s, k)."""
        return self.problem.robust_starts()

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the fits to all rows of subsets of groups, shape (m, k)."""
        if len(subsets) * self.problem.n_obs > BLOCK_ENTRIES:
            return np.array([self._fit_to(drawn) for drawn in subsets])
        weights = np.zeros((len(subsets), self.n_obs))
        sizes = self.groups.sizes[subsets]
        np.put_along_axis(weights, subsets, sizes / sizes.sum(axis=1, keepdims=True), axis=1)
        return self.weighted_fit(weights)

    def _fit_to(self, drawn: np.ndarray) -> Array:
        """Return the fit to the rows of some groups alone, which are few, shape (k,)."""
        members = self.groups.members(drawn)
        mass = self.groups.rows(self.groups.sizes)[members]
        return self.problem.take(members).weighted_fit(mass / mass.sum())

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the fit to the first rows that determine one, group by group, shape (k,)."""
        return self.problem.determined_fit(self.groups.members(drawn))

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets of groups to try where the user does not say."""
        return min(
            affordable_starts(self.subset_size, eps_bar), self.problem.default_starts(eps_bar)
        )

    def determines(self, rows: np.ndarray) -> bool:
        """Tell whether some groups determine all parameters."""
        members = self.groups.members(rows)
        return len(members) >= self.problem.subset_size and self.problem.determines(members)

    def completed(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return some groups, with as many of the others as the parameters need."""
        own, rest = self.groups.members(rows), self.groups.members(others)
        return np.union1d(rows, self.groups.codes[self.problem.completed(own, rest)])

    @cached_property
    def subset_size(self) -> int:
        """Groups that determine a fit: the fewest of which random ones do."""
        rng = np.random.default_rng(0)
        used = np.flatnonzero(self.groups.sizes)
        most = min(self.problem.subset_size, len(used))
        orders = [rng.permutation(used) for _ in range(8)]  # all of which must determine a fit
        for size in range(1, most):
            if all(self.determines(order[:size]) for order in orders):
                return size
        return most

    def units(self, wnobs: float) -> float:
        """Return the number of groups with rows that count."""
        return float(np.count_nonzero(self.groups.sizes))

    @property
    def least_units(self) -> int:
        """Groups that a bound must leave: as many as determine a fit, and two at least."""
        return max(2, self.subset_size)

    def check_left(self, eps_bar: float, wnobs: float, used: int) -> None:
        """Raise where a bound leaves fewer groups than determine a fit, or fewer than two."""
        left, needed = (1 - eps_bar) * used, self.least_units
        if left < needed * (1 - SUM_ROUNDING):
            raise ValueError(
                f"eps_bar={eps_bar:g} leaves (1 - eps_bar) * groups = {left:.4g} of {used} "
                f"groups, but {needed} are needed; lower eps_bar or use smaller groups"
            )

    def take(self, rows: np.ndarray) -> GroupedProblem:
        """Return the problem restricted to some groups."""
        members, counts = self.groups.members(rows), self.groups.counts
        number = np.full(self.n_obs, -1)
        number[rows] = np.arange(len(rows))
        part = None if counts is None else counts[members]
        return GroupedProblem(
            self.problem.take(members),  # type: ignore[arg-type]  # a part makes no estimates
            Groups(number[self.groups.codes[members]], len(rows), part),
        )

    def consistent(self, solution: Solution, setting: Setting) -> Estimate:
        """Return the estimate of the first step: of the rows, under weights of their groups.

        A row of a group of m rows, the others of which are independent of it, has its loss tilted
        by ``exp(-loss / (m lambda))``.
        """
        inner, groups, lambda_ = self.problem, self.groups, solution.lambda_
        sizes = groups.sizes[groups.codes]
        rates = np.zeros(len(sizes))
        if 0 < lambda_ < np.inf:
            rates = np.divide(1 / lambda_, sizes, out=rates, where=sizes > 0)
        least = inner.least_loss(solution.theta)
        weights, losses = groups.rows(solution.weights), inner.losses(solution.theta)
        by_row = replace(solution, losses=losses, weights=weights)
        classical = replace(setting, eps_bar=0.0, freq_weights=weights * setting.wnobs(self.n_obs))
        told = inner.untilted(
            inner.consistent(replace(by_row, lambda_=np.inf, divergence=0.0), classical), rates
        )
        estimated = TiltedGroups(
            **shared_fields(told.estimate),
            problem=self,
            setting=setting,
            solution=replace(by_row, converged=told.estimate.solution.converged),
            found=solution,
            untilted=told,
            law=GroupLaw.of(solution.losses, solution.weights, lambda_, groups.sizes, least),
        )
        share, error = contamination(estimated)
        return replace(estimated, eps_hat=share, eps_hat_se=error)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, good or bad by whole groups.

        Where rows of a group depend on each other, they tell less than as many rows by themselves:
        each counts for the inverse of the design effect. The weights of a first step hide a part
        of it, so that it is looked for again in the second.
        """
        assert isinstance(first, TiltedGroups)
        effect = design_effect(self, first.found)
        for _ in range(5):  # mostly one or two
            second = _explained(self, first, effect)
            if second.explained is None:
                break
            last, effect = effect, design_effect(self, second.found)
            if effect <= last:
                break
        return second


@dataclass(frozen=True, slots=True, eq=False)
class GroupLaw:
    r"""The distribution of the mean losses of good groups: a gamma distribution.

    For Gaussian rows and squared losses it is exact, a chi-square distribution over its degrees of
    freedom. Weights ``exp(-loss / lambda)`` turn a gamma distribution of rate :math:`b` into one
    of rate :math:`b + 1/\lambda`; so the weighted moments tell those of the good groups, whatever
    the others are, as long as these have no weight. Where good groups differ by more than chance
    among their rows, the shape is smaller.

    Attributes
    ----------
    mean : float
        Mean loss of good rows, above `floor`.
    shapes : ndarray, shape (g,)
        Shape of each group, proportional to its size; half the rows for Gaussian ones.
    floor : float
        Least loss that a row can have.
    """

    mean: float
    shapes: Array
    floor: float

    @classmethod
    def of(
        cls, losses: Array, weights: Array, lambda_: float, sizes: Array, floor: float = 0.0
    ) -> GroupLaw:
        """Find the distribution from losses of groups under their weights.

        Parameters
        ----------
        losses, weights, sizes : ndarray, shape (g,)
        lambda_ : float
            Temperature of the weights.
        floor : float, optional
            Least loss that a row can have.

        Examples
        --------
        >>> import numpy as np
        >>> from rrmstats.core import entropy_weights
        >>> from rrmstats.core.grouped import GroupLaw
        >>> losses = np.random.default_rng(0).chisquare(20, 4000) / 20
        >>> weights, lambda_, _ = entropy_weights(losses, 0.2)
        >>> law = GroupLaw.of(losses, weights, float(lambda_), np.full(4000, 20.0))
        >>> bool(abs(law.mean - 1) < 0.02), bool(abs(law.shapes[0] - 10) < 1)
        (True, True)
        """
        floor = min(floor, float(losses.min()))
        used = weights > 0
        w, above, m = weights[used], losses[used] - floor, sizes[used]
        mean = float(w @ above)
        if not mean > 0 or lambda_ == 0:
            return cls(0.0, np.zeros(len(losses)), floor)
        beta = 0.0 if lambda_ == np.inf else mean / lambda_
        above = above / mean
        level, spread = 1.0, 0.0  # the mean before the tilt, and size / shape
        for _ in range(MAX_STEPS):
            tilted = level / (1 + level * beta * spread / m)
            last, spread = spread, float(w @ (m * (above / tilted - 1) ** 2))
            if ROUNDING * spread > 1:
                # Groups that are wrong keep weight: the moments fit no gamma distribution, and no
                # group is told from the others.
                return cls(mean, np.zeros(len(sizes)), floor)
            level = untilted_variance(1.0, w, 0.5 * beta * spread / m)
            if abs(spread - last) <= ROUNDING * spread:
                break
        shapes = sizes / spread if spread > 0 else np.full(len(sizes), np.inf)
        return cls(level * mean, shapes, floor)

    def scores(self, losses: Array) -> Array:
        """Return losses of groups as standard normal scores, shape (g,).

        Wilson and Hilferty's: the cube root of a gamma variable is nearly normal.
        """
        if self.mean == 0:
            return np.where(losses > self.floor, np.inf, 0.0)
        root = np.cbrt(np.maximum(losses - self.floor, 0.0) / self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = 1 / (9 * self.shapes)
            scores = (root - 1 + variance) / np.sqrt(variance)
        return np.where(np.isnan(scores), 0.0, scores)


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
        return self.problem.groups.means(
            self.row_influence(told.row_influence, told.by_theta, told.by_log_lambda)
        )

    def deletion_influence(self) -> Array:
        """Return the influence functions of the rows of a regression, shape (n, k).

        They account for the weights of the groups being estimated, and have the residuals as
        they are.
        """
        told = self.untilted
        return self.row_influence(super().deletion_influence(), told.by_theta, told.by_log_lambda)

    def _of_rows(self, by_row: Array) -> Array:
        found = self.row_influence(by_row.reshape(len(by_row), -1))
        return super()._of_rows(found.reshape(by_row.shape))

    def row_influence(
        self,
        by_row: Array,
        by_theta: Array | None = None,
        by_log_lambda: Array | None = None,
    ) -> Array:
        r"""Return the influence functions of rows for an estimate that weights of groups make.

        A row is a part of its group in three ways: of the mass of the group, of the rows over
        which the estimate is made, and of the mean loss, which decides the weight of all its rows.
        With :math:`\pi` the weights of the groups, :math:`\omega` the relative ones,
        :math:`\phi_i` the influence with known weights and :math:`\phi` its mean in a group, less
        that of all, row i of group g moves the estimate by

        .. math:: \omega_g \phi_i - \tfrac1\lambda \omega_g (\ell_i - \ell_g) \phi_g
                  - \tfrac1\lambda \mathrm{Cov}_\pi(\phi, \nabla\ell)\, \dot\theta_i
                  + \tfrac1\lambda \mathrm{Cov}_\pi(\phi, \ell)\, \dot{\ln\lambda}_i

        and by what it does through theta and lambda themselves. The mean over the rows of a group
        is the influence of the group.

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
        ndarray, shape (n, m)
        """
        found, codes = self.found, self.problem.groups.codes
        phi = self.problem.groups.means(by_row)
        center = found.weights @ phi
        phi = phi - center
        moved = relative_weights(found.weights, self.base)[codes, None] * (by_row - center)
        if not 0 < found.lambda_ < np.inf:
            return moved
        of_theta, of_log_lambda, raised = self._search_influence
        used, weighted = found.weights > 0, found.weights[:, None] * phi / found.lambda_
        gradients = np.where(used[:, None], self.problem.gradients(found.theta), 0.0)
        to_theta = -gradients.T @ weighted
        to_log_lambda = np.where(used, found.losses, 0.0) @ weighted
        if by_theta is not None:
            to_theta = to_theta + by_theta
        if by_log_lambda is not None:
            to_log_lambda = to_log_lambda + by_log_lambda
        moved -= raised[:, None] * phi[codes] / found.lambda_
        return moved + of_theta @ to_theta + np.outer(of_log_lambda, to_log_lambda)

    @cached_property
    def _search_influence(self) -> tuple[Array, Array, Array]:
        """Influence functions of rows on theta (n, k) and ln(lambda) (n,).

        The third answer is by how much rows raise the mean losses, in relative weights, (n,).
        """
        found, groups = self.found, self.problem.groups
        rows, codes, lambda_ = self.problem.problem, groups.codes, found.lambda_
        here = found.theta, found.losses, found.weights, np.array(lambda_)
        _, (hessian,), (drift,) = self.problem.concentrated(*(each[None] for each in here))
        by_group = minimum_influence(self.problem, *here[:3], lambda_, self.base)
        omega = relative_weights(found.weights, self.base)[codes]
        used = omega > 0
        finite = np.where(found.weights > 0, found.losses, 0.0)
        off = finite - found.weights @ finite
        spread = float(found.weights @ off**2)
        far = off / spread if spread > 0 else np.zeros_like(off)
        gradients = np.where(used[:, None], rows.gradients(found.theta), 0.0)
        means = groups.means(gradients)
        raised = omega * (np.where(used, rows.losses(found.theta), 0.0) - finite[codes])
        scores = omega[:, None] * (gradients - means[codes])
        scores -= (raised / lambda_)[:, None] * (means - np.outer(far, spread * drift))[codes]
        of_theta = -scores @ np.linalg.pinv(hessian, hermitian=True)
        of_log_lambda = of_theta @ drift + raised * far[codes]
        return by_group.theta[codes] + of_theta, by_group.log_lambda[codes] + of_log_lambda, raised


def shared_fields(rows: Estimate) -> dict[str, Any]:
    """Return what an estimate of groups has in common with that of the rows."""
    names = "params", "raw_params", "loss_unit", "loss_shift", "explained", "eps_hat", "eps_hat_se"
    return {"row_estimate": rows, **{name: getattr(rows, name) for name in names}}


def _explained(problem: GroupedProblem, first: TiltedGroups, effect: float) -> GroupedEstimate:
    """Return the second step at a design effect.

    It is the first where the problem of the rows has no other.
    """
    groups = problem.groups
    setting = replace(
        first.setting,
        freq_weights=groups.rows(first.setting.counts(problem.n_obs)) / effect,
        accelerate=True,
    )
    inner = problem.problem.in_groups(groups.codes)
    start = replace(
        first.row_estimate,
        problem=inner,
        setting=setting,
        solution=first.solution,
        eps_hat=first.eps_hat,
        eps_hat_se=first.eps_hat_se,
    )
    second = inner.second_step(start)
    if second is start or second.explained is None:
        return first if second is start else replace(first, first=first)
    theta = second.solution.theta
    weights = np.bincount(groups.codes, second.solution.weights, groups.count).astype(float)
    found = first.found.continued(
        theta, problem.losses(theta), weights, first.found.lambda_, first.setting
    )
    return GroupedEstimate(
        **shared_fields(second),
        problem=problem,
        setting=first.setting,
        solution=replace(second.solution, n_eff=effect * second.solution.n_eff),
        first=first,
        found=found,
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


def contamination(estimate: TiltedGroups) -> tuple[float, float]:
    """Return the share of the rows in groups beyond COUNTED_LEVEL, and its standard error."""
    spread = estimate.setting.spread(estimate.problem.n_obs)
    if estimate.setting.eps_bar == 0:
        return 0.0, 0.0
    share, count = float(spread @ estimate.flags(COUNTED_LEVEL)), np.count_nonzero(spread)
    likely = min(max(share, 1 / count), 0.5)
    return share, float(np.sqrt(likely * (1 - likely) / count))
