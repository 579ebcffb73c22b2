"""What results tell of each row: weights, losses, distances and flags."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.block_array import smallest, taken
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED
from rrmstats.core.sandwich import relative_weights
from rrmstats.interchange import as_pandas, as_values
from rrmstats.results.hypotheses import WaldResults
from rrmstats.results.labels import Labeled, labeled
from rrmstats.results.summary import LIKELY
from rrmstats.results.tables import Table

# Fraction of clean rows that are not flagged, where flags go by distances.
LEVEL = 0.975


class RowResults(WaldResults):
    """Results that give each row a weight and a distance."""

    model: Any
    weights: Array
    losses: Array
    nobs: float

    @property
    def relative_weights(self) -> Array:
        """Weights in units of equal ones, or of the frequency weights, shape (n,)."""
        return relative_weights(self.weights, self._base)

    @property
    def _base(self) -> Array | None:
        counts = self.model.freq_weights
        return None if counts is None else counts / counts.sum()

    def order_by_weight(self, count: int | None = None) -> np.ndarray:
        """Return the positions of the rows, the smallest weight first, ties by larger loss.

        Parameters
        ----------
        count : int, optional
            How many; None for all.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> sorted(res.order_by_weight(4).tolist())
        [10, 19, 29, 33]
        """
        if count is None:
            self.model._refuse_partitions("the order of all rows", "ask for some of them")
            count = int(self.nobs)
        return smallest(count, self.relative_weights, -self.losses)

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows, or their positions where they have none."""
        self.model._refuse_partitions("row_names", "use the index of the data")
        return self._names_at(np.arange(int(self.nobs)))

    def _names_at(self, places: np.ndarray) -> list[str]:
        """Return the labels of some rows, or their positions where they have none."""
        labels = self._labels_at(places)
        return [str(name) for name in (places if labels is None else labels)]

    def _labels_at(self, places: np.ndarray) -> pd.Index | None:
        labels = self.model.data.row_labels
        if labels is None or isinstance(labels, pd.Index):
            return None if labels is None else labels[places]
        return labels.labels_at(places)

    def _distances(self) -> Array:
        """Return standardized residuals or distances of the rows, shape (n,)."""
        raise NotImplementedError

    def _flags(self, level: float) -> np.ndarray:
        """Tell which rows lie beyond a level, shape (n,)."""
        raise NotImplementedError

    def _flagged(self, level: float | None) -> np.ndarray:
        """Tell which rows are bad, or lie beyond a level where one is given, shape (n,)."""
        prob_bad = self.__dict__.get("prob_bad")
        if level is None and prob_bad is not None:
            return np.greater(prob_bad, FLAGGED)
        return self._flags(checked_level(level))

    def outliers(self, level: float | None = None) -> Labeled:
        """Tell which rows are outliers.

        Parameters
        ----------
        level : float, optional
            Fraction of clean rows that are not flagged, in (0, 1): of clean Gaussian data about
            ``1 - level`` are flagged by chance, of clean labels at most that. By default the
            flags of a second step are the rows that are more likely bad than good, ``prob_bad >
            0.5``; those of a first step have the level 0.975.

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
        return labeled(self._flagged(level), self.model.data.row_labels)

    def weight_table(self, k: int | None = 10, level: float | None = None) -> pd.DataFrame:
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
            Loss, weight in units of equal ones, standardized residual or distance, in two steps
            the probability to be bad, and flag, by the index of the data; the smallest weights
            first.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> sorted(res.weight_table(4).index)
        [10, 19, 29, 33]
        """
        return self._rows_at(self.order_by_weight(k), level)

    def suspicious_table(self, k: int = 10) -> pd.DataFrame:
        """Return the rows most likely bad, or in one step those of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many at most.

        Returns
        -------
        DataFrame
            As `weight_table` has it, the most likely bad rows first; those with a probability
            below 1 % are left out.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> table = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit().suspicious_table()
        >>> bool(table["prob_bad"].is_monotonic_decreasing), {10, 19, 29, 33} <= set(table.index)
        (True, True)
        """
        prob_bad = self.__dict__.get("prob_bad")
        if prob_bad is None:
            return self.weight_table(k)
        places = smallest(k, -prob_bad, -self.losses)
        return self._rows_at(places[np.asarray(taken(places, prob_bad)[0]) >= LIKELY], None)

    def outlier_table(self, k: int | None = None, level: float | None = None) -> pd.DataFrame:
        """Return the flagged rows.

        Parameters
        ----------
        k : int, optional
            How many at most; None for all.
        level : float, optional
            Level of the flag; see `outliers`.

        Returns
        -------
        DataFrame
            As `weight_table` has it, the smallest weights first.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> len(res.outlier_table()) == int(res.outliers().sum())
        True
        """
        flags = self._flagged(level)
        count = int(flags.sum())
        count = count if k is None else min(count, k)
        return self._rows_at(
            smallest(count, 1.0 - flags, self.relative_weights, -self.losses), level
        )

    def _rows_at(self, places: np.ndarray, level: float | None) -> pd.DataFrame:
        """Return loss, weight, distance, probability to be bad and flag of some rows."""
        columns = {
            "loss": self.losses,
            "relative_weight": self.relative_weights,
            "distance": self._distances(),
            "prob_bad": self.__dict__.get("prob_bad"),
            "outlier": self._flagged(level),
        }
        known = {name: values for name, values in columns.items() if values is not None}
        values = taken(places, *known.values())
        labels = self._labels_at(places)
        index = places if labels is None else labels
        return Table(dict(zip(known, values, strict=True)), index=index)

    @cached_property
    def seen_rows(self) -> Any:
        """The fit as pictures draw it: itself, or a sample where rows are in partitions."""
        if self.model._held is None:
            return self
        model, estimate = self.model._on_sample(self._estimate)
        return model._results(estimate, self._inference)

    def _rows_to_predict(self, exog: Any, transform: bool) -> tuple[Array, pd.Index | None]:
        """Return rows of the design, those of the fit where none are given, and their labels."""
        if exog is None:
            return self.model.exog, self.model.data.row_labels
        held = self.model._rows_of(exog)
        if held is not None:
            return held.arrays["exog"], held
        exog = as_pandas(exog)
        rows, labels = self._transform_predict_exog(exog, transform=transform)
        return np.atleast_2d(np.asarray(rows, dtype=float)), labels

    def predict(self, exog: Any = None, transform: bool = True, *args: Any, **kwargs: Any) -> Any:
        """Return predictions for new data, or for the rows of the fit, as statsmodels does.

        Parameters
        ----------
        exog : array_like, DataFrame or Dask collection, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        *args, **kwargs
            Passed on to the `predict` of statsmodels' model.

        Returns
        -------
        ndarray, Series or Dask collection

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.predict(stars.head(2)).round().tolist()
        [5.0, 5.0]
        """
        if self.model._held is None if exog is None else not self.model._lies_in_parts(exog):
            kwargs = {name: as_values(value) for name, value in kwargs.items()}
            return super().predict(as_pandas(exog), transform, *args, **kwargs)
        if args or kwargs:
            given = ", ".join(kwargs) or "more arguments"
            raise NotImplementedError(
                f"predict takes no {given} for rows in partitions; predict one partition at a "
                "time, with map_partitions"
            )
        rows, labels = self._rows_to_predict(exog, transform)
        offset = self.model._fitted_offset if exog is None else 0.0
        return labeled(self.model._predicted(np.asarray(self.params), rows, offset), labels)


def checked_level(level: float | None) -> float:
    """Return a level of flags, the usual one for None; raise where it is not one."""
    if level is None:
        return LEVEL
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level:g}")
    return level
