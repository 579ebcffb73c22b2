"""Groups in the place of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.core.entropy import Array

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults


@dataclass(frozen=True, slots=True, eq=False)
class GroupView:
    """Groups in the place of rows, as pictures and tables read them.

    Attributes
    ----------
    model : RRMModel
    weights, relative_weights, losses, distances : ndarray, shape (g,)
    row_names : list of str
        Labels of the groups.
    prob_bad : ndarray, shape (g,), or None
        Probability of each group to be bad; None in one step.
    trace : DataFrame
    """

    results: RRMResults
    model: Any
    weights: Array
    relative_weights: Array
    losses: Array
    row_names: list[str]
    prob_bad: Array | None = None
    trace: Any = None

    @property
    def distances(self) -> Array:
        """Mean losses as standard normal scores, shape (g,)."""
        return self.results._unit_distances()

    def order_by_weight(self) -> np.ndarray:
        """Return the positions of the groups, the smallest weight first, ties by larger loss."""
        return np.lexsort((-self.losses, self.relative_weights))

    def outliers(self, level: float | None = None) -> np.ndarray:
        """Tell which groups are outliers, shape (g,)."""
        return self.results._unit_flags(level)
