"""Rows that lie in blocks, here or elsewhere, and one pass over them.

A block holds a part of the rows as a few arrays, its leaves. What is computed from rows is an
expression in the leaves; what leaves the blocks is small: sums, extremes and chosen rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rrmstats.core.entropy import Array

if TYPE_CHECKING:
    from rrmstats.core.rounds import Rounds

# Rows from which fits of many start; what they decide is then made exact on all rows.
SAMPLE_ROWS = 100_000
# Rows on which explanations are compared: BIC tells them apart on far fewer than a million.
DECIDING_ROWS = 5_000
# Rows of a block that are evaluated together: their columns stay in a core's cache.
CHUNK = 16_384

T = TypeVar("T")
Leaves = tuple[Array, ...]
Task = Callable[[Leaves], T]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One of the arrays that each block holds."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function that acts on each row alone, and its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def repeated(leaf: Array, value: Any) -> Array:
    """Return the same value for every row of a leaf."""
    return np.broadcast_to(value, (len(leaf), *np.shape(value)))


def evaluated(node: Any, leaves: Leaves, known: dict[int, Any]) -> Any:
    """Return the value of an expression on some rows; `known` keeps those of its parts."""
    if isinstance(node, Leaf):
        return leaves[node.place]
    if not isinstance(node, Call):
        return node
    if id(node) not in known:
        args = [evaluated(arg, leaves, known) for arg in node.args]
        known[id(node)] = node.function(*args, **node.options)
    return known[id(node)]


def values_of(nodes: Sequence[Any], leaves: Leaves) -> list[Any]:
    """Return the values of several expressions on some rows."""
    known: dict[int, Any] = {}
    return [evaluated(node, leaves, known) for node in nodes]


class Blocks:
    """Rows in blocks, and how a function of a block reaches them.

    A subclass defines `collect`, and `combined` where it has a faster way.

    Attributes
    ----------
    lengths : sequence of int
        Rows of each block; a block may be empty.
    passes : int
        How often the rows have been read so far.
    rounds : Rounds or None
        What answers sums in place of passes over the rows, while a fit runs in rounds.
    """

    lengths: Sequence[int]
    passes: int = 0
    rounds: Rounds | None = None
    _sample: Leaves | None = None

    def __len__(self) -> int:
        return int(sum(self.lengths))

    def collect(self, tasks: Mapping[int, Task[T]]) -> list[T]:
        """Return what tasks give, each for the block at its place."""
        raise NotImplementedError

    def combined(self, task: Task[T], combine: Callable[[list[T]], T]) -> T:
        """Return what a task gives for the blocks, combined in any order of neighbors."""
        used = [place for place, length in enumerate(self.lengths) if length]
        return combine(self.collect(dict.fromkeys(used, task)))

    def chosen(self, places: np.ndarray, nodes: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return expressions at the rows of some places; those of the sample take no pass."""
        drawn = sample_places(len(self))
        inside = np.minimum(np.searchsorted(drawn, places), len(drawn) - 1)
        if (drawn[inside] == places).all():
            return rows_of(nodes, inside, self.sample)
        return self._read(places, nodes)

    @property
    def sample(self) -> Leaves:
        """The leaves at `sample_places`, read in one pass."""
        if self._sample is None:
            self._sample = self._read(sample_places(len(self)), None)
        return self._sample

    def _read(self, places: np.ndarray, nodes: tuple[Any, ...] | None) -> tuple[Array, ...]:
        ends = np.cumsum(self.lengths)
        owner = np.searchsorted(ends, places, side="right")
        order = np.argsort(owner, kind="stable")
        tasks = {}
        for block in np.unique(owner):
            inside = places[order[owner[order] == block]] - (ends[block] - self.lengths[block])
            tasks[int(block)] = partial(rows_of, nodes, inside)
        parts = self.collect(tasks)
        back = np.argsort(order, kind="stable")
        return tuple(np.concatenate(column)[back] for column in zip(*parts, strict=True))


def sample_places(n: int) -> np.ndarray:
    """Return the places of rows on which decisions are made, in order, shape (m,).

    All of them, or one at random of each of as many stretches.
    """
    return _drawn_places(n, min(n, SAMPLE_ROWS))


