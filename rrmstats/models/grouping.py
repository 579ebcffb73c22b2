"""Groups of rows: one weight per group, for clusters that are bad as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem
from rrmstats.core.grouped import GroupedProblem, Groups
from rrmstats.core.sandwich import Dependence
from rrmstats.core.setting import ThetaStep
from rrmstats.interchange import as_values
from rrmstats.results.inference import check_inference, group_numbers


class GroupedModel:
    """A model whose rows may come in groups.

    A model takes ``groups`` in its constructor and calls `_set_groups` with it once statsmodels
    has dropped the rows that it drops.
    """

    #: How often each row counts; None where each counts once.
    freq_weights: Array | None
    #: Labels of the groups of the rows that the model has, shape (n,); None without groups.
    groups: np.ndarray | None = None
    #: The groups and their labels; None without groups.
    numbered_groups: tuple[Groups, pd.Index] | None = None
    endog: Array
    data: Any
    _init_keys: list[str]

    def _set_groups(self, groups: Any) -> None:
        """Keep the labels of the groups of the rows that statsmodels kept.

        `groups` has one label per row, of the rows before any were dropped; None for no groups.
        """
        self._init_keys = [*self._init_keys, "groups"]
        if groups is None:
            return
        labels, dropped = label_array(groups), getattr(self.data, "missing_row_idx", None)
        if dropped is not None and len(labels) == len(self.endog) + len(dropped):
            labels = np.delete(labels, np.asarray(dropped, dtype=int))
        self.groups = checked_labels(labels, len(self.endog))
        self._number_groups()

    def _number_groups(self) -> None:
        """Keep the groups, numbered in the order of their first rows."""
        codes, labels = pd.factorize(np.asarray(self.groups))
        self.numbered_groups = Groups(codes, len(labels), self.freq_weights), pd.Index(labels)

    @property
    def group_labels(self) -> pd.Index | None:
        """Labels of the groups, in the order of their first rows; None without groups."""
        return None if self.numbered_groups is None else self.numbered_groups[1]

    @property
    def weighs_groups(self) -> bool:
        """Whether weights are of groups: groups of one row each are rows."""
        return self.numbered_groups is not None and self.numbered_groups[0].count < len(self.endog)

    def _search_problem(self) -> EstimableProblem:
        """Return the problem whose observations have the weights: rows or groups."""
        problem: EstimableProblem = self.problem()  # type: ignore[attr-defined]  # the model's
        if self.numbered_groups is None or not self.weighs_groups:
            return problem
        return GroupedProblem(problem, self.numbered_groups[0])

    @property
    def _search_counts(self) -> Array | None:
        """How often the observations of that problem count: the sizes of the groups."""
        if self.numbered_groups is None or not self.weighs_groups:
            return self.freq_weights
        return self.numbered_groups[0].sizes

    def _sampled_groups(self, rows: int, rng: np.random.Generator) -> np.ndarray | None:
        """Return the rows of random groups, about `rows` of them; None without groups."""
        if self.numbered_groups is None or not self.weighs_groups:
            return None
        groups = self.numbered_groups[0]
        order = rng.permutation(groups.count)
        total = np.cumsum(np.bincount(groups.codes)[order])
        return np.sort(groups.members(order[: max(2, int(np.searchsorted(total, rows)))]))

    def _group_dependence(self, cov_kwds: Mapping[str, Any]) -> Dependence:
        """Return which groups may depend on each other."""
        assert self.numbered_groups is not None
        if not cov_kwds:
            return Dependence()
        check_inference("cluster", cov_kwds)
        clusters = group_numbers(cov_kwds, len(self.endog), self.data.row_labels)
        groups = self.numbered_groups[0]
        found = np.zeros(groups.count, dtype=int)
        found[groups.codes] = clusters
        if (found[groups.codes] != clusters).any():
            raise ValueError(
                "cov_kwds={'groups': ...} splits some of the groups that have one weight; give "
                "clusters that hold whole groups, or leave cov_kwds out"
            )
        return Dependence(groups=found)


def chosen_cov_type(cov_type: str | None, cov_kwds: Mapping[str, Any], grouped: bool) -> str:
    """Return the kind of standard errors: the one asked for, or the default of a model."""
    if cov_type is None:
        return "cluster" if grouped or "groups" in cov_kwds else "sandwich"
    if grouped and cov_type not in ("cluster", "bootstrap"):
        raise ValueError(
            f"cov_type={cov_type!r} takes rows as they are, but with groups= whole groups have "
            "influence; leave cov_type out for errors clustered by the groups, or use 'bootstrap'"
        )
    return cov_type


def grouped_step(step: ThetaStep | None, problem: EstimableProblem) -> ThetaStep | None:
    """Return a refit under weights of rows as one under weights of groups, where these count."""
    if step is None or not isinstance(problem, GroupedProblem):
        return step
    refit, rows = step, problem.groups.rows
    return lambda weights, theta: refit(rows(weights), theta)


def row_problem(problem: EstimableProblem) -> Any:
    """Return the problem of the rows, in whose coordinates parameters are."""
    return problem.problem if isinstance(problem, GroupedProblem) else problem


def label_array(groups: Any, n: int | None = None) -> np.ndarray:
    """Return labels, one for each of n rows, as an array; raise on what cannot be labels."""
    if isinstance(groups, str):
        raise TypeError(
            f"groups={groups!r} names a column, but arrays have none; give the labels themselves, "
            f"data[{groups!r}], or use a formula"
        )
    labels = np.asarray(as_values(groups))
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"groups must have one label per row, got shape {labels.shape}")
    if n is not None and len(labels) != n:
        raise ValueError(f"groups must have one label for each of the {n} rows, got {len(labels)}")
    return labels


def checked_labels(labels: np.ndarray, n: int) -> np.ndarray:
    """Return the labels of n rows, or say what is wrong with them."""
    labels = label_array(labels, n)
    missing = int(pd.isna(labels).sum())
    if missing:
        raise ValueError(
            f"groups has {missing} missing labels; drop these rows or give them a label of their "
            "own"
        )
    if len(pd.unique(labels)) < 2:
        raise ValueError(
            "groups needs at least two groups, got one; leave groups out to weight rows"
        )
    return labels


def column_labels(groups: Any, data: Any) -> Any:
    """Return the labels that `groups` of a formula stand for: a column of the data, or labels.

    Parameters
    ----------
    groups : str, or array_like with one label per row
    data : DataFrame or mapping
    """
    if not isinstance(groups, str):
        return groups
    names = [str(name) for name in (data.columns if hasattr(data, "columns") else data)]
    if groups not in names:
        near = get_close_matches(groups, names, 1, 0.0)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"groups={groups!r} is not a column of the data{hint}")
    return data[groups]


def of_subset(values: Any, data: pd.DataFrame, subset: Any) -> Any:
    """Return values of all rows for those of a subset; values of another number as they are.

    Parameters
    ----------
    values : array_like
        One per row of the data, or of the subset.
    data : DataFrame
    subset : array_like
        Rows of `data` to use.
    """
    if isinstance(values, pd.Series) and values.index.equals(data.index):
        return values.loc[subset]
    if np.ndim(values) == 1 and len(values) == len(data):
        return pd.Series(np.asarray(values), index=data.index).loc[subset]
    return values
