"""Whether fits with a smaller and a larger eps_bar tell the same, as far as chance allows.

Where `eps_bar` suffices, a more robust fit differs from a less robust one by chance alone. The
errors of the more robust fit bound this chance: those of the other are wrong just where bad
rows have spoiled it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import t

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate

#: P-value below which two fits disagree. Derived: chance makes one pair in a hundred differ.
LEVEL = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """A fit seen from one with a larger eps_bar.

    Attributes
    ----------
    zscores : ndarray, shape (t,)
        Differences of the terms in standard errors of the fit with the larger bound; NaN where
        they cannot be compared.
    pvalue : float
        P-value of the largest, corrected for the number of terms (Bonferroni).
    free : float
        Degrees of freedom of the standard errors.
    """

    zscores: Array
    pvalue: float
    free: float

    @property
    def moved(self) -> np.ndarray:
        """Terms that differ by more than chance, the largest difference first."""
        return beyond_chance(self.zscores, LEVEL, self.free)

    @property
    def agrees(self) -> bool:
        """Whether the larger bound tells the same."""
        return not self.pvalue < LEVEL


def compare(estimate: Estimate, robust: Estimate) -> Agreement:
    """Compare a fit with one that has a larger eps_bar.

    Parameters
    ----------
    estimate, robust : Estimate
        Fits of the same model to the same rows.
    """
    zscores, free = robust.departures(estimate), robust.inference_freedom
    return Agreement(
        zscores=zscores,
        pvalue=largest_pvalue(zscores, free),
        free=free,
    )


def largest_pvalue(zscores: Array, free: float = np.inf) -> float:
    """Return the p-value of the largest of several z-scores, corrected for their number.

    Bonferroni's correction; NaN count for nothing.
    """
    known = np.abs(zscores[~np.isnan(zscores)])
    return (
        float(min(2 * len(known) * t.sf(known.max(initial=0.0), free), 1.0)) if len(known) else 1.0
    )


def beyond_chance(zscores: Array, level: float, free: float = np.inf) -> np.ndarray:
    """Return the places of the z-scores that are beyond chance by themselves, largest first."""
    known = np.flatnonzero(~np.isnan(zscores))
    sizes = np.abs(zscores[known])
    order = np.argsort(-sizes, kind="stable")
    return known[order[2 * len(known) * t.sf(sizes[order], free) < level]]


def leaving_rows(before: Array, after: Array) -> np.ndarray:
    """Return the rows whose relative weight falls from above a half to below a tenth."""
    return np.flatnonzero((before > 0.5) & (after < 0.1))


def left_for_good(relative: Array, threshold: float) -> np.ndarray:
    """Return the first place from which on each row's weight stays below a threshold.

    Parameters
    ----------
    relative : ndarray, shape (n, m)
        Relative weights of the rows along the path.
    threshold : float

    Returns
    -------
    ndarray of int, shape (n,)
        Places in the path; m where the weight is not below the threshold at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.comparison import left_for_good
    >>> left_for_good(np.array([[1.0, 0.2, 1.1, 0.3, 0.1], [1.0, 1.0, 0.1, 0.1, 0.9]]), 0.5)
    array([3, 5])
    """
    above = ~(relative < threshold)
    length = relative.shape[1]
    last = length - 1 - np.argmax(above[:, ::-1], axis=1)
    return np.where(above.any(axis=1), last + 1, 0)


def steady_runs(states: np.ndarray) -> list[tuple[int, int]]:
    """Return where runs of equal states begin and end; a state that comes back at once is none.

    Parameters
    ----------
    states : ndarray, shape (m,)

    Returns
    -------
    list of tuple of int
        First place of each run, and the first one past it. A run of a single state between two
        equal runs belongs to them; the first and the last state may be runs of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.comparison import steady_runs
    >>> steady_runs(np.array([1, 0, 0, 1, 0, 0, 1, 1]))
    [(0, 1), (1, 6), (6, 8)]
    """
    smooth = states.copy()
    for i in range(1, len(states) - 1):
        if smooth[i - 1] != smooth[i] and states[i + 1] == smooth[i - 1] and i > 1:
            smooth[i] = smooth[i - 1]
    borders = [0, *(np.flatnonzero(smooth[1:] != smooth[:-1]) + 1).tolist(), len(smooth)]
    return list(pairwise(borders))
