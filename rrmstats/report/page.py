"""A fit as one page: its tables, pictures and provenance."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib import import_module
from io import StringIO
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from rrmstats import plotting
from rrmstats.files import check_target, write_whole
from rrmstats.optional import installed, require
from rrmstats.plotting.canvas import LEVEL, large_weights_note, take_captions
from rrmstats.plotting.catalog import Figure, Picture, Results, report_pictures

PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
# Arguments of the constructors that are data or are shown under a name of their own.
NOT_OPTIONS = {"self", "data", "endog", "exog", "eps_bar", "freq_weights"}


def call_pairs(results: Results) -> list[tuple[str, str]]:
    """Return how the fit was made, by name and value."""
    model = results.model
    formula = getattr(model, "formula", None)
    bootstrap = results.bootstrap
    return [
        ("Model", type(model).__name__),
        ("Formula", "none: arrays were given" if formula is None else str(formula)),
        ("eps_bar", f"{model.eps_bar:g}"),
        ("Rows", f"{results.nobs:.0f}"),
        ("Frequency weights", "equal" if model.freq_weights is None else "given"),
        *model_options(model),
        ("steps", str(results.steps)),
        ("Starts", str(len(results.starts))),
        ("Standard errors", results.cov_type if bootstrap is None else bootstrap.describe()),
        ("use_t", str(results.use_t)),
    ]


def model_options(model: Any) -> list[tuple[str, str]]:
    """Return the arguments of a model's constructor other than its data, by name and value."""
    names = inspect.signature(type(model)).parameters
    given = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return [(name, option_text(given[name])) for name in given if name not in NOT_OPTIONS]


def option_text(value: Any) -> str:
    """Return an argument in a few letters: that an array was given, the class of an object."""
    if np.ndim(value):
        return "given"
    return type(value).__name__ if " object at 0x" in repr(value) else repr(value)


def provenance_pairs(model: Any) -> list[tuple[str, str]]:
    """Return the date, the hash of the data and the versions of the packages used."""
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    in_memory = isinstance(model.endog, np.ndarray | None)
    digest = data_hash(model) if in_memory else "none: the rows are in partitions"
    return [
        ("Date", now),
        ("SHA-256 of the data", digest or "none: remove_data dropped the data"),
        ("rrmstats", import_module("rrmstats").__version__),
        ("Python", platform.python_version()),
        *((name, getattr(installed(name), "__version__", "not installed")) for name in PACKAGES),
    ]


