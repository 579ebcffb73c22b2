"""Measure the second step beside robustbase and rrcov: errors, scale, bad rows, intervals.

Every cell fits the same samples by all methods and prints one line: the mean error of two steps
and of one, divided by that of the classical estimate on the good rows alone (of the lab's samples
and of planes the mean error itself); the same of R's methods; the error asked for, and whether it
and the other numbers asked for are reached; mean scale and eps_hat; mean and standard deviation of
(eps_hat - share) / eps_hat_se; what the intervals of the slopes cover; and how often each
explanation was chosen. Of covariances it prints the shares of bad and of good rows flagged.

`--only TEXT` runs the cells whose line starts with words that contain the text, such as
"regression 400", "noise", "covariance" or "lab". `--out` writes the tables of regressions to
docs/dirty_data.md.
"""

import argparse
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import second_step_samples as draws
from scipy.stats import chi2
from second_step_peers import peer_estimates
from tables import write_table

from replication import samples
from replication.errors import axis_error, cov_error, linear_error
from rrmstats import RRMOLS, RRMPCA, RRMCov

Draw = Callable[[np.random.Generator], Any]
Found = dict[str, Any]

COVERAGE = (0.92, 0.975)
# The share of 5 % tests that may reject, as coverage.
LEVELS = (1 - 0.065, 1 - 0.04)
# What is asked of scale, eps_hat and its standard error where bad rows are far enough.
FAR = {"scale": (0.92, 1.08), "eps error": (-0.02, 0.02), "z": (-0.5, 0.5), "z sd": (0.0, 1.2)}
NO_BAD_ROWS = {"eps_hat": (0.0, 0.02)}
FLAGS = {"bad flagged": (0.95, 1.0), "good flagged": (0.0, 0.02)}
# Words of the explanation of clean noise that is not normal; a cluster is bad rows on one side.
WORDS = {
    "uniform": ("short",),
    "beta": ("short",),
    "laplace": ("heavy",),
    "t3": ("heavy",),
    "growing": ("growing", "changing"),
    "growing with the mean": ("growing",),
    "lognormal": ("skew", "one-sided", "cluster"),
}
# A word of the summary where a line is fitted to a curve.
CURVED = ("curved",)
# Rows of the other sign by the second step of version 0.2, 100 samples of the default seed: error
# over that of the good rows, by n and share.
OTHER_SIGN_0_2 = {
    (400, 0.15): 1.66,
    (400, 0.2): 1.72,
    (400, 0.3): 2.12,
    (400, 0.4): 3.04,
    (100, 0.15): 1.67,
    (100, 0.2): 1.91,
    (100, 0.3): 2.30,
    (100, 0.4): 7.05,
}


@dataclass(frozen=True)
class Cell:
    """Samples of one kind, how they are fitted, and what is asked of the fits.

    `asked` has ranges of what is printed, "ratio" among them; `peer` is the method of R whose
    error, with one standard error of the difference, is not to be exceeded.
    """

    name: str
    kind: str
    draw: Draw
    key: tuple[int, ...]
    eps_bar: float
    asked: dict[str, tuple[float, float]] = field(default_factory=dict)
    peer: str | None = None
    words: tuple[str, ...] = ()
    slopes_alone: bool = False

    def sample(self, seed: int, run: int) -> Any:
        return self.draw(np.random.default_rng([seed, *self.key, run]))


def two_steps(model: Any) -> Any:
    """Fit by two steps."""
    return model.fit(steps=2)


def explanation_of(res: Any) -> str:
    """Return the name of the explanation that was chosen, "" where there is none."""
    chosen = getattr(res, "explanation", "")
    return str(getattr(chosen, "name", chosen)).partition(":")[0]


def standardized(res: Any, share: float) -> float:
    """Return the error of eps_hat in standard errors; NaN without bad rows."""
    return (res.eps_hat - share) / res.eps_hat_se if share and res.eps_hat_se else np.nan


def at_most(bound: float) -> dict[str, tuple[float, float]]:
    return {"ratio": (0.0, bound)}


# ---- regression


