"""What SEVER's models of several variables share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.core.entropy import Array
from replication.rivals.model import R, SeverModel
from rrmstats.models.multivariate import RRMMultivariate


class SeverMultivariate(SeverModel[R], RRMMultivariate[Any, Any]):
    """A model of the joint distribution of several variables, fitted by SEVER."""

    @property
    def _rows_needed(self) -> int:
        return self.endog.shape[1] + 1


class SeverMultivariateResults:
    """Results of a model of several variables, fitted by SEVER.

    Attributes
    ----------
    params : ndarray or Series
        The parameters, named where the data were.
    kept : ndarray or Series of bool, shape (n,)
        Whether a row was kept.
    nobs : float
        Number of rows kept.
    eps_bar : float
    rounds : int
    """

    kept: np.ndarray | pd.Series[bool]
    eps_bar: float
    rounds: int
    _title: str

    def __init__(self, model: SeverMultivariate[Any], nobs: int, params: Array) -> None:
        self.model, self.nobs = model, float(nobs)
        names = model.data.param_names
        self.params = params if model.data.row_labels is None else pd.Series(params, index=names)

    def _tables(self) -> list[SimpleTable]:
        """Return the estimates as tables."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """Return the fit as statsmodels' tables.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        cells = [
            [f"{len(self.kept)}"],
            [f"{self.nobs:g}"],
            [f"{self.eps_bar:g}"],
            [f"{self.rounds}"],
        ]
        rows = ["No. Observations:", "Kept:", "eps_bar:", "Rounds:"]
        table = Summary()
        table.tables = [SimpleTable(cells, None, rows, self._title, txt_fmt=fmt_base)]
        table.tables.extend(self._tables())
        return table


def moments(data: Array, demean: bool = True) -> tuple[Array, Array]:
    """Return the mean (d,), or zero, and the second moment around it (d, d)."""
    mean = data.mean(axis=0) * demean
    centered = data - mean
    return mean, centered.T @ centered / len(data)
