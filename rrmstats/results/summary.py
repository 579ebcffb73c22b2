"""Summaries: a fit as statsmodels' tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from statsmodels.iolib import summary2
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.core.block_array import taken
from rrmstats.results.explanations import at_bound, percent

if TYPE_CHECKING:
    from rrmstats.results.base import RRMResults

# Rows in the summary's table of small weights.
SMALLEST = 5
# Characters of a note's line; the top of a summary mostly has as many.
WIDTH = 93
#: Names and values of one column at the top of a summary; statsmodels fills in None.
Entries = list[tuple[str, list[str] | None]]
# Names that stay at the top of a slim summary.
SLIM = (
    *("Dep. Variable:", "Variables:", "Model:", "No. Observations:", "Converged:"),
    *(
        "eps_bar:",
        "Bad rows:",
        "Bad groups:",
        "Risk:",
        "Effective size (entropy):",
        "Steps:",
        "Explanation:",
        "Choice of eps_bar:",
        "Stable up to eps_bar:",
    ),
)


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
        ("eps_bar:", [f"{results.eps_bar:g}"]),
        (f"Bad {results._unit}s:", [bad_rows_text(results)]),
        ("lambda:", [f"{results.lambda_:.5g}"]),
        ("Risk:", [f"{results.risk:.5g}"]),
        ("Effective size (entropy):", [f"{results.n_eff:.1f}"]),
        ("Effective size (Kish):", [kish_text(results)]),
        ("Starts:", [str(len(results.starts))]),
        ("Descents that reached the minimum:", [f"{reached} ({results.n_best} apart)"]),
        ("Explanation:", [results.explanation or "n/a"]),
        ("Stable up to eps_bar:", [results.stability.short]),
    ]
    return left, right


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
    return f"{bad:,.10g} of {total:,.10g} ({share})"


def kish_text(results: RRMResults) -> str:
    """Return Kish's effective size, beside that of clean data where it is known."""
    clean = results.n_kish_clean
    if clean is None or results.steps == 2 or results.eps_bar == 0:
        return f"{results.n_kish:.1f}"
    return f"{results.n_kish:.1f} (clean {clean:.1f})"


def make_summary(
    results: RRMResults,
    yname: str | None,
    xname: list[str] | None,
    title: str | None,
    alpha: float,
    slim: bool,
) -> Summary:
    """Return the tables of `RRMResults.summary`."""
    table = Summary()
    left, right = top_entries(results)
    if slim:
        left, right = ([entry for entry in part if entry[0] in SLIM] for part in (left, right))
    table.add_table_2cols(
        results, title=title or results._title, gleft=left, gright=right, yname=yname
    )
    results._add_params(table, yname, xname, alpha)
    if results.weights is not None and not slim:  # remove_data drops them
        table.tables.append(smallest_weights(results))
    table.add_extra_txt([numbered(i, note) for i, note in enumerate(results._notes(), 1)])
    return table


def numbered(number: int, note: str) -> str:
    """Return a note as lines that are no wider than the top of a summary."""
    mark = f"[{number}] "
    return textwrap.fill(
        note,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def smallest_weights(results: RRMResults) -> SimpleTable:
    """Return the rows of smallest weight, named by their index, or the groups by their label."""
    view = results.group_view
    if view is None:
        rows = results.order_by_weight(SMALLEST)
        names = results._names_at(rows)
        columns = results.relative_weights, results.losses, results._distances()
    else:
        rows = view.order_by_weight()[:SMALLEST]
        names = [view.row_names[i] for i in rows]
        columns = view.relative_weights, view.losses, view.distances
    values = zip(*taken(rows, *columns), strict=True)
    return SimpleTable(
        [[f"{weight:.4f}", f"{loss:.5g}", f"{distance:.3g}"] for weight, loss, distance in values],
        ["weight * n", "loss", "distance"],
        names,
        "Smallest weights" if view is None else "Smallest weights of groups",
        txt_fmt=fmt_base,
    )


def make_summary2(
    results: RRMResults, title: str | None, alpha: float, float_format: str
) -> summary2.Summary:
    """Return the tables of `RRMResults.summary2`."""
    table = summary2.Summary()
    known = {
        "Dep. Variable:": results.model.endog_names,
        "Model:": type(results.model).__name__,
        "No. Observations:": f"{results.nobs:.0f}",
    }
    left, right = top_entries(results)
    table.add_dict(
        {
            name: value[0] if value else known[name]
            for name, value in (*left, *right)
            if value or name in known
        }
    )
    frame = summary2.summary_params(results, alpha=alpha, use_t=results.use_t)
    table.add_df(frame, float_format=float_format)
    for note in results._notes():
        table.add_text(note)
    table.add_title(title or results._title)
    return table
