"""Standard errors, tests and intervals of an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import Dependence
from rrmstats.interchange import as_values
from rrmstats.results.bootstrap import Replicates

COV_TYPES = ("sandwich", "cluster", "HAC", "bootstrap")


@dataclass(frozen=True, eq=False)
class Inference:
    """How standard errors are found.

    Attributes
    ----------
    cov_type : {"sandwich", "nonrobust", "cluster", "HAC", "bootstrap"}
    cov_kwds : mapping
        Its options, as they were given to `fit`.
    use_t : bool or None
        Whether tests use Student's t distribution; None for the default of the model.
    dependence : Dependence
        Which rows may depend on each other.
    replicates : Replicates or None
        What the bootstrap found.
    """

    cov_type: str
    cov_kwds: Mapping[str, Any]
    use_t: bool | None
    dependence: Dependence = field(default_factory=Dependence)
    replicates: Replicates | None = None

    def of_first_step(self) -> Inference:
        """Return the same for a first step; a bootstrap of it would take as long again."""
        if self.replicates is None:
            return self
        return Inference("sandwich", {}, self.use_t)

    def covariance(self, estimate: Estimate) -> Array:
        """Return the covariance of the parameters, shape (k, k)."""
        if self.replicates is not None:
            return self.replicates.covariance()
        if self.cov_type == "nonrobust":
            return estimate.nonrobust_covariance()
        return estimate.covariance(self.dependence)

    def of_influence(self, estimate: Estimate, influence: Array) -> Array:
        """Return the covariance of what has given influence functions (n, k), shape (k, k)."""
        return estimate.covariance_of(influence, self.dependence)

    def describe(self) -> str:
        """Return a sentence for the notes of a summary."""
        if self.replicates is not None:
            return f"Standard errors and intervals: {self.replicates.describe()}."
        kind = {
            "cluster": "clustered by groups",
            "HAC": f"for rows that depend on each other up to {self.dependence.maxlags} apart",
            "nonrobust": "for noise that does not change with the predictors",
        }.get(self.cov_type, "sandwich")
        return f"Standard errors: {kind}; the weights are estimated with the parameters."


def check_inference(
    cov_type: str,
    cov_kwds: Mapping[str, Any] | None,
    offered: Sequence[str] = COV_TYPES,
    weighted: bool = False,
) -> None:
    """Raise where a kind of standard errors or its options are not offered.

    Parameters
    ----------
    cov_type : str
    cov_kwds : mapping or None
    offered : sequence of str, optional
        Kinds that the model offers.
    weighted : bool, optional
        Whether the rows have frequency weights.
    """
    if cov_type not in offered:
        raise ValueError(
            f"cov_type must be one of {', '.join(offered)}, got {cov_type!r}; a covariance "
            "that takes the weights as known is not offered, because it is far too small"
        )
    given = sorted(cov_kwds or {})
    if cov_type in ("sandwich", "nonrobust") and cov_kwds:
        raise TypeError(f"cov_type={cov_type!r} takes no cov_kwds, got {given}")
    if cov_type == "cluster" and given != ["groups"]:
        raise TypeError(f"cov_type='cluster' takes cov_kwds={{'groups': labels}}, got {given}")
    if cov_type == "HAC" and given != ["maxlags"]:
        raise TypeError(f"cov_type='HAC' takes cov_kwds={{'maxlags': number}}, got {given}")
    if cov_type == "HAC" and weighted:
        raise ValueError(
            "cov_type='HAC' takes the rows to be in the order of time, which frequency weights "
            "do not tell; repeat the rows instead of weighting them"
        )


def row_dependence(
    cov_type: str, cov_kwds: Mapping[str, Any], n: int, index: pd.Index | None
) -> Dependence:
    """Return which of n rows may depend on each other, as `cov_kwds` tell."""
    if cov_type == "cluster":
        return Dependence(groups=group_numbers(cov_kwds, n, index))
    if cov_type == "HAC":
        return Dependence(maxlags=lag_number(cov_kwds, n))
    return Dependence()


def lag_number(cov_kwds: Mapping[str, Any], n: int) -> int:
    """Return `maxlags` of `cov_kwds`, for the n rows of a model."""
    lags = cov_kwds["maxlags"]
    if isinstance(lags, bool) or not isinstance(lags, int | np.integer) or not 0 <= lags < n:
        raise ValueError(
            f"maxlags must be a whole number from 0 to {n - 1}, one less than the rows, "
            f"got {lags!r}"
        )
    return int(lags)


def group_numbers(cov_kwds: Mapping[str, Any], n: int, index: pd.Index | None) -> np.ndarray:
    """Return the clusters of `cov_kwds` numbered from zero, for the n rows of a model."""
    groups = as_values(cov_kwds["groups"])
    if isinstance(groups, pd.Series) and index is not None and len(groups) != n:
        groups = groups.loc[index]
    numbers, levels = pd.factorize(np.asarray(groups))
    if len(numbers) != n:
        raise ValueError(
            f"groups must have one label for each of the {n} rows, got {len(numbers)}"
        )
    if (numbers < 0).any():
        raise ValueError("groups must not be missing; drop the rows without a label")
    if len(levels) < 2:
        raise ValueError("cov_type='cluster' needs at least two groups, got one")
    return numbers


def nested_restriction(mine: Sequence[str], theirs: Sequence[str]) -> Array:
    """Return the rows of the identity that test the terms which a smaller model lacks."""
    others = [name for name in theirs if name not in mine]
    tested = [name for name in mine if name not in theirs]
    if others or not tested:
        raise ValueError(
            "compare needs a smaller, nested model: its predictors must be some, not all, of "
            f"{list(mine)}, got {list(theirs)}"
        )
    return np.eye(len(mine))[[mine.index(name) for name in tested]]


def shifted_intervals(ends: Array, errors: Array, shift: Array) -> Array:
    """Return intervals around other centers, shape (k, 2); they keep the old centers inside.

    Parameters
    ----------
    ends : ndarray, shape (k, 2)
        Intervals around the parameters.
    errors, shift : ndarray, shape (k,)
        Standard errors, the shift included, and how far the centers are to move.
    """
    center = ends.mean(axis=1, keepdims=True)
    narrower = np.sqrt(1.0 - (shift / errors) ** 2)
    moved = center + shift[:, None] + narrower[:, None] * (ends - center)
    low, high = moved.T
    return np.column_stack([np.minimum(low, center[:, 0]), np.maximum(high, center[:, 0])])
