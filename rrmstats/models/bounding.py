"""What a model does with its bound: another one, the automatic choice, the check."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rrmstats.core.block_array import taken
from rrmstats.core.choice import Choice, chosen
from rrmstats.core.entropy import check_eps_bar
from rrmstats.core.estimate import Estimate
from rrmstats.core.setting import Setting
from rrmstats.models.bounds import AUTO, robust_fit

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
    endog: Any
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

    def _with_choice(self, setting: Setting) -> tuple[Self, Estimate | None]:
        """Return the model, with the bound chosen where it is automatic, and what chose it."""
        if self.eps_bar != AUTO:
            return self, None
        robust = self._robust_fit(setting)
        choice = chosen(robust, self.eps_bar_max)
        model = self._with_eps_bar(choice.eps_bar)
        model.choice = choice
        return model, robust if robust.problem.n_obs == len(self.endog) else None

    @property
    def _incomparable(self) -> str:
        """Why fits with different bounds cannot be told apart; empty where they can."""
        return ""

    def _robust_fit(self, setting: Setting) -> Estimate:
        """Return the second step at the largest bound; see `robust_fit`."""
        if self._incomparable:
            raise NotImplementedError(
                f"eps_bar='auto' does not work here: {self._incomparable}. Give a number, and try "
                "others"
            )
        return robust_fit(self, setting)

    def chosen(self, setting: Setting) -> Choice:
        """Return the bound that "auto" chooses, whatever bound the model has."""
        return chosen(self._robust_fit(setting), self.eps_bar_max)
