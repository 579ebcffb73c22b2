"""Starts for the global search: fits to random subsets, screened in batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rrmstats.core.descent import Budget, Points, evaluate
from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem

# Screening compares risks that differ by factors: two digits of the divergence suffice.
SCREEN_RTOL = 1e-2
# Starts that get two steps of Algorithm 1, and those that are taken to convergence.
REFINED = 30
FINALISTS = 3
REFINEMENTS = 4
# Risks closer than this, relative to the excess, are one minimum.
SAME_RISK = 1e-6


def draw_subsets(
    order: np.ndarray, size: int, n_starts: int, rng: np.random.Generator, budget: Budget
) -> np.ndarray:
    """Draw subsets of rows without replacement, shape (n_starts, size).

    Rows are drawn by their place in `order`, so that the draw does not depend on how the
    data were sorted or scaled. Rows of larger frequency weight come up more often.
    """
    keys = rng.exponential(size=(n_starts, len(order)))
    if budget.base is not None:
        with np.errstate(divide="ignore"):
            keys /= budget.base[order]
    return order[np.argpartition(keys, size - 1, axis=-1)[:, :size]]


def canonical_order(problem: Problem, budget: Budget) -> np.ndarray:
    """Return the rows sorted by their loss under uniform weights."""
    theta = problem.weighted_fit(budget.uniform(problem.n_obs))
    return np.argsort(problem.losses(theta), kind="stable")


def screened_starts(
    problem: Problem,
    budget: Budget,
    order: np.ndarray,
    first: Array,
    n_starts: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return `first` and the best of many subset fits, a few steps on, and every start's risk.

    Returns
    -------
    theta : ndarray, shape (at most 1 + FINALISTS, k)
        The descendant of `first` comes first.
    risks : ndarray, shape (1 + n_starts,)
        Risk of each start before any step; infinite where the subset gave no fit.
    """
    budget = loosened(budget)
    size = min(problem.subset_size, problem.n_obs)
    theta = problem.subset_fits(draw_subsets(order, size, n_starts, rng, budget))
    theta = np.vstack([first, theta])
    usable = np.flatnonzero(np.isfinite(theta).all(axis=-1))
    risks = np.full(len(theta), np.inf)
    points = evaluate(problem, theta[usable], budget, rtol=SCREEN_RTOL)
    risks[usable] = points.risk
    best = np.argsort(points.risk[1:], kind="stable")[:REFINED] + 1
    points = points[np.r_[0, best]]
    for _ in range(REFINEMENTS):
        moved = problem.improved(points.weights, points.theta)
        points = evaluate(problem, moved, budget, points.lambda_, rtol=SCREEN_RTOL)
    finalists = [i for i in distinct(points, FINALISTS + 1) if i]
    return points.theta[[0, *finalists[:FINALISTS]]], risks


def loosened(budget: Budget) -> Budget:
    """Return a budget that the error of the divergence in screening cannot take below this one.

    Where it just suffices to leave out rows that are very far off, a budget a little smaller
    makes them count, and the best starts look the worst.
    """
    eps_bar = -float(np.expm1((1 + 1.25 * SCREEN_RTOL) * np.log1p(-budget.eps_bar)))
    return replace(budget, eps_bar=eps_bar)


def distinct(points: Points, most: int) -> list[int]:
    """Return the indices of at most `most` points with different risks, the lowest first."""
    kept: list[int] = []
    for i in np.argsort(points.risk, kind="stable"):
        if not kept or points.risk[i] - points.risk[kept[-1]] > SAME_RISK * points.excess[i]:
            kept.append(int(i))
        if len(kept) == most:
            break
    return kept
