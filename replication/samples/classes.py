"""Labels that follow a logistic regression, clean or with bad ones first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from replication.samples.parts import Regression, count_bad, normal_design


def logistic_labels(
    rng: np.random.Generator, n: int = 200, params: ArrayLike = (0.0, 1.0)
) -> Regression:
    """Return clean labels with normal predictors.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.

    Returns
    -------
    endog : ndarray, shape (n,)
        Zeros and ones.
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import logistic_labels
    >>> endog, exog = logistic_labels(np.random.default_rng(0), 1000, (0, 2))
    >>> print(f"{endog[exog[:, 1] > 1].mean():.1f} {endog[exog[:, 1] < -1].mean():.1f}")
    1.0 0.1
    """
    params = np.asarray(params, float)
    exog = normal_design(rng, n, len(params))
    return (rng.random(n) < expit(exog @ params)).astype(float), exog


def random_flips(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (0.0, 1.0),
    share: float = 0.05,
) -> Regression:
    """Return labels of which the first are flipped, wherever they are.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    share : float, optional
        Share of flipped labels.

    Returns
    -------
    endog : ndarray, shape (n,)
        Zeros and ones.
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import logistic_labels, random_flips
    >>> clean, _ = logistic_labels(np.random.default_rng(0), 100)
    >>> flipped, _ = random_flips(np.random.default_rng(0), 100)
    >>> np.flatnonzero(clean != flipped).tolist()
    [0, 1, 2, 3, 4]
    """
    endog, exog = logistic_labels(rng, n, params)
    bad = slice(count_bad(n, share))
    endog[bad] = 1 - endog[bad]
    return endog, exog


def extreme_flips(
    rng: np.random.Generator,
    n: int = 200,
    params: ArrayLike = (0.0, 1.0),
    share: float = 0.05,
) -> Regression:
    """Return labels that are the improbable ones where the linear predictor is most extreme.

    Rows are sorted by the absolute value of the linear predictor, the most extreme first.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int, optional
        Number of rows.
    params : array_like, shape (k,), optional
        Coefficients, that of the constant first.
    share : float, optional
        Share of wrong labels; they are the first.

    Returns
    -------
    endog : ndarray, shape (n,)
        Zeros and ones.
    exog : ndarray, shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.samples import extreme_flips
    >>> endog, exog = extreme_flips(np.random.default_rng(0), 100)
    >>> exog[:5, 1].round(1), endog[:5]
    (array([-2.3, -2.2,  2. ,  2. ,  1.8]), array([1., 1., 0., 0., 0.]))
    """
    params = np.asarray(params, float)
    endog, exog = logistic_labels(rng, n, params)
    order = np.argsort(-np.abs(exog @ params), kind="stable")
    endog, exog = endog[order], exog[order]
    bad = slice(count_bad(n, share))
    endog[bad] = exog[bad] @ params < 0
    return endog, exog
