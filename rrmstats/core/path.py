"""The minimum of the risk along a grid of eps_bar, each solution a start for its neighbors.

The minimum moves smoothly with eps_bar, except where another local minimum becomes the lowest.
Local minima are therefore followed in both directions, and sought anew at some values, and where
the two directions disagree. Where the data are large this happens on a part of the rows, and all
rows are seen only by descents from where it led.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rrmstats.core.descent import Descent
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget, Points, evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.search import (
    COMPARE_MARGIN,
    COMPARE_MAXITER,
    COMPARE_ROWS,
    COMPARE_TOL,
    Solution,
    check_size,
    drawn_rows,
    found_solution,
    global_minimum,
    screened_part,
)
from rrmstats.core.setting import Setting
from rrmstats.core.starts import SAME_RISK, USUAL_STARTS, Starts, distinct
from rrmstats.core.tolerances import BLOCK_ENTRIES

# Local minima that are followed from each value to the next.
MOST_BRANCHES = 4


class SolutionPath(NamedTuple):
    """Solutions at several bounds.

    Attributes
    ----------
    solutions : list of Solution
        One for each bound.
    switched : list of bool
        Whether a descent from the solution at the bound before, or from the fit under uniform
        weights for the first, ends higher: another local minimum has become the lowest.
    """

    solutions: list[Solution]
    switched: list[bool]


def solution_path(
    problem: Problem,
    setting: Setting,
    eps_bars: Iterable[float],
    shown: Callable[[list[int]], Iterable[int]] = iter,
) -> SolutionPath:
    """Return the solution of least risk at each of some bounds.

    Parameters
    ----------
    problem : Problem
        The losses, the same for all bounds.
    setting : Setting
        Options of the search; its own `eps_bar` plays no part.
    eps_bars : iterable of float
        Bounds on the share of bad rows, increasing, in [0, 1).
    shown : callable, optional
        Goes through the places of the global searches, for example with a progress bar.

    Returns
    -------
    SolutionPath

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import FunctionProblem, Setting
    >>> from rrmstats.core.path import solution_path
    >>> z = np.array([1.9, 2.0, 2.1, 2.2, 1.8, 2.0, 90.0, 95.0])
    >>> problem = FunctionProblem(
    ...     losses=lambda theta: (z - theta[0]) ** 2,
    ...     weighted_fit=lambda weights: np.array([weights @ z]),
    ...     n_obs=8, n_params=1)
    >>> path = solution_path(problem, Setting(eps_bar=0.0), [0, 0.2, 0.4])
    >>> [float(found.theta[0].round(1)) for found in path.solutions]
    [24.6, 3.5, 2.0]
    """
    settings = [replace(setting, eps_bar=float(value)) for value in eps_bars]
    for each in settings:
        check_size(problem, each.budget(problem.n_obs))
    classical = [global_minimum(problem, each) for each in settings if each.eps_bar == 0]
    robust = [each for each in settings if each.eps_bar > 0]
    if not robust:
        return SolutionPath(classical, [False] * len(classical))
    budgets, part, rows = [each.budget(problem.n_obs) for each in robust], problem, None
    if problem.n_obs > COMPARE_ROWS:
        rows = drawn_rows(problem, budgets[0], setting.generator, max(4000, 20 * problem.n_params))
        part = problem.take(rows)
    branches = Branches(
        part, [budget if rows is None else budget.take(rows) for budget in budgets], setting
    )
    branches.follow(shown)
    found, switched = _solutions(problem, robust, branches)
    return SolutionPath(classical + found, [False] * len(classical) + switched)


class Branches:
    """Local minima of the risk at each of several bounds, the lowest first.

    Parameters
    ----------
    problem : Problem
    budgets : list of Budget
        The constraint at each bound, eps_bar increasing and positive.
    setting : Setting

    Attributes
    ----------
    ends : list of Points
        At each bound the lowest local minima found, at most MOST_BRANCHES.
    """

    def __init__(self, problem: Problem, budgets: list[Budget], setting: Setting) -> None:
        self.problem, self.budgets, self.setting = problem, budgets, setting
        self.first = problem.weighted_fit(budgets[0].uniform(problem.n_obs))[None]
        self.ends: list[Points | None] = [None] * len(budgets)
        #: At each bound the theta that descents from the bound below last started from, and the
        #: risk at the end of the one from its lowest minimum.
        self._upward: list[tuple[Array, float] | None] = [None] * len(budgets)

    def known(self, i: int) -> Points:
        """Return the minima at one bound."""
        ends = self.ends[i]
        assert ends is not None
        return ends

    def follow(self, shown: Callable[[list[int]], Iterable[int]] = iter) -> None:
        """Search at every few bounds and follow what was found, upward and then downward.

        Where the downward way ends lower than the upward one, the lowest minimum is another from
        the first of these bounds on: there is another search.
        """
        last = len(self.budgets) - 1
        # With few rows another minimum can be the lowest at a single bound.
        every = 1 if self.problem.n_obs <= 1000 else 24
        wanted = sorted({*range(last, -1, -every), 0})
        size = max(1, BLOCK_ENTRIES // (USUAL_STARTS * self.problem.n_obs))
        for i in shown(list(range(0, len(wanted), size))):
            self._search(wanted[i : i + size])
        self._carry(0, 1)
        lowered = self._carry(last, -1)
        for i in lowered:
            if every > 1 and i - 1 not in lowered:
                self._search([i])
                self._carry(i, 1, lowered=True)
                self._carry(i, -1, lowered=True)

    def switched(self) -> list[bool]:
        """Tell at which bounds a descent from the minimum at the last one ends higher."""
        found, theta, lambda_ = [], self.first, None
        for i, budget in enumerate(self.budgets):
            ends, upward = self.known(i), self._upward[i]
            if upward is not None and np.array_equal(upward[0], theta[0]):
                risk = upward[1]
            else:
                risk = float(self._run(theta, budget, lambda_).risk[0])
            found.append(bool(risk > ends.risk[0] + SAME_RISK * ends.excess[0]))
            theta, lambda_ = ends.theta[:1], ends.lambda_[:1]
        return found

    def _search(self, places: list[int]) -> None:
        """Descend at some bounds from the starts of one global search."""
        budgets, n_starts = [self.budgets[i] for i in places], self.setting.n_starts
        theta = [self.first] * len(places)
        if n_starts is None or n_starts > 0:
            counts = [
                self.problem.default_starts(float(each.eps_bar)) if n_starts is None else n_starts
                for each in budgets
            ]
            starts = screened_part(
                self.problem, budgets, self.first, counts, self.setting.generator, "uniform"
            )
            theta = [each.theta for each in starts]
        sizes = [len(each) for each in theta]
        search = np.repeat(np.arange(len(places)), sizes)
        ends = self._run(np.vstack(theta), Budget.each(budgets, sizes), None, search)
        for j, i in enumerate(places):
            self._add(i, ends[search == j])

    def _carry(self, start: int, step: int, lowered: bool = False) -> list[int]:
        """Descend at each bound from the minima of the last; return where this lowered the risk.

        With `lowered` it ends where the risk is not lowered.
        """
        found = []
        for i in range(start + step, len(self.budgets) if step > 0 else -1, step):
            before = self.known(i - step)
            ends = self._run(before.theta, self.budgets[i], before.lambda_)
            if step > 0:
                self._upward[i] = before.theta[0], float(ends.risk[0])
            if self._add(i, ends):
                found.append(i)
            elif lowered:
                break
        return found

    def _add(self, i: int, ends: Points) -> bool:
        """Add ends of descents to the minima at a bound; tell whether the lowest is lower now."""
        known = self.ends[i]
        pool = ends if known is None else joined(known, ends)
        self.ends[i] = pool[np.array([group[0] for group in distinct(pool, MOST_BRANCHES)])]
        if known is None:
            return True
        return bool(ends.risk.min() < known.risk[0] - SAME_RISK * known.excess[0])

    def _run(
        self,
        theta: Array,
        budget: Budget,
        lambda_: Array | None,
        search: np.ndarray | bool = True,
    ) -> Points:
        """Return where descents from some points end; `search` as the rivals of `Descent`."""
        most = min(COMPARE_MAXITER, self.setting.maxiter)
        points = evaluate(self.problem, theta.copy(), budget, lambda_)  # descents overwrite it
        return Descent(self.problem, points, budget, search).run(COMPARE_TOL, most, True).points


def joined(first: Points, second: Points) -> Points:
    """Return two batches of points as one."""
    return Points(
        *(
            np.concatenate([getattr(first, name), getattr(second, name)])
            for name in Points.__slots__
        )
    )


def _solutions(
    problem: Problem, settings: list[Setting], branches: Branches
) -> tuple[list[Solution], list[bool]]:
    """Return the solutions from the minima that were followed, and where the lowest is another.

    Where a part of the rows was followed, each solution on all of them starts from that before
    it, and also from the minima of the part where another is about to become the lowest.
    """
    switched, minima = branches.switched(), [branches.known(i) for i in range(len(settings))]
    if branches.problem is problem:
        # Higher minima too: second steps start from all of them.
        pairs = zip(settings, minima, strict=True)
        return [
            _solution(problem, each, ends.theta, ends.lambda_) for each, ends in pairs
        ], switched
    found: list[Solution] = []
    confirmed = switched[:1]
    for i, (setting, ends) in enumerate(zip(settings, minima, strict=True)):
        rivals = ends[ends.risk - ends.risk[0] <= COMPARE_MARGIN * ends.excess[0]]
        theta, lambda_ = rivals.theta, rivals.lambda_
        if i > 0:
            near = any(switched[max(i - 2, 0) : i + 3])  # where a part of the rows may be off
            theta = np.vstack([found[-1].theta, theta[: near * len(theta)]])
            lambda_ = np.r_[found[-1].lambda_, lambda_[: near * len(lambda_)]]
        found.append(_solution(problem, setting, theta, lambda_))
        if i > 0:
            excess = found[-1].risk - found[-1].losses.min()
            higher = found[-1].final_risks[0] > found[-1].risk + SAME_RISK * excess
            confirmed.append(bool(higher))
    for place in np.flatnonzero(confirmed):
        for j in range(int(place) - 1, -1, -1):
            after = found[j + 1]
            trial = _solution(problem, settings[j], after.theta[None], np.array([after.lambda_]))
            if not trial.risk < found[j].risk * (1 - SAME_RISK):
                break
            found[j] = trial
    return found, confirmed


def _solution(problem: Problem, setting: Setting, theta: Array, lambda_: Array) -> Solution:
    """Return the lowest end of descents from some points."""
    budget = setting.budget(problem.n_obs)
    points = evaluate(problem, theta.copy(), budget, lambda_)  # descents overwrite it
    starts = Starts(
        points.risk.copy(),
        ("neighbor",) * len(theta),
        theta,
        np.arange(len(theta)),
        list(points.weights[:, None]),
    )
    descent = Descent(problem, points, budget).run(setting.tol, setting.maxiter, True)
    return found_solution(descent, starts, budget, np.arange(len(theta)))
