"""What a fit tells of each row, as columns beside the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def beside_rows(frame: pd.DataFrame, fit: Any) -> pd.DataFrame:
    """Return the data with the weight, the flag and the residual of each row beside it.

    Parameters
    ----------
    frame : DataFrame
        All rows, in their order.
    fit : results of any model
        Rows that were dropped for missing values get empty cells.

    Returns
    -------
    DataFrame
        Columns weight, prob_bad (in two steps), outlier, residual (of regressions, in units of
        the response) and distance (standardized). Where the data have a column of one of these
        names, all of them begin with ``rrm_``.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.cli.beside import beside_rows
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> fit = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> beside_rows(stars, fit).columns.tolist()
    ['log_te', 'log_light', 'weight', 'prob_bad', 'outlier', 'residual', 'distance']
    """
    columns = row_columns(fit)
    while not set(columns).isdisjoint(frame.columns):
        columns = columns.add_prefix("rrm_")
    return frame.join(columns)


def row_columns(fit: Any) -> pd.DataFrame:
    """Return what a fit tells of its rows, by their numbers."""
    table = fit.weight_table(None).sort_index()
    columns = {"weight": fit.weights}
    if hasattr(fit, "prob_bad"):
        columns["prob_bad"] = fit.prob_bad
    columns |= {"outlier": fit.outliers().astype("boolean")}
    residuals = response_residuals(fit)
    if residuals is not None:
        columns["residual"] = pd.Series(np.asarray(residuals), fit.weights.index)
    columns["distance"] = table["distance"]
    return pd.DataFrame(columns)


def response_residuals(fit: Any) -> Any:
    """Return responses less their fitted means; None where there is no response."""
    for name in ("resid_response", "resid"):
        if hasattr(fit, name):
            return getattr(fit, name)
    return None
