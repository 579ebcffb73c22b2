"""How far out the rows of a design are."""

from __future__ import annotations

from typing import Any

import numpy as np

from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array
from rrmstats.core.search import minimize
from rrmstats.losses.matrices import check_range, mahalanobis, unit_spread
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.tilted_scatter import tilted_order

# Variances of a design, in units of its spread, below which it counts as flat.
FLAT_DESIGN = 1e-8


class DesignedModel:
    """A model whose rows have predictors."""

    exog: Array
    freq_weights: Array | None
    _bound: float
    _refuse_partitions: Any

    def leverages(self) -> Array:
        """Return the diagonal of the hat matrix of least squares, shape (n,).

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
        >>> round(float(model.leverages().sum()), 6)
        2.0
        """
        self._refuse_partitions("leverages", "fit a sample of the rows")
        counts = np.ones(len(self.exog)) if self.freq_weights is None else self.freq_weights
        return hat_values(np.asarray(self.exog, float), counts)

    def design_distances(self) -> Array | None:
        """Return robust distances of the rows of the predictors from their middle.

        Returns
        -------
        ndarray, shape (n,), or None
            None without predictors, with too few rows, or where the design is flat in the rows
            with weight, as with rare dummies.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> model = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2)
        >>> bool((model.design_distances()[:14] > 10).all())
        True
        """
        self._refuse_partitions("design_distances", "fit a sample of the rows")
        exog = np.asarray(self.exog, float)
        columns = exog[:, np.ptp(exog, axis=0) > 0]
        n, d = columns.shape
        few = (1 - self._bound) * n < 2 * (d + 1)
        if d == 0 or few or np.linalg.matrix_rank(columns) < d:
            return None
        center, unit = unit_spread(columns)
        scaled = (columns - center) / unit
        check_range(scaled)
        problem = ScatterProblem(scaled)
        found = minimize(problem, self._bound, freq_weights=self.freq_weights)
        location, scatter = problem.split(found.theta)
        if np.linalg.eigvalsh(scatter)[0] < FLAT_DESIGN:
            return None
        order = tilted_order(found.lambda_, self._bound, d)
        return mahalanobis(scaled, location, order * scatter)
