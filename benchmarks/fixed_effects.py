"""Measure regressions with fixed effects: errors, coverage of intervals, and speed.

    python benchmarks/fixed_effects.py                 # 100 panels, seeds from 4,000,000
    python benchmarks/fixed_effects.py --speed         # 1,000 x 1,000 rows

The panels are those of the R package ferols: 1,000 firms in 10 years, predictor and errors with an
effect of the firm and of the year and an AR(1) rest in each firm, and a tenth of the errors times
ten. With --leverage 0.1 a tenth of the rows besides has predictors far out, and responses that do
not depend on them. The oracle is least squares on the good rows, "OLS" that on all.
"""

import argparse
import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd

import rrmstats

FORMULA = "y ~ x | firm + year"


def autoregressive(rng, units, periods, rho=0.5):
    """Return stationary noise of variance one, each unit by itself, shape (units * periods,)."""
    found = rng.standard_normal((units, periods))
    for j in range(1, periods):
        found[:, j] = rho * found[:, j - 1] + np.sqrt(1 - rho**2) * found[:, j]
    return found.ravel()


def panel(rng, units=1000, periods=10, leverage=0.0):
    """Return a panel whose slope is one, with its bad rows marked."""
    firm, year = np.repeat(np.arange(units), periods), np.tile(np.arange(periods), units)
    n, shared = (
        units * periods,
        rng.standard_normal(units)[firm] + rng.standard_normal(periods)[year],
    )
    x = shared + autoregressive(rng, units, periods)
    error = autoregressive(rng, units, periods)
    bad = rng.random(n) < 0.1
    y = x + shared + np.where(bad, 10 * error, error)
    far = rng.random(n) < leverage
    y = np.where(far, shared + rng.standard_normal(n), y)
    x = np.where(far, x + 20 + 10 * rng.standard_normal(n), x)
    return pd.DataFrame({"y": y, "x": x, "firm": firm, "year": year, "bad": bad | far})


def accuracy(count, seed, leverage, periods):
    """Print errors of slopes, and coverage of intervals clustered by firm."""
    errors, covered, ratios = [], [], []
    for each in range(count):
        frame = panel(np.random.default_rng(seed + each), periods=periods, leverage=leverage)
        ours = rrmstats.feols(FORMULA, frame, stability=False)
        oracle = rrmstats.feols(FORMULA, frame[~frame.bad], 0, stability=False)
        plain = rrmstats.feols(FORMULA, frame, 0, stability=False)
        errors.append([res.params["x"] - 1 for res in (ours, oracle, plain)])
        low, high = ours.conf_int().loc["x"]
        covered.append(low <= 1 <= high)
        ratios.append(ours.bse["x"] / oracle.bse["x"])
    rmse = np.sqrt(np.mean(np.square(errors), axis=0))
    print(f"{count} panels of 1,000 x {periods}, seeds from {seed}, leverage rows {leverage:.0%}")
    print("RMSE: ours {:.5f}, oracle {:.5f}, OLS {:.5f}".format(*rmse))
    print(f"ours / oracle {rmse[0] / rmse[1]:.3f}; mean error {np.mean(errors, axis=0)[0]:+.5f}")
    print(f"coverage of 95 % intervals clustered by firm: {np.mean(covered):.3f}")
    print(f"standard errors relative to the oracle's: {np.mean(ratios):.3f}")


def speed(sizes):
    """Print process time and memory of balanced panels."""
    for units, periods in sizes:
        frame = panel(np.random.default_rng(0), units, periods)
        start = time.process_time()
        res = rrmstats.feols(FORMULA, frame)
        took = time.process_time() - start
        tracemalloc.start()
        rrmstats.feols(FORMULA, frame, stability=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        told = f"{took:.1f} s, {peak / len(frame):,.0f} bytes per row at most"
        print(f"{units} x {periods} rows: {told}, slope {res.params['x']:.4f}")


def main():
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=4_000_000)
    parser.add_argument("--leverage", type=float, default=0.0)
    parser.add_argument("--periods", type=int, default=10)
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.speed:
        speed(((1000, 10), (1000, 100), (1000, 1000)))
    else:
        accuracy(args.panels, args.seed, args.leverage, args.periods)


if __name__ == "__main__":
    main()
