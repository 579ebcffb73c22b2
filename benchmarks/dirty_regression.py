"""Measure linear regression on data that really are dirty, beside robustbase and clean rows.

Every cell fits the same samples. The error of a fit is compared with that of least squares on the
good rows alone. Samples whose global minimum is itself wrong are told apart: a descent from the
good rows' fit ends far from it, at a higher risk.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from replication.samples import count_bad, distant_regression, leverage_shift
from rrmstats import RRMOLS
from rrmstats.core import minimize
from rrmstats.losses import SquaresProblem

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "docs" / "dirty_data.md"
# Standard deviations of the noise between two ends of descents past which one of them is wrong.
FAR = 1.5
KINDS = ("10 sd", "5 sd", "leverage", "near leverage")
FAR_KINDS = ("10 sd", "leverage")
PEERS = ("lmrob", "lmrob KS2014", "ltsReg")


class Cell(NamedTuple):
    """Samples of one kind and size, and how they are fitted."""

    n: int
    k: int
    eps_bar: float
    share: float
    kind: str


def cells() -> Iterator[Cell]:
    for n, k, eps_bar, shares, kinds in (
        (400, 4, 0.4, (0.1, 0.2, 0.3, 0.4), KINDS),
        (100, 4, 0.4, (0.1, 0.2, 0.3, 0.4), KINDS),
        (100, 10, 0.2, (0.1, 0.2), FAR_KINDS),
        (100, 10, 0.4, (0.1, 0.2, 0.3, 0.4), KINDS),
    ):
        yield Cell(n, k, eps_bar, 0.0, "clean")
        for share in shares:
            for kind in kinds:
                yield Cell(n, k, eps_bar, share, kind)


def draw(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return endog and exog; bad rows come first."""
    rng = np.random.default_rng([seed, cell.n, cell.k])
    params = np.ones(cell.k)
    if cell.kind == "near leverage":
        return leverage_shift(rng, cell.n, params, cell.share, 1.0)
    if cell.kind == "leverage":
        return distant_regression(rng, "cluster", cell.n, params, cell.share, 10.0)
    distance = 5.0 if cell.kind == "5 sd" else 10.0
    return distant_regression(rng, "vertical", cell.n, params, cell.share, distance)


def wrong_minimum(endog: np.ndarray, exog: np.ndarray, eps_bar: float, fits: Any) -> bool:
    """Tell whether the least risk lies far from the good rows' fit."""
    clean, found = fits
    near = minimize(SquaresProblem(endog, exog), eps_bar, n_starts=0, start_theta=clean)
    far = np.linalg.norm(near.theta - found.params) > FAR
    return bool(far and near.risk > found.risk * (1 + 1e-6))


def run(cell: Cell, seed: int) -> dict[str, float]:
    """Return squared errors, scale and eps_hat of one sample."""
    endog, exog = draw(cell, seed)
    good = slice(count_bad(cell.n, cell.share), None)
    two = RRMOLS(endog, exog, cell.eps_bar).fit()
    one = two.first_step
    clean = np.linalg.lstsq(exog[good], endog[good], rcond=None)[0]
    errors = {
        name: float(((params - 1) ** 2).sum())
        for name, params in (("clean", clean), ("one", one.params), ("two", two.params))
    }
    return errors | {
        "scale": two.scale,
        "eps_hat": two.eps_hat,
        "flagged": float(np.mean(two.outliers())),
        "wrong": wrong_minimum(endog, exog, cell.eps_bar, (clean, one)),
    }


