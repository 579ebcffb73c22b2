"""Tables of what has a weight each: rows, or groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rrmstats.core.block_array import smallest, taken
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED
from rrmstats.core.grouped import GroupedEstimate
from rrmstats.core.sandwich import relative_weights
from rrmstats.results.inference import checked_level
from rrmstats.results.labels import Labeled, labeled
from rrmstats.results.summary import LIKELY, Table

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults


class Units:
    """Order, flags and tables of rows that have a weight each, or of groups in their place."""

    model: Any
    nobs: float
    weights: Array
    losses: Array
    relative_weights: Any

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
            self.model.refuse_partitions("the order of all rows", "ask for some of them")
            count = int(self.nobs)
        return smallest(count, self.relative_weights, -self.losses)

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows, or their positions where they have none."""
        self.model.refuse_partitions("row_names", "use the index of the data")
        return [str(name) for name in self._labels_at(np.arange(int(self.nobs)))]

    @property
    def _labels(self) -> Any:
        """Labels of all rows, those of rows in partitions; None where they have none."""
        return self.model.data.row_labels

    def _labels_at(self, places: np.ndarray) -> Any:
        """Return the labels of some rows, or their positions where they have none."""
        labels = self._labels
        if labels is None or isinstance(labels, pd.Index):
            return places if labels is None else labels[places]
        return labels.labels_at(places)

    def _distances(self) -> Array:
        """Return standardized residuals or distances of the rows, shape (n,)."""
        raise NotImplementedError

    def _flags(self, level: float) -> np.ndarray:
        """Tell which rows lie beyond a level, shape (n,)."""
        raise NotImplementedError

    def _flagged(self, level: float | None) -> np.ndarray:
        """Tell which rows are bad, or lie beyond a level where one is given, shape (n,)."""
        prob_bad = vars(self).get("prob_bad")
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
        return labeled(self._flagged(level), self._labels)

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
        prob_bad = vars(self).get("prob_bad")
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
            "prob_bad": vars(self).get("prob_bad"),
            "outlier": self._flagged(level),
        }
        known = {name: values for name, values in columns.items() if values is not None}
        values = taken(places, *known.values())
        return Table(dict(zip(known, values, strict=True)), index=self._labels_at(places))


class GroupView(Units):
    """Groups in the place of rows, as pictures and tables read them.

    Attributes
    ----------
    model : RRMModel
    nobs : float
        Number of groups.
    weights, relative_weights, losses, distances : ndarray, shape (g,)
    row_names : list of str
        Labels of the groups.
    prob_bad : ndarray, shape (g,), or None
        Probability of each group to be bad; None in one step.
    """

    def __init__(self, results: RRMResults) -> None:
        self.model, self._results = results.model, results
        groups = self.model.row_groups
        base = groups.sizes / groups.sizes.sum()
        self.nobs, self.codes = float(groups.count), groups.codes
        self.weights = np.zeros(groups.count)
        np.add.at(self.weights, groups.codes, np.asarray(results.weights))
        self.relative_weights = relative_weights(self.weights, base)
        self.losses = groups.means(np.asarray(results.losses))
        self.prob_bad = results._unit_prob_bad

    @property
    def _labels(self) -> Any:
        return self.model.group_labels.rename("group")

    @property
    def distances(self) -> Array:
        """Mean losses as standard normal scores, shape (g,)."""
        return self._distances()

    def _distances(self) -> Array:
        estimate = self._results._estimate
        if isinstance(estimate, GroupedEstimate):
            return estimate.scores
        return np.asarray(self._results._distances())

    def _flags(self, level: float) -> np.ndarray:
        estimate = self._results._estimate
        if isinstance(estimate, GroupedEstimate):
            return estimate.flags(level)
        return self._results._flags(level)

    def _rows_at(self, places: np.ndarray, level: float | None) -> pd.DataFrame:
        table = super()._rows_at(places, level)
        table.insert(0, "rows", np.bincount(self.codes)[places])
        return table
