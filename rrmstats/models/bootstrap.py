"""The bootstrap: refits to samples drawn with replacement, starting from the fit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.group_estimate import GroupedEstimate
from rrmstats.core.resample import draw_counts, refitted_params
from rrmstats.optional import require
from rrmstats.results.inference import Replicates, skewness

# Entries of the arrays that a batch of refits works on.
BATCH_SIZE = 200_000


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
        Show a progress bar, through tqdm.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
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
        progress: bool = False,
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
        if grouped:
            counts = draw_counts(n, self.n_boot, rng) * np.asarray(sizes)
        else:
            counts = draw_counts(n, self.n_boot, rng, sizes, strata)
        size = max(1, BATCH_SIZE // n)
        batches = [counts[i : i + size] for i in range(0, self.n_boot, size)]
        return Replicates(
            np.vstack(self._refits(estimate, batches)),
            skewness(estimate.influence()) / 6,
            self.interval,
            "groups" if grouped else "pairs" if strata is None else "stratified",
        )

    def _refits(self, estimate: Estimate, batches: list[Array]) -> list[Array]:
        shown: Iterable[Array] = batches
        if self.progress:
            shown = require("tqdm", "parallel").tqdm(batches, desc="bootstrap", unit="batch")
        if self.n_jobs == 1:
            return [refitted_params(estimate, batch) for batch in shown]
        joblib = require("joblib", "parallel")
        job = joblib.delayed(refitted_params)
        return list(joblib.Parallel(n_jobs=self.n_jobs)(job(estimate, b) for b in shown))
