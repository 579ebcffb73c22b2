"""Arrays whose rows lie in blocks: functions of arrays work on them as on numpy's.

Arithmetic on rows is put off, as an expression, until a sum or another reduction is asked for;
that is one pass over the blocks. `row_sums` has several sums in one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from rrmstats.core.blocks import (
    CHUNK,
    Blocks,
    Call,
    Leaf,
    Reduction,
    added,
    evaluated,
    first_in_order,
    repeated,
    smallest_rows,
)
from rrmstats.core.entropy import Array

# Functions of numpy that act on each row alone where their first axis is that of the rows.
ROWWISE = {
    *(np.where, np.clip, np.round, np.nan_to_num),
    *(np.zeros_like, np.ones_like, np.full_like),
}
# Subscripts of einsum with a result for each row, and those that sum over the rows.
BY_ROW = {"ni,ni->n", "ni,ij,nj->n", "nd,nd->n", "...nd,...nd->...n"}


class BlockArray(NDArrayOperatorsMixin):
    """An array of shape (n, ...) as an expression in the leaves of blocks.

    Parameters
    ----------
    blocks : Blocks
    node : Leaf or Call
        The expression.
    tail : tuple of int
        Its shape without the rows.
    dtype : numpy.dtype, optional
        Its type.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import ArrayBlocks, row_sums
    >>> from rrmstats.core.block_array import leaf_arrays
    >>> (x,) = leaf_arrays(ArrayBlocks([(np.ones(3),), (np.zeros(2),)]), ((),))
    >>> x + 1, float((x + 1).sum())
    (<BlockArray of shape (5,) in 2 blocks>, 8.0)
    """

    __array_priority__ = 100.0

    def __init__(
        self, blocks: Blocks, node: Any, tail: tuple[int, ...] = (), dtype: Any = float
    ) -> None:
        self.blocks, self.node, self.tail, self.dtype = blocks, node, tail, np.dtype(dtype)
        self._known: dict[tuple[Any, int | None], Any] = {}

    def __len__(self) -> int:
        return int(sum(self.blocks.lengths))

    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array in blocks is ambiguous; use any() or all()")

    def __repr__(self) -> str:
        return f"<BlockArray of shape {self.shape} in {len(self.blocks.lengths)} blocks>"

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise TypeError(
            "these rows lie in blocks that may not fit into memory; take some of them by their "
            "places, or reduce them"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and the shape of one."""
        return (len(self), *self.tail)

    @property
    def ndim(self) -> int:
        """Number of axes, that of the rows included."""
        return 1 + len(self.tail)

    @property
    def T(self) -> BlockTransposed | BlockArray:
        """The transposed array, for products."""
        return self if self.ndim == 1 else BlockTransposed(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.matmul and method == "__call__":
            return product(*inputs)
        if method == "reduce":
            axis = kwargs.pop("axis", 0)
            return self._reduced(ufunc.reduce, axis)
        if method != "__call__" or kwargs.get("out") is not None:
            raise TypeError(f"numpy.{ufunc.__name__}.{method} needs rows in memory, not in blocks")
        return row_map(ufunc, *inputs, **kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if function in ROWWISE:
            return row_map(function, *args, **kwargs)
        if function is np.einsum and args[0] in BY_ROW:
            return row_map(function, *args)
        if function in REDUCTIONS:
            return getattr(args[0], REDUCTIONS[function])(*args[1:], **kwargs)
        if function in (np.shape, np.ndim):
            return getattr(self, function.__name__)
        if function is np.dot:
            return product(*args)
        raise TypeError(f"numpy.{function.__name__} needs rows in memory, not in blocks")

    def __getitem__(self, key: Any) -> Any:
        """Return columns of all rows as an expression, or some rows as an array."""
        first = key[0] if isinstance(key, tuple) else key
        if (isinstance(first, slice) and first == slice(None)) or first is Ellipsis:
            return row_map(operator.getitem, self, key)
        rows = taken(self._places(first), self)[0]
        return rows[(slice(None), *key[1:])] if isinstance(key, tuple) else rows

    def _places(self, key: Any) -> np.ndarray:
        if isinstance(key, slice):
            return np.arange(*key.indices(len(self)))
        places = np.asarray(key)
        return np.flatnonzero(places) if places.dtype == bool else places

    def astype(self, dtype: Any) -> BlockArray:
        """Return the array with another type."""
        return row_map(np.ndarray.astype, self, dtype)

    def remember(self, least: Any, most: Any) -> None:
        """Keep the smallest and largest entries over the rows that are known already."""
        self._known[np.minimum.reduce, 0] = least
        self._known[np.maximum.reduce, 0] = most
        self._known[np.minimum.reduce, None] = np.min(least)
        self._known[np.maximum.reduce, None] = np.max(most)

    def copy(self) -> BlockArray:
        """Return the array: expressions are never overwritten."""
        return self

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum over an axis, that of the rows included or not."""
        return self._reduced(np.add.reduce, axis)

    def mean(self, axis: int | None = None) -> Any:
        """Return the mean over the rows, or over all entries."""
        count = len(self) if axis == 0 else int(np.prod(self.shape))
        return self.sum(axis) / count

    def min(self, axis: int | None = None, initial: Any = None) -> Any:
        """Return the least entry."""
        return self._reduced(np.minimum.reduce, axis)

    def max(self, axis: int | None = None, initial: Any = None) -> Any:
        """Return the largest entry."""
        return self._reduced(np.maximum.reduce, axis)

    def any(self, axis: int | None = None) -> Any:
        """Tell whether any entry is true."""
        return self._reduced(np.logical_or.reduce, axis)

    def all(self, axis: int | None = None) -> Any:
        """Tell whether all entries are true."""
        return self._reduced(np.logical_and.reduce, axis)

    def _reduced(self, reduce: Callable[..., Any], axis: int | None) -> Any:
        axis = axis if axis is None or axis >= 0 else self.ndim + axis
        if axis is not None and axis > 0:
            return row_map(reduce, self, axis=axis)
        if (reduce, axis) in self._known:
            return self._known[reduce, axis]
        combine = added if reduce == np.add.reduce else partial(_stacked, reduce)
        return row_reduce(partial(reduce, axis=axis), combine, self)


class BlockTransposed:
    """A transposed array of rows in blocks, which only products use."""

    __array_priority__ = 101.0
    __array_ufunc__ = None

    def __init__(self, whole: BlockArray) -> None:
        self.whole = whole

    @property
    def T(self) -> BlockArray:
        """The array itself."""
        return self.whole

    def __matmul__(self, other: Any) -> Any:
        return row_sums(_crossed, self.whole, other)

    def __rmatmul__(self, other: Any) -> Any:
        """Return ``other @ rows.T``, a value for each row, where `other` has one axis."""
        return product(self.whole, np.asarray(other))


REDUCTIONS = {getattr(np, name): name for name in ("sum", "mean", "min", "max", "any", "all")}


def _stacked(reduce: Callable[..., Any], parts: list[Any]) -> Any:
    return reduce(np.array(parts), axis=0)


def _crossed(left: Array, right: Array) -> Array:
    return left.T @ right


def product(left: Any, right: Any) -> Any:
    """Return a matrix product one or both of whose factors have rows in blocks."""
    if isinstance(left, BlockArray) and left.ndim > 1:
        return row_map(np.matmul, left, right)
    return row_sums(_crossed, left, right)


def leaf_arrays(
    blocks: Blocks, tails: tuple[tuple[int, ...], ...] | None = None
) -> tuple[BlockArray, ...]:
    """Return the leaves of blocks as arrays; `tails` are their shapes without the rows."""
    if tails is None:
        tails = blocks.collect({0: _tails})[0]
    return tuple(BlockArray(blocks, Leaf(place), tail) for place, tail in enumerate(tails))


def _tails(leaves: tuple[Array, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(leaf.shape[1:] for leaf in leaves)


def in_blocks(*values: Any) -> Blocks | None:
    """Return the blocks in which the rows of some values lie; None where they are in memory."""
    return next((value.blocks for value in values if isinstance(value, BlockArray)), None)


def blocked(value: Any) -> bool:
    """Tell whether the rows of a value lie in blocks."""
    return isinstance(value, BlockArray)


def row_map(function: Callable[..., Any], *args: Any, tail: Any = None, **options: Any) -> Any:
    """Return a function of rows; of each row alone, so that blocks can wait.

    Parameters
    ----------
    function : callable
        Takes arrays with the same number of rows and returns one.
    *args
        Arrays of rows, in memory or in blocks, and other values.
    tail : tuple of int, optional
        Shape of the answer without the rows; without it the function is tried on no rows.
    **options
        Keywords of the function.

    Returns
    -------
    ndarray or BlockArray, shape (n, ...)
    """
    blocks = in_blocks(*args)
    if blocks is None:
        return function(*args, **options)
    nodes = tuple(as_node(arg, blocks) for arg in args)
    kind: Any = float
    if tail is None:
        tried = np.asarray(function(*map(_without_rows, args, nodes), **options))
        tail, kind = tried.shape[1:], tried.dtype
    return BlockArray(blocks, Call(function, nodes, options), tail, kind)


def _without_rows(arg: Any, node: Any) -> Any:
    """Return an argument of a function of rows, for none of them."""
    if isinstance(arg, BlockArray):
        return np.empty((0, *arg.tail), arg.dtype)
    return evaluated(node, (np.empty(0),), {})


def row_reduce(kernel: Callable[..., Any], combine: Callable[[list[Any]], Any], *args: Any) -> Any:
    """Return what a kernel gives for all rows, in one pass over them.

    Parameters
    ----------
    kernel : callable
        Takes the arguments on some rows.
    combine : callable
        Takes a list of what the kernel gives for parts of the rows.
    *args
        Arrays of rows, in memory or in blocks, and other values.
    """
    blocks = in_blocks(*args)
    if blocks is None:
        first, *others = (kernel(*part) for part in portions(args))
        return combine([first, *others]) if others else first
    task = Reduction(kernel, combine, tuple(as_node(arg, blocks) for arg in args))
    if blocks.rounds is None:
        return blocks.combined(task, combine)
    return blocks.rounds.answer(task) if combine is added else blocks.rounds.reduced(task)


def portions(args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Return arguments on parts of the rows, in memory, that are small enough to compute with.

    Arrays of several values for each row, (m, n), are not divided.
    """
    arrays = [arg for arg in args if isinstance(arg, np.ndarray) and arg.ndim]
    n = len(arrays[0]) if arrays else 0
    if n <= CHUNK or any(n in array.shape[1:] for array in arrays):
        yield args
        return
    rows = [isinstance(arg, np.ndarray) and arg.shape[:1] == (n,) for arg in args]
    for start in range(0, n, CHUNK):
        some = slice(start, start + CHUNK)
        yield tuple(arg[some] if row else arg for arg, row in zip(args, rows, strict=True))


def row_sums(kernel: Callable[..., Any], *args: Any) -> Any:
    """Return sums over rows, an array or a tuple of arrays, in one pass; see `row_reduce`.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import row_sums
    >>> row_sums(lambda x, y: (x.sum(), (x * y).sum()), np.ones(3), np.arange(3.0))
    (np.float64(3.0), np.float64(3.0))
    """
    return row_reduce(kernel, added, *args)


def taken(places: np.ndarray, *arrays: Any) -> tuple[Array, ...]:
    """Return some rows of arrays, in the order of `places`; at most one pass over their blocks."""
    blocks = in_blocks(*arrays)
    if blocks is None:
        return tuple(array[places] for array in arrays)
    return blocks.chosen(places, tuple(as_node(array, blocks) for array in arrays))


def smallest(count: int, *values: Any) -> np.ndarray:
    """Return the places (m,) of the rows whose values are smallest, the smallest first.

    Parameters
    ----------
    count : int
        How many rows.
    *values : ndarray or BlockArray, shape (n,)
        Where rows have the same value of the first, the next tells, and at last their order.
    """
    blocks = in_blocks(*values)
    if blocks is None:
        return np.lexsort(values[::-1])[:count]
    nodes = tuple(as_node(value, blocks) for value in values)
    starts = np.cumsum([0, *blocks.lengths])
    tasks = {
        place: partial(smallest_rows, nodes, count, int(starts[place]))
        for place, length in enumerate(blocks.lengths)
        if length
    }
    found = first_in_order(np.hstack(blocks.collect(tasks)), count)
    return found[-1].astype(int)


def aligned(values: Any, blocks: Blocks | None) -> Any:
    """Return values of rows as an array in blocks, where there are blocks."""
    if blocks is None or isinstance(values, BlockArray):
        return values
    return BlockArray(blocks, as_node(values, blocks), values.shape[1:], values.dtype)


def as_node(value: Any, blocks: Blocks) -> Any:
    """Return the expression of a value; arrays of one repeated number have that number."""
    if isinstance(value, BlockArray):
        return value.node
    if isinstance(value, np.ndarray) and value.ndim and len(value) == sum(blocks.lengths) > 1:
        if value.strides[0] == 0:
            return Call(repeated, (Leaf(0), value[0]))
        if value.ndim == 1:
            raise TypeError("an array of all rows in memory cannot meet rows in blocks")
    return value


T = TypeVar("T")


def on_rows(thing: T, places: np.ndarray) -> T:
    """Return a copy of an object of the package with the arrays of some rows in memory.

    Parameters
    ----------
    thing : object
        Such as an estimate; arrays in blocks are looked for in its attributes, and in theirs.
    places : ndarray of int, shape (m,)
    """
    return _on_rows(thing, places, {})


def _on_rows(thing: Any, places: np.ndarray, known: dict[int, Any]) -> Any:
    if id(thing) in known:
        return known[id(thing)]
    if blocked(thing):
        known[id(thing)] = rows = taken(places, thing)[0]
        return rows
    if not type(thing).__module__.startswith("rrmstats."):
        return thing
    known[id(thing)] = copied = copy(thing)
    values = dict(getattr(thing, "__dict__", {}))
    if is_dataclass(thing):  # without what was computed for all rows
        getattr(copied, "__dict__", {}).clear()
        values = {each.name: getattr(thing, each.name) for each in fields(thing)}
    for name, value in values.items():
        some = len(places) if name == "n_obs" else _on_rows(value, places, known)
        object.__setattr__(copied, name, some)
    return copied
