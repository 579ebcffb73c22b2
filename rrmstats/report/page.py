"""The page as a whole."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any

from rrmstats.files import check_target, write_whole
from rrmstats.report.figures import figure_texts
from rrmstats.report.offers import ReportedResults
from rrmstats.report.provenance import call_pairs, provenance_pairs
from rrmstats.report.style import STYLE
from rrmstats.report.tables import flagged_text, pairs_table, simple_table, suspicious_text

# The summary has a short table with one of these headings, which the report replaces by a longer
# one.
OWN_SECTIONS = ("Smallest weights", "Most likely bad rows")


def write_report(
    results: ReportedResults, path: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Write a fit as one HTML file: tables, pictures, the call, versions and a hash of the data.

    All flagged rows are listed, and a click on a heading sorts the tables of rows. The file does
    not load anything else. If matplotlib is not installed, the file says so in place of the
    pictures.

    Parameters
    ----------
    results : results of any model
    path : str or path
        Path of the file. An existing file is replaced only after the new one has been written
        completely.
    title : str, optional
        Title of the page.

    Returns
    -------
    pathlib.Path
        Path of the file.

    Raises
    ------
    OSError
        If the directory does not exist or cannot be written to.

    Examples
    --------
    >>> import tempfile, rrmstats
    >>> from rrmstats.report import write_report
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_report(res, f"{folder}/stars.html").read_text(encoding="utf-8")
    >>> text.count("<svg"), text.count("http")
    (5, 0)
    """
    target = Path(path)
    check_target(target)
    write_whole(target, page_text(results, title))
    return target


def page_text(results: ReportedResults, title: str | None = None) -> str:
    """Return a fit as the text of an HTML page."""
    summary = results.summary()
    heading = title or summary.tables[0].title
    notes = note_texts(summary.extra_txt or "")
    sections = [
        section("The call", pairs_table(call_pairs(results))),
        section(
            "Summary",
            *(simple_table(table) for table in summary.tables if not is_own_section(table)),
            *(f"<p>{escape(note)}</p>" for note in notes),
        ),
        section(*suspicious_text(results)),
        section("Flagged rows", flagged_text(results)),
        section("Pictures", *figure_texts(results)),
        section("Provenance", pairs_table(provenance_pairs(results.model))),
    ]
    script = Path(__file__).with_name("sort.js").read_text(encoding="utf-8")
    return document(heading, [*sections, f"<script>\n{script}</script>"])


def is_own_section(table: Any) -> bool:
    """Tell whether the report has a longer table in the place of one of the summary."""
    return str(table[0][0].data) in OWN_SECTIONS


def note_texts(text: str) -> list[str]:
    r"""Return the notes below a summary, each of which begins with its number in brackets.

    Examples
    --------
    >>> from rrmstats.report.page import note_texts
    >>> note_texts("Notes:\n[1] The first,\n    which is long.\n[2] The second.")
    ['[1] The first, which is long.', '[2] The second.']
    """
    parts = re.split(r"^(?=\[\d+\] )", text, flags=re.MULTILINE)
    notes = [" ".join(part.removeprefix("Notes:").split()) for part in parts]
    return [note for note in notes if note]


def document(heading: str, sections: list[str], head: str = "", style: str = STYLE) -> str:
    """Return sections as an HTML document.

    Parameters
    ----------
    heading : str
    sections : list of str
        As HTML.
    head : str, optional
        Further elements of the head, as HTML.
    style : str, optional
        As CSS.
    """
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"{head}<title>{escape(heading)}</title>\n<style>{style}</style>\n</head>\n<body>",
            f"<h1>{escape(heading)}</h1>",
            *sections,
            "</body>\n</html>\n",
        ]
    )


def section(heading: str, *parts: str) -> str:
    """Return parts under a heading."""
    return "\n".join([f"<section>\n<h2>{escape(heading)}</h2>", *parts, "</section>"])
