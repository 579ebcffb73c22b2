"""Which rows decide a conclusion: rows in the order in which they are best removed.

Influence functions tell how far an estimate moves where rows are removed, to first order. The most
influential rows are those whose moves add up to a change of a conclusion soonest; finding them
takes one sort (Broderick, Giordano and Meager, 2020).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array


class Ranking(NamedTuple):
    """Rows whose removal brings a change nearer.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows, the most influential first.
    needed : int or None
        How many of them change the conclusion to first order; None where all do not.
    """

    rows: np.ndarray
    needed: int | None


def most_influential(
    moves: Array, estimate: float, error: float, critical: float | None = None
) -> Ranking:
    r"""Return the rows whose removal changes the sign of an estimate, or its significance.

    With :math:`m_i` the move of the estimate where row i is removed, the standard error moves by
    :math:`\mathrm{se}\,(1 / n - m_i^2 / (2 \sum_j m_j^2))`: the sum of squares of the influence
    functions loses one of them, and their mean is over fewer rows.

    Parameters
    ----------
    moves : ndarray, shape (n,)
        How far the estimate moves where a row is removed; 0 for rows that are out already.
    estimate, error : float
        The estimate and its standard error.
    critical : float, optional
        The estimate is significant beyond so many standard errors; by default its sign is to
        change.

    Returns
    -------
    Ranking
        Of an estimate that is not significant, towards the side that takes fewer rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.removal import most_influential
    >>> z = np.array([-1.0, -1.0, 0.0, 9.0])
    >>> moves = (z.mean() - z) / 3
    >>> most_influential(moves, z.mean(), 2.0)
    Ranking(rows=array([3]), needed=1)
    """
    side = 1.0 if estimate >= 0 else -1.0
    if critical is None:
        return _ranking(-side * moves, abs(estimate))
    squares = float(moves @ moves)
    widening = error * (1 / len(moves) - moves**2 / (2 * squares)) if squares > 0 else 0 * moves
    margin = abs(estimate) - critical * error
    if margin > 0:
        return _ranking(critical * widening - side * moves, margin)
    sides = [
        _ranking(s * moves - critical * widening, critical * error - s * estimate)
        for s in (side, -side)
    ]
    return min(sides, key=lambda found: np.inf if found.needed is None else found.needed)


def _ranking(gains: Array, needed: float) -> Ranking:
    """Return the rows that bring a change nearer, and how many make up for what is needed."""
    order = np.argsort(-gains, kind="stable")
    rows = order[gains[order] > 0]
    count = int(np.searchsorted(np.cumsum(gains[rows]), needed, side="right")) + 1
    return Ranking(rows, count if count <= len(rows) else None)
