"""Random subsets of rows that determine a fit, also where columns are sparse."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import Problem

# Subsets fitted by default: as many as hold this number without a bad row, but at least
# USUAL_STARTS and at most MOST_STARTS.
CLEAN_SUBSETS, USUAL_STARTS, MOST_STARTS = 12, 200, 2000
# Rows that they have in all; and past COSTLY_SIZE rows each, where hardly any subset is clean, as
# many as cost the same, but at least LEAST_STARTS.
ROWS_DRAWN, LEAST_STARTS, COSTLY_SIZE = 20_000, 20, 30


def affordable_starts(size: int, eps_bar: float, most: int = MOST_STARTS) -> int:
    """Return how many subsets of a size to fit by default.

    Parameters
    ----------
    size : int
        Rows of a subset.
    eps_bar : float
        Upper bound on the share of bad rows.
    most : int, optional
        Number of subsets at most.

    Examples
    --------
    >>> from rrmstats.core.subsets import affordable_starts
    >>> [affordable_starts(10, eps_bar) for eps_bar in (0.1, 0.3, 0.4)]
    [200, 424, 1984]
    """
    wanted = CLEAN_SUBSETS / (1 - eps_bar) ** min(size, 100)
    afforded = min(1.0, COSTLY_SIZE / size) * ROWS_DRAWN / size
    return max(LEAST_STARTS, int(min(max(wanted, USUAL_STARTS), most, afforded)))


def draw_keys(n_starts: int, order: np.ndarray, rng: np.random.Generator, budget: Budget) -> Array:
    """Draw a random key for each place in `order`, shape (n_starts, n): small ones come first.

    Rows of larger frequency weight come up more often; those of no weight have infinite keys.
    """
    keys = rng.exponential(size=(n_starts, len(order)))
    if budget.base is not None:
        with np.errstate(divide="ignore"):
            keys /= budget.base[order]
    return keys


def draw_subsets(keys: Array, order: np.ndarray, size: int) -> np.ndarray:
    """Return the rows with the smallest keys, without replacement, shape (n_starts, size).

    Rows are drawn by their place in `order`, so that the draw does not depend on how the
    data were sorted or scaled.
    """
    return order[np.argpartition(keys, size - 1, axis=-1)[:, :size]]


def random_fits(
    problem: Problem, order: np.ndarray, n_starts: int, rng: np.random.Generator, budget: Budget
) -> Array:
    """Return fits to random subsets of rows, shape (n_starts, k).

    Where the first rows drawn do not determine a fit, those that depend on earlier ones are
    passed over for later ones, as in nonsingular subsampling (Koller and Stahel, 2017).
    """
    if not n_starts:
        return np.empty((0, *problem.weighted_fit(budget.uniform(problem.n_obs)).shape))
    size = min(problem.subset_size, problem.n_obs)
    keys = draw_keys(n_starts, order, rng, budget)
    theta = problem.subset_fits(draw_subsets(keys, order, size))
    for i in np.flatnonzero(~np.isfinite(theta).all(axis=-1)):
        drawn = order[np.argsort(keys[i], kind="stable")[: np.isfinite(keys[i]).sum()]]
        theta[i] = problem.determined_fit(drawn)
    return theta
