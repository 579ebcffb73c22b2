"""The concentrated risk on rows in blocks: what one pass over them tells of some points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.block_array import aligned, row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import SmoothProblem

# Base weight of the rows at the least loss from which on all are.
ALL = 1 - 1e-12
# Step of ln(lambda) where all weights are zero.
EMPTY_STEP = 3.0


class Sums(NamedTuple):
    """Sums over rows at one theta and lambda, with weights w = base * exp(-l / lambda).

    Losses l are counted from the least that a row can have. `mass`, `first` and `second` are the
    sums of w, w l and w l^2, `tied` is the base weight of the rows at the least loss, `kept` the
    weight of each kind of rows; `gradient`, `cross` and `curvature` are those of
    `SmoothProblem.tilted_sums`, empty where `moments` take their place.
    """

    mass: float
    first: float
    second: float
    tied: float
    kept: Array
    gradient: Array
    cross: Array
    curvature: Array
    moments: Array


@dataclass(frozen=True, slots=True, eq=False)
class BlockPoint:
    """Parameters and a lambda, with what one pass tells of them.

    Attributes
    ----------
    theta : ndarray, shape (k,)
    lambda_ : float
    divergence : float
        Divergence of the weights at `lambda_`.
    gap : float
        By how much it exceeds the budget.
    risk, excess : float
        The risk at the lambda that the budget asks for, up to the square of the gap, and the
        weighted mean of the losses above the least.
    variance : float
        Variance of the losses under the weights.
    gradient, cross : ndarray, shape (k,)
        Weighted mean of the gradients, and their covariance with the losses.
    hessian : ndarray, shape (k, k)
        Of the concentrated risk.
    moments : ndarray, shape (p,)
        Weighted means of which the weighted fit is a function. Either these are known or the
        gradient, `cross` and the Hessian; the others are empty.
    """

    theta: Array
    lambda_: float
    divergence: float
    gap: float
    risk: float
    excess: float
    variance: float
    gradient: Array
    cross: Array
    hessian: Array
    moments: Array

    @property
    def settled(self) -> bool:
        """Whether the weights no longer depend on theta, or no descent starts here."""
        return self.lambda_ in (0.0, np.inf) or not np.isfinite(self.risk)

    def relative_gap(self, eps_bar: float) -> float:
        """Return the gap in units of the budget."""
        return self.gap / -float(np.log1p(-eps_bar))

    def lambda_step(self, eps_bar: float) -> float:
        """Return Newton's step of ln(lambda) at fixed theta, on the log of the divergence."""
        if not (self.variance > 0 and self.divergence > 0):
            return -1.0 if self.gap < 0 else (EMPTY_STEP if self.gap == np.inf else 1.0)
        slope = self.variance / self.lambda_**2 / self.divergence
        return float(np.log1p(self.relative_gap(eps_bar)) / slope)

    @property
    def residual(self) -> Array:
        """What is left of both conditions of the minimum, for the step of theta, shape (k,)."""
        if self.settled or not self.variance > 0:
            return self.gradient
        return self.gradient + self.cross * (self.gap * self.lambda_ / self.variance)

    def lambda_change(self, step: Array) -> float:
        """Return the change of ln(lambda) that goes with a step of theta."""
        if not self.variance > 0:
            return 0.0
        slope = self.variance / self.lambda_**2
        return float((self.gap / slope) + self.cross @ step / self.variance)


def tilt_sums(
    make: Callable[..., Any],
    theta: Array,
    lambda_: Array,
    least: Array,
    base: Array,
    *arrays: Array,
) -> tuple[Sums, ...]:
    """Return what some rows add to the sums at each of several theta, shape (b, k)."""
    part = make(*arrays)
    return tuple(_sums_at(part, *point, base) for point in zip(theta, lambda_, least, strict=True))


def _sums_at(part: SmoothProblem, theta: Array, lambda_: float, least: float, base: Array) -> Sums:
    beta = 1.0 / lambda_ if lambda_ > 0 else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        losses = part.losses(theta) - least
        weights = base * np.exp(-beta * losses)
    if not np.isfinite(losses).all():
        losses = np.where(np.isnan(losses), np.nan, np.where(weights > 0, losses, 0.0))
    weighted = weights * losses
    kinds = part.row_kinds
    kept = np.empty(0) if kinds is None else weights @ kinds
    slopes: tuple[Array, Array, Array] = np.empty(0), np.empty(0), np.empty((0, 0))
    moments = part.moment_sums(weights)
    if moments is None:
        slopes, moments = part.tilted_sums(theta, losses, weights, beta), np.empty(0)
    tied = base @ ((losses <= 0) & (weights > 0))
    total, square = weighted.sum(), weighted @ losses
    return Sums(weights.sum(), total, square, tied, kept, *slopes, moments)


