"""Refits to resampled data, many at once: a sample drawn with replacement counts its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rrmstats.core.descent import Descent
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.points import Budget, Points, evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution

# Accuracy and number of steps of a refit, which starts near its end.
REFIT_TOL, REFIT_MAXITER = 1e-6, 100


def draw_counts(
    n: int,
    samples: int,
    rng: np.random.Generator,
    freq_weights: Array | None = None,
    strata: np.ndarray | None = None,
) -> Array:
    """Draw samples with replacement.

    Parameters
    ----------
    n : int
        Number of rows.
    samples : int
        Number of samples.
    rng : numpy.random.Generator
    freq_weights : ndarray, shape (n,), optional
        How often each row counts in the data; each sample is as large as the data.
    strata : ndarray of int, shape (n,), optional
        Rows of one number are resampled among themselves.

    Returns
    -------
    ndarray, shape (samples, n)
        How often each row was drawn.
    """
    mass = np.ones(n) if freq_weights is None else freq_weights
    groups = np.zeros(n, dtype=int) if strata is None else strata
    counts = np.zeros((samples, n))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        size = mass[rows].sum()
        counts[:, rows] = rng.multinomial(round(size), mass[rows] / size, size=samples)
    return counts


def refits(problem: Problem, eps_bar: float, counts: Array, theta: Array) -> Points:
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

    Returns
    -------
    Points
        One point per sample.
    """
    bases = counts / counts.sum(axis=-1, keepdims=True)
    budget = Budget(eps_bar, bases, float(counts[0].sum()))
    if eps_bar == 0:
        start = problem.weighted_fit(bases, np.broadcast_to(theta, (len(counts), len(theta))))
    else:
        start = np.tile(theta, (len(counts), 1))
    points = evaluate(problem, start, budget)
    descent = Descent(problem, points, budget, rivals=False)
    return descent.run(REFIT_TOL, REFIT_MAXITER, accelerate=True).points


def refitted_params(estimate: Estimate, counts: Array) -> Array:
    """Return the parameters of an estimate, fitted to resampled data by the same steps.

    Parameters
    ----------
    estimate : Estimate
        The fit to the data, from which the refits start.
    counts : ndarray, shape (b, n)
        How often each row counts in each sample.

    Returns
    -------
    ndarray, shape (b, k)
    """
    problem, first = estimate.problem, estimate.first or estimate
    points = refits(problem, estimate.setting.eps_bar, counts, first.solution.theta)
    params = []
    for i, count in enumerate(counts):
        setting = replace(estimate.setting, freq_weights=count, n_starts=0)
        found = problem.consistent(_solution(first.solution, points, i, estimate.wnobs), setting)
        if estimate.first is not None:
            found = problem.second_step(found)
        params.append(found.params)
    return np.array(params)


def _solution(first: Solution, points: Points, i: int, wnobs: float) -> Solution:
    """Return one point as a solution that shares the history of the fit to the data."""
    return replace(
        first,
        theta=points.theta[i],
        losses=points.losses[i],
        weights=points.weights[i],
        lambda_=float(points.lambda_[i]),
        divergence=float(points.divergence[i]),
        n_eff=wnobs * float(np.exp(-points.divergence[i])),
        risk=float(points.risk[i]),
    )
