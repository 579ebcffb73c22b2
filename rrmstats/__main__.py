"""``python -m rrmstats``: a fit to data that ship, and the paper's experiments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import rrmstats
from rrmstats.experiments import EXPERIMENTS, replicate
from rrmstats.experiments.drawing import rendered
from rrmstats.experiments.driver import RUNS, installed
from rrmstats.experiments.summaries import summary_lines
from rrmstats.files import write_whole

FORMULA = "log_light ~ log_te"
EPS_BAR = 0.3
GIANTS = [10, 19, 29, 33]  # the four stars off the main sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of ``python -m rrmstats``.

    Parameters
    ----------
    argv : sequence of str, optional
        The command and its options; those of the process unless given. Without a command,
        ``demo`` is run.

    Returns
    -------
    int
        Exit status: 0, or 1 if a file could not be written.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = ["demo", *given]
    args = _parser().parse_args(given)
    try:
        args.run(args)
    except OSError as error:
        print(f"rrmstats: error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rrmstats", description=rrmstats.__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="fit the stars of CYG OB1 (the default)")
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("rrmstats_demo.png"),
        help="picture (default: %(default)s)",
    )
    demo.set_defaults(run=_demo)
    paper = commands.add_parser("replicate", help="run the experiments of the paper")
    paper.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        choices=list(EXPERIMENTS),
        help=f"one of {', '.join(EXPERIMENTS)} (default: all)",
    )
    paper.add_argument(
        "--runs", type=_count, default=RUNS, help="runs of each (default: %(default)s)"
    )
    paper.add_argument(
        "--out",
        type=Path,
        default=Path("rrmstats_replication"),
        metavar="DIR",
        help="folder of pictures and tables (default: %(default)s)",
    )
    paper.add_argument(
        "--jobs",
        type=_count,
        default=2,
        help="processes, where joblib is installed (default: %(default)s)",
    )
    paper.set_defaults(run=_replicate)
    return parser


def _count(text: str) -> int:
    """Return a whole number from 1 on, or raise what argparse reports."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, got {text!r}")
    return int(text)


def _replicate(args: argparse.Namespace) -> None:
    summary = replicate(
        None if args.name is None else [args.name],
        out=args.out,
        runs=args.runs,
        jobs=args.jobs,
        progress=True,
    )
    print("\n".join(summary_lines(summary)))
    if installed("matplotlib") is None:
        print("\nNo pictures: matplotlib is not installed; pip install rrmstats[plot]")
    print(f"\nWritten to {args.out}")


def _demo(args: argparse.Namespace) -> None:
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    robust = rrmstats.ols(FORMULA, stars, eps_bar=EPS_BAR).fit()
    least_squares = smf.ols(FORMULA, stars).fit()
    print(robust.summary())
    print(f"\nRRM (eps_bar = {EPS_BAR}) against least squares, stars of CYG OB1\n")
    print(_comparison(least_squares, robust).to_string(float_format="{:.3f}".format))
    if installed("matplotlib") is None:
        print("\nNo picture: matplotlib is not installed; pip install rrmstats[plot]")
    else:
        _save(_picture(stars, least_squares, robust), args.out)
        print(f"\nPicture: {args.out}")


def _comparison(least_squares: Any, robust: Any) -> pd.DataFrame:
    """Slope and mean squared residuals of the two fits, one column each."""
    main_sequence = ~least_squares.resid.index.isin(GIANTS)

    def column(fit: Any) -> list[float]:
        losses = fit.resid**2
        return [
            fit.params["log_te"],
            losses.mean(),
            losses[main_sequence].mean(),
            np.average(losses, weights=robust.weights),
        ]

    rows = [
        "slope",
        "mean squared residual: all 47 stars",
        "mean squared residual: 43 stars of the main sequence",
        "mean squared residual: weighted by RRM",
    ]
    return pd.DataFrame({"OLS": column(least_squares), "RRM": column(robust)}, index=rows)


def _picture(stars: pd.DataFrame, least_squares: Any, robust: Any) -> Any:
    """Matplotlib figure of the stars, colored by weight, and the two lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    points = axes.scatter(
        stars["log_te"],
        stars["log_light"],
        c=len(stars) * robust.weights,
        cmap="cividis",
        edgecolors="black",
        zorder=2,
    )
    ends = stars.loc[[stars["log_te"].idxmin(), stars["log_te"].idxmax()]]
    for fit, label, style in ((least_squares, "least squares", "--"), (robust, "RRM", "-")):
        axes.plot(ends["log_te"], fit.predict(ends), style, color="black", zorder=1, label=label)
    axes.set_ylim(stars["log_light"].min() - 0.5, stars["log_light"].max() + 0.5)
    axes.set(xlabel="log surface temperature", ylabel="log light intensity")
    axes.set_title(f"Stars of CYG OB1, eps_bar = {EPS_BAR}")
    axes.legend(loc="lower left")
    figure.colorbar(points, label="weight, relative to 1/n")
    return figure


def _save(figure: Any, path: Path) -> None:
    """Write the figure to `path`, or raise OSError and leave nothing behind."""
    try:
        content = rendered(figure, path.suffix.removeprefix(".") or "png", dpi=150)
        write_whole(path, content)
    except ValueError as error:  # an unknown format, or a path without a name
        raise OSError(f"cannot write {path}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
