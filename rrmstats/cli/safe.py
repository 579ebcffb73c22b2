"""Formulas that run no code but arithmetic: what ``--safe`` allows.

The operators of a formula are those of patsy's own parser, and what stands between them is an
expression of Python. Both are checked against a white list before any of it is evaluated, and
then evaluated where no other names exist than those on it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import patsy
import patsy.builtins
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rrmstats.cli.errors import UsageError, nearest, short

# Functions of one argument that formulas know with and without ``np.``.
FUNCTIONS = (
    *("abs", "sign", "sqrt", "cbrt", "square", "exp", "exp2", "expm1"),
    *("log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arctanh", "floor", "ceil", "rint"),
)
ALLOWED = (
    'column names, Q("column name"), numbers, + - * : ** ( ), C(column), I() of arithmetic, and '
    f"the functions {', '.join(FUNCTIONS)}, with or without np."
)
# A formula of people is shorter; one that is longer takes patsy long, or too deep.
MOST_CHARACTERS = 4000
# Digits of a number: enough for any float.
MOST_DIGITS = 25
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


def check_text(formula: str) -> None:
    """Raise where a formula is too long, nested too deep or has characters that it never needs."""
    if len(formula) > MOST_CHARACTERS:
        raise UsageError(
            f"--safe refuses a formula of {len(formula)} characters; it allows {MOST_CHARACTERS}"
        )
    for sign in formula:
        if sign == "\\" or not sign.isprintable():
            raise UsageError(f"--safe refuses the character {sign!a} in a formula")
    if max(accumulate((sign == "(") - (sign == ")") for sign in formula), default=0) > MOST_NESTED:
        raise UsageError(f"--safe refuses a formula nested deeper than {MOST_NESTED} levels")


def count_columns(node: Any, frame: pd.DataFrame, depth: int = 0) -> int:
    """Return how many columns a part of a formula makes at most.

    Parameters
    ----------
    node : patsy.parse_formula.ParseNode
        The formula as patsy parses it, or a part of it.
    frame : DataFrame
        The data, whose columns it may name.
    depth : int, optional
        How many signs and right operands it is part of.

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
    >>> from rrmstats.cli.safe import count_columns
    >>> frame = pd.DataFrame({"y": [1.0, 2.0], "x": [3.0, 4.0]})
    >>> count_columns(parse_formula("y ~ np.log(x) * I(x ** 2)"), frame)
    4
    >>> count_columns(parse_formula("y ~ x.to_csv('x.csv')"), frame)
    Traceback (most recent call last):
        ...
    rrmstats.cli.errors.UsageError: --safe refuses the function 'x.to_csv'
    """
    if depth > MOST_NESTED:
        raise UsageError(f"--safe refuses a formula nested deeper than {MOST_NESTED} levels")
    if node.type in ("ZERO", "ONE", "NUMBER"):
        return 1
    if node.type == "PYTHON_EXPR":
        return SafeFactor(node.token.extra, frame).columns()
    if node.type not in JOINED:
        raise UsageError(f"--safe refuses {short(node.type)} in a formula")
    left, right = count_columns(node.args[0], frame, depth + (len(node.args) == 1)), 0
    if node.type == "**":
        power = node.args[1].token.extra
        if power not in map(str, range(1, MOST_POWER + 1)):
            raise UsageError(f"--safe refuses a power of terms but 1 to {MOST_POWER}")
        right = int(power)
    elif len(node.args) > 1:
        right = count_columns(node.args[1], frame, depth + 1)
    count = JOINED[node.type](left, right)
    if count > MOST_COLUMNS:
        raise UsageError(f"--safe refuses a formula of more than {MOST_COLUMNS} columns")
    return count


class SafeFactor:
    """An expression of Python in a formula, of which only a white list is allowed.

    Parameters
    ----------
    code : str
    frame : DataFrame
        The data, whose columns it may name.
    """

    def __init__(self, code: str, frame: pd.DataFrame) -> None:
        self.code, self.frame = code, frame

    def refusal(self, node: ast.AST, why: str = "") -> UsageError:
        """Return the error that refuses a part of the expression."""
        return UsageError(f"--safe refuses {short(ast.unparse(node))}{why}")

    def columns(self) -> int:
        """Return how many columns the expression makes: a column, C(), I() or a function."""
        node = parsed_code(self.code)
        if named_column(node) is not None:
            values = self.frame[self.column(node)]
            return 1 if _numeric(values) else int(values.nunique())
        function, argument = self.call(node)
        if function == "C":
            return int(self.frame[self.column(argument)].nunique())
        self.varies(argument if function == "I" else node)
        return 1

    def call(self, node: ast.AST) -> tuple[str, ast.AST]:
        """Return the function that is called, and its only argument."""
        if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1:
            raise self.refusal(node)
        function = ast.unparse(node.func)
        if function not in ("C", "I", "Q") and function.removeprefix("np.") not in FUNCTIONS:
            raise UsageError(f"--safe refuses the function {short(function)}")
        hidden = function.partition(".")[0]
        if hidden in self.frame.columns:
            raise UsageError(f"--safe refuses the function {hidden}: a column has its name")
        return function, node.args[0]

    def column(self, node: ast.AST) -> str:
        """Return the column that a name or ``Q("name")`` stands for."""
        name = named_column(node)
        if name is None:
            raise self.refusal(node)
        if not isinstance(node, ast.Name):
            self.call(node)
        if name not in self.frame.columns:
            raise UsageError(
                f"--safe refuses {short(name)}: there is no such column; "
                f"{nearest(name, self.frame.columns)}"
            )
        return name

    def varies(self, node: ast.AST, depth: int = 0) -> bool:
        """Return whether arithmetic has a column in it, or raise where it is something else."""
        if depth > MOST_NESTED:
            raise UsageError(f"--safe refuses a formula nested deeper than {MOST_NESTED} levels")
        match node:
            case ast.Constant():
                self.number(node)
                return False
            case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
                return self.varies(node.operand, depth + 1)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self.varies(node.left, depth) | self.varies(node.right, depth + 1)
            case ast.BinOp(op=ast.Pow()):
                self.check_power(node, depth)
                return True
        if named_column(node) is None:
            function, argument = self.call(node)
            if function in ("C", "I", "Q"):
                raise self.refusal(node, " within arithmetic")
            self.varies(argument, depth + 1)
        elif not _numeric(self.frame[self.column(node)]):
            raise self.refusal(node, " within arithmetic: it is not numeric")
        return True

    def check_power(self, node: ast.BinOp, depth: int) -> None:
        """Raise where a power is not that of a column, with a number that is not large."""
        if not self.varies(node.left, depth + 1):
            raise UsageError("--safe refuses powers of numbers; write the number")
        power = node.right
        if isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub):
            power = power.operand
        if not isinstance(power, ast.Constant) or self.number(power) > MOST_POWER:
            raise self.refusal(power, f" as a power: use a number up to {MOST_POWER}")

    def number(self, node: ast.Constant) -> float:
        """Return a number, or raise where it is written in a way that only Python has."""
        written = ast.get_source_segment(self.code, node) or ""
        plain = type(node.value) in (int, float) and not set(written) - set("0123456789.eE+-")
        if not plain or len(written) > MOST_DIGITS:
            raise self.refusal(node, " as a number")
        return float(node.value)  # type: ignore[arg-type]  # a number by now


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
        case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]):
            return name
    return None


def _numeric(values: pd.Series) -> bool:
    return is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype)


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
