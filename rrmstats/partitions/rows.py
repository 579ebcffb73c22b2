"""Rows of a Dask collection: their arrays in blocks, a sample of them, and their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.core.block_array import aligned, blocked, leaf_arrays, taken
from rrmstats.core.blocks import Leaves, evaluated
from rrmstats.core.entropy import Array
from rrmstats.optional import require
from rrmstats.partitions.engine import DaskBlocks, computed

# Rows of each partition in the sample from which names and kinds of variables are read.
SAMPLE_ROWS = 50
# Bytes up to which rows come to the memory of this process, and are fitted there.
SMALL = 20e6


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What one look at a partition tells.

    Attributes
    ----------
    length : int
        Its rows, without those that are left out for missing values.
    bad : list of int
        Entries of each array that are not finite.
    least, most : list of ndarray
        Smallest and largest entries of the columns of each array; empty without rows.
    sample : object
        Some rows as they were given.
    of_labels : bool
        Whether all responses are 0 or 1.
    """

    length: int
    bad: list[int]
    least: list[Array]
    most: list[Array]
    sample: Any
    of_labels: bool = True


def scanned(part: Any, make: Callable[[Any], tuple[Leaves, np.ndarray]], names: int) -> Scan:
    """Return what a partition tells; `make` gives its leaves and the places of the rows kept."""
    leaves, kept = make(part)
    arrays = leaves[:names]
    length = len(kept)
    if not length:
        return Scan(0, [0] * names, [], [], _rows_of(part, kept))
    places = set(np.linspace(0, length - 1, min(SAMPLE_ROWS, length)).astype(int))
    response = arrays[0].reshape(length, -1)
    places |= {*response.argmin(axis=0), *response.argmax(axis=0)}
    with np.errstate(invalid="ignore"):
        return Scan(
            length,
            [int((~np.isfinite(array)).sum()) for array in arrays],
            [array.min(axis=0) for array in arrays],
            [array.max(axis=0) for array in arrays],
            _rows_of(part, kept[sorted(places)]),
            bool(((arrays[0] == 0) | (arrays[0] == 1)).all()),
        )


def _rows_of(part: Any, places: np.ndarray) -> Any:
    if isinstance(part, pd.DataFrame):
        return part.iloc[places]
    return tuple(array[places] for array in part)


@dataclass(frozen=True, slots=True, eq=False)
class LeavesOf:
    """A step that keeps the leaves of what `make` gives."""

    make: Callable[[Any], tuple[Leaves, np.ndarray]]

    def __call__(self, part: Any) -> Leaves:
        """Return the leaves of a partition."""
        return self.make(part)[0]


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
        if finite:
            bad = zip(*(found.bad for found in used), strict=True)
            check_finite(names, [sum(column) for column in bad])
        leaves = delayed(LeavesOf(make), pure=False)
        self.blocks = DaskBlocks([leaves(part) for part in parts], [s.length for s in scans])
        self.blocks.passes = 1
        self.divisions, self.sample = divisions, [found.sample for found in used]
        #: Whether all responses are 0 or 1.
        self.of_labels = all(found.of_labels for found in used)
        tails = tuple(least.shape for least in used[0].least)
        self.arrays: dict[str, Any] = dict(
            zip(names, leaf_arrays(self.blocks, tails), strict=True)
        )
        self._labels = leaf_arrays(self.blocks, (*tails, ()))[-1]
        for i, array in enumerate(self.arrays.values()):
            array.remember(
                np.min([found.least[i] for found in used], axis=0),
                np.max([found.most[i] for found in used], axis=0),
            )
        #: Labels of rows that came to memory, None for arrays without labels.
        self.index: pd.Index | None = None
        self.in_memory = False
        size = 8.0 * len(self) * (sum(int(np.prod(tail)) for tail in tails) + self.has_labels)
        if persist is True:
            self.blocks.keep_there()
        elif persist == "auto" and size <= SMALL:
            self._bring()
        elif persist == "auto":
            self.blocks.keep(size)

    def _bring(self) -> None:
        """Let the arrays of all rows be in the memory of this process."""
        places, arrays = np.arange(len(self)), list(self.arrays.values())
        labels = [self._labels] if self.has_labels else []
        found = taken(places, *arrays, *labels)
        self.arrays = dict(zip(self.arrays, found, strict=False))
        self.index = pd.Index(found[-1]) if labels else None
        self.in_memory = True

    @property
    def has_labels(self) -> bool:
        """Whether the rows have labels: those of a frame."""
        return self.divisions is not None

    def __len__(self) -> int:
        return int(sum(self.blocks.lengths))

    def _pieces(self, values: Array, cuts: np.ndarray) -> list[tuple[Array, pd.Index | None]]:
        """Return values of all rows in memory, cut like the partitions, with their labels."""
        ends = [0, *cuts, len(values)]
        parts = [slice(start, end) for start, end in pairwise(ends)]
        return [(values[p], None if self.index is None else self.index[p]) for p in parts]

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
        delayed = require("dask", "dask").delayed
        values = values if self.in_memory else aligned(values, self.blocks)
        tail, kind = values.shape[1:], values.dtype
        if self.in_memory:
            cuts = np.cumsum(self.blocks.lengths)[:-1]
            parts = [delayed(_as_frame)(*piece, columns) for piece in self._pieces(values, cuts)]
        else:
            step = delayed(BlockValues(values.node, columns, self.has_labels), pure=False)
            parts = [step(part) for part in self.blocks.parts]
        if self.divisions is None:
            array = require("dask.array", "dask")
            lengths = self.blocks.lengths
            pieces = [
                array.from_delayed(part, (length, *tail), dtype=kind)
                for part, length in zip(parts, lengths, strict=True)
            ]
            return array.concatenate(pieces)
        frame = require("dask.dataframe", "dask")
        index = self.labels_at(np.zeros(1, int))
        assert index is not None
        meta = _as_frame(np.empty((0, *tail), kind), index[:0], columns)
        return frame.from_delayed(parts, meta=meta, divisions=self.divisions)


@dataclass(frozen=True, slots=True, eq=False)
class BlockValues:
    """A task that gives the values of an expression for all rows of a block, with labels."""

    node: Any
    columns: Sequence[str] | None
    labels: bool

    def __call__(self, leaves: Leaves) -> Any:
        """Return the values of the rows of a block."""
        values = evaluated(self.node, leaves, {})
        return _as_frame(values, pd.Index(leaves[-1]) if self.labels else None, self.columns)


def _as_frame(values: Array, index: pd.Index | None, columns: Sequence[str] | None) -> Any:
    if index is None:
        return values
    if values.ndim == 1:
        return pd.Series(values, index=index)
    return pd.DataFrame(values, index=index, columns=None if columns is None else list(columns))


def check_finite(names: Sequence[str], bad: Sequence[int]) -> None:
    """Raise where arrays hold NaN or infinities."""
    for name, count in zip(names, bad, strict=True):
        if count:
            raise ValueError(
                f"{name} contains {count} NaN or infinite values; drop these rows, or use "
                "missing='drop' (NaN only)"
            )
