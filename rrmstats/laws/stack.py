"""The stacked equations of an explanation: its last steps and its influence functions.

Equations and shares of bad rows are sums over rows of functions of a row's predictors, among
which are the parameters of the mixture, so that differences in each of these make all derivatives.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.laws.em import TINY, Fit, fitted
from rrmstats.laws.mixture import GoodRows, Mixture, Probabilities
from rrmstats.laws.rows import Responses, design_gram, design_rows, design_sums

# Change of a predictor over which derivatives are differences, relative to its size.
DELTA = 1e-5
# Sizes of predictors and of parameters of a mixture from which changes of them are relative.
ONE, SMALL = 1.0, 1e-3
# Size of the last step in standard errors, and the steps that there may be.
STEP_TOL, MOST_STEPS = 1e-9, 30
# Largest relative change of a parameter of the mixture in one step.
LONGEST = 0.7
# Steps of EM where Newton's method leads nowhere, and how often both are tried.
STEPS_BETWEEN, MOST_ROUNDS = 30, 4
# Size of a step, relative to the last, up to which the derivatives of that one serve for it.
CONTRACTED = 0.1
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9


def _functions(
    mixture: Mixture, seen: Responses, predictors: Array, rows: GoodRows | None = None
) -> tuple[Array, Probabilities]:
    """Return the equations of rows, their shares of bad rows last, (p + 1, n).

    Differences may step out of the range of a parameter that is at its end.
    """
    with np.errstate(all="ignore"):
        found = mixture.probabilities(seen, predictors, rows)
        slopes = np.where(found.good > 0, found.good * found.rows.slopes, 0.0)
        others = mixture.equations(seen, found)
    others = np.where(np.isfinite(others), others, 0.0)
    return np.concatenate([slopes, others, found.bad_share[None]]), found


def _information(found: Probabilities) -> Array:
    """Return the information of rows on their predictors, were the good ones known, (q, q, n)."""
    return np.where(found.good > 0, found.good * found.rows.information, 0.0)


def _sums(
    mixture: Mixture,
    differentiated: bool,
    mass: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
) -> tuple[Array, ...]:
    """Return the sums of `Stack`, with the derivatives or without."""
    here, found = _functions(mixture, seen, predictors)
    q = len(found.rows.slopes)
    information = design_gram(designs[:q], mass * _information(found))
    sums = design_sums(designs, mass * here[:-1]), information, here[-1] @ mass
    if not differentiated:
        return sums
    # Bad rows change with their parameters alone.
    n_good, n = q + len(mixture.good.bounds[0]), len(mass)
    by_params, by_share = [], []
    for j, design in enumerate(designs):
        size = np.maximum(np.abs(predictors[j]), ONE if j < q else SMALL)
        # Each row by itself, or where rows have a part in the equations of others each column.
        along: list[tuple[Any, Array, Array]] = [(DELTA * size, np.ones(n), design)]
        if mixture.together.groups is not None:
            most = [max(float(np.abs(column).max()), TINY) for column in design.T]
            along = [
                (DELTA * float(size.max()) / unit, column, np.ones((n, 1)))
                for unit, column in zip(most, design.T, strict=True)
            ]
        for length, direction, columns in along:
            step = np.zeros_like(predictors)
            step[j] = length * direction
            ends = (
                _functions(mixture, seen, at, found.rows if j >= n_good else None)[0]
                for at in (predictors + step, predictors - step)
            )
            slopes = mass * np.subtract(*ends) / (2.0 * length)
            parts = zip(designs, slopes[:-1], strict=True)
            by_params.append(np.vstack([left.T @ (one[:, None] * columns) for left, one in parts]))
            by_share.append(slopes[-1] @ columns)
    return *sums, np.hstack(by_params), np.concatenate(by_share)


class Stack(NamedTuple):
    """The equations of all rows at a fit.

    Attributes
    ----------
    pull : ndarray, shape (k + m,)
    information : ndarray, shape (k, k)
        On theta, were the good rows known.
    share : float
        The sum of the shares of bad rows.
    jacobian : ndarray, shape (k + m, k + m)
    share_slopes : ndarray, shape (k + m,)
        The derivatives of `share`.
    free : ndarray, shape (k + m,)
        Which parameters no bound holds.
    """

    pull: Array
    information: Array
    share: float
    jacobian: Array
    share_slopes: Array
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


def stacked(fit: Fit, near: Stack | None = None) -> Stack:
    """Return the equations of a fit, in one pass over the rows.

    Those of parameters near by lend their derivatives, where they are given.
    """
    sums = fit.rows.sums(partial(_sums, fit.mixture, near is None), fit.params)
    if near is not None:
        sums = *sums, near.jacobian, near.share_slopes
    low, high = fit.bounds
    held = ((fit.params <= low) & (sums[0] <= 0)) | ((fit.params >= high) & (sums[0] >= 0))
    return Stack(*sums, ~held)


def polished(
    fit: Fit, near: Stack | None = None, tol: float = STEP_TOL
) -> tuple[Fit, Stack | None]:
    """Return the root of the stacked equations near a fit, and the equations; None if it is none.

    Parameters
    ----------
    fit : Fit
    near : Stack, optional
        The equations of similar rows near the root, whose derivatives serve while they do.
    tol : float, optional
        Size of the last step, in standard errors.
    """
    last, start, k = np.inf, fit, len(fit.theta)
    for _ in range(MOST_STEPS):
        now = stacked(fit, near)
        step = now.inverse @ np.where(now.free, now.pull, 0.0)
        unit = np.abs(fit.others) + SMALL
        errors = max(float(step[:k] @ now.information @ step[:k]), 0.0) ** 0.5
        size = max(errors, float(np.abs(step[k:] / unit).max(initial=0.0)))
        if not np.isfinite(size):
            break
        if near is not None and size > CONTRACTED * last:
            near = None  # the derivatives serve no more
            continue
        # A step that is longer than the last is halved.
        step *= 0.5 if size > last else 1.0
        step[:k] *= 1.0 / max(size, 1.0)
        step[k:] = np.clip(step[k:], -LONGEST * unit, LONGEST * unit)
        fit, near = fit.moved(step), now if size < CONTRACTED * last else None
        last = size
        if size < tol:
            return fit, now
    return start, None


def rooted(fit: Fit, near: Stack | None = None, tol: float = STEP_TOL) -> tuple[Fit, Stack | None]:
    """Return the root of the equations that steps of EM lead to; see `polished`."""
    for _ in range(MOST_ROUNDS):
        root, now = polished(fit, near, tol)
        if now is not None:
            return root, now
        fit = fitted(fit, STEPS_BETWEEN, 0.0)
    return fit, None


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
    root, inverse = inverse_root(now.information), now.inverse
    kernel = partial(_row_moves, fit.mixture, root.T @ root)
    found, share = rows.map(kernel, fit.params, (len(inverse) + 1,)), now.share / rows.total
    by_theta = np.column_stack([inverse[:k], np.zeros(k)])
    eps = found @ np.append(now.share_slopes @ inverse, 1.0) - share
    if fit.mixture.full:  # the share is its bound, whatever the rows are
        eps = 0.0 * eps
    return Moves(rows.total * (found @ by_theta.T), eps, now.free[:k], share)


def _row_moves(
    mixture: Mixture,
    inverse: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
) -> Array:
    """Return the functions of rows, those of theta with the factors of HC3, (n, k + m + 1)."""
    here, found = _functions(mixture, seen, predictors)
    weights, q = _information(found), len(found.rows.slopes)
    leverage, ends = 0.0, np.cumsum([0, *(design.shape[1] for design in designs[:q])])
    for i, left in enumerate(designs[:q]):
        for j, right in enumerate(designs[:q]):
            part = inverse[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            leverage = leverage + weights[i, j] * np.einsum("na,ab,nb->n", left, part, right)
    here[:q] /= 1.0 - np.clip(leverage, 0.0, LEVERAGE_MAX)
    return np.column_stack([design_rows(designs, here[:-1]), here[-1]])
