"""The second step of a likelihood: from the first step to the efficiency asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.consistency import order_efficiency
from rrmstats.core.entropy import Array
from rrmstats.core.ladder import Ladder, Rung, climb, equal_pvalue
from rrmstats.losses.likelihood_rows import LawRows
from rrmstats.losses.noise import share_factor
from rrmstats.losses.regression_ladder import AS_EFFICIENT, joint_orders

# P-value below which two rungs disagree.
LEVEL = 1e-3
# Longest step, in units of the parameters in which the mean loss bends by one.
LONGEST = 2.0
# Size of the last step in standard errors, and one that has converged for all purposes.
STEP_TOL, SETTLED = 1e-7, 1e-3
MOST_STEPS = 60
HALVINGS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class LawRung(Rung):
    """One rung of the ladder.

    Attributes
    ----------
    rows : LawRows
        The rows at its parameters.
    """

    rows: LawRows


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


def bad_share(rows: LawRows) -> float:
    """Return the estimated share of bad rows, at most eps_bar."""
    taken = rows.sample.taken(rows.good())
    return 1.0 - rows.good(share_factor(taken, rows.order, rows.order))


def make_rung(rows: LawRows, converged: bool) -> LawRung:
    """Return a fit as a rung."""
    return LawRung(
        order=rows.order,
        efficiency=order_efficiency(rows.order),
        params=rows.theta,
        scale=np.nan,
        eps_hat=bad_share(rows),
        converged=converged,
        rows=rows,
    )


def likelihood_ladder(first: LawRows, moves: Array, efficiency: float) -> Ladder[LawRung]:
    """Return the ladder of the second step.

    What chance allows between two rungs is known from influence functions at the first step.

    Parameters
    ----------
    first : LawRows
        The first step.
    moves : ndarray, shape (n, k)
        Its influence functions: it moves by their sum.
    efficiency : float
        Efficiency of the last rung.
    """
    sample = first.sample
    bottom = make_rung(first, True)
    known: dict[float, Array] = {}
    free = max(sample.total * (1.0 - sample.setting.eps_bar) - len(first.theta), 1.0)

    def moved(order: float) -> Array:
        if order not in known:
            known[order] = first.reordered(order).expected_influence
        return known[order]

    def fit(order: float, last: LawRung) -> LawRung:
        return make_rung(*law_fit(last.rows.reordered(order)))

    def agreement(rung: LawRung, earlier: LawRung) -> float:
        if not rung.converged:
            return 0.0
        difference = rung.params - earlier.params
        change = moved(rung.order) - (moves if earlier is bottom else moved(earlier.order))
        return equal_pvalue(difference, change, sample.mass, free)

    orders = joint_orders(sample.setting.eps_bar, efficiency)
    orders = orders[orders < bottom.order]
    if not len(orders):
        return Ladder((bottom,), 0, AS_EFFICIENT)
    return climb(bottom, orders, fit, agreement, LEVEL)
