"""Lepski's rule: the last of a sequence of ever more efficient fits that agrees with all before.

A fit that gains efficiency by trusting more rows may begin to trust bad ones. It then moves away
from the robust fits by more than chance allows. What chance allows is known from influence
functions at the most robust fit: those of the new fit explode just where it goes wrong, and would
hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from scipy.special import chdtrc, fdtrc, stdtr

from rrmstats.core.entropy import Array

# Level at which two rungs disagree. A rung refused by chance costs at most the efficiency between
# the first rung and the last, a third; a wrong one accepted costs without bound.
LEVEL = 1e-4
# Why a rung was refused that follows a minority, for the summary.
GIVES_UP = (
    "The second step stopped before a more efficient fit that gives up more than eps_bar of the "
    "rows, as fits do where many rows are equal or a minority fits exactly; see ladder."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rung:
    """One fit of a ladder; models add what else they need of it.

    Attributes
    ----------
    order : float
        How robust the fit is; it falls along the ladder.
    efficiency : float
        Efficiency on clean data.
    params : ndarray, shape (k,)
        Parameters in the units of the data.
    scale : float
        What bad rows inflate, such as the variance of the noise; NaN where the model has none.
    eps_hat : float
        Estimated fraction of bad rows.
    converged : bool
    spent : float
        P-value that its weights give up no more than eps_bar of the rows.
    pvalue : float
        Least p-value of agreement with the earlier rungs, or `spent` where that alone refuses the
        rung; NaN for the first.
    """

    order: float
    efficiency: float
    params: Array
    scale: float
    eps_hat: float
    converged: bool = True
    spent: float = 1.0
    pvalue: float = np.nan


RungT = TypeVar("RungT", bound=Rung)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder(Generic[RungT]):
    """The rungs that were tried, and the one that was chosen.

    Attributes
    ----------
    rungs : tuple of Rung
        The first step, then ever more efficient fits.
    chosen : int
        Place of the chosen rung; any that follow were refused.
    reason : str
        Why the choice is not that of agreement alone, for the summary; empty where it is.
    """

    rungs: tuple[RungT, ...]
    chosen: int
    reason: str = ""

    @property
    def best(self) -> RungT:
        """The chosen rung."""
        return self.rungs[self.chosen]

    @property
    def refused(self) -> RungT | None:
        """The rung that disagreed with an earlier one; None where all agree."""
        complete = self.chosen == len(self.rungs) - 1
        return None if complete else self.rungs[self.chosen + 1]


def climb(
    first: RungT,
    orders: Iterable[float],
    fit: Callable[[float, RungT], RungT],
    agreement: Callable[[RungT, RungT], float],
    level: float = LEVEL,
) -> Ladder[RungT]:
    """Climb from the robust to the efficient end while all rungs agree.

    A fit that gives up more rows than eps_bar is less robust, not more efficient, and refused.

    Parameters
    ----------
    first : Rung
        The first step, the most robust fit.
    orders : iterable of float
        Orders of the rungs after it, the most robust first.
    fit : callable
        Return the rung of an order, started from the last one.
    agreement : callable
        Return the p-value that a rung and an earlier one estimate the same.
    level : float, optional
        P-value below which they do not.

    Returns
    -------
    Ladder

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.ladder import Rung, climb
    >>> def rung(order, last=None):
    ...     location = np.array([5.0 if order < 1.3 else 0.0])
    ...     return Rung(order=order, efficiency=1 / order, params=location, scale=1.0, eps_hat=0.0)
    >>> def agreement(rung, earlier):
    ...     return float(np.exp(-4 * abs(rung.params - earlier.params)[0]))
    >>> ladder = climb(rung(2.0), [1.8, 1.5, 1.2], rung, agreement)
    >>> ladder.best.order, ladder.refused.order
    (1.5, 1.2)
    """
    rungs = [first]
    for order in orders:
        rung = fit(order, rungs[-1])
        pvalue = float(np.min([agreement(rung, earlier) for earlier in rungs]))
        reason = GIVES_UP if rung.spent < level <= pvalue else ""
        rungs.append(replace(rung, pvalue=rung.spent if reason else pvalue))
        if not rungs[-1].pvalue >= level:
            return Ladder(tuple(rungs), len(rungs) - 2, reason)
    return Ladder(tuple(rungs), len(rungs) - 1)


def equal_pvalue(difference: Array, moves: Array, counts: Array | None, free: float) -> float:
    """Return the p-value of Wald's test that the difference of two estimates is chance.

    Parameters
    ----------
    difference : ndarray, shape (k,)
    moves : ndarray, shape (n, k)
        Its influence functions: it moves by their sum over the rows.
    counts : ndarray, shape (n,), or None
        How often each row counts.
    free : float
        Degrees of freedom of the variance.
    """
    weighted = moves if counts is None else counts[:, None] * moves
    return difference_pvalue(difference, weighted.T @ moves, free)


def difference_pvalue(difference: Array, variance: Array, free: float) -> float:
    """Return the p-value of Wald's test that a difference is chance, given its variance.

    Parameters
    ----------
    difference : ndarray, shape (k,)
    variance : ndarray, shape (k, k)
    free : float
        Degrees of freedom of the variance.
    """
    unit = np.sqrt(np.diag(variance))
    unit[unit == 0] = np.inf
    scaled = difference / unit
    inverse = np.linalg.pinv(variance / np.outer(unit, unit), hermitian=True)
    statistic, terms = float(scaled @ inverse @ scaled), len(difference)
    if np.isinf(free):
        return float(chdtrc(terms, statistic))
    return float(fdtrc(terms, free, statistic / terms))


def growth_pvalue(
    growth: float, moves: Array, counts: Array | None, free: float, more: float = 0.0
) -> float:
    """Return the one-sided p-value of the growth of a logarithm, as of a scale.

    Parameters
    ----------
    growth : float
    moves : ndarray, shape (n,)
        Its influence functions.
    counts : ndarray, shape (n,), or None
        How often each row counts.
    free : float
        Degrees of freedom of the variance.
    more : float, optional
        Variance that the influence functions do not show.
    """
    squares = moves * moves
    variance = float(squares.sum() if counts is None else counts @ squares) + more
    return excess_pvalue(growth, variance, free)


def excess_pvalue(growth: float, variance: float, free: float) -> float:
    """Return the one-sided p-value of a growth, given its variance and degrees of freedom."""
    return float(stdtr(free, -growth / np.sqrt(variance))) if variance > 0 else 1.0


def degrees_of_freedom(moves: Array, counts: Array | None) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of squared influence functions.

    Parameters
    ----------
    moves : ndarray, shape (n,)
        Influence functions; Gaussian ones have as many degrees as rows.
    counts : ndarray, shape (n,), or None
        How often each row counts.
    """
    squares = moves * moves
    share = squares if counts is None else counts * squares
    rows = float(len(squares) if counts is None else counts.sum())
    spread = float(share @ squares - share.sum() ** 2 / rows)
    return 2 * float(share.sum()) ** 2 / spread if spread > 0 else rows
