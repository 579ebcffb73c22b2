"""Expectations of weighted counts: sums over whole numbers, and integrals far out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicSpline, PPoly

from rrmstats.core.block_array import blocked, row_map, row_reduce
from rrmstats.core.entropy import Array
from rrmstats.losses.families import Moments

if TYPE_CHECKING:
    from rrmstats.losses.counts import Counts
    from rrmstats.losses.families import Family

# Counts that are summed one by one; a longer range is integrated at N_NODES nodes.
ONE_BY_ONE, N_NODES = 64, 96
# Entries of the arrays that a block of rows works on.
BLOCK = 400_000
# Rows of one size from which expectations are interpolated.
MANY_ROWS = 1500
# Distance of the points between which they are, points that are computed together, more on both
# sides so that a spline does not see the end, and such pieces that are kept.
STEP, PIECE, MARGIN, MOST_PIECES = 0.02, 128, 24, 1024
# Deviances that differ by this fraction are ties.
TIES = 1e-9


def lattice_moments(
    family: Counts, mu: Array, size: Array, order: float, n_sizes: int | None = None
) -> Moments:
    """Return the expectations of a family of counts under weights of an order.

    Parameters
    ----------
    family : Counts
    mu, size : ndarray or BlockArray, shape (n,)
        Means and sizes of the rows.
    order : float
    n_sizes : int, optional
        Number of different sizes; counted where it is not given.

    Returns
    -------
    Moments
    """
    if n_sizes is None:
        n_sizes = different(size, len(mu) // MANY_ROWS)
    function = summed if len(mu) <= MANY_ROWS * n_sizes else interpolated
    return map_moments(partial(function, family), mu, size, order)


def different(values: Array, most: int) -> int:
    """Return how many different values there are, up to one more than `most`."""
    first = partial(_first_different, most + 1)
    return len(row_reduce(first, partial(_joined_different, most + 1), values))


def _first_different(most: int, values: Array) -> Array:
    return values[:1] if values.strides[0] == 0 else np.unique(values)[:most]


def _joined_different(most: int, parts: list[Array | None]) -> Array | None:
    found = [part for part in parts if part is not None]
    return np.unique(np.concatenate(found))[:most] if found else None


def map_moments(
    function: Callable[[Array, Array, float], Moments], mu: Array, size: Array, order: float
) -> Moments:
    """Return expectations that a function gives for each row alone; blocks of rows can wait."""
    if not blocked(mu):
        return function(mu, size, order)
    columns = row_map(partial(_stacked_moments, function), mu, size, order, tail=(4,))
    return Moments(*(columns[:, i] for i in range(4)))


def _stacked_moments(
    function: Callable[[Array, Array, float], Moments], mu: Array, size: Array, order: float
) -> Array:
    return np.column_stack(function(mu, size, order))


def summed(family: Counts, mu: Array, size: Array, order: float) -> Moments:
    """Return the expectations as sums at every row."""
    return joined(
        [
            sum_moments(family, y, mass, m, s, order)
            for _, y, mass, m, s in lattice_laws(family, mu, size)
        ]
    )


def interpolated(family: Counts, mu: Array, size: Array, order: float) -> Moments:
    """Return the expectations of many rows with few sizes, from sums at a lattice of means.

    In units of the standard deviation they are smooth functions of the logarithm of the mean, or
    of the odds.
    """
    at = family.coordinate(mu)
    found = np.empty((4, len(mu)))
    sizes = size[:1] if size.strides[0] == 0 else np.unique(size)
    for value in sizes:
        rows = slice(None) if len(sizes) == 1 else np.flatnonzero(size == value)
        found[:, rows] = _from_pieces(family, float(value), order, at[rows])
    unit = np.sqrt(family.variance(mu) / size)
    return Moments(found[0], found[1] * unit, found[2] * unit**2, found[3])


def _from_pieces(family: Counts, size: float, order: float, at: Array) -> Array:
    """Return expectations in units of the standard deviation at coordinates (n,), shape (4, n)."""
    first, last = (int(np.floor(end / (PIECE * STEP))) for end in (at.min(), at.max()))
    pieces = [_piece(family, size, order, place) for place in range(first, last + 1)]
    knots = STEP * np.arange(first * PIECE, (last + 1) * PIECE + 1)
    return np.asarray(PPoly(np.concatenate(pieces, axis=1), knots)(at).T)


@lru_cache(maxsize=MOST_PIECES)
def _piece(family: Counts, size: float, order: float, place: int) -> Array:
    """Return the coefficients of a cubic spline through the sums on one piece of the lattice.

    Knots on both sides of the piece make it independent of where others are.
    """
    knots = STEP * np.arange(place * PIECE - MARGIN, (place + 1) * PIECE + MARGIN + 1)
    means = family.from_coordinate(knots)
    sums = summed(family, means, np.full(len(means), size), order)
    unit = np.sqrt(family.variance(means) / size)
    smooth = np.c_[sums.mass, sums.first / unit, sums.second / unit**2, sums.deviance]
    return np.ascontiguousarray(CubicSpline(knots, smooth).c[:, MARGIN : MARGIN + PIECE])


def lattice_tail(family: Counts, y: Array, mu: Array, size: Array) -> Array:
    """Return the probability of a deviance at least as large as each row's, shape (n,)."""
    parts = []
    for rows, nodes, mass, m, _ in lattice_laws(family, mu, size):
        least = family.deviance(y[rows, None], m) * (1.0 - TIES)
        parts.append(np.sum(mass * (family.deviance(nodes, m) >= least), axis=-1))
    return np.minimum(np.concatenate(parts), 1.0)


