"""Descents of the concentrated risk on rows in blocks: one pass over them per iteration.

Lambda is not solved for at each point, which would take passes of its own. It moves together with
theta, by Newton's method on both conditions of the minimum: that the weighted gradient vanishes,
and that the divergence of the weights is what the budget allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from rrmstats.core.block_extrapolation import MomentHistory
from rrmstats.core.block_points import BlockPoint, block_weights, points_in_blocks
from rrmstats.core.descent import BACKTRACK, GIVE_UP, RISK_NOISE, Step, newton_steps
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import SmoothProblem

# Gap of the divergence, relative to the budget, up to which theta and lambda move together.
NEAR = 0.2
# Gap before the last step, which squares it, and the gap that is left.
ALMOST, EXACT = 1e-6, 1e-11
# Largest change of ln(lambda) in a step, and steps of lambda alone.
FARTHEST_STEP, LAMBDA_STEPS = 3.0, 60


class BlockDescent:
    """Descents from a few starts, which share the passes over the rows.

    Parameters
    ----------
    problem : SmoothProblem
        Its rows lie in blocks.
    points : BlockPoints
        The starts.
    budget : Budget

    Attributes
    ----------
    points : BlockPoints
        Where the descents stand.
    converged : ndarray of bool, shape (b,)
    """

    def __init__(self, problem: SmoothProblem, points: BlockPoints, budget: Budget) -> None:
        self.problem, self.points, self.budget = problem, points, budget
        self.converged = np.array([point.settled for point in points.all])
        self.predicted = np.full(len(points.all), np.inf)
        self._history = [MomentHistory() for _ in points.all]
        self._log: list[tuple[int, BlockPoint, str]] = []
        for i in range(len(points.all)):
            self._move(i, points.all[i], "start")

    def run(self, tol: float, maxiter: int, accelerate: bool) -> BlockDescent:
        """Descend until each point is stationary within `tol`."""
        for _ in range(maxiter):
            open_ = [i for i in range(len(self.converged)) if self._is_open(i)]
            if not open_:
                break
            if accelerate and self.points.all[open_[0]].moments.size:
                self._extrapolate(open_, tol)
            elif accelerate:
                for i in self._newton(open_, tol):
                    self._refit(i, 0.0)
            else:
                for i in open_:
                    self._refit(i, tol)
        return self

    def steps(self, i: int) -> tuple[Step, ...]:
        """Return the iterations of one descent."""
        size = self.budget.wnobs
        return tuple(
            Step(point.risk, point.lambda_, size * float(np.exp(-point.divergence)), kind)
            for j, point, kind in self._log
            if j == i
        )

    def _is_open(self, i: int) -> bool:
        here = self.points.all[i]
        if self.converged[i] or here.settled:
            self.converged[i] = True
            return False
        ends = [self.points.all[j].risk for j in np.flatnonzero(self.converged)]
        return not ends or here.risk <= min(ends) + GIVE_UP * self.predicted[i]

    def _move(self, i: int, point: BlockPoint, kind: str) -> None:
        self.points.all[i] = point
        self._log.append((i, point, kind))

    def _newton(self, open_: list[int], tol: float) -> list[int]:
        """Take Newton's steps where they lower the risk; return the descents where they do not."""
        moving, steps, last = [], [], []
        for i in open_:
            here = self.points.all[i]
            step, convex = newton_steps(here.residual[None], here.hessian[None])
            decrement = float(-here.residual @ step[0])
            self.predicted[i] = max(decrement, 0.0)
            if not convex[0]:
                continue
            size = np.sqrt(max(decrement, 0.0) / max(here.excess, np.finfo(float).tiny))
            exact = abs(here.relative_gap(self.budget.eps_bar))
            if size <= tol and exact <= EXACT:
                self.converged[i] = True
                continue
            moving.append(i)
            steps.append(step[0])
            last.append(size <= np.sqrt(tol) and exact <= ALMOST)
        rest = [i for i in open_ if i not in moving and not self.converged[i]]
        for fraction in BACKTRACK:
            lower = self._try(moving, [fraction * step for step in steps], last)
            kept = [j for j, went in enumerate(lower) if not went]
            moving, steps = [moving[j] for j in kept], [steps[j] for j in kept]
            last = [last[j] for j in kept]
        for i, final in zip(moving, last, strict=True):
            self.converged[i] |= final
        return rest + [i for i, final in zip(moving, last, strict=True) if not final]

    def _try(self, rows: list[int], steps: list[Array], last: list[bool]) -> list[bool]:
        """Move where steps lower the risk, in one pass; tell where. Last steps converge."""
        if not rows:
            return []
        here = [self.points.all[i] for i in rows]
        theta = [
            self.problem.retract(point.theta, step)
            for point, step in zip(here, steps, strict=True)
        ]
        change = [point.lambda_change(step) for point, step in zip(here, steps, strict=True)]
        bounded = np.clip(change, -FARTHEST_STEP, FARTHEST_STEP)
        lambda_ = np.array([point.lambda_ for point in here]) * np.exp(bounded)
        trials = near_budget(self.problem, np.array(theta), lambda_, self.budget)
        lower = []
        for i, point, trial, final in zip(rows, here, trials, last, strict=True):
            lower.append(trial.risk <= point.risk + slack(point, trial) * (1 + 9 * final))
            if lower[-1]:
                self._move(i, trial, "newton")
                self.converged[i] |= final
        return lower

    def _extrapolate(self, open_: list[int], tol: float) -> None:
        """Take steps of Algorithm 1 from extrapolated moments, one pass for all descents."""
        proposed, far, last = [], [], []
        for i in open_:
            here, history = self.points.all[i], self._history[i]
            step = np.clip(here.lambda_step(self.budget.eps_bar), -FARTHEST_STEP, FARTHEST_STEP)
            found = np.append(here.moments, np.log(here.lambda_) + step)
            there, extrapolated = history.propose(found, partial(self._in_units, here))
            proposed.append(there)
            far.append(extrapolated)
            last.append(history.size <= tol or history.stalled(np.sqrt(tol)))
        theta = np.array([self.problem.moment_fit(there[:-1]) for there in proposed])
        lambda_ = np.exp([there[-1] for there in proposed])
        accuracy = EXACT if any(last) else NEAR
        trials = near_budget(self.problem, theta, lambda_, self.budget, accuracy)
        for i, there, extrapolated, final, trial in zip(
            open_, proposed, far, last, trials, strict=True
        ):
            here, history = self.points.all[i], self._history[i]
            self.predicted[i] = max(here.risk - trial.risk, 0.0)
            if trial.risk <= here.risk + slack(here, trial) * (1 + 9 * final):
                self._move(i, trial, "extrapolated" if extrapolated else "algorithm 1")
                history.given = np.append(there[:-1], np.log(trial.lambda_))
                self.converged[i] |= final
            else:
                history.forget()
                self.converged[i] |= final or not extrapolated

    def _in_units(self, here: BlockPoint, changes: Array) -> Array:
        """Return changes of moments and ln(lambda), shape (m, p + 1), that can be compared."""
        moments = self.problem.moment_changes(changes[:, :-1], here.moments)
        return np.hstack([moments, changes[:, -1:]])

    def _refit(self, i: int, tol: float) -> None:
        """Take the step of Algorithm 1: refit under the weights, then weigh anew."""
        here = self.points.all[i]
        if not here.divergence < np.inf:  # all weights are zero
            self.converged[i] = True
            return
        weights = block_weights(self.problem, here.theta, here.lambda_, self.budget)
        theta = self.problem.improved(weights, here.theta)
        guess = np.array([here.lambda_])
        trial = near_budget(self.problem, theta[None], guess, self.budget, EXACT)[0]
        if trial.risk <= here.risk + slack(here, trial):
            self._move(i, trial, "algorithm 1")
        if not trial.risk < here.risk - tol * here.excess:
            self.converged[i] = True