def points_in_blocks(
    problem: SmoothProblem, theta: Array, lambda_: Array, budget: Budget
) -> list[BlockPoint]:
    """Return the points at some parameters (b, k) and lambdas (b,), in one pass over the rows."""
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    least = np.array([problem.least_loss(t) for t in theta])
    kernel = partial(tilt_sums, problem.with_rows, theta, lambda_, least)
    found = row_sums(kernel, base, *problem.row_arrays)
    return [
        _point(problem, t, float(lam), float(low), Sums(*sums), budget.eps_bar)
        for t, lam, low, sums in zip(theta, lambda_, least, found, strict=True)
    ]


def _point(
    problem: SmoothProblem,
    theta: Array,
    lambda_: float,
    least: float,
    sums: Sums,
    eps_bar: float,
) -> BlockPoint:
    budget = -float(np.log1p(-eps_bar))
    if sums.tied >= (1 - eps_bar) * (1 - 1e-12):
        return _exact_point(theta, least, sums)
    if sums.mass == 0:
        return _empty_point(theta, lambda_, sums)
    mean = sums.first / sums.mass
    beta = 1.0 / lambda_
    divergence = max(-float(np.log(sums.mass)) - beta * mean, 0.0)
    gap = divergence - budget if 0 < lambda_ < np.inf else 0.0
    variance = max(sums.second / sums.mass - mean**2, 0.0)
    gradient, cross = sums.gradient / sums.mass, sums.cross / sums.mass
    cross = cross - mean * gradient
    hessian = sums.curvature / sums.mass + beta * np.outer(gradient, gradient)
    if variance > 0 and beta > 0:
        hessian += beta / variance * np.outer(cross, cross)
    sound = np.isfinite(mean) and problem.keeps(sums.kept / sums.mass)
    risk = least + mean + (lambda_ * gap if gap else 0.0)
    return BlockPoint(
        theta=theta,
        lambda_=lambda_,
        divergence=divergence,
        gap=gap,
        risk=float(risk) if sound else np.inf,
        excess=float(mean),
        variance=float(variance),
        gradient=gradient,
        cross=cross,
        hessian=hessian,
        moments=sums.moments / sums.mass,
    )


def _exact_point(theta: Array, least: float, sums: Sums) -> BlockPoint:
    """Return a point at which as many rows as needed have the least loss, or all."""
    nothing = np.zeros_like(theta)
    return BlockPoint(
        theta=theta,
        lambda_=np.inf if sums.tied >= ALL and not sums.first > 0 else 0.0,
        divergence=-float(np.log(min(sums.tied, 1.0))),
        gap=0.0,
        risk=least,
        excess=0.0,
        variance=0.0,
        gradient=nothing,
        cross=nothing,
        hessian=np.zeros((len(theta), len(theta))),
        moments=np.empty(0),
    )


def _empty_point(theta: Array, lambda_: float, sums: Sums) -> BlockPoint:
    """Return a point whose lambda is so small that all weights are zero."""
    return BlockPoint(
        theta=theta,
        lambda_=lambda_,
        divergence=np.inf,
        gap=np.inf,
        risk=float(np.finfo(float).max),
        excess=float(np.finfo(float).max),
        variance=0.0,
        gradient=sums.gradient,
        cross=sums.cross,
        hessian=sums.curvature,
        moments=sums.moments,
    )


def block_weights(problem: SmoothProblem, theta: Array, lambda_: float, budget: Budget) -> Array:
    """Return the weights of all rows at given parameters and lambda, as an expression."""
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    if lambda_ == np.inf:
        return base
    least = problem.least_loss(theta)
    tilt = row_map(_tilted, problem.losses(theta), base, lambda_, least, tail=())
    return tilt / tilt.sum()


def _tilted(losses: Array, base: Array, lambda_: float, least: float) -> Array:
    if lambda_ == 0:
        return base * (losses <= least)
    with np.errstate(over="ignore"):
        return base * np.exp(-(losses - least) / lambda_)
