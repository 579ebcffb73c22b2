"""Descents of the concentrated risk: Newton's method or extrapolation, safe by Algorithm 1."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import minimize

from rrmstats.core.entropy import DIVERGENCE_RTOL, Array, tilt
from rrmstats.core.extrapolation import Anderson, change_size
from rrmstats.core.points import Budget, Points, evaluate
from rrmstats.core.problem import Problem, SmoothProblem
from rrmstats.core.starts import SAME_RISK

# Least curvature, relative to that of Algorithm 1, of a step where the Hessian is indefinite.
LEAST_RATIO = 0.02
# What rounding may add to a risk that has converged, relative to its excess.
RISK_NOISE = 1e-13


class Step(NamedTuple):
    """One iteration of a descent.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses import SquaresProblem
    >>> x = np.arange(10.0)
    >>> solution = minimize(SquaresProblem(2 * x + np.sin(x), x[:, None]), eps_bar=0.2)
    >>> solution.trace[-1].risk == solution.risk, solution.trace[0].kind
    (True, 'start')
    """

    risk: float
    lambda_: float
    n_eff: float
    kind: str


class Descent:
    """Descents from a batch of starts, all at once; the risk of none ever rises.

    Parameters
    ----------
    problem : Problem
    points : Points
        The starts.
    budget : Budget
    search : ndarray of int, shape (b,), optional
        Number of the search of each start; by default there is one. Only the lowest end of a
        search matters, so that descents that fall behind are given up.

    Attributes
    ----------
    points : Points
        Where the descents stand.
    converged : ndarray of bool, shape (b,)
    """

    def __init__(
        self,
        problem: Problem,
        points: Points,
        budget: Budget,
        search: np.ndarray | None = None,
    ) -> None:
        self.problem, self.points, self.budget = problem, points, budget
        self.search = np.zeros(len(points.risk), int) if search is None else search
        self.converged = np.zeros(len(points.risk), dtype=bool)
        self.predicted = np.full(len(points.risk), np.inf)
        self._log: list[tuple[np.ndarray, str, Array, Array, Array]] = []
        self._history: defaultdict[int, Anderson] = defaultdict(Anderson)
        self._size = np.full(len(points.risk), np.inf)
        self._record(np.arange(len(points.risk)), "start")

    def run(self, tol: float, maxiter: int, accelerate: bool) -> Descent:
        """Descend until each point is stationary within `tol`."""
        smooth = self.problem if isinstance(self.problem, SmoothProblem) else None
        newton = smooth if accelerate and smooth is not None and smooth.newton_pays else None
        open_ = np.flatnonzero(~self._settled())
        if newton is not None and newton.gradients_pay and len(open_):
            self._quasi_newton(newton, open_, tol)
            self.converged |= self.points.risk > self._lowest(self.points.risk)
            open_ = open_[~self.converged[open_]]
        for _ in range(maxiter):
            if not len(open_):
                break
            if accelerate and newton is None:
                self._extrapolate(open_, tol, smooth is not None)
            else:
                rest = open_ if newton is None else self._newton(newton, open_, tol)
                if len(rest):
                    self._algorithm_1(rest, tol, accelerate)
            open_ = np.flatnonzero(~(self.converged | self._settled() | self._gave_up()))
        return self

    def _settled(self) -> np.ndarray:
        """Mark the points whose weights no longer depend on theta, or of least risk."""
        settled = (self.points.lambda_ == 0) | (self.budget.eps_bar == 0)
        settled |= self.points.risk == np.inf
        settled |= self.points.risk <= self.problem.least_risk
        self.converged |= settled
        return settled

    def _gave_up(self) -> np.ndarray:
        """Mark the points that are ten predicted decreases or more above the lowest end so far."""
        lowest = self._lowest(np.where(self.converged, self.points.risk, np.inf))
        return np.asarray(self.points.risk > lowest + 10.0 * self.predicted)

    def _lowest(self, risks: Array) -> Array:
        """Return the least of some risks (b,) among the points of the same search, shape (b,)."""
        every = np.full(self.search.max(initial=0) + 1, np.inf)
        np.minimum.at(every, self.search, risks)
        return np.asarray(every[self.search])

    def _take(self, rows: np.ndarray, chosen: np.ndarray, trial: Points, kind: str) -> None:
        """Move some points of a batch to where they were tried."""
        self.points.put(rows[chosen], trial if chosen.all() else trial[chosen])
        self._record(rows[chosen], kind)

    def _record(self, rows: np.ndarray, kind: str) -> None:
        points = self.points
        self._log.append(
            (rows, kind, points.risk[rows], points.lambda_[rows], points.divergence[rows])
        )

    def steps(self, i: int) -> tuple[Step, ...]:
        """Return the iterations of one descent."""
        found = []
        for rows, kind, risk, lambda_, divergence in self._log:
            for j in np.flatnonzero(rows == i):
                n_eff = self.budget.wnobs * float(np.exp(-divergence[j]))
                found.append(Step(float(risk[j]), float(lambda_[j]), n_eff, kind))
        return tuple(found)

    def _quasi_newton(self, problem: SmoothProblem, rows: np.ndarray, tol: float) -> None:
        """Descend near to the end by L-BFGS, in the metric of the Hessian under equal weights."""
        uniform = self.budget.of(rows[:1]).uniform(problem.n_obs).reshape(-1)
        try:
            root = np.linalg.cholesky(problem.hessian(self.points.theta[rows[0]], uniform))
        except np.linalg.LinAlgError:
            return
        for i in rows:
            self._approach(problem, np.array([i]), root, tol)

    def _approach(self, problem: SmoothProblem, row: np.ndarray, root: Array, tol: float) -> None:
        """Descend from one point, in coordinates in which a Hessian ``root @ root.T`` is one."""
        origin = seen = self.points[row]

        def value_and_gradient(place: Array) -> tuple[float, Array]:
            nonlocal seen
            step = solve_triangular(root, place, lower=True, trans="T")
            theta = problem.retract(origin.theta, step[None])
            seen = evaluate(problem, theta, self.budget.of(row), seen.lambda_)
            gradient = problem.weighted_gradient(theta[0], seen.weights[0])
            return float(seen.risk[0]), solve_triangular(root, gradient, lower=True)

        def accept(intermediate_result: Any) -> None:
            if seen.risk[0] <= self.points.risk[row[0]]:
                self.points.put(row, seen)
                self._record(row, "quasi-newton")

        options: Any = {"maxcor": 20, "maxiter": 500, "ftol": max(tol, 1e-2 * SAME_RISK)}
        minimize(
            value_and_gradient, np.zeros(len(root)), jac=True, method="L-BFGS-B",
            callback=accept, options=options,
        )  # fmt: skip

    def _newton(self, problem: SmoothProblem, rows: np.ndarray, tol: float) -> np.ndarray:
        """Take Newton steps where they lower the risk; return the rows where they do not.

        The size of a step is measured in the metric of the Hessian, relative to the excess
        risk. Convergence is quadratic: a step of a tenth of sqrt(tol) ends well within tol.
        """
        here = self.points if len(rows) == len(self.points.risk) else self.points[rows]
        gradient, hessian, drift = problem.concentrated(
            here.theta, here.losses, here.weights, here.lambda_
        )
        step, convex = newton_steps(gradient, hessian)
        sound = convex.copy()
        for i in np.flatnonzero(~convex):
            majorant = problem.hessian(here.theta[i], here.weights[i])
            step[i], sound[i] = bounded_step(gradient[i], hessian[i], majorant)
        decrement = np.einsum("bk,bk->b", gradient, -step)
        size = np.sqrt(np.maximum(decrement, 0.0) / np.maximum(here.excess, np.finfo(float).tiny))
        still = convex & (size <= tol)
        self.converged[rows[still]] = True
        move = np.flatnonzero(sound & ~still)
        if not len(move):
            return rows[~sound]
        self.predicted[rows[sound]] = decrement[sound]
        near = convex[move] & (size[move] <= 0.1 * np.sqrt(tol))
        self.converged[rows[move[near]]] = True
        slack = near * RISK_NOISE * here.excess[move]
        # Far from the end a rough divergence suffices: the risk is then known to its square.
        rtol = 1e-3 if (size[move] > 0.1).all() else DIVERGENCE_RTOL
        for fraction in (1.0, 0.3):
            lower = self._try(problem, rows[move], fraction * step[move], drift[move], slack, rtol)
            if lower.all():
                return rows[~sound]
            move, slack, near = move[~lower], slack[~lower], near[~lower]
        return np.sort(np.concatenate([rows[~sound], rows[move[~near]]]))

    def _try(
        self,
        problem: SmoothProblem,
        rows: np.ndarray,
        step: Array,
        drift: Array,
        slack: Array,
        rtol: float,
    ) -> np.ndarray:
        """Move where a step does not raise the risk by more than `slack`; tell where.

        `drift` is the gradient of ln(lambda), from which lambda after the step is guessed.
        """
        here = self.points if len(rows) == len(self.points.risk) else self.points[rows]
        theta = problem.retract(here.theta, step)
        change = np.einsum("bk,bk->b", drift, step)
        guess = here.lambda_ * np.exp(np.minimum(np.maximum(change, -1.0), 1.0))
        trial = evaluate(problem, theta, self.budget.of(rows), guess, rtol)
        lower = trial.risk <= here.risk + slack
        self._take(rows, lower, trial, "newton")
        return lower

    def _extrapolate(self, rows: np.ndarray, tol: float, smooth: bool) -> None:
        """Take steps of Algorithm 1 from extrapolated losses, and plain ones where these fail.

        Without derivatives a descent ends as Algorithm 1 does, by its decrease.
        """
        here = self.points[rows]
        given, weights, far = here.losses.copy(), here.weights.copy(), np.zeros(len(rows), bool)
        for j, i in enumerate(rows):
            proposed = self._history[i].propose(here.weights[j])
            if proposed is not None:
                given[j], far[j] = proposed, True
        if far.any():
            budget, guess = self.budget.of(rows[far]), here.lambda_[far]
            weights[far] = tilt(
                given[far], budget.eps_bar, budget.base, guess, DIVERGENCE_RTOL
            ).weights
        trial = evaluate(
            self.problem,
            self.problem.improved(weights, here.theta),
            self.budget.of(rows),
            here.lambda_,
        )
        size = np.array(
            [change_size(*three) for three in zip(given, trial.losses, trial.weights, strict=True)]
        )
        # Steps must shrink where rounding hides whether they lower the risk.
        nearer = smooth & (size <= 0.9 * self._size[rows])
        lower = trial.risk <= here.risk + nearer * RISK_NOISE * np.abs(here.excess)
        lower &= trial.risk < np.inf
        self._size[rows[lower]] = size[lower]
        self.points.put(rows[lower], trial if lower.all() else trial[lower])
        for kind, chosen in (("extrapolated", lower & far), ("algorithm 1", lower & ~far)):
            if chosen.any():
                self._record(rows[chosen], kind)
        for j, i in enumerate(rows):
            if not lower[j]:
                self._history[i].forget()
                self.converged[i] |= not far[j]
                continue
            self._history[i].record(given[j], trial.losses[j])
            self.predicted[i] = max(here.risk[j] - trial.risk[j], 0.0)
            if smooth:
                # Short extrapolated steps may be far from the end. Where rounding keeps them from
                # shrinking further, the larger bound must do.
                power = 0.95 if nearer[j] else 0.8
                self.converged[i] = size[j] <= tol**power * trial.excess[j]
            else:
                self.converged[i] = here.risk[j] - trial.risk[j] <= tol * here.excess[j]

    def _algorithm_1(self, rows: np.ndarray, tol: float, accelerate: bool) -> None:
        """Take the paper's step: refit under the weights, then weigh anew.

        As Newton's safeguard it need not refit to the end, and stops where the risk does.
        """
        here = self.points[rows]
        refit = self.problem.improved if accelerate else self.problem.weighted_fit
        theta = refit(here.weights, here.theta)
        trial = evaluate(self.problem, theta, self.budget.of(rows), here.lambda_)
        lower = (trial.risk <= here.risk) & (trial.risk < np.inf)
        self._take(rows, lower, trial, "algorithm 1")
        least = 0.0 if accelerate and isinstance(self.problem, SmoothProblem) else tol
        falling = lower & (trial.risk < here.risk - least * here.excess)
        self.converged[rows[~falling]] = True


def newton_steps(gradient: Array, hessian: Array) -> tuple[Array, np.ndarray]:
    """Return Newton's steps (b, k) and which Hessians (b, k, k) are positive definite."""
    finite = np.asarray(np.isfinite(hessian).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1))
    if not finite.all():
        hessian = np.where(finite[:, None, None], hessian, np.eye(hessian.shape[-1]))
        gradient = np.where(finite[:, None], gradient, 0.0)
    diagonal = np.einsum("bii->bi", hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(hessian * scale[:, :, None] * scale[:, None, :])
    sound = finite & (diagonal > 0).all(axis=-1) & (values[:, 0] > 1e-10 * values[:, -1])
    values[~sound] = 1.0
    along = ((gradient * scale)[:, None, :] @ vectors) / values[:, None, :]
    return -(vectors @ np.swapaxes(along, 1, 2))[:, :, 0] * scale, sound


def bounded_step(gradient: Array, hessian: Array, majorant: Array) -> tuple[Array, bool]:
    """Return a descent step where the Hessian is indefinite, and whether there is one.

    Algorithm 1 steps as if the curvature were that of the majorant in every direction. Here
    each direction has the size of its true curvature, but at least LEAST_RATIO of that.
    """
    try:
        ratios, directions = eigh(hessian, majorant)
        along = directions.T @ np.asarray_chkfinite(gradient)
    except (ValueError, np.linalg.LinAlgError):  # not finite, or no majorant
        return np.zeros_like(gradient), False
    return -directions @ (along / np.maximum(np.abs(ratios), LEAST_RATIO)), True
