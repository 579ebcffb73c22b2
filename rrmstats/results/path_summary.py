"""Summary of a path: its grid, the choice among it, its jumps, and terms that change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

if TYPE_CHECKING:
    from rrmstats.results.path_results import RRMPath


def make_path_summary(path: RRMPath) -> Summary:
    """Return the tables of `RRMPath.summary`."""
    summary = Summary()
    summary.tables.append(_top(path))
    summary.tables.append(_fits(path))
    if len(path.jumps):
        summary.tables.append(_jumps(path))
    summary.add_extra_txt([f"[{i}] {note}" for i, note in enumerate(_notes(path), 1)])
    return summary


def _top(path: RRMPath) -> SimpleTable:
    steps = "one" if path.steps == 1 else "two"
    chosen = "none" if path.choice is None else f"{path.choice.eps_bar:g}"
    grid = f"{len(path)} values, {path.eps_bars[0]:g} to {path.eps_bars[-1]:g}"
    cells = [
        ["Model:", type(path.model).__name__, "eps_bar:", grid],
        ["No. Observations:", str(len(path.model.endog)), "Chosen eps_bar:", chosen],
        ["Steps:", steps, "Jumps:", str(len(path.jumps))],
    ]
    if path.unit == "group":
        cells.append(["No. Groups:", str(len(path.weights)), "", ""])
    return SimpleTable(cells, None, None, "Robust Risk Minimization: Path", txt_fmt=fmt_base)


def _fits(path: RRMPath) -> SimpleTable:
    """Return what concerns whole fits, at bounds spread over the grid.

    In two steps these are the bounds at which another explanation is chosen, and others.
    """
    fits = path.frame.drop_duplicates("eps_bar").reset_index(drop=True)
    names = fits["explanation"]
    told = names.notna().any()
    places = np.linspace(0, len(path) - 1, 6).round().astype(int)
    if told:
        places = np.r_[places, np.flatnonzero(names != names.shift())]
    fits = fits.iloc[np.unique(places)]
    cells = [
        [
            (row.explanation or "n/a") if told else f"{row.risk:.4g}",
            *(f"{row.eps_hat:.3f}", f"{row.n_kish:.1f}", str(row.n_flagged)),
        ]
        for row in fits.itertuples()
    ]
    headers = ["explanation" if told else "risk", "eps_hat", "n_kish", "flagged"]
    stubs = [f"{value:g}" for value in fits["eps_bar"]]
    return SimpleTable(cells, headers, stubs, "Fits by eps_bar", txt_fmt=fmt_base)


def _jumps(path: RRMPath) -> SimpleTable:
    units = f"{path.unit}s"
    cells = [
        [
            *(f"{row.pvalue:.1g}", "another" if row.switched else "same"),
            *(listed(getattr(row, name)) for name in ("terms", units, f"{units}_back")),
        ]
        for row in path.jumps.itertuples()
    ]
    stubs = [f"{row.eps_bar_from:g} to {row.eps_bar_to:g}" for row in path.jumps.itertuples()]
    headers = ["p-value", "minimum", "terms", f"{units} that leave", f"{units} back"]
    return SimpleTable(cells, headers, stubs, "Jumps", txt_fmt=fmt_base)


def listed(labels: Any, most: int = 3) -> str:
    """Return the first labels, and how many more there are."""
    names = [str(label) for label in labels]
    more = [] if len(names) <= most else [f"+{len(names) - most} more"]
    return ", ".join([*names[:most], *more]) or "-"


def _notes(path: RRMPath) -> list[str]:
    notes = [] if path.choice is None else [path.choice.reason]
    if not len(path.jumps):
        notes.append("No jump: the fit moves along the path by no more than chance allows.")
    shown, others = path.signs[:12], path.signs[12:]
    notes += [f"{sentence}." for sentence in shown]
    return [*notes, f"{len(others)} more changes of terms: see signs."] if others else notes
