"""Models whose rows lie in partitions of a Dask collection.

A model is made from a sample of the rows in memory, from which statsmodels reads names, the
constant and the kinds of variables. Then the arrays of all rows take the place of the sample's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import pandas as pd
import patsy

from rrmstats.core.block_array import blocked
from rrmstats.interchange import is_dask
from rrmstats.partitions.formulas import FormulaDesign
from rrmstats.partitions.rows import BESIDE, PartitionedRows, formula_rows
from rrmstats.results.labels import labeled

# Arguments of models with one value per row that may be given beside a frame.
BESIDE_FRAME = ("freq_weights", "offset", "exposure", "var_weights")


def check_partitioned(subset: Any, kwargs: dict[str, Any]) -> None:
    """Raise on what rows in partitions cannot have."""
    if subset is not None:
        raise ValueError("subset needs rows in memory; filter the Dask frame, data[condition]")
    if kwargs.get("groups") is not None:
        raise NotImplementedError(
            "groups needs rows in memory; for clustered data in partitions use row weights"
        )


def held_formula(
    formula: str,
    data: Any,
    env: patsy.EvalEnvironment,
    drop_cols: Sequence[str] | None,
    kwargs: dict[str, Any],
) -> tuple[PartitionedRows, FormulaDesign, pd.DataFrame]:
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
        """Return values with labels: those of rows in partitions as Dask collections."""
        in_memory = not isinstance(self.row_labels, PartitionedRows)
        if blocked(values) or (how == "rows" and in_memory):
            return labeled(values, self.row_labels)
        return self._sample.wrap_output(values, how, names)
