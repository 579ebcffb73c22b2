"""Rows of a Dask collection: their arrays in blocks, a sample of them, and their labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from rrmstats.core.block_array import aligned, blocked, leaf_arrays, taken
from rrmstats.core.blocks import Blocks, Leaves, Task, evaluated
from rrmstats.core.entropy import Array
from rrmstats.interchange import is_dask, plain_types, used_columns
from rrmstats.optional import require
from rrmstats.partitions.formulas import (
    FormulaDesign,
    is_category,
    telling_rows,
    used_names,
)

T = TypeVar("T")


class DaskBlocks(Blocks):
    """Blocks whose leaves Dask computes, wherever its scheduler runs.

    Parameters
    ----------
    parts : sequence of dask Delayed
        Each gives the leaves of a block, a tuple of arrays.
    lengths : sequence of int
        Rows of each block.
    """

    def __init__(self, parts: Sequence[Any], lengths: Sequence[int]) -> None:
        self.parts, self.lengths = list(parts), list(lengths)

    def collect(self, tasks: Mapping[int, Task[T]]) -> list[T]:
        """Return what tasks give, each for the block at its place."""
        self.passes += 1
        return list(computed([delayed_task(task, self.parts[i]) for i, task in tasks.items()]))

    def combined(self, task: Task[T], combine: Callable[[list[T]], T]) -> T:
        """Return what a task gives for the blocks, combined where the blocks are."""
        self.passes += 1
        delayed = require("dask", "dask").delayed
        used = [part for part, length in zip(self.parts, self.lengths, strict=True) if length]
        found = [delayed_task(task, part) for part in used]
        while len(found) > 1:
            groups = [found[i : i + 16] for i in range(0, len(found), 16)]
            found = [delayed(combine, pure=False)(group) for group in groups]
        return computed(found)[0]

    def keep(self, n_bytes: float = 0.0) -> None:
        """Compute the leaves once for all passes, where their size leaves room for it."""
        if n_bytes <= 0.4 * workers_memory():
            self.parts = list(require("dask", "dask").persist(*self.parts))


def delayed_task(task: Task[T], part: Any) -> Any:
    """Return what a task gives for a partition, yet to be computed."""
    return require("dask", "dask").delayed(task, pure=False, traverse=False)(part)


def computed(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return delayed values, computed by the scheduler that is active."""
    return require("dask", "dask").compute(*values)


def workers_memory() -> float:
    """Return the bytes that the workers of the active scheduler have together."""
    try:
        distributed: Any = import_module("distributed")
        workers = distributed.default_client().scheduler_info(n_workers=-1)["workers"].values()
        return float(sum(worker["memory_limit"] or np.inf for worker in workers))
    except (ImportError, ValueError):
        return process_memory()


def process_memory() -> float:
    """Return the bytes that this process may take: those of the machine, or of its limits.

    Zero where the system does not tell; partitions are then read again in each pass.
    """
    try:
        import resource
    except ImportError:
        return 0.0
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return float(min([machine, *(limit for limit in limits if limit > 0)]))


# Rows of each partition in the sample from which names and kinds of variables are read.
SAMPLE_ROWS = 50
# Bytes up to which rows come to the memory of this process, and are fitted there.
SMALL = 20e6


class Scan(NamedTuple):
    """What one look at a partition tells.

    Attributes
    ----------
    length : int
        Its rows, without those that are left out for missing values.
    least, most : list of ndarray
        Smallest and largest entries of the columns of each array; empty without rows.
    sample : object
        Some rows as they were given.
    of_labels : bool
        Whether all responses are 0 or 1.
    """

    length: int
    least: list[Array]
    most: list[Array]
    sample: Any
    of_labels: bool


def scanned(part: Any, make: Callable[[Any], tuple[Leaves, np.ndarray]], names: int) -> Scan:
    """Return what a partition tells; `make` gives its leaves and the places of the rows kept."""
    leaves, kept = make(part)
    arrays, length = leaves[:names], len(kept)
    if not length:
        return Scan(0, [], [], None, True)
    places = set(np.linspace(0, length - 1, min(SAMPLE_ROWS, length)).astype(int))
    response = arrays[0].reshape(length, -1)
    places |= {*response.argmin(axis=0), *response.argmax(axis=0)}
    with np.errstate(invalid="ignore"):
        least, most = ([end(array, axis=0) for array in arrays] for end in (np.min, np.max))
    of_labels = bool(np.isin(arrays[0], (0, 1)).all())
    return Scan(length, least, most, _rows_of(part, kept[sorted(places)]), of_labels)


def _rows_of(part: Any, places: np.ndarray) -> Any:
    if isinstance(part, tuple):
        return tuple(_rows_of(each, places) for each in part)
    return part.iloc[places] if isinstance(part, pd.DataFrame | pd.Series) else part[places]


