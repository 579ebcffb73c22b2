"""A fit as one page: its tables, pictures and provenance."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from html import escape
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from rrmstats import plotting
from rrmstats.files import check_target, write_whole
from rrmstats.optional import require
from rrmstats.plotting.canvas import take_captions
from rrmstats.plotting.catalog import Picture, Results, report_pictures
from rrmstats.report.provenance import call_pairs, provenance_pairs
from rrmstats.report.tables import flagged_text, pairs_table, simple_table, suspicious_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The summary has a short table whose heading begins so, which the report replaces by a longer one.
OWN_SECTIONS = ("Smallest weights", "Most likely bad rows")


def write_report(results: Results, path: str | os.PathLike[str], title: str | None = None) -> Path:
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


def page_text(results: Results, title: str | None = None) -> str:
    """Return a fit as the text of an HTML page."""
    summary = results.summary()
    tables = [t for t in summary.tables if not str(t[0][0].data).startswith(OWN_SECTIONS)]
    notes = note_texts(summary.extra_txt or "")
    sections = [
        section("The call", pairs_table(call_pairs(results))),
        section(
            "Summary",
            *(simple_table(table) for table in tables),
            *(f"<p>{escape(note)}</p>" for note in notes),
        ),
        section(*suspicious_text(results)),
        section("Flagged rows", flagged_text(results)),
        section("Pictures", *figure_texts(results)),
        section("Provenance", pairs_table(provenance_pairs(results.model))),
        f"<script>\n{asset('sort.js')}</script>",
    ]
    return document(title or summary.tables[0].title, sections)


def asset(name: str) -> str:
    """Return the text of a script, style or template of the pages."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


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


def document(
    heading: str, sections: Sequence[str], head: str = "", style: str | None = None
) -> str:
    """Return sections as an HTML document.

    Parameters
    ----------
    heading : str
    sections : sequence of str
        As HTML.
    head : str, optional
        Further elements of the head, as HTML.
    style : str, optional
        As CSS; by default that of the report of a fit.
    """
    css = asset("style.css") if style is None else style
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"{head}<title>{escape(heading)}</title>\n<style>\n{css}</style>\n</head>\n<body>",
            f"<h1>{escape(heading)}</h1>",
            *sections,
            "</body>\n</html>\n",
        ]
    )


def section(heading: str, *parts: str) -> str:
    """Return parts under a heading."""
    return "\n".join([f"<section>\n<h2>{escape(heading)}</h2>", *parts, "</section>"])


def figure_texts(results: Results) -> list[str]:
    """Return the pictures of a fit as HTML, or the reason why there are none."""
    if getattr(results, "weights", None) is None:  # remove_data dropped them
        return ["<p>None: remove_data dropped the data.</p>"]
    try:
        require("matplotlib", "plot")
    except ImportError as error:
        return [f"<p>None: {escape(str(error))}</p>"]
    seen = results.seen_rows
    some = f" ({seen.nobs:,.0f} of {results.nobs:,.0f} rows, at random)"
    note = some if seen.nobs < results.nobs else ""
    return [
        figure_text(seen, picture, number, note if picture.uses_rows else "")
        for number, picture in enumerate(report_pictures(seen), 1)
    ]


def figure_text(results: Results, picture: Picture, number: int, note: str = "") -> str:
    """Return one picture with its caption and a note, or the reason why it cannot be drawn."""
    words = [picture.caption + note]
    fig = import_module("matplotlib.figure").Figure(figsize=picture.size, layout="constrained")
    where = {picture.target: fig.subplots() if picture.target == "ax" else fig}
    try:
        getattr(plotting, picture.function)(results, **where, **dict(picture.options))
    except ValueError as error:
        body = f"<p>Not drawn: {escape(str(error))}</p>"
    else:
        words.append(take_captions(fig))
        body = svg_text(fig, f"picture{number}-", picture.caption)
    text = ". ".join(word for word in words if word)
    caption = f"<figcaption>{number}. {escape(text)}</figcaption>"
    return f"<figure>\n{body}\n{caption}\n</figure>"


def svg_text(fig: Figure, prefix: str, name: str) -> str:
    """Return a picture as an SVG element that can stand in a page beside others.

    Parameters
    ----------
    fig : matplotlib Figure
    prefix : str
        Put before every id, so that ids differ from those of other pictures.
    name : str
        Name of the picture for readers who cannot see it.
    """
    buffer, options = StringIO(), {"svg.hashsalt": "rrmstats", "svg.fonttype": "path"}
    with import_module("matplotlib").rc_context(options):
        fig.savefig(buffer, format="svg", dpi=150)  # of the parts that are drawn as an image
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text).replace("url(#", f"url(#{prefix}")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)
