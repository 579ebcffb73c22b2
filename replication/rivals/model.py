"""What the models fitted by SEVER share."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

from rrmstats.core.entropy import Array
from replication.rivals.filtering import ROUNDS, rows_left, sever
from rrmstats.models.base import RRMModel


class SeverResults(Protocol):
    """What the results of every fit by SEVER have.

    Attributes
    ----------
    kept : ndarray or Series of bool, shape (n,)
        Whether a row was kept.
    eps_bar : float
    rounds : int
    """

    kept: np.ndarray | pd.Series[bool]
    eps_bar: float
    rounds: int


R = TypeVar("R", bound=SeverResults)


class SeverModel(RRMModel[Any, Any], Generic[R]):
    """Mixin for models fitted by SEVER; it precedes a statsmodels model among the bases.

    A model defines `_gradients` and `_refit`.
    """

    exog: Array

    def _gradients(self, rows: np.ndarray) -> Array:
        """Return the gradients of the losses of some rows at the fit to them, shape (m, k)."""
        raise NotImplementedError

    def _refit(self, kept: np.ndarray) -> R:
        """Return the results of the fit to the kept rows."""
        raise NotImplementedError

    @property
    def _rows_needed(self) -> int:
        """Smallest number of rows that can be fitted."""
        return self.exog.shape[1]

    # SEVER has no option of RRMModel.fit, and results of its own.
    def fit(self, *, rounds: int = ROUNDS) -> R:  # type: ignore[override]
        """Remove rows in rounds, then fit the model to those that are left.

        Parameters
        ----------
        rounds : int, optional
            Rounds of removal.

        Returns
        -------
        results
            Those of the fit to the kept rows, with `kept` (one boolean per row), `eps_bar` and
            `rounds`. The standard errors take the kept rows as given.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> from replication.rivals import SeverOLS
        >>> SeverOLS.from_formula("log_light ~ log_te", stars, eps_bar=0.2).fit().params.shape
        (2,)
        """
        if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 0:
            raise ValueError(f"rounds must be a whole number, 0 or more, got {rounds!r}")
        n = len(self.endog)
        left = rows_left(n, self._bound, rounds)
        if left < self._rows_needed:
            raise ValueError(
                f"eps_bar={self._bound:g} leaves {left} of {n} rows after {rounds} rounds, but "
                f"at least {self._rows_needed} are needed; lower eps_bar"
            )
        kept = sever(self._gradients, n, self._bound, int(rounds))
        results = self._refit(kept)
        labels = self.data.row_labels
        results.kept = kept if labels is None else pd.Series(kept, index=labels, name="kept")
        results.eps_bar, results.rounds = self._bound, int(rounds)
        return results
