"""The second step: weights exp(-loss / lambda) at a lambda fixed for efficiency."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from rrmstats.core.descent import (
    BACKTRACK,
    LINEAR_POWER,
    RISK_NOISE,
    Step,
    bounded_step,
    newton_steps,
)
from rrmstats.core.entropy import Array
from rrmstats.core.extrapolation import Anderson, change_size
from rrmstats.core.problem import SmoothProblem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting

# One Gaussian observation in KEEP is three standard deviations out; one in FADE times as many is
# four. Leaving these out costs less than a hundredth of an efficiency of 0.95; with a higher
# efficiency, whose loss is less than USUAL_LOSS, fewer may be left out.
KEEP, FADE, USUAL_LOSS = 370.0, 43.0, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Parameters with their losses, tilted weights and tempered risk."""

    theta: Array
    losses: Array
    tilt: Array
    risk: float

    @property
    def weights(self) -> Array:
        return self.tilt / self.tilt.sum()


class _Descent:
    """The tempered risk of a problem, and the steps that lower it."""

    def __init__(
        self,
        problem: SmoothProblem,
        first: Solution,
        lambda_: float,
        setting: Setting,
        kept: Array | None,
    ) -> None:
        self.problem, self.lambda_, self.setting = problem, lambda_, setting
        self.spread = setting.spread(problem.n_obs)
        self.start = self.spread if kept is None else self.spread * kept
        self.origin = float(first.losses.min())
        self.history = Anderson()

    def point(self, theta: Array) -> _Point:
        losses = self.problem.losses(theta)
        with np.errstate(over="ignore"):
            tilt = self.start * np.exp(-(losses - self.origin) / self.lambda_)
        return _Point(theta, losses, tilt, -self.lambda_ * float(tilt.sum()))

    def record(self, point: _Point, kind: str) -> Step:
        weights = point.weights
        used = weights > 0
        divergence = float(weights[used] @ np.log(weights[used] / self.spread[used]))
        mean = float(weights[used] @ point.losses[used])
        n_eff = self.setting.wnobs(self.problem.n_obs) * float(np.exp(-divergence))
        return Step(mean, self.lambda_, n_eff, kind)

    def refit(self, here: _Point) -> tuple[_Point, str, bool]:
        """Take the step of Algorithm 1; tell whether the descent has ended."""
        weights = here.weights
        if self.setting.theta_step is None:
            theta = self.problem.weighted_fit(weights[None], here.theta[None])[0]
        else:
            theta = self.setting.theta_step(weights, here.theta)
        new = self.point(theta)
        falls = new.risk < here.risk
        ended = not falls or here.risk - new.risk <= self.setting.tol * -here.risk
        return (new if falls else here), "algorithm 1", ended

    def extrapolated(self, here: _Point) -> tuple[_Point, str, bool]:
        """Take the step of Algorithm 1 from extrapolated losses, a plain one where it fails."""
        proposed = self.history.propose(here.weights)
        given = here.losses if proposed is None else proposed
        with np.errstate(over="ignore"):
            excess = np.maximum(given - self.origin, -self.lambda_)
            pull = self.start * np.exp(-excess / self.lambda_)
        new = self.point(self.problem.improved(pull[None] / pull.sum(), here.theta[None])[0])
        if new.risk > here.risk:
            self.history.forget()
            return here, "", proposed is None
        self.history.record(given, new.losses)
        size = change_size(given, new.losses, new.weights)
        kind = "algorithm 1" if proposed is None else "extrapolated"
        return new, kind, size <= self.setting.tol**LINEAR_POWER * self.lambda_

    def advance(self, here: _Point) -> tuple[_Point, str, bool]:
        """Take the step that costs least; tell its kind and whether the descent has ended."""
        if not self.setting.accelerate:
            return self.refit(here)
        return self.newton(here) if self.problem.newton_pays else self.extrapolated(here)

    def newton(self, here: _Point) -> tuple[_Point, str, bool]:
        """Take a Newton step, or that of Algorithm 1 where it does not lower the risk."""
        gradient, hessian = self.problem.tempered(here.theta, here.tilt, self.lambda_)
        step, convex = (part[0] for part in newton_steps(gradient[None], hessian[None]))
        if not convex:
            majorant = self.problem.hessian(here.theta, here.tilt)
            step, found = bounded_step(gradient, hessian, majorant)
            step = step if found else np.zeros_like(gradient)
        size = float(np.sqrt(max(-gradient @ step, 0.0) / -here.risk))
        if convex and size <= self.setting.tol:
            return here, "", True
        near = bool(convex) and size <= np.sqrt(self.setting.tol)
        most = here.risk * (1 - near * RISK_NOISE)
        for fraction in BACKTRACK:
            new = self.point(self.problem.retract(here.theta[None], fraction * step[None])[0])
            kind = "newton"
            if new.risk <= most:
                break
        else:
            theta = self.problem.improved(here.weights[None], here.theta[None])[0]
            new, kind = self.point(theta), "algorithm 1"
        moved = new.risk <= most
        flat = not convex and here.risk - new.risk <= RISK_NOISE * -here.risk
        return (new if moved else here), kind, near or not moved or flat


def tempered_fit(
    problem: SmoothProblem,
    first: Solution,
    lambda_: float,
    setting: Setting,
    kept: Array | None = None,
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
    setting : Setting
        Frequency weights, tolerance and number of steps.
    kept : ndarray, shape (n,), optional
        What the first step leaves of each observation, in [0, 1]; see `kept_by_distance`.

    Returns
    -------
    Solution
        That of the first step, with theta, losses, weights, lambda, risk and sizes replaced, and
        the steps appended to its trace.
    """
    descent = _Descent(problem, first, lambda_, setting, kept)
    here = descent.point(first.theta)
    steps = [descent.record(here, "second step")]
    converged = False
    for _ in range(setting.maxiter):
        new, kind, converged = descent.advance(here)
        if new is not here:
            here = new
            steps.append(descent.record(here, kind))
        if converged:
            break
    return replace(
        first,
        theta=here.theta,
        losses=here.losses,
        weights=here.weights,
        lambda_=lambda_,
        divergence=float(np.log(setting.wnobs(problem.n_obs) / steps[-1].n_eff)),
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
    keep = KEEP * max(1.0, USUAL_LOSS / (1 - efficiency)) ** 2.5
    kept = np.ones(len(square))
    far = square > chi2.isf(1 / keep, dim)
    place = (-chi2.logsf(square[far], dim) - np.log(keep)) / np.log(FADE)
    place = np.clip(place, 0.0, 1.0)
    kept[far] = 1.0 - place * place * (3.0 - 2.0 * place)
    return kept
