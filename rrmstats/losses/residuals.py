"""Scale of residuals some of which are corrupted: fixed points under weights of an order.

Weights exp(-(a - 1) r^2 / (2 scale)) narrow Gaussian noise by the factor a, whatever else is in
the data, as long as corrupted rows have no weight. The scale that reproduces itself, a times the
weighted mean of the squares, is therefore that of the good rows, and the weights tell how many
these are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.consistency import order_efficiency, second_moment_ratio
from rrmstats.core.descent import LINEAR_POWER
from rrmstats.core.design import solve_gram
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Rung
from rrmstats.core.linear import weighted_gram
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.compression import compressed
from rrmstats.losses.noise import residual_factor, scale_factor, share_factor
from rrmstats.losses.squares import SquaresProblem

# Accuracy and number of steps of a root in the log scale.
ROOT_TOL, ROOT_MAXITER = 1e-10, 500
# Changes below which steps are lengthened to what Newton's would be on Gaussian residuals.
NEAR = 0.05
# Change below which a fit has converged for all purposes, when two fixed points about to merge
# slow it down.
SETTLED = 1e-5
# Longest step of a log scale.
FARTHEST_STEP = 5.0
# A log scale lower by d lowers the mean weight by at most d / e.
MOST_SLOPE = np.exp(-1.0)
# Scale, relative to the risk of the first step, below which the rows of weight fit exactly.
COLLAPSED = 1e-10


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseRung(Rung):
    """Parameters of a regression with the variance of its noise, in the units of the problem.

    Attributes
    ----------
    fitted : float
        Order of the fit that left the residuals; `order` is that of the scale.
    """

    fitted: float


class WeightedFit(NamedTuple):
    """A weighted least squares fit, from where it started.

    Attributes
    ----------
    step : ndarray, shape (k,)
        To the fit.
    gram : ndarray, shape (k, k)
        Weighted Gram matrix of the design.
    pull : ndarray, shape (k,)
        Weighted sum of the design times the residuals at the start.
    total, square : float
        Sum of the weights, and weighted sum of the squared residuals at the start.
    """

    step: Array
    gram: Array
    pull: Array
    total: float
    square: float

    def moment_after(self, step: Array) -> float:
        """Return the weighted mean of the squared residuals a step away."""
        left = self.square - 2 * step @ self.pull + step @ self.gram @ step
        return max(float(left), float(np.finfo(float).eps) * self.square) / self.total


def fit_sums(exog: Array, weights: Array, resid: Array) -> tuple[Array, ...]:
    """Return what some rows add to the sums of a `WeightedFit`."""
    weighted = weights * resid
    return weighted_gram(exog, weights), weighted @ exog, weights.sum(), weighted @ resid


@dataclass(frozen=True, slots=True, eq=False)
class FittedRows:
    """Rows of a regression with their first step.

    Attributes
    ----------
    problem : SquaresProblem
    setting : Setting
    first : Solution
        The first step, of positive risk.
    share : ndarray, shape (n,)
        Weight of each row in the data; they sum to one.
    total : float
        Number of observations that they stand for.
    """

    problem: SquaresProblem
    setting: Setting
    first: Solution
    share: Array
    total: float

    @classmethod
    def of(cls, problem: SquaresProblem, first: Solution, setting: Setting) -> FittedRows:
        """Return the rows of a problem."""
        n = problem.n_obs
        return cls(problem, setting, first, setting.spread(n), setting.wnobs(n))

    def compressed(self) -> FittedRows:
        """Return few rows with the same scales around the first step's parameters."""
        losses, share = compressed(self.first.losses, self.share, self.first.risk)
        return replace(self, first=replace(self.first, losses=losses), share=share)

    @property
    def tol(self) -> float:
        """Last change of the log scale, and of the fit in units of the noise."""
        return float(self.setting.tol**LINEAR_POWER)

    @property
    def least_good(self) -> float:
        """Least share of good rows."""
        return 1 - self.setting.eps_bar

    def params_per_row(self, good: float) -> float:
        """Return parameters per good row, given their share."""
        return self.problem.n_params / (self.total * good)

    def good(self, total: float, order: float, factor: float = 1.0) -> float:
        """Return the share of good rows, given the mean of weights that are at most one."""
        found = np.sqrt(order) * total / factor
        return float(np.clip(found, self.least_good, 1.0))

    def squares(self, theta: Array) -> Array:
        """Return the squared residuals, shape (n,), with no regard to rounding."""
        resid = self.problem.endog - self.problem.predictor(theta)
        return resid * resid

    def weighted_fit(self, theta: Array, scale: float, order: float) -> WeightedFit:
        """Return the fit under the weights of an order, in one pass over the rows."""
        problem = self.problem
        resid = problem.endog - problem.predictor(theta)
        weights = self.share * tilted(resid * resid, scale, order)
        if problem.blocks is None:
            gram, pulls = problem.gram(weights, (weights * resid)[None])
            pull, total, square = pulls[0], weights.sum(), (weights * resid) @ resid
        else:
            gram, pull, total, square = row_sums(fit_sums, problem.exog, weights, resid)
        step, sound = solve_gram(gram, pull)
        if not sound:
            step = problem.weighted_fit(weights) - theta
        return WeightedFit(step, gram, pull, float(total), float(square))

    def gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.gram(weights, np.empty((0, len(weights))))[0]

    def first_order(self, scale: float) -> float:
        """Return the order of the first step's weights exp(-r^2 / lambda) at a scale."""
        return 1.0 + 2.0 * scale / self.first.lambda_


