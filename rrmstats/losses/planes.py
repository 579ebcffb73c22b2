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

from rrmstats.core.block_array import row_sums
from rrmstats.core.consistency import efficient_order
from rrmstats.core.descent import LINEAR_POWER
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Rung
from rrmstats.core.sandwich import relative_weights
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.moment_problem import first_sums, moment_sums, normalized
from rrmstats.losses.off_plane import Moments, degrees_of_freedom, off_distances
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
# Most that adding to the weight of a row may add to it once more: a tenth.
FEEDBACK = 0.2
# Feedback beyond which a first step passes so close to the rows of its fit that their distances
# say nothing of the others'.
MOST_FEEDBACK = 0.5
# Turns that are short enough to be stretched to where Gaussian rows would end.
SHORT_TURN = 0.05
# Passes in which degrees of freedom and noise of a first step settle.
PASSES = 2


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
    squares, few = sample.compressed(square, solution.risk)
    for _ in range(PASSES):
        site = Site(problem, sample, setting, freedom)
        order = robust_order(sample.eps_bar, freedom, USUAL_EFFICIENCY)
        start = first_size(squares, freedom, few)
        noise = fixed_size(squares, order, site.known, few, start, order)
        tilt, precision = tilts(square / noise - freedom, order), (order - 1) / noise
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
    noise = float(solution.weights @ square) / freedom
    order = budget_order(sample.eps_bar, freedom)
    shape_order = min(1 + 2 * noise / solution.lambda_, order)
    squares, few = sample.compressed(square, solution.risk)
    start = first_size(squares, freedom, few)
    sizes = size_ladder(squares, site.known, few, start, shape_order)
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
    mass, square = map(float, row_sums(first_sums, share, kept))
    return Sample(share / mass, sample.total * mass**2 / square, sample.eps_bar)


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
        moments = Moments(*row_sums(moment_sums, problem.data, counted.share * tilt))
        fitted = problem.split(problem.moment_fit(normalized(moments)))
        turn = turned(place[1], fitted[1])
        by = order if stretch and moved <= SHORT_TURN else 1.0
        basis = fitted[1] if by == 1.0 else np.linalg.qr(place[1] + by * turn)[0]
        place = place[0] + by * (fitted[0] - place[0]), basis
        square, free = off_distances(problem, *place, tilt, counted, moments)
        last, grown = moved, noise
        squares, few = counted.compressed(free, noise * site.freedom)
        noise = fixed_size(squares, order, site.known, few, noise, order)
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
        eps_hat=max(1 - few.good_share(squares / noise, order, site.freedom), 0.0),
        converged=bool(converged),
        point=place[0],
        basis=place[1],
        noise=noise,
        freedom=site.freedom,
        shape_order=order,
        own_order=order,
        size_order=order,
        size=1.0,
        good=few.good(squares / noise, order, site.freedom),
        square=free / noise,
        kept=kept,
    )


def resized_plane(site: Site, rung: PlaneRung, efficiency: float, robust: float) -> PlaneRung:
    """Return a rung that reports its noise, and the contamination, at the order for sizes."""
    order = max(rung.order, min(size_order(efficiency, site.freedom), robust))
    free = rung.square * rung.noise
    if rung.kept is not None:
        tilt = tilts(plane_losses(site, rung) / rung.noise, rung.order) * rung.kept
        free = off_distances(site.problem, rung.point, rung.basis, tilt, site.sample)[1]
    squares, few = site.sample.compressed(free, rung.noise * site.freedom)
    spent = few.spent_pvalue(squares / rung.noise, rung.order, site.known)
    noise = fixed_size(squares, order, site.known, few, rung.noise, rung.order)
    eps_hat = max(1 - few.good_share(squares / noise, order, site.freedom), 0.0)
    return replace(
        rung,
        size_order=order,
        size=noise / rung.noise,
        scale=noise,
        eps_hat=eps_hat,
        spent=spent,
        good=few.good(squares / noise, order, site.freedom),
        square=free / noise,
    )


def plane_losses(site: Site, rung: PlaneRung) -> Array:
    """Return squared distances from the subspace of a rung, shape (n,)."""
    return site.problem.losses(site.problem.join(rung.point, rung.basis))


def is_fed(first: PlaneRung, regressors: int, total: float) -> bool:
    """Tell whether the weights of a first step feed on themselves so much that it misleads.

    See `stable_order`; `regressors` are q + 1, and `total` is the number of observations.
    """
    return first.freedom * regressors * (first.order - 1) > MOST_FEEDBACK * total


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
