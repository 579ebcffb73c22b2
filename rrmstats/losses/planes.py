"""Subspaces at one order: the variance off them, and the contamination.

Squared distances of good rows from the subspace are h times a chi-square variable with g degrees
of freedom (Box's approximation; g is the codimension where the noise is spherical, fewer where it
is not). With g in place of the dimension, what holds for the size of a scatter holds for h.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rrmstats.core.consistency import efficient_order
from rrmstats.core.descent import LINEAR_POWER
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Rung
from rrmstats.core.sandwich import relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.sizes import (
    ABOVE,
    OVERFIT,
    ROBUST,
    USUAL_EFFICIENCY,
    Sample,
    budget_order,
    fixed_size,
    robust_order,
    size_ladder,
    size_order,
    tilts,
)
from rrmstats.losses.subspace import SubspaceProblem

# Efficiency of the weights within the subspace that make rows far out in it not count.
INNER_EFFICIENCY = 0.95
# Leverages are not taken to be larger.
MOST_LEVERAGE = 0.9
# Most that adding to the weight of a row may add to it once more: a tenth.
FEEDBACK = 0.2
# Turns that are short enough to be stretched to where Gaussian rows would end.
SHORT_TURN = 0.05
# Passes in which degrees of freedom and noise of a first step settle.
PASSES = 2
# Variances off the subspace below this part of the largest are zero.
NO_VARIANCE = 1e-12
# Least part of a variance that the tilt is taken to have left of it.
LEAST_LEFT = 0.2


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaneRung(Rung):
    """A subspace at one order.

    Attributes
    ----------
    point, basis : ndarray, shape (d,) and (d, q)
    noise : float
        h, the variance of a degree of freedom off the subspace, at `own_order`.
    freedom : float
        g, the degrees of freedom.
    shape_order, own_order, size_order : float
        Orders at which the subspace, `noise`, and the reported noise were determined.
    size : float
        The reported noise relative to `noise`.
    good : float
        Number of good observations.
    square : ndarray, shape (n,)
        Squared distances from the subspace in units of the reported noise, as they would be if
        the row had no part in the fit.
    kept : ndarray, shape (n,), or None
        What is left of the rows because of where they lie within the subspace.
    """

    point: Array
    basis: Array
    noise: float
    freedom: float
    shape_order: float
    own_order: float
    size_order: float
    size: float
    good: float
    square: Array
    kept: Array | None = None

    @property
    def reported(self) -> float:
        """Variance of a degree of freedom off the subspace, as it is reported."""
        return self.size * self.noise

    @property
    def lambda_(self) -> float:
        """Temperature of the weights."""
        return 2 * self.noise / (self.order - 1)


class Site(NamedTuple):
    """What the rungs of a subspace stand on.

    Attributes
    ----------
    problem : SubspaceProblem
    sample : Sample
    setting : Setting
    freedom : float
        Degrees of freedom of squared distances.
    """

    problem: SubspaceProblem
    sample: Sample
    setting: Setting
    freedom: float

    @property
    def core(self) -> Core:
        """What is estimated of each degree of freedom: a regression on scores and a constant."""
        return Core(self.freedom, self.problem.n_params, False)

    @property
    def known(self) -> Core:
        """The same where leverages make up for the regression."""
        return Core(self.freedom, 0, False)


def off_distances(
    problem: SubspaceProblem, point: Array, basis: Array, tilt: Array, sample: Sample
) -> tuple[Array, Array]:
    """Return squared distances from a subspace, and those free of their part in the fit, (n,).

    The second are divided by one minus the leverage of the row, as in a regression on its scores
    and a constant. `tilt` are weights of which the subspace is the fit, one per observation.
    """
    square = problem.losses(problem.join(point, basis))
    x = (problem.data - point) @ basis
    if problem.demean:
        x = np.c_[np.ones(len(x)), x]
    w = sample.share * tilt
    gram = x.T @ ((w / w.sum())[:, None] * x)
    unit = np.sqrt(np.diag(gram))
    unit[unit == 0] = 1.0
    inverse = np.linalg.pinv(gram / np.outer(unit, unit), hermitian=True)
    inner = np.einsum("ni,ni->n", (x / unit) @ inverse, x / unit)
    leverage = tilt * inner / (sample.total * float(w.sum()))
    return square, square / (1 - np.clip(leverage, 0.0, MOST_LEVERAGE))


def degrees_of_freedom(
    problem: SubspaceProblem,
    place: tuple[Array, Array],
    tilt: Array,
    precision: float,
    sample: Sample,
    codim: int,
) -> float:
    """Return Box's degrees of freedom (tr V)^2 / tr V^2 of the noise off a subspace.

    The variances are freed of the tilt, whose precision adds to theirs, and the trace of their
    squares of what a sample adds to it (Bai and Saranadasa).

    Parameters
    ----------
    problem : SubspaceProblem
    place : tuple of ndarray, shapes (d,) and (d, q)
        Point and basis of the subspace.
    tilt : ndarray, shape (n,)
        Weights, one per observation.
    precision : float
        They fall with exp(-precision * r^2 / 2).
    sample : Sample
    codim : int
        Variables less the dimension of the subspace: the most there can be.
    """
    point, basis = place
    w = sample.share * tilt / float(sample.share @ tilt)
    used = w > 0
    centered = (problem.data - point)[used]
    rest = (centered - (centered @ basis) @ basis.T) * np.sqrt(w[used])[:, None]
    values = np.linalg.eigvalsh(rest.T @ rest)
    values = values[values > NO_VARIANCE * values[-1]]
    if len(values) < min(int(used.sum()) - 1, problem.dim) - problem.q:
        codim = max(len(values), 1)
    per_row = w[used] ** 2 / (sample.share[used] * sample.total)
    count = max(1 / float(per_row.sum()) - problem.n_params, 2.0)
    values = values / np.maximum(1 - precision * values, LEAST_LEFT)
    total, square = float(values.sum()), float((values**2).sum())
    square = (square - total**2 / count) * count**2 / ((count - 1) * (count + 2))
    return float(np.clip(total**2 / max(square, total**2 / codim), 1.0, codim))


def first_plane(
    problem: SubspaceProblem, solution: Solution, setting: Setting, codim: int
) -> PlaneRung:
    """Return the first step with the consistent variance off it: the lowest rung.

    Parameters
    ----------
    problem : SubspaceProblem
    solution : Solution
        That of least risk.
    setting : Setting
    codim : int
        Variables less the dimension of the subspace.
    """
    sample = Sample.of(setting, problem.n_obs)
    place = problem.split(solution.theta)
    relative = relative_weights(solution.weights, setting.base(problem.n_obs))
    square = off_distances(problem, *place, relative, sample)[1]
    freedom = degrees_of_freedom(problem, place, relative, 0.0, sample, codim)
    for _ in range(PASSES):
        site = Site(problem, sample, setting, freedom)
        order = robust_order(sample.eps_bar, freedom, USUAL_EFFICIENCY)
        start = first_size(square, freedom, sample)
        noise = fixed_size(square, order, site.known, sample, start, order)
        tilt, precision = tilts(square / noise, order), (order - 1) / noise
        freedom = degrees_of_freedom(problem, place, tilt, precision, sample, codim)
    return noisy_plane(Site(problem, sample, setting, freedom), place, solution, square)


def first_size(square: Array, freedom: float, sample: Sample) -> float:
    """Return a variance of a degree of freedom that is above the consistent one."""
    typical = float(sample.share @ square) / freedom
    return ABOVE * budget_order(sample.eps_bar, freedom) * typical


def noisy_plane(
    site: Site, place: tuple[Array, Array], solution: Solution, square: Array
) -> PlaneRung:
    """Return the first step at given degrees of freedom; `square` are free of leverage."""
    sample, freedom = site.sample, site.freedom
    used = solution.weights > 0
    noise = float(solution.weights[used] @ square[used]) / freedom
    order = budget_order(sample.eps_bar, freedom)
    shape_order = min(1 + 2 * noise / solution.lambda_, order)
    start = first_size(square, freedom, sample)
    sizes = size_ladder(square, site.known, sample, start, shape_order)
    robust, best = sizes.rungs[0], sizes.best
    eps_hat = max(best.eps_hat, 0.0)
    return PlaneRung(
        order=order,
        efficiency=site.core.efficiency(order),
        params=np.empty(0),
        scale=best.scale,
        eps_hat=eps_hat,
        point=place[0],
        basis=place[1],
        noise=robust.scale,
        freedom=freedom,
        shape_order=shape_order,
        own_order=robust.order,
        size_order=best.order,
        size=best.scale / robust.scale,
        good=sample.total * (1 - min(eps_hat, sample.eps_bar)),
        square=square / best.scale,
    )


def reweighted(sample: Sample, kept: Array) -> Sample:
    """Return the sample with its rows weighted once more, and as many as these stand for."""
    share = sample.share * kept
    mass = float(share.sum())
    total = sample.total * mass**2 / float(share @ kept)
    return Sample(share / mass, total, sample.eps_bar)


def weighted_plane(problem: SubspaceProblem, weights: Array) -> tuple[Array, Array]:
    """Return point and basis of the weighted fit."""
    return problem.split(problem.weighted_fit(weights / weights.sum()))


def turned(basis: Array, other: Array) -> Array:
    """Return what takes a basis, off itself, to one of the span of another, shape (d, q)."""
    overlap = basis.T @ other
    return np.asarray(other @ np.linalg.pinv(overlap) - basis)


def fixed_plane(site: Site, order: float, start: PlaneRung, kept: Array | None) -> PlaneRung:
    """Return the subspace and the noise at the fixed point at an order, from another rung.

    Short steps are stretched by the order, which takes Gaussian rows to the end at once, as long
    as this makes the next one shorter.

    Parameters
    ----------
    site : Site
    order : float
    start : PlaneRung
    kept : ndarray, shape (n,), or None
        What counts of each row, because of where it lies within the subspace.
    """
    problem, setting = site.problem, site.setting
    counted = site.sample if kept is None else reweighted(site.sample, kept)
    place, noise = (start.point, start.basis), start.noise
    tol, converged = setting.tol**LINEAR_POWER, False
    moved, stretch = np.inf, setting.accelerate
    square = problem.losses(problem.join(*place))
    for _ in range(setting.maxiter):
        tilt = tilts(square / noise, order)
        fitted = weighted_plane(problem, counted.share * tilt)
        turn = turned(place[1], fitted[1])
        by = order if stretch and moved <= SHORT_TURN else 1.0
        basis = fitted[1] if by == 1.0 else np.linalg.qr(place[1] + by * turn)[0]
        place = place[0] + by * (fitted[0] - place[0]), basis
        square, free = off_distances(problem, *place, tilt, counted)
        last, grown = moved, noise
        noise = fixed_size(free, order, site.known, counted, noise, order)
        moved = max(float(np.abs(turn).max()), abs(float(np.log(noise / grown))))
        stretch = stretch and (moved < 0.7 * last or moved > SHORT_TURN)
        converged = moved <= tol
        if converged:
            break
    efficiency = site.core.efficiency(order) * (1 if kept is None else INNER_EFFICIENCY)
    return PlaneRung(
        order=order,
        efficiency=efficiency,
        params=np.empty(0),
        scale=noise,
        eps_hat=max(1 - site.sample.good_share(free / noise, order, site.freedom), 0.0),
        converged=bool(converged),
        point=place[0],
        basis=place[1],
        noise=noise,
        freedom=site.freedom,
        shape_order=order,
        own_order=order,
        size_order=order,
        size=1.0,
        good=site.sample.good(free / noise, order, site.freedom),
        square=free / noise,
        kept=kept,
    )


def resized_plane(site: Site, rung: PlaneRung, efficiency: float, robust: float) -> PlaneRung:
    """Return a rung that reports its noise, and the contamination, at the order for sizes."""
    order = max(rung.order, min(size_order(efficiency, site.freedom), robust))
    tilt = tilts(plane_losses(site, rung) / rung.noise, rung.order)
    if rung.kept is not None:
        tilt = tilt * rung.kept
    free = off_distances(site.problem, rung.point, rung.basis, tilt, site.sample)[1]
    noise = fixed_size(free, order, site.known, site.sample, rung.noise, rung.order)
    eps_hat = max(1 - site.sample.good_share(free / noise, order, site.freedom), 0.0)
    return replace(
        rung,
        size_order=order,
        size=noise / rung.noise,
        scale=noise,
        eps_hat=eps_hat,
        good=site.sample.good(free / noise, order, site.freedom),
        square=free / noise,
    )


def plane_losses(site: Site, rung: PlaneRung) -> Array:
    """Return squared distances from the subspace of a rung, shape (n,)."""
    return site.problem.losses(site.problem.join(rung.point, rung.basis))


def stable_order(site: Site) -> float:
    """Return the largest order at which weights do not feed on themselves or fits implode.

    Adding to the weight of a row takes its leverage, about (q + 1) / n, off its distance g, and
    multiplies its weight by exp((a - 1) g (q + 1) / (2 n)). Leverages make up for a bias of q + 1
    rows; OVERFIT bounds what is left of it.
    """
    core, total = site.core, site.sample.total
    k = core.regressors

    def excess(order: float) -> float:
        return -core.bias(order) - k - OVERFIT * total

    high = efficient_order(ROBUST, core.dim)
    sound = high if excess(high) <= 0 else float(brentq(excess, 1.0, high))
    return min(sound, 1 + FEEDBACK * total / (core.dim * k))
