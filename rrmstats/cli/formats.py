"""The summary of a fit as text, LaTeX, HTML and JSON."""

from __future__ import annotations

import argparse
import json
from html import escape
from typing import Any

from rrmstats.cli.as_json import fit_record
from rrmstats.cli.as_latex import latex_summary
from rrmstats.cli.wording import in_shell
from rrmstats.report.page import document, section
from rrmstats.report.tables import simple_table


def text_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return statsmodels' tables and the notes as text."""
    return in_shell(f"{fit.summary().as_text()}\n")


def html_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return the tables and the notes as an HTML document."""
    summary = fit.summary()
    tables = [simple_table(table) for table in summary.tables]
    notes = [f"<p>{escape(note)}</p>" for note in summary_notes(fit)]
    heading = summary.tables[0].title
    return document(heading, [section(args.formula, *tables, *notes)])


def latex_text(fit: Any, args: argparse.Namespace) -> str:
    """Return the tables and the notes as a fragment of LaTeX."""
    summary = fit.summary()
    return latex_summary(summary.tables, summary_notes(fit))


def json_summary(fit: Any, args: argparse.Namespace) -> str:
    """Return the numbers of a fit as one JSON object."""
    record = fit_record(fit, args)
    return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def summary_notes(fit: Any) -> list[str]:
    """Return the notes below the tables, each on one line."""
    return [f"[{i}] {in_shell(note)}" for i, note in enumerate(fit._notes(), 1)]


#: What ``--format`` names.
SUMMARIES = {
    "text": text_summary,
    "latex": latex_text,
    "html": html_summary,
    "json": json_summary,
}
