"""Whether good rows bend away from a linear fit."""

from __future__ import annotations

import numpy as np
from scipy.stats import f as f_distribution

from rrmstats.core.entropy import Array

# Part of a square that must lie outside of what the other columns span, relative to its length.
OUTSIDE = 1e-6


def reset_pvalue(resid: Array, exog: Array, weights: Array, free: float) -> float:
    """Return the p-value of Ramsey's RESET test with the squares of the predictors.

    An F test that the squares explain nothing of the residuals, each row with its weight. One
    where there is no square that the predictors do not span.

    Parameters
    ----------
    resid : ndarray, shape (n,)
        Residuals of the fit under the weights.
    exog : ndarray, shape (n, k)
    weights : ndarray, shape (n,)
    free : float
        Degrees of freedom of the residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.curvature import reset_pvalue
    >>> x = np.linspace(-1, 1, 40)
    >>> exog = np.c_[np.ones(40), x]
    >>> resid = x**2 - np.mean(x**2) + 0.1 * np.sin(50 * x)
    >>> reset_pvalue(resid, exog, np.ones(40), 38.0) < 1e-6
    True
    """
    root = np.sqrt(weights)[:, None]
    basis = np.linalg.qr(root * exog)[0]
    spread = exog.std(axis=0)
    varying = exog[:, spread > 0] / spread[spread > 0]
    squares = root * (varying - varying.mean(axis=0)) ** 2
    left = squares - basis @ (basis.T @ squares)
    used = np.linalg.norm(left, axis=0) > OUTSIDE * np.linalg.norm(squares, axis=0)
    if not used.any():
        return 1.0
    unit = left[:, used] / np.linalg.norm(left[:, used], axis=0)
    axes, values, _ = np.linalg.svd(unit, full_matrices=False)
    axes = axes[:, values > OUTSIDE]
    target = root[:, 0] * resid
    explained, count = float(((axes.T @ target) ** 2).sum()), axes.shape[1]
    rest, freedom = float(target @ target) - explained, free - count
    if freedom < 1 or rest <= 0:
        return 1.0
    return float(f_distribution.sf(explained / count / (rest / freedom), count, freedom))
