"""Measure what intervals cover, and what the estimates are worth, on clean and dirty data.

Every cell fits the same samples, one step and two. Bad rows are a fixed number of each
sample, so that their share is at most `eps_bar`.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from tables import write_table

from replication import samples
from rrmstats import RRMOLS, RRMLogit

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
TRUTH = np.array([0.0, 1.0, -0.5])
# What is measured of a slope: its estimate, and length and success of its interval.
FIELDS = ("estimate", "length", "covered")

BAD_ROWS, BAD_LABELS = 0.1, 0.05
# Rows of a group with noise in common; its intervals are those of cov_type="cluster".
GROUP = 5

Draw = Callable[[np.random.Generator, int], samples.Regression]
# For each model the samples and the share of their rows that is bad.
DATA: dict[str, dict[str, tuple[Draw, float]]] = {
    "OLS": {
        "clean": (partial(samples.one_sided_outliers, params=TRUTH, share=0.0), 0.0),
        "heavy tails": (
            partial(samples.heavy_tailed_rows, params=TRUTH, share=BAD_ROWS),
            BAD_ROWS,
        ),
        "one-sided": (
            partial(samples.one_sided_outliers, params=TRUTH, share=BAD_ROWS, shift=10.0),
            BAD_ROWS,
        ),
        "one-sided, near": (
            partial(samples.one_sided_outliers, params=TRUTH, share=BAD_ROWS, shift=5.0),
            BAD_ROWS,
        ),
        "leverage": (
            partial(samples.leverage_shift, params=TRUTH, share=BAD_ROWS, sigma=1.0),
            BAD_ROWS,
        ),
        "changing noise": (partial(samples.changing_noise, params=TRUTH), 0.0),
        "skewed noise": (partial(samples.skewed_noise, params=TRUTH), 0.0),
        "groups": (partial(samples.grouped_noise, params=TRUTH, size=GROUP), 0.0),
    },
    "Logit": {
        "clean": (partial(samples.logistic_labels, params=TRUTH), 0.0),
        "flipped at random": (
            partial(samples.random_flips, params=TRUTH, share=BAD_LABELS),
            BAD_LABELS,
        ),
        "flipped at extremes": (
            partial(samples.extreme_flips, params=TRUTH, share=BAD_LABELS),
            BAD_LABELS,
        ),
    },
}


class Cell(NamedTuple):
    """Samples of one kind and size, and how they are fitted."""

    model: str
    data: str
    n: int
    eps_bars: tuple[float, ...]
    cov_kwds: dict[str, Any] | None = None


def reference(model: str, endog: np.ndarray, exog: np.ndarray) -> np.ndarray:
    """Return the slopes of the classical fit to clean rows."""
    if model == "OLS":
        return sm.OLS(endog, exog).fit().params[1:]
    return sm.Logit(endog, exog).fit(disp=0).params[1:]


def measured(res: Any) -> np.ndarray:
    """Return estimate, length and coverage of the slopes, shape (3, 2)."""
    low, high = np.asarray(res.conf_int())[1:].T
    return np.array([res.params[1:], high - low, (low <= TRUTH[1:]) & (TRUTH[1:] <= high)])


def run(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the reference's slopes, and what is measured, shape (eps_bars, steps, 3, 2)."""
    draw, share = DATA[cell.model][cell.data]
    model = RRMOLS if cell.model == "OLS" else RRMLogit
    endog, exog = draw(np.random.default_rng([cell.n, seed]), cell.n)
    clean = slice(samples.count_bad(cell.n, share), None)
    found = []
    for eps_bar in cell.eps_bars:
        fit = model(endog, exog, eps_bar).fit
        if cell.data == "groups":
            groups = {"groups": np.arange(cell.n) // GROUP}
            two = fit(cov_type="cluster", cov_kwds=groups)
            one = two.first_step
        elif cell.cov_kwds is None:
            two = fit()
            one = two.first_step
        else:
            kwds: dict[str, Any] = {
                "cov_type": "bootstrap",
                "cov_kwds": {**cell.cov_kwds, "rng": seed},
            }
            one, two = fit(steps=1, **kwds), fit(**kwds)
        found.append([measured(one), measured(two)])
    return reference(cell.model, endog[clean], exog[clean]), np.array(found)


def errors_of(cell: Cell) -> str:
    """Return the kind of standard errors of a cell."""
    if cell.cov_kwds is not None:
        return "bootstrap"
    return "cluster" if cell.data == "groups" else "sandwich"


def rows(cell: Cell, runs: int, seed: int, jobs: int) -> Iterator[list[str]]:
    """Yield a row of the table for each eps_bar and number of steps."""
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=jobs)(delayed(run)(cell, seed + i) for i in range(runs))
    classical = np.array([one for one, _ in found])
    values = np.array([many for _, many in found])
    for i, eps_bar in enumerate(cell.eps_bars):
        columns = [of_steps(values[:, i, j], classical) for j in range(2)]
        pairs = [text for pair in zip(*columns, strict=True) for text in pair]
        yield [cell.model, cell.data, errors_of(cell), f"{cell.n}", f"{eps_bar:g}", *pairs]


