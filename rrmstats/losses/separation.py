"""Labels that a hyperplane separates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from rrmstats.core.block_array import smallest
from rrmstats.core.entropy import Array
from rrmstats.losses.logistic import LogisticProblem

# Objective of the linear program, relative to its unit, that counts as zero.
ZERO = 1e-7
# Rows of a first linear program, and those added to it that it leaves on the wrong side.
PROGRAM_ROWS, ADDED_ROWS = 10_000, 1_000


def separable(problem: LogisticProblem, rows: np.ndarray) -> bool:
    """Tell whether a hyperplane separates the labels of some rows, touching them at most.

    A linear program: a direction b with s x'b >= 0 for all rows and > 0 for some exists exactly
    then, and maximum likelihood has no finite value. Of rows in blocks it takes a few, and then
    those that its solution has on the wrong side, until it separates no longer or there are none.

    Parameters
    ----------
    problem : LogisticProblem
    rows : ndarray of bool, shape (n,)
        The rows in question.
    """
    signed = np.where(rows[:, None], problem.signs[:, None] * problem.exog, 0.0)
    unit, total = np.abs(signed).max(axis=0), signed.mean(axis=0)
    used = signed[:: max(1, problem.n_obs // PROGRAM_ROWS)]
    while True:
        found = _direction(used, unit, total)
        if found is None:
            return False
        worst = signed[smallest(ADDED_ROWS, signed @ found)]
        beyond = worst[worst @ found < -ZERO]
        if not len(beyond):
            return True
        used = np.vstack([used, beyond])


def _direction(signed: Array, unit: Array, total: Array) -> Array | None:
    """Return a direction b with s x'b >= 0 for some rows s x and > 0 for their total, or None."""
    unit = np.maximum(unit, np.finfo(float).tiny)
    scaled, goal = signed / unit, total / unit
    found = linprog(-goal, A_ub=-scaled, b_ub=np.zeros(len(scaled)), bounds=(-1.0, 1.0))
    if found.status != 0 or found.x is None:
        return np.zeros_like(unit)
    return found.x / unit if float(goal @ found.x) > ZERO else None
