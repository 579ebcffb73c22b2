"""The ladder of linear regression: from the first step to the efficiency that is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.stats import norm

from rrmstats.core.consistency import efficient_order, order_efficiency
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import (
    Ladder,
    climb,
    degrees_of_freedom,
    equal_pvalue,
    growth_pvalue,
)
from rrmstats.losses.noise import scale_shortfall
from rrmstats.losses.residuals import (
    FittedRows,
    NoiseRung,
    clean_scale,
    first_rung,
    fitted_rung,
    least_scale,
    scale_rung,
    tilted,
)

# The joint rungs start at the order at which eps_bar of the rows, DISTANCE standard deviations off
# on one side, move the fit by no more than 40 % of them do at order 2: 0.0064 standard deviations.
DISTANCE, BIAS = 5.0, 5.0 / 1.5 * np.exp(-6.25)
# The scale around the first step's parameters starts at a higher order yet, up to HIGHEST_ORDER,
# as far as the sample bears it: parameters per row over efficiency at most CROWDED.
HIGHEST_ORDER, CROWDED = 3.0, 0.13
# Crowding beyond which robust rungs tell more of the noise than of the parameters.
EXHAUSTED = 0.4
# Rungs from the first of these orders to the second, and from there to the efficiency asked for.
N_SCALE_RUNGS, N_RUNGS = 3, 7
# Efficiency at which the scale around the first step's parameters ends.
SCALE_EFFICIENCY = 0.95
# The second-order part of the log scale varies by this many times what theory says to that order.
OVERFIT = 2.0
# Level of the test that residuals have shorter tails than Gaussian noise.
SHORT_LEVEL = 0.005
# Efficiency to gain for which the first step, the more robust, is given up.
LEAST_GAIN = 0.05
# Why the first step is kept, in the summary.
AS_EFFICIENT = (
    "The second step is the first: the rows that it gives up use up eps_bar, and the others have "
    "nearly equal weights, so that it is about as efficient as asked."
)
SHORT_TAILS = (
    "The second step stopped at the first step: residuals of more efficient fits have shorter "
    "tails than Gaussian noise, as two groups of rows have that do not follow one regression."
)
# Why rungs are not compared.
FEW_ROWS = (
    "There are too few rows for each parameter to compare fits of different robustness: the "
    "second step is the one that was asked for. Corrupted rows that are not far off may have come "
    "back."
)
# Rows from which the variances of differences are estimated.
VARIANCE_ROWS = 5_000


def robust_order(eps_bar: float) -> float:
    """Return the order of the most robust joint rung.

    A share eps of rows d standard deviations off biases a location of order a by
    ``eps / (1 - eps) * d * exp(-d^2 / 2 * (1 - 1 / a))`` standard deviations.
    """
    odds = eps_bar / (1 - eps_bar)
    reach = 2 * np.log(max(odds * DISTANCE / BIAS, 1.0)) / DISTANCE**2
    return float(1 / (1 - reach))


def joint_orders(eps_bar: float, efficiency: float) -> Array:
    """Return the orders of the joint rungs, evenly spaced in efficiency."""
    base = order_efficiency(robust_order(eps_bar))
    return spaced_orders(min(base, efficiency), efficiency, N_RUNGS)


def scale_orders(base: float, params_per_row: float) -> Array:
    """Return the orders of the scale around the first step, down to the first joint rung's."""
    least = order_efficiency(base)
    top = np.clip(params_per_row / CROWDED, order_efficiency(HIGHEST_ORDER), least)
    return spaced_orders(float(min(top, least)), least, N_SCALE_RUNGS)


def spaced_orders(low: float, high: float, count: int) -> Array:
    """Return falling orders whose efficiencies are evenly spaced; one where both are equal."""
    steps = np.linspace(low, high, count) if low < high else np.array([high])
    return np.array([efficient_order(e) if e < 1 else 1.0 for e in steps])


