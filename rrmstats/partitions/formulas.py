"""Formulas evaluated for any rows: those of memory, of a partition, or new ones.

statsmodels has two engines for formulas, patsy and formulaic. Designs of patsy cannot be sent to
other processes. What can is sent instead, for both: rows that have every level of every
categorical variable, the functions that the formula names, and what stateful transforms such as
`center` have learned. Each process makes the design from these once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import patsy
import statsmodels.formula

from rrmstats.core.entropy import Array
from rrmstats.interchange import plain_types

# Levels of a categorical variable beyond which a partition is not searched for more.
MOST_LEVELS = 10_000
# Distinct numbers of a column up to which it may be a category, as in C(year).
MOST_NUMBERS = 1_000
# Rows of a partition that are looked at besides.
FEW_ROWS = 50


def formula_engine() -> str:
    """Return the engine that statsmodels evaluates formulas with; up to version 0.14 patsy."""
    options = getattr(statsmodels.formula, "options", None)
    return "patsy" if options is None else str(options.formula_engine)


class FormulaDesign:
    """The design matrices of a formula for any part of the data.

    Parameters
    ----------
    formula : str
        Two-sided, or one-sided for variables without a response.
    rows : DataFrame
        Rows with every level of every categorical variable.
    namespace : dict
        What the formula names besides columns.
    drop_cols : list of str
        Columns to drop from the design.
    missing : {"drop", "raise"}
    """

    def __init__(
        self,
        formula: str,
        rows: pd.DataFrame,
        namespace: dict[str, Any],
        drop_cols: list[str],
        missing: str,
    ) -> None:
        self.formula, self.rows, self.namespace = formula, rows, namespace
        self.drop_cols, self.missing = drop_cols, missing
        self.engine = formula_engine()
        self.learned: list[dict[str, dict[str, Any]]] = []
        self.keep_intercept = self.two_sided

    def __getstate__(self) -> dict[str, Any]:
        made = ("designs", "plain_columns")
        return {name: value for name, value in vars(self).items() if name not in made}

    @property
    def predictors(self) -> FormulaDesign:
        """The same for the predictors alone."""
        found = copy(self)
        found.formula, found.learned = f"~{self.formula.split('~', 1)[1]}", self.learned[-1:]
        return found

    @property
    def two_sided(self) -> bool:
        """Whether the formula has a response."""
        return bool(self.formula.split("~")[0].strip())

    @cached_property
    def designs(self) -> list[Any]:
        """What the engine makes matrices with: of response and predictors, or of the variables."""
        rows = plain_types(self.rows)
        if self.engine == "formulaic":
            from statsmodels.formula._manager import FormulaManager

            manager = FormulaManager("formulaic")
            tables = manager.get_matrices(self.formula, rows, self.namespace, na_action="drop")
            return [table.model_spec for table in (tables if self.two_sided else [tables])]
        env = patsy.EvalEnvironment([self.namespace, {"np": np}])  # as formulaic knows np
        make = patsy.dmatrices if self.two_sided else patsy.dmatrix
        found = make(self.formula, rows, env, NA_action="drop")
        designs = [part.design_info for part in (found if self.two_sided else [found])]
        for design, learned in zip(designs, self.learned, strict=False):
            _teach(design, learned)
        return designs

    def check_rows(self) -> None:
        """Raise where the value of a row depends on which rows are beside it."""
        half = len(self.rows) // 2
        parts = [self.matrices(rows)[0] for rows in (self.rows[:half], self.rows[half:])]
        for whole, *pieces in zip(self.matrices(self.rows)[0], *parts, strict=True):
            found = np.vstack(pieces)
            if found.shape != whole.shape or not np.allclose(found, whole, equal_nan=True):
                raise ValueError(
                    f"the formula {self.formula!r} uses a function of a whole column, such as a "
                    "mean or a rank, but partitions are evaluated one at a time; add it to the "
                    "data as a column first, or use center() and standardize()"
                )

    def learn(self, parts: Callable[[], Iterator[pd.DataFrame]]) -> None:
        """Let stateful transforms see all the data, in as many passes as they need."""
        if not any(_transforms(design) for design in self.designs):
            return
        if self.engine == "formulaic":
            raise ValueError(
                f"the formula {self.formula!r} has a function such as center() that learns from "
                "all rows, which formulaic cannot do for rows in partitions; add its values to "
                "the data as a column, or let statsmodels use patsy"
            )
        env = patsy.EvalEnvironment([self.namespace])
        make = patsy.incr_dbuilders if self.two_sided else patsy.incr_dbuilder
        found = make(self.formula, parts, env)
        designs = list(found) if self.two_sided else [found]
        self.learned = [_transforms(design) for design in designs]
        del self.designs

    def matrices(self, frame: pd.DataFrame) -> tuple[list[Array], np.ndarray]:
        """Return the matrices of some rows, and which of the rows they have.

        The response comes first where there is one; rows with missing values are left out.
        """
        if self.plain_columns is not None:
            return self._plain_matrices(frame, self.plain_columns)
        kept = np.arange(len(frame))
        if not len(frame):
            return [np.empty((0, len(names))) for names in self.column_names], kept
        tables = self._tables(plain_types(frame).reset_index(drop=True))
        kept = kept[tables[0].index] if len(tables[0]) else kept[:0]
        chosen = zip(tables, self.column_names, strict=True)
        return [table[names].to_numpy(float) for table, names in chosen], kept

    def _tables(self, rows: pd.DataFrame) -> list[pd.DataFrame]:
        """Return the matrices of numbered rows; those of rows with missing values are left out."""
        action = "drop" if self.missing == "drop" else "raise"
        if self.engine == "patsy":
            found = patsy.build_design_matrices(
                self.designs, rows, NA_action=action, return_type="dataframe"
            )
            return list(found)
        tables = [
            pd.DataFrame(spec.get_model_matrix(rows, context=self.namespace, na_action=action))
            for spec in self.designs
        ]
        whole = tables[0].index.intersection(tables[-1].index)
        return [table.loc[whole] for table in tables]

    @cached_property
    def plain_columns(self) -> list[list[str | None]] | None:
        """The columns of the data that each matrix consists of, None for a constant.

        None as a whole where the formula does more than that.
        """
        numbers = {name for name in self.rows.columns if not is_category(self.rows[name])}
        if any(set(names) - numbers - {"Intercept"} for names in self.column_names):
            return None
        return [[n if n in numbers else None for n in names] for names in self.column_names]

    def _plain_matrices(
        self, frame: pd.DataFrame, columns: list[list[str | None]]
    ) -> tuple[list[Array], np.ndarray]:
        used = sorted({name for names in columns for name in names if name is not None})
        # Columns lie together: that is how frames have them, and faster to fill.
        table = np.ones((len(used) + 1, len(frame)))
        for row, name in zip(table, used, strict=False):
            row[:] = frame[name].to_numpy(float, na_value=np.nan)
        kept = np.flatnonzero(~np.isnan(table).any(axis=0))
        if len(kept) < len(frame):
            if self.missing != "drop":
                raise ValueError(
                    "the variables of the formula have missing values; use missing='drop' to "
                    "leave out these rows"
                )
            table = table[:, kept]
        rows: list[str | None] = [*used, None]
        return [table[[rows.index(name) for name in names]].T for names in columns], kept

    @property
    def column_names(self) -> list[list[str]]:
        """Names of the columns of each matrix."""
        *response, design = [list(design.column_names) for design in self.designs]
        dropped = self.drop_cols if self.keep_intercept else ["Intercept", *self.drop_cols]
        return [*response, [name for name in design if name not in dropped]]


def _transforms(design: Any) -> dict[str, dict[str, Any]]:
    """Return what the stateful transforms of each factor have learned."""
    if not isinstance(design, patsy.DesignInfo):
        return {code: state for code, state in design.transform_state.items() if state}
    found = {}
    for factor, info in design.factor_infos.items():
        objects = info.state.get("transforms", {})
        if objects:
            found[factor.code] = {name: dict(vars(thing)) for name, thing in objects.items()}
    return found


def _teach(design: Any, learned: dict[str, dict[str, Any]]) -> None:
    for factor, info in design.factor_infos.items():
        for name, state in learned.get(factor.code, {}).items():
            vars(info.state["transforms"][name]).update(state)


def used_names(formula: str, env: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Return what a formula names in the scope of the user, besides columns."""
    code = re.sub(r"(['\"]).*?\1", "", formula)
    words = set(re.findall(r"\b[^\W\d]\w*", code)) - set(columns)
    return {word: env.namespace[word] for word in words if word in env.namespace}


def telling_rows(frame: pd.DataFrame, formula: str) -> pd.DataFrame:
    """Return some rows of a partition, among them every level of every categorical variable."""
    places = set(np.linspace(0, max(len(frame) - 1, 0), FEW_ROWS).astype(int)[: len(frame)])
    numbered = frame.reset_index(drop=True)
    for name in numbered.columns:
        column = numbered[name]
        if is_category(column):
            first = column.drop_duplicates().index
            if len(first) > MOST_LEVELS:
                raise ValueError(
                    f"column {name!r} has more than {MOST_LEVELS} levels in one partition; use "
                    "fewer, or convert it to numbers"
                )
            places.update(first)
        elif "C(" in formula:
            first = column.drop_duplicates().index
            places.update(first if len(first) <= MOST_NUMBERS else ())
    return plain_types(frame.iloc[sorted(places)])


def is_category(column: pd.Series) -> bool:
    """Tell whether patsy treats a column as categorical."""
    return not pd.api.types.is_numeric_dtype(column.dtype) or column.dtype == bool
