"""Models whose rows lie in partitions of a Dask collection.

A model is made from a sample of the rows in memory, from which statsmodels reads names, the
constant and the kinds of variables. Then the arrays of all rows take the place of the sample's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import patsy

from rrmstats.core.block_array import blocked
from rrmstats.core.entropy import Array
from rrmstats.partitions.formulas import PartitionFormula
from rrmstats.partitions.rows import PartitionedRows
from rrmstats.partitions.sources import BESIDE, array_rows, formula_rows, is_dask

# Arguments of models with one value per row that may be given beside a frame.
BESIDE_FRAME = ("freq_weights", "offset", "exposure", "var_weights")


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
        self.data = PartitionedData(self.data, held)
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

    def _refuse_partitions(self, what: str, advice: str) -> None:
        """Raise where something needs all rows in memory."""
        if self._held is not None:
            raise NotImplementedError(
                f"{what} needs all rows in memory, but these lie in partitions; {advice}"
            )


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
    if not any(is_dask(values) for values in given.values()):
        return None, given
    used = {name: values for name, values in given.items() if values is not None}
    held, samples = array_rows(used, missing, persist)
    return held, {name: samples.get(name) for name in given}


def held_formula(
    formula: str,
    data: Any,
    env: int | Any,
    drop_cols: Sequence[str] | None,
    kwargs: dict[str, Any],
) -> tuple[PartitionedRows, PartitionFormula, pd.DataFrame]:
    """Return the rows of a formula in partitions, and a sample; `kwargs` become the sample's.

    Parameters
    ----------
    formula : str
    data : dask DataFrame
    env : int or patsy.EvalEnvironment
        Frames from the caller of `from_formula` on, or the scope itself.
    drop_cols : sequence of str, optional
    kwargs : dict
        Keywords of the model; arrays given beside the frame are replaced by those of the sample.
    """
    if isinstance(env, int):
        # This frame, and that of `from_formula`.
        env = patsy.EvalEnvironment([{}]) if env == -1 else patsy.EvalEnvironment.capture(env + 2)
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


class PartitionedData:
    """What statsmodels knows of a sample, with the labels of all rows.

    Parameters
    ----------
    sample : statsmodels ModelData
    rows : PartitionedRows
    """

    def __init__(self, sample: Any, rows: PartitionedRows) -> None:
        self._sample, self.row_labels = sample, rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sample":
            raise AttributeError(name)
        return getattr(self._sample, name)

    def wrap_output(self, values: Any, how: str = "columns", names: Any = None) -> Any:
        """Return values with labels: those of rows as Dask collections."""
        if blocked(values):
            return self.row_labels.labeled(values)
        return self._sample.wrap_output(values, how, names)


def as_floats(values: Any) -> Array:
    """Return values as an array of floats, those in partitions as they are."""
    return values if blocked(values) else np.asarray(values, float)
