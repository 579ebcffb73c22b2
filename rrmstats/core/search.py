"""Robust risk minimization: the global search over theta and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.block_array import row_sums
from rrmstats.core.blocks import decided_once, sample_places
from rrmstats.core.descent import Descent, Step
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.polish import polished
from rrmstats.core.problem import Problem, SmoothProblem
from rrmstats.core.setting import MAXITER, TOL, Setting
from rrmstats.core.starts import (
    SAME_RISK,
    Starts,
    canonical_order,
    distinct,
    first_start,
    screened_starts,
)
from rrmstats.core.tolerances import SUM_ROUNDING

# Rows on which subsets are screened, and rows on which the finalists are compared before any
# of them sees all the data: a good start is told from a bad one on far fewer than a million.
SCREEN_ROWS = 300
COMPARE_ROWS = 10_000
# Finalists whose risks on COMPARE_ROWS rows differ by less than this fraction are all kept.
COMPARE_MARGIN = 0.1
COMPARE_TOL, COMPARE_MAXITER = 1e-4, 50
# Relative difference of the risks of two ends that are one minimum, and most ends to start from.
SAME_END, MOST_ENDS = 1e-4, 8


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What the search found.

    Attributes
    ----------
    theta : ndarray, shape (k,)
        Parameters of least risk.
    losses, weights : ndarray, shape (n,)
        Losses at `theta`, and their probability weights.
    lambda_ : float
        Temperature of the weights: infinite when they are uniform, zero at an exact fit.
    divergence : float
        Kullback-Leibler divergence of the weights from equal ones, or from the frequency
        weights.
    n_eff : float
        Exponential of the entropy of the weights.
    risk : float
        ``weights @ losses``, the least found.
    converged : bool
        Whether `theta` is stationary within the tolerance.
    trace : tuple of Step
        Risk, lambda, effective sample size and kind of each iteration of the best descent.
    start_risks : ndarray, shape (m,)
        Risk at each start: the uniform start (or the one given) first, then the subsets and the
        spectral ones. Those of large data are compared on a part of the rows. Infinite where a
        start gave no fit.
    start_kinds : tuple of str, length m
        "uniform", "given", "subset" or "spectral"; "neighbor" along a path.
    final_risks : ndarray, shape (f,)
        Risks at the ends of the descents that were run to convergence on all rows.
    n_reached : int
        How many of those reached the minimum.
    n_best : int
        How many starts that are apart from each other lead to it.
    ends : ndarray, shape (f, k)
        Parameters at the ends of the descents.
    elsewhere : ndarray, shape (e, k), or None
        Minima at other bounds, from which a second step may start too.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> x = np.arange(10.0)
    >>> solution = minimize(SquaresProblem(2 * x + np.sin(x), x[:, None]), eps_bar=0.2)
    >>> solution.converged, round(solution.n_eff, 6)
    (True, 8.0)
    """

    theta: Array
    losses: Array
    weights: Array
    lambda_: float
    divergence: float
    n_eff: float
    risk: float
    converged: bool
    trace: tuple[Step, ...]
    start_risks: Array
    start_kinds: tuple[str, ...]
    final_risks: Array
    n_reached: int
    n_best: int
    ends: Array
    elsewhere: Array | None = None

    @property
    def n_iter(self) -> int:
        """Iterations of the best descent."""
        return len(self.trace) - 1

    def other_minima(self, unit: float | None = None) -> Array:
        """Return the ends of descents at other risks than the least, the lowest first, (m, k).

        Minima at other bounds follow.

        Parameters
        ----------
        unit : float, optional
            In which risks are compared; by default the least risk.
        """
        places = self._different(self.risk if unit is None else unit)
        ends = self.ends[places[:MOST_ENDS]]
        return ends if self.elsewhere is None else np.vstack([ends, self.elsewhere])

    def minima(self) -> Array:
        """Return the minima that were met, the lowest first, shape (m, k)."""
        return np.vstack([self.theta, self.other_minima()])

    def rivals(self) -> Array:
        """Return the minimum and those that may be lower on more rows, shape (m, k)."""
        excess = self.risk - self.losses.min()
        places = self._different(excess)
        near = self.final_risks[places] - self.risk <= COMPARE_MARGIN * excess
        return np.vstack([self.theta, self.ends[places][near]])

    def _different(self, unit: float) -> list[int]:
        """Return the places of the ends at different risks than the least, the lowest first."""
        places: list[int] = []
        for i in np.argsort(self.final_risks, kind="stable"):
            risks = [self.risk, *self.final_risks[places]]
            if np.isfinite(self.final_risks[i]) and all(
                abs(self.final_risks[i] - risk) > SAME_END * unit for risk in risks
            ):
                places.append(int(i))
        return places

    def continued(
        self,
        theta: Array,
        losses: Array,
        weights: Array,
        lambda_: float,
        setting: Setting,
        known: tuple[float, float] | None = None,
    ) -> Solution:
        """Return the solution of a second step: other parameters and weights, the same search.

        Parameters
        ----------
        theta : ndarray, shape (k,)
        losses, weights : ndarray, shape (n,)
            Losses at `theta`, and weights that sum to one.
        lambda_ : float
            Temperature of the weights.
        setting : Setting
        known : tuple of float, optional
            Divergence of the weights and risk, where they are known.
        """
        n = len(losses)
        if known is None:
            known = row_sums(weighted_means, weights, setting.spread(n), losses)
        divergence, risk = map(float, known)
        n_eff = setting.wnobs(n) * float(np.exp(-divergence))
        return replace(
            self,
            theta=theta,
            losses=losses,
            weights=weights,
            lambda_=lambda_,
            divergence=divergence,
            n_eff=n_eff,
            risk=risk,
            trace=(*self.trace, Step(risk, lambda_, n_eff, "second step")),
        )


