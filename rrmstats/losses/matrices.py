"""Weighted moments, matrix roots and units of multivariate data."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import smallest
from rrmstats.core.entropy import Array
from rrmstats.losses.medians import thinned

# Variances below this, for data in units of their spread, are those of a hyperplane.
FLAT = 1e-22
# A triangular factor whose least entry, squared, is this part of the variances needs no floor.
DEFINITE = 1e-12
# Data in units of their spread beyond which squares and their products could overflow.
FARTHEST = 1e60
# A normal standard deviation, in units of the median absolute deviation.
MAD_UNIT = 1.4826022185056018


def root_values(scatter: Array) -> tuple[Array, Array]:
    """Return the roots of the eigenvalues (..., d) and the eigenvectors (..., d, d)."""
    values, vectors = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(values, FLAT)), vectors


def triangular_root(scatter: Array) -> Array | None:
    """Return lower triangular roots, shape (..., d, d); None where a matrix is near singular."""
    try:
        root = np.linalg.cholesky(scatter)
    except np.linalg.LinAlgError:
        return None
    square = np.einsum("...ii->...i", root) ** 2
    largest = np.einsum("...ii->...i", scatter).max(axis=-1)
    return root if (square.min(axis=-1) > DEFINITE * largest).all() else None


def symmetric_root(scatter: Array) -> Array:
    """Return the symmetric root of positive definite matrices, shape (..., d, d)."""
    spread, vectors = root_values(scatter)
    return (vectors * spread[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def weighted_scatter(data: Array, weights: Array, location: Array) -> Array:
    """Return ``sum(weights * (z - location)(z - location)')``, shape (..., d, d)."""
    centered = data - location[..., None, :]
    return np.swapaxes(centered, -1, -2) @ (weights[..., None] * centered)


def unit_spread(data: Array) -> tuple[Array, Array]:
    """Return a center and a unit for each column, (d,) both, that bad rows cannot move.

    The unit is a power of two near the middle spread of the column, so that dividing by it
    rounds nothing; columns that hardly vary fall back on their range.
    """
    (some,) = thinned(data)
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


def mahalanobis(data: Array, mean: Array, cov: Array) -> Array:
    """Return distances from a mean in the metric of a covariance, shape (n,)."""
    unit = np.sqrt(np.diag(cov))
    unit = np.where(unit > 0, unit, 1.0)
    u = (data - mean) / unit
    inverse = np.linalg.pinv(cov / np.outer(unit, unit), hermitian=True)
    return np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", u, inverse, u), 0.0))


def lengths(rows: Array) -> Array:
    """Return the lengths of rows (n, d), shape (n,)."""
    return np.sqrt(np.einsum("nd,nd->n", rows, rows))
