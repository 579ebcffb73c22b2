"""Standard errors: the influence of each observation on parameters and lambda together.

The weights are estimated with the parameters. The estimating equations of theta, beta = 1/lambda
and the normalising constant are therefore stacked; solved for the last two, what is left is the
score of each observation and the Hessian of the concentrated risk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.problem import SmoothProblem


class Influence(NamedTuple):
    """Influence functions: an estimate moves by their mean over the observations.

    Attributes
    ----------
    theta : ndarray, shape (n, k)
        Of the local coordinates of the parameters.
    log_lambda : ndarray, shape (n,)
        Of the logarithm of lambda.
    """

    theta: Array
    log_lambda: Array


def relative_weights(weights: Array, prior: Array | None) -> Array:
    """Return weights in units of the prior: n times the weights where it is uniform."""
    if prior is None:
        return weights * len(weights)
    return np.divide(weights, prior, out=np.zeros_like(weights), where=prior > 0)


def temperature_scores(losses: Array, weights: Array, lambda_: float, relative: Array) -> Array:
    """Return how ln(beta) moves with the mass of each observation at fixed theta, shape (n,).

    The derivative of the constraint on the divergence.
    """
    finite = np.where(weights > 0, losses, 0.0)
    spread = finite - weights @ finite
    variance = weights @ spread**2
    return (relative * spread * lambda_ + lambda_**2 * (relative - 1.0)) / variance


def influence(
    problem: SmoothProblem,
    theta: Array,
    losses: Array,
    weights: Array,
    lambda_: float,
    prior: Array | None = None,
) -> Influence:
    r"""Return the influence functions at a minimum of the risk.

    With :math:`\omega_i` the weight relative to the prior, :math:`c = \mathrm{Cov}(\ell,
    \nabla\ell)` and :math:`b_i` the score of ln(beta), an observation's score is
    :math:`\omega_i \nabla\ell_i - (c / \lambda) b_i`, and theta moves by minus the inverse of
    the Hessian of the concentrated risk times that.

    Parameters
    ----------
    problem : SmoothProblem
    theta : ndarray, shape (k,)
        Parameters of least risk.
    losses, weights : ndarray, shape (n,)
        Losses and weights there.
    lambda_ : float
        Temperature of the weights.
    prior : ndarray, shape (n,), optional
        Prior weights, summing to one.

    Returns
    -------
    Influence
    """
    n = len(losses)
    relative = relative_weights(weights, prior)
    _, hessian, drift = (
        part[0]
        for part in problem.concentrated(
            theta[None], losses[None], weights[None], np.array([lambda_])
        )
    )
    scores = problem.gradients(theta)
    scores *= relative[:, None]
    scores[relative == 0] = 0.0
    log_beta = np.zeros(n)
    if 0 < lambda_ < np.inf:
        log_beta = temperature_scores(losses, weights, lambda_, relative)
        finite = np.where(weights > 0, losses, 0.0)
        variance = weights @ (finite - weights @ finite) ** 2
        scores -= np.outer(log_beta, drift * (variance / lambda_))
    moved = -scores @ np.linalg.pinv(hessian, hermitian=True)
    return Influence(moved, moved @ drift - log_beta)


def covariance(moved: Array, prior: Array | None, total: float, groups: Array | None = None) -> Array:
    """Return the covariance of an estimate from its influence functions.

    Parameters
    ----------
    moved : ndarray, shape (n, k)
        Influence functions.
    prior : ndarray, shape (n,), or None
        Prior weights, summing to one; None where they are equal.
    total : float
        Number of observations that they stand for.
    groups : ndarray of int, shape (n,), optional
        Clusters, numbered from zero; observations of one cluster may depend on each other.

    Returns
    -------
    ndarray, shape (k, k)
    """
    n = len(moved)
    if groups is None:
        if prior is None:
            return moved.T @ moved / n**2
        return moved.T @ (prior[:, None] * moved) / total
    share = moved / n if prior is None else prior[:, None] * moved
    count = int(groups.max()) + 1
    sums = np.array([np.bincount(groups, column, count) for column in share.T]).T
    return sums.T @ sums * (count / (count - 1))
