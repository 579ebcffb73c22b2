"""Compare weights of groups with weights of rows where whole groups are corrupt.

It writes docs/groups.md.
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm

from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

PAGE = Path(__file__).parents[1] / "docs" / "groups.md"
GROUPS, ROWS, BAD, EPS_BAR = 50, 20, 5, 0.2
TRUTH = np.array([1.0, 2.0, -1.0, 0.5])
FLIPPED = TRUTH * [1, -1, -1, -1]
SPREAD = np.array([2.0, 1.0, 0.5])
GROUP = np.repeat(np.arange(GROUPS), ROWS)
# Samples whose groups differ by a common part of the noise, in standard deviations of the rest.
KINDS = {"clean": (0, 0.0), "5 of 50 groups corrupt": (BAD, 0.0), "clean, common noise": (0, 0.5)}
METHODS = (
    "{}, all rows",
    "row weights, one step",
    "row weights, two steps",
    "group weights, one step",
    "group weights, two steps",
    "{}, good groups",
)
# Counts and labels: the coefficients, of which corrupt groups have slopes of the other sign.
COUNTS, LABELS = np.array([0.5, 0.5, -0.3, 0.2]), np.array([0.3, 1.5, -1.0, 0.5])
RESPONSES = {"counts": (COUNTS, RRMPoisson, sm.Poisson), "labels": (LABELS, RRMLogit, sm.Logit)}


def regression(rng: np.random.Generator, bad: int, common: float) -> tuple[np.ndarray, ...]:
    """Return endog and exog; the first groups have slopes of the other sign."""
    exog = sm.add_constant(rng.standard_normal((len(GROUP), 3)))
    slopes = np.where((bad > GROUP)[:, None], FLIPPED, TRUTH)
    noise = rng.standard_normal(len(GROUP)) + common * rng.standard_normal(GROUPS)[GROUP]
    return np.sum(exog * slopes, axis=1) + noise, exog


def generators(seed: int, runs: int) -> Iterator[np.random.Generator]:
    """Return the sources of the samples."""
    return (np.random.default_rng(seed + i) for i in range(runs))


def fitted(endog: np.ndarray, exog: np.ndarray, bad: int) -> list[np.ndarray]:
    """Return the coefficients of each method."""
    rows = RRMOLS(endog, exog, EPS_BAR).fit(efficiency=0.95)
    groups = RRMOLS(endog, exog, EPS_BAR, groups=GROUP).fit(efficiency=0.95)
    good = bad <= GROUP
    return [
        sm.OLS(endog, exog).fit().params,
        rows.first_step.params,
        rows.params,
        groups.first_step.params,
        groups.params,
        sm.OLS(endog[good], exog[good]).fit().params,
    ]


def errors(bad: int, common: float, seed: int, runs: int) -> np.ndarray:
    """Return the mean error of the coefficients of each method, shape (methods,)."""
    found = [
        [np.linalg.norm(params - TRUTH) for params in fitted(*regression(rng, bad, common), bad)]
        for rng in generators(seed, runs)
    ]
    return np.mean(found, axis=0)


def coverage(bad: int, common: float, seed: int, runs: int) -> np.ndarray:
    """Return what 95 % intervals of the slopes cover in one step and in two, shape (2,)."""
    found = []
    for rng in generators(seed, runs):
        endog, exog = regression(rng, bad, common)
        two = RRMOLS(endog, exog, EPS_BAR, groups=GROUP).fit(efficiency=0.95)
        found.append([_covered(step.conf_int(), TRUTH) for step in (two.first_step, two)])
    return np.mean(found, axis=(0, 2))


def _covered(intervals: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return (intervals[1:, 0] < truth[1:]) & (truth[1:] < intervals[1:, 1])


def error_rows(classical: str, columns: Iterable[np.ndarray]) -> list[list[str]]:
    """Return the rows of a table of mean errors, also relative to the last method's."""
    columns = list(columns)
    return [
        [name.format(classical), *(f"{e[i]:.4f} ({e[i] / e[-1]:.2f})" for e in columns)]
        for i, name in enumerate(METHODS)
    ]