def minimize(
    problem: Problem,
    eps_bar: float,
    *,
    n_starts: int | None = None,
    start_theta: ArrayLike | None = None,
    freq_weights: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    tol: float = TOL,
    maxiter: int = MAXITER,
    accelerate: bool = True,
) -> Solution:
    """Minimize the risk over parameters and weights together.

    The weights keep an entropy of at least ``log((1 - eps_bar) * n)``. The problem has local
    minima; the search descends from uniform weights and from the best of many starts, fits to
    random subsets and to rows that a spectral filter leaves, and returns the lowest end.

    Parameters
    ----------
    problem : Problem
        Losses and their weighted fit.
    eps_bar : float
        Upper bound on the share of bad rows, in [0, 1).
    n_starts : int, optional
        Random subsets to try. By default what the problem suggests; 0 descends from uniform
        weights alone.
    start_theta : array_like, shape (k,), optional
        Parameters to start from, in place of those fitted under uniform weights.
    freq_weights : array_like, shape (n,), optional
        How often each observation counts: an observation of weight 2 counts as two.
    rng : int or numpy.random.Generator, optional
        Source of the random subsets. The default is fixed, so that results repeat.
    tol : float, optional
        Size of the last step, in the metric of the risk; with Algorithm 1, relative decrease
        of the risk.
    maxiter : int, optional
        Iterations that a descent may take.
    accelerate : bool, optional
        False takes only the steps of the paper's Algorithm 1.

    Returns
    -------
    Solution

    Examples
    --------
    The mean of data of which up to 40 % are bad:

    >>> import numpy as np
    >>> from rrmstats.core import FunctionProblem, minimize
    >>> z = np.array([1.9, 2.0, 2.1, 2.2, 1.8, 2.0, 90.0, 95.0])
    >>> problem = FunctionProblem(
    ...     losses=lambda theta: (z - theta[0]) ** 2,
    ...     weighted_fit=lambda weights: np.array([weights @ z]),
    ...     n_obs=8, n_params=1)
    >>> minimize(problem, eps_bar=0.4).theta.round(2)
    array([2.])
    """
    counts = None if freq_weights is None else np.asarray(freq_weights, dtype=float)
    setting = Setting(
        eps_bar=eps_bar, freq_weights=counts, n_starts=n_starts, rng=rng, tol=tol,
        maxiter=maxiter, accelerate=accelerate,
    )  # fmt: skip
    return global_minimum(problem, setting, start_theta)


def global_minimum(
    problem: Problem, setting: Setting, start_theta: ArrayLike | None = None
) -> Solution:
    """Return the lowest end of the descents that a setting asks for; see `minimize`."""
    if isinstance(problem, SmoothProblem) and problem.blocks is not None:
        return _polished_minimum(problem, setting, start_theta)
    return global_minima(problem, [setting], start_theta)[0]


