"""Bad groups that follow another regression than the others, with the same kind of responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.laws.mixture import LEAST_SHARE, Bounds, GoodLaw, GoodRows
from rrmstats.laws.rows import Responses, Rows, design_gram, design_rows, design_sums

# Share of the rows, those of the groups that are farthest off, from which a fit starts.
FARTHEST = 0.1
# Steps of scoring towards that fit.
START_STEPS = 10
# Largest change of a predictor in one step, in the root mean square over the bad rows.
LONGEST = 1.0


@dataclass(frozen=True, eq=False)
class OtherLine:
    """Responses like good ones, with parameters of their own.

    Attributes
    ----------
    good : GoodLaw
        The distribution of a response, given its predictors.
    data : Rows
        All rows, in groups.
    first : ndarray, shape (k,)
        Parameters of the designs from which a fit starts.
    """

    good: GoodLaw
    data: Rows
    first: Array

    def _at(self, own: Array) -> GoodRows:
        """Return the rows at parameters (k + m,), or (k + m, n)."""
        data, end, predictors = self.data, 0, []
        for design, offset in zip(data.designs, data.offsets, strict=True):
            part, end = own[end : end + design.shape[1]], end + design.shape[1]
            predictors.append(np.sum(design * part.T, axis=1) + offset)
        rest = own[end:]
        if own.ndim == 1:
            rest = np.repeat(rest[:, None], len(data.mass), axis=1)
        with np.errstate(all="ignore"):
            return self.good.rows(data.seen, np.array(predictors), rest)

    def start(self, seen: Responses, rows: GoodRows) -> Array:
        """Return the fit to the groups that are farthest from the line of the others."""
        data = self.data
        scores = data.together.sums(design_rows(data.designs, rows.slopes).T)
        bread = design_gram(data.designs, data.mass * rows.information)
        inverse = np.linalg.pinv(bread, hermitian=True)
        far = np.einsum("kn,kj,jn->n", scores, inverse, scores) / data.together.sizes
        order = np.argsort(-far, kind="stable")
        before = np.cumsum(data.mass[order]) - data.mass[order]
        cut = far[order[np.searchsorted(before, FARTHEST * data.total) - 1]]
        mass, predictors = data.mass * (far >= cut), data.predictors(self.first)
        own = np.append(self.first, self.good.start(seen, predictors))
        for _ in range(START_STEPS):
            own = self.stepped(own, mass)
        return own

    def log_density(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the log-densities of the rows."""
        return self._at(own).log_density

    def scores(self, seen: Responses, rows: GoodRows, own: Array) -> Array:
        """Return the scores of the parameters."""
        at = self._at(own)
        by_design = design_rows(self.data.designs, at.slopes).T
        return by_design if at.own.ndim < 2 else np.concatenate([by_design, at.own])

    def stepped(self, own: Array, mass: Array) -> Array:
        """Return the parameters after a step of scoring, under a mass (n,)."""
        total, designs, k = float(mass.sum()), self.data.designs, self.data.n_params
        if total < LEAST_SHARE:
            return own
        at = self._at(own)
        pull = design_sums(designs, mass * at.slopes)
        step = np.linalg.lstsq(design_gram(designs, mass * at.information), pull, rcond=None)[0]
        change = self.data.predictors(step) - self.data.predictors(0.0 * step)
        size = float(np.sqrt((change**2 @ mass).max() / total))
        theta = own[:k] + step * min(1.0, LONGEST / max(size, LEAST_SHARE))
        return np.concatenate([theta, self.good.updated(own[k:], mass, at)])

    @property
    def bounds(self) -> Bounds:
        """Least and largest parameters."""
        free, (low, high) = np.full(self.data.n_params, np.inf), self.good.bounds
        return np.concatenate([-free, low]), np.concatenate([free, high])
