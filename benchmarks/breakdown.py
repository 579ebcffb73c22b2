"""Measure how far a share of corrupted rows, up to eps_bar, can take the estimates.

The error of a fit is compared with that of the same fit to the clean rows alone.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from rrmstats import RRMOLS, RRMPCA, RRMCov
from rrmstats.experiments.samples import (
    KINDS,
    Kind,
    count_bad,
    distant_points,
    distant_regression,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "breakdown.md"
DISTANCES = (10.0, 1e3, 1e6)
AT_MOST = 3.0
N = 200
SLOPES = np.array([1.0, 1.0, -0.5, 0.5])
# Standard deviations along the axes of the multivariate data; the first two are the components.
SPREAD = np.array([3.0, 2.0, 0.5, 0.5])


class Case(NamedTuple):
    """A model at one eps_bar, and what is judged of it."""

    name: str
    eps_bar: float
    efficiency: float | None = None


def regression(
    rng: np.random.Generator, kind: Kind, share: float, distance: float
) -> tuple[np.ndarray, ...]:
    """Return endog and exog whose first rows are bad."""
    return distant_regression(rng, kind, N, SLOPES, share, distance)


def cloud(
    rng: np.random.Generator, kind: Kind, share: float, distance: float
) -> tuple[np.ndarray, ...]:
    """Return data whose first rows are bad; axes are rotated, so that no variable is one."""
    return (distant_points(rng, kind, N, SPREAD, share, distance) @ axes().T,)


def axes() -> np.ndarray:
    """Return a fixed rotation, shape (d, d)."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]


def slope_error(res: Any) -> float:
    return float(np.linalg.norm(res.params - SLOPES))


def cov_error(res: Any) -> float:
    """Return the distance of mean and covariance from the true ones, in their metric."""
    whiten = axes() / SPREAD
    mean, cov = whiten.T @ res.mean, whiten.T @ res.cov @ whiten
    return float(np.linalg.norm(mean) + np.linalg.norm(cov - np.eye(len(SPREAD))))


def plane_error(res: Any) -> float:
    true = axes()[:, :2]
    return float(np.linalg.norm(res.loadings @ res.loadings.T - true @ true.T))


def eigenvalue_error(res: Any) -> float:
    return float(np.linalg.norm(np.log(res.eigenvals / SPREAD[:2] ** 2)))


MODELS: dict[str, tuple[Callable[..., tuple[np.ndarray, ...]], Callable[..., Any], Any]] = {
    "RRMOLS": (regression, RRMOLS, slope_error),
    "RRMCov": (cloud, RRMCov, cov_error),
    "RRMPCA, plane": (cloud, lambda data, eps_bar: RRMPCA(data, 2, eps_bar), plane_error),
    "RRMPCA, eigenvalues": (
        cloud,
        lambda data, eps_bar: RRMPCA(data, 2, eps_bar),
        eigenvalue_error,
    ),
}
CASES = [
    Case(name, eps_bar, efficiency)
    for name in MODELS
    for eps_bar in (0.2, 0.4)
    for efficiency in (None, 0.95)
]


def ratios(case: Case, kind: Kind, share: float, runs: int, seed: int = 0) -> list[float]:
    """Return the mean error at each distance, relative to that on the clean rows alone."""
    draw, model, error = MODELS[case.name]
    bad = count_bad(N, share)

    def mean_error(distance: float, rows: slice) -> float:
        errors = []
        for i in range(runs):
            data = draw(np.random.default_rng([seed, i]), kind, share, distance)
            fit = model(*(part[rows] for part in data), eps_bar=case.eps_bar).fit
            errors.append(error(fit(efficiency=case.efficiency)))
        return float(np.mean(errors))

    clean = mean_error(1.0, slice(bad, None))
    return [mean_error(distance, slice(None)) / clean for distance in DISTANCES]


def rows(runs: int, only: str) -> Iterator[list[str]]:
    for case in CASES:
        if only not in case.name:
            continue
        for share in (0.5 * case.eps_bar, case.eps_bar):
            for kind in KINDS:
                found = ratios(case, kind, share, runs)
                yield [
                    case.name,
                    f"{case.eps_bar:g}",
                    "one" if case.efficiency is None else "two",
                    f"{share:g}",
                    kind,
                    *(f"{ratio:.2f}" for ratio in found),
                ]


HEAD = ["model", "eps_bar", "steps", "share", "bad rows", "10", "1e3", "1e6"]

TEXT = """# Breakdown

The mean error of a fit to {n} rows, a share of which is bad, divided by that of the same fit to
the clean rows alone. The bad rows lie at a distance of 10, 1e3 or 1e6. The aim is at most
{at_most:g} times the clean error for any share up to `eps_bar`.

Where the share is half of `eps_bar` all errors keep to it. Where it is all of `eps_bar`, variances
do not: the weights of the clean rows are then equal, so that the factor which makes variances
consistent on clean data makes them too large. A cluster of 40 % of the rows can also turn a plane,
which passes through it and a few others as well as through the clean rows. Both are bounded, at
any distance, and a reason to choose `eps_bar` above the share that is feared.

In the regressions (three predictors and a constant) bad rows are *vertical* outliers; *good
leverage*, predictors far out that obey the model; *bad leverage*, predictors far out in all
directions with responses at ten times the distance; or a *cluster* of such points, as wide as the
clean data. The data of the
other models have four variables, two of them along the components that are sought. Their bad rows
are off in one variable, far out along the first component, far out in all other directions, or
a cluster. The error of slopes, means and covariances is a norm (in the true metric), that of
a plane the norm of the difference of projections, that of eigenvalues is in their logarithms.

Made by `python benchmarks/breakdown.py --runs {runs}`.

"""


def page(table: list[list[str]], runs: int) -> str:
    lines = [HEAD, ["---", "---:", "---", "---:", "---", "---:", "---:", "---:"], *table]
    text = TEXT.format(n=N, at_most=AT_MOST, runs=runs)
    return text + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=30, help="samples of each cell")
    parser.add_argument("--only", default="", help="models whose name contains this")
    args = parser.parse_args()
    widths = (20, 8, 6, 6, 15, 7, 7, 7)
    print("".join(f"{name:{width}}" for name, width in zip(HEAD, widths, strict=True)))
    table, failed = [], 0
    for line in rows(args.runs, args.only):
        broken = any(float(ratio) > AT_MOST for ratio in line[-len(DISTANCES) :])
        failed += broken
        text = "".join(f"{value:{width}}" for value, width in zip(line, widths, strict=True))
        print(f"{text}{'  MISSED' if broken else ''}", flush=True)
        table.append(line)
    if not args.only:
        PAGE.write_text(page(table, args.runs), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
