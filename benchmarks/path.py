"""Measure the path of fits along eps_bar: its risks against cold fits, and its price.

    python benchmarks/path.py --samples 20 --seed 121000

Risks: the largest excess over a cold global search at each of 25 bounds, relative to it, on the
data that ship and on samples of the paper's kinds. Price: time of the whole path of 26 bounds in
units of one default fit, at 100,000 rows and 10 columns.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.core.path import solution_path
from rrmstats.core.search import global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.steps import largest_bound
from rrmstats.models.base import RRMModel, default_grid

# Excess of a risk, relative to that of a cold fit, that counts as a miss, or as lower.
SAME = 1e-6
N, K, REPEATS = 100_000, 10, 3
SOURCES = (rrmstats.datasets.hbk, rrmstats.datasets.stars_cyg, rrmstats.datasets.phones)


def shipped() -> Iterator[tuple[str, RRMModel]]:
    """Yield models of the data that ship."""
    hbk, stars, phones = (source.load_pandas().data for source in SOURCES)
    yield "hbk, regression", rrmstats.ols("y ~ x1 + x2 + x3", hbk, 0.2)
    yield "hbk, components", RRMPCA(hbk, 2, eps_bar=0.2)
    yield "hbk, covariance", RRMCov(hbk, eps_bar=0.2)
    yield "stars_cyg, regression", rrmstats.ols("log_light ~ log_te", stars, 0.2)
    yield "stars_cyg, components", RRMPCA(stars[["log_te", "log_light"]], 1, eps_bar=0.2)
    yield "stars_cyg, covariance", RRMCov(stars[["log_te", "log_light"]], eps_bar=0.2)
    yield "phones, regression", rrmstats.ols("calls ~ year", phones, 0.2)
    source = rrmstats.datasets.breast_cancer.load_pandas()
    yield "breast_cancer, labels", RRMLogit(source.endog, sm.add_constant(source.exog), 0.1)
    yield "breast_cancer, covariance", RRMCov(source.exog, eps_bar=0.2)


def tails(rng: np.random.Generator) -> RRMModel:
    """Return a regression with 20 % of t noise, n = 40 and k = 10."""
    exog = rng.uniform(-5, 5, (40, 10))
    exog[:, 0] = 1
    bad = rng.random(40) < 0.2
    noise = np.where(bad, rng.standard_t(1.5, 40), 0.25 * rng.standard_normal(40))
    return RRMOLS(exog.sum(axis=1) + noise, exog, 0.2)


def leverage(rng: np.random.Generator) -> RRMModel:
    """Return a regression with 20 % of leverage points, n = 100 and k = 4."""
    exog = np.c_[np.ones(100), rng.standard_normal((100, 3))]
    endog = exog.sum(axis=1) + 0.5 * rng.standard_normal(100)
    exog[:20, 1:] = 10 + rng.standard_normal((20, 3))
    endog[:20] = -20 + rng.standard_normal(20)
    return RRMOLS(endog, exog, 0.2)


def labels(rng: np.random.Generator) -> RRMModel:
    """Return two classes of which 5 % have the wrong label, n = 100."""
    shape = 0.25 * np.array([[1, -0.99], [-0.99, 1]])
    good = rng.multivariate_normal([0.5, 0.5], shape, 95)
    endog = np.r_[good.sum(axis=1) >= 1, np.zeros(5)].astype(float)
    points = np.r_[good, 0.1 * rng.standard_normal((5, 2)) + [0.5, 1.25]]
    return RRMLogit(endog, np.c_[np.ones(100), points], 0.1)


def heavy(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return points of a bivariate t distribution."""
    return rng.standard_normal((n, 2)) / np.sqrt(rng.chisquare(1.5, n) / 1.5)[:, None]


def plane(rng: np.random.Generator) -> RRMModel:
    """Return points about a line, 20 % of them of a t distribution, n = 40."""
    along = rng.standard_normal(40)
    points = np.c_[along, 2 * along + 0.25 * rng.standard_normal(40)]
    data = np.where((rng.random(40) < 0.2)[:, None], heavy(rng, 40), points)
    return RRMPCA(data, 1, eps_bar=0.2, demean=False)


def scatter(rng: np.random.Generator) -> RRMModel:
    """Return correlated points, 20 % of them of a t distribution, n = 50."""
    root = np.linalg.cholesky([[1, 0.8], [0.8, 1]])
    points = np.where(
        (rng.random(50) < 0.2)[:, None], heavy(rng, 50), rng.standard_normal((50, 2))
    )
    return RRMCov(points @ root.T, eps_bar=0.2)


SAMPLES: dict[str, Callable[[np.random.Generator], RRMModel]] = {
    "regression, t noise": tails,
    "regression, leverage": leverage,
    "labels": labels,
    "components": plane,
    "covariance": scatter,
}


def excesses(model: RRMModel) -> np.ndarray:
    """Return the risks of a path less those of cold searches, relative to these."""
    problem, setting = (
        model.with_eps_bar(0.5).problem(),
        Setting(eps_bar=0.0, freq_weights=model.freq_weights),
    )
    grid = default_grid(largest_bound(problem, problem.n_obs))[1:]
    cold = [global_minimum(problem, replace(setting, eps_bar=e)).risk for e in grid]
    found = [solution.risk for solution in solution_path(problem, setting, grid).solutions]
    pairs = zip(found, cold, strict=True)
    return np.array([0.0 if a == b else (a - b) / abs(b) for a, b in pairs])


def report(name: str, found: np.ndarray) -> None:
    """Print the largest excess, and how many are higher and lower."""
    print(
        f"{name:26} largest {found.max():9.1e}  higher {np.sum(found > SAME):3d}  lower "
        f"{np.sum(found < -SAME):3d}  of {len(found)}",
        flush=True,
    )


def regression(rng: np.random.Generator, kind: str) -> RRMModel:
    """Return a large regression: clean, or 10 % of the rows far off, or at leverage points."""
    exog = np.c_[np.ones(N), rng.standard_normal((N, K - 1))]
    endog = exog.sum(axis=1) + rng.standard_normal(N)
    bad = rng.random(N) < 0.1
    if kind == "far off":
        endog[bad] += 10
    elif kind == "leverage":
        exog[bad, 1:] += 5
        endog[bad] -= 50
    return RRMOLS(endog, exog, 0.2)


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def price(model: RRMModel, steps: int) -> tuple[float, float, float]:
    """Return times of a default fit, of a path, and of a path with standard errors."""

    def with_errors() -> None:
        for each in model.path(steps=steps).results:
            _ = each.bse

    calls = (partial(model.fit, steps=1), partial(model.path, steps=steps), with_errors)
    times = [[seconds(call) for call in calls] for _ in range(REPEATS)]
    fit, path, errors = np.median(times, axis=0)
    return float(fit), float(path), float(errors)


def main() -> None:
    """Print both measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=121000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, model in shipped():
        report(name, excesses(model))
    for name, make in SAMPLES.items():
        rngs = [np.random.default_rng(options.seed + i) for i in range(options.samples)]
        report(name, np.concatenate([excesses(make(rng)) for rng in rngs]))
    for kind in ("clean", "far off", "leverage"):
        model = regression(np.random.default_rng(options.seed), kind)
        for steps in (1, 2):
            fit, path, errors = price(model, steps)
            print(
                f"n = {N}, k = {K}, {kind}, {steps} steps: fit {fit:.3f} s, path "
                f"{path:.2f} s ({path / fit:.1f} fits), with errors {errors:.2f} s "
                f"({errors / fit:.1f} fits)",
                flush=True,
            )


if __name__ == "__main__":
    main()