def data_hash(model: Any) -> str | None:
    r"""Return the SHA-256 of the data of a model.

    The hash covers `endog`, `exog` and the frequency weights, if present. Each enters by its name
    and shape, as in ``"endog (47,)\n"``, followed by its values as little-endian doubles, row by
    row. The name of the frequency weights is ``weights``.

    Parameters
    ----------
    model : model

    Returns
    -------
    str or None
        None after `remove_data`.

    Examples
    --------
    >>> import hashlib, numpy as np, rrmstats
    >>> from rrmstats.report import data_hash
    >>> data = np.arange(8.0).reshape(4, 2) ** 2
    >>> expected = hashlib.sha256(b"endog (4, 2)\n" + data.tobytes()).hexdigest()
    >>> data_hash(rrmstats.RRMCov(data, eps_bar=0.1)) == expected
    True
    """
    arrays = {
        "endog": getattr(model, "endog", None),
        "exog": getattr(model, "exog", None),
        "weights": model.freq_weights,
    }
    if arrays["endog"] is None:
        return None
    digest = hashlib.sha256()
    for name, values in arrays.items():
        if values is not None:
            array = np.ascontiguousarray(values, dtype="<f8")
            digest.update(f"{name} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


# Rows in the table of small weights, and of flagged rows that are not folded.
SMALLEST = 20
# A page lists at most so many flagged rows: browsers show ten thousand without delay.
MOST_LISTED = 10_000


def table_html(frame: pd.DataFrame, kind: str = "", **options: Any) -> str:
    """Return a frame as a table that scrolls if it is too wide.

    Parameters
    ----------
    frame : DataFrame
    kind : str, optional
        CSS class of the table.
    **options
        Passed on to ``frame.to_html``, which escapes texts unless ``escape=False``.
    """
    with pd.option_context("display.max_colwidth", None):
        table = frame.map(value_text).to_html(classes=kind, border=0, **options)
    return f'<div class="wide">{table}</div>'


def pairs_table(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a table of two columns."""
    return table_html(pd.Series(dict(pairs)).to_frame(), "words pairs", header=False)


def simple_table(table: Any) -> str:
    """Return a statsmodels SimpleTable as HTML; unlike its own method, this escapes texts."""
    cells = [[cell.format(0, "txt").strip() for cell in row] for row in table]
    headed = any(cell.datatype == "header" for cell in table[0])
    frame = pd.DataFrame([row[1:] for row in cells], [row[0] for row in cells])
    if headed:
        frame = frame.iloc[1:].set_axis(pd.Index(cells[0][1:], name=cells[0][0]), axis=1)
    title = f'<p class="caption">{escape(table.title)}</p>' if table.title else ""
    return title + table_html(frame, "" if headed else "words", header=headed)


def suspicious_text(results: Results) -> tuple[str, str]:
    """Return a heading, and the rows most likely bad or of smallest weight as HTML."""
    if getattr(results, "weights", None) is None:
        return "Smallest weights", "<p>None: remove_data dropped the weights.</p>"
    table = results.suspicious_table(SMALLEST)
    left = int(results.nobs) - len(table)
    heading, others = "Smallest weights", "rows of larger weight"
    if "prob_bad" in table:  # rows below 0.01 are no suspects
        full = len(table) == SMALLEST
        least = f"of {table['prob_bad'].iloc[-1]:.2g} or less" if full else "below 0.01"
        heading, others = "Rows most likely bad", f"rows with a prob_bad {least}"
    note = f"<p>{left:,} {others} are not shown.</p>" if left > 0 else ""
    return heading, (rows_table(table) if len(table) else "<p>None.</p>") + note


def flagged_text(results: Results) -> str:
    """Return all flagged rows as HTML; those that are many are folded."""
    if getattr(results, "weights", None) is None:
        return "<p>None: remove_data dropped the data.</p>"
    total, rule = int(np.asarray(np.sum(results.outliers()))), f" at the level {LEVEL:.1%}"
    if hasattr(results, "prob_bad"):
        rule = ": more likely bad than good"
    if not total:
        return f"<p>None{rule}.</p>"
    notes = [f"{total:,} of {int(results.nobs):,} rows are flagged{rule}."]
    if total > MOST_LISTED:
        notes.append(f"The {MOST_LISTED:,} of smallest weight are listed; outliers() has all.")
    if results.seen_rows.nobs == results.nobs:
        notes.append(large_weights_note(results))
    fold, listed = "", min(total, MOST_LISTED)
    if listed > SMALLEST:
        fold = (
            f'<details class="fold"><summary>Show all {listed:,} rows; the table has the first '
            f"{SMALLEST} otherwise</summary></details>"
        )
    table = rows_table(results.outlier_table(MOST_LISTED).drop(columns="outlier"))
    return f"<p>{' '.join(filter(None, notes))}</p>\n{fold}{table}"


def rows_table(table: pd.DataFrame) -> str:
    """Return rows with their weights as an HTML table, which the script of the page can sort."""
    weights = [f"{weight:.4f}" for weight in table["relative_weight"]]
    table = table.assign(relative_weight=weights).rename(columns={"relative_weight": "weight * n"})
    table.columns = table.columns.str.replace("_", " ").rename("row")
    return table_html(table.rename_axis(None), "sortable")


def value_text(value: object) -> str:
    """Return an entry of a data frame as text, numbers with four digits."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


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
    sections = [
        section("The call", pairs_table(call_pairs(results))),
        section("Summary", *summary_texts(results, summary, OWN_SECTIONS)),
        section(*suspicious_text(results)),
        section("Flagged rows", flagged_text(results)),
        section("Pictures", *figure_texts(results)),
        section("Provenance", pairs_table(provenance_pairs(results.model))),
        f"<script>\n{asset('sort.js')}</script>",
    ]
    return document(title or summary.tables[0].title, sections)


def summary_texts(results: Results, summary: Any, without: tuple[str, ...] = ()) -> list[str]:
    """Return the tables and notes of a summary as HTML, without tables that begin so."""
    tables = [t for t in summary.tables if not str(t[0][0].data).startswith(without)]
    notes = [f"<p>{escape(note)}</p>" for note in numbered_notes(results)]
    return [*map(simple_table, tables), *notes]


def numbered_notes(results: Results) -> list[str]:
    """Return the notes below the tables of a summary, each on one line."""
    return [f"[{i}] {note}" for i, note in enumerate(results._notes(), 1)]


def asset(name: str) -> str:
    """Return the text of a script, style or template of the pages."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


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
    return Template(asset("page.html")).substitute(
        heading=escape(heading),
        head=head,
        style=asset("style.css") if style is None else style,
        body="\n".join(sections),
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
