"""Data of other packages, and columns that formulas cannot read, as pandas has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["as_pandas", "as_values"]

# What reads the rows of objects that only describe them.
UNREAD = {
    **{"LazyFrame": "collect()", "RecordBatchReader": "read_all()"},
    **dict.fromkeys(("Dataset", "FileSystemDataset", "InMemoryDataset", "Scanner"), "to_table()"),
}


def is_dask(value: Any) -> bool:
    """Tell whether a value is a Dask collection, without importing Dask."""
    return hasattr(value, "__dask_graph__")


def is_dask_frame(value: Any) -> bool:
    """Tell whether a value is a Dask DataFrame."""
    return is_dask(value) and hasattr(value, "map_partitions") and hasattr(value, "columns")


def used_columns(formula: str, columns: list[str]) -> list[str]:
    """Return the columns whose names occur in a formula."""
    words = set(re.findall(r"[^\W\d]\w*", formula))
    quoted = [name for _, name in re.findall(r"Q\(\s*(['\"])(.*?)\1\s*\)", formula)]
    return [name for name in columns if name in words or name in quoted]


def plain_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame that patsy can read: without extension types and their missing values."""
    changed = {
        str(name): _plain_column(frame[name])
        for name, kind in frame.dtypes.items()
        if isinstance(kind, pd.api.extensions.ExtensionDtype)
        and not isinstance(kind, pd.CategoricalDtype)
        and (isinstance(kind, pd.StringDtype) or kind.kind in "biuf")
    }
    return frame.assign(**changed) if changed else frame


def readable_frame(frame: pd.DataFrame, formula: str) -> pd.DataFrame:
    """Return data in memory with the columns of a formula that patsy cannot read converted."""
    used = used_columns(formula, [name for name in frame.columns if isinstance(name, str)])
    hard = [
        name
        for name in dict.fromkeys(used)
        if isinstance(frame[name], pd.Series)
        and getattr(frame[name].dtype, "na_value", None) is pd.NA
        and (frame[name].dtype.kind == "b" or frame[name].isna().any())
    ]
    return frame.assign(**plain_types(frame[hard])) if hard else frame


def _plain_column(column: pd.Series) -> pd.Series:
    missing = column.isna()
    if column.dtype.kind in "iuf":
        return pd.Series(column.to_numpy(float, na_value=np.nan), index=column.index)
    if column.dtype.kind == "b" and not missing.any():
        return column.astype(bool)
    return column.astype(object).where(~missing, None)


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
        if not hasattr(data, "columns"):
            return _polars_column(data)
        columns = {name: _polars_column(data[name]) for name in data.columns}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(data)))
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


def _polars_column(column: Any) -> pd.Series:
    """Return a column by way of numpy or lists: polars' own conversion needs pyarrow."""
    kind = str(column.dtype).partition("(")[0]
    if kind == "Decimal":
        column = column.cast(float)
    listed = kind in ("Null", "Enum", "Categorical", "Boolean", "String")
    values = column.to_list() if listed else column.to_numpy(writable=True)
    if kind in ("Enum", "Categorical"):
        levels = column.dtype.categories.to_list() if kind == "Enum" else None
        values = pd.Categorical(values, categories=levels)
    return pd.Series(values, name=column.name or None, dtype=float if kind == "Null" else None)


def _arrow_data(data: Any) -> Any:
    """Return a table or an array of pyarrow."""
    found = data.to_pandas()
    if isinstance(found, pd.DataFrame):
        exact = [field.name for field in data.schema if str(field.type).startswith("decimal")]
        return found.astype(dict.fromkeys(exact, float))
    kind = float if str(data.type).startswith("decimal") else None
    return pd.Series(found, dtype=kind)
