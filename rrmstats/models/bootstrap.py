"""The bootstrap: refits to samples drawn with replacement, many at once, from the fit on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.descent import Descent
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.grouped import GroupedEstimate
from rrmstats.core.points import Budget, Points, evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution
from rrmstats.core.tolerances import BLOCK_ENTRIES, MAX_STEPS
from rrmstats.optional import require, with_progress
from rrmstats.results.inference import Replicates, skewness


class Bootstrap:
    """Options of the bootstrap: what ``fit(cov_type="bootstrap", cov_kwds=...)`` takes.

    Parameters
    ----------
    n_boot : int, optional
        Number of samples.
    strata : array_like, shape (n,), optional
        Labels; rows of one label are resampled among themselves. By default pairs are drawn
        from all rows.
    interval : {"bca", "percentile"}, optional
        Kind of the confidence intervals.
    rng : int or numpy.random.Generator, optional
        Source of the samples; by default a fixed one.
    n_jobs : int, optional
        Processes to run in, through joblib; -1 for all cores.
    progress : bool, optional
        Show a progress bar, through tqdm, where the bootstrap takes more than two seconds; by
        default on terminals and in notebooks where tqdm is installed.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.1)
    >>> res = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 50})
    >>> res.bootstrap.replicates.shape
    (50, 2)
    """

    def __init__(
        self,
        n_boot: int = 999,
        *,
        strata: ArrayLike | None = None,
        interval: str = "bca",
        rng: int | np.random.Generator | None = None,
        n_jobs: int = 1,
        progress: bool | None = None,
    ) -> None:
        if not (isinstance(n_boot, int | np.integer) and n_boot >= 2):
            raise ValueError(f"n_boot must be a whole number, 2 or more, got {n_boot!r}")
        if interval not in ("bca", "percentile"):
            raise ValueError(f"interval must be 'bca' or 'percentile', got {interval!r}")
        self.n_boot, self.strata, self.interval = int(n_boot), strata, interval
        self.rng, self.n_jobs, self.progress = rng, n_jobs, progress

    def run(self, estimate: Estimate) -> Replicates:
        """Return the parameters of an estimate, fitted to samples by the same steps."""
        n = estimate.problem.n_obs
        strata, grouped = None, isinstance(estimate, GroupedEstimate)
        if grouped and self.strata is not None:
            raise ValueError("strata is not available with groups=, which are drawn as a whole")
        if self.strata is not None:
            strata = np.unique(np.asarray(self.strata), return_inverse=True)[1]
            if strata.shape != (n,):
                raise ValueError(f"strata must have one label for each of the {n} rows")
        rng = np.random.default_rng(0 if self.rng is None else self.rng)
        sizes = estimate.setting.freq_weights
        counts = draw_counts(n, self.n_boot, rng, None if grouped else sizes, strata)
        if grouped:
            counts *= np.asarray(sizes)
        size = max(1, BLOCK_ENTRIES // n)
        if estimate.resamples:
            size = max(1, size // 20)  # with about as many explanations of each sample
        elif estimate.first is not None:
            size = min(size, 20)  # second steps are taken one after the other
        batches = [counts[i : i + size] for i in range(0, self.n_boot, size)]
        shown = with_progress(batches, self.progress, "bootstrap", "batches")
        if self.n_jobs == 1:
            refitted = [refitted_params(estimate, batch) for batch in shown]
        else:
            joblib = require("joblib", "parallel")
            job = joblib.delayed(refitted_params)
            refitted = joblib.Parallel(n_jobs=self.n_jobs)(job(estimate, b) for b in shown)
        return Replicates(
            np.vstack(refitted),
            skewness(estimate.influence()) / 6,
            self.interval,
            "groups" if grouped else "pairs" if strata is None else "stratified",
        )


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
    counted = np.ones(n) if freq_weights is None else freq_weights
    groups = np.zeros(n, dtype=int) if strata is None else strata
    counts = np.zeros((samples, n))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        size = counted[rows].sum()
        counts[:, rows] = rng.multinomial(round(size), counted[rows] / size, size=samples)
    return counts


def refits(problem: Problem, eps_bar: float, counts: Array, theta: Array) -> Points:
    """Fit a problem to many samples at once, each descending from the same parameters.

    Parameters
    ----------
    problem : Problem
    eps_bar : float
        Upper bound on the share of bad rows.
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
    start = np.tile(theta, (len(counts), 1))
    if eps_bar == 0:
        start = problem.weighted_fit(bases, start)
    points = evaluate(problem, start, budget)
    descent = Descent(problem, points, budget, np.arange(len(points.risk)))
    return descent.run(1e-6, MAX_STEPS, accelerate=True).points


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
    if not estimate.resamples:
        return separate_params(estimate, counts)
    known = estimate.resampled(counts)
    lost = np.isnan(known).any(axis=1)
    if lost.any():
        known[lost] = separate_params(estimate, counts[lost])
    return known


def separate_params(estimate: Estimate, counts: Array) -> Array:
    """Return the same where each sample has steps of its own, shape (b, k)."""
    problem, first = estimate.problem, estimate.first or estimate
    points = refits(problem, estimate.setting.eps_bar, counts, first.solution.theta)
    params = []
    for i, count in enumerate(counts):
        setting = replace(estimate.setting, freq_weights=count, n_starts=0)
        found = problem.consistent(_solution(first.solution, points, i, estimate.wnobs), setting)
        if estimate.first is not None:
            found = problem.second_step(found)
        params.append(chosen_params(found, estimate.explanation))
    return np.array(params)


def chosen_params(found: Estimate, name: str | None) -> Array:
    """Return the parameters of a resample, under the explanation of the data or a better one.

    What chance added to the likelihood of the data is in a resample twice: once from the data,
    once from the draws. A better explanation must therefore be so by half of its evidence.

    Parameters
    ----------
    found : Estimate
        The fit to the resample.
    name : str or None
        The explanation of the data.
    """
    told = found.explained
    if told is None:
        return found.params
    for own in told.explanations:
        known = found.params_of(own) if own.name == name != told.chosen.name else None
        gain = told.chosen.log_likelihood - own.log_likelihood
        if known is not None and gain < told.chosen.penalty - own.penalty:
            return known
    return found.params


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
