"""Rows that are good or bad together: each by itself, or by whole groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from rrmstats.core.entropy import Array


@dataclass(frozen=True, eq=False)
class Together:
    """Which rows are good or bad together, and how often each counts.

    Attributes
    ----------
    counts : ndarray, shape (n,), or (b, n) without groups
        How often each row counts.
    groups : ndarray of int, shape (n,), or None
        Number of the group of each row, from zero on; None where each row is by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.together import Together
    >>> together = Together(np.ones(3), np.array([0, 0, 1]))
    >>> together.sums(np.array([1.0, 2.0, 5.0])), together.decisions
    (array([3., 3., 5.]), array([0.5, 0.5, 1. ]))
    """

    counts: Array
    groups: np.ndarray | None

    @cached_property
    def _members(self) -> csr_matrix:
        assert self.groups is not None
        used = np.flatnonzero(self.counts)
        shape = (int(self.groups.max()) + 1, len(self.counts))
        return csr_matrix((self.counts[used], (self.groups[used], used)), shape=shape)

    def sums(self, values: Array) -> Array:
        """Return the sums of values (..., n) over the group of each row, each row as it counts.

        The values themselves where rows are by themselves.
        """
        if self.groups is None:
            return values
        sums = self._members @ values.reshape(-1, values.shape[-1]).T
        return np.asarray(sums[self.groups].T).reshape(values.shape)

    @cached_property
    def sizes(self) -> Array:
        """Observations that are good or bad together with each row, shape (n,)."""
        found = self.sums(np.ones(self.counts.shape[-1]))
        return np.where(found > 0, found, 1.0)

    @property
    def decisions(self) -> Array:
        """How often it is to be told whether a row is bad: its part of its group, shape (n,)."""
        return self.counts if self.groups is None else self.counts / self.sizes

    def total(self, values: Array) -> Array:
        """Return the sums of values (b, n) over all decisions, shape (b,)."""
        return np.asarray((values * self.decisions).sum(axis=-1))

    def share_variance(self, share: float) -> float:
        """Return the variance of a share of bad rows, were each, or each group, bad at random."""
        parts = float(self.decisions @ self.sizes**2) / float(self.counts.sum()) ** 2
        return max(share * (1 - share), 0.0) * parts


#: Rows each of which is good or bad by itself.
BY_THEMSELVES = Together(np.ones(0), None)
