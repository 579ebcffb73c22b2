"""Checks of what a user gives to a model, with errors that say what to do."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from patsy import EvalEnvironment
from statsmodels.tools.sm_exceptions import MissingDataError, ModelWarning

from rrmstats.core.block_array import blocked
from rrmstats.core.entropy import Array, check_eps_bar

# What constructors pass on to statsmodels: what formulas add, and what all models take.
FORMULA_KEYS = {"missing_idx", "formula", "design_info", "model_spec", "hasconst"}
BY_KEYWORD = {
    "offset": "; subtract an offset from the response",
    "exposure": "; counts have an exposure, see poisson() and glm()",
    "var_weights": "; use glm(var_weights=), or freq_weights= for rows that count several times",
    "family": "; use glm(family=)",
}
AUTO = "auto"
# The largest value of an automatic choice.
# Derived: no equivariant fit resists more (n - p) / 2n.
EPS_BAR_MAX = 0.5


def checked_bound(eps_bar: Any) -> float | str:
    """Return `eps_bar` as a number in [0, 1), or "auto"."""
    if isinstance(eps_bar, str) and eps_bar == AUTO:
        return AUTO
    try:
        return check_eps_bar(eps_bar)
    except TypeError:
        raise TypeError(
            f"eps_bar must be a number in [0, 1) or 'auto', got {eps_bar!r}; leave it out for the "
            "automatic choice, or give the largest share of bad rows that you think possible, "
            "such as eps_bar=0.2"
        ) from None


def checked_most(eps_bar_max: Any) -> float:
    """Return the largest value of an automatic choice."""
    number = isinstance(eps_bar_max, int | float | np.number)
    if isinstance(eps_bar_max, bool) or not (number and 0 < eps_bar_max < 1):
        raise ValueError(f"eps_bar_max must be a number in (0, 1), got {eps_bar_max!r}")
    return float(eps_bar_max)


def checked_steps(steps: Any) -> int:
    """Return the number of steps, 1 or 2."""
    if isinstance(steps, bool) or steps not in (1, 2):
        raise ValueError(
            f"steps must be 2, the default, or 1, the paper's estimate, got {steps!r}"
        )
    return int(steps)


def check_kwargs(name: str, kwargs: dict[str, Any]) -> None:
    """Raise on keywords that no statsmodels interface passes."""
    if "weights" in kwargs:
        raise TypeError(
            f"{name} takes no weights=; use freq_weights= for rows that count several times, and "
            "wls() or var_weights= of glm() for rows of unequal noise. "
            "The weights of the results are those that the fit finds"
        )
    kwargs.pop("check_rank", None)  # what statsmodels' constructors take plays no part here
    unknown = sorted(set(kwargs) - FORMULA_KEYS)
    if unknown:
        advice = next((BY_KEYWORD[each] for each in unknown if each in BY_KEYWORD), "")
        raise TypeError(f"{name} got unknown keywords: {', '.join(unknown)}{advice}")


def check_frame(data: Any) -> None:
    """Raise where a data frame has no rows."""
    if hasattr(data, "__len__") and hasattr(data, "columns") and len(data) == 0:
        raise ValueError("data has no rows; give at least as many as there are parameters")


@contextmanager
def naming_columns(formula: str, data: Any) -> Iterator[None]:
    """Say how to name a column that has the name of a keyword, where a formula has no syntax."""
    try:
        yield
    except SyntaxError:
        words = re.findall(r"\w+", re.sub(r"""(["']).*?\1""", "", formula))
        for word in words:
            if iskeyword(word) and word in getattr(data, "columns", data):
                raise ValueError(
                    f'the column name {word!r} is a keyword of Python; write Q("{word}") in the '
                    "formula"
                ) from None
        raise


def check_kinds(name: str, values: Any) -> None:
    """Raise where data hold text, dates or other things that are not numbers."""
    formula = "or use a formula, which codes categories"
    if isinstance(values, pd.DataFrame):
        bad = [str(c) for c, dtype in values.dtypes.items() if not _numeric(values[c], dtype)]
        if bad:
            raise ValueError(
                f"{name} has non-numeric columns: {', '.join(bad)}; convert them, {formula}"
            )
    elif not _numeric(values, getattr(values, "dtype", None)):
        raise ValueError(
            f"{name} must be numeric, got {np.asarray(values).dtype}; convert it, labels for "
            f"example with (labels == 'yes').astype(float), {formula}"
        )


def check_numbers(name: str, values: Any) -> Any:
    """Return data as numbers; raise where they hold text or nothing, naming the columns."""
    check_kinds(name, values)
    if np.size(values) == 0:
        raise ValueError(f"{name} is empty: no rows, or none without missing values")
    kinds = getattr(values, "dtypes", [getattr(values, "dtype", None)])
    other = {np.dtype("O"), np.dtype(bool)} & {*np.atleast_1d(kinds)}
    return values.astype(float) if other else values


