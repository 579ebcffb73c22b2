"""Measure generalized linear models on clean and dirty data, beside robustbase's glmrob.

Five tables: errors of the parameters beside those of maximum likelihood and of glmrob, what many
zeros do, what intervals cover, how close the consistent parameters come to the true ones as n
grows, and counts that vary more than Poisson ones.
"""

import argparse
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import statsmodels.api as sm

from replication.samples import (
    DIRT,
    FAMILY_NAMES,
    RESPONSE_PARAMS,
    count_bad,
    dirty_responses,
    extreme_flips,
    logistic_labels,
    normal_design,
)
from rrmstats import RRMGLM, RRMLogit

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs" / "glm.md"
# What glmrob found, so that the page can be made again without R.
STORED = FOLDER / "glm_glmrob.csv"
FAMILIES = {
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "binomial": sm.families.Binomial(),
    "labels": sm.families.Binomial(),
}
PEERS = {
    "poisson": ("Mqle", "Mqle robCov", "MT"),
    "gamma": ("Mqle", "Mqle robCov"),
    "binomial": ("Mqle", "Mqle robCov"),
    "labels": ("Mqle", "Mqle robCov", "BY", "WBY"),
}
LABEL_PARAMS = (0.0, 1.0, -0.5)
PARTS = ("errors", "coverage", "zeros", "consistency", "overdispersion")
# Variance of negative binomial counts: mean + OVERDISPERSION * mean^2.
OVERDISPERSION = 1.0
# Errors that are asked for: over those of the good rows, and over those of maximum likelihood.
ZEROS_ASKED, OVERDISPERSED_ASKED = 1.5, 1.2


class Cell(NamedTuple):
    """Samples of one kind, and how they are fitted."""

    family: str
    kind: str
    n: int = 300
    share: float = 0.1
    eps_bar: float = 0.2

    @property
    def truth(self) -> np.ndarray:
        return np.array(LABEL_PARAMS if self.family == "labels" else RESPONSE_PARAMS[self.family])

    @property
    def bad(self) -> int:
        return 0 if self.kind == "clean" else count_bad(self.n, self.share)


def error_cells() -> Iterator[Cell]:
    for family in FAMILY_NAMES:
        for kind in DIRT:
            yield Cell(family, kind)
    for kind in ("clean", "flipped at extremes"):
        yield Cell("labels", kind, 500, 0.05, 0.1)


def zero_cells() -> Iterator[Cell]:
    for share, eps_bar in ((0.1, 0.4), (0.2, 0.3), (0.2, 0.4), (0.3, 0.4)):
        yield Cell("poisson", "low at the top", share=share, eps_bar=eps_bar)


def overdispersed_cells() -> Iterator[Cell]:
    for n, eps_bar in ((300, 0.1), (300, 0.2), (300, 0.4), (1000, 0.2)):
        yield Cell("poisson", "negative binomial", n, 0.0, eps_bar)


def coverage_cells() -> Iterator[Cell]:
    for family in FAMILY_NAMES:
        for kind in DIRT:
            yield Cell(family, kind, 500, 0.05, 0.1)


