"""Any problem with one weight per group of rows: clusters that are bad as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.group_estimate import consistent_groups, explained_groups
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.starts import affordable_starts
from rrmstats.core.tolerances import BLOCK_ENTRIES, SUM_ROUNDING


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
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.codes, minlength=self.count))])
        parts = [self._by_group[starts[g] : starts[g + 1]] for g in groups]
        return np.concatenate(parts) if parts else np.empty(0, dtype=int)

    @cached_property
    def _by_group(self) -> np.ndarray:
        return np.argsort(self.codes, kind="stable")


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
        batch = theta.reshape(-1, theta.shape[-1])
        parts = [self.groups.means(self.problem.losses(t).T).T for t in self._batches(batch)]
        return np.vstack(parts).reshape(*theta.shape[:-1], self.n_obs)

    def _batches(self, values: Array) -> list[Array]:
        size = max(1, BLOCK_ENTRIES // self.problem.n_obs)
        return [values[i : i + size] for i in range(0, len(values), size)]

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of the weighted losses, shape (..., k)."""
        if weights.ndim == 1:
            return self.problem.weighted_fit(self.groups.rows(weights), theta)
        if theta is not None:
            theta = np.broadcast_to(theta, (*weights.shape[:-1], theta.shape[-1]))
        starts = [None] * len(weights) if theta is None else self._batches(theta)
        return np.concatenate(
            [
                self.problem.weighted_fit(self.groups.rows(w), t)
                for w, t in zip(self._batches(weights), starts, strict=False)
            ]
        )

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        pairs = zip(self._batches(weights), self._batches(theta), strict=True)
        return np.concatenate([self.problem.improved(self.groups.rows(w), t) for w, t in pairs])

    def admissible(self, weights: Array, base: Array) -> np.ndarray | None:
        """Tell which weights, shape (b, g), leave a problem of the same kind; None for all."""
        pairs = zip(
            self._batches(weights),
            self._batches(np.broadcast_to(base, weights.shape)),
            strict=True,
        )
        found = [
            self.problem.admissible(self.groups.rows(w), self.groups.rows(b)) for w, b in pairs
        ]
        told = [part for part in found if part is not None]
        return np.concatenate(told) if told else None

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
        """Return the estimate of the first step, consistent where a correction is known."""
        return consistent_groups(self, solution, setting)

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, by whole groups."""
        return explained_groups(self, first)
