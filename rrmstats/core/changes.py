"""What changes along a path of fits: rows that lose their weight, and runs of equal states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rrmstats.core.entropy import Array


def leaving_rows(before: Array, after: Array) -> np.ndarray:
    """Return the rows whose relative weight falls from above a half to below a tenth."""
    return np.flatnonzero((before > 0.5) & (after < 0.1))


def left_for_good(relative: Array, threshold: float) -> np.ndarray:
    """Return the first place from which on each row's weight stays below a threshold.

    Parameters
    ----------
    relative : ndarray, shape (n, m)
        Relative weights of the rows along the path.
    threshold : float

    Returns
    -------
    ndarray of int, shape (n,)
        Places in the path; m where the weight is not below the threshold at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.changes import left_for_good
    >>> left_for_good(np.array([[1.0, 0.2, 1.1, 0.3, 0.1], [1.0, 1.0, 0.1, 0.1, 0.9]]), 0.5)
    array([3, 5])
    """
    above = ~(relative < threshold)
    length = relative.shape[1]
    last = length - 1 - np.argmax(above[:, ::-1], axis=1)
    return np.where(above.any(axis=1), last + 1, 0)


def steady_runs(states: np.ndarray) -> list[tuple[int, int]]:
    """Return where runs of equal states begin and end; a state that comes back at once is none.

    Parameters
    ----------
    states : ndarray, shape (m,)

    Returns
    -------
    list of tuple of int
        First place of each run, and the first one past it. A run of a single state between two
        equal runs belongs to them; the first and the last state may be runs of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.changes import steady_runs
    >>> steady_runs(np.array([1, 0, 0, 1, 0, 0, 1, 1]))
    [(0, 1), (1, 6), (6, 8)]
    """
    smooth = states.copy()
    for i in range(1, len(states) - 1):
        if smooth[i - 1] != smooth[i] and states[i + 1] == smooth[i - 1] and i > 1:
            smooth[i] = smooth[i - 1]
    borders = [0, *(np.flatnonzero(smooth[1:] != smooth[:-1]) + 1).tolist(), len(smooth)]
    return list(pairwise(borders))
