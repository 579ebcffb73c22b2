"""Measure the errors of rrmstats beside those of robustbase and rrcov, on the same samples.

Writes the table of the README and of docs/how_good.md; needs R with robustbase and rrcov.
"""

import argparse
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from statsmodels.tools.sm_exceptions import ModelWarning

from replication.errors import angle_error, axis_error, cov_error, linear_error
from replication.samples import (
    correlated_points,
    heavy_tailed_noise,
    leverage_shift,
    noisy_line,
    one_sided_outliers,
    separated_strip,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit

FOLDER = Path(__file__).resolve().parent
PAGES = [FOLDER.parent / "README.md", FOLDER.parent / "docs" / "how_good.md"]
START, END = "<!-- errors -->", "<!-- end of errors -->"


class Kind(NamedTuple):
    """How samples of one kind are fitted: by us, by the classical method and by R."""

    ours: Callable[[Any, float | str], np.ndarray]
    classical: Callable[[Any], np.ndarray]
    columns: Callable[[Any], np.ndarray]
    error: Callable[[np.ndarray], float]
    peers: tuple[str, str]


class Design(NamedTuple):
    """Samples, and the bound that a careful user would give."""

    name: str
    draw: Callable[[np.random.Generator], Any]
    eps_bar: float
    kind: str


def two_steps(model: Any) -> Any:
    return model.fit()


def without_constant(sample: Any) -> np.ndarray:
    endog, exog = sample
    return np.c_[endog, exog[:, 1:]]


KINDS = {
    "regression": Kind(
        lambda sample, eps_bar: two_steps(RRMOLS(*sample, eps_bar)).params,
        lambda sample: sm.OLS(*sample).fit().params,
        without_constant,
        linear_error,
        ("lmrob", "ltsReg"),
    ),
    "labels": Kind(
        lambda sample, eps_bar: two_steps(RRMLogit(*sample, eps_bar)).params,
        lambda sample: sm.Logit(*sample).fit(disp=0).params,
        without_constant,
        angle_error,
        ("glmrob BY", "glmrob Mqle"),
    ),
    "axis": Kind(
        lambda sample, eps_bar: two_steps(RRMPCA(sample, 1, eps_bar)).loadings[:, 0],
        lambda sample: np.linalg.svd(sample - sample.mean(axis=0))[2][0],
        np.asarray,
        axis_error,
        ("PcaHubert", "PcaGrid"),
    ),
    "covariance": Kind(
        lambda sample, eps_bar: two_steps(RRMCov(sample, eps_bar)).cov,
        lambda sample: np.cov(sample.T),
        np.asarray,
        lambda found: cov_error(np.reshape(found, (2, 2))),
        ("covMcd", "CovMMest"),
    ),
}
regression = partial(one_sided_outliers, n=100, params=np.ones(4))
DESIGNS = [
    Design("regression, clean rows", partial(regression, share=0.0), 0.3, "regression"),
    Design("regression, heavy tails (figure 3)", heavy_tailed_noise, 0.4, "regression"),
    Design("regression, 20 % leverage points", leverage_shift, 0.3, "regression"),
    Design(
        "regression, 20 % shifted by 5 sd",
        partial(regression, share=0.2, shift=5.0),
        0.3,
        "regression",
    ),
    Design("wrong labels, degrees (figure 4)", separated_strip, 0.3, "labels"),
    Design("principal axis (figure 5)", noisy_line, 0.4, "axis"),
    Design("covariance (figure 6)", correlated_points, 0.3, "covariance"),
]


def peer_errors(kind: str, samples: list[Any]) -> dict[str, list[float]]:
    """Return the errors of R's estimates, NaN where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        for i, sample in enumerate(samples):
            np.savetxt(f"{folder}/{i:05}.csv", KINDS[kind].columns(sample), delimiter=",")
        command = ["Rscript", str(FOLDER / "errors.R"), kind, folder]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[float]] = {name: [] for name in KINDS[kind].peers}
    for line in text.splitlines():
        name, *numbers = line.split(",")
        estimate = np.array([float(number) for number in numbers])
        failed = np.isnan(estimate).any()
        found[name].append(np.nan if failed else KINDS[kind].error(estimate))
    return found


def cells(design: Design, runs: int, seed: int) -> list[str]:
    """Return a row of the table: mean errors over the samples."""
    kind = KINDS[design.kind]
    samples = [design.draw(np.random.default_rng([seed + i])) for i in range(runs)]
    ours = {
        name: [kind.error(np.asarray(kind.ours(sample, eps_bar))) for sample in samples]
        for name, eps_bar in (("auto", "auto"), ("fixed", design.eps_bar))
    }
    peers = peer_errors(design.kind, samples)
    classical = [kind.error(np.asarray(kind.classical(sample))) for sample in samples]
    return [
        design.name,
        shown(classical),
        shown(ours["auto"]),
        f"{shown(ours['fixed'])} ({design.eps_bar:g})",
        *(f"{name} {shown(errors)}" for name, errors in peers.items()),
    ]


def shown(errors: list[float]) -> str:
    """Return the mean error, with the number of samples in which there was no estimate."""
    values = np.array(errors)
    failed = int(np.isnan(values).sum())
    text = f"{np.nanmean(values):.2g}" if np.nanmean(values) < 1 else f"{np.nanmean(values):.1f}"
    return f"{text} ({failed} failed)" if failed else text


HEAD = ["mean error of", "classical", 'rrmstats, `"auto"`', "rrmstats (eps_bar)", "R", "R"]


def table(runs: int, seed: int) -> str:
    rows = [HEAD, ["---"] * len(HEAD)]
    for design in DESIGNS:
        rows.append(cells(design, runs, seed))
        print(*rows[-1], sep=" | ", flush=True)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write(page: Path, text: str) -> None:
    """Put the table between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{START}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="samples of each kind")
    parser.add_argument("--seed", type=int, default=615_000, help="seed of the first sample")
    parser.add_argument("--out", action="store_true", help="write the tables of the pages")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ModelWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    text = table(args.runs, args.seed)
    if args.out:
        for page in PAGES:
            write(page, text)


if __name__ == "__main__":
    main()
