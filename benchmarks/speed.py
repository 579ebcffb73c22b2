"""Time fits against what others fit to the same data, in one run on one thread.

Rows with a limit come first, then the peak of memory, then the growth of time in n and d.
"""

import argparse
import os
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from peers import (
    FAMILIES,
    Data,
    R,
    is_available,
    is_ours,
    labels,
    least_seconds,
    missing,
    points,
    python_seconds,
    r_blas,
    regression,
    two_steps,
)

from replication.samples import heavy_tailed_noise, other_subspace
from rrmstats import RRMOLS, RRMPCA

DOCS = Path(__file__).resolve().parents[1] / "docs"
N_OF_D, D_OF_N = 2000, 10
SIZES = {"n": (40, 400, 4000, 40_000, 200_000, 1_000_000), "d": (2, 5, 10, 20, 40, 60, 100)}
QUICK = {"n": (40, 400, 4000), "d": (2, 5, 10)}
LARGE = 5_000_000
# A peer that took longer is not asked for the next size of its curve.
PATIENCE = 1.0
# A fit that took longer is not repeated.
LONG = 3.0
MEMORY_LIMIT = 0.6

Pair = tuple[float, float]


class Row(NamedTuple):
    """A comparison with a limit; a fit that has no peer is compared with one second."""

    name: str
    peer: str
    measure: Callable[[], Pair]
    limit: float
    quick: bool = True


class Curve(NamedTuple):
    """Seconds of the methods of a family at the sizes along one axis."""

    family: str
    axis: str
    times: dict[str, dict[int, float]]


def against(
    name: str, peer: str, data: Callable[[], Data], repeats: int = 3
) -> Callable[[], Pair]:
    def measure() -> Pair:
        least = least_seconds((name, peer), data(), repeats, long=LONG)
        return least[name], least[peer]

    return measure


def small_regressions(eps_bar: float, repeats: int = 10, samples: int = 30) -> Pair:
    """Return the time of the default fit and of RLM, summed over samples of figure 3."""
    totals = np.zeros(2)
    fits = (lambda y, x: RRMOLS(y, x, eps_bar).fit(steps=1), lambda y, x: sm.RLM(y, x).fit())
    for seed in range(samples):
        data = heavy_tailed_noise(np.random.default_rng(seed))
        times = [[python_seconds(fit, data) for fit in fits] for _ in range(repeats)]
        totals += np.min(times, axis=0)
    return float(totals[0]), float(totals[1])


def wide_components(repeats: int = 5, **options: Any) -> Pair:
    """Return the time of two components of data with the shape of the octane spectra."""
    data = other_subspace(np.random.default_rng(0), 39, d=226, share=0.15)
    times = [
        python_seconds(lambda: RRMPCA(data, 2, 0.2).fit(**options), ()) for _ in range(repeats)
    ]
    return min(times), 1.0


def bootstrap(repeats: int = 3) -> Pair:
    model = RRMOLS(*regression(1000, 5), 0.2)
    options = {"cov_type": "bootstrap", "cov_kwds": {"n_boot": 999}, "steps": 1}
    fits = (lambda: model.fit(**options), lambda: model.fit(steps=1))
    times = np.min([[python_seconds(fit, ()) for fit in fits] for _ in range(repeats)], axis=0)
    return float(times[0]), float(times[1])


def cov_rows(n: int, d: int, limits: dict[str, float], quick: bool) -> Iterator[Row]:
    for peer, limit in limits.items():
        measure = against("RRMCov", peer, lambda: points(n, d))
        yield Row(f"RRMCov n={n:,} d={d}", peer, measure, limit, quick)


MILLION, WIDE = (lambda: regression(1_000_000, 10)), (lambda: regression(20_000, 100))
TWO = "RRMOLS, 95 %, bse"
ROWS = [
    *(
        row
        for d in (20, 40, 60, 100)
        for row in cov_rows(2000, d, {"MinCovDet": 0.5, "covMcd": 1.0}, quick=d == 20)
    ),
    *cov_rows(100_000, 10, {"covMcd": 1.0, "MinCovDet": 1.0}, quick=False),
    *cov_rows(200, 10, {"MinCovDet": 1.0}, quick=True),
    Row("RRMPCA 39 x 226, one step", "1 s", lambda: wide_components(steps=1), 0.3),
    Row("RRMPCA 39 x 226, two steps", "1 s", wide_components, 0.6),
    Row("RRMOLS n=40 k=10, eps_bar 0.2", "RLM", lambda: small_regressions(0.2), 1.0),
    Row("RRMOLS n=40 k=10, eps_bar 0.4", "RLM", lambda: small_regressions(0.4), 1.0),
    Row("RRMOLS n=20,000 k=100", "OLS", against("RRMOLS", "OLS", WIDE, 7), 3.0),
    Row("RRMOLS n=1e6 k=10", "OLS", against("RRMOLS", "OLS", MILLION), 3.0, quick=False),
    Row("RRMOLS n=1e6 k=10, 95 %, bse", "OLS", against(TWO, "OLS", MILLION), 2.5, quick=False),
    Row(
        "RRMLogit n=1e5 k=10",
        "Logit",
        against("RRMLogit", "Logit", lambda: labels(100_000, 10)),
        4.0,
    ),
    Row("bootstrap n=1,000 k=5, 999 draws", "its fit", bootstrap, 100.0),
]


