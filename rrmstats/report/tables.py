"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from rrmstats.report.offers import ReportedResults

# Rows in the table of small weights.
SMALLEST = 20


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


def pairs_table(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a table of two columns."""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in pairs
    ]
    return table_text(body=rows, kind="words")


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


def weights_text(results: ReportedResults) -> str:
    """Return the rows of smallest weight as HTML."""
    if results.weights is None:
        return "<p>None: remove_data dropped the weights.</p>"
    table = results.weight_table(SMALLEST).rename(columns={"relative_weight": "weight * n"})
    table["weight * n"] = [f"{weight:.4f}" for weight in table["weight * n"]]
    left = int(results.nobs) - len(table)
    note = f"<p>{left} rows of larger weight are not shown.</p>" if left > 0 else ""
    return frame_table(table) + note


def frame_table(frame: pd.DataFrame) -> str:
    """Return a data frame as an HTML table."""
    names = "".join(f'<th scope="col">{escape(str(c).replace("_", " "))}</th>' for c in frame)
    head = f'<tr><th scope="col">row</th>{names}</tr>'
    body = []
    for label, *values in frame.itertuples():
        cells = "".join(f"<td>{escape(value_text(value))}</td>" for value in values)
        body.append(f'<tr><th scope="row">{escape(str(label))}</th>{cells}</tr>')
    return table_text(head, body)


def value_text(value: object) -> str:
    """Return an entry of a data frame as text, numbers with four digits."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
