"""Refits to resampled data, many at once: a sample drawn with replacement is a prior."""

from __future__ import annotations

import numpy as np

from rrmstats.core.descent import Budget, Descent, Points, evaluate
from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem


def draw_priors(
    n: int,
    count: int,
    rng: np.random.Generator,
    prior: Array | None = None,
    strata: np.ndarray | None = None,
) -> Array:
    """Draw samples with replacement, as prior weights of the rows.

    Parameters
    ----------
    n : int
        Number of rows.
    count : int
        Number of samples.
    rng : numpy.random.Generator
    prior : ndarray, shape (n,), optional
        How often each row counts in the data; each sample is as large as the data.
    strata : ndarray of int, shape (n,), optional
        Rows of one number are resampled among themselves.

    Returns
    -------
    ndarray, shape (count, n)
        How often each row was drawn.
    """
    mass = np.ones(n) if prior is None else prior
    groups = np.zeros(n, dtype=int) if strata is None else strata
    counts = np.zeros((count, n))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        share = mass[rows] / mass[rows].sum()
        counts[:, rows] = rng.multinomial(round(mass[rows].sum()), share, size=count)
    return counts


def refits(
    problem: Problem,
    eps_bar: float,
    counts: Array,
    theta: Array,
    *,
    tol: float = 1e-6,
    maxiter: int = 100,
) -> Points:
    """Fit a problem to many samples at once, each descending from the same parameters.

    Parameters
    ----------
    problem : Problem
    eps_bar : float
        Upper bound on the fraction of corrupted observations.
    counts : ndarray, shape (b, n)
        How often each row counts in each sample.
    theta : ndarray, shape (k,)
        Where the descents start: the fit to the data.
    tol, maxiter : optional
        As in `minimise`.

    Returns
    -------
    Points
        A point a sample.
    """
    priors = counts / counts.sum(axis=-1, keepdims=True)
    budget = Budget(eps_bar, priors, float(counts[0].sum()))
    if eps_bar == 0:
        start = problem.weighted_fit(priors, np.broadcast_to(theta, (len(counts), len(theta))))
    else:
        start = np.tile(theta, (len(counts), 1))
    points = evaluate(problem, start, budget)
    return Descent(problem, points, budget, rivals=False).run(tol, maxiter, True).points