def slack(here: BlockPoint, trial: BlockPoint) -> float:
    """Return by how much the risks of two points may differ without meaning it.

    They are known up to rounding, and to the square of what lambda is off.
    """
    rounding = RISK_NOISE * abs(here.excess)
    return rounding + gap_error(here) + gap_error(trial)


def gap_error(point: BlockPoint) -> float:
    """Return how far the risk of a point may be off because its lambda is."""
    if point.settled or not point.variance > 0:
        return 0.0
    return float(point.gap**2 * point.lambda_**3 / point.variance)


class BlockPoints:
    """Where descents on blocks stand, with the attributes of `Points`.

    Parameters
    ----------
    problem : SmoothProblem
    budget : Budget
    points : list of BlockPoint
    """

    def __init__(
        self, problem: SmoothProblem, budget: Budget, points: Sequence[BlockPoint]
    ) -> None:
        self.problem, self.budget, self.all = problem, budget, list(points)

    def _values(self, name: str) -> Array:
        return np.array([getattr(point, name) for point in self.all])

    @property
    def theta(self) -> Array:
        """Parameters, shape (b, k)."""
        return self._values("theta")

    @property
    def risk(self) -> Array:
        """Risks, shape (b,)."""
        return self._values("risk")

    @property
    def excess(self) -> Array:
        """Risks above the least loss, shape (b,)."""
        return self._values("excess")

    @property
    def lambda_(self) -> Array:
        """Temperatures, shape (b,)."""
        return self._values("lambda_")

    @property
    def divergence(self) -> Array:
        """Divergences of the weights, shape (b,)."""
        return self._values("divergence")

    @property
    def losses(self) -> list[Array]:
        """The losses of all rows at each point."""
        return [self.problem.losses(point.theta) for point in self.all]

    @property
    def weights(self) -> list[Array]:
        """The weights of all rows at each point."""
        return [
            block_weights(self.problem, point.theta, point.lambda_, self.budget)
            for point in self.all
        ]


