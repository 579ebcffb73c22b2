"""What each command does with its options."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

import rrmstats
from rrmstats import datasets
from rrmstats.cli.errors import CommandError, UsageError, nearest
from rrmstats.cli.formulas import check_column
from rrmstats.cli.model import check_options, make_model
from rrmstats.cli.summaries import SUMMARIES, beside_rows
from rrmstats.cli.tables import STDIN, Source, form_of, read_source, require_form, table_bytes
from rrmstats.files import check_target, write_all, write_whole
from rrmstats.optional import installed, require

PICTURES = ("png", "pdf", "svg")
NO_MATPLOTLIB = "matplotlib is not installed; pip install rrmstats[plot]"
# The demo: the four stars off the main sequence.
GIANTS = [10, 19, 29, 33]


def run_fit(args: argparse.Namespace) -> None:
    """Fit a model, write the files that are asked for, and print the summary."""
    source, frame = read_checked(args, ["out", "report", "weights"])
    fit = make_model(args, frame, args.eps_bar).fit(**fit_options(args, frame))
    files = report_file(args, fit)
    if args.weights is not None:
        form = form_of(args.weights)
        rows = beside_rows(source.frame_for(form), fit)
        files[args.weights] = table_bytes(rows, form, args.sep, args.decimal)
    finish(args, files, SUMMARIES[args.format](fit, args))


def run_path(args: argparse.Namespace) -> None:
    """Fit a model at all values of eps_bar, write files, and print the summary."""
    if args.report is not None:
        require("plotly", "interactive")
    _, frame = read_checked(args, ["out", "report", "plot", "table"])
    # A path takes no notice of the bound of its model.
    path = make_model(args, frame, 0.0).path(**fit_options(args, frame))
    files = report_file(args, path)
    if args.plot is not None:
        files[args.plot] = picture(path.plot(), args.plot)
    if args.table is not None:
        files[args.table] = table_bytes(path.frame, form_of(args.table), args.sep, args.decimal)
    finish(args, files, f"{path.summary().as_text()}\n")


def read_checked(args: argparse.Namespace, outputs: Sequence[str]) -> tuple[Source, pd.DataFrame]:
    """Return the data, after a check of all options and of the files to be written."""
    check_options(args)
    check_outputs(args, outputs)
    source = read_source(args.data, args.input_format, args.sep, args.decimal)
    frame = source.frame()
    args.rows = len(frame)
    return source, frame


def fit_options(args: argparse.Namespace, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the keywords of a fit or a path that the options stand for."""
    options: dict[str, Any] = {"steps": asked_steps(args), "cov_type": args.cov_type}
    if args.cluster is not None:
        check_column(args.cluster, frame.columns)
        options["cov_kwds"] = {"groups": frame[args.cluster]}
    if args.maxlags is not None:
        options["cov_kwds"] = {"maxlags": args.maxlags}
    return options


def finish(args: argparse.Namespace, files: dict[Path, str | bytes], summary: str) -> None:
    """Write all files, and print the summary unless it goes to one of them."""
    if args.out is not None:
        files[args.out] = summary
    write_all(files)
    if args.out is None:
        print(summary, end="")


def asked_steps(args: argparse.Namespace) -> int:
    """Return the number of steps, also where the former --efficiency asks for them."""
    if args.efficiency is None:
        return int(args.steps)
    warnings.warn(
        "--efficiency will be removed: two steps are the default, without an efficiency to "
        f"choose. Use --steps 2 in place of --efficiency {args.efficiency:g}",
        UserWarning,
        stacklevel=2,
    )
    return 2


def report_file(args: argparse.Namespace, fit: Any) -> dict[Path, str | bytes]:
    """Return the report of a fit or a path by the name of its file, if it is asked for."""
    if args.report is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        page: Path = fit.report(Path(folder, "report.html"))
        return {args.report: page.read_text(encoding="utf-8")}


def picture(figure: Any, path: Path) -> bytes:
    """Return a matplotlib figure as the content of a file; PNG where its name has no ending."""
    content = io.BytesIO()
    figure.savefig(content, format=_suffix(path) or "png", dpi=150)
    return content.getvalue()