def robust_scale(rows: FittedRows, order: float) -> NoiseRung:
    """Return the first step with its scale of the most robust order.

    Many corrupted rows can leave two fixed points, of which the lower is the robust one. In a
    sample with few rows per parameter the lower may be noise that was fitted, on clean data too;
    there the upper is taken.
    """
    above = crowding(rows, order) > 2 * CROWDED
    return scale_rung(rows, order, clean_scale(rows) if above else least_scale(rows, order))


def crowding(rows: FittedRows, order: float | None = None) -> float:
    """Return parameters per good row over the efficiency of an order, that of the first rung.

    It tells how far fits of that order follow the noise.
    """
    order = robust_order(rows.setting.eps_bar) if order is None else order
    return rows.params_per_row(rows.least_good) / order_efficiency(order)


class Moves:
    """How chance moves the fits of all orders, as the first rung sees it.

    Good rows are taken to be Gaussian around that rung, with its scale. Parameters move by
    ``slopes * x`` in the metric of the Gram matrix of its weights, the log scale by `log_scale`,
    both summed over the rows.

    Parameters
    ----------
    rows : FittedRows
    at : NoiseRung
        The first rung.
    """

    def __init__(self, rows: FittedRows, at: NoiseRung) -> None:
        some = rows.problem.thinned(VARIANCE_ROWS)
        self.exog, self.scale = some.exog, at.scale
        self.resid = some.endog - self.exog @ at.params
        self.share = some.share(rows.share)
        self.total, self.good = rows.total, rows.total * (1 - at.eps_hat)
        self.order = at.order
        self.n_params = rows.problem.n_params
        self._log_scales: dict[float, tuple[Array, float]] = {}

    def tilt(self, order: float) -> Array:
        """Return the weights of an order over their sum of curvatures, shape (n,)."""
        return tilted(self.resid**2, self.scale, order) * (order**1.5 / self.good)

    @cached_property
    def counts(self) -> Array:
        """How many observations each row stands for, shape (n,)."""
        return self.total * self.share

    @cached_property
    def directions(self) -> Array:
        """Rows of the design in the metric of the weighted Gram matrix, shape (n, k)."""
        mass = self.share * self.tilt(self.order)
        root = inverse_root((mass[:, None] * self.exog).T @ self.exog / mass.sum())
        return self.exog @ root.T @ root

    def log_scale(self, order: float) -> Array:
        """Return the influence functions of the log scale of an order, shape (n,)."""
        return self._log_scale(order)[0]

    def freedom(self, order: float) -> float:
        """Return the degrees of freedom of the log scale of an order."""
        return max(self._log_scale(order)[1] - self.n_params, 1.0)

    def _log_scale(self, order: float) -> tuple[Array, float]:
        if order not in self._log_scales:
            moves = self.tilt(order) * (order * self.resid**2 / self.scale - 1)
            self._log_scales[order] = moves, degrees_of_freedom(moves, self.counts)
        return self._log_scales[order]

    def overfit(self, order: float) -> float:
        """Return the standard deviation of the second-order part of the log scale.

        What the fit takes from the residuals is the shortfall times a chi-square variable of as
        many degrees as parameters, over the good rows.
        """
        spread = OVERFIT * np.sqrt(2 * self.n_params) / self.good
        return float(spread * scale_shortfall(order, order))

    def growth_pvalue(self, rung: NoiseRung, earlier: NoiseRung | None, growth: float) -> float:
        """Return the p-value that a scale has not grown since an earlier rung.

        Without one the other is the first step, whose parameters are too noisy to compare with:
        the growth since then is compared with the standard error of the new scale.
        """
        moves, more = self.log_scale(rung.order), self.overfit(rung.order)
        free = self.freedom(rung.order if earlier is None else earlier.order)
        if earlier is not None:
            moves = moves - self.log_scale(earlier.order)
            more -= self.overfit(earlier.order)
        return growth_pvalue(growth, moves, self.counts, free, more**2)

    def equal_pvalue(self, rung: NoiseRung, earlier: NoiseRung) -> float:
        """Return the p-value that two joint rungs have the same parameters."""
        slopes = self.resid * (self.tilt(rung.order) - self.tilt(earlier.order))
        free, difference = self.freedom(earlier.order), rung.params - earlier.params
        return equal_pvalue(difference, slopes[:, None] * self.directions, self.counts, free)