def of_steps(values: np.ndarray, classical: np.ndarray) -> list[str]:
    """Return coverage, length, bias, efficiency and runs of one step or of two.

    `values` has shape (runs, 3, 2). Runs have no interval where only the direction of the
    coefficients is identified.
    """
    told, truth = np.isfinite(values[:, FIELDS.index("length")]).all(axis=-1), TRUTH[1:]
    estimate, length, covered = np.moveaxis(values[told], 1, 0)
    bias = (estimate.mean(axis=0) @ truth) / (truth @ truth) - 1
    lost = ((estimate - truth) ** 2).sum()
    efficiency = ((classical[told] - truth) ** 2).sum() / lost
    return [
        f"{covered.mean():.3f}",
        f"{length.mean():.3f}",
        f"{100 * bias:+.1f}%",
        f"{efficiency:.2f}",
        f"{told.sum()}",
    ]


def cells() -> Iterator[Cell]:
    for n in (60, 200, 1000):
        for data in DATA["OLS"]:
            yield Cell("OLS", data, n, (0.1, 0.4))
    for n in (200, 500, 2000):
        for data in DATA["Logit"]:
            yield Cell("Logit", data, n, (0.05, 0.2) if n == 2000 else (0.1,))
    yield Cell("OLS", "clean", 60, (0.1, 0.2), {"n_boot": 199})


def fewer(cell: Cell, runs: int) -> int:
    """Return how many runs a cell gets: bootstraps and large samples for the logit take longer."""
    if cell.cov_kwds is not None or cell.n >= 2000:
        return max(2, runs // 4)
    return runs


HEAD = [
    "model", "data", "errors", "n", "eps_bar",
    "coverage 1", "2", "length 1", "2", "bias 1", "2", "efficiency 1", "2", "runs 1", "2",
]  # fmt: skip

TEXT = """# What the intervals cover

Nominal 95 % intervals of the slopes, on clean and on dirty data. The slopes are 1 and -0.5,
the predictors and the noise standard normal. Of the regressions a tenth of the rows is bad:
heavy tails (noise three times Student's t with 1.5 degrees of freedom), one-sided (shifted up by
ten standard deviations, *near* by five) or leverage (predictors shifted by ten, responses near
-20). Other regressions have no bad rows, but noise that changes (standard deviation
0.3 + |x1|), is skewed (exponential), or is in part the same for groups of five rows that share x1,
for which the intervals are those of `cov_type="cluster"`. Of the
logistic regressions a twentieth of the labels is wrong: flipped at random, or made the improbable
one where the predictors are most extreme.

*Coverage* is the share of the intervals that hold the true slope, *length* their mean length,
*bias* that of the slopes along the true ones, and *efficiency* the mean squared error of the
classical fit to the clean rows divided by that of this one, for `fit(steps=1)` (1) and `fit()`
(2). Runs in which only the direction of the coefficients is identified, so
that there are no intervals, are left out. With r runs a coverage of 0.95 is known to about
{error:.2f} / sqrt(r): {at_least:.3f} for {least} runs, {at_most:.3f} for {most}.

Intervals of two steps are conditional on the explanation that was chosen. For linear
regression they keep their promise all the same. Those of logistic regression allow for labels
flipped at random that do not show, up to `eps_bar`: they are longer than they need to be on clean
labels. Slopes of skewed noise are not biased, but at a large `eps_bar` few rows decide them.

Made by `python benchmarks/interval_coverage.py --runs {runs} --seed {seed}`.

"""


def page(table: list[list[str]], runs: int, seed: int) -> str:
    counts = [int(count) for line in table for count in line[-2:]]
    error = float(np.sqrt(0.95 * 0.05 / 2))
    text = TEXT.format(
        error=error,
        least=min(counts),
        most=max(counts),
        at_least=error / np.sqrt(min(counts)),
        at_most=error / np.sqrt(max(counts)),
        runs=runs,
        seed=seed,
    )
    return text + write_table("coverage", HEAD, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="samples of most cells")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=61_000, help="seed of the first sample")
    parser.add_argument("--only", default="", help="cells whose model and data contain this")
    parser.add_argument("--no-page", action="store_true", help="print without writing the page")
    args = parser.parse_args()
    widths = (6, 20, 10, 5, 8, 11, 6, 9, 6, 7, 7, 13, 5, 7, 5)
    print("".join(f"{name:{width}}" for name, width in zip(HEAD, widths, strict=True)))
    table = []
    for cell in cells():
        if args.only not in f"{cell.model} {cell.data} {cell.n}":
            continue
        for line in rows(cell, fewer(cell, args.runs), args.seed, args.jobs):
            text = "".join(f"{value:{width}}" for value, width in zip(line, widths, strict=True))
            print(text, flush=True)
            table.append(line)
    if not args.no_page and not args.only:
        PAGE.write_text(page(table, args.runs, args.seed), encoding="utf-8")


if __name__ == "__main__":
    main()