def memory(n: int) -> float:
    """Return what two steps and standard errors allocate at their peak, in GB."""
    data = regression(n, 10)
    tracemalloc.start()
    two_steps(*data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e9


def limits(quick: bool, only: str) -> Iterator[list[str]]:
    for row in ROWS:
        if only not in row.name or (quick and not row.quick) or row.peer in missing():
            continue
        ours, theirs = row.measure()
        yield [row.name, row.peer, f"{ours / theirs:.2f}", f"{row.limit:g}"]


def memory_line(n: int) -> list[str]:
    peak = memory(n)
    return [f"RRMOLS n={n:,} k=10, 95 %, bse", "1 GB of memory", f"{peak:.2f}", f"{MEMORY_LIMIT}"]


def is_missed(line: list[str]) -> bool:
    return not float(line[2]) <= float(line[3])


def measure_curve(family: str, axis: str, sizes: Iterable[int], quick: bool) -> Curve:
    draw, methods = FAMILIES[family]
    asked = [name for name in methods if is_available(name) and not (quick and name in R)]
    times: dict[str, dict[int, float]] = {name: {} for name in asked}
    for size in sizes:
        data = draw(size, D_OF_N) if axis == "n" else draw(N_OF_D, size)
        for name, taken in least_seconds(asked, data, 3, long=LONG).items():
            times[name][size] = taken
        asked = [name for name in asked if is_ours(name) or times[name][size] < PATIENCE]
    return Curve(family, axis, times)


def curves(sizes: dict[str, tuple[int, ...]], quick: bool) -> Iterator[Curve]:
    for family in FAMILIES:
        for axis in ("n", "d"):
            # Two components need more than two variables.
            fitting = [size for size in sizes[axis] if (family, size) != ("components", 2)]
            yield measure_curve(family, axis, fitting, quick)


def exponent(times: dict[int, float], last: int) -> str:
    """Return the slope of log time on log size over the last sizes; a dash if they are fewer."""
    sizes = [size for size in times if np.isfinite(times[size])][-last:]
    if len(sizes) < min(last, 3):
        return "-"
    return f"{np.polyfit(np.log(sizes), np.log([times[size] for size in sizes]), 1)[0]:.2f}"


def growth_table(found: list[Curve]) -> list[list[str]]:
    """Return a line of exponents per method: all sizes and the last three, in n and in d."""
    lines = [["method", "n", "n, large", "d", "d, large"]]
    for by_n, by_d in zip(found[::2], found[1::2], strict=True):
        for name in by_n.times:
            pair = (by_n.times[name], by_d.times[name])
            lines.append([name, *(exponent(times, last) for times in pair for last in (99, 3))])
    return lines


def ratio_table(curve: Curve) -> list[list[str]]:
    """Return our time over that of each peer, a column per size."""
    ours, *others = curve.times
    sizes = list(curve.times[ours])

    def cell(name: str, size: int) -> str:
        ratio = curve.times[ours][size] / curve.times[name].get(size, np.nan)
        return f"{ratio:.2g}" if np.isfinite(ratio) else "-"

    head = [f"{ours} / ...", *(f"{curve.axis}={size:,}" for size in sizes)]
    return [head, *([name, *(cell(name, size) for size in sizes)] for name in others)]


def markdown(lines: list[list[str]], texts: int = 1) -> str:
    """Return a table; columns after the first few, which are text, are aligned right."""
    head, *body = lines
    rule = ["---" if i < texts else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body)) + "\n"


