"""A fit: its summary, its report and its weights."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from rrmstats.cli.beside import beside_rows
from rrmstats.cli.formats import SUMMARIES
from rrmstats.cli.making import asked_steps, check_options, make_model
from rrmstats.cli.outputs import check_outputs, check_report
from rrmstats.cli.tables import form_of, read_source, require_form, table_bytes
from rrmstats.files import write_all


def run_fit(args: argparse.Namespace) -> None:
    """Fit a model, write the files that are asked for, and print the summary."""
    check_options(args)
    check_outputs(args, ["out", "report", "weights"])
    check_report(args.report)
    form = None if args.weights is None else form_of(args.weights)
    if form is not None:
        require_form(form)
    source = read_source(args.data, args.input_format, args.sep, args.decimal)
    frame = source.frame()
    fit = make_model(args, frame, args.eps_bar).fit(steps=asked_steps(args))
    files: dict[Path, str | bytes] = {}
    if args.report is not None:
        files[args.report] = report_text(fit)
    if form is not None:
        rows = beside_rows(source.frame_for(form), fit)
        files[args.weights] = table_bytes(rows, form, args.sep, args.decimal)
    summary = SUMMARIES[args.format](fit, args)
    if args.out is not None:
        files[args.out] = summary
    write_all(files)
    if args.out is None:
        print(summary, end="")


def report_text(fit: Any) -> str:
    """Return the report of a fit or a path as a page of HTML."""
    with tempfile.TemporaryDirectory() as folder:
        page: Path = fit.report(Path(folder, "report.html"))
        return page.read_text(encoding="utf-8")
