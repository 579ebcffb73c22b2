"""Data frames and columns of polars and pyarrow, as those of pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["as_pandas", "as_values"]

# What reads the rows of objects that only describe them.
UNREAD = {
    "LazyFrame": "collect()",
    "RecordBatchReader": "read_all()",
    "Dataset": "to_table()",
    "FileSystemDataset": "to_table()",
    "InMemoryDataset": "to_table()",
    "Scanner": "to_table()",
}


def as_pandas(data: Any) -> Any:
    """Return data of polars and pyarrow as pandas has them, and all other data as they are.

    Missing values become those of pandas: whole numbers with some become floats. Rows are numbered
    from 0, but for a pyarrow table that keeps an index of pandas.

    Parameters
    ----------
    data : polars DataFrame or Series, pyarrow Table, RecordBatch or Array, mapping, or other
        The values of a mapping are converted.

    Returns
    -------
    DataFrame, Series, mapping, or `data` itself

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rrmstats.interchange import as_pandas
    >>> as_pandas(pa.table({"x": [1, None], "s": ["a", "b"]}))
         x  s
    0  1.0  a
    1  NaN  b
    """
    if isinstance(data, pd.DataFrame | pd.Series | np.ndarray):
        return data
    if isinstance(data, Mapping):
        foreign = any(_package(column) for column in data.values())
        return {name: as_pandas(column) for name, column in data.items()} if foreign else data
    package = _package(data)
    if not package:
        return data
    kind = type(data).__name__
    if kind in UNREAD:
        raise TypeError(
            f"data in memory are needed, got a {package} {kind}; give data.{UNREAD[kind]}"
        )
    if package == "polars":
        return _polars_frame(data) if hasattr(data, "columns") else _polars_column(data)
    return _arrow_data(data)


def as_values(values: Any) -> Any:
    """Return a column of polars or pyarrow as an array, and all other values as they are.

    Parameters
    ----------
    values : polars Series, pyarrow Array, or other
        What is given beside the rows, which has no labels of its own.

    Returns
    -------
    ndarray, or `values` itself

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rrmstats.interchange import as_values
    >>> as_values(pa.array([1, 2, None]))
    array([ 1.,  2., nan])
    """
    return np.asarray(as_pandas(values)) if _package(values) else values


def _package(data: Any) -> str:
    """Return "polars" or "pyarrow" for their data, and "" for all else, importing neither."""
    kind = type(data)
    package = kind.__module__.partition(".")[0]
    # Of the class: a LazyFrame warns when it is asked for its columns.
    columnar = hasattr(kind, "columns") or hasattr(kind, "to_numpy") or kind.__name__ in UNREAD
    return package if package in ("polars", "pyarrow") and columnar else ""


def _polars_frame(frame: Any) -> pd.DataFrame:
    columns = {name: _polars_column(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))


def _polars_column(column: Any) -> pd.Series:
    """Return a column by way of numpy or lists: polars' own conversion needs pyarrow."""
    kind, missing = str(column.dtype).partition("(")[0], int(column.null_count())
    if kind == "Null":
        values: Any = np.full(len(column), np.nan)
    elif kind == "Enum":
        values = pd.Categorical(column.to_list(), categories=column.dtype.categories.to_list())
    elif kind == "Categorical":
        values = pd.Categorical(column.to_list())
    elif kind == "Decimal":
        values = column.cast(float).to_numpy()
    elif kind == "Boolean" and missing:
        values = np.array(column.to_list(), dtype=object)
    elif kind == "String":
        values = column.to_list()
    else:
        values = column.to_numpy(writable=True)
    return pd.Series(values, name=column.name or None)


def _arrow_data(data: Any) -> Any:
    """Return a table or an array of pyarrow."""
    found = data.to_pandas()
    if isinstance(found, pd.DataFrame):
        exact = [i for i, field in enumerate(data.schema) if str(field.type).startswith("decimal")]
        names = [data.schema.names[i] for i in exact]
        return found.astype(dict.fromkeys(names, float)) if names else found
    series = found if isinstance(found, pd.Series) else pd.Series(found)
    return series.astype(float) if str(data.type).startswith("decimal") else series
