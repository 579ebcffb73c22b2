"""Medians of rows in memory or in blocks, and samples of rows that do for the middle of many."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import in_blocks, row_reduce, row_sums, taken
from rrmstats.core.entropy import Array
from rrmstats.core.frames import HALVES, median_under

# Rows that tell the middle and the spread of many more.
THINNED_ROWS = 10_000


def thinned(*arrays: Array) -> tuple[Array, ...]:
    """Return about THINNED_ROWS rows of arrays, evenly spaced; all rows of small ones."""
    n = len(arrays[0])
    step = max(1, n // THINNED_ROWS)
    if in_blocks(*arrays) is None:
        return tuple(array[::step] for array in arrays)
    return taken(np.arange(0, n, step), *arrays)


def weighted_median(values: Array, weights: Array) -> Array:
    """Return the medians of columns, shape (...), of values of shape (n, ...).

    Rows in memory or in blocks; see `median_under`.
    """
    if in_blocks(values, weights) is not None:
        return median_in_blocks(values, weights)
    if np.ptp(weights) == 0:
        return np.asarray(np.median(values, axis=0))
    return median_under(values, weights)


def median_in_blocks(values: Array, weights: Array) -> Array:
    """Return what `weighted_median` does in three passes, for values of shape (n,) or (n, d).

    Some of the rows divide the line into cells. One pass tells which cells hold the median, and
    another brings their values.
    """
    if values.ndim == 1:
        return median_in_blocks(values[:, None], weights)[0]
    edges = [np.unique(column) for column in thinned(values)[0].T]
    cells = row_sums(partial(cell_weights, edges), values, weights)
    chosen = [[_cell(column, half) for half in HALVES] for column in cells]
    bounds = [
        [_bounds(edge, cell) for cell in pair] for edge, pair in zip(edges, chosen, strict=True)
    ]
    found = row_reduce(partial(inside_cells, bounds), _joined, values, weights)
    medians = []
    for edge, weight, pair, inside in zip(edges, cells, chosen, found, strict=True):
        each = []
        for half, cell, (some, mass) in zip(HALVES, pair, inside, strict=True):
            if cell % 2:
                each.append(edge[cell // 2])
                continue
            order = np.argsort(some, kind="stable")
            reached = (weight[:cell].sum() + np.cumsum(mass[order])) / weight.sum()
            each.append(some[order][min(int((reached < half).sum()), len(some) - 1)])
        medians.append(0.5 * (each[0] + each[1]))
    return np.array(medians)


def cell_weights(edges: list[Array], values: Array, weights: Array) -> tuple[Array, ...]:
    """Return the weight within each cell, for each column.

    Cells of even number are the open intervals between edges, those of odd number the edges.
    """
    found: list[Array] = []
    for edge, column in zip(edges, values.T, strict=True):
        cell = np.searchsorted(edge, column, "left") + np.searchsorted(edge, column, "right")
        found.append(np.asarray(np.bincount(cell, weights, 2 * len(edge) + 1), dtype=float))
    return tuple(found)


def _cell(weights: Array, half: float) -> int:
    """Return the cell in which a share of the weight is reached."""
    reached = np.cumsum(weights) / weights.sum()
    return int(min((reached < half).sum(), np.flatnonzero(weights)[-1]))


def _bounds(edges: Array, cell: int) -> tuple[float, float]:
    """Return the ends of an open cell; for an edge, ends that hold nothing between them."""
    if cell % 2:
        return np.inf, np.inf
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    return float(ends[cell // 2]), float(ends[cell // 2 + 1])


def inside_cells(
    bounds: list[list[tuple[float, float]]], values: Array, weights: Array
) -> list[list[tuple[Array, Array]]]:
    """Return the values, and their weights, between each pair of bounds of each column."""
    found = []
    for pairs, column in zip(bounds, values.T, strict=True):
        chosen = [(low < column) & (column < high) for low, high in pairs]
        found.append([(column[rows], weights[rows]) for rows in chosen])
    return found


def _joined(parts: list[Any]) -> Any:
    """Return what parts of the rows gave, joined."""
    parts = [part for part in parts if part is not None]
    return [
        [
            tuple(np.concatenate([part[column][half][i] for part in parts]) for i in (0, 1))
            for half in (0, 1)
        ]
        for column in range(len(parts[0]))
    ]
