"""Compare weights of groups with weights of rows where whole groups are bad.

It writes the tables of docs/groups.md.
"""

import argparse
import os
from collections import Counter
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
KINDS = {
    "clean": (0, 0.0),
    "5 of 50 groups bad": (BAD, 0.0),
    "clean, common noise": (0, 0.5),
    "5 bad, common noise": (BAD, 0.5),
}
METHODS = (
    "{}, all rows",
    "row weights, one step",
    "row weights, two steps",
    "group weights, one step",
    "group weights, two steps",
    "{}, good groups",
)
# Counts and labels: the coefficients, of which bad groups have slopes of the other sign.
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
    rows = RRMOLS(endog, exog, EPS_BAR).fit()
    groups = RRMOLS(endog, exog, EPS_BAR, groups=GROUP).fit()
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


def coverage(bad: int, common: float, seed: int, runs: int) -> tuple[np.ndarray, list[str]]:
    """Return what 95 % intervals of the slopes cover in one step and in two, (2,); and flags."""
    found, fits = [], []
    for rng in generators(seed, runs):
        endog, exog = regression(rng, bad, common)
        two = RRMOLS(endog, exog, EPS_BAR, groups=GROUP).fit()
        found.append([_covered(step.conf_int(), TRUTH) for step in (two.first_step, two)])
        fits.append(two)
    return np.mean(found, axis=(0, 2)), flags(fits, bad)


def flags(fits: list[object], bad: int) -> list[str]:
    """Return shares of bad groups found and of good ones flagged, and what is told of them."""
    flagged = np.array([np.asarray(each.outlier_groups()) for each in fits])
    share = np.array([each.eps_hat for each in fits])
    told = Counter(str(each.explanation) for each in fits).most_common(1)[0]
    return [
        f"{flagged[:, :bad].mean():.3f}" if bad else "",
        f"{flagged[:, bad:].mean():.3f}",
        f"{share.mean():.3f} ({share.std():.3f})",
        f"{np.mean([each.eps_hat_se for each in fits]):.3f}",
        f"{told[0]} ({told[1] / len(fits):.0%})",
    ]


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


def response_errors(
    name: str, bad: int, seed: int, runs: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return mean errors of the methods, what intervals of the slopes cover, (2,), and flags."""
    truth, robust, classical = RESPONSES[name]
    found, covered, fits = [], [], []
    for rng in generators(seed, runs):
        endog, exog = responses(rng, name, bad)
        good = bad <= GROUP
        rows = robust(endog, exog, EPS_BAR).fit()
        groups = robust(endog, exog, EPS_BAR, groups=GROUP).fit()
        steps = (rows.first_step, rows, groups.first_step, groups)
        plain = [
            classical(endog[kept], exog[kept]).fit(disp=0).params
            for kept in (np.ones(len(endog), dtype=bool), good)
        ]
        params = [plain[0], *(step.params for step in steps), plain[1]]
        found.append([np.linalg.norm(each - truth) for each in params])
        covered.append([_covered(step.conf_int(), truth) for step in steps[2:]])
        fits.append(groups)
    return np.mean(found, axis=0), np.mean(covered, axis=(0, 2)), flags(fits, bad)


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
            RRMOLS(endog, exog, **options).fit(),
            RRMLogit(labels, exog[:, :2], **options).fit(),
            RRMCov(data, **options).fit(),
            RRMPCA(data, 1, **options).fit(),
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


def tables(seed: int, runs: int, cover_runs: int) -> dict[str, str]:
    """Return the tables of the page, by the names of their marks."""
    by_kind = {kind: errors(*how, seed, runs) for kind, how in KINDS.items()}
    others = {
        f"{name}, {'5 of 50 groups bad' if bad else 'clean'}": response_errors(
            name, bad, seed, runs
        )
        for name in RESPONSES
        for bad in (0, BAD)
    }
    covered = {kind: coverage(*how, seed, cover_runs) for kind, how in KINDS.items()}
    flagged = [[kind, *each] for kind, (_, each) in covered.items()]
    flagged += [[kind, *each] for kind, (*_, each) in others.items()]
    quantities = ("noise variance", "logit slope", "variance, RRMCov", "eigenvalue, RRMPCA")
    clean, corrupt = (sizes(bad, seed, runs) for bad in (0, BAD))
    told = [
        [name, *(f"{value:.3f}" for value in (*clean[i], *corrupt[i]))]
        for i, name in enumerate(quantities)
    ]
    return {
        "errors": table([ERROR, *KINDS], error_rows("least squares", by_kind.values())),
        "responses": table(
            [ERROR, *others], error_rows("maximum likelihood", (e for e, *_ in others.values()))
        ),
        "flags": table(FLAGS, flagged),
        "coverage": table(
            ["samples", "one step", "two steps"],
            [[kind, *(f"{c:.3f}" for c in values)] for kind, (values, _) in covered.items()],
        ),
        "response coverage": table(
            ["samples", "one step", "two steps"],
            [[name, *(f"{c:.3f}" for c in told)] for name, (_, told, _) in others.items()],
        ),
        "sizes": table(
            ["relative to the truth", "clean, one step", "two", "bad groups, one step", "two"],
            told,
        ),
    }


ERROR = "mean error (relative to the last row)"
FLAGS = ["samples", "bad found", "good flagged", "eps_hat (sd)", "mean se", "explanation"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--cover-runs", type=int, default=400, help="samples for the coverage")
    parser.add_argument("--seed", type=int, default=951_000, help="seed of the first sample")
    args = parser.parse_args()
    found = tables(args.seed, args.runs, args.cover_runs)
    text = PAGE.read_text(encoding="utf-8")
    for name, made in found.items():
        print(made, end="\n\n")
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = f"{before}{start}\n{made}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
