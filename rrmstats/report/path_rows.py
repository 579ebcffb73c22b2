"""The rows, or groups, that the page of a path shows, with their data."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rrmstats.plotting.offers import FittedPath
from rrmstats.plotting.path_arrays import Rows, most_suspicious, row_names
from rrmstats.report.tables import value_text

# The page draws at most so many rows, and hovering shows at most so many of their variables.
MOST_ROWS = 300
MOST_VARIABLES = 15
LONGEST_VALUE = 60


class ShownRow(NamedTuple):
    """A row that the page shows, or a group where groups have the weights.

    Attributes
    ----------
    position : int
    name : str
    leaves : float or None
        Where the row leaves: it becomes more likely bad than good, or in one step loses half its
        weight; None if nowhere.
    values : list of (str, str)
        Its variables by name; of a group the number of rows and their means.
    """

    position: int
    name: str
    leaves: float | None
    values: list[tuple[str, str]]


def shown_rows(path: FittedPath, most: int = MOST_ROWS) -> list[ShownRow]:
    """Return the rows to show in the order of the data: at most so many, flagged ones first."""
    rows = np.sort(most_suspicious(path, most))
    names, frame = row_names(path), row_data(path.model, len(path.model.endog))
    if path.unit == "group":
        frame = group_data(path, frame)
    below = path.leaves["below_half"].to_numpy(float)
    texts = [[short(value_text(value)) for value in frame[column].iloc[rows]] for column in frame]
    return [
        ShownRow(
            int(row),
            names[row],
            None if np.isnan(below[row]) else float(below[row]),
            [
                (str(column), column_texts[k])
                for column, column_texts in zip(frame, texts, strict=True)
            ],
        )
        for k, row in enumerate(rows)
    ]


def short(text: str) -> str:
    """Return a text, cut off if it is long."""
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def row_data(model: Any, count: int) -> pd.DataFrame:
    """Return all variables of the rows of a fit: those of the user's frame, or of the arrays."""
    frame = getattr(model.data, "frame", None)
    labels = model.data.row_labels
    if isinstance(frame, pd.DataFrame) and frame.columns.is_unique:
        if len(frame) == count:
            return frame
        if labels is not None and frame.index.is_unique:
            return frame.loc[labels]
    return array_data(model)


def group_data(path: FittedPath, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the number of rows of each group, and the means of their numeric variables."""
    codes = path.weights.index.get_indexer(path.model.groups)
    numeric = frame.select_dtypes("number").groupby(codes).mean()
    numeric.columns = [f"mean {name}" for name in numeric]
    numeric.insert(0, "rows", np.bincount(codes))
    return numeric


def array_data(model: Any) -> pd.DataFrame:
    """Return the dependent variable and the design, or the data, of a model."""
    exog = getattr(model, "exog", None)
    if np.ndim(model.endog) == 2 or exog is None:
        names = getattr(model, "variables", None)
        return pd.DataFrame(np.asarray(model.endog), columns=names)
    names = list(model.exog_names)
    if len(names) != np.shape(exog)[1]:  # parameters that are not one per column
        names = [f"x{i + 1}" for i in range(np.shape(exog)[1])]
    table = pd.DataFrame(np.asarray(exog), columns=names)
    table.insert(0, str(model.endog_names), np.asarray(model.endog), allow_duplicates=True)
    kept = np.flatnonzero((table.nunique() > 1).to_numpy())
    return table.iloc[:, kept]


def plotly_text(text: str) -> str:
    """Return a text such that plotly shows it as it is: no tags, entities or templates."""
    return escape(text, quote=False).replace("%{", "&#37;{")


def hover_text(row: ShownRow, unit: str = "row") -> str:
    """Return what hovering over the line of a row or group shows, in the markup of plotly."""
    lines = [f"<b>{unit} {plotly_text(row.name)}</b>"]
    lines += [
        f"{plotly_text(name)} = {plotly_text(value)}"
        for name, value in row.values[:MOST_VARIABLES]
    ]
    more = len(row.values) - MOST_VARIABLES
    return "<br>".join([*lines, f"and {more} more variables"] if more > 0 else lines)


def positions_by_label(path: FittedPath, labels: Sequence[object]) -> Rows:
    """Return the positions of rows or groups that are given by their labels."""
    return np.flatnonzero(path.weights.index.isin(list(labels)))
