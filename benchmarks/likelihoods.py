"""Measure what intervals of robustified statsmodels models cover, on clean and dirty data."""

import argparse
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

import rrmstats

PAGE = Path(__file__).resolve().parents[1] / "docs" / "likelihoods.md"
N, EPS_BAR = 500, 0.1
SLOPES = np.array([0.5, -0.3])
KINDS = {"clean": 0, "5 % bad": N // 20}
# Models of labels: a wrong label is one at the largest linear predictors.
LABELS = ("Probit", "OrderedModel", "MNLogit")


class Sample(NamedTuple):
    """A model, and where its slopes are among the parameters."""

    model: Any
    slopes: slice
    truth: np.ndarray


def draw(name: str, n_bad: int, seed: int) -> Sample:
    """Return a model of which some rows are bad."""
    rng = np.random.default_rng(seed)
    exog = sm.add_constant(rng.standard_normal((N, 2)))
    far = np.argsort(-(exog[:, 1:] @ SLOPES))[:n_bad]
    first = np.arange(n_bad)
    mean = np.exp(0.8 + exog[:, 1:] @ SLOPES)
    if name == "Poisson":
        endog = rng.poisson(mean)
        endog[first] = 60
        return Sample(sm.Poisson(endog, exog), slice(1, 3), SLOPES)
    if name == "NegativeBinomial":
        endog = rng.poisson(rng.gamma(2.0, mean / 2.0))
        endog[first] = 200
        return Sample(sm.NegativeBinomial(endog, exog), slice(1, 3), SLOPES)
    if name == "BetaModel":
        p = 1 / (1 + np.exp(-(exog[:, 1:] @ SLOPES)))
        endog = rng.beta(10 * p, 10 * (1 - p))
        endog[first] = 0.005
        return Sample(BetaModel(endog, exog), slice(1, 3), SLOPES)
    if name == "Probit":
        truth = 2 * SLOPES
        endog = (exog[:, 1:] @ truth + rng.standard_normal(N) > 0).astype(float)
        endog[far] = 0
        return Sample(sm.Probit(endog, exog), slice(1, 3), truth)
    truth = 2 * SLOPES
    if name == "OrderedModel":
        levels = np.digitize(exog[:, 1:] @ truth + rng.logistic(size=N), [-1, 1])
        levels[far] = 0
        return Sample(OrderedModel(levels, exog[:, 1:], distr="logit"), slice(0, 2), truth)
    chances = np.column_stack([np.zeros(N), exog[:, 1:] @ truth, exog[:, 1:] @ -truth])
    choice = (chances + rng.gumbel(size=(N, 3))).argmax(axis=1)
    choice[far] = 2
    return Sample(sm.MNLogit(choice, exog), slice(1, 3), truth)


def covered(sample: Sample, params: Any, errors: Any) -> tuple[float, float]:
    """Return the share of slopes within two standard errors, and their distance from the truth."""
    off = np.asarray(params).ravel(order="F")[sample.slopes] - sample.truth
    error = np.asarray(errors).ravel(order="F")[sample.slopes]
    return float(np.mean(np.abs(off) <= 1.96 * error)), float(np.linalg.norm(off))


def run(name: str, n_bad: int, seed: int) -> dict[str, float]:
    """Return what the intervals of each method cover on one sample, and its errors."""
    sample = draw(name, n_bad, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = draw(name, n_bad, seed).model.fit(disp=0)
        res = rrmstats.robustify(sample.model, EPS_BAR).fit(stability=False)
    steps = {"one step": res.first_step or res}
    if res.steps == 2:
        steps["two steps"] = res
    found = {"max. likelihood": covered(sample, own.params, own.bse)}
    found |= {step: covered(sample, r.params, r.bse) for step, r in steps.items()}
    values = {f"coverage, {method}": value for method, (value, _) in found.items()}
    values |= {f"error, {method}": value for method, (_, value) in found.items()}
    return values | {"converged": float(res.converged)}


def lines(runs: int, seed: int, only: str) -> list[dict[str, str]]:
    """Return the lines of the table."""
    found = []
    for name in ("Poisson", "NegativeBinomial", "BetaModel", *LABELS):
        for kind, n_bad in KINDS.items():
            if only not in f"{name} {kind}":
                continue
            values = [run(name, n_bad, seed + i) for i in range(runs)]
            means = {key: np.mean([one[key] for one in values]) for key in values[0]}
            line = {"model": name, "rows": kind}
            found.append(line | {key: f"{value:.3f}" for key, value in means.items()})
            print(found[-1], flush=True)
    return found


def table(found: list[dict[str, str]]) -> str:
    """Return lines as a table in Markdown."""
    measured = [f"{what}, {m}" for what in ("coverage", "error") for m in METHODS]
    names = ["model", "rows", *measured, "converged"]
    rule = ["---", "---", *("---:" for _ in measured), "---:"]
    rows = [[line.get(name, "") for name in names] for line in found]
    return "\n".join(f"| {' | '.join(row)} |" for row in [names, rule, *rows])


METHODS = ("max. likelihood", "one step", "two steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="samples of each cell")
    parser.add_argument("--seed", type=int, default=171_000, help="seed of the first sample")
    parser.add_argument("--only", default="", help="a cell such as 'Poisson clean' to run alone")
    args = parser.parse_args()
    found = lines(args.runs, args.seed, args.only)
    if args.only:
        return
    text = PAGE.read_text(encoding="utf-8")
    start, end = "<!-- coverage -->", "<!-- end of coverage -->"
    head, rest = text.split(start)
    made = f"{table(found)}\n\nMeans over {args.runs} samples per line, seeds from {args.seed}."
    PAGE.write_text(f"{head}{start}\n\n{made}\n\n{end}{rest.split(end)[1]}", "utf-8")


if __name__ == "__main__":
    main()
