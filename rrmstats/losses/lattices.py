"""Expectations of weighted counts: sums over whole numbers, and integrals far out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.losses.families import Moments

if TYPE_CHECKING:
    from rrmstats.losses.counts import Counts
    from rrmstats.losses.families import Family

# Counts that are summed one by one; a longer range is integrated at N_NODES nodes.
ONE_BY_ONE, N_NODES = 64, 96
# Entries of the arrays that a block of rows works on.
BLOCK = 400_000
# Deviances that differ by this fraction are ties.
TIES = 1e-9


def lattice_moments(family: Counts, mu: Array, size: Array, order: float) -> Moments:
    """Return the expectations of a family of counts under weights of an order.

    Parameters
    ----------
    family : Counts
    mu, size : ndarray, shape (n,)
        Means and sizes of the rows.
    order : float

    Returns
    -------
    Moments
    """
    parts = [
        sum_moments(family, y, mass, m, s, order) for _, y, mass, m, s in laws(family, mu, size)
    ]
    return joined(parts)


def lattice_tail(family: Counts, y: Array, mu: Array, size: Array) -> Array:
    """Return the probability of a deviance at least as large as each row's, shape (n,)."""
    parts = []
    for rows, nodes, mass, m, _ in laws(family, mu, size):
        least = family.deviance(y[rows, None], m) * (1.0 - TIES)
        parts.append(np.sum(mass * (family.deviance(nodes, m) >= least), axis=-1))
    return np.minimum(np.concatenate(parts), 1.0)


def laws(
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
