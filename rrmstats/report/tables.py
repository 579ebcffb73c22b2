"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.plotting.canvas import LEVEL, large_weights_note
from rrmstats.plotting.catalog import Results

# Rows in the table of small weights, and of flagged rows that are not folded.
SMALLEST = 20
# A page lists at most so many flagged rows: browsers show ten thousand without delay.
MOST_LISTED = 10_000


def table_text(head: str = "", body: Iterable[str] = (), caption: str = "", kind: str = "") -> str:
    """Return rows of HTML as a table that scrolls if it is too wide.

    Parameters
    ----------
    head : str, optional
        Row of column headings.
    body : iterable of str, optional
        The other rows.
    caption : str, optional
    kind : str, optional
        CSS class of the table.
    """
    start = f'<table class="{kind}">' if kind else "<table>"
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead>{head}</thead>" if head else ""
    inner = "\n".join(body)
    return f'<div class="wide">{start}{title}{top}<tbody>\n{inner}\n</tbody></table></div>'


def head_row(names: Iterable[str]) -> str:
    """Return a row of column headings."""
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f"<tr>{cells}</tr>"


def pairs_table(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a table of two columns."""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in pairs
    ]
    return table_text(body=rows, kind="words pairs")


def simple_table(table: Any) -> str:
    """Return a statsmodels SimpleTable as HTML; unlike its own method, this escapes texts."""
    lines = [f"<tr>{''.join(cell_text(cell) for cell in row)}</tr>" for row in table]
    headed = any(cell.datatype == "header" for cell in table[0])
    head, body = (lines[0], lines[1:]) if headed else ("", lines)
    return table_text(head, body, table.title or "")


def cell_text(cell: Any) -> str:
    """Return a cell of a SimpleTable as HTML."""
    text = escape(cell.format(0, "txt").strip())
    scope = {"header": "col", "stub": "row"}.get(cell.datatype)
    return f"<td>{text}</td>" if scope is None else f'<th scope="{scope}">{text}</th>'


def suspicious_text(results: Results) -> tuple[str, str]:
    """Return a heading, and the rows most likely bad or of smallest weight as HTML."""
    if getattr(results, "weights", None) is None:
        return "Smallest weights", "<p>None: remove_data dropped the weights.</p>"
    table = results.suspicious_table(SMALLEST)
    left = int(results.nobs) - len(table)
    heading, others = "Smallest weights", f"{left:,} rows of larger weight"
    if "prob_bad" in table:
        heading = "Rows most likely bad"
        least = "below 0.01"  # rows of a smaller one are no suspects
        if len(table) == SMALLEST:
            least = f"of {table['prob_bad'].iloc[-1]:.2g} or less"
        others = f"{left:,} rows with a prob_bad {least}"
    rows = rows_table(table) if len(table) else "<p>None.</p>"
    return heading, rows + (f"<p>{others} are not shown.</p>" if left > 0 else "")


def flagged_text(results: Results) -> str:
    """Return all flagged rows as HTML; those that are many are folded."""
    if getattr(results, "weights", None) is None:
        return "<p>None: remove_data dropped the data.</p>"
    total = int(np.asarray(np.sum(results.outliers())))
    if not total:
        return f"<p>None{flag_rule(results)}.</p>"
    table = rows_table(results.outlier_table(MOST_LISTED).drop(columns="outlier"))
    listed = min(total, MOST_LISTED)
    fold = ""
    if listed > SMALLEST:
        fold = (
            f'<details class="fold"><summary>Show all {listed:,} rows; the table has the first '
            f"{SMALLEST} otherwise</summary></details>"
        )
    return "\n".join([f"<p>{flagged_note(results, total)}</p>", fold + table])


def flagged_note(results: Results, total: int) -> str:
    """Return how many rows are flagged, how many of them are listed, and why some keep weight."""
    notes = [f"{total:,} of {int(results.nobs):,} rows are flagged{flag_rule(results)}."]
    if total > MOST_LISTED:
        notes.append(f"The {MOST_LISTED:,} of smallest weight are listed; outliers() has all.")
    if results.seen_rows.nobs == results.nobs:
        notes.append(large_weights_note(results))
    return " ".join(note for note in notes if note)


def flag_rule(results: Results) -> str:
    """Return which rows are flagged, as the end of a sentence."""
    if getattr(results, "prob_bad", None) is None:
        return f" at the level {LEVEL:.1%}"
    return ": more likely bad than good"


def rows_table(table: pd.DataFrame) -> str:
    """Return rows with their weights as an HTML table, which the script of the page can sort."""
    table = table.rename(columns={"relative_weight": "weight * n"})
    table["weight * n"] = [f"{weight:.4f}" for weight in table["weight * n"]]
    head = head_row(["row", *(str(column).replace("_", " ") for column in table)])
    body = []
    for label, *values in table.itertuples():
        cells = "".join(f"<td>{escape(value_text(value))}</td>" for value in values)
        body.append(f'<tr><th scope="row">{escape(str(label))}</th>{cells}</tr>')
    return table_text(head, body, kind="sortable")


def value_text(value: object) -> str:
    """Return an entry of a data frame as text, numbers with four digits."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