def _numeric(values: Any, dtype: Any) -> bool:
    """Tell whether values are numbers or can be read as such."""
    if dtype is not None and pd.api.types.is_numeric_dtype(dtype):
        return not pd.api.types.is_complex_dtype(dtype)
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return False
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array.dtype.kind in "biuf"
    return all(isinstance(v, int | float | np.number | None) for v in array.ravel())


def per_row(name: str, values: Any, nobs: int) -> Any:
    """Return numbers, one per row, or None; raise where they are something else."""
    if values is None:
        return None
    if isinstance(values, str):
        raise TypeError(
            f"{name} must be numbers, one per row, got {values!r}; for a column of a data frame "
            f"give data[{values!r}]"
        )
    check_numbers(name, values)
    array = np.asarray(values, dtype=float)
    if array.shape != (nobs,):
        raise ValueError(
            f"{name} must have one number per row, shape ({nobs},), got {array.shape}"
        )
    if name == "freq_weights" and (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {np.nanmin(array):g}")
    if name in ("exposure", "var_weights") and (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {np.nanmin(array):g}")
    return values if isinstance(values, pd.Series) else array


def check_column(name: str, values: Any) -> None:
    """Raise where a variable has several columns."""
    shape = np.shape(values)
    if len(shape) > 1 and shape[1] > 1:
        raise ValueError(f"{name} must have one column, got {shape[1]}; fit each one separately")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Say what to do where statsmodels' own errors do not."""
    try:
        yield
    except MissingDataError as error:
        if "inf or nans" not in str(error):
            raise
        raise MissingDataError(
            "exog contains NaN or infinite values; drop these rows, or use missing='drop' "
            "(NaN only)"
        ) from None
    except ValueError as error:
        if "zero-size array" not in str(error):
            raise
        raise ValueError("no rows are left once those with missing values are dropped") from None


def check_finite(name: str, values: Array) -> None:
    """Raise where data hold NaN or infinities."""
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"{name} contains {bad} NaN or infinite values; drop these rows, or use "
            "missing='drop' (NaN only)"
        )


def names_of_caller(eval_env: Any, depth: int) -> Any:
    """Return where the functions of a formula are looked up.

    Parameters
    ----------
    eval_env : int, mapping or patsy.EvalEnvironment
        The number of frames above the caller, or -1 for no names at all; or the names.
    depth : int
        The number of frames between this function and its caller who wrote the formula.
    """
    if isinstance(eval_env, Mapping):
        return EvalEnvironment([eval_env])
    if not isinstance(eval_env, int):
        return eval_env
    if eval_env == -1:
        return EvalEnvironment([{}])
    frame = sys._getframe(depth + 1 + eval_env)
    return EvalEnvironment([ChainMap(frame.f_locals, frame.f_globals)])


def named_column(argument: str, values: Any, data: Any) -> Any:
    """Return what an argument beside a formula stands for: a column of the data, or values.

    Parameters
    ----------
    argument : str
        Its name.
    values : str, or array_like with one value per row
    data : DataFrame or mapping
    """
    if not isinstance(values, str):
        return values
    names = [str(name) for name in (data.columns if hasattr(data, "columns") else data)]
    if values not in names:
        near = get_close_matches(values, names, 1, 0.0)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{argument}={values!r} is not a column of the data{hint}")
    return data[values]


def of_subset(values: Any, data: pd.DataFrame, subset: Any) -> Any:
    """Return values of all rows for those of a subset; values of another number as they are.

    Parameters
    ----------
    values : array_like
        One per row of the data, or of the subset.
    data : DataFrame
    subset : array_like
        Rows of `data` to use.
    """
    if isinstance(values, pd.Series) and values.index.equals(data.index):
        return values.loc[subset]
    if np.ndim(values) == 1 and len(values) == len(data):
        return pd.Series(np.asarray(values), index=data.index).loc[subset]
    return values


def as_floats(values: Any) -> Array:
    """Return values as an array of floats, those in partitions as they are."""
    return values if blocked(values) else np.asarray(values, float)


def checked_start(start_params: ArrayLike, names: Sequence[str]) -> Array:
    """Return parameters to start from, one for each name, or say how many there must be."""
    params = np.asarray(start_params, dtype=float).ravel(order="F")
    if len(params) != len(names):
        raise ValueError(
            f"start_params must be {len(names)} numbers, for {', '.join(names)}, got {params.size}"
        )
    return params


# Packages whose code stands between a user and a warning.
WITHIN = {"rrmstats", "statsmodels", "functools"}


def warn(text: str, category: type[Warning] = ModelWarning) -> None:
    """Warn where the code that uses this package called it."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in WITHIN:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
