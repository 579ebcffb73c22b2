"""What the models of several variables share: one-sided formulas and names of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base.model import LikelihoodModel

from rrmstats.core.entropy import Array
from rrmstats.interchange import as_pandas, is_dask, is_dask_frame
from rrmstats.models.base import ProblemT, ResultsT, RRMModel, counted, held_arrays
from rrmstats.models.checks import (
    EPS_BAR_MAX,
    check_finite,
    check_freq_weights,
    check_kwargs,
    check_numbers,
    checked_bound,
    label_array,
    readable_errors,
)
from rrmstats.partitions.formulas import FormulaDesign, used_names
from rrmstats.partitions.rows import PartitionedRows

if TYPE_CHECKING:
    from typing_extensions import Self


class RRMMultivariate(RRMModel[ProblemT, ResultsT], LikelihoodModel):
    """A model of the joint distribution of several variables; `endog` holds them as columns."""

    formula: str
    #: What to use in place of predictions.
    _no_predictions: ClassVar[str]

    def __init__(
        self,
        data: ArrayLike,
        eps_bar: float | str,
        *,
        eps_bar_max: float = EPS_BAR_MAX,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        checked_bound(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        held, rows = held_arrays(missing, persist, endog=data, freq_weights=freq_weights)
        freq_weights = rows["freq_weights"]
        values: Any = check_numbers("data", rows["endog"])
        if np.ndim(values) == 1:
            series = isinstance(values, pd.Series)
            values = values.to_frame() if series else np.asarray(values)[:, None]
        counts = {}
        if freq_weights is not None:
            check_freq_weights(freq_weights, len(values))
            counts = {"freq_weights": freq_weights}
        with readable_errors():
            super().__init__(values, None, missing=missing, **counts, **kwargs)
        if self.endog.ndim == 1:
            self.endog = self.endog[:, None]
        self._set_options(eps_bar, freq_weights, eps_bar_max, groups)
        check_finite("data", self.endog)
        self.nobs = float(len(self.endog))
        self._hold(held)

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        arrays, data = super()._held_arrays(held), held.arrays["endog"]
        return {**arrays, "endog": data[:, None] if data.ndim == 1 else data}

    @classmethod
    def _from_design(
        cls, formula: str, data: Any, subset: Any, drop_cols: Any, **kwargs: Any
    ) -> Self:
        if formula.split("~")[0].strip() or "~" not in formula:
            raise ValueError(f"formula must be one-sided, such as '~ a + b', got {formula!r}")
        missing = kwargs.pop("missing", "drop")
        frame = pd.DataFrame(data if subset is None else data.loc[subset])
        names = used_names(formula, kwargs.pop("eval_env"), list(frame.columns))
        design = FormulaDesign(formula, frame, names, list(drop_cols or []), missing)
        (values,), kept = design.matrices(frame)
        table = pd.DataFrame(values, columns=design.column_names[0], index=frame.index[kept])
        if kwargs.get("freq_weights") is not None:
            check_freq_weights(kwargs["freq_weights"], len(frame))
            kwargs["freq_weights"] = np.asarray(kwargs["freq_weights"])[kept]
        if kwargs.get("groups") is not None:
            kwargs["groups"] = label_array(kwargs["groups"], len(frame))[kept]
        model = cls(table, **kwargs)
        model.formula, model.data.frame = formula, frame
        model._formula_design = design
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the names of the formula: modules such as numpy have no pickles."""
        design = self._formula_design
        if design is None:
            return dict(vars(self))
        bare = FormulaDesign(design.formula, design.rows, {}, design.drop_cols, design.missing)
        return {**vars(self), "_formula_design": bare}

    def predict(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: there is no response to predict."""
        raise NotImplementedError(
            f"{type(self).__name__} has no response to predict; {self._no_predictions}"
        )

    def _traits(self) -> list[str]:
        return [counted(len(self.variables), "variable")]

    def _new_partitions(self, new: Any) -> tuple[Any, Any]:
        """Return new observations in partitions, and their labels."""
        if is_dask_frame(new) and self._formula_design is None:
            new = new[self.variables]
        held = self.design_in_partitions(new)
        assert held is not None
        return held.arrays["exog"], held

    @property
    def variables(self) -> list[str]:
        """Names of the variables."""
        names = self.data.ynames
        return [names] if isinstance(names, str) else list(names)

    @property
    def variable_index(self) -> list[str] | None:
        """Names of the variables, or None where the data had no labels."""
        return None if self.data.row_labels is None else self.variables

    def new_rows(self, new: pd.DataFrame | ArrayLike) -> tuple[Array, pd.Index | None]:
        """Return new observations as an array (m, d), and their index or None.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
        >>> values, labels = res.model.new_rows(hbk.head(2))
        >>> values.shape, labels.tolist()
        ((2, 3), [0, 1])
        """
        if is_dask(new):
            return self._new_partitions(new)
        new = as_pandas(new)
        if isinstance(new, pd.DataFrame):
            if self._formula_design is not None:
                (values,), kept = self._formula_design.matrices(new)
                return values, new.index[kept]
            missing = [name for name in self.variables if name not in new.columns]
            if missing:
                raise ValueError(f"new data lack the variables {', '.join(missing)}")
            return new[self.variables].to_numpy(float), new.index
        array = np.atleast_2d(np.asarray(new, dtype=float))
        if array.shape[-1] != len(self.variables):
            raise ValueError(
                f"new data must have {len(self.variables)} columns, got shape {array.shape}"
            )
        return array, None
