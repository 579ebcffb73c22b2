"""Labels of rows and variables, attached where the data had them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rrmstats.core.block_array import blocked, row_map
from rrmstats.core.entropy import Array

#: Rows to predict; those of the fit where none are given.
NewRows = pd.DataFrame | ArrayLike | None
#: Values by row, variable or term: a Series where the data had labels.
Labeled = np.ndarray | pd.Series
#: A table of values: a DataFrame where the data had labels.
LabeledTable = np.ndarray | pd.DataFrame


def labeled(values: np.ndarray, index: list[str] | pd.Index | None) -> Labeled:
    """Return values as a Series with an index, or as they are where there is none.

    Values in partitions become a Dask collection.
    """
    if blocked(values):
        return index.labeled(values)  # type: ignore[union-attr]  # rows in partitions
    return values if index is None else pd.Series(values, index=index)


def labeled_table(
    values: Array, index: list[str] | pd.Index | None, columns: list[str]
) -> LabeledTable:
    """Return values as a DataFrame, or as they are where there is no index.

    Values in partitions become a Dask collection.
    """
    if blocked(values):
        return index.labeled(values, columns)  # type: ignore[union-attr]  # rows in partitions
    return values if index is None else pd.DataFrame(values, index=index, columns=columns)


def side_by_side(*columns: Array) -> Array:
    """Return values of rows (n,) as the columns of a table, shape (n, m); in memory or blocks."""
    return row_map(_stacked, *columns, tail=(len(columns),))


def _stacked(*columns: Array) -> Array:
    return np.column_stack(columns)


def prediction_frame(values: dict[str, Array], index: pd.Index | None) -> pd.DataFrame:
    """Return predictions by name as a data frame, of rows in partitions as a Dask one."""
    if any(blocked(column) for column in values.values()):
        return index.labeled(side_by_side(*values.values()), list(values))  # type: ignore[union-attr]  # rows in partitions
    return pd.DataFrame(values, index=index)