def global_minima(
    problem: Problem, settings: Sequence[Setting], start_theta: ArrayLike | None = None
) -> list[Solution]:
    """Return the same of settings that differ in their bounds alone; of rows in memory.

    Those of few rows are found by one search.
    """
    many = problem.n_obs > COMPARE_ROWS or any(each.eps_bar == 0 for each in settings)
    if len(settings) > 1 and (problem.blocks is not None or many):
        return [global_minimum(problem, each, start_theta) for each in settings]
    setting, kind = settings[0], "uniform" if start_theta is None else "given"
    budgets = [each.budget(problem.n_obs) for each in settings]
    n_starts = [
        problem.default_starts(each.eps_bar) if each.n_starts is None else each.n_starts
        for each in settings
    ]
    for budget in budgets:
        check_size(problem, budget)
    theta, rng = _first_theta(problem, setting, start_theta)[None], setting.generator
    if not min(n_starts) or setting.eps_bar == 0:
        starts = [
            first_start(evaluate(problem, theta, each).risk, theta, kind) for each in budgets
        ]
    elif problem.n_obs > COMPARE_ROWS:
        starts = [_search(problem, budgets[0], theta, n_starts[0], rng, kind)]
    else:
        starts = screened_part(problem, budgets, theta, n_starts, rng, kind)
    sizes = [len(each.theta) for each in starts]
    together = Budget.each(budgets, sizes) if len(budgets) > 1 else budgets[0]
    points = evaluate(problem, np.vstack([each.theta for each in starts]), together)
    search = np.repeat(np.arange(len(starts)), sizes)
    descent = Descent(problem, points, together, search)
    descent.run(setting.tol, setting.maxiter, setting.accelerate)
    return [
        found_solution(descent, *each, np.flatnonzero(search == i))
        for i, each in enumerate(zip(starts, budgets, strict=True))
    ]


def followed_minimum(problem: Problem, setting: Setting, few: Solution) -> Solution:
    """Return the minimum on all rows, in memory, near that which a search on some of them found.

    Minima that so few rows hardly tell apart are followed too. The algorithm of the paper, a
    search from one start and an exact fit to the few begin anew.
    """
    if setting.n_starts == 0 or not (setting.accelerate and few.lambda_ > 0 and few.risk < np.inf):
        return global_minimum(problem, setting)
    check_size(problem, setting.budget(problem.n_obs))
    found = followed(problem, setting, few.rivals())
    return replace(
        found, start_risks=few.start_risks, start_kinds=few.start_kinds, n_best=few.n_best
    )


def followed(
    problem: Problem, setting: Setting, theta: Array, lambda_: float | None = None
) -> Solution:
    """Return the lowest end of descents from some points, shape (b, k), alone."""
    budget, places = setting.budget(problem.n_obs), np.arange(len(theta))
    guess = None if lambda_ is None else np.full(len(theta), lambda_)
    points = evaluate(problem, theta.copy(), budget, guess)  # descents overwrite it
    kinds, alone = ("neighbor",) * len(theta), list(points.weights[:, None])
    starts = Starts(points.risk.copy(), kinds, theta, places, alone)
    descent = Descent(problem, points, budget)
    descent.run(setting.tol, setting.maxiter, setting.accelerate)
    return found_solution(descent, starts, budget, places)


def _polished_minimum(
    problem: SmoothProblem, setting: Setting, start_theta: ArrayLike | None
) -> Solution:
    """Return the minimum on rows in blocks, from that on a sample of them."""
    budget = setting.budget(problem.n_obs)
    check_size(problem, budget)

    def on_sample() -> tuple[Solution, Array | None]:
        rows = sample_places(problem.n_obs)
        if not problem.determines(rows):
            rows = problem.completed(rows, np.empty(0, int))
        part, counts = problem.take(rows), None
        if setting.freq_weights is not None:
            counts = setting.freq_weights[rows]
        found = global_minimum(part, replace(setting, freq_weights=counts), start_theta)
        assert isinstance(part, SmoothProblem)
        if part.newton_pays or found.lambda_ == 0:
            return found, None
        here = found.theta, found.losses, found.weights, np.array(found.lambda_)
        return found, part.concentrated(*(each[None] for each in here))[1][0]

    return polished(problem, budget, *decided_once(problem.blocks, on_sample))


def check_size(problem: Problem, budget: Budget) -> None:
    """Raise where the entropy budget leaves fewer observations than parameters."""
    used = problem.n_obs if budget.base is None else (budget.base > 0).sum()
    problem.check_left(float(budget.eps_bar), budget.wnobs, int(used))


def _first_theta(problem: Problem, setting: Setting, start_theta: ArrayLike | None) -> Array:
    if start_theta is None:
        return problem.weighted_fit(setting.spread(problem.n_obs))
    theta = np.asarray(start_theta, dtype=float)
    if theta.ndim != 1 or not np.isfinite(theta).all():
        raise ValueError("start_theta must be a vector of finite numbers")
    return theta


