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
from rrmstats.core.problem import SmoothProblem, concentrated_slopes, tilted_part
from rrmstats.core.setting import TOL
from rrmstats.core.tolerances import TINY


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
    origin = float(np.min(found.losses))
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    # Of an exact fit, and where the sample is all rows, there is nothing to polish.
    known = found.lambda_ == 0 or len(found.losses) == problem.n_obs
    start = found.theta, found.lambda_, origin, float(budget.eps_bar)
    at = minimum_on_rows(problem, base, *start, hessian, not known)
    divergence, risk = found.divergence, found.risk
    if not known:
        divergence, risk = max(at.divergence, 0.0), origin + at.mean
    tilt = partial(_tilted, problem.with_rows, at.theta, at.lambda_, origin)
    weights = row_map(tilt, base / at.mass, *problem.row_arrays, tail=())
    n_eff = budget.wnobs * float(np.exp(-divergence))
    return replace(
        found,
        theta=at.theta,
        losses=problem.losses(at.theta),
        weights=base if at.lambda_ == np.inf else weights,
        lambda_=at.lambda_,
        divergence=divergence,
        n_eff=n_eff,
        risk=float(risk),
        converged=found.converged and (known or at.converged),
        trace=(*found.trace, Step(float(risk), at.lambda_, n_eff, "newton")),
    )


class RowsMinimum(NamedTuple):
    """A minimum on rows in blocks: total, divergence and mean loss above the origin of weights."""

    theta: Array
    lambda_: float
    mass: float
    divergence: float
    mean: float
    converged: bool


def minimum_on_rows(
    problem: SmoothProblem,
    base: Array,
    theta: Array,
    lambda_: float,
    origin: float = 0.0,
    eps_bar: float = 0.0,
    hessian: Array | None = None,
    move: bool = True,
) -> RowsMinimum:
    """Return the minimum near `theta` and `lambda_`; the weighted fit where `lambda_` is infinite.

    Weights are w = base * exp(-l / lambda), with losses l above an origin. Where `hessian` is
    given, that of the concentrated risk, none is computed. With `move` false nothing changes.
    """
    target = -float(np.log1p(-eps_bar))
    for _ in range(30):
        kernel = partial(_sums, problem.with_rows, theta, lambda_, origin, hessian is None)
        mass, first, second, gradient, cross, curvature = row_sums(
            kernel, base, *problem.row_arrays
        )
        mean, gradient = first / mass, gradient / mass
        variance = second / mass - mean**2
        tilted = 0 < lambda_ < np.inf and variance > 0
        beta = 1.0 / lambda_ if tilted else 0.0
        divergence = -float(np.log(mass)) - beta * mean
        gap = divergence - target if tilted else 0.0
        at = RowsMinimum(theta, lambda_, mass, divergence, mean, False)
        if not move:
            break
        slopes = gradient, cross / mass - mean * gradient, curvature / mass, variance, beta
        _, (own,), (drift,) = concentrated_slopes(*(np.asarray(each)[None] for each in slopes))
        residual = gradient + drift * gap * lambda_ if tilted else gradient
        step = _newton_step(residual, own if hessian is None else hessian)
        size = np.sqrt(abs(float(residual @ step)) / max(mean, TINY))
        if size <= TOL and abs(gap) <= TOL * max(target, TOL):
            return at._replace(converged=True)
        change = gap * lambda_**2 / variance + float(drift @ step) if tilted else 0.0
        theta = problem.retract(theta, step)
        lambda_ *= float(np.exp(np.clip(change, -1.0, 1.0)))
    return at


def _newton_step(residual: Array, hessian: Array) -> Array:
    """Return Newton's step; directions without curvature, as of tied variances, hardly move."""
    (step,), (convex,) = newton_steps(residual[None], hessian[None])
    if convex:
        return step
    values, axes = np.linalg.eigh(hessian)
    size = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
    return -axes @ ((axes.T @ residual) / size)


def _sums(
    make: Callable[..., Any],
    theta: Array,
    lambda_: float,
    origin: float,
    curved: bool,
    base: Array,
    *arrays: Array,
) -> tuple[Any, ...]:
    """Return the sums of w, w l, w l^2 over some rows, and those of `SmoothProblem.tilted_sums`.

    The last is zero where it is not asked for.
    """
    part, k = make(*arrays), len(theta)
    weights, losses = _weighed(part, theta, lambda_, origin, base)
    if lambda_ == 0:
        return weights.sum(), 0.0, 0.0, np.zeros(k), np.zeros(k), np.zeros((k, k))
    weighted = weights * losses
    if curved:
        slopes = tilted_part(make, theta, 1.0 / lambda_, losses, weights, *arrays)
    else:
        gradients = part.gradients(theta)
        slopes = weights @ gradients, weighted @ gradients, np.zeros((1, 1))
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
