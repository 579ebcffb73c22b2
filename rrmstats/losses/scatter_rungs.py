"""The ladder of location and scatter: fits at ever more efficient orders.

A rung is the fixed point of location = weighted mean, scatter = c a (weighted covariance) under
weights exp(-(a - 1) r^2 / 2), r the distance in the metric of the scatter. The size that it
reports is taken once more, at an order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.consistency import efficient_order, gaussian_efficiency
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core, rung_covariance
from rrmstats.losses.matrices import FLAT, MAD_UNIT, triangular_root
from rrmstats.losses.medians import thinned, weighted_median
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_ground import Ground, Moments, lower_root, squared, whiten
from rrmstats.losses.sizes import (
    ABOVE,
    LEAST_SIZE,
    Sample,
    Yardstick,
    affordable_order,
    budget_order,
    chance,
    fixed_size,
    ladder_orders,
    robust_order,
    size_ladder,
    size_order,
)

# The first step, noisy, is a costly rung to fall back on: its p-values count for more.
FIRST = 10.0
# Steps that are short enough to be stretched to where Gaussian rows would end.
SHORT_STEP = 0.1
# Variances below this part of the squared MAD along their axis have collapsed: even 45 % of bad
# rows leave a quarter.
COLLAPSED = 0.1
# Rows for each axis that a first step needs.
ROWS_PER_AXIS = 5.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ScatterRung(Rung):
    """Location and scatter at one order.

    Attributes
    ----------
    location : ndarray, shape (d,)
    scatter : ndarray, shape (d, d)
        Consistent scatter, its size at `own_order`.
    factor : float
        The scatter relative to the weighted covariance.
    shape_order, own_order, size_order : float
        Orders at which location and shape, the size of `scatter`, and the reported size were
        determined.
    size : float
        The reported scatter relative to `scatter`.
    good : float
        Number of good observations.
    """

    location: Array
    scatter: Array
    factor: float
    shape_order: float
    own_order: float
    size_order: float
    size: float
    good: float

    @property
    def reported(self) -> Array:
        """Scatter with the size that is reported, shape (d, d)."""
        return self.size * self.scatter

    @property
    def weighted(self) -> Array:
        """Weighted covariance, shape (d, d)."""
        return self.scatter / self.factor

    @property
    def lambda_(self) -> float:
        """Temperature of the weights in units of the losses of the weighted covariance."""
        return 2 * self.factor / (self.order - 1)


def first_order(lambda_: float, eps_bar: float, dim: float) -> float:
    """Return the order of a first step, 1 / (1 - 2 / lambda), at most that of clean data."""
    most = budget_order(eps_bar, dim)
    return most if lambda_ * (most - 1) <= 2 * most else lambda_ / (lambda_ - 2)


def core_of(problem: ScatterProblem) -> Core:
    """Return what is estimated of the good rows of a problem."""
    return Core(problem.dim, int(problem.demean))


def first_scatter(problem: ScatterProblem, solution: Solution, sample: Sample) -> ScatterRung:
    """Return the first step with a consistent size: the lowest rung.

    Parameters
    ----------
    problem : ScatterProblem
    solution : Solution
        That of least risk.
    sample : Sample
    """
    location, scatter = problem.split(solution.theta)
    core, dim = core_of(problem), problem.dim
    shape_order = first_order(solution.lambda_, sample.eps_bar, dim)
    square, few = sample.compressed(problem.distances(solution.theta), dim)
    order = budget_order(sample.eps_bar, dim)
    sizes = size_ladder(square, core, few, ABOVE * order, shape_order)
    robust, best = sizes.rungs[0], sizes.best
    return ScatterRung(
        order=order,
        efficiency=gaussian_efficiency(sample.eps_bar, dim),
        params=np.empty(0),
        scale=np.nan,
        eps_hat=max(best.eps_hat, 0.0),
        location=location,
        scatter=robust.scale * scatter,
        factor=robust.scale,
        shape_order=shape_order,
        own_order=robust.order,
        size_order=best.order,
        size=best.scale / robust.scale,
        good=sample.total * (1 - min(max(best.eps_hat, 0.0), sample.eps_bar)),
    )


def consistent_scatter(problem: ScatterProblem, solution: Solution, sample: Sample) -> Array:
    """Return the scatter of a first step with a consistent size, shape (d, d)."""
    if sample.eps_bar == 0:
        return problem.split(solution.theta)[1]
    return first_scatter(problem, solution, sample).reported


def fixed_scatter(ground: Ground, order: float, start: ScatterRung) -> ScatterRung:
    """Return the fixed point at an order, from another rung.

    Plain steps shrink by 1 - 1 / a on Gaussian rows, whatever their direction; short ones are
    stretched by a, as long as this makes the next one shorter still and leaves all variances
    positive, which it does not where the scatter collapses.
    """
    core = ground.core
    location, scatter = start.location, start.scatter
    at = ground.moments(order, location, scatter)
    if not at.mass > 0:
        scatter = scatter * ground.least_size(order, (location, scatter), at.mass)
        at = ground.moments(order, location, scatter)
    moved, stretch, converged = np.inf, ground.setting.accelerate, False
    for _ in range(ground.setting.maxiter):
        factor = order * core.overfit(order, ground.good(order, at.mass))
        step, turn = fitted_change(at, factor, scatter, bool(core.regressors))
        length = max(np.abs(step).max(), np.abs(turn).max())
        by = order if stretch and length <= SHORT_STEP else 1.0
        by = by if triangular_root(scatter + by * turn) is not None else 1.0
        new = location + by * step, scatter + by * turn
        converged = bool(length <= ground.tol)
        if not converged:
            at = ground.moments(order, *new)
            size = ground.least_size(order, new, at.mass)
            if size > 1.0:
                new, factor = (new[0], size * new[1]), size * factor
                at = ground.moments(order, *new)
        last, moved = moved, max(abs(new[0] - location).max(), abs(new[1] - scatter).max()) / by
        location, scatter = new
        converged = converged or bool(moved <= ground.tol)
        if converged:
            break
        stretch = stretch and (moved < 0.7 * last or moved > SHORT_STEP)
    return resized(ground, order, location, scatter, factor, converged)


def fitted_change(at: Moments, factor: float, scatter: Array, demean: bool) -> tuple[Array, Array]:
    """Return the change to the location and scatter fitted under weights, (d,) and (d, d).

    The scatter has variances of at least FLAT, where all rows with weight are the same.
    """
    mean = at.first / at.mass * demean
    fitted = factor * (at.second / at.mass - np.outer(mean, mean)) + FLAT * np.eye(len(mean))
    return at.step * demean, fitted - scatter


def resized(
    ground: Ground, order: float, location: Array, scatter: Array, factor: float, converged: bool
) -> ScatterRung:
    """Return a rung that reports its size, and the contamination, at the order for sizes."""
    core, eps_bar = ground.core, ground.sample.eps_bar
    end = size_order(ground.efficiency, core.dim)
    own = max(order, min(end, robust_order(eps_bar, core.dim, ground.efficiency)))
    distances = squared(whiten(ground.data, location, scatter))
    square, sample = ground.sample.compressed(distances, core.dim)
    size = fixed_size(square, own, core, sample, 1.0, order)
    return ScatterRung(
        order=order,
        efficiency=core.efficiency(order),
        params=np.empty(0),
        scale=np.nan,
        eps_hat=max(1 - sample.good_share(square / size, own, core.dim), 0.0),
        converged=converged,
        spent=sample.spent_pvalue(square, order, core),
        location=location,
        scatter=scatter,
        factor=factor,
        shape_order=order,
        own_order=order,
        size_order=own,
        size=size,
        good=sample.good(square / size, own, core.dim),
    )


def rung_agreement(rung: ScatterRung, earlier: ScatterRung, yardstick: Yardstick) -> float:
    """Return the p-value that a rung agrees with an earlier one, in the frame of the earlier.

    Location, shape and size are compared; the size one-sided, because bad rows that come back
    make it larger.
    """
    dim, spread = len(rung.location), yardstick.variances(earlier.order, rung.order)
    root = np.linalg.inv(lower_root(earlier.scatter))
    moved, ratio = root @ (rung.location - earlier.location), root @ rung.scatter @ root.T
    size = max(float(np.trace(ratio)) / dim, LEAST_SIZE)
    turn = ratio - size * np.eye(dim)
    statistics = [
        (np.log(size) / np.sqrt(spread.size), 0.0),
        (float(moved @ moved) / spread.location, float(dim)),
    ]
    if dim > 1:
        turned = float((turn**2).sum()) / (2 * spread.shape)
        statistics.append((turned, dim * (dim + 1) / 2 - 1))
    return chance(statistics)


def first_agreement(rung: ScatterRung, first: ScatterRung, yardstick: Yardstick) -> float:
    """Return the p-value that the size of a rung agrees with that of the first step.

    The shape of the first step is too noisy to compare; its noise makes the determinant too
    small by a known amount, and less well known by half the bias of its size.
    """
    dim, good, order = len(rung.location), yardstick.good, first.shape_order
    noise = rung_covariance(order, order, dim).shape
    noise -= rung_covariance(rung.order, rung.order, dim).shape
    bias = 0.25 * (dim - 1) * (dim + 2) / dim * noise / good
    sizes = [np.linalg.slogdet(r.scatter)[1] / dim for r in (first, rung)]
    variance = yardstick.variances(first.own_order, rung.order).size
    variance += (0.5 * Core(dim).bias(order) / good) ** 2
    return min(1.0, FIRST * chance([((sizes[1] - sizes[0] - bias) / np.sqrt(variance), 0.0)]))


def scatter_ladder(
    problem: ScatterProblem, first: ScatterRung, setting: Setting, efficiency: float
) -> Ladder[ScatterRung]:
    """Return the rungs from a first step to a given efficiency, or to where they agree.

    Parameters
    ----------
    problem : ScatterProblem
    first : ScatterRung
        Of `first_scatter`.
    setting : Setting
    efficiency : float
        Efficiency of the location on clean Gaussian data.
    """
    sample, core, dim = Sample.of(setting, problem.n_obs), core_of(problem), problem.dim
    root, center = lower_root(first.scatter), first.location
    ground = Ground(whiten(problem.data, center, first.scatter), core, sample, setting, efficiency)
    zero = replace(first, location=np.zeros(dim), scatter=np.eye(dim))
    square, few = sample.compressed(squared(ground.data), dim)
    yardstick = Yardstick(square, first.own_order, dim, few)

    def agreement(rung: ScatterRung, earlier: ScatterRung) -> float:
        if earlier is zero:
            return first_agreement(rung, zero, yardstick)
        return rung_agreement(rung, earlier, yardstick)

    ladder = climb(
        zero,
        orders_to(core, sample, efficiency),
        lambda order, last: fixed_scatter(ground, order, last),
        agreement,
    )
    rungs = [
        replace(r, location=center + root @ r.location, scatter=root @ r.scatter @ root.T)
        for r in ladder.rungs
    ]
    return replace(ladder, rungs=tuple(rungs))


def orders_to(core: Core, sample: Sample, efficiency: float) -> Array:
    """Return the orders above the first step; none where that is as efficient already."""
    last = efficient_order(efficiency, core.dim)
    if budget_order(sample.eps_bar, core.dim) <= last:
        return np.empty(0)
    robust = robust_order(sample.eps_bar, core.dim, efficiency)
    return ladder_orders(affordable_order(core, robust, last, sample.total), last)


def mad_variances(values: Array, share: Array) -> tuple[Array, Array]:
    """Return weighted medians of columns, and squares of their normal-consistent MADs.

    Those of some of the rows, where there are many.
    """
    values, share = thinned(values, share)
    center = weighted_median(values, share)
    return center, (MAD_UNIT * weighted_median(np.abs(values - center), share)) ** 2


def collapsed(problem: ScatterProblem, rung: ScatterRung, sample: Sample) -> bool:
    """Tell whether a variance of a fit has collapsed, or had too few rows not to.

    Fewer than ROWS_PER_AXIS rows an axis, once eps_bar is given up, are too few for a first
    step: half of them lie near some hyperplane.
    """
    values, vectors = np.linalg.eigh(rung.reported)
    typical = mad_variances(problem.data @ vectors, sample.share)[1]
    few = (1 - sample.eps_bar) * sample.total < ROWS_PER_AXIS * problem.dim
    return bool(few or (values < COLLAPSED * typical).any())


def restarted(problem: ScatterProblem, setting: Setting, efficiency: float) -> ScatterRung:
    """Return the fit at the efficient end, from medians and MADs of the coordinates."""
    sample, core, dim = Sample.of(setting, problem.n_obs), core_of(problem), problem.dim
    center, variances = mad_variances(problem.data, sample.share)
    if not problem.demean:
        center = np.zeros(dim)
    unit = np.sqrt(np.maximum(variances, FLAT))
    ground = Ground((problem.data - center) / unit, core, sample, setting, efficiency)
    start = resized(
        ground, efficient_order(efficiency, dim), np.zeros(dim), np.eye(dim), 1.0, True
    )
    rung = fixed_scatter(ground, start.order, start)
    return replace(
        rung,
        location=center + unit * rung.location,
        scatter=rung.scatter * np.outer(unit, unit),
    )
