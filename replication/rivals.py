"""Rivals of robust risk minimization: SEVER for four models, and Huber's regression.

SEVER (Diakonikolas, Kamath, Kane, Li, Steinhardt and Stewart, ICML 2019) fits the model, finds
the direction in which the centered gradients of the losses spread most, removes the rows that lie
farthest along it, and repeats. The settings here are those of its authors' experiments: each of
four rounds removes a share ``eps_bar / 2`` of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray

from rrmstats.core.entropy import Array
from rrmstats.losses import LogisticProblem

__all__ = [
    "filter_round",
    "huber",
    "sever",
    "sever_axis",
    "sever_cov",
    "sever_logit",
    "sever_ols",
]

# Rounds of removal, as in the experiments of SEVER's authors.
ROUNDS = 4
# What rounding may take from a share of rows that is a whole number.
WHOLE = 1e-9


def filter_round(gradients: Array, share: float) -> NDArray[np.bool_]:
    """Return which rows one round of SEVER keeps.

    Parameters
    ----------
    gradients : ndarray, shape (m, k)
        Gradients of the losses of the rows at their fit.
    share : float
        Share of the rows to remove, rounded down to whole rows.

    Returns
    -------
    ndarray of bool, shape (m,)
        False for the rows with the largest squared projections of the centered gradients on
        their first right singular vector.

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import filter_round
    >>> filter_round(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 9.0], [0.0, 1.0]]), 0.25)
    array([ True,  True, False,  True])
    """
    centered = gradients - gradients.mean(axis=0)
    direction = np.linalg.svd(centered, full_matrices=False)[2][0]
    scores = (centered @ direction) ** 2
    kept = np.ones(len(scores), dtype=bool)
    kept[np.argsort(-scores, kind="stable")[: int(share * len(scores) + WHOLE)]] = False
    return kept


def sever(
    gradients: Callable[[NDArray[np.intp]], Array], n: int, eps_bar: float, rounds: int = ROUNDS
) -> NDArray[np.intp]:
    """Return the numbers of the rows that SEVER keeps.

    Parameters
    ----------
    gradients : callable
        Takes the numbers of m rows, and returns the gradients of their losses at the fit to
        them, shape (m, k).
    n : int
        Number of rows.
    eps_bar : float
        Upper bound on the share of bad rows; each round removes half of this share.
    rounds : int, optional
        Number of rounds.

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever
    >>> z = np.array([0.1, -0.2, 0.0, 50.0, 0.2, -0.1, 0.3, -0.3])
    >>> sever(lambda rows: (z[rows] - z[rows].mean())[:, None], len(z), 0.25, rounds=1)
    array([0, 1, 2, 4, 5, 6, 7])
    """
    rows = np.arange(n)
    for _ in range(rounds):
        rows = rows[filter_round(gradients(rows), eps_bar / 2)]
    return rows


def sever_ols(endog: Array, exog: Array, eps_bar: float) -> Array:
    """Return the coefficients of least squares on the rows that SEVER keeps.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Responses.
    exog : ndarray, shape (n, k)
        Design.
    eps_bar : float
        Upper bound on the share of bad rows.


    Returns
    -------
    ndarray, shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever_ols
    >>> x = np.c_[np.ones(20), np.arange(20)]
    >>> y = x @ [1, 2] + 30 * (x[:, 1] == 19)
    >>> sever_ols(y, x, 0.2).round(6)
    array([1., 2.])
    """

    def fit(rows: NDArray[np.intp]) -> Array:
        return np.linalg.lstsq(exog[rows], endog[rows], rcond=None)[0]

    def gradients(rows: NDArray[np.intp]) -> Array:
        return -2.0 * (endog[rows] - exog[rows] @ fit(rows))[:, None] * exog[rows]

    return fit(sever(gradients, len(endog), eps_bar))


def sever_logit(endog: Array, exog: Array, eps_bar: float) -> Array:
    """Return the coefficients of a logistic regression on the rows that SEVER keeps.

    Where a hyperplane separates these rows, only the direction of the coefficients has a meaning.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Labels, 0 and 1.
    exog : ndarray, shape (n, k)
        Design.
    eps_bar : float
        Upper bound on the share of bad rows.


    Returns
    -------
    ndarray, shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever_logit
    >>> x = np.c_[np.ones(40), np.linspace(-2, 2, 40)]
    >>> y = np.where(np.arange(40) % 4 == 0, x[:, 1] < 0, x[:, 1] > 0).astype(float)
    >>> sever_logit(y, x, 0.1).shape
    (2,)
    """

    def problem(rows: NDArray[np.intp]) -> LogisticProblem:
        return LogisticProblem(endog[rows], exog[rows])

    def fit(rows: NDArray[np.intp]) -> Array:
        return problem(rows).weighted_fit(np.full(len(rows), 1.0 / len(rows)))

    rows = sever(lambda rows: problem(rows).gradients(fit(rows)), len(endog), eps_bar)
    return fit(rows)


def sever_axis(data: Array, eps_bar: float) -> Array:
    """Return the first principal axis through the origin of the rows that SEVER keeps.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Rows in space.
    eps_bar : float
        Upper bound on the share of bad rows.


    Returns
    -------
    ndarray, shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever_axis
    >>> z = np.outer(np.arange(-10.0, 10.0), [0.6, 0.8])
    >>> z[3] = [90, -90]
    >>> np.abs(sever_axis(z, 0.2)).round(6)
    array([0.6, 0.8])
    """

    def fit(rows: NDArray[np.intp]) -> Array:
        return np.linalg.eigh(data[rows].T @ data[rows])[1][:, -1]

    def gradients(rows: NDArray[np.intp]) -> Array:
        axis = fit(rows)
        scores = data[rows] @ axis
        return -2.0 * (data[rows] - np.outer(scores, axis)) * scores[:, None]

    return fit(sever(gradients, len(data), eps_bar))


def sever_cov(data: Array, eps_bar: float) -> Array:
    """Return the covariance of the rows that SEVER keeps.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Rows in space.
    eps_bar : float
        Upper bound on the share of bad rows.


    Returns
    -------
    ndarray, shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import sever_cov
    >>> z = np.random.default_rng(0).standard_normal((200, 2)) @ [[1, 0.8], [0, 0.6]]
    >>> z[:5] = [5, -5]
    >>> float(np.cov(z.T)[0, 1].round(1)), float(sever_cov(z, 0.1)[0, 1].round(1))
    (0.2, 0.8)
    """

    def gradients(rows: NDArray[np.intp]) -> Array:
        precision = np.linalg.pinv(np.cov(data[rows].T, bias=True), hermitian=True)
        whitened = (data[rows] - data[rows].mean(axis=0)) @ precision
        by_cov = precision - whitened[:, :, None] * whitened[:, None, :]
        return np.hstack([-2.0 * whitened, by_cov.reshape(len(rows), -1)])

    return np.cov(data[sever(gradients, len(data), eps_bar)].T, bias=True)


def huber(endog: Array, exog: Array) -> Array:
    """Return the coefficients of Huber's regression.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Responses.
    exog : ndarray, shape (n, k)
        Design.


    Returns
    -------
    ndarray, shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from replication.rivals import huber
    >>> x = np.c_[np.ones(20), np.arange(20)]
    >>> y = x @ [1, 2] + np.sin(np.arange(20)) + 100 * (x[:, 1] == 3)
    >>> huber(y, x).round()
    array([1., 2.])
    """
    return sm.RLM(endog, exog, M=sm.robust.norms.HuberT()).fit().params
