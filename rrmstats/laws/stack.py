"""The stacked equations of an explanation: its last steps and its influence functions.

Equations and their derivatives are sums over rows of functions of a row's predictors and of a few
common parameters, so that differences in each of these make the whole Jacobian.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.laws.em import Fit, fitted
from rrmstats.laws.mixture import Mixture, Parameters
from rrmstats.laws.rows import design_gram, design_rows, design_sums

# Change of a predictor or parameter over which derivatives are differences, relative to its size.
DELTA = 1e-5
# Size of a parameter from which changes of it are relative.
SMALL = 1e-3
# Size of the last step in standard errors, and the steps that there may be.
STEP_TOL, MOST_STEPS = 1e-9, 30
# Largest relative change of a parameter besides theta in one step.
LONGEST = 0.7
# Steps of EM where Newton's method leads nowhere, and how often both are tried.
STEPS_BETWEEN, MOST_ROUNDS = 30, 4
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9


class RowEquations(NamedTuple):
    """Equations of rows.

    Attributes
    ----------
    slopes : ndarray, shape (q, n)
        Those of the predictors, times the probability to be good.
    others : ndarray, shape (m, n)
        Those of the other parameters.
    """

    slopes: Array
    others: Array


def row_equations(
    mixture: Mixture, at: Parameters, endog: Array, size: Array, predictors: Array
) -> RowEquations:
    """Return the equations of rows at predictors (q, n)."""
    found = mixture.probabilities(endog, size, predictors, at)
    slopes = np.where(found.good > 0, found.good * found.rows.slopes, 0.0)
    with np.errstate(all="ignore"):
        others = mixture.equations(endog, size, found, at)
    return RowEquations(slopes, np.where(np.isfinite(others), others, 0.0))


def _changes(
    mixture: Mixture, at: Parameters, endog: Array, size: Array, predictors: Array
) -> tuple[list[RowEquations], list[RowEquations]]:
    """Return the derivatives of the equations in each predictor and each other parameter."""
    by_predictor, by_other = [], []
    flat = at.flat()
    for j, one in enumerate(predictors):
        step = np.zeros_like(predictors)
        step[j] = DELTA * np.maximum(np.abs(one), 1.0)
        high = row_equations(mixture, at, endog, size, predictors + step)
        low = row_equations(mixture, at, endog, size, predictors - step)
        by_predictor.append(_ratio(high, low, 2.0 * step[j]))
    for j, value in enumerate(flat):
        change = np.zeros_like(flat)
        change[j] = DELTA * max(abs(value), SMALL)
        high = row_equations(mixture, at.like(flat + change), endog, size, predictors)
        low = row_equations(mixture, at.like(flat - change), endog, size, predictors)
        by_other.append(_ratio(high, low, 2.0 * float(change[j])))
    return by_predictor, by_other


def _ratio(high: RowEquations, low: RowEquations, step: Array | float) -> RowEquations:
    return RowEquations((high.slopes - low.slopes) / step, (high.others - low.others) / step)


def _sums(
    mixture: Mixture,
    at: Parameters,
    mass: Array,
    endog: Array,
    size: Array,
    predictors: Array,
    designs: tuple[Array, ...],
) -> tuple[Array, Array, Array]:
    """Return the equations (k + m,), their Jacobian, and the information on theta (k, k)."""
    here = row_equations(mixture, at, endog, size, predictors)
    by_predictor, by_other = _changes(mixture, at, endog, size, predictors)
    pull = np.concatenate([design_sums(designs, mass * here.slopes), here.others @ mass])
    bends = np.array([change.slopes for change in by_predictor]).swapaxes(0, 1)
    upper = design_gram(designs, mass * bends)
    right = [design_sums(designs, mass * change.slopes) for change in by_other]
    below = np.array([change.others for change in by_predictor]).swapaxes(0, 1)
    left = design_sums(designs, mass * below)
    corner = [change.others @ mass for change in by_other]
    m, k = len(corner), len(upper)
    jacobian = np.zeros((k + m, k + m))
    jacobian[:k, :k] = upper
    if m:
        jacobian[:k, k:], jacobian[k:, :k] = np.transpose(right), left
        jacobian[k:, k:] = np.transpose(corner)
    found = mixture.probabilities(endog, size, predictors, at)
    used = found.good > 0
    information = np.where(used, mass * found.good * found.rows.information, 0.0)
    return pull, jacobian, design_gram(designs, information)


class Stack(NamedTuple):
    """The equations of all rows at a fit.

    Attributes
    ----------
    pull : ndarray, shape (k + m,)
    jacobian : ndarray, shape (k + m, k + m)
    information : ndarray, shape (k, k)
        On theta, were the good rows known.
    free : ndarray, shape (k + m,)
        Which parameters no bound holds.
    """

    pull: Array
    jacobian: Array
    information: Array
    free: np.ndarray

    @property
    def inverse(self) -> Array:
        """Minus the inverse of the Jacobian of the free parameters, zero for others."""
        found = np.zeros_like(self.jacobian)
        places = np.ix_(self.free, self.free)
        unit = np.sqrt(np.maximum(np.abs(np.diag(self.jacobian)[self.free]), 1e-300))
        scaled = self.jacobian[places] / np.outer(unit, unit)
        found[places] = -np.linalg.pinv(scaled) / np.outer(unit, unit)
        return found


def stacked(fit: Fit) -> Stack:
    """Return the equations of a fit, in one pass over the rows."""
    kernel = partial(_sums, fit.mixture, fit.at)
    pull, jacobian, information = fit.rows.sums(kernel, fit.theta)
    low, high = fit.bounds
    where = np.concatenate([fit.theta, fit.at.flat()])
    held = ((where <= low) & (pull <= 0)) | ((where >= high) & (pull >= 0))
    return Stack(pull, jacobian, information, ~held)


def polished(fit: Fit) -> tuple[Fit, bool]:
    """Return the root of the stacked equations near a fit, and whether it is one."""
    last, start = np.inf, fit
    for _ in range(MOST_STEPS):
        now = stacked(fit)
        step = now.inverse @ np.where(now.free, now.pull, 0.0)
        size = _size(fit, now, step)
        if not np.isfinite(size):
            break
        moved = fit.moved(*_shortened(fit, step, size, size > last))
        if size < STEP_TOL:
            return moved, True
        fit, last = moved, size
    return start, False


def _shortened(fit: Fit, step: Array, size: float, turned: bool) -> tuple[Array, Array]:
    """Return a step of theta and one of the others, none longer than is safe."""
    k, most = len(fit.theta), LONGEST * (np.abs(fit.at.flat()) + SMALL)
    length = min(1.0, 1.0 / size) * (0.5 if turned else 1.0)
    return length * step[:k], np.clip((0.5 if turned else 1.0) * step[k:], -most, most)


def _size(fit: Fit, now: Stack, step: Array) -> float:
    """Return the size of a step: in standard errors of theta, or relative for the others."""
    k, others = len(fit.theta), fit.at.flat()
    square = float(step[:k] @ now.information @ step[:k])
    by_theta = float(np.sqrt(max(square, 0.0)))
    relative = np.abs(step[k:]) / (np.abs(others) + SMALL)
    return max(by_theta, float(relative.max(initial=0.0)), float(np.finfo(float).tiny))


def rooted(fit: Fit) -> tuple[Fit, bool]:
    """Return the root of the stacked equations that steps of EM lead to, and whether it is one."""
    for _ in range(MOST_ROUNDS):
        root, converged = polished(fit)
        if converged:
            return root, True
        fit = fitted(fit, STEPS_BETWEEN, 0.0)
    return fit, False


class Moves(NamedTuple):
    """Influence functions: estimates move by their mean over the observations.

    Attributes
    ----------
    theta : ndarray, shape (n, k)
        With the factors of HC3.
    eps : ndarray, shape (n,)
        Of the share of bad rows.
    known : ndarray, shape (k,)
        Which parameters of theta no bound holds.
    share : float
        The share of bad rows.
    """

    theta: Array
    eps: Array
    known: np.ndarray
    share: float


def moves(fit: Fit) -> Moves:
    """Return the influence functions of a fit, at a root of its equations."""
    now, rows, k = stacked(fit), fit.rows, len(fit.theta)
    inverse = now.inverse
    eps, slopes = rows.sums(partial(_share_sums, fit.mixture, fit.at), fit.theta)
    eps, by_all = float(eps) / rows.total, slopes @ inverse
    root = inverse_root(now.information)
    kernel = partial(_row_moves, fit.mixture, fit.at, root.T @ root)
    equations = rows.map_designs(kernel, fit.theta, (len(inverse),))
    share = rows.map(partial(_bad_share, fit.mixture, fit.at), fit.theta)
    theta = rows.total * (equations @ inverse[:k].T)
    return Moves(theta, share - eps + equations @ by_all, now.free[:k], eps)


def _row_moves(
    mixture: Mixture,
    at: Parameters,
    inverse: Array,
    endog: Array,
    size: Array,
    predictors: Array,
    designs: tuple[Array, ...],
) -> Array:
    """Return the equations of rows, those of theta with the factors of HC3, shape (n, k + m)."""
    here = row_equations(mixture, at, endog, size, predictors)
    found = mixture.probabilities(endog, size, predictors, at)
    weights = np.where(found.good > 0, found.good * found.rows.information, 0.0)
    leverage = np.zeros(len(endog))
    ends = np.cumsum([0, *(design.shape[1] for design in designs)])
    for i, left in enumerate(designs):
        for j, right in enumerate(designs):
            part = inverse[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            leverage += weights[i, j] * np.einsum("na,ab,nb->n", left, part, right)
    factor = 1.0 / (1.0 - np.clip(leverage, 0.0, LEVERAGE_MAX))
    return np.hstack([design_rows(designs, here.slopes * factor), here.others.T])


def _bad_share(
    mixture: Mixture, at: Parameters, endog: Array, size: Array, predictors: Array
) -> Array:
    return mixture.probabilities(endog, size, predictors, at).bad_share


def _share_sums(
    mixture: Mixture,
    at: Parameters,
    mass: Array,
    endog: Array,
    size: Array,
    predictors: Array,
    designs: tuple[Array, ...],
) -> tuple[float, Array]:
    """Return the sum of the shares of bad rows, and its derivatives in all parameters."""

    def share(moved: Array, others: Array) -> Array:
        return _bad_share(mixture, at.like(others), endog, size, moved)

    flat = at.flat()
    slopes, others = np.zeros(predictors.shape), np.zeros(len(flat))
    for j, one in enumerate(predictors):
        step = np.zeros_like(predictors)
        step[j] = DELTA * np.maximum(np.abs(one), 1.0)
        slopes[j] = share(predictors + step, flat) - share(predictors - step, flat)
        slopes[j] /= 2.0 * step[j]
    for j, value in enumerate(flat):
        change = np.zeros_like(flat)
        change[j] = DELTA * max(abs(value), SMALL)
        found = share(predictors, flat + change) - share(predictors, flat - change)
        others[j] = float(mass @ found) / (2.0 * float(change[j]))
    total = float(mass @ share(predictors, flat))
    return total, np.concatenate([design_sums(designs, mass * slopes), others])
