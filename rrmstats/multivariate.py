"""What the models of several variables share: one-sided formulas and labelled tables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import patsy
from statsmodels.base.model import LikelihoodModel
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.base import (
    RRMModel,
    check_finite,
    check_frame,
    check_kwargs,
    check_numbers,
    check_required,
    check_weights,
    readable_errors,
)
from rrmstats.core.entropy import Array

# Rows and columns of a table of the summary.
TABLE_ROWS, TABLE_COLUMNS = 30, 8


class RRMMultivariate(RRMModel, LikelihoodModel):
    """A model of the joint law of several variables; `endog` holds them as columns."""

    endog: Array
    formula: str

    def __init__(
        self,
        data: Any,
        eps_bar: float | None,
        *,
        weights: Any = None,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        check_required(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        data = check_numbers("data", data)
        if np.ndim(data) == 1:
            data = data.to_frame() if isinstance(data, pd.Series) else np.asarray(data)[:, None]
        extra = {}
        if weights is not None:
            check_weights(weights, len(data))
            extra = {"weights": weights}
        with readable_errors():
            super().__init__(data, None, missing=missing, **extra, **kwargs)
        if self.endog.ndim == 1:
            self.endog = self.endog[:, None]
        self._set_eps_bar(eps_bar)
        self._set_prior(weights)
        check_finite("data", self.endog)
        self.nobs = float(len(self.endog))

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        eps_bar: float | None = None,
        subset: Any = None,
        drop_cols: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Create a model from a one-sided formula and a data frame.

        Parameters
        ----------
        formula : str
            One-sided formula such as ``"~ a + b + np.log(c)"``; an intercept plays no part.
        data : DataFrame or mapping
            The variables of the formula.
        eps_bar : float
            Upper bound on the fraction of corrupted rows, in [0, 1).
        subset : array_like, optional
            Rows of `data` to use.
        drop_cols : list of str, optional
            Columns to leave out.
        *args
            None; further arguments are keywords.
        **kwargs
            Passed on to the model, but for `eval_env`, which goes to the formula engine.

        Returns
        -------
        model
            The model; call its `fit`.
        """
        check_required(eps_bar)
        check_frame(data)
        if args:
            raise TypeError("from_formula takes at most five positional arguments; use keywords")
        if formula.split("~")[0].strip() or "~" not in formula:
            raise ValueError(f"formula must be one-sided, such as '~ a + b', got {formula!r}")
        depth = kwargs.pop("eval_env", 0)
        env = patsy.EvalEnvironment.capture(depth + 1) if isinstance(depth, int) else depth
        missing = kwargs.pop("missing", "drop")
        frame = pd.DataFrame(data if subset is None else data.loc[subset])
        table = patsy.dmatrix(
            formula,
            frame.reset_index(drop=True),
            env,
            NA_action="drop" if missing == "drop" else "raise",
            return_type="dataframe",
        )
        design_info, kept = table.design_info, table.index
        table = table.drop(columns=["Intercept", *(drop_cols or [])], errors="ignore")
        table.index = frame.index[kept]
        if kwargs.get("weights") is not None:
            kwargs["weights"] = rows_of(kwargs["weights"], len(frame), kept)
        model = cls(table, eps_bar=eps_bar, **kwargs)
        model.formula, model.data.frame = formula, frame
        model.design_info = design_info
        return model

    @cached_property
    def design_info(self) -> Any:
        """What makes the variables out of new data; pickles lack it, and make it again."""
        return patsy.dmatrix(self.formula, self.data.frame).design_info

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "design_info"}

    @property
    def variables(self) -> list[str]:
        """Names of the variables."""
        names = self.data.ynames
        return [names] if isinstance(names, str) else list(names)


def rows_of(weights: Any, n: int, kept: Any) -> Array:
    """Return the weights of the rows that were kept, or raise where there is not one a row."""
    if np.shape(weights) != (n,):
        raise ValueError(
            f"weights must be {n} numbers, one a row of data, got shape {np.shape(weights)}"
        )
    return np.asarray(weights)[kept]


def labelled(model: RRMMultivariate, values: Array, columns: Any = None) -> Any:
    """Return rows of values, one for each variable, labelled where the data had labels.

    Parameters
    ----------
    model : RRMMultivariate
    values : ndarray, shape (d,) or (d, m)
    columns : list of str, optional
        Names of the m columns; by default the variables.
    """
    if model.data.row_labels is None:
        return values
    if values.ndim == 1:
        return pd.Series(values, index=model.variables)
    return pd.DataFrame(
        values, index=model.variables, columns=model.variables if columns is None else columns
    )


def number_table(title: str, values: Array, rows: list[str], columns: list[str]) -> SimpleTable:
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
    cells = [[*row, *[""] * missing] for row in cells]
    return SimpleTable(cells, [*shown, *[""] * missing], stubs, title, txt_fmt=fmt_base)


def new_rows(model: RRMMultivariate, new: Any) -> tuple[Array, Any]:
    """Return new observations as an array (m, d), and their index or None."""
    if isinstance(new, pd.DataFrame):
        formula = getattr(model, "formula", None)
        if formula is not None:
            new = patsy.dmatrix(model.design_info, new, return_type="dataframe")
        missing = [name for name in model.variables if name not in new.columns]
        if missing:
            raise ValueError(f"new data lack the variables {', '.join(missing)}")
        return new[model.variables].to_numpy(float), new.index
    array = np.atleast_2d(np.asarray(new, dtype=float))
    if array.shape[-1] != len(model.variables):
        raise ValueError(
            f"new data must have {len(model.variables)} columns, got shape {array.shape}"
        )
    return array, None
