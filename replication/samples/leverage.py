"""Linear regressions with bad leverage points, which come first."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from replication.samples.parts import Regression, count_bad, normal_design


def leverage_shift(
    rng: np.random.Generator,
    n: int = 100,
    params: ArrayLike = (1.0, 1.0, 1.0, 1.0),
    share: float = 0.2,
    sigma: float = 0.5,
) -> Regression:
    """Return a regression whose first rows have every predictor shifted by 10 and y near -20.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first; ``np.ones(d)`` for d columns.
    share : float, optional
        Share of bad leverage points.
    sigma : float, optional
        Standard deviation of the noise of the good rows; that of the bad ones is 1.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import leverage_shift
    >>> endog, exog = leverage_shift(np.random.default_rng(0), 500, np.ones(20), 0.15)
    >>> exog.shape, int(np.flatnonzero(exog[:, 1:].mean(axis=1) > 5).max())
    ((500, 20), 74)
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    endog = exog @ params + sigma * rng.standard_normal(n)
    bad = slice(count_bad(n, share))
    exog[bad, 1:] += 10
    endog[bad] = -20 + rng.standard_normal(len(endog[bad]))
    return endog, exog


def gradient_attack(
    rng: np.random.Generator, n: int = 500, d: int = 20, share: float = 0.15
) -> Regression:
    """Return a regression whose bad rows cancel the gradient of the good ones at zero.

    The bad rows are one point: its predictors lie along ``sum_i y_i x_i`` of the good rows, and
    its response is -1. Least squares then finds coefficients of zero; this is the attack of
    SEVER's authors. There is no constant; all true coefficients are one and the noise is
    standard normal.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    d : int, optional
        Number of predictors.
    share : float, optional
        Share of bad rows.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, d)

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from replication.samples import gradient_attack
    >>> endog, exog = gradient_attack(np.random.default_rng(0))
    >>> bool(np.abs(sm.OLS(endog, exog).fit().params).max() < 1e-10)
    True
    """
    exog = rng.standard_normal((n, d))
    endog = exog.sum(axis=1) + rng.standard_normal(n)
    bad = count_bad(n, share)
    if bad:
        exog[:bad] = endog[bad:] @ exog[bad:] / bad
        endog[:bad] = -1.0
    return endog, exog


def factor_leverage(
    rng: np.random.Generator, n: int = 200, n_levels: int = 4, share: float = 0.1
) -> pd.DataFrame:
    """Return data for ``y ~ x + C(g)`` whose first rows are bad leverage points in x.

    The slope of x is 1, the level j of g = 0, 1, ... has the mean j, and the noise has standard
    deviation 0.5. Bad rows have x shifted by 10 and y near -20, whatever their level.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    n_levels : int, optional
        Number of levels of the factor, "a", "b", ..., at most 26; they alternate from row to
        row.
    share : float, optional
        Share of bad leverage points.

    Returns
    -------
    DataFrame
        Columns y, x and g, n rows.

    Examples
    --------
    >>> import numpy as np
    >>> import statsmodels.formula.api as smf
    >>> from replication.samples import factor_leverage
    >>> data = factor_leverage(np.random.default_rng(0))
    >>> [round(value) for value in smf.ols("y ~ x + C(g)", data[20:]).fit().params]
    [0, 1, 2, 3, 1]
    """
    level = np.arange(n) % n_levels
    endog, exog = leverage_shift(rng, n, (0.0, 1.0), share=0.0)
    x, y = exog[:, 1], endog + level
    bad = slice(count_bad(n, share))
    x[bad] += 10
    y[bad] = -20 + rng.standard_normal(len(y[bad]))
    return pd.DataFrame({"y": y, "x": x, "g": np.array([*ascii_lowercase])[level]})
