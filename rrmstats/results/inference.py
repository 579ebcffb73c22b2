"""Standard errors, tests and intervals of an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import influence_covariance
from rrmstats.results.bootstrap import Replicates

COV_TYPES = ("sandwich", "cluster", "bootstrap")


@dataclass(frozen=True, eq=False)
class Inference:
    """How standard errors are found.

    Attributes
    ----------
    cov_type : {"sandwich", "cluster", "bootstrap"}
    cov_kwds : mapping
        Its options, as they were given to `fit`.
    use_t : bool or None
        Whether tests use Student's t distribution; None for the default of the model.
    groups : ndarray of int, shape (n,), or None
        Clusters, numbered from zero.
    replicates : Replicates or None
        What the bootstrap found.
    """

    cov_type: str
    cov_kwds: Mapping[str, Any]
    use_t: bool | None
    groups: np.ndarray | None = None
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
        return estimate.covariance(self.groups)

    def of_influence(self, estimate: Estimate, influence: Array) -> Array:
        """Return the covariance of what has given influence functions (n, k), shape (k, k)."""
        return influence_covariance(influence, estimate.base, estimate.wnobs, self.groups)

    def describe(self) -> str:
        """Return a sentence for the notes of a summary."""
        if self.replicates is not None:
            return f"Standard errors and intervals: {self.replicates.describe()}."
        kind = "clustered by groups" if self.cov_type == "cluster" else "sandwich"
        return f"Standard errors: {kind}; the weights are estimated with the parameters."


def check_inference(cov_type: str, cov_kwds: Mapping[str, Any] | None) -> None:
    """Raise where a kind of standard errors or its options are not offered."""
    if cov_type not in COV_TYPES:
        raise ValueError(
            f"cov_type must be one of {', '.join(COV_TYPES)}, got {cov_type!r}; a covariance "
            "that takes the weights as known is not offered, because it is far too small"
        )
    if cov_type == "sandwich" and cov_kwds:
        raise TypeError(f"cov_type='sandwich' takes no cov_kwds, got {sorted(cov_kwds)}")
    if cov_type == "cluster" and set(cov_kwds or {}) != {"groups"}:
        raise TypeError(
            f"cov_type='cluster' takes cov_kwds={{'groups': labels}}, got {sorted(cov_kwds or {})}"
        )


def group_numbers(cov_kwds: Mapping[str, Any], n: int, index: pd.Index | None) -> np.ndarray:
    """Return the clusters of `cov_kwds` numbered from zero, for the n rows of a model."""
    groups = cov_kwds["groups"]
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
