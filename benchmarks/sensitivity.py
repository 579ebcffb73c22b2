"""Measure what one row does to a regression as it moves away, beside least squares and lmrob.

A row of a clean sample is moved from 3 to 1,000 standard deviations of the noise: its response
alone (vertical), its response where x1 is 10 (high leverage), or x1 itself with a response of 0
(far leverage). The change of the coefficients from the fit without the row is told in standard
errors. Writes a picture with --out.
"""

import argparse
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from second_step import two_steps
from second_step_peers import peer_estimates

from replication.samples import normal_design
from rrmstats import RRMOLS

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "sensitivity.png"
DISTANCES = np.geomspace(3, 1000, 25)
KINDS = ("vertical", "high leverage", "far leverage")
SIZES = (30, 100)
TRUTH = np.array([1.0, 1.0, 1.0])
EPS_BAR = 0.2
# Where the row with a fixed place of high leverage is.
PLACE = 10.0
OURS = ("two steps", "one step", "least squares")


class Curves(NamedTuple):
    """Largest change of a coefficient, by sample and distance, shape (runs, distances).

    `changes` are in standard errors of least squares without the row, which are the same for all
    methods; `own` in those of two steps.
    """

    changes: dict[str, np.ndarray]
    own: np.ndarray


def moved(kind: str, n: int, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Return the sample without its first row, and with it at each of the distances."""
    exog = normal_design(rng, n, len(TRUTH))
    noise = rng.normal(size=n)
    if kind == "high leverage":
        exog[0, 1] = PLACE
    endog = exog @ TRUTH + noise
    many = []
    for distance in DISTANCES:
        x, y = exog.copy(), endog.copy()
        if kind == "far leverage":
            x[0, 1], y[0] = distance, 0.0
        else:
            y[0] = x[0] @ TRUTH + distance
        many.append((y, x))
    return (endog[1:], exog[1:]), many


def fits(sample: Any) -> dict[str, Any]:
    """Return parameters and standard errors of our methods, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = two_steps(RRMOLS(*sample, EPS_BAR))
        results = (two, two.first_step, sm.OLS(*sample).fit())
    return {
        name: (np.asarray(res.params), np.asarray(res.bse))
        for name, res in zip(OURS, results, strict=True)
    }


def of_sample(kind: str, n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the changes of our methods along the distances, and those of two steps in its own."""
    without, many = moved(kind, n, np.random.default_rng([seed, n]))
    base = fits(without)
    unit = base["least squares"][1]
    found = [fits(sample) for sample in many]
    changes = {
        name: np.array([np.abs((one[name][0] - base[name][0]) / unit).max() for one in found])
        for name in OURS
    }
    own = [np.abs((one["two steps"][0] - base["two steps"][0]) / base["two steps"][1]).max()
           for one in found]  # fmt: skip
    return changes, np.array(own)


def peer_changes(kind: str, n: int, runs: int, seed: int) -> dict[str, np.ndarray]:
    """Return the changes of R's methods, shape (runs, distances) each."""
    drawn = [moved(kind, n, np.random.default_rng([seed + i, n])) for i in range(runs)]
    tables = [np.c_[sample] for without, many in drawn for sample in (without, *many)]
    units = np.array([sm.OLS(*without).fit().bse for without, _ in drawn])
    found = {}
    for name, estimates in peer_estimates("regression", tables).items():
        params = np.array(estimates).reshape(runs, 1 + len(DISTANCES), -1)
        found[name] = np.abs((params[:, 1:] - params[:, :1]) / units[:, None]).max(axis=-1)
    return found


def curves(kind: str, n: int, runs: int, seed: int, jobs: int, peers: bool) -> Curves:
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=jobs)(delayed(of_sample)(kind, n, seed + i) for i in range(runs))
    changes = {name: np.array([one[name] for one, _ in found]) for name in OURS}
    if peers:
        changes |= peer_changes(kind, n, runs, seed)
    return Curves(changes, np.array([own for _, own in found]))


def line_of(kind: str, n: int, found: Curves) -> str:
    """Return the largest change of each method, and whether that of two steps is at most one."""
    most = found.own.max()
    where = DISTANCES[found.own.max(axis=0).argmax()]
    worst = ", ".join(f"{name} {array.max():.2f}" for name, array in found.changes.items())
    verdict = "ok" if most <= 1 else f"MISSED in {(found.own.max(axis=1) > 1).sum()} samples"
    return (
        f"sensitivity {n} {kind:14} | two {most:6.2f} at {where:.0f} sd | asked 1.00 | {verdict} "
        f"| mean of the largest {found.own.max(axis=1).mean():.2f} | {worst}"
    )


def draw(found: dict[tuple[int, str], Curves], path: Path) -> None:
    """Draw the mean and the largest change against the distance."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        len(SIZES), len(KINDS), figsize=(10, 6), sharex=True, sharey=True, squeeze=False
    )
    for (n, kind), one in found.items():
        ax = axes[SIZES.index(n), KINDS.index(kind)]
        for i, (name, changes) in enumerate(one.changes.items()):
            ax.plot(DISTANCES, changes.mean(axis=0), color=f"C{i}", label=name)
            ax.plot(DISTANCES, changes.max(axis=0), color=f"C{i}", ls=":", lw=0.8)
        ax.axhline(1, color="0.7", lw=0.8, zorder=0)
        ax.set(xscale="log", yscale="log", ylim=(1e-3, 1e3), title=f"{kind}, n = {n}")
    for ax in axes[-1]:
        ax.set_xlabel("distance of the row (sd of the noise)")
    for ax in axes[:, 0]:
        ax.set_ylabel("change (standard errors)")
    axes[0, 0].legend(fontsize="small")
    fig.tight_layout()
    fig.savefig(path, dpi=150)


def measure(runs: int, seed: int, jobs: int, peers: bool, only: str = "") -> dict[Any, Curves]:
    """Print a line per size and kind, and return the curves."""
    found = {}
    for n in SIZES:
        for kind in KINDS:
            if only in f"sensitivity {n} {kind}":
                found[n, kind] = curves(kind, n, runs, seed, jobs, peers)
                print(line_of(kind, n, found[n, kind]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="samples of each size and kind")
    parser.add_argument("--seed", type=int, default=828_000, help="seed of the first sample")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="run what contains this, such as '100 far'")
    parser.add_argument("--no-peers", action="store_true", help="without R")
    parser.add_argument("--out", nargs="?", type=Path, const=PICTURE, help="write the picture")
    args = parser.parse_args()
    found = measure(args.runs, args.seed, args.jobs, not args.no_peers, args.only)
    if args.out:
        draw(found, args.out)


if __name__ == "__main__":
    main()
