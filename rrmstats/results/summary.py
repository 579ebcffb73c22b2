"""Summaries: a fit as statsmodels' tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from statsmodels.iolib import summary2
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
# Rows and columns of a table, the rows also of what a notebook shows in LaTeX.
TABLE_ROWS, TABLE_COLUMNS = 30, 8


class Table(pd.DataFrame):
    """A data frame that notebooks can also show in LaTeX, cut to TABLE_ROWS rows."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def _repr_latex_(self) -> str:
        shown = self.head(TABLE_ROWS)
        cells = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
        stubs = [str(label) for label in shown.index]
        if len(self) > TABLE_ROWS:
            cells.append(["..."] * self.shape[1])
            stubs.append(f"(+{len(self) - TABLE_ROWS} more)")
        table = SimpleTable(cells, [str(name) for name in self.columns], stubs)
        return str(table.as_latex_tabular())


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def number_table(values: Array, rows: list[str], columns: list[str]) -> SimpleTable:
    """Return numbers as a table of the summary, shape (rows, columns).

    Long tables are cut, with a count of what is left out. Narrow ones are widened, because
    statsmodels joins tables only where none is narrower than the first.
    """
    shown = [*columns[:TABLE_COLUMNS]]
    cells = [[f"{value:.4g}" for value in row[:TABLE_COLUMNS]] for row in np.atleast_2d(values)]
    cells, stubs = cells[:TABLE_ROWS], rows[:TABLE_ROWS]
    if len(columns) > TABLE_COLUMNS:
        shown.append(f"(+{len(columns) - TABLE_COLUMNS} more)")
        cells = [[*row, "..."] for row in cells]
    if len(rows) > TABLE_ROWS:
        stubs = [*stubs, f"(+{len(rows) - TABLE_ROWS} more)"]
        cells.append(["..."] * len(shown))
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
    """Return the number of characters of the longest line of a table."""
    return max(len(line) for line in table.as_text().split("\n"))


def widen(table: SimpleTable, by: int) -> None:
    """Make a table wider by so many characters, by a wider first column."""
    widths = list(table.get_colwidths("txt"))
    widths[0] += by
    table.output_formats["txt"]["colwidths"] = widths


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
        for value, weight, distance in zip(
            rows[first], rows["relative_weight"], rows["distance"], strict=True
        )
    ]
    labels = [str(label) for label in rows.index]
    table = SimpleTable(cells, [first, "weight * n", "distance"], labels, txt_fmt=fmt_base)
    corner = table[0][0]  # over the names, which SimpleTable leaves empty
    corner.data, corner.datatype = head, "stub"
    return [table]


class Summaries:
    """Summaries of results, as statsmodels' tables."""

    def summary(
        self: Any,
        yname: str | None = None,
        xname: list[str] | None = None,
        title: str | None = None,
        alpha: float = 0.05,
        slim: bool = False,
    ) -> Summary:
        """Return the fit as statsmodels' tables.

        Parameters
        ----------
        yname : str, optional
            Name of the dependent variable.
        xname : list of str, optional
            Names of the parameters.
        title : str, optional
            Title of the tables.
        alpha : float, optional
            One minus the level of the intervals.
        slim : bool, optional
            Leave out what is about the search, and the table of small weights.

        Returns
        -------
        statsmodels.iolib.summary.Summary

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> text = res.summary(title="Stars", slim=True).as_text()
        >>> "Stars" in text, "Smallest weights" in text
        (True, False)
        """
        table = Summary()
        left, right = top_entries(self)
        if slim:
            left, right = ([entry for entry in part if entry[0] in SLIM] for part in (left, right))
        table.add_table_2cols(
            self, title=title or self._title, gleft=left, gright=right, yname=yname
        )
        self._add_params(table, yname, xname, alpha)
        if self.weights is not None and not slim:  # remove_data drops them
            table.tables += suspicious(self)
        widths = [text_width(each) for each in table.tables]
        width = max(widths)
        for each, own in zip(table.tables, widths, strict=True):
            widen(each, width - own)
        notes = enumerate(self._notes(), 1)
        table.add_extra_txt([numbered(i, note, width) for i, note in notes])
        return table

    def summary2(
        self: Any, title: str | None = None, alpha: float = 0.05, float_format: str = "%.4f"
    ) -> summary2.Summary:
        """Return the fit as statsmodels' second kind of tables.

        Parameters
        ----------
        title : str, optional
            Title of the tables.
        alpha : float, optional
            One minus the level of the intervals.
        float_format : str, optional
            Format of the numbers.

        Returns
        -------
        statsmodels.iolib.summary2.Summary

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> "eps_bar" in res.summary2().as_text()
        True
        """
        table = summary2.Summary()
        known = {
            "Dep. Variable:": self.model.endog_names,
            "Model:": type(self.model).__name__,
            "No. Observations:": f"{self.nobs:.0f}",
        }
        left, right = top_entries(self)
        table.add_dict(
            {
                name: value[0] if value else known[name]
                for name, value in (*left, *right)
                if value or name in known
            }
        )
        frame = summary2.summary_params(self, alpha=alpha, use_t=self.use_t)
        table.add_df(frame, float_format=float_format)
        for note in self._notes():
            table.add_text(note)
        table.add_title(title or self._title)
        return table
