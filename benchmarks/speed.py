"""Time fits against what others fit to the same data, in one run on one thread.

Rows with a limit come first, then the peak of memory, then the growth of time in n and d.
"""

import argparse
import os
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import statsmodels.api as sm
from peers import (
    FAMILIES,
    Data,
    R,
    counts,
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
    wide_regression,
)

from replication.samples import other_subspace
from rrmstats import RRMOLS, RRMPCA, RRMLogit
from rrmstats.datasets import breast_cancer

DOCS = Path(__file__).resolve().parents[1] / "docs"
N_OF_D, D_OF_N = 2000, 10
SIZES = {"n": (40, 400, 4000, 40_000, 200_000, 1_000_000), "d": (2, 5, 10, 20, 40, 60, 100)}
QUICK = {"n": (40, 400, 4000), "d": (5, 10, 20)}
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


def few_rows(n: int, k: int, repeats: int = 7) -> Pair:
    """Return two steps with errors, and 1.5 times pylmrob or 3 times RLM, the larger of these."""
    least = least_seconds(("RRMOLS, two steps", "RLM"), regression(n, k), repeats)
    most = 3.0 * least["RLM"]
    if is_available("pylmrob"):
        most = max(most, 1.5 * least_seconds(("pylmrob",), regression(n, k), repeats)["pylmrob"])
    return least["RRMOLS, two steps"], most


def in_turn(fits: Sequence[Callable[[], Any]], repeats: int = 5) -> Pair:
    """Return the least times of two fits."""
    times = np.min([[python_seconds(fit, ()) for fit in fits] for _ in range(repeats)], axis=0)
    return float(times[0]), float(times[1])


def alone(fit: Callable[[], Any], repeats: int = 2) -> Pair:
    """Return the time of a fit, and one second."""
    return min(python_seconds(fit, ()) for _ in range(repeats)), 1.0


def with_summary(n: int, k: int) -> Pair:
    model = RRMOLS(*regression(n, k), 0.2)
    return in_turn((lambda: model.fit().summary(), lambda: model.fit()))


def path(n: int, k: int) -> Pair:
    model = RRMOLS(*regression(n, k), 0.2)
    return in_turn((lambda: model.path(0.018 * np.arange(26)), lambda: model.fit()), 2)


def wide_errors(share: float) -> Pair:
    """Return the errors of predictions from dirty data, and from the good rows alone."""
    data, bad, (endog, exog) = wide_regression(share, np.random.default_rng(0))
    good = sm.OLS(data[0][~bad], data[1][~bad]).fit()
    found = RRMOLS(*data, WIDE_BOUND).fit()
    errors = [np.sqrt(np.mean((endog - exog @ fit.params) ** 2)) for fit in (found, good)]
    return float(errors[0]), float(errors[1])


def tumors(eps_bar: float | str) -> Pair:
    data = breast_cancer.load_pandas()
    model = RRMLogit(data.endog, sm.add_constant(data.exog), eps_bar)
    return alone(lambda: model.fit().summary())


def wide_components() -> Pair:
    """Return the time of two components of data with the shape of the octane spectra."""
    data = other_subspace(np.random.default_rng(0), 39, d=226, share=0.15)
    return alone(lambda: RRMPCA(data, 2, 0.2).fit())


def bootstrap() -> Pair:
    model = RRMOLS(*regression(47, 2), 0.2)
    options = {"cov_type": "bootstrap", "cov_kwds": {"n_boot": 999}}
    return alone(lambda: model.fit(**options), 1)


def cov_rows(n: int, d: int, limits: dict[str, float], quick: bool) -> Iterator[Row]:
    for peer, limit in limits.items():
        measure = against("RRMCov", peer, lambda: points(n, d))
        yield Row(f"RRMCov n={n:,} d={d}", peer, measure, limit, quick)


def large_rows() -> Iterator[Row]:
    """Return the regressions of many rows."""
    for name, limit in (("RRMOLS", 1.0), ("RRMOLS, two steps", 2.0), ("RRMOLS, auto", 2.5)):
        measure = against(name, "OLS", lambda: regression(1_000_000, 10), 2)
        yield Row(f"{name} n=1e6 k=10", "OLS", measure, limit, quick=False)
    for name in ("RRMOLS, two steps", "RRMOLS, auto"):
        measure = against(name, "OLS", lambda: regression(100_000, 10))
        yield Row(f"{name} n=1e5 k=10", "OLS", measure, 4.0)


def small_rows() -> Iterator[Row]:
    """Return the regressions of few rows."""
    for n, k in ((21, 3), (60, 5), (100, 5)):
        name = f"RRMOLS, two steps n={n} k={k}"
        yield Row(name, "1.5 pylmrob or 3 RLM", partial(few_rows, n, k), 1.0)
        auto = against("RRMOLS, auto", "RRMOLS, two steps", partial(regression, n, k), 7)
        yield Row(f"RRMOLS, auto n={n} k={k}", "two steps", auto, 2.5)
        yield Row(f"RRMOLS, summary n={n} k={k}", "two steps", partial(with_summary, n, k), 1.1)


