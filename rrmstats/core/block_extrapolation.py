"""Anderson extrapolation of Algorithm 1 on rows in blocks, in the moments that fits depend on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rrmstats.core.entropy import Array

# Differences that an extrapolation combines.
MEMORY = 5
# Part of the largest singular value below which directions of the history are noise.
NOISE = 1e-8
# Steps in which changes that have become small must halve, or else are rounding.
PATIENCE = 4


class MomentHistory:
    """Extrapolates one descent.

    A step of Algorithm 1 takes the moments behind a fit, and ln(lambda), to the moments under the
    weights of this fit and to a better ln(lambda). One pass over the rows is one step.

    Attributes
    ----------
    given : ndarray, shape (p,), or None
        What the point where the descent stands was made of; None at its start.
    size : float
        Largest change of the last step.
    """

    def __init__(self) -> None:
        self.given: Array | None = None
        self.size = np.inf
        self._given: list[Array] = []
        self._found: list[Array] = []
        self._least, self._waited = np.inf, 0

    def propose(self, found: Array, metric: Callable[[Array], Array]) -> tuple[Array, bool]:
        """Return where to go next from what a step has found, and whether it is extrapolated.

        Parameters
        ----------
        found : ndarray, shape (p,)
        metric : callable
            Takes changes, shape (m, p), to coordinates in which they can be compared.
        """
        if self.given is None:
            return found, False
        self._given = [*self._given[-MEMORY:], self.given]
        self._found = [*self._found[-MEMORY:], found]
        changes = np.array(self._found) - np.array(self._given)
        last = metric(changes[-1:])[0]
        self._note(float(np.abs(last).max()))
        if len(changes) == 1:
            return found, False
        turns = metric(np.diff(changes, axis=0))
        share = np.linalg.lstsq(turns.T, last, rcond=NOISE)[0]
        return found - share @ np.diff(np.array(self._found), axis=0), True

    def _note(self, size: float) -> None:
        halved = size <= 0.5 * self._least
        self._least, self._waited = min(size, self._least), 0 if halved else self._waited + 1
        self.size = size

    def stalled(self, small: float) -> bool:
        """Tell whether changes that have become small no longer shrink."""
        return self._least <= small and self._waited >= PATIENCE

    def forget(self) -> None:
        """Start anew from where the descent stands."""
        self._given, self._found = [], []
