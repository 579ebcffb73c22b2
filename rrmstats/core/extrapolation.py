"""Anderson extrapolation of a fixed-point iteration, in the losses."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array


class Anderson:
    """Extrapolates one descent.

    A step of Algorithm 1 takes the losses that weights come from to the losses of the fit under
    these weights. In terms of losses every problem looks alike, whatever its parameters are.
    """

    def __init__(self) -> None:
        self._given: list[Array] = []
        self._found: list[Array] = []

    def record(self, given: Array, found: Array) -> None:
        """Keep a step: the losses behind the weights, and those of the fit, both (n,)."""
        # Three differences: more help little and cost memory.
        self._given = [*self._given[-3:], given]
        self._found = [*self._found[-3:], found]

    def forget(self) -> None:
        """Start anew from the last point."""
        self._given, self._found = [], []

    def propose(self, weights: Array) -> Array | None:
        """Return losses nearer to the fixed point than those last found; None without a history.

        They combine the last steps so that the change, in the metric of `weights`, is least.
        """
        if len(self._given) < 2:
            return None
        given, found = np.array(self._given), np.array(self._found)
        with np.errstate(over="ignore", invalid="ignore"):
            change = found - given
            steps, turns = np.diff(found, axis=0), np.diff(change, axis=0)
            weighted = weights * turns
            gram, right = turns @ weighted.T, weighted @ change[-1]
            if not (np.isfinite(gram).all() and np.isfinite(right).all()):
                return None
            inverse = np.linalg.pinv(gram, 1e-10, hermitian=True)  # the rest is noise
            proposed = found[-1] - (inverse @ right) @ steps
        return proposed if np.isfinite(proposed).all() else None


def change_size(given: Array, found: Array, weights: Array) -> float:
    """Return the standard deviation of a change of losses under `weights`."""
    with np.errstate(over="ignore", invalid="ignore"):
        change = np.where(weights > 0, found - given, 0.0)
        change -= weights @ change
        return float(np.sqrt(weights @ change**2))