class PartitionedRows:
    """Rows in partitions, as a model holds them.

    Parameters
    ----------
    parts : sequence of dask Delayed
        The partitions as they were given.
    make : callable
        Takes a partition and returns its leaves, with the labels of the rows last where they have
        labels, and the places of the rows that they have.
    names : tuple of str
        Names of the leaves that are arrays.
    divisions : tuple or None
        Labels at which the partitions of a frame begin; None for arrays, which have no labels.
    persist : bool or "auto"
        Whether the leaves are computed once for all passes.
    finite : bool, optional
        Whether NaN and infinities are refused.

    Attributes
    ----------
    arrays : dict of str to BlockArray, or ndarray where the rows came to memory
    sample : list
        Some rows of each partition, as they were given.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        make: Callable[[Any], tuple[Leaves, np.ndarray]],
        names: tuple[str, ...],
        divisions: tuple[Any, ...] | None,
        persist: bool | str = "auto",
        finite: bool = True,
    ) -> None:
        if persist not in (True, False, "auto"):
            raise ValueError(f"persist must be True, False or 'auto', got {persist!r}")
        delayed = require("dask", "dask").delayed
        scan = delayed(scanned, pure=False)
        scans = computed([scan(part, make, len(names)) for part in parts])
        used = [found for found in scans if found.length]
        if not used:
            raise ValueError("no rows are left once those with missing values are dropped")
        leaves = [delayed_task(lambda part: make(part)[0], part) for part in parts]
        self.blocks = DaskBlocks(leaves, [s.length for s in scans])
        self.blocks.passes = 1
        self.divisions, self.sample = divisions, [found.sample for found in used]
        #: Whether all responses are 0 or 1.
        self.of_labels = all(found.of_labels for found in used)
        tails = tuple(least.shape for least in used[0].least)
        *arrays, self._labels = leaf_arrays(self.blocks, (*tails, ()))
        self.arrays: dict[str, Any] = dict(zip(names, arrays, strict=True))
        for i, (name, array) in enumerate(self.arrays.items()):
            least = np.min([found.least[i] for found in used], axis=0)
            most = np.max([found.most[i] for found in used], axis=0)
            if finite and not np.isfinite([least, most]).all():
                raise ValueError(
                    f"{name} contains NaN or infinite values; drop these rows, or use "
                    "missing='drop' (NaN only)"
                )
            array.remember(least, most)
        #: Labels of rows that came to memory, None for arrays without labels.
        self.index: pd.Index | None = None
        self.in_memory = False
        size = 8.0 * len(self) * (sum(int(np.prod(tail)) for tail in tails) + self.has_labels)
        if persist is True:
            self.blocks.keep()
        elif persist == "auto" and size <= SMALL:
            self._bring()
        elif persist == "auto":
            self.blocks.keep(size)

    def _bring(self) -> None:
        """Let the arrays of all rows be in the memory of this process."""
        labels = [self._labels] if self.has_labels else []
        found = taken(np.arange(len(self)), *self.arrays.values(), *labels)
        self.arrays = dict(zip(self.arrays, found, strict=False))
        self.index = pd.Index(found[-1]) if labels else None
        self.in_memory = True

    @property
    def has_labels(self) -> bool:
        """Whether the rows have labels: those of a frame."""
        return self.divisions is not None

    def __len__(self) -> int:
        return int(sum(self.blocks.lengths))

    def labels_at(self, places: np.ndarray) -> pd.Index | None:
        """Return the labels of some rows; None where rows have no labels."""
        if self.in_memory:
            return None if self.index is None else self.index[places]
        return pd.Index(taken(places, self._labels)[0]) if self.has_labels else None

    def in_partitions(self, found: Any) -> Any:
        """Return values of all rows as a Dask collection, and other things as they are."""
        if blocked(found):
            return self.labeled(found)
        if not self.in_memory or len(np.shape(found)) not in (1, 2) or len(found) != len(self):
            return found
        if isinstance(found, pd.Series | pd.DataFrame):
            if self.index is None or not found.index.equals(self.index):
                return found
            columns = list(found.columns) if isinstance(found, pd.DataFrame) else None
            return self.labeled(found.to_numpy(), columns)
        return self.labeled(found) if isinstance(found, np.ndarray) else found

    def labeled(self, values: Any, columns: Sequence[str] | None = None) -> Any:
        """Return values of all rows as a Dask collection with the labels of the data.

        Parameters
        ----------
        values : BlockArray, shape (n,) or (n, d)
        columns : sequence of str, optional
            Names of the columns of a table.

        Returns
        -------
        dask Series, DataFrame or Array
            Of partitions or chunks like those of the data.
        """
        if self.in_memory:
            delayed = require("dask", "dask").delayed
            parts = [
                delayed(_as_frame)(values[a:b], self.labels_at(np.arange(a, b)), columns)
                for a, b in pairwise(np.cumsum([0, *self.blocks.lengths]))
            ]
        else:
            values = aligned(values, self.blocks)
            step = partial(_block_values, values.node, columns, self.has_labels)
            parts = [delayed_task(step, part) for part in self.blocks.parts]
        if self.divisions is None:
            array = require("dask.array", "dask")
            pieces = [
                array.from_delayed(part, (length, *values.shape[1:]), dtype=values.dtype)
                for part, length in zip(parts, self.blocks.lengths, strict=True)
            ]
            return array.concatenate(pieces)
        frame = require("dask.dataframe", "dask")
        labels = self.labels_at(np.zeros(1, int))
        assert labels is not None
        meta = _as_frame(np.empty((0, *values.shape[1:]), values.dtype), labels[:0], columns)
        return frame.from_delayed(parts, meta=meta, divisions=self.divisions)


def _block_values(node: Any, columns: Sequence[str] | None, labels: bool, leaves: Leaves) -> Any:
    """Return the values of an expression for all rows of a block, with labels."""
    index = pd.Index(leaves[-1]) if labels else None
    return _as_frame(evaluated(node, leaves, {}), index, columns)


def _as_frame(values: Array, index: pd.Index | None, columns: Sequence[str] | None) -> Any:
    if index is None:
        return values
    if values.ndim == 1:
        return pd.Series(values, index=index)
    return pd.DataFrame(values, index=index, columns=None if columns is None else list(columns))


# Prefix of columns that hold what is given beside a frame, such as frequency weights.
BESIDE = "_rrmstats_"


def formula_leaves(
    formula: FormulaDesign, beside: tuple[str, ...], frame: pd.DataFrame
) -> tuple[Leaves, np.ndarray]:
    """Return arrays of a formula with the labels of the rows, and the places of the rows kept.

    `beside` names arrays that are columns of the frame themselves.
    """
    matrices, kept = formula.matrices(frame)
    if formula.two_sided:
        matrices[0] = _one_column(matrices[0])
    others = [frame[BESIDE + name].to_numpy(float, na_value=np.nan) for name in beside]
    if others and formula.missing == "drop":
        whole = ~np.isnan(np.column_stack(others)[kept]).any(axis=1)
        matrices, kept = [matrix[whole] for matrix in matrices], kept[whole]
    arrays = [*matrices, *(values[kept] for values in others)]
    return (*arrays, np.asarray(frame.index)[kept]), kept


def _one_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


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
        partial(formula_leaves, made, tuple(beside)),
        (*names, *beside),
        tuple(frame.divisions),
        persist,
    )
    sample = [plain_types(part) for part in held.sample]
    return held, pd.concat([rows, *sample], ignore_index=True), made


def predictor_leaves(formula: FormulaDesign, frame: pd.DataFrame) -> tuple[Leaves, np.ndarray]:
    """Return the design with the labels of the rows, and the places of the rows kept."""
    (found,), kept = formula.matrices(frame)
    design = np.full((len(frame), found.shape[1]), np.nan)
    design[kept] = found
    return (design, np.asarray(frame.index)), np.arange(len(frame))


def predictor_rows(formula: FormulaDesign, data: Any) -> PartitionedRows:
    """Return the design of new data in partitions, which need not have the response."""
    used = used_columns(formula.predictors.formula, list(data.columns))
    frame = with_known_levels(data[used])
    make = partial(predictor_leaves, formula.predictors)
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


def array_leaves(missing: str, given: Sequence[Any]) -> tuple[Leaves, np.ndarray]:
    """Return the arrays of chunks or frames, and the places of the rows kept.

    The labels of the rows come last where the first is a frame.
    """
    try:
        arrays = [np.asarray(values, dtype=float) for values in given]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"a partition holds values that are not numbers ({error}); convert them, or use a "
            "formula, which codes categories"
        ) from None
    kept = np.arange(len(arrays[0]))
    if missing == "drop":
        whole = [~np.isnan(array.reshape(len(kept), -1)).any(axis=1) for array in arrays]
        kept = kept[np.logical_and.reduce(whole)]
        arrays = [array[kept] for array in arrays]
    arrays[0] = _one_column(arrays[0])
    labels = [np.asarray(part.index)[kept] for part in given[:1] if hasattr(part, "index")]
    return (*arrays, *labels), kept


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
    held = PartitionedRows(parts, partial(array_leaves, missing), tuple(given), divisions, persist)
    samples = {
        name: _joined([sample[i] for sample in held.sample]) for i, name in enumerate(given)
    }
    return held, samples


def check_lengths(given: Mapping[str, Any]) -> None:
    """Raise where arrays whose chunks are known have different numbers of rows."""
    sized = {name: values.shape[0] for name, values in given.items() if hasattr(values, "chunks")}
    known = {name: int(count) for name, count in sized.items() if not np.isnan(count)}
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
    return parts


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