def scale_ladder(
    rows: FittedRows, efficiency: float | None = SCALE_EFFICIENCY
) -> Ladder[NoiseRung]:
    """Return the ladder of the scale around the first step's parameters.

    Parameters
    ----------
    rows : FittedRows
    efficiency : float, optional
        Efficiency of the last rung; None stops where the joint rungs start.
    """
    eps_bar = rows.setting.eps_bar
    orders = scale_orders(robust_order(eps_bar), rows.params_per_row(rows.least_good))
    if efficiency is not None:
        orders = np.r_[orders, joint_orders(eps_bar, efficiency)[1:]]
    few = rows.compressed()
    first = robust_scale(few, float(orders[0]))
    moves = Moves(rows, first)

    def agreement(rung: NoiseRung, earlier: NoiseRung) -> float:
        growth = float(np.log(rung.scale / earlier.scale))
        return moves.growth_pvalue(rung, None if earlier is first else earlier, growth)

    return climb(
        first, orders[1:], lambda order, last: scale_rung(few, order, last.scale), agreement
    )


def joint_ladder(rows: FittedRows, efficiency: float) -> Ladder[NoiseRung]:
    """Return the ladder of the second step: parameters and scale together.

    Parameters
    ----------
    rows : FittedRows
    efficiency : float
        Efficiency of the last rung.
    """
    first = replace(scale_ladder(rows, None).best, pvalue=np.nan)
    exhausted = crowding(rows) > EXHAUSTED
    if first.efficiency >= efficiency - LEAST_GAIN and not exhausted:
        return Ladder((first,), 0, AS_EFFICIENT)
    moves = Moves(rows, first)

    def fit(order: float, last: NoiseRung) -> NoiseRung:
        return fitted_rung(rows, order, last.params, last.scale)

    def agreement(rung: NoiseRung, earlier: NoiseRung) -> float:
        growth = float(np.log(rung.scale / earlier.scale))
        if earlier is first:
            return moves.growth_pvalue(rung, None, growth)
        equal = moves.equal_pvalue(rung, earlier)
        return min(equal, moves.growth_pvalue(rung, earlier, growth))

    orders = joint_orders(rows.setting.eps_bar, efficiency)
    if exhausted:
        rungs = climb(first, orders[[0, -1]], fit, lambda rung, earlier: 1.0).rungs
        told = tuple(replace(rung, pvalue=np.nan) for rung in rungs)
        return Ladder(told, len(told) - 1, FEW_ROWS)
    ladder = climb(first, orders, fit, agreement)
    if not short_tailed(rows, ladder):
        return ladder
    scale = least_scale(rows, first.order)
    least = first_rung(rows, first.order, scale, converged=True)
    return Ladder((least, *ladder.rungs[1:]), 0, SHORT_TAILS)


def short_tailed(rows: FittedRows, ladder: Ladder[NoiseRung]) -> bool:
    """Tell whether residuals of the joint rungs have shorter tails than Gaussian ones.

    Their scale then falls along the ladder. So it does where good and corrupted rows form two
    groups, both of which the first joint rung already trusts.
    """
    if ladder.chosen < 2:
        return False
    base, best = ladder.rungs[1], ladder.best
    moves = Moves(rows, base)
    difference = moves.log_scale(best.order) - moves.log_scale(base.order)
    spread = np.sqrt(moves.counts @ difference**2)
    return bool(np.log(best.scale / base.scale) < norm.ppf(SHORT_LEVEL) * spread)
