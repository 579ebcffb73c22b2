"""Descents of the concentrated risk: Newton's method, with Algorithm 1 as its safeguard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import DIVERGENCE_RTOL, Array, tilt
from rrmstats.core.problem import Problem, SmoothProblem

# Least eigenvalue, relative to the largest, of a Hessian that Newton's step may use.
MIN_CURVATURE = 1e-10
# Least curvature, relative to that of Algorithm 1, of a step where the Hessian is indefinite.
LEAST_RATIO = 0.2
# Fractions of Newton's step that are tried before the step of Algorithm 1.
BACKTRACK = (1.0, 0.3)
# Far from the end, where steps are larger than ROUGH_STEP, this accuracy of the divergence
# suffices: the risk is then known to its square.
ROUGH_STEP, ROUGH_RTOL = 0.1, 1e-3
# A descent is given up when the lowest end is this many predicted decreases away.
GIVE_UP = 10.0
# What rounding may add to a risk that has converged, relative to its excess.
RISK_NOISE = 1e-13
# Standard errors by which the corrupted fraction may be larger in a part of the data.
SAMPLING_ERRORS = 3.0


class Step(NamedTuple):
    """One iteration of a descent."""

    risk: float
    lambda_: float
    n_eff: float
    kind: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The constraint on the weights: its eps_bar, and the weights of largest entropy.

    `base` holds those weights, shape (n,), None where they are equal; with shape (b, n) each
    point of a batch has its own. `wnobs` is the number of observations that they stand for.
    """

    eps_bar: float
    base: Array | None = None
    wnobs: float = 0.0

    def uniform(self, n: int) -> Array:
        """Return the weights of largest entropy, shape (n,)."""
        return np.full(n, 1.0 / n) if self.base is None else self.base

    def of(self, points: np.ndarray) -> Budget:
        """Return the budget of some points of a batch."""
        if self.base is None or self.base.ndim == 1:
            return self
        return Budget(self.eps_bar, self.base[points], self.wnobs)

    def take(self, rows: np.ndarray) -> Budget:
        """Return the budget of some rows, drawn at random.

        It is larger by what chance may add to the fraction of corrupted ones; otherwise a
        good fit could look worse on these rows than a bad one.
        """
        n = self.wnobs if self.base is None else len(self.base)
        variance = self.eps_bar * (1 - self.eps_bar) * (1 / len(rows) - 1 / n)
        most = self.eps_bar + SAMPLING_ERRORS * float(np.sqrt(max(variance, 0.0)))
        eps_bar = min(most, 0.5 * (1 + self.eps_bar))
        if self.base is None:
            return Budget(eps_bar, None, len(rows))
        part = self.base[rows]
        return Budget(eps_bar, part / part.sum(), self.wnobs * float(part.sum()))


@dataclass(slots=True)
class Points:
    """A batch of points with the weights of least risk at each: b points, n observations."""

    theta: Array
    losses: Array
    weights: Array
    lambda_: Array
    divergence: Array
    risk: Array
    excess: Array

    def __getitem__(self, rows: np.ndarray) -> Points:
        return Points(*(getattr(self, name)[rows] for name in self.__slots__))

    def put(self, rows: np.ndarray, new: Points) -> None:
        """Overwrite some points of the batch."""
        if len(rows) == len(self.risk):
            for name in self.__slots__:
                setattr(self, name, getattr(new, name))
            return
        for name in self.__slots__:
            getattr(self, name)[rows] = getattr(new, name)


