"""Many squared residuals as a few, for sums of the weights that they have at any scale."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import in_blocks, row_sums, taken
from rrmstats.core.entropy import Array

# Rows below which nothing is gained.
LEAST_ROWS = 20_000
# Width of a bin relative to its place, and the place, in units of a typical value, below which it
# grows no smaller: sums of exp(-c s) and s exp(-c s) are then exact to about 1e-10.
WIDTH, ORIGIN = 0.01, 0.1
# Values beyond this many typical ones have no weight at any scale in question.
FARTHEST = 1e6
N_BINS = int(np.log1p(FARTHEST / ORIGIN) / WIDTH) + 1


def compressed(values: Array, mass: Array, typical: float) -> tuple[Array, Array]:
    """Return few points and masses with the same sums of smooth functions.

    Each bin becomes the two points that have its first four moments, as in Gaussian quadrature.

    Parameters
    ----------
    values, mass : ndarray or BlockArray, shape (n,)
        Nonnegative values and their masses.
    typical : float
        A typical value, positive.

    Returns
    -------
    points, masses : ndarray, shape (m,)
        The data themselves where there are fewer than LEAST_ROWS.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.compression import compressed
    >>> values = np.random.default_rng(0).chisquare(1, 50_000)
    >>> points, masses = compressed(values, np.ones(50_000), 1.0)
    >>> len(points) < 3_000, bool(np.isclose(masses @ np.exp(-points), np.exp(-values).sum()))
    (True, True)
    """
    if len(values) < LEAST_ROWS:
        if in_blocks(values, mass) is None:
            return values, mass
        values, mass = taken(np.arange(len(values)), values, mass)
        return values, mass
    edges = ORIGIN * typical * np.expm1(WIDTH * np.arange(N_BINS + 1))
    widths = np.diff(edges)
    total, *moments = row_sums(bin_moments, values, mass, edges)
    used = np.flatnonzero(total > 0)
    total = total[used]
    first, second, third = (part[used] / total for part in moments)
    variance = np.maximum(second - first**2, 0.0)
    skewness = third - first * (3 * second - 2 * first**2)
    half = 0.5 * np.divide(skewness, variance, out=np.zeros_like(variance), where=variance > 1e-9)
    reach = np.sqrt(half**2 + variance)
    nodes = np.concatenate([first + half - reach, first + half + reach])
    share = np.divide(half + reach, 2 * reach, out=np.full_like(reach, 0.5), where=reach > 0)
    points = np.tile(edges[used], 2) + np.tile(widths[used], 2) * nodes
    return np.maximum(points, 0.0), np.concatenate([total * share, total * (1 - share)])


def bin_moments(values: Array, mass: Array, edges: Array) -> Array:
    """Return mass and first three moments of the values within each bin, shape (4, m).

    Values beyond the last bin count as its upper edge.
    """
    origin = edges[1] / np.expm1(WIDTH)
    near = np.minimum(values, edges[-1])
    bins = np.minimum((np.log1p(near / origin) / WIDTH).astype(np.intp), N_BINS - 1)
    inside = (near - edges[bins]) / np.diff(edges)[bins]
    sums, part = [], mass
    for _ in range(4):
        sums.append(np.bincount(bins, part, N_BINS))
        part = part * inside
    return np.array(sums)
