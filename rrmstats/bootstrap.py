"""The bootstrap: refits to samples drawn with replacement, warm-started from the fit."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import norm

from rrmstats.core.entropy import Array
from rrmstats.core.resample import draw_priors

# Entries of the arrays that a batch of refits works on.
BATCH_SIZE = 200_000


class Bootstrap:
    """Standard errors and intervals from resampled data.

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
        Show a progress bar, through tqdm.

    Attributes
    ----------
    replicates : ndarray, shape (n_boot, k)
        Parameters fitted to each sample.
    acceleration : ndarray, shape (k,)
        That of the BCa intervals.
    """

    replicates: Array
    acceleration: Array

    def __init__(
        self,
        n_boot: int = 999,
        *,
        strata: Any = None,
        interval: str = "bca",
        rng: int | np.random.Generator | None = None,
        n_jobs: int = 1,
        progress: bool = False,
    ) -> None:
        if not (isinstance(n_boot, int | np.integer) and n_boot >= 2):
            raise ValueError(f"n_boot must be a whole number, 2 or more, got {n_boot!r}")
        if interval not in ("bca", "percentile"):
            raise ValueError(f"interval must be 'bca' or 'percentile', got {interval!r}")
        self.n_boot, self.strata, self.interval = int(n_boot), strata, interval
        self.rng, self.n_jobs, self.progress = rng, n_jobs, progress

    def run(self, results: Any) -> None:
        """Refit `results` to samples and keep the parameters."""
        n = len(results.weights)
        strata = None
        if self.strata is not None:
            strata = np.unique(np.asarray(self.strata), return_inverse=True)[1]
            if strata.shape != (n,):
                raise ValueError(f"strata must have one label for each of the {n} rows")
        rng = np.random.default_rng(0 if self.rng is None else self.rng)
        counts = draw_priors(n, self.n_boot, rng, results.model._prior, strata)
        size = max(1, BATCH_SIZE // n)
        batches = [counts[i : i + size] for i in range(0, self.n_boot, size)]
        self.replicates = np.vstack(self._map(results._refits, batches))
        self.acceleration = skewness(results._influence()) / 6

    def _map(self, refits: Any, batches: list[Array]) -> list[Array]:
        shown: Iterable[Array] = batches
        if self.progress:
            shown = optional("tqdm", "parallel").tqdm(batches, desc="bootstrap", unit="batch")
        if self.n_jobs == 1:
            return [refits(batch) for batch in shown]
        joblib = optional("joblib", "parallel")
        return joblib.Parallel(n_jobs=self.n_jobs)(joblib.delayed(refits)(b) for b in shown)

    def intervals(self, params: Array, alpha: float) -> Array:
        """Return percentile or BCa intervals, shape (k, 2).

        The acceleration of BCa is the skewness of the influence functions over six.
        """
        levels = np.tile([alpha / 2, 1 - alpha / 2], (len(params), 1))
        if self.interval == "bca":
            below = (self.replicates < params).mean(axis=0)
            bias = norm.ppf(np.clip(below, 0.5 / self.n_boot, 1 - 0.5 / self.n_boot))
            z = bias[:, None] + norm.ppf(levels)
            levels = norm.cdf(bias[:, None] + z / (1 - self.acceleration[:, None] * z))
        return np.array(
            [np.quantile(draws, q) for draws, q in zip(self.replicates.T, levels, strict=True)]
        )

    def describe(self) -> str:
        """Return what was done in a few words."""
        kind = "pairs" if self.strata is None else "stratified"
        name = {"bca": "BCa", "percentile": "percentile"}[self.interval]
        return f"{kind} bootstrap, {self.n_boot} samples, {name} intervals"


def skewness(influence: Array) -> Array:
    """Return the sum of cubes over that of squares to the power 1.5, shape (k,)."""
    square = (influence**2).sum(axis=0)
    cube = (influence**3).sum(axis=0)
    return np.divide(cube, square**1.5, out=np.zeros_like(cube), where=square > 0)


def optional(module: str, extra: str) -> Any:
    """Import a module of an extra, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{module} is not installed; install it with: pip install 'rrmstats[{extra}]'"
        ) from None