def evaluate(
    problem: Problem,
    theta: Array,
    budget: Budget,
    lambda_start: Array | None = None,
    rtol: float = DIVERGENCE_RTOL,
) -> Points:
    """Return the concentrated risk at a batch of parameters, shape (b, k), with its weights."""
    losses = problem.losses(theta)
    weights, lambda_, divergence = tilt(losses, budget.eps_bar, budget.base, lambda_start, rtol)
    risk = np.einsum("bn,bn->b", weights, losses)
    if not np.isfinite(risk).all():  # an infinite loss has weight zero
        risk = np.einsum("bn,bn->b", weights, np.where(weights > 0, losses, 0.0))
    excess = risk - losses.min(axis=-1)
    # The Lagrangian: an error in the divergence changes it to second order only.
    gap = divergence + np.log1p(-budget.eps_bar)
    tilted = (lambda_ > 0) & (lambda_ < np.inf)
    error = np.multiply(lambda_, gap, out=np.zeros_like(risk), where=tilted)
    # Past `excess` it is not small: lambda hardly changes the divergence, and is far off.
    risk += np.where(np.abs(error) <= excess, error, 0.0)
    admissible = problem.admissible(weights)
    if admissible is not None:
        risk = np.where(admissible, risk, np.inf)
    return Points(theta, losses, weights, lambda_, divergence, risk, excess)