def evaluated_points(
    problem: SmoothProblem, theta: Array, budget: Budget, lambda_: Array | None = None
) -> BlockPoints:
    """Return the points at some parameters, shape (b, k), with lambda near what it should be.

    Parameters
    ----------
    problem : SmoothProblem
    theta : ndarray, shape (b, k)
    budget : Budget
    lambda_ : ndarray, shape (b,), optional
        Guesses of lambda.
    """
    never = np.full(len(theta), np.inf)
    if budget.eps_bar == 0:
        return BlockPoints(problem, budget, points_in_blocks(problem, theta, never, budget))
    exact = lambda_ is None
    if lambda_ is None:
        lambda_ = np.array(
            [point.excess for point in points_in_blocks(problem, theta, never, budget)]
        )
    lambda_ = np.where((lambda_ > 0) & np.isfinite(lambda_), lambda_, 1.0)
    accuracy = EXACT if exact else NEAR
    return BlockPoints(problem, budget, near_budget(problem, theta, lambda_, budget, accuracy))


def near_budget(
    problem: SmoothProblem, theta: Array, lambda_: Array, budget: Budget, accuracy: float = NEAR
) -> list[BlockPoint]:
    """Return points whose divergence is near the budget, from guesses of lambda, shape (b,).

    One pass where the guesses are good.
    """
    points = points_in_blocks(problem, theta, lambda_, budget)
    low, high = np.full(len(theta), -np.inf), np.full(len(theta), np.inf)
    for _ in range(LAMBDA_STEPS):
        far = [
            i
            for i, point in enumerate(points)
            if not point.settled
            and abs(point.relative_gap(budget.eps_bar)) > accuracy
            and high[i] - low[i] > 1e-14
        ]
        if not far:
            break
        logs = np.array([_next_log_lambda(points[i], budget, low, high, i) for i in far])
        for i, point in zip(
            far, points_in_blocks(problem, theta[far], np.exp(logs), budget), strict=True
        ):
            points[i] = point
    return points


def _next_log_lambda(point: BlockPoint, budget: Budget, low: Array, high: Array, i: int) -> float:
    """Return the next ln(lambda) of a point; its brackets `low` and `high` grow narrower.

    A divergence above the budget asks for a larger lambda.
    """
    at = float(np.log(point.lambda_))
    if point.gap > 0:
        low[i] = at
    else:
        high[i] = at
    step = float(np.clip(point.lambda_step(budget.eps_bar), -FARTHEST_STEP, FARTHEST_STEP))
    if low[i] < at + step < high[i]:
        return at + step
    return float(0.5 * (low[i] + high[i]))
