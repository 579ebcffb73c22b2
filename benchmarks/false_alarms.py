"""Count the clean rows that `outliers(0.975)` flags in small samples; 2.5 % are promised."""

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from replication.samples import one_sided_outliers
from rrmstats import RRMOLS, RRMPCA, RRMCov

EPS_BARS = (0.1, 0.25, 0.4)


def regression(rng: np.random.Generator, eps_bar: float) -> RRMOLS:
    """Return a model of 30 rows and 7 coefficients."""
    return RRMOLS(*one_sided_outliers(rng, 30, np.ones(7), share=0.0), eps_bar)


def covariance(rng: np.random.Generator, eps_bar: float) -> RRMCov:
    """Return a model of 50 rows and 5 variables."""
    return RRMCov(rng.standard_normal((50, 5)), eps_bar)


def components(rng: np.random.Generator, eps_bar: float) -> RRMPCA:
    """Return a model of 50 rows and 6 variables, 2 of which stand out."""
    return RRMPCA(rng.standard_normal((50, 6)) * [3, 2, 1, 1, 1, 1], 2, eps_bar)


MODELS: dict[str, Callable[[np.random.Generator, float], Any]] = {
    "RRMOLS, n = 30, k = 7": regression,
    "RRMCov, n = 50, d = 5": covariance,
    "RRMPCA, n = 50, d = 6": components,
}


def alarms(model: Callable[..., Any], eps_bar: float, runs: int, seed: int) -> np.ndarray:
    """Return the shares that one step and two flag, shape (2,)."""
    found = []
    for i in range(runs):
        two = model(np.random.default_rng([seed, i]), eps_bar).fit()
        found.append([np.mean(step.outliers(0.975)) for step in (two.first_step, two)])
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="samples of each cell")
    parser.add_argument("--seed", type=int, default=81_000, help="seed of the samples")
    args = parser.parse_args()
    print(f"{'clean rows that are flagged':28}{'eps_bar':>8}{'one step':>10}{'two steps':>11}")
    for name, model in MODELS.items():
        for eps_bar in EPS_BARS:
            one, two = alarms(model, eps_bar, args.runs, args.seed)
            print(f"{name:28}{eps_bar:8g}{one:10.1%}{two:11.1%}", flush=True)


if __name__ == "__main__":
    main()
