"""Formulas checked against the data before anything is evaluated."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
import patsy
import patsy.builtins
from patsy.parse_formula import parse_formula

from rrmstats.cli.errors import UsageError, nearest, short
from rrmstats.cli.safe import (
    FUNCTIONS,
    check_text,
    count_columns,
    named_column,
    parsed_code,
    safe_environment,
)

CONSTANT = patsy.INTERCEPT.name()
# Text in quotes.
QUOTED = re.compile(r"""(["']).*?\1""")


class Formula:
    """A formula, parsed and checked, of which nothing has been evaluated.

    Parameters
    ----------
    text : str
    frame : DataFrame
        The data.
    two_sided : bool, optional
        Whether it must have a response; else it must have none.
    safe : bool, optional
        Whether it may run nothing but arithmetic.

    Attributes
    ----------
    response, predictors : list of patsy.Term
        Its two sides.
    environment : patsy.EvalEnvironment
        The names that it knows besides columns.

    Raises
    ------
    UsageError
        With what is wrong and what may have been meant.

    Examples
    --------
    >>> import pandas as pd
    >>> from rrmstats.cli.formulas import Formula
    >>> formula = Formula("y ~ np.log(x) + C(z)", pd.DataFrame({"y": [1], "x": [2], "z": [3]}))
    >>> formula.columns(), formula.bare(formula.predictors)
    (['y', 'x', 'z'], [])
    """

    def __init__(
        self, text: str, frame: pd.DataFrame, two_sided: bool = True, safe: bool = False
    ) -> None:
        self.text, self.names = text, frame.columns
        described = self._parsed(frame if safe else None)
        self.response = described.lhs_termlist
        self.predictors = described.rhs_termlist
        self.environment = _environment(frame if safe else None)
        self._check_sides(two_sided)
        try:
            self._check_names()
        except UsageError:
            bare = "".join(QUOTED.sub("", text).split())
            for column in self.names:
                if not is_name(column) and "".join(column.split()) in bare:
                    raise _no_name(column) from None
            raise

    def _parsed(self, frame: pd.DataFrame | None) -> patsy.ModelDesc:
        """Return patsy's terms, after a check of what is safe where data are given."""
        if "\0" in self.text:
            raise UsageError("a formula cannot have a NUL character")
        if not self.text.strip():
            raise UsageError("the formula is empty; give one such as 'y ~ x'")
        shown = short(self.text)
        try:
            if frame is not None:
                check_text(self.text)
            tree = parse_formula(self.text)
            if frame is not None:
                count_columns(tree, frame)
            return patsy.ModelDesc.from_formula(tree)
        except RecursionError:
            raise UsageError(f"the formula {shown} is too long or nested too deep") from None
        except (patsy.PatsyError, SyntaxError, ValueError) as error:
            reason = getattr(error, "message", str(error)).splitlines()[0]
            raise UsageError(f"cannot parse the formula {shown}: {reason}") from None

    def _check_sides(self, two_sided: bool) -> None:
        """Raise where it lacks what a model needs, or has what the model cannot take."""
        like = "'y ~ x1 + x2'" if two_sided else "'~ a + b'"
        lacks = None
        if two_sided and not self.response:
            lacks = "has no response"
        elif not two_sided and self.response:
            lacks = "has a response, which pca and cov do not take"
        elif not two_sided and "~" not in self.text:
            lacks = "has no ~"
        elif not self.predictors or (not two_sided and self.predictors == [patsy.INTERCEPT]):
            lacks = "has no predictors" if two_sided else "has no variables"
        if lacks is not None:
            raise UsageError(f"the formula {short(self.text)} {lacks}; write {like}")
        if [term.name() for term in self.predictors].count(CONSTANT) > 1:
            raise UsageError(
                f"the column {CONSTANT!r} has the name of the constant; write I({CONSTANT}), or "
                "add '- 1' to leave the constant out"
            )

    def _check_names(self) -> None:
        """Raise where it names a column or a function that is not there."""
        known = {*self.names, "np", *FUNCTIONS, *vars(patsy.builtins), *vars(builtins)}
        for code in self._codes():
            if code in self.names and not is_name(code):
                raise _no_name(code)
            if code.isidentifier():
                check_column(code, self.names)
            calls = [node for node in ast.walk(parsed_code(code)) if isinstance(node, ast.Call)]
            called = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
            for name in (*called, *names_in(code)):
                if name in called and name not in known:
                    near = nearest(name, FUNCTIONS, "function")
                    raise UsageError(f"there is no function {short(name)}; {near}")
                if name not in known:
                    check_column(name, self.names)

    def _codes(self) -> list[str]:
        """Return what its factors evaluate."""
        terms = (*self.response, *self.predictors)
        return [factor.code for term in terms for factor in term.factors]

    def columns(self, as_numbers: bool = False) -> list[str]:
        """Return the columns that it names, or only those that it names outside ``C()``."""
        codes = [code for code in self._codes() if not (as_numbers and code.startswith("C("))]
        names = dict.fromkeys(name for code in codes for name in names_in(code))
        return [name for name in names if name in self.names]

    def bare(self, terms: Iterable[patsy.Term]) -> list[str]:
        """Return the columns that are factors of terms as they are, by name or in ``Q()``."""
        factors = [factor for term in terms for factor in term.factors]
        found = [named_column(parsed_code(factor.code)) for factor in factors]
        return [name for name in dict.fromkeys(found) if name is not None and name in self.names]


def _environment(frame: pd.DataFrame | None) -> patsy.EvalEnvironment:
    """Return numpy and its functions, or what is safe where data are given."""
    if frame is not None:
        return safe_environment(frame)
    return patsy.EvalEnvironment([{"np": np}, {name: getattr(np, name) for name in FUNCTIONS}])


def names_in(code: str) -> list[str]:
    """Return the names in an expression, and those in ``Q("...")``."""
    found = [named_column(node) for node in ast.walk(parsed_code(code))]
    return [name for name in found if name is not None]


def is_name(column: str) -> bool:
    """Return whether a formula can name a column without ``Q()``."""
    return column.isidentifier() and not keyword.iskeyword(column)


def _no_name(column: str) -> UsageError:
    return UsageError(f'the column name {column!r} is not a name in Python; write Q("{column}")')


def check_column(name: str, columns: Collection[str]) -> None:
    """Raise where there is no such column, with the nearest name."""
    if name not in columns:
        raise UsageError(f"there is no column {short(name)}; {nearest(name, columns)}")
