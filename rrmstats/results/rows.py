"""What results tell of each row: weights, losses, distances and flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from statsmodels.base.model import LikelihoodModelResults

from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import relative_weights
from rrmstats.results.labels import Labeled, labeled
from rrmstats.results.tables import Table


class RowResults(LikelihoodModelResults):
    """Results that give each row a weight and a distance."""

    model: Any
    weights: Array
    losses: Array
    nobs: float

    @property
    def relative_weights(self) -> Array:
        """Weights in units of equal ones, or of the frequency weights, shape (n,)."""
        return relative_weights(np.asarray(self.weights), self._base)

    @property
    def _base(self) -> Array | None:
        counts = self.model.freq_weights
        return None if counts is None else counts / counts.sum()

    def order_by_weight(self) -> np.ndarray:
        """Return the positions of the rows, the smallest weight first, ties by larger loss."""
        return np.lexsort((-np.asarray(self.losses), self.relative_weights))

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows, or their positions where they have none."""
        labels = self.model.data.row_labels
        return [str(name) for name in (range(int(self.nobs)) if labels is None else labels)]

    def _distances(self) -> Array:
        """Return standardized residuals or distances of the rows, shape (n,)."""
        raise NotImplementedError

    def _flags(self, level: float) -> np.ndarray:
        """Tell which rows lie beyond a level, shape (n,)."""
        raise NotImplementedError

    def outliers(self, level: float = 0.975) -> Labeled:
        """Tell which rows are outliers.

        Parameters
        ----------
        level : float, optional
            Fraction of clean rows that are not flagged, in (0, 1): of clean Gaussian data about
            ``1 - level`` are flagged by chance, of clean labels at most that.

        Returns
        -------
        ndarray or Series of bool, shape (n,)

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> bool(res.outliers()[[10, 19, 29, 33]].all())
        True
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level:g}")
        return labeled(self._flags(level), self.model.data.row_labels)

    def weight_table(self, k: int | None = 10, level: float = 0.975) -> pd.DataFrame:
        """Return the rows of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many; None for all.
        level : float, optional
            Level of the flag; see `outliers`.

        Returns
        -------
        DataFrame
            Loss, weight in units of equal ones, standardized residual or distance, and flag, by
            the index of the data; the smallest weights first.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> sorted(res.weight_table(4).index)
        [10, 19, 29, 33]
        """
        table = Table(
            {
                "loss": np.asarray(self.losses),
                "relative_weight": self.relative_weights,
                "distance": self._distances(),
                "outlier": self._flags(level),
            },
            index=self.model.data.row_labels,
        )
        return table.iloc[self.order_by_weight()[:k]]
