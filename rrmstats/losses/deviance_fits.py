"""Generalized linear models at a fixed order of the weights: parameters and dispersion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.losses.tilted_rows import Sample, TiltedRows

# Longest step of a linear predictor, in the root mean square over the rows with weight.
LONGEST = 1.0
# Size of the last step in standard errors, in units of the tolerance, and at least.
STEP_SIZE, LEAST_STEP = 100.0, 1e-9
# Steps of a fit: they converge in a few, and a fit that does not never will.
MOST_STEPS = 100
# Change of a log dispersion, and of a fit in standard errors, that has converged for all purposes.
SETTLED = 1e-4
# Change of the log dispersion below which steps are lengthened to about Newton's.
NEAR = 0.05
# Accuracy, number and longest of the steps of a root in the log dispersion.
ROOT_TOL, ROOT_MAXITER, FARTHEST_STEP = 1e-10, 100, 3.0
# A log dispersion lower by d lowers a weight by at most d / e.
MOST_SLOPE = np.exp(-1.0)


@dataclass(frozen=True, slots=True, eq=False)
class TiltedFit:
    """Parameters and dispersion of an order.

    Attributes
    ----------
    rows : TiltedRows
        The rows at both.
    converged : bool
    """

    rows: TiltedRows
    converged: bool


def tilted_fit(sample: Sample, theta: Array, dispersion: float, order: float) -> TiltedFit:
    """Return the consistent fit of an order at a dispersion, from a start theta (k,)."""
    tol = max(STEP_SIZE * sample.setting.tol, LEAST_STEP)
    rows, change, length = sample.at(theta, dispersion, order), np.inf, 1.0
    before: Array = np.zeros_like(theta)
    for _ in range(min(MOST_STEPS, sample.setting.maxiter)):
        step, size = rows.step()
        reach = float(np.sqrt(rows.product(step, step)))
        last, change = change, size
        # Steps that turn back overshoot; those that do not, cross where the equation is flat.
        over = change > 0.9 * last and rows.product(step, before) < 0
        length, before = max(0.5 * length, 0.05) if over else min(1.0, 1.5 * length), step
        factor = length * min(1.0, LONGEST / max(reach, np.finfo(float).tiny))
        theta = theta + factor * step
        rows = sample.at(theta, dispersion, order)
        if change < tol:
            break
    return TiltedFit(rows, change < max(tol, SETTLED))


def grown(rows: TiltedRows, fitted: float) -> float:
    """Return the change of the log dispersion, which never ends below what the budget allows."""
    growth = rows.log_growth(fitted)
    if growth >= 0:
        return growth
    least, sample = rows.least_share(fitted), rows.sample
    if rows.totals.ratio + MOST_SLOPE * growth * rows.totals.inverse > least * sample.total:
        return growth
    after = sample.at(rows.theta, rows.dispersion * float(np.exp(growth)), rows.order)
    if after.totals.ratio / sample.total >= least:
        return growth
    found = budget_dispersion(sample, rows.theta, rows.order, least, rows.dispersion)
    return float(np.log(found / rows.dispersion))


def budget_dispersion(
    sample: Sample, theta: Array, order: float, good: float, start: float
) -> float:
    """Return the dispersion at which the weights leave exactly a share of good rows.

    The root of ``log(mean(w / E(w))) = log(good)`` in the log dispersion.
    """
    low, high, at = -np.inf, np.inf, float(np.log(start))
    for _ in range(ROOT_MAXITER):
        rows = sample.at(theta, float(np.exp(at)), order)
        totals, tiny = rows.totals, float(np.finfo(float).tiny)
        gap = float(np.log(max(totals.ratio / sample.total, tiny) / good))
        if abs(gap) < ROOT_TOL or high - low < ROOT_TOL:
            break
        low, high = (at, high) if gap < 0 else (low, at)
        pulled = totals.pulled / max(totals.ratio, tiny)
        step = -gap / max(0.5 * (order - 1.0) * pulled, 0.1)
        at += float(np.clip(step, -FARTHEST_STEP, FARTHEST_STEP))
        if not low < at < high:
            at = 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else at
    return float(np.exp(at))


def dispersion_fit(
    sample: Sample, theta: Array, order: float, start: float, lambda_: float
) -> tuple[float, bool]:
    """Return the dispersion of an order around parameters, and whether it converged.

    Parameters
    ----------
    sample : Sample
    theta : ndarray, shape (k,)
        Parameters of a first step.
    order, start : float
    lambda_ : float
        Temperature of the first step's weights, in units of half the deviance.
    """
    dispersion, change = start, np.inf
    tol = max(STEP_SIZE * sample.setting.tol, LEAST_STEP)
    for _ in range(sample.setting.maxiter):
        rows = sample.at(theta, dispersion, order)
        growth = grown(rows, 1.0 + dispersion / lambda_)
        last, change = change, abs(growth)
        length = order if change < min(NEAR, last) else 1.0
        dispersion *= float(np.exp(length * growth))
        if change < tol:
            break
    return dispersion, change < SETTLED