def draw(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return endog and exog; bad rows come first."""
    rng = np.random.default_rng(seed)
    if cell.kind == "negative binomial":
        exog = normal_design(rng, cell.n, len(cell.truth))
        mean = np.exp(exog @ cell.truth)
        size = 1 / OVERDISPERSION
        return rng.negative_binomial(size, size / (size + mean)).astype(float), exog
    if cell.family != "labels":
        return dirty_responses(rng, cell.family, cell.kind, cell.n, cell.share)
    if cell.kind == "clean":
        return logistic_labels(rng, cell.n, LABEL_PARAMS)
    return extreme_flips(rng, cell.n, LABEL_PARAMS, cell.share)


def likelihood(cell: Cell, endog: np.ndarray, exog: np.ndarray) -> np.ndarray:
    return np.asarray(sm.GLM(endog, exog, family=FAMILIES[cell.family]).fit().params)


def fitted(cell: Cell, endog: np.ndarray, exog: np.ndarray) -> Any:
    return RRMGLM(endog, exog, cell.eps_bar, family=FAMILIES[cell.family]).fit()


def errors(cell: Cell, seed: int) -> dict[str, float]:
    """Return the distances of the parameters of each method from the true ones."""
    endog, exog = draw(cell, seed)
    good = slice(cell.bad, None)
    two = fitted(cell, endog, exog)
    params = {
        "good rows": likelihood(cell, endog[good], exog[good]),
        "max. likelihood": likelihood(cell, endog, exog),
        "raw": two.first_step.raw_params,
        "one step": two.first_step.params,
        "two steps": two.params,
    }
    if cell.family == "labels":
        params["RRMLogit"] = RRMLogit(endog, exog, cell.eps_bar).fit().params
    found = {name: float(np.linalg.norm(p - cell.truth)) for name, p in params.items()}
    return found | {"eps_hat": two.eps_hat, "flagged": float(np.mean(two.outliers()))}


def coverage(cell: Cell, seed: int) -> dict[str, float]:
    """Return the share of slopes that intervals cover, and of good and bad rows flagged."""
    endog, exog = draw(cell, seed)
    two = fitted(cell, endog, exog)
    found = {}
    for name, res in (("one step", two.first_step), ("two steps", two)):
        low, high = res.conf_int()[1:].T
        found[name] = float(np.mean((low <= cell.truth[1:]) & (cell.truth[1:] <= high)))
    flags = two.outliers()
    found["good flagged"] = float(flags[cell.bad :].mean())
    found["bad flagged"] = float(flags[: cell.bad].mean()) if cell.bad else np.nan
    return found


def peer_errors(cell: Cell, runs: int, seed: int) -> pd.DataFrame:
    """Return the errors of glmrob's methods on the same samples, one row per sample."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(runs):
            endog, exog = draw(cell, seed + i)
            np.savetxt(f"{folder}/{i}.csv", np.c_[endog, exog[:, 1:]], delimiter=",")
        truth = ",".join(str(value) for value in cell.truth)
        command = ["Rscript", str(FOLDER / "glm.R"), folder, cell.family, str(runs), truth]
        # MT keeps a file of its own in the working directory
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        text = done.stdout
    values = [
        [float(v) for v in line.replace("NA", "nan").split(",")] for line in text.splitlines()
    ]
    frame = pd.DataFrame(values, columns=PEERS[cell.family])
    return frame.assign(family=cell.family, kind=cell.kind, seed=seed + np.arange(runs))


def store_peers(runs: int, seed: int) -> None:
    """Run glmrob on all samples of the table of errors, and store what it finds."""
    parts = []
    for cell in error_cells():
        parts.append(peer_errors(cell, runs, seed))
        print(
            cell.family, cell.kind, parts[-1][list(PEERS[cell.family])].mean().round(3).to_dict()
        )
        pd.concat(parts).to_csv(STORED, index=False, float_format="%.6g")


def peer_means(cell: Cell, runs: int, seed: int) -> dict[str, str]:
    """Return the mean errors of glmrob's methods, of what is stored."""
    if not STORED.exists():
        return {}
    table = pd.read_csv(STORED)
    seeds = table["seed"].between(seed, seed + runs - 1)
    rows = table[(table["family"] == cell.family) & (table["kind"] == cell.kind) & seeds]
    if len(rows) < runs:
        return {}
    return {name: f"{rows[name].mean():.3f}" for name in PEERS[cell.family]}


def simulated(function: Any, cell: Cell, runs: int, seed: int, jobs: int) -> dict[str, float]:
    """Return the means over samples of what a function of a cell and a seed finds."""
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=jobs)(delayed(function)(cell, seed + i) for i in range(runs))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def table(lines: list[dict[str, str]]) -> str:
    """Return lines as a table in Markdown."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    rule = ["---" if name in ("family", "bad rows", "bad zeros") else "---:" for name in names]
    rows = [[line.get(name, "") for name in names] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in [names, rule, *rows])


def error_table(runs: int, seed: int, jobs: int, only: str) -> list[dict[str, str]]:
    lines = []
    for cell in error_cells():
        if only not in f"{cell.family} {cell.kind}":
            continue
        values = simulated(errors, cell, runs, seed, jobs)
        line = {"family": cell.family, "bad rows": cell.kind}
        line |= {name: f"{value:.3f}" for name, value in values.items()}
        lines.append(line | peer_means(cell, runs, seed))
        print(lines[-1], flush=True)
    return lines


def zeros(cell: Cell, seed: int) -> dict[str, float]:
    """Return errors where counts of zero are many, and whether the summary warns."""
    endog, exog = draw(cell, seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        two = fitted(cell, endog, exog)
        stable = two.stability.stable
    params = {
        "good rows": likelihood(cell, endog[cell.bad :], exog[cell.bad :]),
        "max. likelihood": likelihood(cell, endog, exog),
        "one step": two.first_step.params,
        "two steps": two.params,
    }
    found = {name: float(np.linalg.norm(p - cell.truth)) for name, p in params.items()}
    return found | {
        "eps_hat": two.eps_hat,
        "warned": float(bool(told) or not stable),
        "told as zeros": float("zeros" in two.explanation.name),
    }


def overdispersion(cell: Cell, seed: int) -> dict[str, float]:
    """Return errors where counts are negative binomial, and whether the explanation says so."""
    endog, exog = draw(cell, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = fitted(cell, endog, exog)
    params = {
        "max. likelihood": likelihood(cell, endog, exog),
        "one step": two.first_step.params,
        "two steps": two.params,
    }
    found = {name: float(np.linalg.norm(p - cell.truth)) for name, p in params.items()}
    return found | {
        "eps_hat": two.eps_hat,
        "told as overdispersed": float("overdispersed" in two.explanation.name),
    }


def verdict(values: dict[str, float], bound: float, base: str, told: bool) -> str:
    """Return whether the error of two steps is as asked."""
    return "ok" if told or values["two steps"] <= bound * values[base] else "MISSED"


def zeros_table(runs: int, seed: int, jobs: int) -> list[dict[str, str]]:
    lines = []
    for cell in zero_cells():
        values = simulated(zeros, cell, runs, seed, jobs)
        line = {"bad zeros": f"{cell.share:.0%}", "eps_bar": f"{cell.eps_bar:g}"}
        lines.append(line | {name: f"{value:.3f}" for name, value in values.items()})
        told = values["told as zeros"] > 0.5
        print(lines[-1], verdict(values, ZEROS_ASKED, "good rows", told), flush=True)
    return lines


def overdispersion_table(runs: int, seed: int, jobs: int) -> list[dict[str, str]]:
    lines = []
    for cell in overdispersed_cells():
        values = simulated(overdispersion, cell, runs, seed, jobs)
        line = {"n": f"{cell.n}", "eps_bar": f"{cell.eps_bar:g}"}
        lines.append(line | {name: f"{value:.3f}" for name, value in values.items()})
        reached = verdict(values, OVERDISPERSED_ASKED, "max. likelihood", told=False)
        if values["told as overdispersed"] <= 0.5:
            reached = "MISSED"
        print(lines[-1], reached, flush=True)
    return lines


def coverage_table(runs: int, seed: int, jobs: int, only: str) -> list[dict[str, str]]:
    lines = []
    for cell in coverage_cells():
        if only not in f"{cell.family} {cell.kind}":
            continue
        values = simulated(coverage, cell, runs, seed, jobs)
        line = {"family": cell.family, "bad rows": cell.kind}
        lines.append(
            line | {name: "" if np.isnan(v) else f"{v:.3f}" for name, v in values.items()}
        )
        print(lines[-1], flush=True)
    return lines


def consistency_table(seed: int) -> list[dict[str, str]]:
    """Return the largest error of a slope or intercept on clean data that grow."""
    lines = []
    for family in FAMILY_NAMES:
        for eps_bar in (0.1, 0.2, 0.4):
            line = {"family": family, "eps_bar": f"{eps_bar:g}"}
            for n in (1_000, 10_000, 100_000):
                cell = Cell(family, "clean", n, 0.0, eps_bar)
                endog, exog = draw(cell, seed)
                res = RRMGLM(endog, exog, eps_bar, family=FAMILIES[family]).fit(steps=1)
                for name, params in (("raw", res.raw_params), ("consistent", res.params)):
                    line[f"{name}, n = {n:,}"] = f"{np.abs(params - cell.truth).max():.4f}"
            lines.append(line)
            print(line, flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--coverage-runs", type=int, default=200, help="samples for coverage")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=727_000, help="seed of the first sample")
    parser.add_argument("--only", default="", help="cells such as 'poisson clean' to run alone")
    parser.add_argument("--zeros-runs", type=int, default=100, help="samples with many zeros")
    parser.add_argument("--part", choices=PARTS, help="one of the tables alone")
    parser.add_argument("--peers", action="store_true", help="run glmrob and store its errors")
    args = parser.parse_args()
    if args.peers:
        store_peers(args.runs, args.seed)
        return
    tables = {
        "errors": lambda: error_table(args.runs, args.seed, args.jobs, args.only),
        "coverage": lambda: coverage_table(args.coverage_runs, args.seed, args.jobs, args.only),
        "zeros": lambda: zeros_table(args.zeros_runs, args.seed, args.jobs),
        "consistency": lambda: consistency_table(args.seed),
        "overdispersion": lambda: overdispersion_table(args.zeros_runs, args.seed, args.jobs),
    }
    chosen = [args.part] if args.part else PARTS[: 2 if args.only else None]
    parts = {name: tables[name]() for name in chosen}
    if args.only:
        return
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if start not in text:  # printed alone
            continue
        head, rest = text.split(start)
        text = f"{head}{start}\n\n{table(lines)}\n\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
