"""Dask collections as a user gives them: frames with a formula, frames and arrays without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.blocks import Leaves
from rrmstats.interchange import is_dask, plain_types, used_columns
from rrmstats.optional import require
from rrmstats.partitions.engine import computed
from rrmstats.partitions.formulas import (
    FormulaDesign,
    is_category,
    telling_rows,
    used_names,
)
from rrmstats.partitions.rows import PartitionedRows

# Prefix of columns that hold what is given beside a frame, such as frequency weights.
BESIDE = "_rrmstats_"


@dataclass(frozen=True, slots=True, eq=False)
class FormulaLeaves:
    """A step from a partition of a frame to the arrays of a formula.

    Attributes
    ----------
    formula : FormulaDesign
    beside : tuple of str
        Names of arrays that are columns of the frame themselves.
    """

    formula: FormulaDesign
    beside: tuple[str, ...]

    def __call__(self, frame: pd.DataFrame) -> tuple[Leaves, np.ndarray]:
        """Return the arrays with the labels of the rows, and the places of the rows kept."""
        matrices, kept = self.formula.matrices(frame)
        if self.formula.two_sided:
            matrices[0] = _one_column(matrices[0])
        others = [frame[BESIDE + name].to_numpy(float, na_value=np.nan) for name in self.beside]
        if others and self.formula.missing == "drop":
            whole = ~np.isnan(np.column_stack(others)[kept]).any(axis=1)
            matrices, kept = [matrix[whole] for matrix in matrices], kept[whole]
        arrays = [*matrices, *(values[kept] for values in others)]
        return (*arrays, np.asarray(frame.index)[kept]), kept


def _one_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.shape[1] == 1 else values


def formula_rows(
    formula: str,
    data: Any,
    env: Any,
    beside: Mapping[str, Any],
    drop_cols: Sequence[str],
    missing: str,
    persist: bool | str,
) -> tuple[PartitionedRows, pd.DataFrame, FormulaDesign]:
    """Return the rows of a formula, a sample of the data with all levels, and the formula.

    Parameters
    ----------
    formula : str
    data : dask DataFrame
    env : patsy.EvalEnvironment
        Where the formula finds functions.
    beside : mapping of str to dask Series
        Arrays given beside the frame, one value per row.
    drop_cols : sequence of str
    missing : {"drop", "raise"}
    persist : bool or "auto"
    """
    frame = data[used_columns(formula, list(data.columns))]
    frame = with_known_levels(frame)
    for name, values in beside.items():
        if values.npartitions != frame.npartitions or values.divisions != frame.divisions:
            raise ValueError(
                f"{name} must have the partitions of the data, whose divisions are "
                f"{frame.divisions[:3]}...; take it from the same Dask frame"
            )
        frame = frame.assign(**{BESIDE + name: values})
    parts = frame.to_delayed()
    rows = _telling_rows(frame, parts, formula)
    namespace = used_names(formula, env, list(data.columns))
    made = FormulaDesign(formula, rows, namespace, list(drop_cols), missing)
    made.learn(lambda: (plain_types(computed([part])[0]) for part in parts))
    made.check_rows()
    names = ("endog", "exog") if made.two_sided else ("endog",)
    held = PartitionedRows(
        parts,
        FormulaLeaves(made, tuple(beside)),
        (*names, *beside),
        tuple(frame.divisions),
        persist,
    )
    sample = [plain_types(part) for part in held.sample]
    return held, pd.concat([rows, *sample], ignore_index=True), made


@dataclass(frozen=True, slots=True, eq=False)
class PredictorLeaves:
    """A step from a partition of new data to the design."""

    formula: FormulaDesign

    def __call__(self, frame: pd.DataFrame) -> tuple[Leaves, np.ndarray]:
        """Return the design with the labels of the rows, and the places of the rows kept."""
        matrices, kept = self.formula.matrices(frame)
        design = np.full((len(frame), matrices[0].shape[1]), np.nan)
        design[kept] = matrices[0]
        return (design, np.asarray(frame.index)), np.arange(len(frame))


def predictor_rows(formula: FormulaDesign, data: Any) -> PartitionedRows:
    """Return the design of new data in partitions, which need not have the response."""
    used = used_columns(formula.predictors.formula, list(data.columns))
    frame = with_known_levels(data[used])
    make = PredictorLeaves(formula.predictors)
    return PartitionedRows(
        frame.to_delayed(), make, ("exog",), tuple(frame.divisions), False, finite=False
    )


def with_known_levels(frame: Any) -> Any:
    """Return a frame whose categorical columns know all their levels."""
    unknown = [
        name
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, pd.CategoricalDtype) and not frame[name].cat.known
    ]
    return frame.categorize(columns=unknown, index=False) if unknown else frame


def _telling_rows(frame: Any, parts: Sequence[Any], formula: str) -> pd.DataFrame:
    """Return rows with every level: of one partition where all variables are numbers."""
    delayed = require("dask", "dask").delayed
    step = delayed(telling_rows, pure=False)
    meta = frame._meta
    if "C(" in formula or any(is_category(meta[name]) for name in meta.columns):
        return pd.concat(computed([step(part, formula) for part in parts]))
    for part in parts:
        found = computed([step(part, formula)])[0]
        if len(found.dropna()):
            return found
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ArrayLeaves:
    """A step from chunks of arrays, or partitions of frames, to leaves.

    Attributes
    ----------
    missing : {"none", "drop", "raise"}
    labels : bool
        Whether the first of them is a frame, whose labels are kept.
    """

    missing: str
    labels: bool

    def __call__(self, given: Sequence[Any]) -> tuple[Leaves, np.ndarray]:
        """Return the arrays with the labels of the rows, and the places of the rows kept."""
        try:
            arrays = [np.asarray(values, dtype=float) for values in given]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"a partition holds values that are not numbers ({error}); convert them, or use a "
                "formula, which codes categories"
            ) from None
        kept = np.arange(len(arrays[0]))
        if self.missing == "drop":
            whole = [~np.isnan(array.reshape(len(kept), -1)).any(axis=1) for array in arrays]
            kept = kept[np.logical_and.reduce(whole)]
            arrays = [array[kept] for array in arrays]
        arrays[0] = _flat(arrays[0])
        labels = [np.asarray(given[0].index)[kept]] if self.labels else []
        return (*arrays, *labels), kept


def _flat(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def array_rows(
    given: Mapping[str, Any], missing: str, persist: bool | str
) -> tuple[PartitionedRows, dict[str, Any]]:
    """Return the rows of arrays or frames, and a sample of each with its names.

    Parameters
    ----------
    given : mapping of str to dask Array, Series or DataFrame
        The first is the response, or the variables.
    missing : {"none", "drop", "raise"}
    persist : bool or "auto"
    """
    for name, values in given.items():
        if not is_dask(values):
            raise TypeError(
                f"{name} must be a Dask collection like the others, got "
                f"{type(values).__name__}; use dask.array.from_array or dask.dataframe.from_pandas"
            )
        check_kinds(name, values)
    first = next(iter(given.values()))
    check_lengths(given)
    labels = hasattr(first, "divisions")
    delayed = require("dask", "dask").delayed
    columns = [_parts_of(name, values, first) for name, values in given.items()]
    if len({len(parts) for parts in columns}) > 1:
        counts = ", ".join(f"{n} has {len(p)}" for n, p in zip(given, columns, strict=True))
        raise ValueError(
            f"the collections must have the same partitions, but {counts}; repartition or "
            "rechunk them alike"
        )
    parts = [delayed(_together, pure=False)(*part) for part in zip(*columns, strict=True)]
    divisions = tuple(first.divisions) if labels else None
    held = PartitionedRows(parts, ArrayLeaves(missing, labels), tuple(given), divisions, persist)
    samples = {
        name: _joined([sample[i] for sample in held.sample]) for i, name in enumerate(given)
    }
    return held, samples


def check_kinds(name: str, values: Any) -> None:
    """Raise where a collection holds text, dates or other things that are not numbers."""
    framed = hasattr(values, "columns") and values.ndim == 2
    kinds = dict(values.dtypes) if framed else {name: values.dtype}
    bad = [str(column) for column, dtype in kinds.items() if not _may_be_numbers(dtype)]
    if bad and framed:
        raise ValueError(
            f"{name} has non-numeric columns: {', '.join(bad)}; convert them, or use a formula, "
            "which codes categories"
        )
    if bad:
        raise ValueError(
            f"{name} must be numeric, got {kinds[name]}; convert it, labels for example with "
            "(labels == 'yes').astype(float), or use a formula, which codes categories"
        )


def _may_be_numbers(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.is_object_dtype(dtype) or (
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    )


def check_lengths(given: Mapping[str, Any]) -> None:
    """Raise where arrays whose chunks are known have different numbers of rows."""
    known = {
        name: int(sum(values.chunks[0]))
        for name, values in given.items()
        if hasattr(values, "chunks") and not np.isnan(values.chunks[0]).any()
    }
    if len(set(known.values())) > 1:
        rows = ", ".join(f"{name} has {count}" for name, count in known.items())
        raise ValueError(f"the collections must have the same number of rows, but {rows}")


def _joined(pieces: list[Any]) -> Any:
    framed = isinstance(pieces[0], pd.Series | pd.DataFrame)
    return pd.concat(pieces) if framed else np.concatenate(pieces)


def _together(*parts: Any) -> tuple[Any, ...]:
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise ValueError(
            f"partitions of the same place have {sorted(lengths)} rows; repartition or rechunk "
            "the collections alike"
        )
    framed = (pd.Series, pd.DataFrame)
    return tuple(FrameRows(part) if isinstance(part, framed) else part for part in parts)


class FrameRows:
    """A frame whose rows are taken by their places, as those of an array are."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, places: np.ndarray) -> Any:
        return self.frame.iloc[places]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.frame, dtype=dtype)

    @property
    def index(self) -> pd.Index:
        """Labels of the rows."""
        return self.frame.index


def _parts_of(name: str, values: Any, first: Any) -> list[Any]:
    """Return the partitions of a collection, with all columns in each."""
    if hasattr(values, "divisions"):
        return list(values.to_delayed())
    if values.ndim > 2:
        raise ValueError(f"{name} must have one or two dimensions, got {values.ndim}")
    if values.ndim == 2:
        values = values.rechunk({1: -1})
    chunks = getattr(first, "chunks", None)
    if chunks is not None and not np.isnan([*chunks[0], *values.chunks[0]]).any():
        values = values.rechunk({0: chunks[0]})
    return list(values.to_delayed().ravel())
