"""The ladder of a subspace: ever more efficient fits, as long as they agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.consistency import efficient_order
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, climb
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Spread
from rrmstats.losses.moment_problem import moment_sums
from rrmstats.losses.planes import (
    INNER_EFFICIENCY,
    PlaneRung,
    Site,
    fixed_plane,
    is_fed,
    plane_losses,
    resized_plane,
    stable_order,
)
from rrmstats.losses.scatter_rungs import FIRST
from rrmstats.losses.sizes import (
    Sample,
    Yardstick,
    budget_order,
    chance,
    ladder_orders,
    robust_order,
    tilts,
)
from rrmstats.losses.subspace import SubspaceProblem


class Moments(NamedTuple):
    """Mean (d,) and covariance (d, d) of the rows of the core."""

    mean: Array
    cov: Array


def core_moments(data: Array, weights: Array) -> Moments:
    """Return the moments of rows under weights, shape (n,)."""
    mass, first, second = row_sums(moment_sums, data, weights)
    mean = first / mass
    return Moments(mean, second / mass - np.outer(mean, mean))


def plane_distance(one: PlaneRung, two: PlaneRung, core: Moments) -> float:
    """Return the mean squared distance, over the core, from one subspace to another."""
    onto = one.basis @ one.basis.T
    apart = onto @ (core.mean - one.point) + one.point - two.point
    spread = one.basis - two.basis @ (two.basis.T @ one.basis)
    apart = apart - two.basis @ (two.basis.T @ apart)
    inside = one.basis.T @ core.cov @ one.basis
    return float(apart @ apart + np.trace(spread @ inside @ spread.T))


def plane_agreement(
    rung: PlaneRung, earlier: PlaneRung, spread: Spread, core: Moments, regressors: int
) -> float:
    """Return the p-value that a subspace agrees with an earlier one.

    The distance between the two, over the rows of the core, is that of g regressions on the
    scores and a constant.
    """
    moved = plane_distance(earlier, rung, core) / (earlier.noise * spread.location)
    grown = float(np.log(rung.noise / earlier.noise) / np.sqrt(spread.size))
    return chance([(grown, 0.0), (moved, rung.freedom * regressors)])


def first_agreement(rung: PlaneRung, first: PlaneRung, spread: Spread, site: Site) -> float:
    """Return the p-value that the noise of a rung agrees with that of the first step.

    One where the first step is too close to its own rows to tell the noise.
    """
    if is_fed(first, site.problem.n_params, site.sample.total):
        return 1.0
    bias = site.core.bias(first.shape_order) / rung.good
    error = np.sqrt(spread.size + (0.5 * bias) ** 2)
    grown = float(np.log(rung.noise / first.noise) / error)
    return min(1.0, FIRST * chance([(grown, 0.0)]))


def subspace_ladder(
    problem: SubspaceProblem,
    first: PlaneRung,
    within: Array,
    setting: Setting,
    efficiency: float,
) -> Ladder[PlaneRung]:
    """Return the rungs from a first step to a given efficiency, or to where they agree.

    The rung above the first step counts only rows that are not far out within its subspace
    either: a group of bad rows can have turned that towards itself. The others count all rows,
    from the robust to the efficient end.

    Parameters
    ----------
    problem : SubspaceProblem
    first : PlaneRung
        Of `first_plane`.
    within : ndarray, shape (n,)
        Squared distances of the scores from their center, in the metric of their scatter.
    setting : Setting
    efficiency : float
        Efficiency of the subspace on clean Gaussian data.
    """
    site = Site(problem, Sample.of(setting, problem.n_obs), setting, first.freedom)
    robust, last = ends(site, efficiency)
    if robust is None:
        return Ladder((first,), 0)
    kept = tilts(within, efficient_order(INNER_EFFICIENCY, problem.q))
    one = resized_plane(site, fixed_plane(site, robust, first, kept), efficiency, robust)
    square = plane_losses(site, one) / one.noise
    squares, few = site.sample.compressed(square, site.freedom)
    yardstick = Yardstick(squares, one.order, site.freedom, few)
    core = core_moments(problem.data, tilts(square, one.order) * kept * site.sample.share)

    def fit(order: float, last: PlaneRung) -> PlaneRung:
        if last is first:
            return one
        return resized_plane(site, fixed_plane(site, order, last, None), efficiency, robust)

    def agreement(rung: PlaneRung, earlier: PlaneRung) -> float:
        spread = yardstick.variances(earlier.own_order, rung.order)
        if earlier is first:
            return first_agreement(rung, first, spread, site) if rung is one else 1.0
        if earlier.kept is not None:
            more = 1 / (INNER_EFFICIENCY * yardstick.good)
            spread = Spread(*(variance + more for variance in spread))
        return plane_agreement(rung, earlier, spread, core, problem.n_params)

    return climb(first, [robust, *ladder_orders(robust, last)], fit, agreement)


def ends(site: Site, efficiency: float) -> tuple[float | None, float]:
    """Return the orders of the robust and the efficient end.

    The robust one is None where the first step is as efficient as was asked for.
    """
    eps_bar, freedom, most = site.sample.eps_bar, site.freedom, stable_order(site)
    last = efficient_order(efficiency, freedom)
    if budget_order(eps_bar, freedom) <= last:
        return None, last
    last = min(last, most)
    return max(last, min(robust_order(eps_bar, freedom, efficiency), most)), last
