"""Rows as scikit-learn passes them, made ready for a model of rrmstats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import _check_sample_weight

from rrmstats.core.entropy import Array
from rrmstats.interchange import as_pandas

CONSTANT = "const"


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """The rows that count: those of positive weight.

    Attributes
    ----------
    x : ndarray, shape (m, d)
        Their features.
    counts : ndarray, shape (m,), or None
        How often each counts; None for once.
    used : ndarray of bool, shape (n,)
        Which of all rows they are.
    names : list of str or None
        Names of the features.
    index : pandas.Index or None
        Labels of the rows.
    """

    x: Array
    counts: Array | None
    used: np.ndarray
    names: list[str] | None
    index: pd.Index | None

    @property
    def total(self) -> float:
        """Number of rows; the sum of their counts where they have any."""
        return float(len(self.x) if self.counts is None else self.counts.sum())

    def table(self) -> Array | pd.DataFrame:
        """Return the features, shape (m, d), with their names where they have any."""
        return self._named(self.x, self.names)

    def design(self, constant: bool) -> Array | pd.DataFrame:
        """Return the design of a regression, a constant first where one is asked for."""
        if not constant:
            return self.table()
        names = None
        if self.names is not None:
            own = CONSTANT
            while own in self.names:
                own += "_"
            names = [own, *self.names]
        return self._named(np.column_stack([np.ones(len(self.x)), self.x]), names)

    def response(self, y: Array, given: Any) -> Array | pd.Series:
        """Return the response of these rows, shape (m,), labeled like the design.

        Parameters
        ----------
        y : ndarray, shape (n,)
            Response of all rows.
        given : array_like, shape (n,)
            The same as the user gave it, perhaps with a name.
        """
        values = np.asarray(y, dtype=float)[self.used]
        if self.names is None:
            return values
        name = getattr(as_pandas(given), "name", None)
        return pd.Series(values, index=self.index, name=name if isinstance(name, str) else None)

    def spread(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values of these rows among all rows, zero or False in the others, shape (n,)."""
        own = np.asarray(values)
        full = np.zeros(len(self.used), own.dtype)
        full[self.used] = own
        return full

    def _named(self, values: Array, names: list[str] | None) -> Array | pd.DataFrame:
        if names is None:
            return values
        return pd.DataFrame(values, columns=names, index=self.index)


def counted_rows(
    x: Array, given: Any, names: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None
) -> CountedRows:
    """Return the rows that count.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features of all rows.
    given : array_like, shape (n, d)
        The same as the user gave them, perhaps with labels.
    names : sequence of str or None
        Names of the features.
    sample_weight : array_like, shape (n,), or None
    """
    weights = frequency_weights(sample_weight, x)
    used = weights > 0
    index = given.index[used] if isinstance(given, pd.DataFrame) else None
    return CountedRows(
        x[used],
        None if sample_weight is None else weights[used],
        used,
        None if names is None else [str(name) for name in np.asarray(names)],
        index,
    )


def frequency_weights(sample_weight: npt.ArrayLike | None, x: Array) -> Array:
    """Return weights of rows as frequency weights, ones where there are none, shape (n,).

    Parameters
    ----------
    sample_weight : array_like, shape (n,), or None
    x : ndarray, shape (n, d)
    """
    weights = np.asarray(_check_sample_weight(sample_weight, x, dtype=np.float64))
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")
    if not weights.any():
        raise ValueError("sample_weight is zero in all rows; give at least one a positive weight")
    return weights
