"""The second step: weights exp(-loss / lambda) at a lambda fixed for efficiency."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from rrmstats.core.descent import BACKTRACK, RISK_NOISE, Step, bounded_step, newton_steps
from rrmstats.core.entropy import Array
from rrmstats.core.minimise import Solution
from rrmstats.core.problem import SmoothProblem

# One Gaussian observation in KEEP is three standard deviations out; one in FADE times as many is
# four. To leave these out costs less than a hundredth of an efficiency of 0.95; a higher one
# affords less.
KEEP, FADE, AFFORDED = 370.0, 43.0, 0.05


def tempered_fit(
    problem: SmoothProblem,
    first: Solution,
    lambda_: float,
    prior: Array | None = None,
    *,
    kept: Array | None = None,
    tol: float = 1e-10,
    maxiter: int = 200,
) -> Solution:
    r"""Descend the tempered risk :math:`-\lambda \sum q_i \exp(-\ell_i / \lambda)`.

    For squared losses these are Welsch's weights, for likelihoods the gamma divergence. The
    descent ends at the stationary point next to the first step's; it takes Newton steps, with
    the weighted fit as safeguard, and the tempered risk never rises.

    Parameters
    ----------
    problem : SmoothProblem
    first : Solution
        The fit of the first step, where the descent starts.
    lambda_ : float
        Temperature, kept fixed.
    prior : ndarray, shape (n,), optional
        Prior weights, summing to one.
    kept : ndarray, shape (n,), optional
        What the first step leaves of each observation, in [0, 1]; see `kept_by_distance`.
    tol : float, optional
        Size of the last step in the metric of the risk.
    maxiter : int, optional
        Steps at most.

    Returns
    -------
    Solution
        That of the first step, with theta, losses, weights, lambda, risk and sizes replaced, and
        the steps appended to its trace.
    """
    n = problem.n_obs
    share = np.full(n, 1.0 / n) if prior is None else prior
    start = share if kept is None else share * kept
    total = first.n_eff * float(np.exp(first.divergence))
    theta, origin = first.theta, float(first.losses.min())
    steps: list[Step] = []

    def state(theta: Array) -> tuple[Array, Array, float]:
        losses = problem.losses(theta)
        with np.errstate(over="ignore"):
            tilt = start * np.exp(-(losses - origin) / lambda_)
        return losses, tilt, -lambda_ * float(tilt.sum())

    def record(tilt: Array, losses: Array, kind: str) -> None:
        weights = tilt / tilt.sum()
        used = weights > 0
        divergence = float(weights[used] @ np.log(weights[used] / share[used]))
        mean = float(weights[used] @ losses[used])
        steps.append(Step(mean, lambda_, total * float(np.exp(-divergence)), kind))

    losses, tilt, risk = state(theta)
    record(tilt, losses, "second step")
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
    return replace(
        first,
        theta=theta,
        losses=losses,
        weights=tilt / tilt.sum(),
        lambda_=lambda_,
        divergence=float(np.log(total / steps[-1].n_eff)),
        n_eff=steps[-1].n_eff,
        risk=steps[-1].risk,
        converged=first.converged and converged,
        trace=(*first.trace, *steps),
    )


def kept_by_distance(square: Array, dim: int, efficiency: float) -> Array:
    """Return what is left of observations at given distances from the fit, in [0, 1].

    Weights of high efficiency fall so slowly that a group of outliers not very far off can draw
    the fit to itself. Observations that the first step finds as improbable as a Gaussian one
    four standard deviations out are therefore left out, and fade from three on.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances in units of the first step's scale.
    dim : int
        Dimension of the Gaussian part of a loss; 1 for regression.
    efficiency : float
        Efficiency that the second step is to have.
    """
    keep = KEEP * max(1.0, AFFORDED / (1 - efficiency)) ** 2.5
    place = np.clip((-chi2.logsf(square, dim) - np.log(keep)) / np.log(FADE), 0.0, 1.0)
    return np.asarray(1.0 - place * place * (3.0 - 2.0 * place))
