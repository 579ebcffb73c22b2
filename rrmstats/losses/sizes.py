"""The size of a Gaussian core among other rows, and their share, from squared distances.

At any order a, ``size = a * mean of the squared distances under weights exp(-(a - 1) r^2 / 2)`` is
consistent as long as bad rows have no weight, and ``a^(d/2) * mean(weights)`` is the share of good
rows. A ladder of orders finds how efficient the size may be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, ndtr

from rrmstats.core.consistency import efficient_order, second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb
from rrmstats.core.setting import Setting
from rrmstats.losses.compression import compressed
from rrmstats.losses.gaussian import Core, Spread, difference_variance

# Efficiency of the location at the robust end of a ladder: that of order 2 in one dimension.
ROBUST = 0.65
# Rows that differ from good ones in their distance alone bias the size and nothing else. It is
# therefore taken at an order whose loss of efficiency is SIZE_LOSS times that of the location.
SIZE_LOSS = 3.0
# Efficiency of the location that the size of a first step goes with.
USUAL_EFFICIENCY = 0.95
# Rungs are at most this far apart in ln(a - 1).
RUNG_STEP = 0.22
# Relative bias of the size beyond which fits to clean data implode; simulated.
OVERFIT = 0.025
# Variances of differences grow by (1 - GROWTH * bias)^-2 in small samples; simulated.
GROWTH = 12.0
# They are at least this over the number of rows.
LEAST_VARIANCE = 0.05
# How far above its consistent size on clean data a first size starts: bad rows are to be shed, and
# not to be let in.
ABOVE = 3.0
# Steps of ln size that are short enough for Newton's method.
SHORT = 0.3
SIZE_TOL, SIZE_MAXITER = 1e-10, 500
# No size is below this, so that distances in units of it do not overflow.
LEAST_SIZE = 1e-77


class Sample(NamedTuple):
    """What every rung needs to know of the rows besides their distances.

    Attributes
    ----------
    share : ndarray, shape (n,)
        Frequency weights, summing to one.
    total : float
        Number of observations that they stand for.
    eps_bar : float
        Upper bound on the fraction of bad rows.
    """

    share: Array
    total: float
    eps_bar: float

    @classmethod
    def of(cls, setting: Setting, n: int) -> Sample:
        """Return what a setting says of n rows."""
        return cls(setting.spread(n), setting.wnobs(n), setting.eps_bar)

    def compressed(self, square: Array, typical: float) -> tuple[Array, Sample]:
        """Return few squared distances in place of many, and the sample of them.

        Both are in memory, and sums of smooth functions stay the same; see `compressed`.
        """
        few, share = compressed(square, self.share, typical)
        return few, self._replace(share=share)

    def good_share(self, square: Array, order: float, dim: float) -> float:
        """Return the fraction of observations that the Gaussian core accounts for."""
        log_weights = 0.5 * dim * np.log(order) - 0.5 * (order - 1) * square
        return float(self.share @ np.exp(log_weights))

    def good(self, square: Array, order: float, dim: float) -> float:
        """Return the number of good observations, between 1 - eps_bar of all and all."""
        found = self.good_share(square, order, dim)
        return self.total * min(1.0, max(found, 1 - self.eps_bar))

    def spent_pvalue(self, square: Array, order: float, core: Core) -> float:
        """Return the p-value that the weights of an order give up no more than eps_bar.

        Their entropy tells how many rows they leave, relative to what it is on Gaussian rows. At
        a fixed point that is `good_share`. It is less where rows lie closer together than
        Gaussian ones, as equal rows do: `good_share` then counts each of them as many.
        """
        w, dim = self.share * tilts(square, order), core.dim
        mass, least = float(w.sum()), 1 - self.eps_bar
        if not mass > 0:
            return 0.0
        fitted = dim / (order * core.overfit(order, self.good(square, order, dim)))
        narrow = 0.5 * (order - 1) * (float(w @ square) / mass - fitted)
        left = order ** (dim / 2) * mass * np.exp(narrow)
        variance = (least * share_variance(order, dim) - least**2) / self.total
        return float(ndtr((left - least) / np.sqrt(variance)))

    def least_size(self, square: Array, order: float, dim: float) -> float:
        """Return the size that gives up exactly eps_bar, or 1 where 1 does not give up so much.

        ``a^(d/2) mean(exp(-(a - 1) r^2 / (2 k))) = 1 - eps_bar`` at the size k.
        """

        def excess(log_size: float) -> float:
            return self.good_share(square * np.exp(-log_size), order, dim) - (1 - self.eps_bar)

        if excess(0.0) >= 0:
            return 1.0
        high = 1.0
        while excess(high) < 0:
            high *= 2.0
        return float(np.exp(brentq(excess, 0.0, high, xtol=1e-12)))


def tilts(square: Array, order: float) -> Array:
    """Return the weights of squared distances in units of the size, shape (n,)."""
    return np.exp(-0.5 * (order - 1) * square)


def share_variance(order: float, dim: float) -> float:
    """Return the mean square of what one Gaussian row adds to the share of good rows, times n.

    The size of the distances is estimated with it.
    """
    b, d = 2 * order - 1, dim
    size = order**2 * d * (d + 2) / b**2 - 2 * order * d**2 / b + d**2
    moves = 1 + (order - 1) * (order * d / b - d) + 0.25 * (order - 1) ** 2 * size
    return float((order**2 / b) ** (d / 2) * moves)


def budget_order(eps_bar: float, dim: float) -> float:
    """Return the order at which clean data use up the entropy budget."""
    return 1 / second_moment_ratio(eps_bar, dim)


def robust_order(eps_bar: float, dim: float, efficiency: float) -> float:
    """Return the order of the robust end: that of the budget, or of the efficiency ROBUST."""
    return min(budget_order(eps_bar, dim), efficient_order(min(ROBUST, efficiency), dim))


def size_order(efficiency: float, dim: float) -> float:
    """Return the order of the size that goes with a location of a given efficiency."""
    return efficient_order(max(1 - SIZE_LOSS * (1 - efficiency), min(ROBUST, efficiency)), dim)


def ladder_orders(first: float, last: float) -> Array:
    """Return the orders of the rungs between two ends, equally far apart in ln(a - 1)."""
    if first <= last:
        return np.array([last])
    count = 2 + int(np.log((first - 1) / (last - 1)) / RUNG_STEP)
    return 1.0 + np.geomspace(first - 1, last - 1, count)


def affordable_order(core: Core, order: float, least: float, total: float) -> float:
    """Return the largest order, between two, at which fits to so many rows do not implode."""

    def excess(a: float) -> float:
        return -core.bias(a) - OVERFIT * total

    if order <= least or excess(order) <= 0:
        return order
    return least if excess(least) >= 0 else float(brentq(excess, least, order))


def fixed_size(
    square: Array, order: float, core: Core, sample: Sample, start: float, shape_order: float
) -> float:
    """Return the size k = c a sum(w r^2) / (d sum(w)), at which no more than eps_bar is given up.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances.
    order : float
    core : Core
    sample : Sample
    start : float
        Where to start: above the answer, so that bad rows are shed and not let in.
    shape_order : float
        Order at which the location and the shape of the distances were determined.
    """
    size, dim, floored = start, core.dim, False
    unit, least = order ** (dim / 2), 1 - sample.eps_bar
    for _ in range(SIZE_MAXITER):
        scaled = square / size
        w = sample.share * tilts(scaled, order)
        mass, first = float(w.sum()), float(w @ scaled)
        if unit * mass < least * (1 - SIZE_TOL):
            size, floored = size * sample.least_size(scaled, order, dim), True
            continue
        good = sample.total * min(unit * mass, 1.0)
        ratio = core.overfit(order, good, shape_order) * order * first / (dim * mass)
        step = float(np.log(max(ratio, LEAST_SIZE)))
        if abs(step) <= SHORT:
            slope = 0.5 * (order - 1) * (float((w * scaled) @ scaled) / first - first / mass)
            step /= max(1 - slope, 0.5 / order)
        if abs(step) <= SIZE_TOL or (floored and step < 0) or size <= LEAST_SIZE:
            break
        size, floored = max(size * np.exp(step), LEAST_SIZE), False
    return float(size)


def chance(statistics: list[tuple[float, float]]) -> float:
    """Return the least p-value of several statistics times their number.

    Parameters
    ----------
    statistics : list of (float, float)
        Chi-square variables and their degrees of freedom; zero degrees mark a standard normal
        variable, of which only large values speak against agreement.
    """
    each = [chdtrc(df, x) if df else ndtr(-x) for x, df in statistics]
    return float(min(1.0, len(each) * min(each)))


class Yardstick:
    """What chance allows fits at two orders to differ by.

    Variances are those of elliptical rows, from influence functions at the distances of the most
    robust fit, or those of Gaussian rows where they are larger; and larger still in small samples.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances in units of the size, at the robust end.
    order : float
        Order of that fit.
    dim : float
    sample : Sample
    """

    def __init__(self, square: Array, order: float, dim: float, sample: Sample) -> None:
        self.square, self.dim, self.sample = square, dim, sample
        self.good = sample.good(square, order, dim)
        self._moves: dict[float, tuple[Array, Array, Array]] = {}

    def moves(self, order: float) -> tuple[Array, Array, Array]:
        """Return v, u r and a u r^2: what ln size, location and shape move by, shape (n,) each.

        The location moves by the sum of u_i z_i, the scatter off its diagonal by a times that of
        u_i z_i z_i', in the frame of the distances.
        """
        if order not in self._moves:
            power = (self.dim / 2 + 1) * np.log(order) - np.log(self.good)
            u = np.exp(power - 0.5 * (order - 1) * self.square)
            size = u * (order * self.square / self.dim - 1)
            self._moves[order] = size, u * np.sqrt(self.square), order * u * self.square
        return self._moves[order]

    def variances(self, order: float, other: float) -> Spread:
        """Return the variances of the differences of the fits at two orders."""
        count = self.sample.share * self.sample.total
        pairs = zip(self.moves(order), self.moves(other), strict=True)
        size, location, shape = (float(count @ (two - one) ** 2) for one, two in pairs)
        dim, gaussian = self.dim, difference_variance(order, other, self.dim)
        found = size, location / dim, shape / (dim * (dim + 2))
        bias = min(-Core(dim).bias(max(order, other)) / self.good, OVERFIT)
        growth, least = (1 - GROWTH * bias) ** -2, LEAST_VARIANCE / self.sample.total
        return Spread(
            *(
                growth * max(seen, known / self.good) + least
                for seen, known in zip(found, gaussian, strict=True)
            )
        )


def size_ladder(
    square: Array, core: Core, sample: Sample, start: float, shape_order: float
) -> Ladder[Rung]:
    """Return the rungs of the size at given distances; `scale` is the size.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances of a first step.
    core : Core
    sample : Sample
    start : float
        Where the first size starts, above it.
    shape_order : float
        Order of the first step.
    """
    dim = core.dim
    robust = robust_order(sample.eps_bar, dim, USUAL_EFFICIENCY)

    def fit(order: float, size: float) -> Rung:
        size = fixed_size(square, order, core, sample, size, shape_order)
        return Rung(
            order=order,
            efficiency=core.efficiency(order),
            params=np.array([size]),
            scale=size,
            eps_hat=1 - sample.good_share(square / size, order, dim),
        )

    orders = ladder_orders(robust, size_order(USUAL_EFFICIENCY, dim))
    first = fit(orders[0], start)
    yardstick = Yardstick(square / first.scale, first.order, dim, sample)

    def agreement(rung: Rung, earlier: Rung) -> float:
        spread = np.sqrt(yardstick.variances(earlier.order, rung.order).size)
        return chance([(float(np.log(rung.scale / earlier.scale) / spread), 0.0)])

    return climb(first, orders[1:], lambda a, last: fit(a, last.scale), agreement)
