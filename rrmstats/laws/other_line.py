"""Bad groups that follow another regression than the others, with the same kind of responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.laws.counts import PlainCounts
from rrmstats.laws.mixture import LEAST_SHARE, Bounds, GoodRows
from rrmstats.laws.rows import Rows

# Share of the rows, those of the groups that are farthest off, from which a fit starts.
FARTHEST = 0.1
# Steps of scoring towards that fit.
START_STEPS = 10
# Largest change of a predictor in one step, in the root mean square over the bad rows.
LONGEST = 1.0


@dataclass(frozen=True, eq=False)
class OtherLine:
    """Responses with a linear predictor of their own, whose coefficients are the parameters.

    Attributes
    ----------
    good : PlainCounts
        The distribution of a response, given its predictor.
    data : Rows
        All rows, in groups.
    """

    good: PlainCounts
    data: Rows

    def _at(self, own: Array) -> GoodRows:
        """Return the rows at coefficients (k,), or (k, n)."""
        data, design = self.data, self.data.designs[0]
        eta = np.sum(design * own.T, axis=1)
        with np.errstate(all="ignore"):
            return self.good.rows(
                data.endog, data.size, (eta + data.offsets[0])[None], np.zeros((0, len(eta)))
            )

    def start(self, endog: Array, rows: GoodRows) -> Array:
        """Return the fit to the groups whose responses are farthest off."""
        data = self.data
        square = ((data.size * endog - rows.center) / rows.spread) ** 2
        mean = data.together.sums(square) / data.together.sizes
        order = np.argsort(-mean, kind="stable")
        before = np.cumsum(data.mass[order]) - data.mass[order]
        cut = mean[order[np.searchsorted(before, FARTHEST * data.total) - 1]]
        mass = data.mass * (mean >= cut)
        own: Array = np.zeros(data.n_params)
        for _ in range(START_STEPS):
            own = self._stepped(own, mass)
        return own

    def log_density(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        return self._at(own).log_density

    def equations(self, endog: Array, size: Array, rows: GoodRows, own: Array) -> Array:
        """Return the scores of the coefficients."""
        return np.asarray(self._at(own).slopes * self.data.designs[0].T)

    def updated(self, own: Array, mass: Array, endog: Array, size: Array, rows: GoodRows) -> Array:
        """Return the coefficients after a step of scoring."""
        return self._stepped(own, mass)

    def _stepped(self, own: Array, mass: Array) -> Array:
        total = float(mass.sum())
        if total < LEAST_SHARE:
            return own
        at, design = self._at(own), self.data.designs[0]
        pull = design.T @ (mass * at.slopes[0])
        bread = design.T @ ((mass * at.information[0, 0])[:, None] * design)
        step = np.linalg.lstsq(bread, pull, rcond=None)[0]
        size = float(np.sqrt(mass @ (design @ step) ** 2 / total))
        return np.asarray(own + step * min(1.0, LONGEST / max(size, LEAST_SHARE)))

    @property
    def bounds(self) -> Bounds:
        """Least and largest coefficients."""
        free = np.full(self.data.n_params, np.inf)
        return -free, free
