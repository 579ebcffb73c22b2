"""Measure the automatic choice of eps_bar beside fixed values, and the check of eps_bar."""

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from scipy.special import expit
from statsmodels.tools.sm_exceptions import ModelWarning

from replication.samples import (
    TRUE_COV,
    correlated_points,
    extreme_flips,
    heavy_tailed_noise,
    leverage_shift,
    one_sided_outliers,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

FIXED = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
SLOPES = np.array([0.0, 1.0, -0.5])
PAGE = Path(__file__).parents[1] / "docs" / "automatic.md"


class Design(NamedTuple):
    """Samples of one kind, their model and the error of its parameters."""

    name: str
    draw: Callable[[np.random.Generator], Any]
    model: Callable[..., Any]
    error: Callable[[np.ndarray], float]
    classical: Callable[[Any], np.ndarray] | None = None


def least_squares(sample: Any) -> np.ndarray:
    """Return the least squares fit."""
    endog, exog = sample
    return np.asarray(sm.OLS(endog, exog).fit().params)


def relative(params: np.ndarray) -> float:
    """Return the relative error of coefficients that are one."""
    return float(np.linalg.norm(params - 1) / np.sqrt(len(params)))


def of_covariance(params: np.ndarray) -> float:
    """Return the relative error of a covariance in Frobenius' norm."""
    found = np.array([[params[2], params[3]], [params[3], params[4]]])
    return float(np.linalg.norm(found - TRUE_COV) / np.linalg.norm(TRUE_COV))


def clean(rng: np.random.Generator) -> Any:
    """Return a regression of 100 rows on four ones, without a bad row."""
    return one_sided_outliers(rng, 100, np.ones(4), share=0.0)


DESIGNS = [
    Design("linreg (n = 40, k = 10, t noise)", heavy_tailed_noise, RRMOLS, relative),
    Design("leverage (n = 100, k = 4, 20 %)", leverage_shift, RRMOLS, relative),
    Design(
        "cov (n = 50, d = 2, t rows)", lambda rng: (correlated_points(rng),), RRMCov, of_covariance
    ),
    Design(
        "clean (n = 100, k = 4), squared",
        clean,
        RRMOLS,
        lambda params: float(np.sum((params - 1) ** 2)),
        least_squares,
    ),
    Design(
        "logit (n = 500, 5 % at extremes), squared",
        lambda rng: extreme_flips(rng, 500, SLOPES, 0.05),
        RRMLogit,
        lambda params: float(np.mean((params - SLOPES)[1:] ** 2)),
        lambda sample: np.asarray(sm.Logit(*sample).fit(disp=0).params),
    ),
]


def errors(design: Design, seed: int) -> np.ndarray:
    """Return the errors of the automatic, the fixed and the classical fit, and the choice."""
    sample = design.draw(np.random.default_rng([seed]))
    automatic = design.model(*sample, "auto").fit()
    fixed = [design.model(*sample, e).fit().params for e in FIXED]
    own = np.nan if design.classical is None else design.error(design.classical(sample))
    return np.array(
        [design.error(automatic.params), *map(design.error, fixed), own, automatic.eps_bar]
    )


def table(runs: int, seed: int) -> list[str]:
    """Return the mean errors of each design as rows of a table."""
    head = ["samples", "auto", "best fixed", "at", "auto / best", *(f"{e:g}" for e in FIXED)]
    head += ["classical", "mean choice", "range"]
    rows = [head, ["---"] * len(head)]
    for design in DESIGNS:
        found = np.array([errors(design, seed + i) for i in range(runs)])
        mean = found.mean(axis=0)
        fixed, chosen = mean[1:-2], found[:, -1]
        best = int(np.argmin(fixed))
        rows.append(
            [
                design.name,
                f"{mean[0]:.4f}",
                f"{fixed[best]:.4f}",
                f"{FIXED[best]:g}",
                f"{mean[0] / fixed[best]:.2f}",
                *(f"{value:.4f}" for value in fixed),
                "" if np.isnan(mean[-2]) else f"{mean[-2]:.4f}",
                f"{mean[-1]:.3f}",
                f"{chosen.min():g} to {chosen.max():g}",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    return [f"| {' | '.join(row)} |" for row in rows]


def regression(n: int, k: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws a clean regression with a constant and coefficients of one."""

    def draw(rng: np.random.Generator) -> Any:
        exog = np.c_[np.ones(n), rng.normal(size=(n, k - 1))]
        return exog.sum(axis=1) + rng.normal(size=n), exog

    return draw


def labels(rng: np.random.Generator) -> Any:
    """Return 200 clean labels whose coefficients are one."""
    exog = np.c_[np.ones(200), rng.normal(size=(200, 2))]
    return (rng.random(200) < expit(exog.sum(axis=1))).astype(float), exog


def counts(rng: np.random.Generator) -> Any:
    """Return 200 clean counts whose coefficients are one."""
    exog = np.c_[np.ones(200), rng.normal(size=(200, 2))]
    return rng.poisson(np.exp(exog.sum(axis=1))).astype(float), exog


def points(rng: np.random.Generator) -> Any:
    """Return 200 clean points of variances 4, 1, 1, 1."""
    return (rng.normal(size=(200, 4)) * [2.0, 1.0, 1.0, 1.0],)


# Moments in the order of RRMCov's parameters: four means, then the upper triangle by rows.
MOMENTS = np.r_[np.zeros(4), (np.diag([4.0, 1.0, 1.0, 1.0]))[np.triu_indices(4)]]


def moments(sample: Any) -> np.ndarray:
    """Return mean and covariance in the order of RRMCov's parameters."""
    cov = np.cov(sample[0], rowvar=False)
    return np.r_[sample[0].mean(axis=0), cov[np.triu_indices(4)]]


def leading(sample: Any) -> np.ndarray:
    """Return the largest variance."""
    return np.linalg.eigvalsh(np.cov(sample[0], rowvar=False))[-1:]


def around_a_plane(n: int, d: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws clean points of variances 9, 4, 1, ..., 1."""
    return lambda rng: (rng.normal(size=(n, d)) * np.r_[3.0, 2.0, np.ones(d - 2)],)


def two_leading(sample: Any) -> np.ndarray:
    """Return the two largest variances."""
    return np.linalg.eigvalsh(np.cov(sample[0], rowvar=False))[:-3:-1]


CLEAN = [
    *(
        (f"RRMOLS, n = {n}, k = {k}", regression(n, k), RRMOLS, least_squares, np.ones(k))
        for n, k in ((30, 2), (50, 5), (100, 3), (100, 12), (300, 20))
    ),
    (
        "RRMLogit, n = 200, k = 3", labels, RRMLogit,
        lambda sample: np.asarray(sm.Logit(*sample).fit(disp=0).params), np.ones(3),
    ),
    (
        "RRMPoisson, n = 200, k = 3", counts, RRMPoisson,
        lambda sample: np.asarray(sm.Poisson(*sample).fit(disp=0).params), np.ones(3),
    ),
    ("RRMCov, n = 200, d = 4", points, RRMCov, moments, MOMENTS),
    (
        "RRMPCA, n = 200, d = 4, one component", points,
        lambda data, eps_bar: RRMPCA(data, 1, eps_bar), leading, np.array([4.0]),
    ),
    *(
        (
            f"RRMPCA, n = {n}, d = {d}, two components", around_a_plane(n, d),
            lambda data, eps_bar: RRMPCA(data, 2, eps_bar), two_leading, np.array([9.0, 4.0]),
        )
        for n, d in ((40, 4), (200, 5))
    ),
]  # fmt: skip


def clean_table(runs: int, seed: int) -> list[str]:
    """Return what "auto" makes of clean samples as rows of a table."""
    head = ["model", "eps_hat above 0.1", "error / classical", "coverage", "warnings"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | --- | --- |"]
    for name, draw, model, classical, truth in CLEAN:
        found = []
        for i in range(runs):
            sample = draw(np.random.default_rng([seed, i]))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                res = model(*sample, "auto").fit()
            ends = np.asarray(res.conf_int())
            found.append(
                [
                    res.eps_hat > 0.1,
                    np.mean((np.asarray(res.params) - truth) ** 2),
                    np.mean((classical(sample) - truth) ** 2),
                    np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])),
                    bool(caught),
                ]
            )
        bad, error, plain, cover, warned = np.mean(found, axis=0)
        cells = [name, f"{bad:.3f}", f"{error / plain:.2f}", f"{cover:.3f}", f"{warned:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


TEXT = """# The automatic choice, measured

Made by `python benchmarks/choice.py --runs {runs} --clean-runs {clean_runs} --seed {seed}`.
Samples are those of the paper's experiments and of the page on [dirty data](dirty_data.md); none
of them was used to choose the rule. All fits have two steps. Errors are means over {runs} samples:
relative errors for `linreg`, `leverage` and `cov`, squared errors for the others.

## Beside fixed values

{table}

*Classical* is least squares or maximum likelihood, without an entry where outliers ruin it.

## Clean samples

Shares of {clean_runs} samples without a bad row that are called more than a tenth bad, or lead to
a warning; mean squared errors beside those of the classical fit; coverage of 95 % intervals.

{clean}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="samples of each kind")
    parser.add_argument("--clean-runs", type=int, default=200, help="clean samples of each model")
    parser.add_argument("--seed", type=int, default=122_000, help="seed of the first sample")
    parser.add_argument("--out", action="store_true", help=f"write {PAGE.name}")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ModelWarning)
    clean_lines = clean_table(args.clean_runs, args.seed + 1000)
    errors_table = table(args.runs, args.seed)
    if args.out:
        text = TEXT.format(
            runs=args.runs,
            seed=args.seed,
            table="\n".join(errors_table),
            clean_runs=args.clean_runs,
            clean="\n".join(clean_lines),
        )
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