def squared_error(cell: Cell, sample: draws.Regression, params: Any) -> float:
    first = 1 if cell.slopes_alone else 0
    return float(((np.asarray(params) - sample.truth)[first:] ** 2).sum())


def fit_regression(cell: Cell, sample: draws.Regression) -> Found:
    """Return errors, scale, share and coverage of one sample."""
    good = slice(sample.bad, None)
    clean = np.linalg.lstsq(sample.exog[good], sample.endog[good], rcond=None)[0]
    two = two_steps(RRMOLS(sample.endog, sample.exog, cell.eps_bar))
    constant = int((sample.exog[:, 0] == 1).all())
    low, high = np.asarray(two.conf_int())[constant:].T
    truth = sample.truth[constant:]
    share = sample.bad / len(sample.endog)
    told = str(two.summary()).lower() if cell.words == CURVED else explanation_of(two)
    return {
        "base": squared_error(cell, sample, clean),
        "one": squared_error(cell, sample, two.first_step.params),
        "two": squared_error(cell, sample, two.params),
        "scale": two.scale,
        "eps_hat": two.eps_hat,
        "eps error": two.eps_hat - share,
        "z": standardized(two, share),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "told": float(any(word in told for word in cell.words)),
        "explanation": explanation_of(two),
    }


# ---- covariance


def divergence(cov: Any, truth: np.ndarray) -> float:
    """Return tr(S T^-1) - ln det(S T^-1) - d, twice the Kullback-Leibler divergence."""
    root = np.linalg.inv(np.linalg.cholesky(truth))
    standard = root @ np.asarray(cov) @ root.T
    sign, log_det = np.linalg.slogdet(standard)
    return float(np.trace(standard) - log_det - len(truth)) if sign > 0 else np.inf


def fit_covariance(cell: Cell, sample: draws.Points) -> Found:
    """Return divergences, share and flags of one sample."""
    two = two_steps(RRMCov(sample.data, cell.eps_bar))
    flags = np.asarray(two.outliers())
    share = sample.bad / len(flags)
    return {
        "base": divergence(np.cov(sample.data[sample.bad :].T), sample.cov),
        "one": divergence(two.first_step.cov, sample.cov),
        "two": divergence(two.cov, sample.cov),
        "eps_hat": two.eps_hat,
        "eps error": two.eps_hat - share,
        "z": standardized(two, share),
        "bad flagged": float(flags[: sample.bad].mean()) if sample.bad else np.nan,
        "good flagged": float(flags[sample.bad :].mean()),
        "explanation": explanation_of(two),
    }


# ---- the lab's samples and planes, by the mean error itself


def plane_error(loadings: Any, q: int) -> float:
    """Return the squared distance of a plane from that of the first q axes, 0 to q."""
    found = np.reshape(loadings, (-1, q), order="F")
    return float(q - (found[:q] ** 2).sum())


def fit_directly(cell: Cell, sample: Any) -> Found:
    """Return the errors of one step and two, as the lab or a plane measures them."""
    model, estimate, error = DIRECT[cell.kind]
    two = two_steps(model(sample, cell.eps_bar))
    return {
        "base": 1.0,
        "one": error(estimate(two.first_step)),
        "two": error(estimate(two)),
        "eps_hat": two.eps_hat,
        "explanation": explanation_of(two),
    }


def loadings_of(res: Any) -> np.ndarray:
    return np.ravel(res.loadings, order="F")


# Model of a sample, its estimate and the error of that.
DIRECT: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], Callable[[Any], float]]] = {
    "line": (
        lambda sample, eps_bar: RRMOLS(*sample, eps_bar),
        lambda res: res.params,
        linear_error,
    ),
    "axis": (lambda data, eps_bar: RRMPCA(data, 1, eps_bar), loadings_of, axis_error),
    "cloud": (
        RRMCov,
        lambda res: np.asarray(res.cov),
        lambda found: cov_error(np.reshape(found, (2, 2))),
    ),
    "plane of 2": (
        lambda data, eps_bar: RRMPCA(data, 2, eps_bar),
        loadings_of,
        partial(plane_error, q=2),
    ),
    "plane of 3": (
        lambda data, eps_bar: RRMPCA(data, 3, eps_bar),
        loadings_of,
        partial(plane_error, q=3),
    ),
}
FITS = {"regression": fit_regression, "covariance": fit_covariance}


