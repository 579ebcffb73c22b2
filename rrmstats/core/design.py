"""Designs of any rank and scale, and least squares on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import blocked, row_reduce
from rrmstats.core.blocks import sample_places
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import ROUNDING, SUM_ROUNDING

# Rows enough to tell the condition of a design; the loop notices the rare worse one.
CONDITION_ROWS = 10_000
# Sizes past which squares and their sums could overflow or vanish.
EXTREME = 1e60
# Columns from which steps by products with the design, of gradients or conjugate gradients, are
# cheaper than one by its Gram matrix, which costs as much as k products.
WIDE = 50


class Design:
    """A design with the same column space as `exog` that is safe for normal equations.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
        Design, of any rank and scale.

    Attributes
    ----------
    exog : ndarray, shape (n, r)
        The given design where its condition allows, else an orthonormal basis of its columns.
    back : ndarray, shape (k, r), or None
        Takes parameters of the basis to the parameters of least norm of the given design; None
        where they are the same.
    """

    def __init__(self, exog: Array) -> None:
        self.exog = exog
        self.back: Array | None = None
        scale = power_of_two(exog, axis=0)
        drawn = sample_places(len(exog))
        some = exog[drawn[:: max(1, len(drawn) // CONDITION_ROWS)]]
        if (scale == 1).all() and solve_gram(some.T @ some, np.zeros(exog.shape[1]))[1]:
            return
        check_range(some if blocked(exog) else exog, scale)
        scale = np.exp2(np.floor(np.log2(largest_entries(exog))))
        left, singular, right = thin_svd(exog / scale)
        rank = int((singular > singular[0] * max(exog.shape) * np.finfo(float).eps).sum())
        back = (right[:rank].T / singular[:rank]) / scale[:, None]
        if rank < exog.shape[1]:
            null = np.linalg.qr(right[:rank].T, mode="complete")[0][:, rank:]
            null = np.linalg.qr(null / scale[:, None])[0]
            back = back - null @ (null.T @ back)
        self.exog, self.back = left[:, :rank], back
        self._forth = singular[:rank, None] * right[:rank] * scale

    def to_params(self, theta: Array) -> Array:
        """Return the parameters of the given design."""
        return theta if self.back is None else self.back @ theta

    def from_params(self, params: Array) -> Array:
        """Return the parameters of the basis."""
        return params if self.back is None else self._forth @ params

    def place(self, places: Array) -> None:
        """Let the parameters be those at some places among more, the others zero: (m, k)."""
        forth = np.eye(places.shape[1]) if self.back is None else self._forth
        self.back, self._forth = places @ self.to_params(np.eye(forth.shape[0])), forth @ places.T


def thin_svd(rows: Array) -> tuple[Array, Array, Array]:
    """Return the singular value decomposition of many rows, (n, k), (k,) and (k, k)."""
    if not blocked(rows):
        return np.linalg.svd(rows, full_matrices=False)
    _, singular, right = np.linalg.svd(triangle(rows))
    unit = np.where(singular > 0, singular, 1.0)
    return rows @ (right.T / unit), singular, right


def triangle(rows: Array, weights: Array | None = None, target: Array | None = None) -> Array:
    """Return the triangular factor of rows, each times its weight, with a target beside them.

    Parameters
    ----------
    rows : ndarray or BlockArray, shape (n, k)
    weights, target : ndarray or BlockArray, shape (n,), optional

    Returns
    -------
    ndarray, shape (m, k) or (m, k + 1)
        At most as many rows as columns, with the same Gram matrix.
    """
    return row_reduce(_triangle, _stacked_triangle, rows, weights, target)


def _triangle(rows: Array, weights: Array | None, target: Array | None) -> Array:
    if target is not None:
        rows = np.column_stack([rows, target])
    if weights is not None:
        rows = weights[:, None] * rows
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _stacked_triangle(parts: list[Array]) -> Array:
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))


def check_range(exog: Array, scale: Array) -> None:
    """Raise where the entries of a column are too far apart to compute with."""
    for j in np.flatnonzero(scale > 1):
        typical = np.median(np.abs(exog[exog[:, j] != 0, j]))
        if typical < scale[j] / EXTREME:
            raise ValueError(
                f"column {j} of the design has entries from {typical:.3g} to {scale[j]:.3g}, too "
                "far apart to compute with; fix or drop the rows with the largest"
            )


def largest_entries(exog: Array) -> Array:
    """Return the size of the largest entry of each column, shape (k,); 1 where all are zero."""
    size = np.maximum(exog.max(axis=0), -exog.min(axis=0))
    return np.where(size > 0, size, 1.0)


def power_of_two(values: Array, axis: int | None = None) -> Array:
    """Return a unit, free of rounding, for data too large or too small to square; else 1."""
    size = np.maximum(values.max(axis=axis), -values.min(axis=axis))
    extreme = (size > 0) & ((size > EXTREME) | (size < 1 / EXTREME))
    return np.where(extreme, np.exp2(np.floor(np.log2(np.where(extreme, size, 1.0)))), 1.0)


def solve_gram(gram: Array, right: Array) -> tuple[Array, Array]:
    """Solve positive semi-definite systems of shape (..., k, k), and say which are sound.

    Past a condition of 1 / ROUNDING the eighth digit of normal equations is lost.
    """
    diagonal = np.sqrt(np.einsum("...ii->...i", gram))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = gram / (diagonal[..., :, None] * diagonal[..., None, :])
        scaled = right / diagonal
    try:
        inverse = np.linalg.inv(unit)
    except np.linalg.LinAlgError:
        unit = np.where(np.isfinite(unit), unit, 0.0)
        inverse = np.linalg.pinv(unit, hermitian=True)
        rank = np.linalg.matrix_rank(unit, hermitian=True)
        inverse[rank < unit.shape[-1]] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        solution = np.einsum("...ij,...j->...i", inverse, scaled) / diagonal
        condition = np.abs(inverse).sum(axis=-1).max(axis=-1)
    return solution, np.asarray(condition < 1 / ROUNDING) & np.isfinite(solution).all(axis=-1)


def conjugate_gradients(
    product: Callable[[Array], Array], right: Array, start: Array, inverse: Array, steps: int = 60
) -> tuple[Array, np.ndarray]:
    """Return the solutions of a batch of positive definite systems, and which of them are solved.

    Parameters
    ----------
    product : callable
        Multiplies a batch (b, k, d) by the matrices.
    right, start : ndarray, shape (b, k, d)
        Right-hand sides, and where to begin.
    inverse : ndarray, shape (k, k)
        About in proportion to the inverse of each matrix.
    steps : int, optional
        Number of steps at most.
    """

    def squares(left: Array) -> tuple[Array, Array]:
        turned = inverse @ left
        return turned, np.einsum("bkd,bkd->b", left, turned)

    tiny = np.finfo(float).tiny
    found, left, most = start, right - product(start), 1e-10**2 * squares(right)[1]
    along, square = squares(left)
    if start.any():  # fits that are repeated get ever nearer
        most = np.maximum(most, 1e-2**2 * square)
    for _ in range(steps):
        if (square <= most).all():
            break
        image = product(along)
        curve = np.maximum(np.einsum("bkd,bkd->b", along, image), tiny)
        step = (square / curve)[:, None, None]
        found, left = found + step * along, left - step * image
        turned, new = squares(left)
        along = turned + (new / np.maximum(square, tiny))[:, None, None] * along
        square = new
    return found, square <= most


def exact_fit(exog: Array, target: Array) -> Array:
    """Return the least squares fit to few rows of full rank, shape (k,); NaN without it."""
    found, _, rank, _ = np.linalg.lstsq(exog, target, rcond=None)
    return np.asarray(found if rank == exog.shape[1] else np.full(exog.shape[1], np.nan))


def orthogonal_fit(exog: Array, target: Array, weights: Array) -> Array:
    """Return a weighted least squares fit by an orthogonal factorization.

    Among several it is the one of least norm when every column is in units of its largest entry.
    """
    used = weights > 0
    root = np.sqrt(weights[used] / weights.max())
    rows = root[:, None] * exog[used]
    unit = np.abs(rows).max(axis=0)
    unit[unit == 0] = 1.0
    return np.linalg.lstsq(rows / unit, root * target[used], rcond=None)[0] / unit


def hat_values(exog: Array, weights: Array) -> Array:
    """Return the diagonal of the weighted hat matrix, shape (n,).

    Parameters
    ----------
    exog : ndarray, shape (n, k)
        Design, of any rank.
    weights : ndarray, shape (n,)
        Weights of the rows.
    """
    root = np.sqrt(weights)[:, None] * exog
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    rank = singular > singular[0] * max(root.shape) * np.finfo(float).eps
    return np.einsum("ni,ni->n", left[:, rank], left[:, rank])


def inverse_root(gram: Array) -> Array:
    """Return R with ``R gram R' = 1`` in the directions that rows reach, shape (k, k).

    Parameters
    ----------
    gram : ndarray, shape (k, k)
        Gram matrix of rows, positive semi-definite.
    """
    unit = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(unit, unit))
    seen = values > len(values) * np.finfo(float).eps
    root = np.zeros_like(values)
    root[seen] = values[seen] ** -0.5
    return (vectors * root).T / unit


def standardizing(exog: Array) -> Array:
    """Return A such that the columns of ``exog @ A`` have size one in most rows, shape (k, k).

    Where a column is constant the others are centered by it, so that the condition does not depend
    on where they are measured from. Centers and sizes are medians, which few rows far away do not
    change; columns that are constant in most rows have their root mean square.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
        Rows from which centers and sizes are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.design import standardizing
    >>> exog = np.c_[np.ones(4), 1960 + np.arange(4.0)]
    >>> (exog @ standardizing(exog)).mean(axis=0).round(9)
    array([1., 0.])
    """
    k, mean = exog.shape[1], exog.mean(axis=0)
    spread = exog.std(axis=0)
    constant = np.flatnonzero((spread <= SUM_ROUNDING * np.abs(mean)) & (mean != 0))
    found = np.eye(k)
    if len(constant):
        others = np.arange(k) != constant[0]
        found[constant[0], others] = -np.median(exog[:, others], axis=0) / mean[constant[0]]
    columns = np.abs(exog @ found)
    size = np.median(columns, axis=0)
    size = np.where(size > 0, size, np.sqrt((columns**2).mean(axis=0)))
    return found / np.where(size > 0, size, 1.0)


class Thinned(NamedTuple):
    """Some rows of a problem, in memory.

    Attributes
    ----------
    places : ndarray of int, shape (m,)
    endog : ndarray, shape (m,)
    exog : ndarray, shape (m, k)
    """

    places: np.ndarray
    endog: Array
    exog: Array

    def share(self, share: Array) -> Array:
        """Return the weights of these rows, given those of all (n,), scaled to sum to one."""
        some = share[self.places]
        return some / some.sum()
