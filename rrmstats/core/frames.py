"""Frames of reference that bad rows cannot stretch, and rows that span them."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import ROUNDING, SUM_ROUNDING

#: Standard deviation of a normal distribution whose median distance from zero is one. Derived:
#: 1 / z(3/4).
MAD_UNIT = 1.4826022185056018
#: Values count for no further out than this many typical distances. Derived: 5 z(3/4) = 3.4
#: standard deviations of a normal column, whose variance then loses 0.2 % of itself.
CLIP = 5.0


def column_frame(columns: Array) -> Array:
    """Return columns in units of their spread, shape (n, k).

    Those further from zero than their spread are centered. Others are not: a median that bad
    rows have moved a little, in many columns, would count as a direction of its own.
    """
    spread, middle = clipped_spread(columns), np.median(columns, axis=0)
    varies = spread > 0
    center = np.where(varies & (np.abs(middle) > spread), middle, 0.0)
    return (columns - center) / np.where(varies, spread, np.where(middle == 0, 1.0, middle))


def sign_frame(data: Array, demean: bool, counts: Array | None = None) -> tuple[Array, Array]:
    """Return a center (d,) and orthonormal axes (d, d), the leading ones first.

    The axes are those of the spatial signs, the directions from the median: a row counts the
    same however far out it is. `counts`, shape (n,), is how often each row does; by default once.
    """
    center = median_of(data, counts) if demean else np.zeros(data.shape[1])
    centered = data - center
    length = np.linalg.norm(centered, axis=1)
    signs = centered / np.where(length > 0, length, 1.0)[:, None]
    counted = signs if counts is None else counts[:, None] * signs
    return center, np.linalg.eigh(counted.T @ signs)[1][:, ::-1]


def typical_spread(centered: Array, counts: Array | None = None) -> Array:
    """Return the median distance from zero in units of the normal distribution, shape (k,).

    Among the values that are not zero, where most of them are. `counts`, shape (n,), is how often
    each row counts; by default once.
    """
    distance = np.abs(centered)
    spread = median_of(distance, counts)
    if not (spread > 0).all():
        spread = np.where(spread > 0, spread, positive_median(distance, counts))
    return MAD_UNIT * spread


def median_of(values: Array, counts: Array | None) -> Array:
    """Return the medians of columns, shape (...), of values (n, ...) that count so often."""
    if counts is None or np.ptp(counts) == 0:
        return np.asarray(np.median(values, axis=0))
    return median_under(values, counts)


def clipped_spread(exog: Array, counts: Array | None = None) -> Array:
    """Return a standard deviation of each column that bad rows cannot inflate, shape (k,).

    That of the values clipped at CLIP typical distances from the median, typical being the
    median of those that are not zero: a column that is mostly constant keeps its spread.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
    counts : ndarray, shape (n,), optional
        How often each row counts; by default once.
    """
    step = max(1, len(exog) // 50_000)
    exog, some = exog[::step], None if counts is None else counts[::step]
    middle = median_of(exog, some)
    typical = positive_median(np.abs(exog - middle), some)
    clipped = np.clip(exog, middle - CLIP * typical, middle + CLIP * typical)
    mean = np.average(clipped, axis=0, weights=some)
    return np.sqrt(np.average((clipped - mean) ** 2, axis=0, weights=some))


def median_under(values: Array, weights: Array) -> Array:
    """Return the medians of columns, shape (...), of values of shape (n, ...).

    A row of weight 2 counts as two rows; where exactly half of the weight lies below a gap, the
    median is the middle of the gap. Weights have shape (n,), or that of the values.
    """
    if weights.ndim < values.ndim:
        weights = weights.reshape(-1, *[1] * (values.ndim - 1))
    weights = np.broadcast_to(weights, values.shape)
    order = np.argsort(values, axis=0, kind="stable")
    reached, total = np.take_along_axis(weights, order, axis=0).cumsum(axis=0), weights.sum(axis=0)
    found = []
    for half in (0.5 - SUM_ROUNDING, 0.5 + SUM_ROUNDING):
        place = (reached < half * total).sum(axis=0)[None]
        rows = np.take_along_axis(order, np.minimum(place, len(values) - 1), axis=0)
        found.append(np.take_along_axis(values, rows, axis=0)[0])
    return np.asarray(0.5 * (found[0] + found[1]))


def positive_median(values: Array, counts: Array | None = None) -> Array:
    """Return the median of the entries of each column that are above zero, shape (k,)."""
    counts = np.ones(len(values)) if counts is None else counts
    return median_under(values, counts.reshape(-1, *[1] * (values.ndim - 1)) * (values > 0))


def independent_rows(rows: Array) -> np.ndarray:
    """Return the places of k rows, of shape (n, k), none of which depends on earlier ones.

    Fewer where the rows have no full rank. Columns are eliminated one at a time, each by the first
    row that has a part in those that are left.
    """
    unit = np.abs(rows).max(axis=0)
    left = rows / np.where(unit > 0, unit, 1.0)
    least = ROUNDING * np.linalg.norm(left, axis=1)
    chosen: list[int] = []
    while left.shape[1]:
        new = np.abs(left).max(axis=1) > least
        if not new.any():
            break
        row = left[new.argmax()]
        pivot = int(np.abs(row).argmax())
        rest = np.arange(len(row)) != pivot
        left = left[:, rest] - left[:, pivot, None] * (row[rest] / row[pivot])
        chosen.append(int(new.argmax()))
    return np.array(chosen, dtype=int)


def different_rows(rows: Array, enough: int) -> int:
    """Return how many of the rows (n, d) are different, or a number that is at least `enough`.

    Most data have enough among the first rows already.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.frames import different_rows
    >>> different_rows(np.repeat(np.eye(3), 4, axis=0), enough=5)
    3
    """
    found = len(np.unique(rows[: 2 * enough], axis=0))
    return found if found >= enough else len(np.unique(rows, axis=0))
