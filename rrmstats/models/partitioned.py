"""Models whose rows lie in partitions of a Dask collection.

A model is made from a sample of the rows in memory, from which statsmodels reads names, the
constant and the kinds of variables. Then the arrays of all rows take the place of the sample's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import patsy

from rrmstats.core.block_array import blocked
from rrmstats.core.block_copies import on_rows
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.search import DEFAULT_SEED
from rrmstats.interchange import as_pandas, as_values
from rrmstats.partitions.formulas import PartitionFormula
from rrmstats.partitions.rows import PartitionedRows
from rrmstats.partitions.sources import (
    BESIDE,
    array_rows,
    formula_rows,
    is_dask,
    is_dask_frame,
    predictor_rows,
)
from rrmstats.results.labels import labeled

# Arguments of models with one value per row that may be given beside a frame.
BESIDE_FRAME = ("freq_weights", "offset", "exposure", "var_weights")
# Rows that pictures draw.
DRAWN_ROWS = 5_000


class PartitionedModel:
    """A model whose rows may lie in partitions."""

    #: The rows in partitions; None where they are in memory.
    _held: PartitionedRows | None = None
    #: The formula, as partitions evaluate it.
    _held_formula: PartitionFormula | None = None
    data: Any

    def _hold(self, held: PartitionedRows | None, formula: PartitionFormula | None = None) -> None:
        """Let rows in partitions take the place of the sample that the model was made from."""
        if held is None:
            return
        self._held, self._held_formula = held, formula
        for name in ("weights", "wendog", "wexog"):
            vars(self).pop(name, None)
        for name, array in self._held_arrays(held).items():
            setattr(self, name, array)
        labeled_by = (SampledData, held.index) if held.in_memory else (PartitionedData, held)
        self.data = labeled_by[0](self.data, labeled_by[1])
        for name in ("design_info", "model_spec"):  # statsmodels 0.14 and 0.15
            if formula is not None and hasattr(self.data, name):
                setattr(self.data, name, formula.designs[-1])
        self.nobs = float(len(held))
        self._check_constant(held)

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        """Return the arrays of all rows by the names of the model's attributes."""
        return dict(held.arrays)

    def _check_constant(self, held: PartitionedRows) -> None:
        """Forget a constant that is one only in the sample."""
        place, exog = self.data.const_idx, held.arrays.get("exog")
        if place is not None and exog is not None:
            if exog.min(axis=0)[place] != exog.max(axis=0)[place]:
                self.data.const_idx, self.data.k_constant, self.k_constant = None, 0, 0

    @property
    def _in_partitions(self) -> bool:
        """Whether the rows lie in partitions, and not in memory."""
        return self._held is not None and not self._held.in_memory

    def _refuse_partitions(self, what: str, advice: str) -> None:
        """Raise where something needs all rows in memory."""
        if self._in_partitions:
            raise NotImplementedError(
                f"{what} needs all rows in memory, but these lie in partitions; {advice}"
            )

    def _check_inference(self, cov_type: str) -> None:
        """Raise on standard errors that rows in partitions cannot have."""
        if self._in_partitions and cov_type not in ("sandwich", "nonrobust"):
            raise NotImplementedError(
                f"cov_type={cov_type!r} needs all rows in memory, but these lie in partitions; "
                "use cov_type='sandwich', or fit a sample of the rows in memory"
            )

    def _without_partitions(self, rows: np.ndarray) -> None:
        """Let the model be one of some rows in memory, whose arrays it has already."""
        if self._held is not None:
            labels = self._held.labels_at(rows)
            self.data = SampledData(self.data._sample, labels)
            self._held, self.nobs = None, float(len(rows))

    def _on_sample(self, estimate: Estimate) -> tuple[Any, Estimate]:
        """Return the model and an estimate as seen on a random sample of the rows."""
        assert self._held is not None
        n = len(self._held)
        count = min(n, DRAWN_ROWS)
        rows = np.sort(np.random.default_rng(DEFAULT_SEED).choice(n, count, replace=False))
        return self._part(rows), _scaled_up(on_rows(estimate, rows), n / count)  # type: ignore[attr-defined]  # the model's

    def _lies_in_parts(self, data: Any) -> bool:
        """Tell whether data are a Dask collection."""
        return is_dask(data)

    def _rows_of(self, data: Any) -> PartitionedRows | None:
        """Return new data in partitions as rows of the design; None for data in memory."""
        if not is_dask(data):
            return None
        if self._held_formula is not None and is_dask_frame(data):
            return predictor_rows(self._held_formula, data)
        return array_rows({"exog": data}, "none", persist=False)[0]

    def _predicted(self, params: Array, rows: Array, offset: Array | float) -> Array:
        """Return the means of rows of the design in partitions."""
        return rows @ params

    @property
    def _fitted_offset(self) -> Array | float:
        """What is added to the linear predictors of the rows of the fit."""
        return 0.0


