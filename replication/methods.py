"""The estimates of one sample by each method: the classical one, the rivals and RRM."""

from __future__ import annotations

from typing import Any

import numpy as np
import statsmodels.api as sm
from statsmodels.multivariate.pca import PCA

from replication.rivals import huber, sever_axis, sever_cov, sever_logit, sever_ols
from replication.samples import Regression
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.core.entropy import Array

# The paper's algorithm step for step.
ALGORITHM_1: dict[str, Any] = {"n_starts": 0, "accelerate": False}

ERM, HUBER, SEVER = "ERM", "Huber", "SEVER"
PAPER, GLOBAL, TWO_STEPS = "RRM (Algorithm 1)", "RRM (global)", "RRM (two steps)"
RIDGE = "RRM (global, l2)"
METHODS = (ERM, HUBER, SEVER, PAPER, GLOBAL, TWO_STEPS, RIDGE)

#: An estimate for each method.
Estimates = dict[str, Array]


def linear_fits(data: Regression, eps_bar: float = 0.4) -> Estimates:
    """Return the coefficients of a linear regression by each method.

    Parameters
    ----------
    data : tuple of ndarray
        endog, shape (n,), and exog, shape (n, k).
    eps_bar : float, optional
        Upper bound on the share of bad rows.

    Returns
    -------
    dict of ndarray, shape (k,)
    """
    model = RRMOLS(*data, eps_bar=eps_bar)
    first, second = model.fit(steps=1), model.fit()
    return {
        ERM: sm.OLS(*data).fit().params,
        HUBER: huber(*data),
        SEVER: sever_ols(*data, eps_bar),
        PAPER: model.fit(**ALGORITHM_1).params,
        GLOBAL: first.params,
        TWO_STEPS: second.params,
    }


def logit_fits(data: Regression, eps_bar: float = 0.3) -> Estimates:
    """Return the coefficients of a logistic regression by each method.

    Parameters
    ----------
    data : tuple of ndarray
        Labels, shape (n,), and exog, shape (n, k).
    eps_bar : float, optional
        Upper bound on the share of bad rows.

    Returns
    -------
    dict of ndarray, shape (k,)
    """
    model = RRMLogit(*data, eps_bar=eps_bar)
    first, second = model.fit(steps=1), model.fit()
    return {
        ERM: sm.Logit(*data).fit(disp=0).params,
        SEVER: sever_logit(*data, eps_bar),
        PAPER: model.fit(**ALGORITHM_1).raw_params,
        GLOBAL: first.params,
        TWO_STEPS: second.params,
    }


def pca_fits(data: Array, eps_bar: float = 0.4) -> Estimates:
    """Return the first principal axis through the origin by each method.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Observations.
    eps_bar : float, optional
        Upper bound on the share of bad rows.

    Returns
    -------
    dict of ndarray, shape (d,)
    """
    model = RRMPCA(data, 1, eps_bar=eps_bar, demean=False)
    first, second = model.fit(steps=1), model.fit()
    axes = {
        ERM: PCA(data, ncomp=1, standardize=False, demean=False, normalize=False).loadings,
        SEVER: sever_axis(data, eps_bar),
        PAPER: model.fit(**ALGORITHM_1).loadings,
        GLOBAL: first.loadings,
        TWO_STEPS: second.loadings,
    }
    return {name: np.ravel(axis) for name, axis in axes.items()}


def cov_fits(data: Array, eps_bar: float = 0.3) -> Estimates:
    """Return the covariance by each method.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Observations.
    eps_bar : float, optional
        Upper bound on the share of bad rows.

    Returns
    -------
    dict of ndarray, shape (d, d)
    """
    model = RRMCov(data, eps_bar=eps_bar)
    first, second = model.fit(steps=1), model.fit()
    found = {
        ERM: np.cov(data.T, bias=True),
        SEVER: sever_cov(data, eps_bar),
        PAPER: model.fit(**ALGORITHM_1).raw_cov,
        GLOBAL: first.cov,
        TWO_STEPS: second.cov,
    }
    return {name: np.asarray(cov) for name, cov in found.items()}
