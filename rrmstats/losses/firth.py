"""Logistic regression with Firth's penalty, which is finite on separated data."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.logistic import LogisticProblem

# Size of the last step in standard errors, in units of the tolerance.
STEP_SIZE = 100.0


def firth_fit(problem: LogisticProblem, weights: Array, setting: Setting) -> tuple[Array, bool]:
    """Return the weighted maximum likelihood fit with Firth's penalty, shape (k,).

    The penalty, half the log-determinant of the information, keeps it finite on separated data
    and removes its bias of first order.

    Parameters
    ----------
    problem : LogisticProblem
        Labels and design.
    weights : ndarray, shape (n,)
        Weights of the observations; they sum to at most one.
    setting : Setting
        Frequency weights, tolerance and number of steps.

    Returns
    -------
    theta : ndarray, shape (k,)
    converged : bool
    """
    exog, endog = problem.exog, problem.endog
    mass = weights * setting.wnobs(problem.n_obs)
    plain = LogisticProblem(endog, exog)

    def penalized(theta: Array) -> tuple[float, Array]:
        information = plain.hessian(theta, mass)
        sign, log_det = np.linalg.slogdet(information)
        value = float(mass @ plain.losses(theta)) - 0.5 * float(log_det)
        return (value if sign > 0 else np.inf), information

    theta = np.zeros(problem.n_params)
    value, information = penalized(theta)
    for _ in range(setting.maxiter):
        p = expit(exog @ theta)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = mass * p * (1 - p) * np.einsum("ni,ni->n", exog @ inverse, exog)
        step = inverse @ ((mass * (endog - p) + leverage * (0.5 - p)) @ exog)
        if step @ information @ step <= (STEP_SIZE * setting.tol) ** 2:
            return theta, True
        for halving in range(20):
            trial = theta + 0.5**halving * step
            new, new_information = penalized(trial)
            if new <= value:
                break
        else:  # rounding alone keeps the value from falling
            return theta, True
        theta, value, information = trial, new, new_information
    return theta, False
