"""Any likelihood under weights that groups of its rows were given: consistent parameters.

The same as `rrmstats.losses.tilted_counts`, with the law of the responses for closed forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood_rows import LawRows, LawSample

# Steps of a fit, and the size of the last in standard errors: to end, and to have converged.
MOST_STEPS, STEP_TOL, SETTLED = 60, 1e-8, 1e-3
# Longest step, in units of the parameters.
LONGEST = 2.0


class TiltedLaws:
    """Rows of a likelihood under weights that their groups were given.

    Parameters
    ----------
    sample : LawSample
    raw : ndarray, shape (k,)
        Parameters of least risk, at which the rows had their losses.
    rates : ndarray, shape (n,)
        The weight of a row is proportional to ``exp(-rates * losses)``.
    weights : ndarray, shape (n,)
        Weights, summing to one.
    """

    def __init__(self, sample: LawSample, raw: Array, rates: Array, weights: Array) -> None:
        self.sample, self.raw, self.rates, self.weights = sample, raw, rates, weights

    def _rows(self, theta: Array, anchor: Array, stretch: float = 1.0) -> LawRows:
        order: Any = 1.0 + stretch * self.rates  # one per row
        return self.sample.at(theta, order, anchor=anchor)

    def _scores(self, rows: LawRows) -> Array:
        """Return the scores of the rows less their means under the tilted laws, shape (n, k)."""
        used = (self.weights > 0)[:, None]
        return np.where(used, rows.observed_scores - rows.center, 0.0)

    def _inverse(self, rows: LawRows, free: np.ndarray) -> Array:
        """Return the inverse of the expected derivative; zero for parameters that are held."""
        used = self.weights > 0
        bread = np.tensordot(self.weights[used], rows.spread[used], 1)
        return np.linalg.pinv(np.where(np.outer(free, free), bread, 0.0), hermitian=True)

    def _free(self, theta: Array, pull: Array) -> np.ndarray:
        lower = self.sample.likelihood.lower
        return np.ones(len(theta), bool) if lower is None else (theta > lower) | (pull > 0)

    def coefficients(self) -> tuple[Array, bool]:
        """Return the parameters that solve the weighted equation, and whether they do."""
        theta, size, length = self.raw, np.inf, 1.0
        lower = self.sample.likelihood.lower
        for _ in range(MOST_STEPS):
            rows = self._rows(theta, self.raw)
            pull = self.weights @ self._scores(rows)
            step = self._inverse(rows, self._free(theta, pull)) @ pull
            last, size = size, float(np.sqrt(max(self.sample.total * float(pull @ step), 0.0)))
            if not size > STEP_TOL:
                break
            length = max(0.5 * length, 0.05) if size > 0.9 * last else min(1.0, 1.5 * length)
            reach = float(np.abs(step / self.sample.unit).max())
            theta = theta + length * min(1.0, LONGEST / max(reach, STEP_TOL)) * step
            theta = theta if lower is None else np.maximum(theta, lower)
        return theta, size < SETTLED

    def moves(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return how parameters move with the rows (n, k), raw ones (k, k), ln(lambda) (k,)."""
        rows = self._rows(theta, self.raw)
        scores = self._scores(rows)
        inverse = self._inverse(rows, self._free(theta, self.weights @ scores))

        def pull(anchor: Array, log_lambda: float) -> Array:
            moved = self._rows(theta, anchor, float(np.exp(-log_lambda)))
            return self.weights @ self._scores(moved)

        by_raw = differences(lambda at: pull(at, 0.0), self.raw, self.sample.unit)
        by_log_lambda = differences(
            lambda at: pull(self.raw, float(at[0])), np.zeros(1), np.ones(1)
        )[0]
        return (
            scores @ inverse,
            np.nan_to_num(by_raw) @ inverse,
            np.nan_to_num(by_log_lambda) @ inverse,
        )
