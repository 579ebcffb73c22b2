"""The second step: weights exp(-loss / lambda) at a lambda fixed for efficiency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.descent import BACKTRACK, RISK_NOISE, Step, bounded_step, newton_steps
from rrmstats.core.entropy import Array
from rrmstats.core.problem import SmoothProblem


@dataclass(frozen=True, slots=True, eq=False)
class Tempered:
    """A stationary point of the tempered risk.

    Attributes
    ----------
    theta : ndarray, shape (k,)
    losses : ndarray, shape (n,)
    weights : ndarray, shape (n,)
        Proportional to ``prior * exp(-losses / lambda_)``; they sum to one.
    lambda_ : float
    converged : bool
    trace : tuple of Step
    """

    theta: Array
    losses: Array
    weights: Array
    lambda_: float
    converged: bool
    trace: tuple[Step, ...]


def tempered_fit(
    problem: SmoothProblem,
    theta: Array,
    lambda_: float,
    prior: Array | None = None,
    *,
    total: float | None = None,
    tol: float = 1e-10,
    maxiter: int = 200,
) -> Tempered:
    r"""Descend the tempered risk :math:`-\lambda \sum q_i \exp(-\ell_i / \lambda)`.

    For squared losses these are Welsch's weights, for likelihoods the gamma divergence. The
    descent ends at the stationary point next to `theta`; Newton steps, with the weighted fit as
    safeguard, and the tempered risk never rises.

    Parameters
    ----------
    problem : SmoothProblem
    theta : ndarray, shape (k,)
        Where to start: the fit of the first step.
    lambda_ : float
        Temperature, kept fixed.
    prior : ndarray, shape (n,), optional
        Prior weights, summing to one.
    total : float, optional
        Number of observations that they stand for.
    tol : float, optional
        Size of the last step in the metric of the risk.
    maxiter : int, optional
        Steps at most.

    Returns
    -------
    Tempered
    """
    n = problem.n_obs
    share = np.full(n, 1.0 / n) if prior is None else prior
    total = n if total is None else total
    losses = problem.losses(theta)
    origin = float(losses.min())
    steps: list[Step] = []

    def state(theta: Array) -> tuple[Array, Array, float]:
        losses = problem.losses(theta)
        with np.errstate(over="ignore"):
            tilt = share * np.exp(-(losses - origin) / lambda_)
        return losses, tilt, -lambda_ * float(tilt.sum())

    def record(tilt: Array, losses: Array, kind: str) -> None:
        weights = tilt / tilt.sum()
        used = weights > 0
        entropy = -float(weights[used] @ np.log(weights[used] / share[used]))
        mean = float(weights[used] @ losses[used])
        steps.append(Step(mean, lambda_, total * float(np.exp(entropy)), kind))

    losses, tilt, risk = state(theta)
    record(tilt, losses, "start")
    converged = False
    for _ in range(maxiter):
        gradient, hessian = problem.tempered(theta, tilt, lambda_)
        step, convex = (part[0] for part in newton_steps(gradient[None], hessian[None]))
        if not convex:
            step, found = bounded_step(gradient, hessian, problem.hessian(theta, tilt))
            step = step if found else np.zeros_like(gradient)
        size = float(np.sqrt(max(-gradient @ step, 0.0) / -risk))
        if convex and size <= tol:
            converged = True
            break
        near = bool(convex) and size <= np.sqrt(tol)
        for fraction in (*BACKTRACK, None):
            if fraction is None:
                trial = problem.improved(tilt[None] / tilt.sum(), theta[None])[0]
            else:
                trial = problem.retract(theta[None], fraction * step[None])[0]
            new = state(trial)
            if new[2] <= risk * (1 - near * RISK_NOISE):
                break
        moved = new[2] <= risk * (1 - near * RISK_NOISE)
        converged = near or not moved or (not convex and risk - new[2] <= RISK_NOISE * -risk)
        if moved:
            theta, (losses, tilt, risk) = trial, new
            record(tilt, losses, "algorithm 1" if fraction is None else "newton")
        if converged:
            break
    return Tempered(theta, losses, tilt / tilt.sum(), lambda_, converged, tuple(steps))
