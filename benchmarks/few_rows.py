"""Measure how few rows decide a term: refits beside influence functions alone, and the time.

    python benchmarks/few_rows.py --out

Classical and robust regressions; `--out` writes the table of docs/few_rows.md.
"""

import argparse
import os
import time
import warnings
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm

from rrmstats import RRMOLS, few_rows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "few_rows.md"
# Number of rows, and of samples.
SIZES = ((15, 40), (5_000, 10), (100_000, 2))
# Largest sets that are compared with all subsets.
MOST = 3


def sample(rng, n):
    """Return a response and a design, one row in fifty of which is far out."""
    exog = sm.add_constant(rng.standard_normal((n, 2)))
    endog = exog @ [1.0, 0.1, 0.0] + rng.standard_normal(n)
    bad = rng.permutation(n) < max(n // 50, 1)
    exog[bad, 1] += 3
    endog[bad] += 5
    return endog, exog


def classical(endog, exog):
    return sm.OLS(endog, exog).fit()


def robust(endog, exog):
    return RRMOLS(endog, exog, eps_bar=0.2).fit(stability=False)


def overturned(before, after, what):
    opposite = before.params[1] * after.params[1] < 0
    if what == "sign":
        return opposite
    sure, still = (res.pvalues[1] < 0.05 for res in (before, after))
    return (opposite or not still) if sure else still


def smallest(endog, exog, what, most):
    """Return the size of the smallest set of least squares, from all subsets of up to `most`."""
    before, places = classical(endog, exog), np.arange(len(endog))
    for size in range(1, most + 1):
        for rows in combinations(places, size):
            keep = np.delete(places, rows)
            if overturned(before, classical(endog[keep], exog[keep]), what):
                return size
    return most + 1


def measured(fit, n, runs, what, seed):
    """Return a line of the table."""
    sizes, predicted, confirmed, exact, took = [], [], [], [], []
    for run in range(runs):
        endog, exog = sample(np.random.default_rng([seed, n, run]), n)
        res = fit(endog, exog)
        began = time.process_time()
        found = few_rows(res, "x1", what)
        took.append(time.process_time() - began)
        confirmed.append(found.confirmed)
        if found.confirmed:
            sizes.append(found.n_rows)
        if found.n_predicted is not None:
            predicted.append(found.n_predicted)
        if n == 15 and fit is classical:
            most = min(MOST, found.n_rows)
            exact.append(smallest(endog, exog, what, most) == min(found.n_rows, MOST + 1))
    known = f"{np.mean(exact):.0%}" if exact else ""
    told = f"{np.median(predicted):,.0f} ({len(predicted)})" if predicted else "none"
    return (
        f"| {n:,} | {fit.__name__} | {what} | {np.median(sizes) if sizes else np.nan:,.0f} | "
        f"{told} | {sum(confirmed)} of {runs} | {known} | {np.median(took):.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=2_028_000)
    parser.add_argument("--out", action="store_true", help="write the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| rows | fit | what | rows removed | predicted | confirmed | smallest | seconds |",
        "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, runs in SIZES:
        for fit in (classical, robust):
            for what in ("sign", "significance"):
                count = runs if fit is classical or n > 15 else runs // 4
                lines.append(measured(fit, n, count, what, arguments.seed))
                print(lines[-1], flush=True)
    if arguments.out:
        text = PAGE.read_text(encoding="utf-8")
        head, rest = text.split("<!-- few rows -->")
        tail = rest.split("<!-- end of few rows -->")[1]
        table = "\n".join(lines)
        text = f"{head}<!-- few rows -->\n\n{table}\n\n<!-- end of few rows -->{tail}"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
