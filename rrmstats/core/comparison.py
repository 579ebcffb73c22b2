"""Whether fits with a smaller and a larger eps_bar tell the same, as far as chance allows.

Where `eps_bar` suffices, a more robust fit differs from a less robust one by chance alone. The
errors of the more robust fit bound this chance: those of the other are wrong just where corrupted
rows have spoiled it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate, take_steps
from rrmstats.core.problem import Problem
from rrmstats.core.setting import Setting

# P-value below which two fits disagree. Efficient fits to clean data nearly coincide.
LEVEL = 1e-3
# Standard errors by which an estimated contamination must exceed a bound to refute it.
BEYOND = 3.0
# A check against a larger value that is less than this above is none.
LEAST_STEP = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """A fit seen from one with a larger eps_bar.

    Attributes
    ----------
    eps_bar, larger : float
        The two bounds.
    zscores : ndarray, shape (t,)
        Differences of the terms in standard errors of the fit with the larger bound; NaN where
        they cannot be compared.
    pvalue : float
        P-value of the largest, corrected for the number of terms (Bonferroni).
    free : float
        Degrees of freedom of the standard errors.
    eps_hat, eps_hat_se : float
        Contamination that the fit with the larger bound finds.
    """

    eps_bar: float
    larger: float
    zscores: Array
    pvalue: float
    free: float
    eps_hat: float
    eps_hat_se: float

    @property
    def moved(self) -> np.ndarray:
        """Terms that differ by more than chance, the largest difference first."""
        return beyond_chance(self.zscores, LEVEL, self.free)

    @property
    def exceeded(self) -> bool:
        """Whether the contamination that is found exceeds the smaller bound."""
        return bool(self.eps_hat - BEYOND * self.eps_hat_se > self.eps_bar)

    @property
    def agrees(self) -> bool:
        """Whether the larger bound tells the same."""
        return not (self.pvalue < LEVEL or self.exceeded)


def compare(estimate: Estimate, robust: Estimate) -> Agreement:
    """Compare a fit with one that has a larger eps_bar.

    Parameters
    ----------
    estimate, robust : Estimate
        Fits of the same model to the same rows.
    """
    zscores, free = robust.departures(estimate), robust.inference_freedom
    return Agreement(
        eps_bar=estimate.setting.eps_bar,
        larger=robust.setting.eps_bar,
        zscores=zscores,
        pvalue=largest_pvalue(zscores, free),
        free=free,
        eps_hat=robust.eps_hat,
        eps_hat_se=robust.eps_hat_se,
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


def efficient_estimate(first: Estimate) -> Estimate:
    """Return the second step from a first; the first where the problem has no second."""
    return first.problem.second_step(first)


def efficient_fit(problem: EstimableProblem, setting: Setting) -> Estimate:
    """Return the fit in two steps, or in one where the problem has no second."""
    return take_steps(problem, setting)


def largest_bound(problem: Problem, wnobs: float) -> float:
    """Return the largest corrupted fraction that an equivariant fit can resist.

    With p rows that determine a fit it is ``(n - p) / (2 n)``: beyond, corrupted rows and p good
    ones may be the majority.
    """
    return max(0.5 * (1 - problem.subset_size / problem.units(wnobs)), 0.0)


def larger_bound(eps_bar: float, most: float) -> float | None:
    """Return the bound to compare with, halfway to one half but at most `most`.

    None where that is no larger.
    """
    larger = min(0.5 * (eps_bar + 0.5), most)
    return larger if larger >= eps_bar + LEAST_STEP else None
