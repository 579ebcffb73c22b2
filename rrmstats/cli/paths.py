"""Fits at all values of eps_bar."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from rrmstats.cli.errors import UsageError
from rrmstats.cli.fits import report_text
from rrmstats.cli.making import asked_steps, check_options, make_model
from rrmstats.cli.outputs import check_outputs, check_report
from rrmstats.cli.tables import form_of, read_source, require_form, table_bytes
from rrmstats.cli.wording import in_shell
from rrmstats.files import write_all
from rrmstats.optional import require

PICTURES = ("png", "pdf", "svg")
DPI = 150
# A path takes no notice of the bound of its model.
ANY_BOUND = 0.0


def run_path(args: argparse.Namespace) -> None:
    """Fit a model at all values of eps_bar, write files, and print the summary."""
    check_options(args)
    check_outputs(args, ["report", "plot", "table"])
    _check_needs(args)
    frame = read_source(args.data, args.input_format, args.sep, args.decimal).frame()
    path = make_model(args, frame, ANY_BOUND).path(steps=asked_steps(args))
    files: dict[Path, str | bytes] = {}
    if args.report is not None:
        files[args.report] = report_text(path)
    if args.plot is not None:
        files[args.plot] = picture(path.plot(), args.plot)
    if args.table is not None:
        files[args.table] = table_bytes(path.frame, form_of(args.table), args.sep, args.decimal)
    summary = in_shell(path.summary().as_text())
    write_all(files)
    print(summary)


def _check_needs(args: argparse.Namespace) -> None:
    """Raise where a file has no known format, or what writes it is not installed."""
    check_report(args.report)
    if args.report is not None:
        require("plotly", "interactive")
    if args.plot is not None:
        if _suffix(args.plot) not in PICTURES:
            raise UsageError(f"--plot writes {', '.join(PICTURES)}, got the name {args.plot}")
        require("matplotlib", "plot")
    if args.table is not None:
        require_form(form_of(args.table))


def _suffix(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def picture(figure: Any, path: Path) -> bytes:
    """Return a matplotlib figure as the content of a file."""
    content = io.BytesIO()
    figure.savefig(content, format=_suffix(path), dpi=DPI)
    return content.getvalue()
