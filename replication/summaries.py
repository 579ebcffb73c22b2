"""What the summary says of a table."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from replication.methods import ERM, GLOBAL, METHODS, PAPER, SEVER


def mean_errors(table: pd.DataFrame) -> dict[str, float]:
    """Return the mean error of each method, at the last level where there are several."""
    for level in ("share", "distance"):
        if level in table:
            table = table[table[level] == table[level].max()]
    measure = "accuracy" if "accuracy" in table else "error"
    # The stubs of pandas know keys as Hashable only; these are names of methods.
    return table.groupby("method", sort=False)[measure].mean().to_dict()  # type: ignore[return-value]


def line_distances(table: pd.DataFrame) -> dict[str, float]:
    """Return the mean distance of each method's line from the target's."""
    names = {ERM: ERM, SEVER: SEVER, PAPER: PAPER, GLOBAL: GLOBAL, "RRM, eps_bar = 0.4": GLOBAL}
    return {
        method: float((table[column] - table["target"]).abs().mean())
        for column, method in names.items()
        if column in table
    }


def summary_lines(summary: pd.DataFrame) -> Iterator[str]:
    r"""Yield the lines that a summary is printed as.

    Parameters
    ----------
    summary : DataFrame
        As `replication.replicate` returns it.

    Yields
    ------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from replication import summary_lines
    >>> row = {"paper says": "so", "we get": "error", "runs": 2, "ERM": 0.5}
    >>> print("\n".join(summary_lines(pd.DataFrame([row], index=["figure0"]))))
    figure0, runs: 2
      paper says: so
      we get, error: ERM 0.5
    """
    numbers = [name for name in METHODS if name in summary]
    for name, row in summary.iterrows():
        yield f"{name}, runs: {row['runs']}"
        yield f"  paper says: {row['paper says']}"
        found = ", ".join(f"{m} {row[m]:.4g}" for m in numbers if pd.notna(row[m]))
        yield f"  we get, {row['we get']}: {found or 'no fit'}"
