"""Formulas checked against the data before anything is evaluated."""

from __future__ import annotations

import ast
import builtins
import keyword
import operator
import re
from collections.abc import Callable, Collection, Iterable
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import patsy
import patsy.builtins
import statsmodels.formula
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from patsy.parse_formula import parse_formula

from rrmstats.cli.errors import UsageError, nearest, short

# Functions of one argument that formulas know with and without ``np.``.
FUNCTIONS = {
    name: getattr(np, name)
    for name in (
        *("abs", "sign", "sqrt", "cbrt", "square", "exp", "exp2", "expm1"),
        *("log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
        *("sinh", "cosh", "tanh", "arcsinh", "arctanh", "floor", "ceil", "rint"),
    )
}
ALLOWED = (
    'column names, Q("column name"), numbers, + - * : ** ( ), C(column), I() of arithmetic, and '
    f"the functions {', '.join(FUNCTIONS)}, with or without np."
)
SPECIAL = ("C", "I", "Q")
# A formula of people is shorter; one that is longer takes patsy long, or too deep.
MOST_CHARACTERS = 4000
MOST_NESTED = 20
# Columns that a formula may make: a*b*c*... doubles them with each letter.
MOST_COLUMNS = 2000
MOST_POWER = 9
# The operators of formulas: how many columns their operands make together, at most.
JOINED: dict[str, Callable[[int, int], int]] = {
    **dict.fromkeys(("~", "+", "-"), operator.add),
    ":": operator.mul,
    "*": lambda left, right: (1 + left) * (1 + right) - 1,
    "**": lambda left, power: (1 + left) ** power - 1,
}


def refused(what: str | ast.AST, why: str = "") -> UsageError:
    """Return the error that refuses something, or a part of an expression."""
    named = what if isinstance(what, str) else short(ast.unparse(what))
    return UsageError(f"--safe refuses {named}{why}")


def check_text(formula: str) -> None:
    """Raise where a formula is too long, nested too deep or has characters that it never needs."""
    if len(formula) > MOST_CHARACTERS:
        raise refused(f"a formula of {len(formula)} characters; it allows {MOST_CHARACTERS}")
    for sign in formula:
        if sign == "\\" or not sign.isprintable():
            raise refused(f"the character {sign!a} in a formula")
    depth = max(accumulate((sign == "(") - (sign == ")") for sign in formula), default=0)
    if depth > MOST_NESTED or re.search(rf"([-+] *){{{MOST_NESTED + 1}}}", formula):
        raise refused(f"a formula nested deeper than {MOST_NESTED} levels")


def count_columns(node: Any, frame: pd.DataFrame) -> int:
    """Return how many columns a part of a formula makes at most.

    Parameters
    ----------
    node : patsy.parse_formula.ParseNode
        The formula as patsy parses it, or a part of it.
    frame : DataFrame
        The data, whose columns it may name.

    Returns
    -------
    int

    Raises
    ------
    UsageError
        If there are too many, or if the formula has anything but what is known to be safe.

    Examples
    --------
    >>> import pandas as pd
    >>> from patsy.parse_formula import parse_formula
    >>> from rrmstats.cli.formulas import count_columns
    >>> frame = pd.DataFrame({"y": [1.0, 2.0], "x": [3.0, 4.0]})
    >>> count_columns(parse_formula("y ~ np.log(x) * I(x ** 2)"), frame)
    4
    >>> count_columns(parse_formula("y ~ x.to_csv('x.csv')"), frame)
    Traceback (most recent call last):
        ...
    rrmstats.cli.errors.UsageError: --safe refuses the function 'x.to_csv'
    """
    if node.type == "PYTHON_EXPR":
        return columns_of_code(node.token.extra, frame)
    if node.type in ("ZERO", "ONE", "NUMBER"):
        return 1
    if node.type not in JOINED:
        raise refused(f"{short(node.type)} in a formula")
    left, *right = [count_columns(part, frame) for part in node.args]
    if node.type == "**":
        power = node.args[1].token.extra
        if power not in map(str, range(1, MOST_POWER + 1)):
            raise refused(f"a power of terms but 1 to {MOST_POWER}")
        right = [int(power)]
    count = JOINED[node.type](left, sum(right))
    if count > MOST_COLUMNS:
        raise refused(f"a formula of more than {MOST_COLUMNS} columns")
    return count


def columns_of_code(code: str, frame: pd.DataFrame) -> int:
    """Return how many columns an expression makes: a column, C() of one, or arithmetic."""
    node, function = parsed_code(code), ""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            check_function(ast.unparse(call.func), frame)
    inner = node
    match node:
        case ast.Call(func=ast.Name(id="C" | "I" as function), args=[inner], keywords=[]):
            pass
    name = None if function == "I" else named_column(inner)
    if name is None:
        check_arithmetic(node if function == "C" else inner, code, frame)
        return 1
    values = checked_column(name, frame)
    return 1 if is_number(values) and function != "C" else int(values.nunique())


def check_function(function: str, frame: pd.DataFrame) -> None:
    """Raise where the function that is called is not on the white list."""
    if function not in SPECIAL and function.removeprefix("np.") not in FUNCTIONS:
        raise refused(f"the function {short(function)}")
    hidden = function.partition(".")[0]
    if hidden in frame.columns:
        raise refused(f"the function {hidden}: a column has its name")


def checked_column(name: str, frame: pd.DataFrame) -> pd.Series:
    """Return a column, or raise where there is none of this name."""
    if name not in frame.columns:
        near = nearest(name, frame.columns)
        raise refused(f"{short(name)}: there is no such column; {near}")
    return frame[name]


def check_arithmetic(node: ast.expr, code: str, frame: pd.DataFrame) -> None:
    """Raise where an expression is anything but arithmetic of numbers and numeric columns."""
    name = named_column(node)
    parts: list[ast.expr] = []
    match node:
        case _ if name is not None:
            if not is_number(checked_column(name, frame)):
                raise refused(f"{short(name)} within arithmetic: it is not numeric")
        case ast.Constant(value=int() | float()):  # 25 digits are enough for any float
            written = ast.get_source_segment(code, node) or "?"
            if len(written) > 25 or set(written) - set("0123456789.eE+-"):
                raise refused(node, " as a number")
        case ast.BinOp(op=ast.Pow(), left=base, right=power):
            if not names_in(ast.unparse(base)):
                raise refused("powers of numbers; write the number")
            size = getattr(getattr(power, "operand", power), "value", None)
            if not isinstance(size, int | float) or size > MOST_POWER:
                raise refused(power, f" as a power: use a number up to {MOST_POWER}")
            parts = [base, power]
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), left=left, right=right):
            parts = [left, right]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            parts = [operand]
        case ast.Call(args=[_], keywords=[]) if ast.unparse(node.func) not in SPECIAL:
            parts = node.args
        case _:
            raise refused(node)
    for part in parts:
        check_arithmetic(part, code, frame)


