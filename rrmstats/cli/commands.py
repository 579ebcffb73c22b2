"""What each command does with its options."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from importlib import import_module
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
    """Fit a model, at one or all values of eps_bar; write files, and print the summary."""
    along = "table" in args  # a path
    if along and args.report is not None:
        require("plotly", "interactive")
    check_options(args)
    check_outputs(args)
    source = read_source(args.data, args.input_format, args.sep, args.decimal)
    frame = source.frame()
    args.rows = len(frame)
    # A path takes no notice of the bound of its model.
    model = make_model(args, frame, 0.0 if along else args.eps_bar)
    options = fit_options(args, frame)
    fit = model.path(**options) if along else model.fit(**options)
    files = written_files(args, source, fit)
    summary = SUMMARIES["text" if along else args.format](fit, args)
    if args.out is not None:
        files[args.out] = summary
    write_all(files)
    if args.out is None:
        print(summary, end="")


def fit_options(args: argparse.Namespace, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the keywords of a fit or a path that the options stand for."""
    options: dict[str, Any] = {"steps": args.steps, "cov_type": args.cov_type}
    if args.cluster is not None:
        check_column(args.cluster, frame.columns)
        options["cov_kwds"] = {"groups": frame[args.cluster]}
    if args.maxlags is not None:
        options["cov_kwds"] = {"maxlags": args.maxlags}
    return options


def written_files(args: argparse.Namespace, source: Source, fit: Any) -> dict[Path, str | bytes]:
    """Return the contents of the files that are asked for, besides the summary."""
    files, tables = dict[Path, str | bytes](), dict[Path, pd.DataFrame]()
    if args.report is not None:
        with tempfile.TemporaryDirectory() as folder:
            page = fit.report(Path(folder, "report.html"))
            files[args.report] = page.read_text(encoding="utf-8")
    if getattr(args, "plot", None) is not None:
        files[args.plot] = picture(fit.plot(), args.plot)
    if getattr(args, "table", None) is not None:
        tables[args.table] = fit.frame
    if getattr(args, "weights", None) is not None:
        tables[args.weights] = beside_rows(source.frame_for(form_of(args.weights)), fit)
    for path, table in tables.items():
        files[path] = table_bytes(table, form_of(path), args.sep, args.decimal)
    return files


def picture(figure: Any, path: Path) -> bytes:
    """Return a matplotlib figure as the content of a file; PNG where its name has no ending."""
    content = io.BytesIO()
    figure.savefig(content, format=_suffix(path) or "png", dpi=150)
    return content.getvalue()


def _suffix(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def check_outputs(args: argparse.Namespace) -> None:
    """Raise where a file that is asked for cannot be written, before any work.

    Parameters
    ----------
    args : argparse.Namespace
        With `data`, `force`, and the options that name files.
    """
    options = ("out", "report", "weights", "plot", "table")
    given = {option: getattr(args, option, None) for option in options}
    places: dict[Path, str] = {}
    for option, path in given.items():
        if path is None:
            continue
        check_place(f"--{option}", path, args)
        check_kind(option, path)
        other = places.setdefault(path.resolve(), option)
        if other != option:
            raise UsageError(f"--{other} and --{option} must be different files")


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
        for shipped in (getattr(datasets, name) for name in names):
            data = shipped.load_pandas().data
            print(f"{shipped.name}: {shipped.DESCRSHORT}")
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
