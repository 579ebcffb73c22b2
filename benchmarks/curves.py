"""Measure nonlinear regression beside least squares on the good rows, and what intervals cover.

    python benchmarks/curves.py --runs 100 --out

Five curves with a share of bad points; `--out` writes the table of docs/curves.md.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import curve_fit
from scipy.stats import t

from rrmstats import RRMNLS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "curves.md"
SHARES = (0.0, 0.1, 0.2, 0.3)


def decay(x, a, b, c):
    return a * np.exp(-b * x) + c


def michaelis_menten(x, top, half):
    return top * x / (half + x)


def growth(x, top, rate, middle):
    return top / (1 + np.exp(-rate * (x - middle)))


def peak(x, height, middle, width, base):
    return height * np.exp(-((x - middle) ** 2) / (2 * width**2)) + base


def damped_sine(x, height, damping, frequency, phase):
    return height * np.exp(-damping * x) * np.sin(frequency * x + phase)


# Function, truth, range of x, standard deviation of the noise, start.
CURVES = {
    "exponential decay": (decay, (2.5, 1.3, 0.5), (0, 4), 0.1, (1, 1, 1)),
    "Michaelis and Menten": (michaelis_menten, (10, 2), (0.1, 10), 0.5, (5, 1)),
    "logistic growth": (growth, (10, 1.5, 5), (0, 10), 0.4, (8, 1, 4)),
    "Gaussian peak": (peak, (5, 3, 0.7, 1), (0, 6), 0.3, (3, 2.5, 1, 0)),
    "damped sine": (damped_sine, (4, 0.3, 3, 0.5), (0, 6), 0.3, (3, 0.2, 2.8, 0)),
}


def sample(rng, curve, share, n=100):
    """Return points of a curve, and which of them are bad."""
    function, truth, ends, noise, _ = curve
    x = np.sort(rng.uniform(*ends, n))
    y = function(x, *truth) + noise * rng.standard_normal(n)
    bad = rng.permutation(n) < round(share * n)
    away = rng.choice([8.0, 15.0], bad.sum()) + 4 * rng.standard_normal(bad.sum())
    y[bad] += noise * away
    return x, y, bad


def measured(curve, share, runs, seed):
    """Return error over that of the good rows, coverages, share found, seconds per fit."""
    function, truth, ends, _, start = curve
    grid = np.linspace(*ends, 200)
    true = function(grid, *truth)
    own, good, hits, plain, found, took = [], [], [], [], [], 0.0
    for run in range(runs):
        x, y, bad = sample(np.random.default_rng([seed, run]), curve, share)
        began = time.process_time()
        # A height of -a at another phase, and a width of -s, are the same curve.
        res = RRMNLS(function, x, y, p0=start, bounds=(0, np.inf)).fit()
        took += time.process_time() - began
        oracle, cov = curve_fit(function, x[~bad], y[~bad], truth, maxfev=10_000)
        own.append(np.mean((function(grid, *res.params) - true) ** 2))
        good.append(np.mean((function(grid, *oracle) - true) ** 2))
        low, high = np.asarray(res.conf_int()).T
        hits.append((low < truth) & (truth < high))
        reach = t.ppf(0.975, (~bad).sum() - len(truth)) * np.sqrt(np.diag(cov))
        plain.append(np.abs(oracle - truth) < reach)
        found.append(res.eps_hat)
    ratio = np.mean(own) / np.mean(good)
    return ratio, np.mean(hits), np.mean(plain), np.mean(found), took / runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--seed", type=int, default=1_027_000)
    parser.add_argument("--out", action="store_true", help="write the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| curve | bad points | error | coverage | of good points | eps_hat |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, curve in CURVES.items():
        for share in SHARES:
            error, *told, took = measured(curve, share, arguments.runs, arguments.seed)
            shown = " | ".join(f"{each:.3f}" for each in told)
            lines.append(f"| {name} | {share:.0%} | {error:.2f} | {shown} |")
            print(lines[-1], f"{1e3 * took:.0f} ms", flush=True)
    if arguments.out:
        text = PAGE.read_text(encoding="utf-8")
        head, rest = text.split("<!-- curves -->")
        tail = rest.split("<!-- end of curves -->")[1]
        table = "\n".join(lines)
        text = f"{head}<!-- curves -->\n\n{table}\n\n<!-- end of curves -->{tail}"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