def _suffix(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def check_outputs(args: argparse.Namespace, options: Sequence[str]) -> None:
    """Raise where a file that is asked for cannot be written, before any work.

    Parameters
    ----------
    args : argparse.Namespace
        With `data` and `force`.
    options : sequence of str
        The options, as `args` has them, that name files.
    """
    given = {option: getattr(args, option) for option in options}
    given = {option: path for option, path in given.items() if path is not None}
    for option, path in given.items():
        check_place(f"--{option}", path, args)
        check_kind(option, path)
    for first, second in combinations(given, 2):
        if given[first].resolve() == given[second].resolve():
            raise UsageError(f"--{first} and --{second} must be different files")


def check_place(option: str, path: Path, args: argparse.Namespace) -> None:
    """Raise where no file can be written, or one would be lost."""
    if str(path) == STDIN:
        raise UsageError(f"{option} needs the name of a file, got {path}")
    check_target(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise CommandError(f"cannot write to {path.parent}: {error.strerror}") from None
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a regular file; give another name to {option}")
    if args.data != STDIN and Path(args.data).exists() and path.exists():
        if path.samefile(args.data):
            raise UsageError(f"{path} has the data; give another name to {option}")
    if path.is_file() and not args.force:
        raise UsageError(f"{path} exists; give another name to {option}, or --force")


def check_kind(option: str, path: Path) -> None:
    """Raise where a name has no format that the option writes, or what writes it is missing."""
    if option == "report" and _suffix(path) not in ("html", "htm"):
        raise UsageError(f"--report writes HTML: give a name that ends in .html, got {path}")
    if option == "plot":
        if _suffix(path) not in PICTURES:
            raise UsageError(f"--plot writes {', '.join(PICTURES)}, got the name {path}")
        require("matplotlib", "plot")
    if option in ("weights", "table"):
        require_form(form_of(path))


def run_datasets(args: argparse.Namespace) -> None:
    """List the data sets of the package, or print one table as CSV."""
    names = datasets.available()
    if args.name is None:
        for name in names:
            shipped = getattr(datasets, name)
            data = shipped.load_pandas().data
            print(f"{name}: {shipped.DESCRSHORT}")
            print(f"  {len(data)} rows: {', '.join(data.columns)}")
        print("\nrrmstats datasets NAME > NAME.csv writes one of them.")
        return
    if args.name not in names:
        near = nearest(args.name, names, "name")
        raise UsageError(f"there is no data set {args.name!r}; {near}")
    data = getattr(datasets, args.name).load_pandas().data
    print(table_bytes(data, "csv").decode("utf-8"), end="")


def run_replicate(args: argparse.Namespace) -> None:
    """Run experiments of the paper, and print what they find."""
    experiments = find_experiments()
    try:
        names = None if args.name is None else [experiments.full_name(args.name)]
    except ValueError as error:
        raise UsageError(str(error)) from None
    runs = {} if args.runs is None else {"runs": args.runs}
    shown = sys.stderr.isatty()
    found = experiments.replicate(names, out=args.out, jobs=args.jobs, progress=shown, **runs)
    print("\n".join(experiments.summary_lines(found)))
    if installed("matplotlib") is None:
        print(f"\nNo pictures: {NO_MATPLOTLIB}")
    print(f"\nWritten to {args.out}")


def find_experiments() -> ModuleType:
    """Return the module `replication` of the checkout around the package or the current folder."""
    for folder in (Path(rrmstats.__file__).parents[1], Path.cwd()):
        if (folder / "replication" / "paper.py").is_file():
            sys.path.insert(0, str(folder))
            return import_module("replication")
    raise UsageError(
        "the experiments are not installed with the package: run this command in a checkout of "
        "rrmstats or in its unpacked sdist, which have them in the folder replication"
    )


def run_demo(args: argparse.Namespace) -> None:
    """Print a fit to the stars of CYG OB1 beside least squares, and write its picture."""
    import statsmodels.formula.api as smf

    stars = datasets.stars_cyg.load_pandas().data
    robust = rrmstats.ols("log_light ~ log_te", stars, eps_bar="auto").fit()
    least_squares = smf.ols("log_light ~ log_te", stars).fit()
    written = f"No picture: {NO_MATPLOTLIB}"
    if installed("matplotlib") is not None:
        written = f"Picture: {args.out}, kept as it was; --force replaces it"
        if args.force or not args.out.is_file():
            written = f"Picture: {args.out}"
            try:
                write_whole(args.out, picture(robust.plot_fit(), args.out))
            except ValueError as error:  # an unknown format, or a path without a name
                raise OSError(f"cannot write {args.out}: {error}") from error
    print(robust.summary())
    print("\nRRM against least squares, stars of CYG OB1\n")
    table = pd.DataFrame({"OLS": _losses(least_squares, robust), "RRM": _losses(robust, robust)})
    print(table.to_string(float_format="{:.3f}".format))
    print(f"\n{written}")


def _losses(fit: Any, robust: Any) -> dict[str, float]:
    """Return the slope and mean squared residuals of a fit."""
    losses, mean = fit.resid**2, "mean squared residual: "
    return {
        "slope": fit.params["log_te"],
        f"{mean}all 47 stars": losses.mean(),
        f"{mean}43 stars of the main sequence": losses.drop(GIANTS).mean(),
        f"{mean}weighted by RRM": np.average(losses, weights=robust.weights),
    }
