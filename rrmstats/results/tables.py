"""Tables of summaries and notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.core.entropy import Array

# Rows of a table that a notebook shows in LaTeX.
LATEX_ROWS = 30
# Rows and columns of a table of the summary.
TABLE_ROWS, TABLE_COLUMNS = 30, 8


class Table(pd.DataFrame):
    """A data frame that notebooks can also show in LaTeX, cut to LATEX_ROWS rows."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def _repr_latex_(self) -> str:
        shown = self.head(LATEX_ROWS)
        cells = [[_cell(value) for value in row] for row in shown.itertuples(index=False)]
        stubs = [str(label) for label in shown.index]
        if len(self) > LATEX_ROWS:
            cells.append(["..."] * self.shape[1])
            stubs.append(f"(+{len(self) - LATEX_ROWS} more)")
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
