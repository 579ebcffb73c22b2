"""Linear regressions whose noise is not what least squares expects; predictors are normal."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from replication.samples.parts import Regression, count_bad, normal_design


def one_sided_outliers(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (1.0, 1.0, 1.0),
    share: float = 0.2,
    shift: float = 20.0,
) -> Regression:
    """Return a regression with standard normal noise whose first responses are shifted up.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    share : float, optional
        Share of shifted rows; 0 is clean data.
    shift : float, optional
        Size of the shift, in standard deviations of the noise.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import one_sided_outliers
    >>> endog, exog = one_sided_outliers(np.random.default_rng(0), 100, [0, 1], 0.1, 10)
    >>> np.flatnonzero(endog - exog[:, 1] > 5).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    endog = exog @ params + rng.standard_normal(n)
    endog[: count_bad(n, share)] += shift
    return endog, exog


def heavy_tailed_rows(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (1.0, 1.0, 1.0),
    share: float = 0.1,
    df: float = 1.5,
    scale: float = 3.0,
) -> Regression:
    """Return a regression with standard normal noise, but for Student's t in the first rows.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    share : float, optional
        Share of rows with heavy tails.
    df, scale : float, optional
        Degrees of freedom and scale of their noise.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import heavy_tailed_rows
    >>> endog, exog = heavy_tailed_rows(np.random.default_rng(0), 100)
    >>> noise = np.abs(endog - exog.sum(axis=1))
    >>> bool(noise[:10].max() > 4 > noise[10:].max())
    True
    """
    params = np.asarray(params, float)
    endog, exog = one_sided_outliers(rng, n, params, share=0.0)
    bad = slice(count_bad(n, share))
    endog[bad] = exog[bad] @ params + scale * rng.standard_t(df, len(endog[bad]))
    return endog, exog


def changing_noise(
    rng: np.random.Generator, n: int = 200, params: ArrayLike = (1.0, 1.0, 1.0)
) -> Regression:
    """Return a clean regression whose noise has standard deviation ``0.3 + |x1|``.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first, of x1 second.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import changing_noise
    >>> endog, exog = changing_noise(np.random.default_rng(0), 100_000)
    >>> noise, x1 = endog - exog.sum(axis=1), np.abs(exog[:, 1])
    >>> near, far = x1 < 0.1, (1.9 < x1) & (x1 < 2.1)
    >>> print(f"{noise[near].std():.2f} {noise[far].std():.2f}")
    0.35 2.32
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    spread = 0.3 + np.abs(exog[:, 1])
    return exog @ params + spread * rng.standard_normal(n), exog


def skewed_noise(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (1.0, 1.0, 1.0),
    shape: float = 1.0,
) -> Regression:
    """Return a clean regression whose noise is gamma distributed, with mean 0 and variance 1.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    shape : float, optional
        Shape of the gamma distribution; the skewness is ``2 / sqrt(shape)``. 1 is the
        exponential distribution.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import skewed_noise
    >>> endog, exog = skewed_noise(np.random.default_rng(0))
    >>> noise = endog - exog.sum(axis=1)
    >>> bool(-1 <= noise.min() and noise.max() > 3)
    True
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    noise = (rng.gamma(shape, size=n) - shape) / np.sqrt(shape)
    return exog @ params + noise, exog


def grouped_noise(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (1.0, 1.0, 1.0),
    size: int = 5,
) -> Regression:
    """Return a clean regression whose rows come in groups with noise in common.

    Half of the variance of the noise, and the first predictor, are the same within a group.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    size : int, optional
        Rows of a group; the groups follow each other.

    Returns
    -------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import grouped_noise
    >>> endog, exog = grouped_noise(np.random.default_rng(0), 10)
    >>> bool((exog[:5, 1] == exog[0, 1]).all())
    True
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    groups = np.arange(n) // size
    exog[:, 1] = exog[groups * size, 1]
    noise = rng.standard_normal(groups[-1] + 1)[groups] + rng.standard_normal(n)
    return exog @ params + noise / np.sqrt(2), exog
