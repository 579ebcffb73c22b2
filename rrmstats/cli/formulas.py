"""Formulas checked against the data before anything is evaluated."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import patsy
import patsy.builtins

from rrmstats.cli.errors import UsageError, nearest, short

# Functions of one argument that formulas know with and without ``np.``.
FUNCTIONS = (
    *("abs", "sign", "sqrt", "cbrt", "square", "exp", "exp2", "expm1"),
    *("log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arctanh", "floor", "ceil", "rint"),
)
CONSTANT = patsy.INTERCEPT.name()
# Text in quotes.
QUOTED = re.compile(r"""(["']).*?\1""")


def open_environment() -> patsy.EvalEnvironment:
    """Return the names that formulas know without ``--safe``: numpy, and its functions."""
    return patsy.EvalEnvironment([{"np": np}, {name: getattr(np, name) for name in FUNCTIONS}])


def parsed_formula(formula: str) -> patsy.ModelDesc:
    """Return the terms of a formula, none of which is evaluated.

    Parameters
    ----------
    formula : str

    Returns
    -------
    patsy.ModelDesc

    Raises
    ------
    UsageError
        If it cannot be parsed.
    """
    if "\0" in formula:
        raise UsageError("a formula cannot have a NUL character")
    if not formula.strip():
        raise UsageError("the formula is empty; give one such as 'y ~ x'")
    try:
        return patsy.ModelDesc.from_formula(formula)
    except RecursionError:
        raise UsageError(f"the formula {short(formula)} is too long or nested too deep") from None
    except (patsy.PatsyError, SyntaxError, ValueError) as error:
        reason = getattr(error, "message", str(error)).splitlines()[0]
        raise UsageError(f"cannot parse the formula {short(formula)}: {reason}") from None


def check_sides(desc: patsy.ModelDesc, formula: str, two_sided: bool) -> None:
    """Raise where a formula lacks what a model needs, or has a response that it cannot take."""
    if two_sided and not desc.lhs_termlist:
        raise UsageError(f"the formula {short(formula)} has no response; write 'y ~ x1 + x2'")
    if not two_sided and desc.lhs_termlist:
        raise UsageError(
            f"the formula {short(formula)} has a response, which pca and cov do not take; write "
            "'~ a + b'"
        )
    if not two_sided and "~" not in formula:
        raise UsageError(f"the formula {short(formula)} has no ~; write '~ a + b'")
    constant = [] if two_sided else [patsy.INTERCEPT]
    if all(term in constant for term in desc.rhs_termlist):
        like = "predictors; write 'y ~ x1 + x2'" if two_sided else "variables; write '~ a + b'"
        raise UsageError(f"the formula {short(formula)} has no {like}")


def check_constant(desc: patsy.ModelDesc) -> None:
    """Raise where a column has the name of the constant that the formula has too."""
    names = [term.name() for term in desc.rhs_termlist]
    if names.count(CONSTANT) > 1:
        raise UsageError(
            f"the column {CONSTANT!r} has the name of the constant; write I({CONSTANT}), or add "
            "'- 1' to leave the constant out"
        )


def check_names(desc: patsy.ModelDesc, formula: str, columns: Collection[str]) -> None:
    """Raise where a formula names a column that is not there, with what may have been meant.

    Parameters
    ----------
    desc : patsy.ModelDesc
    formula : str
        What was parsed.
    columns : collection of str
        Names of the columns.
    """
    try:
        _check_names(desc, columns)
    except UsageError:
        bare = _squeezed(QUOTED.sub("", formula))
        for column in columns:
            if not is_name(column) and _squeezed(column) in bare:
                raise UsageError(
                    f'the column name {column!r} is no name in Python; write Q("{column}")'
                ) from None
        raise


def _squeezed(text: str) -> str:
    return "".join(text.split())


def is_name(column: str) -> bool:
    """Return whether a formula can name a column without ``Q()``."""
    return column.isidentifier() and not keyword.iskeyword(column)


def _check_names(desc: patsy.ModelDesc, columns: Collection[str]) -> None:
    known = {*columns, "np", *FUNCTIONS, *vars(patsy.builtins), *vars(builtins)}
    for code in factor_codes(desc):
        if code in columns and not is_name(code):
            raise UsageError(f'the column name {code!r} is no name in Python; write Q("{code}")')
        if code.isidentifier():
            check_column(code, columns)
        check_functions(code, known)
        for name in names_in(code):
            if name not in known:
                check_column(name, columns)


def used_columns(desc: patsy.ModelDesc, columns: Collection[str]) -> list[str]:
    """Return the columns that a formula names."""
    return _columns_in(factor_codes(desc), columns)


def number_columns(desc: patsy.ModelDesc, columns: Collection[str]) -> list[str]:
    """Return the columns that a formula names outside ``C()``."""
    codes = (code for code in factor_codes(desc) if not code.startswith("C("))
    return _columns_in(codes, columns)


def _columns_in(codes: Iterable[str], columns: Collection[str]) -> list[str]:
    names = (name for code in codes for name in names_in(code))
    return [name for name in dict.fromkeys(names) if name in columns]


def bare_columns(terms: Iterable[patsy.Term], columns: Collection[str]) -> list[str]:
    """Return the columns that are factors of terms as they are, by their name or in ``Q()``."""
    codes = {factor.code for term in terms for factor in term.factors}
    return [name for name in columns if codes & {name, f"Q({name!r})", f'Q("{name}")'}]


def factor_codes(desc: patsy.ModelDesc) -> Iterator[str]:
    """Yield what each factor of a formula evaluates."""
    for term in (*desc.lhs_termlist, *desc.rhs_termlist):
        for factor in term.factors:
            yield factor.code


def check_functions(code: str, known: Collection[str]) -> None:
    """Raise where an expression calls a function that is not there, with the nearest name."""
    for node in nodes_in(code):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name not in known:
                raise UsageError(
                    f"there is no function {short(name)}; {nearest(name, FUNCTIONS, 'function')}"
                )


def nodes_in(code: str) -> Iterator[ast.AST]:
    """Yield the parts of an expression."""
    try:
        tree = ast.parse(code, mode="eval")
    except (SyntaxError, ValueError):
        raise UsageError(f"cannot parse {short(code)} in the formula") from None
    except (MemoryError, RecursionError):  # of Python's parser, where it gets too deep
        raise UsageError(f"{short(code)} in the formula is nested too deep") from None
    yield from ast.walk(tree)


def names_in(code: str) -> Iterator[str]:
    """Yield the names in an expression, and those in ``Q("...")``."""
    for node in nodes_in(code):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Q" and node.args:
            if isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def check_column(name: str, columns: Collection[str]) -> None:
    """Raise where there is no such column, with the nearest name."""
    if name not in columns:
        raise UsageError(f"there is no column {short(name)}; {nearest(name, columns)}")
