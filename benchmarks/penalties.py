"""Measure penalized fits: ridge under TERM's protocol, lasso with more columns than rows.

    python benchmarks/penalties.py --out

Lasso and Huber's lasso of skglm are beside them where these are installed; `--out` writes the
tables of docs/penalties.md. Seeds below 1,000 were those of development.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from peers import wide_regression
from sklearn.linear_model import LassoCV, RidgeCV

from rrmstats import RRMOLS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "penalties.md"
# Weights of ridge penalties that are tried.
ALPHAS = (0.3, 0.1, 0.03, 0.01, 0.003)
KINDS = (
    ("clean", 0.0),
    ("vertical", 0.1),
    ("vertical", 0.2),
    ("leverage", 0.1),
    ("leverage", 0.2),
)


def sparse(rng, n, p, kind, share):
    """Return rows of p correlated columns, 10 of which matter, which are bad, and test rows."""
    noise = rng.standard_normal((n + 1000, p))
    exog = noise.copy()
    for j in range(1, p):
        exog[:, j] = 0.5 * exog[:, j - 1] + np.sqrt(0.75) * noise[:, j]
    beta = np.zeros(p)
    beta[rng.choice(p, 10, replace=False)] = rng.choice([-1, 1], 10) * rng.uniform(1, 2, 10)
    endog = exog @ beta + rng.standard_normal(n + 1000)
    bad = rng.permutation(n) < round(share * n)
    x, y = exog[:n].copy(), endog[:n].copy()
    if kind == "vertical":
        y[bad] += 20
    elif kind == "leverage":  # far out in all columns, where the slopes have the other sign
        x[bad] += 5
        y[bad] = -x[bad] @ beta + rng.standard_normal(bad.sum())
    return y, x, bad, endog[n:], exog[n:]


def with_constant(x):
    return np.column_stack([np.ones(len(x)), x])


def error(y, x, params):
    return float(np.sqrt(np.mean((y - params[0] - x @ params[1:]) ** 2)))


def lasso(y, x):
    fit = LassoCV(cv=5).fit(x, y)
    return np.r_[fit.intercept_, fit.coef_]


def huber(y, x):
    """Return Huber's lasso of skglm, its penalty by the median of squares of 5 folds."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Huber
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    middle = np.median(y)
    y = y - middle
    delta = 1.345 * 1.4826 * np.median(np.abs(y)) / 2
    top = np.abs(np.clip(y, -delta, delta) @ x).max() / len(y)
    parts = np.arange(len(y)) % 5

    def fit(rows, alpha):
        net = GeneralizedLinearEstimator(Huber(delta), L1(alpha), AndersonCD(fit_intercept=True))
        net.fit(x[rows], y[rows])
        return np.r_[net.intercept_, net.coef_]

    def score(alpha):
        off = np.empty(len(y))
        for part in range(5):
            params = fit(parts != part, alpha)
            off[parts == part] = (y - params[0] - x @ params[1:])[parts == part]
        return np.median(np.abs(off))

    best = min(top * np.logspace(-0.2, -2, 10), key=score)
    params = fit(slice(None), best)
    params[0] += middle
    return params


def ours(y, x):
    return np.asarray(RRMOLS(y, with_constant(x)).fit_regularized().params)


def plain(y, x):
    return np.asarray(RRMOLS(y, with_constant(x)).fit(stability=False).params)


def sparse_lines(n, p, runs, seed, methods):
    """Return the lines of a table of prediction errors over those of lasso on the good rows."""
    names = " | ".join(method.__name__ for method in methods)
    lines = [
        f"| {n} x {p} | {names} | worst of ours | seconds |",
        "| --- |" + " ---: |" * (len(methods) + 2),
    ]
    for kind, share in KINDS:
        found, took = [], []
        for run in range(runs):
            y, x, bad, y_test, x_test = sparse(
                np.random.default_rng([seed, run]), n, p, kind, share
            )
            oracle = error(y_test, x_test, lasso(y[~bad], x[~bad]))
            errors = []
            for method in methods:
                began = time.process_time()
                errors.append(error(y_test, x_test, method(y, x)) / oracle)
                if method is ours:
                    took.append(time.process_time() - began)
            found.append(errors)
        means = " | ".join(f"{each:.2f}" for each in np.mean(found, axis=0))
        worst = np.max([each[methods.index(ours)] for each in found])
        lines.append(f"| {kind}, {share:.0%} | {means} | {worst:.2f} | {np.median(took):.1f} |")
        print(lines[-1], flush=True)
    return lines


def term_lines(runs, seed):
    """Return the lines of a table of RMSE under TERM's protocol."""
    lines = [
        "| bad rows | least squares | ridge | ours | ridge, good rows | ridge, clean | seconds |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for share in (0.2, 0.4, 0.8):
        found, took = [], []
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            (y, x), bad, (y_test, x_test) = wide_regression(share, rng)
            clean = wide_regression(0.0, np.random.default_rng([seed, run]))[0][0]

            def ridge(rows, values, x=x):
                fit = RidgeCV(3268 * np.array(ALPHAS)).fit(x[rows, 1:], values[rows])
                return np.r_[fit.intercept_, fit.coef_]

            every = np.ones(len(y), bool)
            began = time.process_time()
            bound = 0.9 if share > 0.5 else "auto"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                res = RRMOLS(y, x, bound).fit_regularized(L1_wt=0, alphas=ALPHAS)
            took.append(time.process_time() - began)
            fits = (
                np.linalg.lstsq(x, y, rcond=None)[0], ridge(every, y), np.asarray(res.params),
                ridge(~bad, y), ridge(every, clean),
            )  # fmt: skip
            found.append([error(y_test, x_test[:, 1:], params) for params in fits])
        means = " | ".join(f"{each:.3f}" for each in np.mean(found, axis=0))
        lines.append(f"| {share:.0%} | {means} | {np.median(took):.0f} |")
        print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=2_028_100)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", choices=("term", "wide", "long"))
    parser.add_argument("--out", action="store_true", help="write the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {
        "term": lambda: term_lines(max(1, arguments.runs // 5), arguments.seed),
        "wide": lambda: sparse_lines(100, 500, arguments.runs, arguments.seed, methods(ours)),
        "long": lambda: sparse_lines(
            200, 20, arguments.runs, arguments.seed, methods(ours, plain)
        ),
    }
    for name, table in tables.items():
        if arguments.only not in (None, name):
            continue
        lines = table()
        if arguments.out and name != "long":
            text = PAGE.read_text(encoding="utf-8")
            head, rest = text.split(f"<!-- {name} -->")
            tail = rest.split(f"<!-- end of {name} -->")[1]
            body = "\n".join(lines)
            text = f"{head}<!-- {name} -->\n\n{body}\n\n<!-- end of {name} -->{tail}"
            PAGE.write_text(text, encoding="utf-8")


def methods(*own):
    try:
        import skglm  # noqa: F401, only whether it is there
    except ImportError:
        return (lasso, *own)
    return (lasso, huber, *own)


if __name__ == "__main__":
    main()
