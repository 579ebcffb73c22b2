"""Medians of rows in memory or in blocks, and samples of rows that do for the middle of many."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import in_blocks, taken
from rrmstats.core.entropy import Array
from rrmstats.core.frames import median_of

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

    Rows in memory or in blocks, whose columns come to memory one after the other.
    """
    if in_blocks(values, weights) is None:
        return median_of(values, weights)
    if values.ndim > 1:
        return np.array([weighted_median(values[:, j], weights) for j in range(values.shape[1])])
    return median_of(*taken(np.arange(len(values)), values, weights))
