"""SEVER's filter: rounds that remove the rows whose gradients lie farthest out.

SEVER (Diakonikolas, Kamath, Kane, Li, Steinhardt and Stewart, ICML 2019) fits the model, finds
the direction in which the centered gradients of the losses spread most, removes the rows that lie
farthest along it, and repeats. The settings here are those of its authors' experiments: each of
four rounds removes a share ``eps_bar / 2`` of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rrmstats.core.entropy import Array

# Rounds of removal, as in the experiments of SEVER's authors.
ROUNDS = 4
# What rounding may take from a share of rows that is a whole number.
WHOLE = 1e-9


def filter_round(gradients: Array, share: float) -> np.ndarray:
    """Return which rows one round of SEVER keeps.

    Parameters
    ----------
    gradients : ndarray, shape (m, k)
        Gradients of the losses of the rows at their fit.
    share : float
        Share of the rows to remove, rounded down to whole rows.

    Returns
    -------
    ndarray of bool, shape (m,)
        False for the rows with the largest squared projections of the centered gradients on
        their first right singular vector.

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import filter_round
    >>> filter_round(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 9.0], [0.0, 1.0]]), 0.25)
    array([ True,  True, False,  True])
    """
    centered = gradients - gradients.mean(axis=0)
    direction = np.linalg.svd(centered, full_matrices=False)[2][0]
    scores = (centered @ direction) ** 2
    kept = np.ones(len(scores), dtype=bool)
    kept[np.argsort(-scores, kind="stable")[: rows_removed(len(scores), share)]] = False
    return kept


def sever(
    gradients: Callable[[np.ndarray], Array], n: int, eps_bar: float, rounds: int = ROUNDS
) -> np.ndarray:
    """Return which of `n` rows SEVER keeps.

    Parameters
    ----------
    gradients : callable
        Takes the indices of m rows, and returns the gradients of their losses at the fit to
        them, shape (m, k).
    n : int
        Number of rows.
    eps_bar : float
        Upper bound on the fraction of corrupted rows; each round removes half of this share.
    rounds : int, optional
        Number of rounds.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever
    >>> z = np.array([0.1, -0.2, 0.0, 50.0, 0.2, -0.1, 0.3, -0.3])
    >>> sever(lambda rows: (z[rows] - z[rows].mean())[:, None], len(z), 0.25, rounds=1)
    array([ True,  True,  True, False,  True,  True,  True,  True])
    """
    rows = np.arange(n)
    for _ in range(rounds):
        rows = rows[filter_round(gradients(rows), eps_bar / 2)]
    kept = np.zeros(n, dtype=bool)
    kept[rows] = True
    return kept


def rows_left(n: int, eps_bar: float, rounds: int) -> int:
    """Return how many of `n` rows are left after some rounds."""
    for _ in range(rounds):
        n -= rows_removed(n, eps_bar / 2)
    return n


def rows_removed(n: int, share: float) -> int:
    """Return how many of `n` rows one round removes."""
    return int(share * n + WHOLE)
