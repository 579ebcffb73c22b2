"""Medians, weighted moments, matrix roots, units and dimensions of multivariate data."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import aligned, in_blocks, row_sums, smallest, taken
from rrmstats.core.blocks import deciding_places, sample_places
from rrmstats.core.design import triangle
from rrmstats.core.entropy import Array
from rrmstats.core.frames import median_of
from rrmstats.core.tolerances import ROUNDING

# Variances below this, for data in units of their spread, are those of a hyperplane.
FLAT = 1e-22
# A triangular factor whose least entry, squared, is this part of the variances needs no floor.
DEFINITE = 1e-12
# Data in units of their spread beyond which squares and their products could overflow.
FARTHEST = 1e60
# Rows that tell the middle and the spread of many more.
THINNED_ROWS = 10_000


def scatter_root(scatter: Array) -> tuple[Array, Array, Array]:
    """Return roots L of scatters L L', their inverses, (..., d, d), and ln det of the scatters.

    Triangular ones, but where a scatter is near singular; its variances are at least FLAT.
    """
    try:
        root = np.linalg.cholesky(scatter)
        spread = np.einsum("...ii->...i", root)
        largest = np.einsum("...ii->...i", scatter).max(axis=-1)
        definite = (spread.min(axis=-1) ** 2 > DEFINITE * largest).all()
    except np.linalg.LinAlgError:
        definite = False
    if definite:
        inverse = np.linalg.inv(root)
    else:
        values, vectors = np.linalg.eigh(scatter)
        spread = np.sqrt(np.maximum(values, FLAT))
        root = vectors * spread[..., None, :]
        inverse = np.swapaxes(vectors, -1, -2) / spread[..., None]
    return root, inverse, 2.0 * np.log(spread).sum(axis=-1)


def symmetric(upper: Array, dim: int) -> Array:
    """Return symmetric matrices (..., d, d) of upper triangles, row by row, (..., k)."""
    rows, columns = np.triu_indices(dim)
    found = np.zeros((*upper.shape[:-1], dim, dim))
    found[..., rows, columns] = found[..., columns, rows] = upper
    return found


def upper_triangle(matrices: Array) -> Array:
    """Return the upper triangles (..., k) of matrices (..., d, d), row by row."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def weighted_scatter(data: Array, weights: Array, location: Array) -> Array:
    """Return ``sum(weights * (z - location)(z - location)')``, shape (..., d, d)."""
    centered = data - location[..., None, :]
    return np.swapaxes(centered, -1, -2) @ (weights[..., None] * centered)


def central_moments(
    data: Array, weights: Array, demean: bool = True
) -> tuple[float, Array, Array]:
    """Return the sum of weights, the location (d,) and the scatter (d, d) around it.

    One pass over the rows. The location is zero where it is known to be.
    """
    mass, first, second = row_sums(moment_sums, data, weights)
    location = first / mass * demean
    return mass, location, second / mass - np.outer(location, location)


def moment_sums(data: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the sums of weights w, w z and w z z' over rows z."""
    weighted = weights[:, None] * data
    return weights.sum(), weighted.sum(axis=0), data.T @ weighted


def unit_spread(data: Array) -> tuple[Array, Array]:
    """Return a center and a unit for each column, (d,) both, that bad rows cannot move.

    The unit is a power of two near the middle spread of the column, so that dividing by it
    rounds nothing; columns that hardly vary fall back on their range. Those of many rows are
    those of the sample that decides between explanations.
    """
    (some,) = taken(deciding_places(len(data)), data)
    center = np.median(some, axis=0)
    spread = np.median(np.abs(some - center), axis=0)
    if not (spread > 0).all():
        spread = np.where(spread > 0, spread, np.abs(data - center).max(axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    return center, np.exp2(np.round(np.log2(spread)))


def check_range(data: Array) -> None:
    """Raise where data in units of their spread hold rows too far out to compute with."""
    far = (np.abs(data) > FARTHEST).any(axis=1)
    count = int(far.sum())
    if count:
        first = smallest(1, ~far)[0]
        raise ValueError(
            f"{count} rows, the first of them row {first}, lie more than {FARTHEST:g} times "
            "as far out as the middle of the data, too far to compute with; fix or drop them"
        )


def lengths(rows: Array) -> Array:
    """Return the lengths of rows (n, d), shape (n,)."""
    return np.sqrt(np.einsum("nd,nd->n", rows, rows))


def thinned(*arrays: Array) -> tuple[Array, ...]:
    """Return about THINNED_ROWS rows of arrays, evenly spaced; all rows of small ones."""
    drawn = sample_places(len(arrays[0]))
    return taken(drawn[:: max(1, len(drawn) // THINNED_ROWS)], *arrays)


def weighted_median(values: Array, weights: Array) -> Array:
    """Return the medians of columns, shape (...), of values of shape (n, ...).

    Rows in memory or in blocks, whose columns come to memory one after the other.
    """
    if in_blocks(values, weights) is None:
        return median_of(values, weights)
    if values.ndim > 1:
        return np.array([weighted_median(values[:, j], weights) for j in range(values.shape[1])])
    return median_of(*taken(np.arange(len(values)), values, weights))


def spanned(data: Array, used: Array, demean: bool, enough: int) -> int:
    """Return the number of dimensions that rows span, or one that is at least `enough`.

    Neither units of columns nor rows far out hide a dimension.

    Parameters
    ----------
    data : ndarray or BlockArray, shape (n, d)
    used : ndarray or BlockArray, shape (n,)
        Zero for rows that do not count, one for the others.
    demean : bool
        Whether directions between rows count, and not those from the origin.
    enough : int
        A number of dimensions at which some of the rows suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.matrices import spanned
    >>> line = np.outer(np.arange(9.0), [1, 2, 3]) + 5
    >>> spanned(line, np.ones(9), True, 2), spanned(line, np.ones(9), False, 2)
    (1, 2)
    """
    center, unit = unit_spread(data)
    if not demean:
        center, unit = np.zeros_like(center), np.maximum(unit, np.abs(center))
    drawn = sample_places(len(data))
    some = drawn[np.unique(np.linspace(0, len(drawn) - 1, 2 * (enough + 2)).astype(int))]
    few, few_used = taken(some, data, aligned(used, in_blocks(data)))
    found = _rank(few, few_used, center, unit, demean)
    return found if found >= enough else _rank(data, used, center, unit, demean)


def _rank(data: Array, used: Array, center: Array, unit: Array, demean: bool) -> int:
    """Return the dimension of rows in given units, each of them of length one."""
    rows = (data - center) / unit
    size = np.hypot(lengths(rows), 1.0 if demean else 0.0)
    weights = used / np.maximum(size, np.finfo(float).tiny)
    factor = triangle(rows, weights, size**0 if demean else None)
    singular = np.linalg.svd(factor, compute_uv=False)
    rounding = 8 * len(unit) * np.finfo(float).eps * max(1.0, np.max(np.abs(center / unit)))
    # Rounding of data far from the origin hides dimensions, but none that are wider than ROUNDING.
    return int((singular > min(rounding, ROUNDING) * singular[0]).sum()) - demean
