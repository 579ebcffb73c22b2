"""What a model does with its bound: another one, the automatic choice, the check."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rrmstats.core.block_array import taken
from rrmstats.core.choice import Choice
from rrmstats.core.comparison import efficient_estimate
from rrmstats.core.entropy import check_eps_bar
from rrmstats.core.estimate import Estimate
from rrmstats.core.setting import Setting
from rrmstats.models.bounds import AUTO, checked_stability, chosen_bound
from rrmstats.results.inference import Inference
from rrmstats.results.stability import Stability

if TYPE_CHECKING:
    from typing_extensions import Self


class BoundedModel:
    """A model with a bound on the corrupted fraction, given or automatic."""

    #: The bound on the corrupted fraction, or "auto".
    eps_bar: float | str
    eps_bar_max: float
    #: How an automatic bound was chosen; None for one that was given.
    choice: Choice | None = None
    #: Arrays of the model with one entry or row per row of the data.
    _row_arrays: ClassVar[tuple[str, ...]] = ("endog", "exog", "freq_weights", "groups")
    _results: Any
    groups: np.ndarray | None
    _number_groups: Any
    _without_partitions: Any

    @property
    def _bound(self) -> float:
        """The bound as a number."""
        if isinstance(self.eps_bar, str):
            raise ValueError(
                "eps_bar='auto' has no value before fit(); use the model of its results, res.model"
            )
        return self.eps_bar

    def _with_eps_bar(self, eps_bar: float) -> Self:
        """Return the same model of the same data with another bound."""
        model = copy(self)
        model.eps_bar = check_eps_bar(eps_bar)
        return model

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model of some rows."""
        part = copy(self)
        values = {name: getattr(self, name, None) for name in self._row_arrays}
        by_row = {name: v for name, v in values.items() if v is not None and np.ndim(v) > 0}
        for name, some in zip(by_row, taken(rows, *by_row.values()), strict=True):
            setattr(part, name, some)
        part._without_partitions(rows)
        if part.groups is not None:
            part._number_groups()
        return part

    def _with_choice(self, setting: Setting) -> Self:
        """Return the model itself, or where its bound is automatic one with the chosen bound."""
        if self.eps_bar != AUTO:
            return self
        choice = self.chosen(setting)
        model = self._with_eps_bar(choice.eps_bar)
        model.choice = choice
        return model

    @property
    def _incomparable(self) -> str:
        """Why fits with different bounds cannot be told apart; empty where they can."""
        return ""

    def chosen(self, setting: Setting) -> Choice:
        """Return the bound that "auto" chooses, whatever bound the model has."""
        if self._incomparable:
            raise NotImplementedError(
                f"eps_bar='auto' does not work here: {self._incomparable}. Give a number, and try "
                "others"
            )
        return chosen_bound(self, setting, self.eps_bar_max)

    def stability_of(self, estimate: Estimate) -> Stability:
        """Return a fit compared with one that has a larger `eps_bar`; see `Stability`."""
        return checked_stability(self, estimate)

    def second_step(self, estimate: Estimate) -> Any:
        """Return the results of an efficient second step from the first one of an estimate."""
        model = self._with_eps_bar(estimate.setting.eps_bar)
        second = efficient_estimate(estimate.first or estimate)
        return model._results(second, Inference("sandwich", {}, None))