def _scaled_up(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate of a sample whose weights are in units of equal ones."""
    first = None if estimate.first is None else _scaled_up(estimate.first, factor)
    weights = estimate.solution.weights * factor
    return replace(estimate, solution=replace(estimate.solution, weights=weights), first=first)


def check_partitioned(subset: Any, kwargs: dict[str, Any]) -> None:
    """Raise on what rows in partitions cannot have."""
    if subset is not None:
        raise ValueError("subset needs rows in memory; filter the Dask frame, data[condition]")
    if kwargs.get("groups") is not None:
        raise NotImplementedError(
            "groups needs rows in memory; for clustered data in partitions use row weights"
        )


def held_arrays(
    missing: str, persist: bool | str, **given: Any
) -> tuple[PartitionedRows | None, dict[str, Any]]:
    """Return rows in partitions with a sample of each array, or None with what was given.

    Parameters
    ----------
    missing : {"none", "drop", "raise"}
    persist : bool or "auto"
        Whether partitions are computed once for all passes.
    **given
        What the model was given, by name; the response first.
    """
    rows = ("endog", "exog")
    given = {name: as_pandas(v) if name in rows else as_values(v) for name, v in given.items()}
    if not any(is_dask(values) for values in given.values()):
        lists = {n: np.asarray(v) for n, v in given.items() if isinstance(v, list | tuple)}
        return None, {**given, **lists}
    used = {name: values for name, values in given.items() if values is not None}
    held, samples = array_rows(used, missing, persist)
    return held, {name: samples.get(name) for name in given}


def held_formula(
    formula: str,
    data: Any,
    env: patsy.EvalEnvironment,
    drop_cols: Sequence[str] | None,
    kwargs: dict[str, Any],
) -> tuple[PartitionedRows, PartitionFormula, pd.DataFrame]:
    """Return the rows of a formula in partitions, and a sample; `kwargs` become the sample's.

    Parameters
    ----------
    formula : str
    data : dask DataFrame
    env : patsy.EvalEnvironment
        Where functions of the formula are looked up.
    drop_cols : sequence of str, optional
    kwargs : dict
        Keywords of the model; arrays given beside the frame are replaced by those of the sample.
    """
    beside = {name: kwargs[name] for name in BESIDE_FRAME if kwargs.get(name) is not None}
    for name, values in beside.items():
        if not is_dask(values):
            raise TypeError(
                f"{name} must be a Dask Series like the columns of the data, got "
                f"{type(values).__name__}"
            )
    missing = "drop" if kwargs.get("missing", "drop") == "drop" else "raise"
    persist = kwargs.pop("persist", "auto")
    held, sample, made = formula_rows(
        formula, data, env, beside, drop_cols or (), missing, persist
    )
    for name in beside:
        kwargs[name] = sample[BESIDE + name]
    return held, made, sample


class SampledData:
    """What statsmodels knows of a sample, with the labels of other rows.

    Parameters
    ----------
    sample : statsmodels ModelData
    row_labels : pandas.Index, PartitionedRows or None
    """

    def __init__(self, sample: Any, row_labels: Any) -> None:
        vars(self).update(_sample=sample, row_labels=row_labels)

    def __copy__(self) -> SampledData:
        return type(self)(copy(self._sample), self.row_labels)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._sample, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sample":
            raise AttributeError(name)
        return getattr(self._sample, name)

    def wrap_output(self, values: Any, how: str = "columns", names: Any = None) -> Any:
        """Return values with labels."""
        if how == "rows":
            return labeled(values, self.row_labels)
        return self._sample.wrap_output(values, how, names)


class PartitionedData(SampledData):
    """What statsmodels knows of a sample, with the labels of all rows in partitions."""

    def wrap_output(self, values: Any, how: str = "columns", names: Any = None) -> Any:
        """Return values with labels: those of rows as Dask collections."""
        if blocked(values):
            return self.row_labels.labeled(values)
        return self._sample.wrap_output(values, how, names)


def as_floats(values: Any) -> Array:
    """Return values as an array of floats, those in partitions as they are."""
    return values if blocked(values) else np.asarray(values, float)