def parsed_code(code: str) -> ast.expr:
    """Return an expression of Python as its parts."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError):
        raise UsageError(f"cannot parse {short(code)} in the formula") from None
    except (MemoryError, RecursionError):  # of Python's parser, where it gets too deep
        raise UsageError(f"{short(code)} in the formula is nested too deep") from None


def named_column(node: ast.AST) -> str | None:
    """Return the name that a part of an expression is, or that it has in ``Q("...")``."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))], keywords=[]):
            return name
    return None


def is_number(values: pd.Series) -> bool:
    """Tell whether a column has numbers, not words or truth values."""
    return is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype)


def safe_environment(frame: pd.DataFrame) -> patsy.EvalEnvironment:
    """Return the only names that exist besides columns when a safe formula is evaluated."""
    known = {name: getattr(patsy.builtins, name) for name in SPECIAL}
    names = SafeNames(np=SimpleNamespace(**FUNCTIONS), **FUNCTIONS, **known)
    names.columns = frame.columns
    return patsy.EvalEnvironment([names])


class SafeNames(dict[str, Any]):
    """Names that a formula may use; any other is an error, be it a builtin of Python."""

    columns: pd.Index

    def __missing__(self, name: str) -> Any:
        if name in self.columns:
            raise KeyError(name)  # patsy takes it from the data
        raise refused(f"the name {short(name)}")


CONSTANT = patsy.INTERCEPT.name()
# Text in quotes.
QUOTED = re.compile(r"""(["']).*?\1""")
#: What the factors of a term evaluate; nothing for the constant.
Term = tuple[str, ...]


