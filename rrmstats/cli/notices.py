"""What a user should know of the data before reading a fit: on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

import pandas as pd

from rrmstats.cli.errors import short
from rrmstats.cli.formulas import is_name

# The least share of numbers in a column that makes its words look like mistakes.
MOSTLY = 0.8


def note_left_out(frame: pd.DataFrame, used: list[str], nobs: int) -> None:
    """Print how many rows the model has no use for, and why.

    Parameters
    ----------
    frame : DataFrame
        All rows.
    used : list of str
        The columns of the model.
    nobs : int
        Rows of the model.
    """
    left_out = len(frame) - nobs
    if not left_out:
        return
    missing = int(frame[used].isna().any(axis=1).sum())
    reasons = ["missing values"] if missing else []
    if missing < left_out:
        reasons.append("values that a function of the formula cannot take")
    rows = f"{left_out} of {len(frame)} rows were left out"
    print(f"rrmstats: note: {rows}: {' or '.join(reasons)}", file=sys.stderr)


def warn_of_words(frame: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Warn of each column that is mostly numbers, but is taken for groups because of a word.

    Parameters
    ----------
    frame : DataFrame
    columns : iterable of str
        The columns that should be numbers, unless they are words throughout.

    Returns
    -------
    list of str
        The columns that were warned of.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from rrmstats.cli.notices import warn_of_words
    >>> frame = pd.DataFrame({"x": ["1", "2", "3", "4", "5", "none"]})
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_of_words(frame, ["x"])
    ['x']
    >>> print(seen[0].message)  # doctest: +ELLIPSIS
    'x' is taken for groups, not numbers: 'none' in row 5, counted from 0, is no number; ...
    """
    warned = []
    for column in columns:
        values = frame[column].dropna()
        if pd.api.types.is_numeric_dtype(values):
            continue
        words = _words(values.astype(str))
        with_commas = _words(values.astype(str).str.replace(",", "."))
        if values.size and len(words) > len(with_commas) == 0:
            advice = "give --decimal , if its comma begins decimals"
        elif len(words) and values.size - len(words) >= MOSTLY * values.size:
            advice = _for_groups("fix it", column)
        else:
            continue
        _warn(column, words, advice)
        warned.append(column)
    return warned


def warn_of_many_groups(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    """Warn of each column, such as dates, that is taken for groups of hardly more than a row.

    Parameters
    ----------
    frame : DataFrame
    columns : iterable of str
        The columns that are predictors as they are.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from rrmstats.cli.notices import warn_of_many_groups
    >>> frame = pd.DataFrame({"day": ["2024-01-01", "2024-01-02", "2024-01-03"]})
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_of_many_groups(frame, ["day"])
    >>> print(seen[0].message)  # doctest: +ELLIPSIS
    'day' is taken for groups, not numbers: it has 3 different values in 3 rows; ...
    """
    for column in columns:
        values = frame[column].dropna()
        if pd.api.types.is_numeric_dtype(values):
            continue
        groups = values.astype(str).nunique()
        if groups > len(frame) / 2:
            warnings.warn(
                f"{short(column)} is taken for groups, not numbers: it has {groups} different "
                f"values in {len(frame)} rows; {_for_groups('use numbers', column)}",
                UserWarning,
                stacklevel=2,
            )


def _for_groups(otherwise: str, column: str) -> str:
    """Return the advice to say that groups are meant, or else to do something."""
    name = column if is_name(column) else f'Q("{column}")'
    return f"{otherwise}, or write C({name}) for groups"


def _words(values: pd.Series) -> pd.Series:
    """Return the values that are no numbers."""
    return values[pd.to_numeric(values, errors="coerce").isna()]


def _warn(column: str, words: pd.Series, advice: str) -> None:
    warnings.warn(
        f"{short(column)} is taken for groups, not numbers: {short(words.iloc[0])} in row "
        f"{words.index[0]}, counted from 0, is no number; {advice}",
        UserWarning,
        stacklevel=3,
    )