def draw_picture(found: list[Curve], path: Path) -> None:
    """Write the time of each family against n, above, and against d, below."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(
        2, len(FAMILIES), figsize=(15, 7.5), sharey=True, layout="constrained"
    )
    for curve, ax in zip(found, axes.T.ravel(), strict=True):
        shades = iter(plt.get_cmap("Dark2").colors)
        for name, times in curve.times.items():
            ours = is_ours(name)
            style = {"color": "C0", "linewidth": 2.5} if ours else {"color": next(shades)}
            dashes = "--" if name == TWO else "-"
            ax.loglog(list(times), list(times.values()), dashes, marker=".", label=name, **style)
        fixed = f"d = {D_OF_N}" if curve.axis == "n" else f"n = {N_OF_D:,}"
        ax.set(xlabel=curve.axis, title=f"{curve.family}, {fixed}")
        ax.grid(alpha=0.3)
        if curve.axis == "n":
            ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
    for ax in axes[:, 0]:
        ax.set_ylabel("seconds")
    fig.savefig(path, dpi=100)
    plt.close(fig)


TEXT = """# Speed

Ratios of times on one thread, measured in turn in one run, so that they can be compared across
machines although times cannot. A ratio below one means that rrmstats is faster. All methods have
their default settings and see the same data, of which 10 % of the rows are bad (5 % of the
labels); `eps_bar` is twice that. The regressions with n = 40 are those of figure 3, the data
39 x 226 have 15 % of the rows in another subspace.

Made by `{command}`. {notes}

## Limits

{limits}
A fit without a peer is compared with one second, and memory with 1 GB beyond `endog` and `exog`
at the peak. {verdict}

## Growth

![Time against n and d, on logarithmic scales]({picture})

Slopes of the logarithm of time on that of n (d = {d}) and of d (n = {n:,}), over all sizes and
over the last three that a method was asked for. The former is lowered by what a call costs on any
data. A peer that took more than {patience:g} s is not asked for the next size, so
that the exponents of slow peers end early.

{growth}
## Ratios by size

{ratios}"""


def notes() -> str:
    left_out = missing()
    parts = [f"Not installed, and left out: {', '.join(left_out)}."] if left_out else []
    if is_available("covMcd"):
        parts.append(f"R is timed inside R, with the BLAS that it has here ({r_blas()}).")
    return " ".join(parts)


def page(command: str, limit_lines: list[list[str]], found: list[Curve], picture: str) -> str:
    missed = [f"{line[0]} against {line[1]}" for line in limit_lines if is_missed(line)]
    return TEXT.format(
        command=command,
        notes=notes(),
        limits=markdown([["fit", "against", "ratio", "at most"], *limit_lines], texts=2),
        verdict=f"Missed: {'; '.join(missed)}." if missed else "All limits are kept.",
        picture=picture,
        d=D_OF_N,
        n=N_OF_D,
        patience=PATIENCE,
        growth=markdown(growth_table(found)),
        ratios="\n".join(markdown(ratio_table(curve)) for curve in found),
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="only limits of rows whose name contains this")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes and R only in the limits, within a minute",
    )
    parser.add_argument("--large", action="store_true", help=f"growth up to n = {LARGE:,}")
    parser.add_argument(
        "--out", action="store_true", help="write docs/speed.md and docs/speed.png"
    )
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if missing():
        print(f"not installed, and left out: {', '.join(missing())}\n")
    lines = []
    print(f"{'fit':36} {'against':14} {'ratio':>6} {'at most':>8}")
    for line in all_limits(args):
        lines.append(line)
        verdict = "  MISSED" if is_missed(line) else ""
        print(f"{line[0]:36} {line[1]:14} {line[2]:>6} {line[3]:>8}{verdict}", flush=True)
    if not args.only:
        report_growth(args, lines)
    return 1 if any(map(is_missed, lines)) else 0


def all_limits(args: argparse.Namespace) -> Iterator[list[str]]:
    yield from limits(args.quick, args.only)
    if not args.quick and args.only in "memory":
        yield memory_line(LARGE)


def report_growth(args: argparse.Namespace, limit_lines: list[list[str]]) -> None:
    """Print the tables of growth, and write page and picture if they are asked for."""
    sizes = dict(QUICK if args.quick else SIZES)
    if args.large:
        sizes["n"] += (LARGE,)
    found = []
    for curve in curves(sizes, args.quick):
        found.append(curve)
        print(f"\n{markdown(ratio_table(curve))}", end="", flush=True)
    print(f"\n{markdown(growth_table(found))}", end="")
    if args.out:
        flags = "".join(f" --{flag}" for flag in ("quick", "large") if getattr(args, flag))
        draw_picture(found, DOCS / "speed.png")
        text = page(f"python benchmarks/speed.py{flags} --out", limit_lines, found, "speed.png")
        (DOCS / "speed.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
