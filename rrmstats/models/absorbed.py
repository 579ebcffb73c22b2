"""Absorbed factors of a linear regression, from labels or from a formula with a bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import ROUNDING
from rrmstats.interchange import as_pandas, is_dask
from rrmstats.losses.absorbed import Factors, without_singletons

DASK = (
    "absorbed effects need all rows in memory, but these lie in partitions; use data.compute(), "
    "or C(factor) in the formula of rrmstats.ols where a factor has few levels"
)


@dataclass(frozen=True, eq=False)
class AbsorbedFactors:
    """Factors whose levels have effects of their own.

    Attributes
    ----------
    names : list of str
    levels : list of Index
        Labels of the levels of each factor.
    codes : ndarray of int, shape (n, f)
        Numbers of the levels of the rows that are kept.
    kept : ndarray of bool, shape (m,)
        Which of the given rows these are: those that are not alone in a level.
    """

    names: list[str]
    levels: list[pd.Index]
    codes: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, absorb: Any, n: int, partitioned: bool = False) -> AbsorbedFactors:
        """Return the factors of labels, without rows that are alone in a level."""
        if partitioned or is_dask(absorb):
            raise NotImplementedError(DASK)
        frame = pd.DataFrame(as_pandas(absorb))
        names = [str(name) if isinstance(name, str) else f"absorb {name}" for name in frame]
        if len(frame) != n:
            raise ValueError(
                f"absorb must have one row of labels for each of the {n} rows, got {len(frame)}; "
                "where rows have missing values use rrmstats.feols, or drop them first"
            )
        labels = [pd.factorize(column, sort=True) for _, column in frame.items()]
        codes = np.column_stack([each[0] for each in labels])
        for name, column in zip(names, codes.T, strict=True):
            missing = int((column < 0).sum())
            if missing:
                raise ValueError(f"absorb: {name} has {missing} missing labels; drop these rows")
            if len(np.unique(column)) < 2:
                raise ValueError(
                    f"absorb: {name} has one level, which tells nothing of the rows; leave it out"
                )
        kept = without_singletons(codes)
        if not kept.any():
            raise ValueError(
                f"absorb: each row is alone in a level of {' or '.join(names)}; absorb factors "
                "with more rows per level"
            )
        levels = [pd.Index(each[1]) for each in labels]
        if not kept.all():
            used = [np.unique(column) for column in codes[kept].T]
            levels = [each[some] for each, some in zip(levels, used, strict=True)]
            codes = numbered(codes[kept])
        return cls(names, levels, codes, kept)

    @property
    def n_dropped(self) -> int:
        """Number of rows that were alone in a level."""
        return int((~self.kept).sum())

    def rows(self, *arrays: Any) -> list[Any]:
        """Return the kept rows of arrays that have all; None stays."""
        if not self.n_dropped:
            return list(arrays)
        return [
            each
            if each is None
            else each[self.kept]
            if hasattr(each, "loc")
            else np.asarray(each)[self.kept]
            for each in arrays
        ]

    def check(self, exog: Array, factors: Factors, names: list[str]) -> None:
        """Raise where the effects leave too few rows, or nothing of a column of the design."""
        n, (rows, k) = len(self.codes), exog.shape
        if rows != n:
            raise ValueError(
                f"absorb has labels of {n} rows, but {rows} have no missing values; use "
                "rrmstats.feols, or drop the others first"
            )
        if factors.n_effects + k >= n:
            raise ValueError(
                f"absorb has {factors.n_effects} effects for {n} rows and {k} predictors, which "
                "leaves no degrees of freedom; absorb factors with fewer levels"
            )
        within = factors.within(exog, np.ones(n))
        flat = np.abs(within).max(axis=0) <= ROUNDING * np.abs(exog).max(axis=0)
        if flat.any():
            told = ", ".join(name for name, is_flat in zip(names, flat, strict=True) if is_flat)
            raise ValueError(
                f"{told} does not vary within the levels of {' and '.join(self.names)}, whose "
                "effects explain all of it; drop it"
            )


def numbered(codes: np.ndarray) -> np.ndarray:
    """Return levels numbered from zero without gaps, column by column, shape (n, f)."""
    return np.column_stack([np.unique(each, return_inverse=True)[1] for each in codes.T])