def tilted(squares: Array | float, scale: float, order: float) -> Array:
    """Return the weights of an order, at most one, shape (n,)."""
    return np.exp(-0.5 * (order - 1) / scale * squares)


def budget_scale(squares: Array, share: Array, order: float, good: float, start: float) -> float:
    """Return the scale at which the weights leave exactly a share of good rows.

    The root of ``log(sqrt(a) * sum(share * w)) = log(good)`` in the log scale, found by Newton's
    steps within a bracket.

    Parameters
    ----------
    squares, share : ndarray, shape (n,)
        Squared residuals, and the weights of the rows in the data.
    order : float
    good : float
        Share of good rows, below ``sqrt(order)``.
    start : float
    """
    low, high, at = -np.inf, np.inf, np.log(start)
    tiny = np.finfo(float).tiny
    for _ in range(ROOT_MAXITER):
        exponent = 0.5 * (order - 1) * squares * np.exp(-at)
        mass = share * np.exp(-exponent)
        total = max(float(mass.sum()), tiny)
        gap = float(np.log(np.sqrt(order) * total / good))
        if abs(gap) < ROOT_TOL or high - low < ROOT_TOL:
            break
        low, high = (at, high) if gap < 0 else (low, at)
        step = -gap / max(float(mass @ exponent) / total, 0.1)
        at += float(np.clip(step, -FARTHEST_STEP, FARTHEST_STEP))
        if not low < at < high:
            at = 0.5 * (low + high)
    return float(np.exp(at))


def log_growth(
    rows: FittedRows,
    squares: Array,
    total: float,
    moment: float,
    scale: float,
    order: float,
    fitted: float,
    length: float,
) -> float:
    """Return the change of the log scale in one step, which never ends below the budget's scale.

    Parameters
    ----------
    rows : FittedRows
    squares : ndarray, shape (n,)
        Squared residuals.
    total, moment : float
        Mean weight of the rows at the scale, and the weighted mean of the squares.
    scale, order, fitted : float
        The scale, its order and that of the fit.
    length : float
        Factor of the step; `order` makes it Newton's on Gaussian residuals.
    """
    root = float(np.sqrt(order))
    taken = rows.params_per_row(rows.good(total, order))
    ratio = scale_factor(taken, order, fitted) * order * moment / scale
    growth = length * float(np.log(max(ratio, COLLAPSED)))
    least = min(rows.least_good * share_factor(taken, order, fitted), 1.0)
    if root * (total - MOST_SLOPE * max(-growth, 0.0)) > least:
        return growth
    found = scale * np.exp(growth)
    if root * float(rows.share @ tilted(squares, found, order)) >= least:
        return growth
    few, share = compressed(squares, rows.share, scale)
    return float(np.log(budget_scale(few, share, order, least, scale) / scale))