class Descent:
    """Descents from a batch of starts, all at once; the risk of none ever rises.

    Parameters
    ----------
    problem : Problem
    points : Points
        The starts.
    budget : Budget
    rivals : bool, optional
        Whether only the lowest end matters, so that descents that fall behind are given up.
    theta_step : callable, optional
        Refits under weights (n,) from parameters (k,), in place of the problem's `weighted_fit`.

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
        rivals: bool = True,
        theta_step: Callable[[Array, Array], Array] | None = None,
    ) -> None:
        self.problem, self.points, self.budget, self.rivals = problem, points, budget, rivals
        self.theta_step = theta_step
        self.converged = np.zeros(len(points.risk), dtype=bool)
        self.predicted = np.full(len(points.risk), np.inf)
        self._log: list[tuple[np.ndarray, str, Array, Array, Array]] = []
        self._record(np.arange(len(points.risk)), "start")

    def run(self, tol: float, maxiter: int, accelerate: bool) -> Descent:
        """Descend until each point is stationary within `tol`."""
        newton = accelerate and isinstance(self.problem, SmoothProblem)
        open_ = np.flatnonzero(~self._settled())
        for _ in range(maxiter):
            if not len(open_):
                break
            rest = self._newton(open_, tol) if newton else open_
            if len(rest):
                self._algorithm_1(rest, tol, accelerate)
            open_ = np.flatnonzero(~(self.converged | self._settled() | self._gave_up()))
        return self

    def _settled(self) -> np.ndarray:
        """Mark the points whose weights no longer depend on theta."""
        settled = (self.points.lambda_ == 0) | (self.budget.eps_bar == 0)
        self.converged |= settled
        return settled

    def _gave_up(self) -> np.ndarray:
        """Mark the points that cannot be expected to reach the lowest end so far."""
        if not (self.rivals and self.converged.any()):
            return np.zeros_like(self.converged)
        lowest = self.points.risk[self.converged].min()
        return self.points.risk > lowest + GIVE_UP * self.predicted

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

    def _newton(self, rows: np.ndarray, tol: float) -> np.ndarray:
        """Take Newton steps where they lower the risk; return the rows where they do not.

        The size of a step is measured in the metric of the Hessian, relative to the excess
        risk. Convergence is quadratic: a step of size sqrt(tol) ends within tol.
        """
        assert isinstance(self.problem, SmoothProblem)
        here = self.points if len(rows) == len(self.points.risk) else self.points[rows]
        gradient, hessian, drift = self.problem.concentrated(
            here.theta, here.losses, here.weights, here.lambda_
        )
        step, convex = newton_steps(gradient, hessian)
        sound = convex.copy()
        for i in np.flatnonzero(~convex):
            majorant = self.problem.hessian(here.theta[i], here.weights[i])
            step[i], sound[i] = bounded_step(gradient[i], hessian[i], majorant)
        decrement = np.einsum("bk,bk->b", gradient, -step)
        size = np.sqrt(np.maximum(decrement, 0.0) / np.maximum(here.excess, np.finfo(float).tiny))
        still = convex & (size <= tol)
        self.converged[rows[still]] = True
        move = np.flatnonzero(sound & ~still)
        if not len(move):
            return rows[~sound]
        self.predicted[rows[sound]] = decrement[sound]
        near = convex[move] & (size[move] <= np.sqrt(tol))
        self.converged[rows[move[near]]] = True
        slack = near * RISK_NOISE * here.excess[move]
        rtol = ROUGH_RTOL if (size[move] > ROUGH_STEP).all() else DIVERGENCE_RTOL
        for fraction in BACKTRACK:
            lower = self._try(rows[move], fraction * step[move], drift[move], slack, rtol)
            if lower.all():
                return rows[~sound]
            move, slack, near = move[~lower], slack[~lower], near[~lower]
        return np.sort(np.concatenate([rows[~sound], rows[move[~near]]]))

    def _try(
        self, rows: np.ndarray, step: Array, drift: Array, slack: Array, rtol: float
    ) -> np.ndarray:
        """Move where a step does not raise the risk by more than `slack`; tell where.

        `drift` is the gradient of ln(lambda), from which lambda after the step is guessed.
        """
        assert isinstance(self.problem, SmoothProblem)
        here = self.points if len(rows) == len(self.points.risk) else self.points[rows]
        theta = self.problem.retract(here.theta, step)
        change = np.einsum("bk,bk->b", drift, step)
        guess = here.lambda_ * np.exp(np.minimum(np.maximum(change, -1.0), 1.0))
        trial = evaluate(self.problem, theta, self.budget.of(rows), guess, rtol)
        lower = trial.risk <= here.risk + slack
        self.points.put(rows[lower], trial if lower.all() else trial[lower])
        self._record(rows[lower], "newton")
        return lower

    def _algorithm_1(self, rows: np.ndarray, tol: float, accelerate: bool) -> None:
        """Take the paper's step: refit under the weights, then weigh anew.

        As Newton's safeguard it need not refit to the end, and stops where the risk does.
        """
        here = self.points[rows]
        theta = self._refit(here.weights, here.theta, accelerate)
        trial = evaluate(self.problem, theta, self.budget.of(rows), here.lambda_)
        lower = (trial.risk <= here.risk) & (trial.risk < np.inf)
        self.points.put(rows[lower], trial if lower.all() else trial[lower])
        self._record(rows[lower], "algorithm 1")
        least = 0.0 if accelerate and isinstance(self.problem, SmoothProblem) else tol
        falling = lower & (trial.risk < here.risk - least * here.excess)
        self.converged[rows[~falling]] = True

    def _refit(self, weights: Array, theta: Array, accelerate: bool) -> Array:
        """Return the parameters of least weighted loss, or near it, shape (b, k)."""
        if accelerate:
            return self.problem.improved(weights, theta)
        if self.theta_step is None:
            return self.problem.weighted_fit(weights, theta)
        return np.array([self.theta_step(w, t) for w, t in zip(weights, theta, strict=True)])


def newton_steps(gradient: Array, hessian: Array) -> tuple[Array, np.ndarray]:
    """Return Newton's steps (b, k) and which Hessians (b, k, k) are positive definite."""
    diagonal = np.einsum("bii->bi", hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(hessian * scale[:, :, None] * scale[:, None, :])
    sound = (diagonal > 0).all(axis=-1) & (values[:, 0] > MIN_CURVATURE * values[:, -1])
    values[~sound] = 1.0
    along = ((gradient * scale)[:, None, :] @ vectors) / values[:, None, :]
    return -(vectors @ np.swapaxes(along, 1, 2))[:, :, 0] * scale, sound


def bounded_step(gradient: Array, hessian: Array, majorant: Array) -> tuple[Array, bool]:
    """Return a descent step where the Hessian is indefinite, and whether there is one.

    Algorithm 1 steps as if the curvature were that of the majorant in every direction. Here
    each direction has the size of its true curvature, but at least LEAST_RATIO of that.
    """
    try:
        root = np.linalg.cholesky(majorant)
    except np.linalg.LinAlgError:
        return np.zeros_like(gradient), False
    inverse = np.linalg.inv(root)
    ratios, vectors = np.linalg.eigh(inverse @ hessian @ inverse.T)
    directions = inverse.T @ vectors
    return -directions @ (
        (directions.T @ gradient) / np.maximum(np.abs(ratios), LEAST_RATIO)
    ), True