def reason_of(error: Exception) -> str:
    """Return what an engine says is wrong, without the formula that it repeats."""
    return getattr(error, "message", str(error)).splitlines()[0]


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
    response, predictors : list of tuple of str
        Its two sides: what the factors of each term evaluate.
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
        if safe and hasattr(statsmodels.formula, "options"):
            statsmodels.formula.options.formula_engine = "patsy"
        self.response, self.predictors = self._parsed(frame if safe else None)
        free = patsy.EvalEnvironment([{"np": np, **FUNCTIONS}])
        self.environment = safe_environment(frame) if safe else free
        self._check_sides(two_sided)
        try:
            self._check_names()
        except UsageError as error:
            bare = "".join(QUOTED.sub("", text).split())
            odd = [name for name in self.names if not is_name(name)]
            named = [name for name in odd if "".join(name.split()) in bare]
            raise (_no_name(named[0]) if named else error) from None

    def _parsed(self, frame: pd.DataFrame | None) -> tuple[list[Term], list[Term]]:
        """Return the terms, after a check of what is safe where data are given."""
        if "\0" in self.text:
            raise UsageError("a formula cannot have a NUL character")
        if not self.text.strip():
            raise UsageError("the formula is empty; give one such as 'y ~ x'")
        shown = short(self.text)
        try:
            if frame is not None:
                check_text(self.text)
                count_columns(parse_formula(self.text), frame)
            found = patsy.ModelDesc.from_formula(self.text)  # whichever engine evaluates it
        except RecursionError:
            raise UsageError(f"the formula {shown} is too long or nested too deep") from None
        except (patsy.PatsyError, SyntaxError, ValueError) as error:
            raise UsageError(f"cannot parse the formula {shown}: {reason_of(error)}") from None
        left, right = (
            [tuple(factor.code for factor in term.factors) for term in side]
            for side in (found.lhs_termlist, found.rhs_termlist)
        )
        return left, right

    def _check_sides(self, two_sided: bool) -> None:
        """Raise where it lacks what a model needs, or has what the model cannot take."""
        needed, like = ("predictors", "y ~ x1 + x2") if two_sided else ("variables", "~ a + b")
        used = [term for term in self.predictors if two_sided or term]
        for wrong, what in (
            (two_sided and not self.response, "has no response"),
            (not two_sided and self.response, "has a response, which pca and cov do not take"),
            (not two_sided and "~" not in self.text, "has no ~"),
            (not used, f"has no {needed}"),
        ):
            if wrong:
                raise UsageError(f"the formula {short(self.text)} {what}; write '{like}'")
        if {(), (CONSTANT,)} <= set(self.predictors):
            raise UsageError(
                f"the column {CONSTANT!r} has the name of the constant; write I({CONSTANT}), or "
                "add '- 1' to leave the constant out"
            )

    def _check_names(self) -> None:
        """Raise where it names a column or a function that is not there."""
        functions = {"np", *FUNCTIONS, *vars(patsy.builtins), *vars(builtins)}
        for code in self._codes():
            if code in self.names and not is_name(code):
                raise _no_name(code)
            calls = [node for node in ast.walk(parsed_code(code)) if isinstance(node, ast.Call)]
            called = {ast.unparse(node.func) for node in calls}
            for name in names_in(code):
                if name in functions and name != code:
                    continue
                if name in called and name not in self.names:
                    near = nearest(name, FUNCTIONS, "function")
                    raise UsageError(f"there is no function {short(name)}; {near}")
                check_column(name, self.names)

    def _codes(self) -> list[str]:
        """Return what its factors evaluate."""
        return [code for term in (*self.response, *self.predictors) for code in term]

    def columns(self, as_numbers: bool = False) -> list[str]:
        """Return the columns that it names, or only those that it names outside ``C()``."""
        codes = [code for code in self._codes() if not (as_numbers and code.startswith("C("))]
        names = dict.fromkeys(name for code in codes for name in names_in(code))
        return [name for name in names if name in self.names]

    def bare(self, terms: Iterable[Term]) -> list[str]:
        """Return the columns that are factors of terms as they are, by name or in ``Q()``."""
        found = [named_column(parsed_code(code)) for term in terms for code in term]
        return [name for name in dict.fromkeys(found) if name is not None and name in self.names]


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
