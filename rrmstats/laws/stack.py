"""The stacked equations of an explanation: its last steps and its influence functions.

Equations and shares of bad rows are sums over rows of functions of a row's predictors, among
which are the parameters of the mixture, so that differences in each of these make all derivatives.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.laws.em import Fit, fitted
from rrmstats.laws.mixture import Mixture, Probabilities
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
# Leverage past which a row's influence is not raised further.
LEVERAGE_MAX = 0.9


def _functions(
    mixture: Mixture, seen: Responses, predictors: Array
) -> tuple[Array, Probabilities]:
    """Return the equations of rows, their shares of bad rows last, (p + 1, n).

    Differences may step out of the range of a parameter that is at its end.
    """
    with np.errstate(all="ignore"):
        found = mixture.probabilities(seen, predictors)
        slopes = np.where(found.good > 0, found.good * found.rows.slopes, 0.0)
        others = mixture.equations(seen, found)
    others = np.where(np.isfinite(others), others, 0.0)
    return np.concatenate([slopes, others, found.bad_share[None]]), found


def _information(found: Probabilities) -> Array:
    """Return the information of rows on their predictors, were the good ones known, (q, q, n)."""
    return np.where(found.good > 0, found.good * found.rows.information, 0.0)


def _sums(
    mixture: Mixture,
    mass: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
) -> tuple[Array, Array, Array, float, Array]:
    """Return the sums of `Stack`."""
    here, found = _functions(mixture, seen, predictors)
    q = len(found.rows.slopes)
    slopes = _row_slopes if mixture.together.groups is None else _group_slopes
    jacobian, share_slopes = slopes(mixture, mass, seen, predictors, designs, q)
    return (
        design_sums(designs, mass * here[:-1]),
        jacobian,
        design_gram(designs[:q], mass * _information(found)),
        float(here[-1] @ mass),
        share_slopes,
    )


def _row_slopes(
    mixture: Mixture,
    mass: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
    q: int,
) -> tuple[Array, Array]:
    """Return the derivatives of the sums of equations, and of shares, each row by itself."""
    slopes = np.empty((len(predictors) + 1, len(predictors), len(seen.endog)))
    for j, one in enumerate(predictors):
        step = np.zeros_like(predictors)
        step[j] = DELTA * np.maximum(np.abs(one), ONE if j < q else SMALL)
        high = _functions(mixture, seen, predictors + step)[0]
        low = _functions(mixture, seen, predictors - step)[0]
        slopes[:, j] = (high - low) / (2.0 * step[j])
    return design_gram(designs, mass * slopes[:-1]), design_sums(designs, mass * slopes[-1])


def _group_slopes(
    mixture: Mixture,
    mass: Array,
    seen: Responses,
    predictors: Array,
    designs: tuple[Array, ...],
    q: int,
) -> tuple[Array, Array]:
    """Return the same where rows have a part in the equations of others: one by parameter."""
    columns, shares = [], []
    for j, design in enumerate(designs):
        unit = np.maximum(np.abs(predictors[j]).max(), ONE if j < q else SMALL)
        for column in design.T:
            length = DELTA * unit / max(float(np.abs(column).max()), np.finfo(float).tiny)
            step = np.zeros_like(predictors)
            step[j] = length * column
            high = _functions(mixture, seen, predictors + step)[0]
            low = _functions(mixture, seen, predictors - step)[0]
            slopes = mass * (high - low) / (2.0 * length)
            columns.append(design_sums(designs, slopes[:-1]))
            shares.append(float(slopes[-1].sum()))
    return np.column_stack(columns), np.array(shares)


class Stack(NamedTuple):
    """The equations of all rows at a fit.

    Attributes
    ----------
    pull : ndarray, shape (k + m,)
    jacobian : ndarray, shape (k + m, k + m)
    information : ndarray, shape (k, k)
        On theta, were the good rows known.
    share : float
        The sum of the shares of bad rows.
    share_slopes : ndarray, shape (k + m,)
        Its derivatives.
    free : ndarray, shape (k + m,)
        Which parameters no bound holds.
    """

    pull: Array
    jacobian: Array
    information: Array
    share: float
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


def stacked(fit: Fit) -> Stack:
    """Return the equations of a fit, in one pass over the rows."""
    pull, jacobian, information, share, slopes = fit.rows.sums(
        partial(_sums, fit.mixture), fit.params
    )
    low, high = fit.bounds
    held = ((fit.params <= low) & (pull <= 0)) | ((fit.params >= high) & (pull >= 0))
    return Stack(pull, jacobian, information, share, slopes, ~held)


def polished(fit: Fit) -> tuple[Fit, bool]:
    """Return the root of the stacked equations near a fit, and whether it is one."""
    last, start, k = np.inf, fit, len(fit.theta)
    for _ in range(MOST_STEPS):
        now = stacked(fit)
        step = now.inverse @ np.where(now.free, now.pull, 0.0)
        unit = np.abs(fit.others) + SMALL
        errors = max(float(step[:k] @ now.information @ step[:k]), 0.0) ** 0.5
        size = max(errors, float(np.abs(step[k:] / unit).max(initial=0.0)))
        if not np.isfinite(size):
            break
        # A step that is longer than the last is halved.
        step *= 0.5 if size > last else 1.0
        step[:k] *= 1.0 / max(size, 1.0)
        step[k:] = np.clip(step[k:], -LONGEST * unit, LONGEST * unit)
        fit, last = fit.moved(step), size
        if size < STEP_TOL:
            return fit, True
    return start, False


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
