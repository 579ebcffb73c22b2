"""Measure what wrong classes do to multinomial fits, by how unlikely they are and by eps_bar."""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from likelihoods import SLOPES, draw

import rrmstats

PAGE = Path(__file__).resolve().parents[1] / "docs" / "likelihoods.md"
BOUNDS = (0.1, 0.2)
# Class that wrong rows have: class 1 is the likeliest there, then 0, then 2.
WRONG = {"none": 0, "least likely": 2, "second": 0}
SHARES = {"none": (0.0,), "least likely": (0.05, 0.1), "second": (0.05, 0.1)}


def errors(kind: str, share: float, seed: int) -> list[float]:
    """Return the errors of maximum likelihood and of each eps_bar on one sample."""
    sample = draw("MNLogit", 0, seed)
    endog, exog = np.array(sample.model.endog), sample.model.exog
    far = np.argsort(-(exog[:, 1:] @ SLOPES))[: round(share * len(endog))]
    endog[far] = WRONG[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [sm.MNLogit(endog, exog).fit(disp=0)]
        fits += [
            rrmstats.robustify(sm.MNLogit(endog, exog), bound).fit(stability=False)
            for bound in BOUNDS
        ]
    slopes = [np.asarray(fit.params).ravel(order="F")[sample.slopes] for fit in fits]
    return [float(np.linalg.norm(found - sample.truth)) for found in slopes]


def table(runs: int, seed: int) -> str:
    """Return mean errors as a table in Markdown."""
    names = ["wrong class", "rows", "max. likelihood", *(f"eps_bar = {b}" for b in BOUNDS)]
    rows = [names, ["---", "---:", *("---:" for _ in names[2:])]]
    for kind, shares in SHARES.items():
        for share in shares:
            means = np.mean([errors(kind, share, seed + i) for i in range(runs)], axis=0)
            rows.append([kind, f"{100 * share:.0f} %", *(f"{mean:.2f}" for mean in means)])
            print(rows[-1], flush=True)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="samples of each line")
    parser.add_argument("--seed", type=int, default=172_000, help="seed of the first sample")
    args = parser.parse_args()
    made = table(args.runs, args.seed)
    made += f"\n\nMeans over {args.runs} samples per line, seeds from {args.seed}."
    text = PAGE.read_text(encoding="utf-8")
    start, end = "<!-- classes -->", "<!-- end of classes -->"
    head, rest = text.split(start)
    PAGE.write_text(f"{head}{start}\n\n{made}\n\n{end}{rest.split(end)[1]}", "utf-8")


if __name__ == "__main__":
    main()
