"""Measure logistic regression with wrong labels, and with none, beside maximum likelihood."""

import argparse
import os
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm

from rrmstats import RRMLogit
from rrmstats.experiments.samples import Regression, extreme_flips, logistic_labels

SLOPES = np.array([0.0, 1.0, -0.5])
FIVE = np.array([0.0, 1.3, -1.3, 1.3, -1.3, 1.3])
TEN = np.array([-2.6, 1.0, -0.5])
RARE = np.array([-3.75, 1.0, -0.5])


class Cell(NamedTuple):
    """Labels of one kind, their true coefficients, and the eps_bar of the fits."""

    name: str
    draw: Callable[[np.random.Generator], Regression]
    params: np.ndarray
    eps_bar: float


def largest_wrong(rng: np.random.Generator) -> Regression:
    """Return labels of five slopes; the 5 % of rows most likely to be 1 are 0."""
    endog, exog = logistic_labels(rng, 1000, FIVE)
    endog[np.argsort(exog @ FIVE)[-50:]] = 0.0
    return endog, exog


def random_wrong(rng: np.random.Generator) -> Regression:
    """Return labels of five slopes, 5 % of them flipped at random."""
    endog, exog = logistic_labels(rng, 1000, FIVE)
    endog[:50] = 1.0 - endog[:50]
    return endog, exog


CELLS = [
    *(
        Cell("5 % wrong at extremes", lambda rng: extreme_flips(rng, 500, SLOPES, 0.05), SLOPES, e)
        for e in (0.1, 0.2)
    ),
    *(Cell("clean", lambda rng: logistic_labels(rng, 500, SLOPES), SLOPES, e) for e in (0.1, 0.2)),
    Cell("five slopes, largest wrong", largest_wrong, FIVE, 0.3),
    *(Cell("five slopes, random wrong", random_wrong, FIVE, e) for e in (0.1, 0.2)),
    *(
        Cell(
            f"n = 200, {name}",
            lambda rng, s=share: extreme_flips(rng, 200, SLOPES, s),
            SLOPES,
            0.2,
        )
        for name, share in (("clean", 0.0), ("5 % at extremes", 0.05))
    ),
    Cell("10 % ones, 5 % at extremes", lambda rng: extreme_flips(rng, 500, TEN, 0.05), TEN, 0.1),
    Cell("rare class, clean", lambda rng: logistic_labels(rng, 1000, RARE), RARE, 0.02),
]


def errors(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return squared errors of the slopes, and which of the second step's intervals cover.

    Errors of maximum likelihood, one step and two, shape (3, k); coverage of shape (k,).
    """
    endog, exog = cell.draw(np.random.default_rng([seed]))
    two = RRMLogit(endog, exog, cell.eps_bar).fit(efficiency=0.95)
    classical = sm.Logit(endog, exog).fit(disp=0).params
    found = np.array([classical, two.first_step.params, two.params])
    low, high = two.conf_int().T
    covered = (low <= cell.params) & (cell.params <= high)
    return (found - cell.params)[:, 1:] ** 2, covered[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--seed", type=int, default=91_000, help="seed of the first sample")
    args = parser.parse_args()
    head = (
        "labels",
        "eps_bar",
        "max. likelihood",
        "one step",
        "two steps",
        "relative, two",
        "cover, two",
    )
    print("".join(f"{name:>28}" if i == 0 else f"{name:>17}" for i, name in enumerate(head)))
    for cell in CELLS:
        runs = [errors(cell, args.seed + i) for i in range(args.runs)]
        found = np.array([squared for squared, _ in runs])
        covered = float(np.mean([covers for _, covers in runs]))
        mean = found.mean(axis=(0, 2))
        size = np.linalg.norm(cell.params[1:])
        relative = float(np.sqrt(found[:, 2].sum(axis=1)).mean() / size)
        values = "".join(f"{value:17.4f}" for value in (*mean, relative, covered))
        print(f"{cell.name:>28}{cell.eps_bar:17g}{values}", flush=True)


if __name__ == "__main__":
    main()
