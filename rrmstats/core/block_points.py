"""The concentrated risk on rows in blocks: what one pass over them tells of some points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.block_array import aligned, row_map, row_reduce
from rrmstats.core.blocks import added
from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import SmoothProblem


class Sums(NamedTuple):
    """Sums over rows at one theta and lambda, with weights w = base * exp(-l / lambda).

    Losses l are counted from `least`, that of these rows. `mass`, `first` and `second` are the
    sums of w, w l and w l^2, `kept` is the weight of each kind of rows and `whole` its base
    weight, `tied` the base weight of the rows at the least loss and of each kind of them;
    `gradient`, `cross` and `curvature` are those of `SmoothProblem.tilted_sums`, empty where
    `moments` take their place.
    """

    least: float
    mass: float
    first: float
    second: float
    tied: Array
    kept: Array
    whole: Array
    gradient: Array
    cross: Array
    curvature: Array
    moments: Array

    def above(self, least: float, beta: float) -> Sums:
        """Return the sums with losses counted from a lower one."""
        shift = self.least - least
        if shift == 0:
            return self
        if not np.isfinite(shift):  # no row has a finite loss
            return self._replace(least=least)
        factor = np.exp(-beta * shift)
        mass, first = factor * self.mass, factor * self.first
        gradient = factor * self.gradient
        return Sums(
            least,
            mass,
            first + shift * mass,
            factor * self.second + shift * (2.0 * first + shift * mass),
            0.0 * self.tied,
            factor * self.kept,
            self.whole,
            gradient,
            factor * self.cross + shift * gradient,
            factor * self.curvature,
            factor * self.moments,
        )


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
    least, mass : float
        The least loss, and the sum of the weights before they are scaled to sum to one.
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
    least: float
    mass: float

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
            return -1.0 if self.gap < 0 else 1.0
        slope = self.variance / self.lambda_**2 / self.divergence
        return float(np.log1p(self.relative_gap(eps_bar)) / slope)

    @property
    def residual(self) -> Array:
        """What is left of both conditions of the minimum, for the step of theta, shape (k,)."""
        if self.settled:
            return self.gradient
        return self.gradient + self.cross * (self.gap * self.lambda_ / self.variance)

    def lambda_change(self, step: Array) -> float:
        """Return the change of ln(lambda) that goes with a step of theta."""
        slope = self.variance / self.lambda_**2
        return float((self.gap / slope) + self.cross @ step / self.variance)


def tilt_sums(
    make: Callable[..., Any], theta: Array, lambda_: Array, base: Array, *arrays: Array
) -> tuple[Sums, ...]:
    """Return what some rows add to the sums at each of several theta, shape (b, k)."""
    part = make(*arrays)
    return tuple(_sums_at(part, *point, base) for point in zip(theta, lambda_, strict=True))


def _sums_at(part: SmoothProblem, theta: Array, lambda_: float, base: Array) -> Sums:
    beta = inverse(lambda_)
    with np.errstate(over="ignore", invalid="ignore"):
        losses = part.losses(theta)
        if not (base > 0).all():
            losses = np.where(base > 0, losses, np.nanmax(losses))
        least = float(losses.min(where=np.isfinite(losses), initial=np.inf))
        losses = losses - (least if least < np.inf else 0.0)
        weights = base * np.exp(-beta * losses)
    if not np.isfinite(losses).all():
        losses = np.where(np.isnan(losses), np.nan, np.where(weights > 0, losses, 0.0))
    weighted = weights * losses
    kinds = np.empty((len(base), 0)) if part.row_kinds is None else part.row_kinds
    tied = base * ((losses <= 0) & (weights > 0))
    tied_kinds = np.r_[tied.sum(), tied @ kinds]
    slopes: tuple[Array, Array, Array] = np.empty(0), np.empty(0), np.empty((0, 0))
    moments = part.moment_sums(weights)
    if moments is None:
        slopes, moments = part.tilted_sums(theta, losses, weights, beta), np.empty(0)
    totals = weights.sum(), weighted.sum(), weighted @ losses
    return Sums(least, *totals, tied_kinds, weights @ kinds, base @ kinds, *slopes, moments)


def inverse(lambda_: float) -> float:
    """Return 1 / lambda, zero for no temperature."""
    return 1.0 / lambda_ if lambda_ > 0 else 0.0


def joined_sums(lambda_: Array, parts: list[tuple[Sums, ...] | None]) -> tuple[Sums, ...] | None:
    """Return the sums of several parts of the rows as those of all, at each of several points."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    joined = []
    for sums, lam in zip(zip(*found, strict=True), lambda_, strict=True):
        least = min(part.least for part in sums)
        same = [tuple(part.above(least, inverse(lam)))[1:] for part in sums]
        joined.append(Sums(least, *added(same)))
    return tuple(joined)


def points_in_blocks(
    problem: SmoothProblem, theta: Array, lambda_: Array, budget: Budget
) -> list[BlockPoint]:
    """Return the points at some parameters (b, k) and lambdas (b,), in one pass over the rows."""
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    kernel = partial(tilt_sums, problem.with_rows, theta, lambda_)
    found = row_reduce(kernel, partial(joined_sums, lambda_), base, *problem.row_arrays)
    return [
        _point(problem, t, float(lam), sums, budget.eps_bar)
        for t, lam, sums in zip(theta, lambda_, found, strict=True)
    ]


def _point(
    problem: SmoothProblem,
    theta: Array,
    lambda_: float,
    sums: Sums,
    eps_bar: float,
) -> BlockPoint:
    budget = -float(np.log1p(-eps_bar))
    if sums.tied[0] >= 1 - 1e-12:  # equal losses have equal weights
        lambda_ = np.inf
    elif sums.tied[0] >= (1 - eps_bar) * (1 - 1e-12):
        return _exact_point(problem, theta, sums)
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
    sound = np.isfinite(mean) and problem.keeps(sums.kept / sums.mass, sums.whole)
    risk = sums.least + mean + (lambda_ * gap if gap else 0.0)
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
        least=sums.least,
        mass=float(sums.mass),
    )


def _exact_point(problem: SmoothProblem, theta: Array, sums: Sums) -> BlockPoint:
    """Return a point at which as many rows as needed have the least loss."""
    nothing, tied = np.zeros_like(theta), float(sums.tied[0])
    return BlockPoint(
        theta=theta,
        lambda_=0.0,
        divergence=-float(np.log(min(tied, 1.0))),
        gap=0.0,
        risk=sums.least if problem.keeps(sums.tied[1:] / tied, sums.whole) else np.inf,
        excess=0.0,
        variance=0.0,
        gradient=nothing,
        cross=nothing,
        hessian=np.zeros((len(theta), len(theta))),
        moments=np.empty(0),
        least=sums.least,
        mass=tied,
    )


def block_weights(problem: SmoothProblem, point: BlockPoint, budget: Budget) -> Array:
    """Return the weights of all rows at a point, as an expression."""
    base = aligned(budget.uniform(problem.n_obs), problem.blocks)
    if point.lambda_ == np.inf:
        return base
    kernel = partial(_tilted, problem.with_rows, point.theta, point.lambda_, point.least)
    return row_map(kernel, base / point.mass, *problem.row_arrays, tail=())


def _tilted(
    make: Callable[..., Any],
    theta: Array,
    lambda_: float,
    least: float,
    base: Array,
    *arrays: Array,
) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        losses = make(*arrays).losses(theta)
        if lambda_ == 0:
            return base * (losses <= least)
        losses = np.where(base > 0, losses, np.inf)
        return base * np.exp(-(losses - least) / lambda_)
