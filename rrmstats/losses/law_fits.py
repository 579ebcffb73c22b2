"""Consistent parameters of a likelihood at a fixed order of the weights."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.losses.likelihood_rows import LawRows

# Longest step, in units of the parameters in which the mean loss bends by one.
LONGEST = 2.0
# Size of the last step in standard errors, and one that has converged for all purposes.
STEP_TOL, SETTLED = 1e-7, 1e-3
MOST_STEPS = 60
HALVINGS = 12


def law_fit(rows: LawRows) -> tuple[LawRows, bool]:
    """Return the rows at the consistent parameters of their order, and whether they are a root.

    Parameters
    ----------
    rows : LawRows
        The rows where to start.
    """
    size, length, unit = np.inf, 1.0, rows.sample.unit
    for _ in range(MOST_STEPS):
        step, new = rows.step()
        length = max(0.5 * length, 0.05) if new > 0.9 * size else min(1.0, 1.5 * length)
        size = new
        if size < STEP_TOL:
            break
        rows = _within(rows, np.clip(length * step, -LONGEST * unit, LONGEST * unit))
    return rows, size < SETTLED


def _within(rows: LawRows, step: Array) -> LawRows:
    """Return the rows a step away, or part of it, where the rows with weight are defined."""
    used = rows.weights > 0
    for _ in range(HALVINGS):
        moved = rows.shifted(step)
        if np.isfinite(moved.losses[used]).all() and np.isfinite(moved.bread).all():
            return moved
        step = 0.5 * step
    return rows