def deciding_places(n: int, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the places of random rows on which explanations are compared, or of all if few.

    Of rows that are good or bad by groups, whose numbers are given, all rows of random groups.
    """
    if n <= DECIDING_ROWS:
        return np.arange(n)
    rng = np.random.default_rng(0)
    if groups is None:
        drawn = sample_places(n)
        return np.sort(rng.choice(drawn, min(len(drawn), DECIDING_ROWS), replace=False))
    order = rng.permutation(int(groups.max()) + 1)
    taken_rows = np.cumsum(np.bincount(groups)[order])
    chosen = order[: max(2, int(np.searchsorted(taken_rows, DECIDING_ROWS)))]
    return np.flatnonzero(np.isin(groups, chosen))


@cache
def _drawn_places(n: int, count: int) -> np.ndarray:
    if count == n:
        return np.arange(n)
    return ((np.arange(count) + np.random.default_rng(0).random(count)) * n / count).astype(int)


class ArrayBlocks(Blocks):
    """Blocks in the memory of this process: the reference for all others.

    Parameters
    ----------
    blocks : sequence of tuple of ndarray
        The leaves of each block, arrays with the same number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.block_array import leaf_arrays
    >>> from rrmstats.core.blocks import ArrayBlocks
    >>> blocks = ArrayBlocks([(np.arange(3.0),), (np.arange(3.0, 5.0),)])
    >>> (values,) = leaf_arrays(blocks)
    >>> len(values), float((values**2).sum())
    (5, 30.0)
    """

    def __init__(self, blocks: Sequence[Leaves]) -> None:
        self.blocks = [tuple(np.asarray(leaf) for leaf in block) for block in blocks]
        self.lengths = [len(block[0]) for block in self.blocks]

    def collect(self, tasks: Mapping[int, Task[T]]) -> list[T]:
        """Return what tasks give, each for the block at its place."""
        self.passes += 1
        return [task(self.blocks[place]) for place, task in tasks.items()]


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A task that applies a kernel to chunks of a block and combines what it gives.

    Attributes
    ----------
    kernel : callable
        Takes the values of the arguments on some rows.
    combine : callable
        Takes a list of what the kernel gives.
    args : tuple
        Expressions, or constants.
    """

    kernel: Callable[..., Any]
    combine: Callable[[list[Any]], Any]
    args: tuple[Any, ...]

    def __call__(self, leaves: Leaves) -> Any:
        """Return what the rows of a block give."""
        return self.combine([self.kernel(*values_of(self.args, part)) for part in chunks(leaves)])


def fused(tasks: Sequence[Reduction]) -> Reduction:
    """Return a task that finds several sums over the rows of a block together."""
    kernels = [(task.kernel, len(task.args)) for task in tasks]
    return Reduction(partial(_several, kernels), added, tuple(a for t in tasks for a in t.args))


def _several(kernels: list[tuple[Callable[..., Any], int]], *values: Any) -> tuple[Any, ...]:
    left = iter(values)
    return tuple(kernel(*islice(left, count)) for kernel, count in kernels)


def rows_of(nodes: tuple[Any, ...] | None, rows: np.ndarray, leaves: Leaves) -> tuple[Array, ...]:
    """Return expressions at some rows of a block; the leaves where there are no expressions."""
    part = tuple(leaf[rows] for leaf in leaves)
    return part if nodes is None else tuple(values_of(nodes, part))


def smallest_rows(nodes: tuple[Any, ...], count: int, start: int, leaves: Leaves) -> Array:
    """Return values and places, shape (e + 1, m), of the rows of a block with the smallest values.

    Where the first of the expressions is the same, the next tells. `start` rows are before the
    block.
    """
    kept: Array = np.empty((len(nodes) + 1, 0))
    for part in chunks(leaves):
        places = start + np.arange(len(part[0]))
        found = np.array([*values_of(nodes, part), places], float)
        kept = first_in_order(np.hstack([kept, found]), count)
        start += len(places)
    return kept


def first_in_order(columns: Array, count: int) -> Array:
    """Return the first of columns, shape (e, m), when sorted by their entries from the top on."""
    return columns[:, np.lexsort(columns[::-1])[:count]]


def chunks(leaves: Leaves) -> Iterator[Leaves]:
    """Return parts of a block that are small enough to compute with; none without rows."""
    for start in range(0, len(leaves[0]), CHUNK):
        yield tuple(leaf[start : start + CHUNK] for leaf in leaves)


def added(parts: list[Any]) -> Any:
    """Return the sum of arrays, or of tuples of arrays place by place."""
    if isinstance(parts[0], tuple):
        return tuple(added(list(column)) for column in zip(*parts, strict=True))
    return reduce(operator.add, parts)


def decided_once(blocks: Blocks | None, function: Callable[[], T]) -> T:
    """Return what a function gives; in rounds, what it gave in the first of them."""
    if blocks is None or blocks.rounds is None:
        return function()
    return blocks.rounds.decided(function)
