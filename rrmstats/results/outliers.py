"""Residuals in standard deviations, and tests of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t
from statsmodels.stats.multitest import multipletests

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array


def standardized(resid: Array, variance: float | Array) -> Array:
    """Return residuals in standard deviations; at an exact fit zero or infinite."""
    return row_map(_standardized, resid, variance)


def _standardized(resid: Array, variance: float | Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(resid == 0, 0.0, resid / np.sqrt(variance))


def outlier_frame(
    values: Array, free: float, method: str, alpha: float, index: pd.Index | None
) -> pd.DataFrame:
    """Return t tests of studentized residuals, with p-values corrected for their number.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Studentized residuals.
    free : float
        Degrees of freedom.
    method, alpha
        As `statsmodels.stats.multitest.multipletests` takes them.
    index : pandas.Index or None
        Labels of the rows.
    """
    p = 2 * t.sf(np.abs(values), free)
    corrected = multipletests(p, alpha=alpha, method=method)[1]
    return pd.DataFrame(
        {"student_resid": values, "unadj_p": p, f"{method}(p)": corrected}, index=index
    )