def fitted_rung(rows: FittedRows, order: float, theta: Array, scale: float) -> NoiseRung:
    """Return parameters and scale of an order together, from a start.

    Where a part of the rows fits exactly the scale may fall without end; such a rung is spent.
    """
    length, change, start = 1.0, np.inf, scale
    squares = rows.squares(theta)
    for _ in range(rows.setting.maxiter):
        fit = rows.weighted_fit(theta, scale, order)
        step = length * fit.step
        theta = theta + step
        squares = rows.squares(theta)
        moment = fit.moment_after(step)
        growth = log_growth(rows, squares, fit.total, moment, scale, order, order, length)
        scale *= float(np.exp(growth))
        if scale < COLLAPSED * rows.first.risk:
            return replace(make_rung(rows, order, order, theta, squares, start, False), spent=0.0)
        shift = float(np.sqrt(step @ fit.gram @ step / scale))
        last, change = change, max(abs(growth), shift)
        length = order if change < min(NEAR, last) else 1.0
        if change < rows.tol:
            break
    return make_rung(rows, order, order, theta, squares, scale, change < max(rows.tol, SETTLED))


def scale_rung(rows: FittedRows, order: float, scale: float) -> NoiseRung:
    """Return the scale of an order around the first step's parameters, from a start."""
    squares, length, change, start = rows.first.losses, 1.0, np.inf, scale
    for _ in range(rows.setting.maxiter):
        mass, fitted = rows.share * tilted(squares, scale, order), rows.first_order(scale)
        total = float(mass.sum())
        moment = float(mass @ squares) / total
        growth = log_growth(rows, squares, total, moment, scale, order, fitted, length)
        scale *= float(np.exp(growth))
        if scale < COLLAPSED * rows.first.risk:
            return replace(first_rung(rows, order, start, converged=False), spent=0.0)
        last, change = change, abs(growth)
        length = order if change < min(NEAR, last) else 1.0
        if change < rows.tol:
            break
    return first_rung(rows, order, scale, change < max(rows.tol, SETTLED))


def first_rung(rows: FittedRows, order: float, scale: float, converged: bool) -> NoiseRung:
    """Return the first step with a scale of an order."""
    first, fitted = rows.first, rows.first_order(scale)
    return make_rung(rows, order, fitted, first.theta, first.losses, scale, converged)


def make_rung(
    rows: FittedRows,
    order: float,
    fitted: float,
    theta: Array,
    squares: Array,
    scale: float,
    converged: bool,
) -> NoiseRung:
    """Return a rung with its efficiency and estimated share of corrupted rows."""
    total = float(rows.share @ tilted(squares, scale, order))
    taken = rows.params_per_row(rows.good(total, order))
    good = rows.good(total, order, share_factor(taken, order, fitted))
    return NoiseRung(
        order=order,
        fitted=fitted,
        efficiency=order_efficiency(fitted),
        params=theta,
        scale=scale,
        eps_hat=1 - good,
        converged=converged,
    )


def least_scale(rows: FittedRows, order: float) -> float:
    """Return the least scale of an order, around the first step, that the budget allows."""
    start, few = 0.5 * rows.first.lambda_, rows.compressed()
    return budget_scale(few.first.losses, few.share, order, rows.least_good, start)


def clean_scale(rows: FittedRows) -> float:
    """Return the scale of the first step if all rows were good, the largest that it can be."""
    order = 1 / second_moment_ratio(rows.setting.eps_bar)
    return residual_factor(rows.params_per_row(1.0), order) * order * rows.first.risk


def eps_hat_error(rows: FittedRows, rung: NoiseRung) -> float:
    """Return the standard error of the estimated share of corrupted rows.

    From the influence function of ``sqrt(a) * mean(w)``, the scale estimated with it. Which rows
    are corrupted counts as random too.
    """
    order, good = rung.order, 1 - rung.eps_hat
    known = rung.params is rows.first.theta
    square = (rows.first.losses if known else rows.problem.losses(rung.params)) / rung.scale
    tilt = tilted(square, 1.0, order)
    log_scale = tilt * (order * square - 1) / (good * order**-1.5)
    moves = np.sqrt(order) * tilt - good + good * (order - 1) / (2 * order) * log_scale
    return float(np.sqrt(rows.share @ moves**2 / rows.total))