def lattice_laws(
    family: Counts, mu: Array, size: Array
) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
    """Yield the distributions of the responses of blocks of rows.

    Each has the rows, their responses and probabilities, shape (b, m), and means and sizes, shape
    (b, 1).
    """
    low, high = family.count_range(size * mu, size)
    width = int(min((high - low).max() + 1, ONE_BY_ONE + N_NODES))
    step = max(1, BLOCK // width)
    for i in range(0, len(mu), step):
        rows = slice(i, i + step)
        nodes, steps = count_nodes(low[rows], high[rows])
        m, s = mu[rows, None], size[rows, None]
        mass = steps * np.exp(family.log_pmf(nodes, s * m, s))
        yield rows, nodes / s, mass, m, s


def count_nodes(low: Array, high: Array) -> tuple[Array, Array]:
    """Return counts from `low` to `high` and their weights in a sum, shape (n, m) each.

    The first are whole numbers of weight one. Where there are more than a few, those further on
    stand for several: nodes of a Gauss-Legendre rule in the logarithm of the rest of the range.
    """
    span = int((high - low).max())
    step = np.arange(min(span, ONE_BY_ONE + N_NODES - 1) + 1.0)
    long = high - low >= len(step)
    last = np.where(long, ONE_BY_ONE - 1.0, len(step) - 1.0)[:, None]
    nodes = low[:, None] + step
    weights = np.where((step <= last) & (nodes <= high[:, None]), 1.0, 0.0)
    if long.any():
        unit, rule = np.polynomial.legendre.leggauss(N_NODES)
        start = np.log(low[long] + ONE_BY_ONE - 0.5)
        half = 0.5 * (np.log(high[long] + 0.5) - start)[:, None]
        far = np.exp(start[:, None] + half * (1.0 + unit))
        nodes[long, ONE_BY_ONE:], weights[long, ONE_BY_ONE:] = far, half * rule * far
    return np.minimum(nodes, high[:, None]), weights


def sum_moments(
    family: Family, y: Array, mass: Array, mu: Array, size: Array, order: float
) -> Moments:
    """Return expectations over responses y (n, m) that have probabilities `mass`.

    `mu` and `size` have shape (n, 1).
    """
    scaled = size * family.deviance(y, mu)
    tilted = mass * np.exp(-0.5 * (order - 1.0) * scaled)
    off = y - mu
    pulled = tilted * off
    return Moments(
        tilted.sum(axis=-1),
        pulled.sum(axis=-1),
        np.einsum("nm,nm->n", pulled, off),
        np.einsum("nm,nm->n", tilted, scaled),
    )


def joined(parts: list[Moments]) -> Moments:
    """Return the expectations of blocks of rows as one."""
    return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))
