"""How each row moves eigenvalues, the basis of a subspace and loadings."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array


def along_axes(scatter: Array, axes: Array) -> Array:
    """Return the variances (n, q) of scatters (n, q, q) along axes (q, q)."""
    return np.einsum("ij,nik,kj->nj", axes, scatter, axes)


def flat_rows(values: Array) -> Array:
    """Return rows of any shape as vectors, shape (n, k)."""
    return row_map(_flat, values)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), int(np.prod(values.shape[1:])))


def basis_turns(steps: Array, off: Array) -> Array:
    """Return turns of a basis (n, d, q) for steps (n, k) in coordinates off it, (d, d - q)."""
    codim = off.shape[1]
    q = len(off) - codim
    return np.asarray(off @ steps[:, : codim * q].reshape(len(steps), codim, q))


def turned_loadings(
    turns: Array, scatter: Array, axes: Array, basis: Array, values: Array, span: Array
) -> Array:
    """Return how loadings move (n, d, q).

    Parameters
    ----------
    turns : ndarray, shape (n, r, q)
        Of the basis, off itself.
    scatter : ndarray, shape (n, q, q)
        Moves of the scatter within the subspace.
    axes, basis, span : ndarray, shapes (q, q), (r, q) and (d, r)
    values : ndarray, shape (q,)
        Eigenvalues of the scatter.
    """
    within = axes.T @ scatter @ axes
    gap = np.broadcast_to(values[None, :] - values[:, None], within.shape)
    rotation = np.divide(within, gap, out=np.zeros_like(within), where=gap != 0)
    return np.asarray(span @ (turns @ axes + basis @ axes @ rotation))