def peer_errors(cell: Cell, runs: int, seed: int) -> dict[str, np.ndarray]:
    """Return squared errors of robustbase's fits to the same samples, shape (runs,) each."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(runs):
            endog, exog = draw(cell, seed + i)
            np.savetxt(f"{folder}/{i}.csv", np.c_[endog, exog[:, 1:]], delimiter=",")
        script = str(FOLDER / "dirty_regression.R")
        command = ["Rscript", script, folder, str(runs), str(cell.eps_bar)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    table = np.array([line.split(",") for line in text.splitlines()], dtype=float)
    return dict(zip(PEERS, table.T, strict=True))


def line_of(cell: Cell, runs: int, seed: int, jobs: int, peers: bool) -> list[str]:
    """Return a row of the table."""
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=jobs)(delayed(run)(cell, seed + i) for i in range(runs))
    right = np.array([not one["wrong"] for one in found])
    values = {name: np.array([one[name] for one in found]) for name in found[0]}
    if peers:
        values |= peer_errors(cell, runs, seed)
    kept = right if right.any() else ~right
    base = values["clean"][kept].mean()
    shown = ("one", "two", *(PEERS if peers else ()))
    # Where most samples are left out the rest say nothing of the methods.
    told = right.mean() >= 0.5
    return [
        f"{cell.n}",
        f"{cell.k}",
        f"{cell.eps_bar:g}",
        f"{cell.share:g}",
        cell.kind,
        *(f"{values[name][kept].mean() / base:.2f}" if told else "-" for name in shown),
        f"{values['scale'][kept].mean():.2f}" if told else "-",
        f"{values['eps_hat'][kept].mean():.3f}" if told else "-",
        f"{values['flagged'][kept].mean():.3f}" if told else "-",
        f"{runs - right.sum()}",
    ]


HEAD = ["n", "k", "eps_bar", "share", "bad rows", "one step", "two steps", *PEERS,
        "scale", "eps_hat", "flagged", "wrong minima"]  # fmt: skip

TEXT = """# Regression on dirty data

The mean squared error of the coefficients, divided by that of least squares on the good rows
alone, over {runs} samples a row of the table. All coefficients are 1, predictors and noise are
standard normal. A share of the rows is bad: shifted up by 10 or by 5 standard deviations of the
noise, or *leverage*, predictors shifted by 10 and responses near -100, or -20 (*near leverage*).
*Two steps* is
`fit()`. Its mean `scale` (truth 1), `eps_hat` (truth: the share) and share of rows *flagged*,
more likely bad than good, are on the right. lmrob and ltsReg are robustbase's, with their defaults
except for the share that ltsReg trims, which is `eps_bar`, and on the same samples.

*Wrong minima* counts samples left out of all columns, in which the global minimum of the risk is
itself far from the good rows' fit: a share equal to `eps_bar` can fit better than the good rows.
rrmstats fails in them, and its errors are large; where that is most of the samples the row has no
numbers. Choose `eps_bar` above the share that you fear.

Made by `python benchmarks/dirty_regression.py --runs {runs}`, which needs R with robustbase.

"""


def page(table: list[list[str]], runs: int) -> str:
    rule = ["---:"] * 4 + ["---"] + ["---:"] * (len(HEAD) - 5)
    return (
        TEXT.format(runs=runs)
        + "\n".join(f"| {' | '.join(line)} |" for line in [HEAD, rule, *table])
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=51_000, help="seed of the first sample")
    parser.add_argument("--only", default="", help="cells such as '400 4 0.4' to run alone")
    parser.add_argument("--no-peers", action="store_true", help="without R, and without the page")
    args = parser.parse_args()
    names = [name for name in HEAD if not (args.no_peers and name in PEERS)]
    print("".join(f"{name:>13}" for name in names))
    table = []
    for cell in cells():
        if args.only not in f"{cell.n} {cell.k} {cell.eps_bar:g} {cell.share:g} {cell.kind}":
            continue
        table.append(line_of(cell, args.runs, args.seed, args.jobs, not args.no_peers))
        print("".join(f"{value:>13}" for value in table[-1]), flush=True)
    if not args.no_peers and not args.only:
        PAGE.write_text(page(table, args.runs), encoding="utf-8")


if __name__ == "__main__":
    main()
