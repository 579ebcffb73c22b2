"""Residuals in standard deviations, and tests of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

from rrmstats.core.consistency import efficient_ratio
from rrmstats.core.entropy import Array

# Efficiency of the weights under which the noise is measured a second time.
NOISE_EFFICIENCY = 0.95


def standardized(resid: Array, variance: float) -> Array:
    """Return residuals in standard deviations; at an exact fit zero or infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(resid == 0, 0.0, resid / np.sqrt(variance)))


def refined_variance(resid: Array, scale: float, base: Array | None, inflation: float) -> float:
    """Return the variance of the noise of the rows that are not far out.

    The scale of the first step counts outliers as part of the noise in so far as eps_bar exceeds
    their fraction. Under efficient weights far outliers have none, and what the weights take from
    the Gaussian noise is known: they add 2 / lambda to its precision.

    Parameters
    ----------
    resid : ndarray, shape (n,)
    scale : float
        Robust variance of the residuals.
    base : ndarray, shape (n,), or None
        Frequency weights that sum to one; None where they are equal.
    inflation : float
        By how much fitted residuals fall short.
    """
    if scale == 0:
        return 0.0
    lambda_ = 2 * scale / (1 / efficient_ratio(NOISE_EFFICIENCY) - 1)
    weights = np.exp(-(resid**2) / lambda_)
    if base is not None:
        weights = weights * base
    variance = inflation * float(weights @ resid**2 / weights.sum())
    return variance / max(1 - 2 * variance / lambda_, np.finfo(float).eps)


def outlier_frame(
    values: Array, method: str, alpha: float, index: pd.Index | None
) -> pd.DataFrame:
    """Return a test of every standardized residual, with p-values corrected for their number."""
    p = 2 * norm.sf(np.abs(values))
    corrected = multipletests(p, alpha=alpha, method=method)[1]
    return pd.DataFrame(
        {"student_resid": values, "unadj_p": p, f"{method}(p)": corrected}, index=index
    )
