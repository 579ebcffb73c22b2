"""The minimum of the risk on rows in blocks, from that on a sample of them.

Lambda is not solved for at each theta, which would take passes of its own. Both move together, by
Newton's method on the two conditions of the minimum: that the weighted gradient vanishes, and that
the divergence of the weights is what the budget allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.block_array import aligned, row_map, row_sums
from rrmstats.core.descent import Step, newton_steps
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import SmoothProblem
from rrmstats.core.tolerances import TINY

# Size of the last step, in the metric of the risk, and gap of the divergence, relative to the
# budget.
LAST_STEP = 1e-10


class Sums(NamedTuple):
    """Sums over rows at one theta and lambda, with weights w = base * exp(-l / lambda).

    Losses l are counted from an origin. `mass`, `first` and `second` are the sums of w, w l and
    w l^2; `gradient` and `cross` those of w g and w l g, with g the gradients; `curvature` is that
    of `SmoothProblem.tilted_sums`, empty where Newton's steps are too expensive.
    """

    mass: float
    first: float
    second: float
    gradient: Array
    cross: Array
    curvature: Array

    def step(self, lambda_: float, budget: float, hessian: Array | None) -> NewtonStep:
        """Return Newton's step, by a given Hessian of the concentrated risk or its own."""
        mean, gradient = self.first / self.mass, self.gradient / self.mass
        variance = self.second / self.mass - mean**2
        tempered = 0 < lambda_ < np.inf and variance > 0
        beta = 1.0 / lambda_ if tempered else 0.0
        divergence = -float(np.log(self.mass)) - beta * mean
        gap = divergence - budget if tempered else 0.0
        cross = self.cross / self.mass - mean * gradient
        drift = cross / variance if tempered else 0.0 * cross
        if hessian is None:
            hessian = self.curvature / self.mass
            hessian = hessian + beta * (np.outer(gradient, gradient) + np.outer(cross, drift))
        residual = gradient + drift * gap * lambda_ if tempered else gradient
        (step,), (convex,) = newton_steps(residual[None], hessian[None])
        if not convex:  # directions without curvature, as of tied variances, hardly move
            values, axes = np.linalg.eigh(hessian)
            size = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
            step = -axes @ ((axes.T @ residual) / size)
        change = gap * lambda_**2 / variance + float(drift @ step) if tempered else 0.0
        size = np.sqrt(abs(float(residual @ step)) / max(mean, TINY))
        return NewtonStep(step, change, float(size), gap, divergence, mean)


class NewtonStep(NamedTuple):
    """A step of theta and ln(lambda), its size in the metric of the risk, and what it starts from.

    Attributes
    ----------
    theta : ndarray, shape (k,)
    log_lambda, size : float
    gap : float
        By how much the divergence exceeds the budget.
    divergence, mean : float
        Of the weights, and their mean loss above the origin.
    """

    theta: Array
    log_lambda: float
    size: float
    gap: float
    divergence: float
    mean: float


def polished(problem: SmoothProblem, budget: Budget, found: Any, hessian: Array | None) -> Any:
    """Return the minimum on all rows near that on a sample of them.

    Parameters
    ----------
    problem : SmoothProblem
        Its rows lie in blocks.
    budget : Budget
    found : Solution
        The minimum on the sample.
    hessian : ndarray, shape (k, k), or None
        Of the concentrated risk there, where it is too expensive on all rows.

    Returns
    -------
    Solution
    """
    theta, lambda_, origin = found.theta, found.lambda_, float(np.min(found.losses))
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    target, converged = -float(np.log1p(-budget.eps_bar)), False
    # Of an exact fit, and where the sample is all rows, there is nothing to polish.
    known = lambda_ == 0 or len(found.losses) == problem.n_obs
    for _ in range(30):
        kernel = partial(_sums, problem.with_rows, theta, lambda_, origin, hessian is None)
        sums = Sums(*row_sums(kernel, base, *problem.row_arrays))
        if known:
            converged = found.converged
            break
        step = sums.step(lambda_, target, hessian)
        if step.size <= LAST_STEP and abs(step.gap) <= LAST_STEP * max(target, LAST_STEP):
            converged = found.converged
            break
        theta = problem.retract(theta, step.theta)
        lambda_ *= float(np.exp(np.clip(step.log_lambda, -1.0, 1.0)))
    if known:
        divergence, risk = found.divergence, found.risk
    else:
        divergence, risk = max(step.divergence, 0.0), origin + step.mean
    tilt = partial(_tilted, problem.with_rows, theta, lambda_, origin)
    weights = row_map(tilt, base / sums.mass, *problem.row_arrays, tail=())
    n_eff = budget.wnobs * float(np.exp(-divergence))
    return replace(
        found,
        theta=theta,
        losses=problem.losses(theta),
        weights=base if lambda_ == np.inf else weights,
        lambda_=lambda_,
        divergence=divergence,
        n_eff=n_eff,
        risk=float(risk),
        converged=converged,
        trace=(*found.trace, Step(float(risk), lambda_, n_eff, "newton")),
    )


def _sums(
    make: Callable[..., Any],
    theta: Array,
    lambda_: float,
    origin: float,
    curved: bool,
    base: Array,
    *arrays: Array,
) -> tuple[Any, ...]:
    """Return what some rows add to `Sums`."""
    part, k = make(*arrays), len(theta)
    weights, losses = _weighed(part, theta, lambda_, origin, base)
    if lambda_ == 0:
        return weights.sum(), 0.0, 0.0, np.zeros(k), np.zeros(k), np.zeros((k, k))
    beta, weighted = 1.0 / lambda_, weights * losses
    if curved:
        slopes = part.tilted_sums(theta, losses, weights, beta)
    else:
        gradients = part.gradients(theta)
        slopes = weights @ gradients, weighted @ gradients, np.empty((0, 0))
    return weights.sum(), weighted.sum(), weighted @ losses, *slopes


def _weighed(
    part: SmoothProblem, theta: Array, lambda_: float, origin: float, base: Array
) -> tuple[Array, Array]:
    """Return weights that have yet to be scaled, and losses above the origin; 0 without weight."""
    with np.errstate(over="ignore", invalid="ignore"):
        losses = part.losses(theta) - origin
        tilt = 1.0 * (losses <= 0) if lambda_ == 0 else np.exp(-losses / lambda_)
    used = (base > 0) & (tilt > 0)
    return np.where(used, base * tilt, 0.0), np.where(used, losses, 0.0)


def _tilted(
    make: Callable[..., Any],
    theta: Array,
    lambda_: float,
    origin: float,
    base: Array,
    *arrays: Array,
) -> Array:
    return _weighed(make(*arrays), theta, lambda_, origin, base)[0]
