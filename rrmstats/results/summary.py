"""Summaries: a fit as statsmodels' tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.core.entropy import Array
from rrmstats.results.explanations import at_bound, percent

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults

# Probability to be bad from which on a row is listed.
# Convention: one per cent.
LIKELY = 0.01
#: Names and values of one column at the top of a summary; statsmodels fills in None.
Entries = list[tuple[str, list[str] | None]]
# Names that stay at the top of a slim summary.
SLIM = (
    *("Dep. Variable:", "Variables:", "Model:", "No. Observations:", "Converged:", "Steps:"),
    *("Choice of eps_bar:", "eps_bar:", "Bad rows:", "Bad groups:", "Risk:"),
    *("Effective size (entropy):", "Explanation:", "Stable up to eps_bar:"),
)
#: Rows that ``maketables.ETable`` adds below the parameters.
COLUMN_LABELS = {"N": "Observations", "bad_rows": "Bad rows", "explanation": "Explanation"}
# Rows and columns of a table, the rows also of what a notebook shows in LaTeX.
TABLE_ROWS, TABLE_COLUMNS = 30, 8


class Table(pd.DataFrame):
    """A data frame that notebooks can also show in LaTeX, cut to TABLE_ROWS rows."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def _repr_latex_(self) -> str:
        cells, stubs = cut(self.to_numpy(dtype=object), [str(label) for label in self.index])
        shown = [[f"{v:.5g}" if isinstance(v, float) else str(v) for v in row] for row in cells]
        table = SimpleTable(shown, [str(name) for name in self.columns], stubs)
        return str(table.as_latex_tabular())


def cut(cells: Any, stubs: list[str]) -> tuple[list[list[Any]], list[str]]:
    """Return the first rows of a table with their names, and a count of what is left out."""
    rows, more = [list(row) for row in cells[:TABLE_ROWS]], len(stubs) - TABLE_ROWS
    if more <= 0:
        return rows, stubs
    return [*rows, ["..."] * len(rows[0])], [*stubs[:TABLE_ROWS], f"(+{more} more)"]


def number_table(values: Array, rows: list[str], columns: list[str]) -> SimpleTable:
    """Return numbers as a table of the summary, shape (rows, columns).

    Long tables are cut, with a count of what is left out. Narrow ones are widened, because
    statsmodels joins tables only where none is narrower than the first.
    """
    shown = [*columns[:TABLE_COLUMNS]]
    cells = [[f"{value:.4g}" for value in row[:TABLE_COLUMNS]] for row in np.atleast_2d(values)]
    if len(columns) > TABLE_COLUMNS:
        shown.append(f"(+{len(columns) - TABLE_COLUMNS} more)")
        cells = [[*row, "..."] for row in cells]
    cells, stubs = cut(cells, rows)
    missing = max(0, 3 - len(shown))
    cells = [[*[""] * missing, *row] for row in cells]
    return SimpleTable(cells, [*[""] * missing, *shown], stubs, txt_fmt=fmt_base)


def top_entries(results: RRMResults) -> tuple[Entries, Entries]:
    """Return the two columns at the top of a summary."""
    reached = f"{results.n_reached} of {len(results.final_risks)}"
    left: Entries = [
        results._summary_subject(),
        ("Model:", None),
        ("Date:", None),
        ("Time:", None),
        ("No. Observations:", None),
        ("Converged:", ["yes" if results.converged else "NO"]),
        ("Iterations:", [str(results.n_iter)]),
        ("Steps:", ["one" if results.steps == 1 else "two"]),
        ("Covariance Type:", [results.cov_type]),
        ("Choice of eps_bar:", ["given" if results.choice is None else "automatic"]),
    ]
    right: Entries = [
        ("eps_bar:", [f"{results.eps_bar:.3g}"]),
        (f"Bad {results._unit}s:", [bad_rows_text(results)]),
        ("lambda:", [f"{results.lambda_:.5g}"]),
        ("Risk:", [f"{results.risk:.5g}"]),
        ("Effective size (entropy):", [f"{results.n_eff:.1f}"]),
        ("Effective size (Kish):", [kish_text(results)]),
        ("Starts:", [str(len(results.starts))]),
        ("Descents to the minimum:", [reached]),
        ("Explanation:", [results.explanation or "n/a"]),
        ("Stable up to eps_bar:", [results.stability.short]),
    ]
    more_left, more_right = results._more_entries()
    return left + more_left, right + more_right


def bad_rows_text(results: RRMResults) -> str:
    """Return the number of bad rows or groups, where it is known, and their share."""
    if np.isnan(results.eps_hat):
        return "n/a"
    share = f"{percent(results.eps_hat)}, se {percent(results.eps_hat_se)}"
    if at_bound(results.eps_hat, results.eps_bar):
        share = f"at least {percent(results.eps_hat)}"
    if results._bad_of_all is None:
        return share
    bad, total = results._bad_of_all
    count = f"{bad:,.10g} of {total:,.10g}"
    return count if results.eps_hat == 0 else f"{count} ({share})"


def kish_text(results: RRMResults) -> str:
    """Return Kish's effective size, beside that of clean data where it is known."""
    clean = results.n_kish_clean
    if clean is None or results.steps == 2 or results.eps_bar == 0:
        return f"{results.n_kish:.1f}"
    return f"{results.n_kish:.1f} (clean {clean:.1f})"


def text_width(table: SimpleTable) -> int:
    """Return the number of characters of the lines of a table, all of which are as long."""
    return max(len(line) for line in table[-1].as_string("txt").split("\n"))


def finished(summary: Summary, notes: list[str]) -> Summary:
    """Return a summary with its tables as wide as the widest, and with notes below."""
    widths = list(map(text_width, summary.tables))
    width = max(widths)
    for table, own in zip(summary.tables, widths, strict=True):  # by a wider first column
        first, *others = table.get_colwidths("txt")
        table.output_formats["txt"]["colwidths"] = [first + width - own, *others]
    summary.add_extra_txt([numbered(i, note, width) for i, note in enumerate(notes, 1)])
    return summary


def numbered(number: int, note: str, width: int) -> str:
    """Return a note as lines that are no wider than the tables."""
    mark = f"[{number}] "
    return textwrap.fill(
        note.replace(" %", "\N{NO-BREAK SPACE}%"),
        width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\N{NO-BREAK SPACE}", " ")


def suspicious(results: RRMResults) -> list[SimpleTable]:
    """Return a table of the rows or groups most likely bad, or in one step of smallest weight.

    None where none of them is likely bad.
    """
    most = 5
    rows = results._weighed.suspicious_table(most)
    if results.eps_bar == 0 or not len(rows):
        return []
    first, form = ("prob_bad", "{:.3f}") if "prob_bad" in rows else ("loss", "{:.5g}")
    head = "Smallest weights" if results.model.groups is None else "Groups of smallest weight"
    if first == "prob_bad":
        bad = 0.0 if results._bad_of_all is None else results._bad_of_all[0]
        head = f"Most likely bad {results._unit}s"
        head += f" ({most} of {bad:,.10g})" if bad > most else ""
    cells = [
        [form.format(value), f"{weight:.4f}", f"{distance:.3g}"]
        for value, weight, distance in rows[[first, "relative_weight", "distance"]].to_numpy()
    ]
    labels = [str(label) for label in rows.index]
    table = SimpleTable(cells, [first, "weight * n", "distance"], labels, txt_fmt=fmt_base)
    corner = table[0][0]  # over the names, which SimpleTable leaves empty
    corner.data, corner.datatype = head, "stub"
    return [table]