def responses(rng: np.random.Generator, name: str, bad: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts or labels and exog; the first groups have slopes of the other sign."""
    truth = RESPONSES[name][0]
    exog = sm.add_constant(rng.standard_normal((len(GROUP), 3)))
    slopes = np.where((bad > GROUP)[:, None], truth * [1, -1, -1, -1], truth)
    eta = np.sum(exog * slopes, axis=1)
    if name == "counts":
        return rng.poisson(np.exp(eta)).astype(float), exog
    return (rng.random(len(GROUP)) < 1 / (1 + np.exp(-eta))).astype(float), exog


def response_errors(name: str, bad: int, seed: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean errors of the methods, and what intervals of the slopes cover, (2,)."""
    truth, robust, classical = RESPONSES[name]
    found, covered = [], []
    for rng in generators(seed, runs):
        endog, exog = responses(rng, name, bad)
        good = bad <= GROUP
        rows = robust(endog, exog, EPS_BAR).fit(efficiency=0.95)
        groups = robust(endog, exog, EPS_BAR, groups=GROUP).fit(efficiency=0.95)
        steps = (rows.first_step, rows, groups.first_step, groups)
        plain = [
            classical(endog[kept], exog[kept]).fit(disp=0).params
            for kept in (np.ones(len(endog), dtype=bool), good)
        ]
        params = [plain[0], *(step.params for step in steps), plain[1]]
        found.append([np.linalg.norm(each - truth) for each in params])
        covered.append([_covered(step.conf_int(), truth) for step in steps[2:]])
    return np.mean(found, axis=0), np.mean(covered, axis=(0, 2))


def sizes(bad: int, seed: int, runs: int) -> np.ndarray:
    """Return what is estimated of a size, relative to the truth, shape (quantities, steps)."""
    found = []
    for rng in generators(seed, runs):
        wrong = bad > GROUP
        endog, exog = regression(rng, bad, 0.0)
        odds = np.where(wrong, -1.5, 1.5) * exog[:, 1]
        labels = (rng.random(len(GROUP)) < 1 / (1 + np.exp(-odds))).astype(float)
        data = rng.standard_normal((len(GROUP), 3)) * SPREAD
        data[wrong] = 2 * data[wrong][:, ::-1]
        options = {"eps_bar": EPS_BAR, "groups": GROUP}
        fits = [
            RRMOLS(endog, exog, **options).fit(efficiency=0.95),
            RRMLogit(labels, exog[:, :2], **options).fit(efficiency=0.95),
            RRMCov(data, **options).fit(efficiency=0.95),
            RRMPCA(data, 1, **options).fit(efficiency=0.95),
        ]
        found.append(
            [[_sizes(each.first_step, i), _sizes(each, i)] for i, each in enumerate(fits)]
        )
    return np.mean(found, axis=0)


def _sizes(results: object, i: int) -> float:
    name, unit = (("scale", 1.0), ("params", 1.5), ("cov", 4.0), ("eigenvals", 4.0))[i]
    value = np.asarray(getattr(results, name))
    return float((value[1] if name == "params" else value.ravel()[0]) / unit)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(seed: int, runs: int, cover_runs: int) -> str:
    """Return the page."""
    by_kind = {kind: errors(*how, seed, runs) for kind, how in KINDS.items()}
    others = {
        f"{name}, {'5 of 50 groups corrupt' if bad else 'clean'}": response_errors(
            name, bad, seed, runs
        )
        for name in RESPONSES
        for bad in (0, BAD)
    }
    covered = [
        [kind, *(f"{value:.3f}" for value in coverage(*how, seed, cover_runs))]
        for kind, how in KINDS.items()
    ]
    quantities = ("noise variance", "logit slope", "variance, RRMCov", "eigenvalue, RRMPCA")
    clean, corrupt = (sizes(bad, seed, runs) for bad in (0, BAD))
    told = [
        [name, *(f"{value:.3f}" for value in (*clean[i], *corrupt[i]))]
        for i, name in enumerate(quantities)
    ]
    return TEXT.format(
        seed=seed,
        runs=runs,
        cover_runs=cover_runs,
        errors=table([ERROR, *KINDS], error_rows("least squares", by_kind.values())),
        responses=table(
            [ERROR, *others], error_rows("maximum likelihood", (e for e, _ in others.values()))
        ),
        coverage=table(["samples", "one step", "two steps"], covered),
        response_coverage=table(
            ["samples", "one step", "two steps"],
            [[name, *(f"{c:.3f}" for c in told)] for name, (_, told) in others.items()],
        ),
        sizes=table(
            ["relative to the truth", "clean, one step", "two", "corrupt, one step", "two"], told
        ),
    )


ERROR = "mean error (relative to the last row)"
TEXT = """# Groups

Corruption may come by hospital, firm or sensor. `groups=` gives one weight to each group of rows:

```python
import numpy as np
import pandas as pd
import rrmstats

rng = np.random.default_rng(0)
data = pd.DataFrame({{"hospital": np.repeat(np.arange(50), 20), "x": rng.standard_normal(1000)}})
slope = np.where(data.hospital < 5, -2, 2)
data["y"] = 1 + slope * data.x + rng.standard_normal(1000)
res = rrmstats.ols("y ~ x", data, eps_bar=0.2, groups="hospital").fit()
res.group_weights  # relative weights, by hospital
res.group_table(5)  # the smallest, with mean losses, distances and flags
res.outlier_groups(0.999)
res.plot_weights()
```

All models and their formula functions take `groups`: the name of a column of the data frame, or
labels, one per row. Rows with missing values take their labels with them. So do
`rrmstats.robustify` and, for losses with derivatives, `rrmstats.custom`: they take labels.

## The method

The loss of a group is the mean loss of its rows, and its frequency weight is its size m. `eps_bar`
bounds the fraction of rows in corrupted groups: the weights of the groups may diverge from their
sizes by at most -ln(1 - `eps_bar`). The same search finds the global minimum; its starts are fits
to random groups. A row's weight is its group's, divided by the size. Groups of one row each are
rows, and give the plain fit.

- **Consistency.** Good groups have unequal weights too. A row of a group of m independent rows has
  its loss tilted by exp(-loss / (m lambda)): Gaussian noise of variance s is narrowed to
  1 / (1 / s + 2 / (m lambda)), log-odds x'b become x'(b + theta / (m lambda)). `scale`, logit
  coefficients, covariances and the variance off a principal subspace are corrected for it, and so
  are the coefficients of counts, the dispersions of generalized models, and the parameters of
  `robustify` where it knows the distribution of the responses. Regression slopes and eigenvalues
  need no correction; means of Tweedie families and a loss of your own have none. `raw_params` are
  those of least risk.
- **Efficiency** on clean data is that of Gaussian data of m dimensions: 0.65 for m = 20 and
  `eps_bar` = 0.2, where rows have 0.40. `fit(efficiency=0.95)` takes a second step, whatever
  number is given: groups whose mean loss is beyond the 0.999 quantile of good groups are left out,
  and the others have their full weight. Where that fit differs from the first step by more than
  chance (p < 0.01), corrupted groups have come back, and the first step is kept. Intervals are
  conditional on the groups left out. With few rows per group corrupted groups may not be far
  enough out; compare with `first_step`.
- **Few labels per group.** Where the opposite labels would take fewer than 80 % of the groups
  beyond 0.999, corrupted groups hide among the good ones: there is no second step, `eps_hat` is
  NaN, and `eps_bar="auto"` raises an error. The summary says so.
- **Flags.** The mean losses of good groups follow a gamma distribution, exactly so for Gaussian
  rows; its two parameters are read off the weighted losses. Where groups differ by more than
  chance among their rows the limits are wider. `distance` is the loss as a standard normal score.
  `eps_hat` is the share of the rows in groups beyond 0.999.
- **Standard errors** are clustered by the groups: they rest on the influence function of each
  group, which accounts for the weights being estimated. Coarser clusters can be given in
  `cov_kwds`. `cov_type="bootstrap"` draws whole groups. Tests have as many degrees of freedom as
  there are effective groups, less one.
- `path()`, `eps_bar="auto"` and `stability` work by groups. All tables, pictures and the page of a
  path are then of groups: their weights, where they leave, their distances and flags.
- `get_influence` tells what a single row does, by its part in the mean loss that decides the
  weight of its group among others.
- With principal components a group far out *within* the subspace keeps its weight, and counts in
  the eigenvalues.

## Errors

Made by `python benchmarks/groups.py --runs {runs} --seed {seed}`. 50 groups of 20 rows, four
coefficients, noise of variance 1, `eps_bar` = 0.2. In corrupt samples five groups have slopes of
the other sign. With common noise the rows of a group share a part of it, of standard deviation
0.5. Mean length of the error of the coefficients over {runs} samples, and relative to least
squares without the corrupt groups:

{errors}

Many rows of a corrupt group look good by themselves, those near the middle of the predictors
among them, and keep their row weights. All of its rows together give the group away.

Counts (`RRMPoisson`, coefficients 0.5, 0.5, -0.3 and 0.2) and labels (`RRMLogit`, 0.3, 1.5, -1 and
0.5) in the same design:

{responses}

One step with row weights tells little more than the direction of the coefficients of labels.

## Coverage

What 95 % intervals of the three slopes cover, {cover_runs} samples:

{coverage}

Of the counts and labels above, {runs} samples:

{response_coverage}

## Sizes

Means over {runs} samples of estimates that depend on the consistency factors:

{sizes}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--cover-runs", type=int, default=400, help="samples for the coverage")
    parser.add_argument("--seed", type=int, default=935_000, help="seed of the first sample")
    args = parser.parse_args()
    text = page(args.seed, args.runs, args.cover_runs)
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
