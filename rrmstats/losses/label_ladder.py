"""The ladder of logistic regression: from the first step to Firth's maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from rrmstats.core.entropy import Array
from rrmstats.losses.logistic import LogisticProblem


def score_weights(eta: Array, gamma: float) -> Array:
    r"""Return the weights a of the rows in the expected scores of a fit, shape (n,).

    Under the model at linear predictors `eta`, the score of a fit has derivative
    :math:`-\sum a_i x_i x_i'` in beta, and those of two fits have covariance
    :math:`\sum a_i b_i x_i x_i' / (p_i (1 - p_i))`, where

    .. math:: a = (p (1 - p))^{1 + \gamma} S^{1 / (1 + \gamma) - 2},
              \quad S = p^{1 + \gamma} + (1 - p)^{1 + \gamma}.
    """
    power, size = 1.0 + gamma, np.abs(eta)
    tilted = np.exp(-power * size)
    return tilted * (1.0 + tilted) ** (1.0 / power - 2.0) / (1.0 + np.exp(-size))
