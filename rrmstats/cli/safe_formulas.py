"""Formulas that run no code but arithmetic: what ``--safe`` allows.

A formula is parsed here, by a grammar that knows nothing else, before patsy sees it. What passes
is then evaluated where no other names exist than those that the grammar knows.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import patsy
import patsy.builtins

from rrmstats.cli.errors import UsageError, short
from rrmstats.cli.formulas import FUNCTIONS
from rrmstats.cli.safe_grammar import SafeParser
from rrmstats.cli.safe_tokens import read_tokens

ALLOWED = (
    'column names, Q("column name"), numbers, + - * : ** ( ), C(column), I() of arithmetic, and '
    f"the functions {', '.join(FUNCTIONS)}, with or without np."
)


def check_safe(formula: str, frame: pd.DataFrame) -> None:
    """Raise where a formula has anything but what is known to be safe.

    Parameters
    ----------
    formula : str
    frame : DataFrame
        The data, whose columns it may name.

    Raises
    ------
    UsageError
        With what is refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from rrmstats.cli.safe_formulas import check_safe
    >>> frame = pd.DataFrame({"y": [1.0, 2.0], "x": [3.0, 4.0]})
    >>> check_safe("y ~ np.log(x) + I(x ** 2)", frame)
    >>> check_safe("y ~ x.to_csv('x.csv')", frame)
    Traceback (most recent call last):
        ...
    rrmstats.cli.errors.UsageError: --safe refuses '.' after 'x'
    """
    SafeParser(read_tokens(formula), frame).formula()


def safe_environment(frame: pd.DataFrame) -> patsy.EvalEnvironment:
    """Return the only names that exist besides columns when a safe formula is evaluated."""
    functions = {name: getattr(np, name) for name in FUNCTIONS}
    known = {name: getattr(patsy.builtins, name) for name in ("C", "I", "Q")}
    names = {"np": SimpleNamespace(**functions), **functions, **known}
    return patsy.EvalEnvironment([SafeNames(names, frame.columns)])


class SafeNames(dict[str, Any]):
    """Names that a formula may use; any other is an error, be it a builtin of Python."""

    def __init__(self, names: dict[str, Any], columns: pd.Index) -> None:
        super().__init__(names)
        self.columns = columns

    def __missing__(self, name: str) -> Any:
        if name in self.columns:
            raise KeyError(name)  # patsy takes it from the data
        raise UsageError(f"--safe refuses the name {short(name)}")