def wide_rows() -> Iterator[Row]:
    """Return the regressions of many columns."""
    wide, some = wide_regression(0.2, np.random.default_rng(0))[0], regression(3000, 200)
    yield Row(
        "RRMOLS, two steps n=3,268 k=409", "1 s",
        lambda: alone(lambda: RRMOLS(*wide, WIDE_BOUND).fit().bse, 1), 10.0, quick=False,
    )  # fmt: skip
    for share in (0.2, 0.4):
        name = f"RRMOLS, RMSE n=3,268 k=409, {share:.0%} bad"
        yield Row(name, "the good rows", partial(wide_errors, share), 1.05, quick=False)
    yield Row(
        "RRMOLS, two steps n=3,000 k=200", "1 s",
        lambda: alone(lambda: RRMOLS(*some, 0.2).fit().bse, 1), 1.0,
    )  # fmt: skip


def label_rows() -> Iterator[Row]:
    """Return classifications and counts."""
    for name, peer, draw in (
        ("RRMLogit, two steps", "Logit", labels),
        ("RRMPoisson, two steps", "Poisson", counts),
    ):
        yield Row(f"{name} n=1e5 k=10", peer, against(name, peer, partial(draw, 100_000, 10)), 3.0)
    yield Row("RRMLogit, breast cancer, summary", "1 s", partial(tumors, 0.1), 0.4)
    yield Row("RRMLogit, breast cancer, auto", "1 s", partial(tumors, "auto"), 0.8)


# Largest share of bad responses of the wide regressions.
WIDE_BOUND = 0.45
ROWS = [
    *large_rows(),
    *small_rows(),
    *wide_rows(),
    *label_rows(),
    Row("RRMOLS, path of 26 values n=100 k=4", "two steps", partial(path, 100, 4), 6.0),
    Row("RRMOLS, 999 bootstrap draws n=47 k=2", "1 s", bootstrap, 3.0),
    *(
        row
        for d in (20, 40, 60, 100)
        for row in cov_rows(2000, d, {"MinCovDet": 0.3}, quick=d == 20)
    ),
    *cov_rows(100_000, 10, {"covMcd": 1.0}, quick=False),
    Row(
        "RRMPCA, two steps n=1e5 d=10", "PcaHubert",
        against("RRMPCA, two steps", "PcaHubert", lambda: points(100_000, 10), 1), 1.0,
        quick=False,
    ),
    Row("RRMPCA 39 x 226, two steps", "1 s", wide_components, 0.6),
]  # fmt: skip


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
    return [f"RRMOLS, two steps n={n:,} k=10", "1 GB of memory", f"{peak:.2f}", f"{MEMORY_LIMIT}"]


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
            dashes = "--" if name.endswith("two steps") else "-"
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
labels); `eps_bar` is twice that, or automatic where the row says so. Fits in two steps and
automatic ones have standard errors, other fits have one step and none. The data with 409 columns
have the shape and the bad responses (20 or 40 %) of those of TERM (Li et al., 2021), but are
simulated: their singular values fall as j^-0.75, an assumption. The data 39 x 226 have 15 % of the
rows in another subspace.

Made by `{command}`. {notes}

## Limits

{limits}
A fit without a peer is compared with one second, errors of predictions with those of a fit to the
good rows, and memory with 1 GB beyond `endog` and `exog` at the peak. {verdict}

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
    parser.add_argument(
        "--small", action="store_true", help="all limits, growth on small sizes without R"
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
    print(f"{'fit':42} {'against':20} {'ratio':>6} {'at most':>8}")
    for line in all_limits(args):
        lines.append(line)
        verdict = "  MISSED" if is_missed(line) else ""
        print(f"{line[0]:42} {line[1]:20} {line[2]:>6} {line[3]:>8}{verdict}", flush=True)
    if not args.only:
        report_growth(args, lines)
    return 1 if any(map(is_missed, lines)) else 0


def all_limits(args: argparse.Namespace) -> Iterator[list[str]]:
    yield from limits(args.quick, args.only)
    if not args.quick and args.only in "memory":
        yield memory_line(LARGE)


def report_growth(args: argparse.Namespace, limit_lines: list[list[str]]) -> None:
    """Print the tables of growth, and write page and picture if they are asked for."""
    few = args.quick or args.small
    sizes = dict(QUICK if few else SIZES)
    if args.large:
        sizes["n"] += (LARGE,)
    found = []
    for curve in curves(sizes, few):
        found.append(curve)
        print(f"\n{markdown(ratio_table(curve))}", end="", flush=True)
    print(f"\n{markdown(growth_table(found))}", end="")
    if args.out:
        flags = "".join(
            f" --{flag}" for flag in ("quick", "small", "large") if getattr(args, flag)
        )
        draw_picture(found, DOCS / "speed.png")
        text = page(f"python benchmarks/speed.py{flags} --out", limit_lines, found, "speed.png")
        (DOCS / "speed.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
