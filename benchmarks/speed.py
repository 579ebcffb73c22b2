"""Time fits against what others fit to the same data, in one run.

Each row of the table compares two fits that are timed in turn, so that both see the same state
of the machine. The time of a sample is the least of its repeats; a row adds up its samples.
"""

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm

from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.experiments.samples import (
    Regression,
    heavy_tailed_noise,
    one_sided_outliers,
    random_flips,
    shifted_cluster,
)

Fit = Callable[[], Any]


class Row(NamedTuple):
    """A comparison: pairs of fits, one a sample, and the ratio that is aimed at."""

    name: str
    reference: str
    pairs: Callable[[], Iterator[tuple[Fit, Fit]]]
    repeats: int
    at_most: float


def large_regression(n: int = 1_000_000, k: int = 10) -> Regression:
    return one_sided_outliers(np.random.default_rng(0), n, np.ones(k), share=0.1, shift=10.0)


def large_pairs(**kwargs: Any) -> Iterator[tuple[Fit, Fit]]:
    endog, exog = large_regression()
    yield lambda: RRMOLS(endog, exog, 0.2).fit(**kwargs), lambda: sm.OLS(endog, exog).fit()


def small_pairs() -> Iterator[tuple[Fit, Fit]]:
    for seed in range(30):
        endog, exog = heavy_tailed_noise(np.random.default_rng(seed))
        yield (
            lambda endog=endog, exog=exog: RRMOLS(endog, exog, 0.4).fit(),
            lambda endog=endog, exog=exog: sm.RLM(endog, exog).fit(),
        )


def cloud(n: int, d: int = 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    spread, shift = np.arange(d, 0, -1.0), 50 * rng.standard_normal(d)
    return shifted_cluster(rng, n, np.diag(spread**2), share=0.1, shift=shift)


def cov_pairs(n: int) -> Iterator[tuple[Fit, Fit]]:
    from sklearn.covariance import MinCovDet

    data = cloud(n)
    yield lambda: RRMCov(data, 0.2).fit(), lambda: MinCovDet(random_state=0).fit(data)


def pca_pairs() -> Iterator[tuple[Fit, Fit]]:
    data = cloud(100_000)
    yield lambda: RRMPCA(data, 2, 0.2).fit(), lambda: np.linalg.eigh(np.cov(data.T, bias=True))


def logit_pairs() -> Iterator[tuple[Fit, Fit]]:
    endog, exog = random_flips(np.random.default_rng(0), 100_000, np.ones(10), share=0.05)
    yield lambda: RRMLogit(endog, exog, 0.1).fit(), lambda: sm.Logit(endog, exog).fit(disp=0)


def sandwich_pairs() -> Iterator[tuple[Fit, Fit]]:
    endog, exog = large_regression()
    model = RRMOLS(endog, exog, 0.2)
    res = model.fit()

    def errors() -> Any:
        res._results.set_covariance("sandwich", {}, None)  # forgets what was found before
        return res._results.cov_params_default

    yield errors, model.fit


def bootstrap_pairs() -> Iterator[tuple[Fit, Fit]]:
    endog, exog = large_regression(1000, 5)
    model = RRMOLS(endog, exog, 0.2)
    yield lambda: model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 999}), model.fit


ROWS = [
    Row("RRMOLS n=1e6 k=10, n_starts=0", "OLS", lambda: large_pairs(n_starts=0), 5, 1.5),
    Row("RRMOLS n=1e6 k=10", "OLS", large_pairs, 5, 3.0),
    Row("RRMOLS n=40 k=10", "RLM", small_pairs, 10, 1.0),
    Row("RRMCov n=1e5 d=10", "MinCovDet", lambda: cov_pairs(100_000), 3, 1.0),
    Row("RRMCov n=200 d=10", "MinCovDet", lambda: cov_pairs(200), 5, 1.0),
    Row("RRMPCA n=1e5 d=10", "eigh(cov)", pca_pairs, 5, 150.0),
    Row("RRMLogit n=1e5 k=10", "Logit", logit_pairs, 5, 4.0),
    Row("sandwich of RRMOLS n=1e6 k=10", "its fit", sandwich_pairs, 3, 0.5),
    Row("bootstrap of RRMOLS n=1000 k=5, 999", "its fit", bootstrap_pairs, 3, 100.0),
]


def seconds(fit: Fit) -> float:
    start = time.perf_counter()
    fit()
    return time.perf_counter() - start


def measure(row: Row) -> tuple[float, float]:
    """Return the time of the fits and of their references, in seconds."""
    totals = np.zeros(2)
    for pair in row.pairs():
        totals += np.min([[seconds(fit) for fit in pair] for _ in range(row.repeats)], axis=0)
    return float(totals[0]), float(totals[1])


def peak_memory() -> tuple[float, float]:
    """Return what the large fit allocates at its peak, and the size of its design, in MB."""
    endog, exog = large_regression()
    tracemalloc.start()
    RRMOLS(endog, exog, 0.2).fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6, exog.nbytes / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="run the rows whose name contains this")
    only = parser.parse_args().only
    print(f"{'fit':36} {'against':9} {'ms':>9} {'ms':>9} {'ratio':>6} {'at most':>8}")
    failed = 0
    for row in ROWS:
        if only not in row.name:
            continue
        ours, theirs = measure(row)
        ratio = ours / theirs
        failed += ratio > row.at_most
        print(
            f"{row.name:36} {row.reference:9} {1e3 * ours:9.1f} {1e3 * theirs:9.1f} "
            f"{ratio:6.2f} {row.at_most:8.1f}{'  MISSED' if ratio > row.at_most else ''}"
        )
    if only in "memory":
        peak, design = peak_memory()
        print(f"\nmemory at n=1e6 k=10: {peak:.0f} MB at its peak, {peak / design:.1f} designs")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
