"""Starts for the global search: fits to random subsets, screened in batches."""

from __future__ import annotations

import numpy as np

from rrmstats.core.descent import Budget, Points, evaluate
from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem

# Screening compares risks that differ by factors: two digits of the divergence suffice.
SCREEN_RTOL = 1e-2
# Starts that get two steps of Algorithm 1, and those that are taken to convergence.
REFINED = 50
FINALISTS = 4
REFINEMENTS = 4
# Risks closer than this, relative to the excess, are one minimum.
SAME_RISK = 1e-6


def draw_subsets(
    order: np.ndarray, size: int, n_starts: int, rng: np.random.Generator, budget: Budget
) -> np.ndarray:
    """Draw subsets of rows without replacement, shape (n_starts, size).

    Rows are drawn by their place in `order`, so that the draw does not depend on how the
    data were sorted or scaled. Rows of larger prior weight come up more often.
    """
    keys = rng.exponential(size=(n_starts, len(order)))
    if budget.prior is not None:
        with np.errstate(divide="ignore"):
            keys /= budget.prior[order]
    return order[np.argpartition(keys, size - 1, axis=-1)[:, :size]]


def canonical_order(problem: Problem, budget: Budget) -> np.ndarray:
    """Return the rows sorted by their loss under uniform weights."""
    theta = problem.weighted_fit(budget.uniform(problem.n_obs))
    return np.argsort(problem.losses(theta), kind="stable")


def screened_starts(
    problem: Problem,
    budget: Budget,
    order: np.ndarray,
    n_starts: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return the best parameters out of many subset fits, and the risk of every start.

    Returns
    -------
    theta : ndarray, shape (at most FINALISTS, k)
    risks : ndarray, shape (n_starts,)
        Risk of each start before any step; infinite where the subset gave no fit.
    """
    size = min(problem.subset_size, problem.n_obs)
    theta = problem.subset_fits(draw_subsets(order, size, n_starts, rng, budget))
    risks = np.full(n_starts, np.inf)
    usable = np.flatnonzero(np.isfinite(theta).all(axis=-1))
    if not len(usable):
        return theta[:0], risks
    points = evaluate(problem, theta[usable], budget, rtol=SCREEN_RTOL)
    risks[usable] = points.risk
    points = points[np.argsort(points.risk, kind="stable")[:REFINED]]
    for _ in range(REFINEMENTS):
        moved = problem.weighted_fit(points.weights, points.theta)
        points = evaluate(problem, moved, budget, points.lambda_, rtol=SCREEN_RTOL)
    return points.theta[distinct(points, FINALISTS)], risks


def distinct(points: Points, most: int) -> list[int]:
    """Return the indices of at most `most` points with different risks, the lowest first."""
    kept: list[int] = []
    for i in np.argsort(points.risk, kind="stable"):
        if not kept or points.risk[i] - points.risk[kept[-1]] > SAME_RISK * points.excess[i]:
            kept.append(int(i))
        if len(kept) == most:
            break
    return kept
