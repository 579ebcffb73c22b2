"""Whether fits with a smaller and a larger eps_bar tell the same, as far as chance allows.

Where `eps_bar` suffices, a more robust fit differs from a less robust one by chance alone. The
errors of the more robust fit bound this chance: those of the other are wrong just where bad
rows have spoiled it.
"""

from __future__ import annotations

from dataclasses import dataclass

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
