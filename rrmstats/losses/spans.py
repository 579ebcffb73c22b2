"""How many dimensions rows span."""

from __future__ import annotations

import numpy as np

from rrmstats.core.block_array import aligned, in_blocks, taken
from rrmstats.core.design import triangle
from rrmstats.core.entropy import Array
from rrmstats.losses.matrices import lengths, unit_spread

# Rounding of data far from the origin hides dimensions; what is wider than this part of the data
# is none.
MOST_ROUNDING = 1e-8


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
    >>> from rrmstats.losses.spans import spanned
    >>> line = np.outer(np.arange(9.0), [1, 2, 3]) + 5
    >>> spanned(line, np.ones(9), True, 2), spanned(line, np.ones(9), False, 2)
    (1, 2)
    """
    center, unit = unit_spread(data)
    if not demean:
        center, unit = np.zeros_like(center), np.maximum(unit, np.abs(center))
    some = np.unique(np.linspace(0, len(data) - 1, 2 * (enough + 2)).astype(int))
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
    return int((singular > min(rounding, MOST_ROUNDING) * singular[0]).sum()) - demean
