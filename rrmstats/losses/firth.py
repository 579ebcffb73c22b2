"""Logistic regression with Firth's penalty, which is finite on separated data."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.losses.label_fits import label_fit
from rrmstats.losses.logistic import LogisticProblem


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
    mass = weights * setting.wnobs(problem.n_obs)
    fit = label_fit(problem, 0.0, np.zeros(problem.n_params), setting, mass)
    return fit.beta, fit.converged