def fit(cell: Cell, seed: int, run: int) -> Found:
    """Return what one sample shows; the message alone where the fit fails."""
    sample = cell.sample(seed, run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return FITS.get(cell.kind, fit_directly)(cell, sample)
        except Exception as error:  # one failure is a finding, and not to end a long run
            return {"failed": f"{type(error).__name__}: {error}"}


# ---- R


def peer_errors(cell: Cell, runs: list[int], seed: int) -> dict[str, np.ndarray]:
    """Return the errors of R's methods on the same samples, NaN where they fail."""
    drawn = [cell.sample(seed, run) for run in runs]
    if cell.kind == "regression":
        found = peer_estimates("regression", (np.c_[s.endog, s.exog] for s in drawn))
        errors = partial(squared_error, cell)
    elif cell.kind == "covariance":
        found = peer_estimates("covariance", (s.data for s in drawn))

        def errors(sample: Any, numbers: np.ndarray) -> float:
            return divergence(numbers.reshape(sample.cov.shape), sample.cov)

    else:
        error = DIRECT[cell.kind][2]
        kind = {"line": "regression", "cloud": "covariance"}.get(cell.kind, "plane")
        tables = (np.c_[s] if kind == "regression" else np.asarray(s) for s in drawn)
        components = int(cell.kind[-1]) if cell.kind.startswith("plane") else 1
        found = peer_estimates(kind, tables, components)

        def errors(sample: Any, numbers: np.ndarray) -> float:
            return error(numbers)

    return {
        name: np.array(
            [
                np.nan if np.isnan(numbers).any() else errors(sample, numbers)
                for sample, numbers in zip(drawn, estimates, strict=True)
            ]
        )
        for name, estimates in found.items()
    }


# ---- a cell's line


@dataclass(frozen=True)
class Summary:
    """Means over the samples of a cell."""

    means: dict[str, float]
    error: float
    peers: dict[str, float]
    missed: list[str]
    explanations: Counter[str]
    failures: list[str]


def summarized(cell: Cell, found: list[Found], seed: int, peers: bool) -> Summary:
    failures = [one["failed"] for one in found if "failed" in one]
    runs = [i for i, one in enumerate(found) if "failed" not in one]
    kept = [found[i] for i in runs]
    if not kept:
        return Summary({}, np.nan, {}, ["all fits"], Counter(), failures)
    names = [name for name in kept[0] if name != "explanation"]
    values = {name: np.array([one[name] for one in kept], float) for name in names}
    base = values["base"].mean()
    means = {name: mean_of(array) for name, array in values.items()}
    means["ratio"], means["first"] = means["two"] / base, means["one"] / base
    if "z" in values:
        means["z sd"] = spread_of(values["z"])
    scatter = values["two"] - means["ratio"] * values["base"]
    error = spread_of(scatter) / base / np.sqrt(len(kept))
    explanations = Counter(one["explanation"] for one in kept)
    theirs = peer_errors(cell, runs, seed) if peers else {}
    missed = [
        name
        for name, (low, high) in cell.asked.items()
        if not (low <= round(means.get(name, np.nan), 6) <= high)
    ]
    if cell.peer in theirs:
        difference = values["two"] - theirs[cell.peer]
        known = difference[np.isfinite(difference)]
        if not known.mean() <= spread_of(known) / np.sqrt(len(known)):
            missed.append(cell.peer)
    if values["eps_hat"].max() > cell.eps_bar + 1e-9:
        missed.append("eps_hat > eps_bar")
    if failures:
        missed.append(f"{len(failures)} failed")
    return Summary(
        means,
        error,
        {name: mean_of(array) / base for name, array in theirs.items()},
        missed,
        explanations,
        failures,
    )


def mean_of(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def spread_of(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1)) if len(known) > 1 else np.nan


def line_of(cell: Cell, made: Summary) -> str:
    """Return the line of a cell."""

    def shown(name: str, form: str = ".3f") -> str:
        value = made.means.get(name, np.nan)
        return "" if np.isnan(value) else f"{value:{form}}"

    bound = f"{cell.asked['ratio'][1]:.2f}" if "ratio" in cell.asked else ""
    if cell.peer:
        bound = f"{bound} {cell.peer}".strip()
    verdict = "ok" if cell.asked or cell.peer in made.peers else ""
    if made.missed:
        verdict = f"MISSED {', '.join(made.missed)}"
    z = f"{shown('z', '.2f')} ({shown('z sd', '.2f')})" if shown("z") else ""
    flags = f"{shown('bad flagged')} / {shown('good flagged')}" if shown("good flagged") else ""
    counts = ", ".join(
        f"{count} {name}" for name, count in made.explanations.most_common() if name
    )
    told = f"told {shown('told', '.2f')}; " if cell.words else ""
    form = ".2f" if cell.kind in FITS else ".3g"
    parts = [
        f"{cell.name:46}",
        f"two {shown('ratio', form):>8} +- {made.error:{form}}",
        f"one {shown('first', form):>8}",
        f"R {', '.join(f'{name} {value:{form}}' for name, value in made.peers.items()):48}",
        f"asked {bound:14}",
        f"{verdict:24}",
        f"scale {shown('scale', '.2f'):5}",
        f"eps_hat {shown('eps_hat'):6}",
        f"z {z:13}",
        f"flagged {flags}" if flags else f"cover {shown('coverage'):5}",
        f"{told}{counts}",
    ]
    return " | ".join(parts) + "".join(f"\n    {text}" for text in sorted({*made.failures}))


# ---- the cells


def linear(
    part: str, n: int, k: int, eps_bar: float, share: float, kind: str, **asked: Any
) -> Cell:
    """Return a cell of regressions."""
    bad = f" {100 * share:.0f} %" if share else ""
    return Cell(
        f"{part} {n} {k}{bad} {kind}",
        "regression",
        partial(draws.regression, n=n, k=k, share=share, kind=kind),
        (n, k),
        eps_bar,
        **asked,
    )


def regression_cells() -> Iterator[Cell]:
    cell = partial(linear, "regression")
    cover = {"coverage": COVERAGE}
    for n in (400, 100):
        large = n == 400
        clean, near, far = (1.03, 1.45, 1.05) if large else (1.06, 2.0, 1.2)
        exact = FAR if large else {}
        yield cell(n, 4, 0.4, 0.0, "clean", asked=at_most(clean) | NO_BAD_ROWS | cover)
        for share in (0.1, 0.2, 0.3, 0.4):
            bound = 1.10 if large else 2.0 if share == 0.4 else 1.35
            yield cell(n, 4, 0.4, share, "5", asked=at_most(bound) | exact | cover)
        for share in (0.1, 0.2):
            yield cell(n, 4, 0.4, share, "3.5", asked=at_most(near) | cover)
        for kind in ("10", "leverage", "near"):
            for share in (0.1, 0.2, 0.3):
                yield cell(n, 4, 0.4, share, kind, asked=at_most(far) | exact | cover)
        for share in (0.1, 0.2, 0.3):
            yield cell(n, 4, 0.4, share, "wide", asked=at_most(far) | cover)
        yield cell(n, 4, 0.4, 0.4, "near")
        yield cell(n, 4, 0.4, 0.2, "two")
        for share in (0.15, 0.2, 0.3, 0.4):
            held = at_most(OTHER_SIGN_0_2[n, share])
            yield cell(n, 4, 0.4, share, "sign", asked=held, peer="lmrob")


def small_cells() -> Iterator[Cell]:
    cell = partial(linear, "small")
    for n, k, eps_bar in ((100, 10, 0.4), (100, 12, 0.45), (50, 5, 0.45), (30, 2, 0.4)):
        cover = {"coverage": COVERAGE} if n >= 100 else {}
        yield cell(n, k, eps_bar, 0.0, "clean", asked=at_most(1.10) | cover)
        yield cell(n, k, eps_bar, 0.2, "5", asked=at_most(1.4) | cover)
        yield cell(n, k, eps_bar, 0.0, "t3")
        yield cell(n, k, eps_bar, 0.15, "sign", peer="lmrob")


def koller_stahel_cells() -> Iterator[Cell]:
    for n, p in ((25, 5), (50, 10), (100, 33)):
        draw = partial(draws.without_intercept, n=n, k=p)
        asked = at_most(1 / 0.95) | {"coverage": LEVELS}
        yield Cell(f"koller stahel {n} {p}", "regression", draw, (n, p), 0.4, asked)


def noise_cells() -> Iterator[Cell]:
    for n in (400, 100):
        for kind, words in WORDS.items():
            asked: dict[str, tuple[float, float]] = {"coverage": COVERAGE}
            if kind != "lognormal":
                asked |= NO_BAD_ROWS
            if kind in ("uniform", "beta"):
                asked |= at_most(1.1)
            if n == 400:
                asked["told"] = (0.5, 1.0)
            peer = "lmrob" if kind in ("t3", "lognormal") else None
            alone = kind == "lognormal"
            yield linear(
                "noise", n, 4, 0.4, 0.0, kind,
                asked=asked, peer=peer, words=words, slopes_alone=alone,
            )  # fmt: skip
        draw = partial(draws.parabola, n=n)
        asked = {"told": (0.9, 1.0)}
        name = f"noise {n} 2 y = x^2"
        yield Cell(name, "regression", draw, (n, 2), 0.4, asked, words=CURVED)


def radial_flags(d: int, share: float, factor: float) -> dict[str, tuple[float, float]]:
    """Return what is asked of flags where bad rows have so many times the variance of others.

    No rule tells them all from the good rows. That of Bayes, which knows the truth, flags rows
    beyond a squared distance at which both are as likely; asked are nine tenths of those bad rows.
    """
    odds = np.log((1 - share) / share)
    border = (d * np.log(factor) + 2 * odds) / (1 - 1 / factor)
    return FLAGS | {"bad flagged": (0.9 * float(chi2.sf(border / factor, d)), 1.0)}


def covariance_cells() -> Iterator[Cell]:
    asked = at_most(1.10) | FLAGS
    for name, n, d, share, distance, spread, eps_bar in (
        ("10 % at 9.5 sd, tight", 500, 20, 0.1, 9.5, 0.5, 0.3),
        ("25 % at 29 sd, tight", 100, 20, 0.25, 29.0, 0.5, 0.4),
        ("20 % at 7 sd", 500, 40, 0.2, 7.0, 1.0, 0.3),
        ("20 % in a spot", 100, 5, 0.2, 10.0, 0.01, 0.3),
        ("20 % near, 5 sd", 100, 5, 0.2, 5.0, 1.0, 0.3),
    ):
        draw = partial(draws.cluster, n=n, d=d, share=share, distance=distance, spread=spread)
        wanted = {} if "near" in name else asked
        yield Cell(f"covariance {n} {d} {name}", "covariance", draw, (n, d), eps_bar, wanted)
    for name, n, d, draw in (
        ("clean", 100, 5, partial(draws.radial, share=0.0, factor=1.0)),
        ("clean", 500, 20, partial(draws.radial, share=0.0, factor=1.0)),
        (
            "20 % radial, 9 times the variance",
            100,
            5,
            partial(draws.radial, share=0.2, factor=9.0),
        ),
        ("20 % in two clusters", 100, 5, partial(draws.two_clusters, share=0.2)),
    ):
        made = partial(draw, n=n, d=d)
        wanted = at_most(1.10) | NO_BAD_ROWS if name == "clean" else {}
        yield Cell(f"covariance {n} {d} {name}", "covariance", made, (n, d), 0.3, wanted)
    for shape in ("ALYZ", "A09"):
        for kind in ("point", "cluster", "radial"):
            draw = partial(draws.correlated, n=200, d=10, share=0.2, shape=shape, kind=kind)
            name = f"covariance 200 10 20 % {shape} {kind}"
            flags = radial_flags(10, 0.2, 5.0) if kind == "radial" else FLAGS
            yield Cell(name, "covariance", draw, (200, 10), 0.3, at_most(1.10) | flags)


def lab_cells() -> Iterator[Cell]:
    for seed in (1, 2, 3):
        for name, kind, draw, eps_bar, peer in (
            ("linreg", "line", samples.heavy_tailed_noise, 0.4, "lmrob"),
            ("leverage", "line", samples.leverage_shift, 0.3, "lmrob"),
            ("cov", "cloud", samples.correlated_points, 0.3, "CovMMest"),
            ("pca", "axis", samples.noisy_line, 0.4, "PcaHubert"),
        ):
            yield Cell(f"lab {name} seed {seed}", kind, draw, (seed,), eps_bar, peer=peer)
    for n, d, q, share in ((200, 10, 2, 0.2), (100, 20, 3, 0.2), (200, 10, 2, 0.3)):
        draw = partial(samples.other_subspace, n=n, d=d, q=q, share=share)
        name = f"planes {n} {d} {q} {100 * share:.0f} % near another plane"
        yield Cell(name, f"plane of {q}", draw, (n, d), 0.4, peer="PcaHubert")


PARTS = (
    regression_cells,
    small_cells,
    koller_stahel_cells,
    noise_cells,
    covariance_cells,
    lab_cells,
)

# ---- the page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dirty_data.md"
# Titles of the tables, and how the names of their cells begin.
TABLES = {
    "n = 400, four coefficients, eps_bar = 0.4": "regression 400",
    "n = 100, four coefficients, eps_bar = 0.4": "regression 100",
    "Few rows per coefficient": "small",
    "Designs of Koller and Stahel, no bad rows": "koller stahel",
    "Noise that is not normal, no bad rows; eps_bar = 0.4": "noise",
    "The paper's samples": ("lab linreg", "lab leverage"),
}
HEAD = (
    *("samples", "two steps", "standard error", "one step", "lmrob", "KS2014"),
    *("scale", "eps_hat", "coverage"),
)


def row_of(cell: Cell, made: Summary) -> list[str]:
    """Return the row of a cell in the table of the page."""
    form = ".2f" if cell.kind in FITS else ".4f"
    values = [
        (made.means.get("ratio", np.nan), form),
        (made.error, form),
        (made.means.get("first", np.nan), form),
        *((made.peers.get(name, np.nan), form) for name in ("lmrob", "KS2014")),
        *((made.means.get(name, np.nan), ".2f") for name in ("scale",)),
        *((made.means.get(name, np.nan), ".3f") for name in ("eps_hat", "coverage")),
    ]
    return [cell.name, *("" if np.isnan(value) else f"{value:{form}}" for value, form in values)]


def write_page(made: dict[str, list[str]], runs: int, seed: int) -> None:
    """Write the tables between the text before the first and after the last of them."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- tables -->")
    after = rest.partition("<!-- end of tables -->")[2]
    command = f"`python benchmarks/second_step.py --runs {runs} --seed {seed} --out`"
    parts = [f"Made by {command}, which needs R with robustbase and rrcov."]
    for title, names in TABLES.items():
        lines = [row for name, row in made.items() if name.startswith(names)]
        name = "dirty_data_" + (names if isinstance(names, str) else "lab").replace(" ", "_")
        parts += [f"## {title}", write_table(name, HEAD, lines).strip()]
    body = "\n\n".join(parts)
    page = f"{before}<!-- tables -->\n\n{body}\n\n<!-- end of tables -->{after}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="samples of each cell")
    parser.add_argument("--seed", type=int, default=827_000, help="seed of all samples")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="run the cells whose names contain this")
    parser.add_argument("--no-peers", action="store_true", help="without R")
    parser.add_argument("--out", action="store_true", help="write the page")
    args = parser.parse_args()
    cells = [cell for part in PARTS for cell in part() if args.only in cell.name]
    missed, rows = 0, {}
    for cell in cells:
        found: list[Found] = Parallel(n_jobs=args.jobs)(
            delayed(fit)(cell, args.seed, run) for run in range(args.runs)
        )
        made = summarized(cell, found, args.seed, not args.no_peers)
        missed += bool(made.missed)
        rows[cell.name] = row_of(cell, made)
        print(line_of(cell, made), flush=True)
    print(f"{len(cells)} cells, {missed} missed")
    if args.out:
        write_page(rows, args.runs, args.seed)


if __name__ == "__main__":
    main()
