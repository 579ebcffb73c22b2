"""Spectral starts: nested fits that drop the rows with the most common pull on the fit."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.points import Budget
from rrmstats.core.problem import SmoothProblem

# Parts of eps_bar that are dropped one after the other; each of the fits is a start.
PARTS = 6


def spectral_starts(problem: SmoothProblem, budget: Budget, theta: Array) -> Array:
    """Return nested fits, shape (s, k): SEVER's filter (Diakonikolas et al., 2019) as starts.

    The pulls of the rows on the fit are centered and projected on their leading direction; the
    rows with the largest squared projections are dropped, and the rest is fitted again. Bad
    rows that act together to move a fit show in that direction, in any dimension.

    Parameters
    ----------
    problem : SmoothProblem
    budget : Budget
    theta : ndarray, shape (k,)
        The fit under uniform weights.
    """
    share = budget.uniform(problem.n_obs)
    kept = share.copy()
    fits = [*problem.robust_starts()]
    for _ in range(PARTS):
        pulls = problem.pulls(theta)
        square = leading_projection(pulls, kept / kept.sum()) ** 2
        kept = dropped(kept, square, float(budget.eps_bar) / PARTS)
        if not kept.any():  # so few rows that each part of eps_bar takes one
            break
        weights = kept / kept.sum()
        if problem.gradients_pay:
            theta = problem.improved(weights[None], theta[None])[0]
        else:
            theta = problem.weighted_fit(weights, theta)
        fits.append(theta)
    return np.array(fits)


def leading_projection(rows: Array, weights: Array) -> Array:
    """Return the projections of centered rows (n, r) on their leading direction, shape (n,)."""
    centered = rows - weights @ rows
    weighted = weights[:, None] * centered
    if rows.shape[1] <= 100:  # cheaper than the power method
        direction = np.linalg.eigh(centered.T @ weighted)[1][:, -1]
    else:
        direction = weighted[np.einsum("ni,ni->n", weighted, centered).argmax()]
        for _ in range(20):  # a direction that takes more does not stand out
            direction = (centered @ direction) @ weighted
            direction /= np.linalg.norm(direction) or 1.0
    return np.asarray(centered @ direction)


def dropped(kept: Array, score: Array, share: float) -> Array:
    """Return the weights without the rows of largest score that hold at least `share` of them."""
    order = np.argsort(np.where(kept > 0, -score, np.inf), kind="stable")
    before = np.cumsum(kept[order]) - kept[order]
    left = kept.copy()
    left[order[before < share * (1 - 1e-9)]] = 0.0
    return left
