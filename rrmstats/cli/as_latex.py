"""Tables as LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
        "[": "{[}",  # after a line break it would begin an argument
        "]": "{]}",
    }
)


def latex_escaped(text: str) -> str:
    r"""Return a text as LaTeX that prints it.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from rrmstats.cli.as_latex import latex_escaped
    >>> print(latex_escaped("log_te & 5%"))
    log\_te \& 5\%
    """
    return text.translate(SPECIAL)


def latex_summary(tables: Iterable[Any], notes: Iterable[str]) -> str:
    """Return tables of statsmodels and notes as a fragment of LaTeX, for ``booktabs``."""
    blocks = [_tabular(table) for table in tables]
    blocks += [f"\\noindent {latex_escaped(note)}" for note in notes]
    return "\n\n".join(blocks) + "\n"


def _tabular(table: Any) -> str:
    cells = [[_cell(cell) for cell in row] for row in table]
    filled = [j for j, column in enumerate(zip(*cells, strict=True)) if any(column)]
    kept = sorted({0, *filled})
    rows = [" & ".join(row[j] for j in kept) + r" \\" for row in cells]
    if any(cell.datatype == "header" for cell in table[0]):
        rows.insert(1, r"\midrule")
    aligns = "l" + "r" * (len(kept) - 1)
    if table[0][-2].datatype == "stub":  # names and values, twice
        aligns = "lrlr"
    title = [f"{latex_escaped(table.title)}\\\\"] if table.title else []
    lines = [r"\begin{center}", *title, rf"\begin{{tabular}}{{{aligns}}}", r"\toprule"]
    return "\n".join([*lines, *rows, r"\bottomrule", r"\end{tabular}", r"\end{center}"])


def _cell(cell: Any) -> str:
    return latex_escaped(cell.format(0, "txt").strip())