def _search(
    problem: Problem,
    budget: Budget,
    first: Array,
    n_starts: int,
    rng: np.random.Generator,
    kind: str,
) -> Starts:
    """Return the starts of large data, with those worth a descent on all rows.

    Starts are screened on SCREEN_ROWS rows. The survivors and `first` descend on COMPARE_ROWS rows
    before the few that matter see the rest.
    """
    rows = drawn_rows(problem, budget, rng)
    part, part_budget = problem.take(rows), budget.take(rows)
    starts = screened_part(part, [part_budget], first, [n_starts], rng, kind)[0]
    points = evaluate(part, starts.theta, part_budget)
    ends = Descent(part, points, part_budget).run(COMPARE_TOL, COMPARE_MAXITER, True).points
    lowest = int(np.argmin(ends.risk))
    with np.errstate(invalid="ignore"):  # infinite risks have no difference
        rivals = ends.risk - ends.risk[lowest] <= COMPARE_MARGIN * ends.excess[lowest]
    rivals |= ends.risk == ends.risk[lowest]
    rivals[0] = True  # where the first start leads is told whatever its risk
    groups = [group for group in distinct(ends, len(ends.risk)) if rivals[group].any()]
    kept = [group[0] for group in groups]
    if 0 in kept[1:]:
        ends.theta[0] = first[0]
    return starts.take(ends.theta[kept], groups)


def drawn_rows(
    problem: Problem, budget: Budget, rng: np.random.Generator, size: int = COMPARE_ROWS
) -> np.ndarray:
    """Return some rows drawn at random, and those that the parameters need besides."""
    if problem.n_obs <= size:
        return np.arange(problem.n_obs)
    # Frequency weights are those of the part, and must not count twice.
    used = np.flatnonzero(budget.uniform(problem.n_obs) > 0)
    rows = np.sort(rng.choice(used, min(size, len(used)), replace=False))
    if problem.determines(rows):
        return rows
    return problem.completed(rows, np.delete(np.arange(problem.n_obs), rows))


def screened_part(
    part: Problem,
    budgets: Sequence[Budget],
    first: Array,
    n_starts: Sequence[int],
    rng: np.random.Generator,
    kind: str,
) -> list[Starts]:
    """Return the starts of a problem of moderate size, screened on SCREEN_ROWS of its rows."""
    order, small = canonical_order(part, budgets[0]), part
    screen_rows = max(SCREEN_ROWS, 10 * part.n_params)
    if len(order) > screen_rows:
        places = np.sort(rng.choice(len(order), screen_rows, replace=False))
        rows = order[places]
        if not part.determines(rows):
            rows = part.completed(rows, np.delete(order, places))
        small, budgets = part.take(rows), [budget.take(rows) for budget in budgets]
        order = canonical_order(small, budgets[0])
    return screened_starts(small, budgets, order, first, n_starts, rng, kind)


def weighted_means(weights: Array, spread: Array, losses: Array) -> tuple[Array, Array]:
    """Return the divergence of weights from those of largest entropy, and the risk."""
    used = weights > 0
    w = weights[used]
    return w @ np.log(w / spread[used]), w @ losses[used]


def found_solution(
    descent: Descent, starts: Starts, budget: Budget, places: np.ndarray
) -> Solution:
    """Return the lowest end of the descents at some places as the solution of a budget."""
    points, converged = descent.points[places], descent.converged[places]
    lowest = float(points.risk.min())
    # Among ends that only rounding tells apart the first that has converged, or the first.
    tied = points.risk <= lowest + 1e-14 * abs(lowest)
    best = int(np.argmax(tied * (1 + converged)))
    with np.errstate(invalid="ignore"):  # all risks may be infinite
        rounding = SUM_ROUNDING * abs(points.risk[best])  # at exact fits all of it
        reached = points.risk - points.risk[best] <= SAME_RISK * points.excess[best] + rounding
    reached[best] = True
    return Solution(
        theta=points.theta[best],
        losses=points.losses[best],
        weights=points.weights[best],
        lambda_=float(points.lambda_[best]),
        divergence=float(points.divergence[best]),
        n_eff=budget.wnobs * float(np.exp(-points.divergence[best])),
        risk=float(points.risk[best]),
        converged=bool(converged[best]),
        trace=descent.steps(int(places[best])),
        start_risks=starts.risks,
        start_kinds=starts.kinds,
        final_risks=np.maximum(points.risk, points.risk[best]),
        n_reached=int(reached.sum()),
        n_best=starts.count_apart(np.flatnonzero(reached), float(budget.eps_bar)),
        ends=points.theta,
    )
