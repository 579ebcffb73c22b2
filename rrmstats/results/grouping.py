"""What results tell of groups: weights, mean losses, distances and flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED
from rrmstats.core.group_estimate import GroupedEstimate
from rrmstats.results.rows import checked_level
from rrmstats.results.steps import StepResults
from rrmstats.results.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class GroupView:
    """Groups in the place of rows, as pictures and tables read them.

    Attributes
    ----------
    model : RRMModel
    weights, relative_weights, losses, distances : ndarray, shape (g,)
    row_names : list of str
        Labels of the groups.
    prob_bad : ndarray, shape (g,), or None
        Probability of each group to be bad; None in one step.
    trace : DataFrame
    """

    results: GroupResults
    model: Any
    weights: Array
    relative_weights: Array
    losses: Array
    row_names: list[str]
    prob_bad: Array | None = None
    trace: Any = None

    @property
    def distances(self) -> Array:
        """Mean losses as standard normal scores, shape (g,)."""
        return self.results._unit_distances()

    def order_by_weight(self) -> np.ndarray:
        """Return the positions of the groups, the smallest weight first, ties by larger loss."""
        return np.lexsort((-self.losses, self.relative_weights))

    def outliers(self, level: float | None = None) -> np.ndarray:
        """Tell which groups are outliers, shape (g,)."""
        return self.results._unit_flags(level)


class GroupResults(StepResults):
    """Results of a model that may have groups; without them all of this raises ValueError."""

    @property
    def group_view(self) -> GroupView | None:
        """The groups in the place of rows; None without groups."""
        if self.model.groups is None or self.weights is None:
            return None
        groups, labels = self.model._grouped
        weights = np.zeros(groups.count)
        np.add.at(weights, groups.codes, np.asarray(self.weights))
        base = groups.sizes / groups.sizes.sum()
        return GroupView(
            self,
            self.model,
            weights,
            np.divide(weights, base, out=np.zeros(groups.count), where=base > 0),
            groups.means(np.asarray(self.losses)),
            [str(label) for label in labels],
            self._unit_prob_bad,
        )

    def _groups(self) -> GroupView:
        view = self.group_view
        if view is None:
            raise ValueError(
                "the model has no groups; give groups=, a column of the data or labels of the rows"
            )
        return view

    def _by_group(self, values: np.ndarray, name: str) -> pd.Series:
        return pd.Series(values, index=self.model.group_labels.rename("group"), name=name)

    @property
    def group_weights(self) -> pd.Series:
        """Weight of each group by its label, in units of its size: 1 where all are equal.

        Examples
        --------
        >>> import numpy as np, pandas as pd, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"sensor": np.repeat(list("abcdefghij"), 8)})
        >>> data["x"] = rng.standard_normal(80)
        >>> data["y"] = 2 * data.x + 0.1 * rng.standard_normal(80)
        >>> data.loc[data.sensor == "c", "y"] *= -1
        >>> res = rrmstats.ols("y ~ x", data, eps_bar=0.2, groups="sensor").fit()
        >>> res.group_weights.idxmin(), bool(res.group_weights["c"] < 1e-6)
        ('c', True)
        """
        return self._by_group(self._groups().relative_weights, "relative_weight")

    def outlier_groups(self, level: float | None = None) -> pd.Series:
        """Tell which groups are outliers.

        Parameters
        ----------
        level : float, optional
            Fraction of clean groups that are not flagged, in (0, 1). By default the flags of a
            second step are the groups that are more likely bad than good; those of a first step
            have the level 0.975.

        Returns
        -------
        Series of bool
            By the labels of the groups.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> z, unit = rng.standard_normal((200, 2)), np.repeat(np.arange(20), 10)
        >>> z[unit == 7] += 6
        >>> res = rrmstats.RRMCov(z, eps_bar=0.2, groups=unit).fit()
        >>> flags = res.outlier_groups(0.999)
        >>> list(flags.index[flags])
        [7]
        """
        self._groups()
        return self._by_group(self._unit_flags(level), "outlier")

    def group_table(self, k: int | None = 10, level: float | None = None) -> pd.DataFrame:
        """Return the groups of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many; None for all.
        level : float, optional
            Level of the flag; see `outlier_groups`.

        Returns
        -------
        DataFrame
            Number of rows, mean loss, weight in units of the size, how far out the mean loss is
            as a standard normal score, and flag, by the label of the group; the smallest weights
            first.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> z, unit = rng.standard_normal((200, 2)), np.repeat(np.arange(20), 10)
        >>> z[unit == 7] += 6
        >>> table = rrmstats.RRMCov(z, eps_bar=0.2, groups=unit).fit().group_table(3)
        >>> int(table.index[0]), int(table["rows"].iloc[0])
        (7, 10)
        """
        view, codes = self._groups(), self.model._grouped[0].codes
        table = Table(
            {
                "rows": np.bincount(codes),
                "loss": view.losses,
                "relative_weight": view.relative_weights,
                "distance": view.distances,
                "outlier": self._unit_flags(level),
            },
            index=self.model.group_labels.rename("group"),
        )
        return table.iloc[view.order_by_weight()[:k]]

    def _unit_distances(self) -> Array:
        """Return how far out groups are, or rows where these have the weights."""
        estimate = self._estimate
        if isinstance(estimate, GroupedEstimate):
            return estimate.scores
        return np.asarray(self._distances())

    @property
    def _unit_prob_bad(self) -> Array | None:
        """Probability of each group to be bad, or of each row where these have the weights."""
        explained = self._estimate.explained
        return None if explained is None else explained.chosen.prob_bad

    def _unit_flags(self, level: float | None = None) -> np.ndarray:
        """Tell which groups are bad, or which rows where these have the weights.

        Where a level is given, or without a second step, those that lie beyond a level.
        """
        estimate, prob_bad = self._estimate, self._unit_prob_bad
        if not isinstance(estimate, GroupedEstimate):
            return np.asarray(self._flagged(level))
        if level is None and prob_bad is not None:
            return prob_bad > FLAGGED
        return estimate.flags(checked_level(level))

    def _group_notes(self) -> list[str]:
        """Return sentences on the groups, where there are any."""
        if self.model.groups is None:
            return []
        count, two = len(self.model.group_labels), self.steps == 2 and self.explanation is not None
        named = ""
        if self.weights is not None and self.eps_bar > 0:
            flags = self.outlier_groups(None if two else 0.999)
            names = [str(label) for label in flags.index[flags]]
            shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
            found = "Bad" if two else "Far out"
            named = f" {found}: {shown}." if names else f" None is {found.lower()}."
        how = "is good or bad as a whole" if two else "has one weight, which its rows share"
        notes = [
            f"Each of {count} groups {how}; eps_bar bounds the fraction of rows in bad groups."
            f"{named}"
        ]
        if self._design_effect > 1:
            notes.append(
                "The rows of a group depend on each other: where bad groups are told from good "
                f"ones, a group counts as if it had 1 / {self._design_effect:.2g} of its rows."
            )
        return notes
