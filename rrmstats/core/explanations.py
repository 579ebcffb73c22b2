"""Explanations of the rows, fitted to them and compared by BIC: what a second step found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import numpy as np

from rrmstats.core.entropy import Array

#: Rows more likely bad than good are flagged. Derived: both errors cost the same.
FLAGGED = 0.5


class Good(Enum):
    """What the good rows are like."""

    PLAIN = "none"
    SHORT_TAILS = "short tails"
    HEAVY_TAILS = "heavy tails"
    GROWING_NOISE = "growing noise"
    CHANGING_NOISE = "changing noise"
    OVERDISPERSED = "overdispersed"


class Bad(Enum):
    """What the bad rows are like."""

    NONE = "none"
    WIDE = "wide"
    CLUSTER = "cluster"
    WIDE_AND_CLUSTER = "wide and cluster"
    TWO_CLUSTERS = "two clusters"
    SCATTERED = "scattered"
    OTHER_SHAPE = "other shape"
    OTHER_LINE = "other line"
    FALSE_ZEROS = "false zeros"
    WIDE_AND_ZEROS = "wide and false zeros"
    LABEL_NOISE = "label noise"
    UNLIKELY_LABELS = "unlikely labels"


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """One explanation of the rows, fitted to them.

    Attributes
    ----------
    good : Good
    bad : Bad
    log_likelihood : float
        Of all rows, each counted as often as its frequency weight says.
    penalty : float
        What its parameters cost on the scale of BIC: ln n for each, if nothing else is known.
    eps : float
        Share of bad rows, at most eps_bar.
    prob_bad : ndarray, shape (n,), or (g,)
        Probability of each row, or of each group, to be bad.
    theta : ndarray, shape (k,), or None
        Its parameters in the coordinates of the problem, where they are kept.
    n_params : int
        Number of its parameters besides those of plain good rows.
    """

    good: Good
    bad: Bad
    log_likelihood: float
    penalty: float
    eps: float
    prob_bad: Array
    theta: Array | None = None
    n_params: int = 0

    @property
    def name(self) -> str:
        """The name of the explanation, such as "wide" or "growing noise, cluster"."""
        parts = [part.value for part in (self.good, self.bad) if part.value != Bad.NONE.value]
        return ", ".join(parts) or Bad.NONE.value

    @property
    def bic(self) -> float:
        """Schwarz's criterion, up to what all explanations share; the smallest is best."""
        return self.penalty - 2 * self.log_likelihood


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """The explanations that were compared, and the one that was chosen.

    Attributes
    ----------
    explanations : tuple of Explanation
        The best fit of each, the smallest BIC first.
    chosen : Explanation
        The one that is reported.
    other_minimum : bool
        Whether it follows another minimum of the risk than the lowest one.
    """

    explanations: tuple[Explanation, ...]
    chosen: Explanation
    other_minimum: bool = False

    def with_chosen(self, chosen: Explanation) -> Explained:
        """Return the same with another fit of the one that was chosen."""
        others = (each for each in self.explanations if each is not self.chosen)
        return replace(self, explanations=(chosen, *others), chosen=chosen)

    @property
    def bics(self) -> Array:
        """BIC of each explanation, less that of the one without bad rows and plain noise."""
        values = np.array([each.bic for each in self.explanations])
        plain = [each.bic for each in self.explanations if each.name == Good.PLAIN.value]
        return values - (plain[0] if plain else values.min())


Fitted = TypeVar("Fitted", bound=Explanation)


def best_of_each(explanations: Iterable[Fitted]) -> tuple[Fitted, ...]:
    """Return the explanation of least BIC among those of one name, the best name first."""
    best: dict[str, Fitted] = {}
    for each in explanations:
        if each.name not in best or each.bic < best[each.name].bic:
            best[each.name] = each
    return tuple(sorted(best.values(), key=lambda each: each.bic))


def of_groups(values: Array, groups: np.ndarray | None) -> Array:
    """Return what all rows of a group share, once for each group; as it is without groups.

    Parameters
    ----------
    values : ndarray, shape (n,)
    groups : ndarray of int, shape (n,), or None
        Number of the group of each row, from zero on.
    """
    return values if groups is None else values[np.unique(groups, return_index=True)[1]]


def without_comparison(prob_bad: Array, eps: float) -> Explained:
    """Return the explanation where nothing is compared: no row may be bad, or the fit is exact.

    Parameters
    ----------
    prob_bad : ndarray, shape (n,)
        Zero, or one where an exact fit leaves a row out.
    eps : float
        Share of bad rows.
    """
    bad, unknown = Bad.WIDE if eps > 0 else Bad.NONE, np.nan
    only = Explanation(
        good=Good.PLAIN, bad=bad, log_likelihood=unknown, penalty=0.0, eps=eps, prob_bad=prob_bad
    )
    return Explained(explanations=(only,), chosen=only)
