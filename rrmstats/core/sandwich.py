"""Standard errors: the influence of each observation on parameters and lambda together.

The weights are estimated with the parameters. The estimating equations of theta, beta = 1/lambda
and the normalizing constant are therefore stacked; solved for the last two, what is left is the
score of each observation and the Hessian of the concentrated risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.problem import SmoothProblem, concentrated_slopes, tilted_part


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


def relative_weights(weights: Array, base: Array | None) -> Array:
    """Return weights in units of those of largest entropy: n times the weights without `base`."""
    if base is None:
        return weights * len(weights)
    return row_map(_ratio, weights, base)


def _ratio(weights: Array, base: Array) -> Array:
    return np.divide(weights, base, out=np.zeros_like(weights), where=base > 0)


def minimum_influence(
    problem: SmoothProblem,
    theta: Array,
    losses: Array,
    weights: Array,
    lambda_: float,
    base: Array | None = None,
) -> Influence:
    r"""Return the influence functions at a minimum of the risk.

    Theta moves by minus the inverse of the Hessian of the concentrated risk times the scores. With
    :math:`\omega_i` the relative weight, :math:`c = \mathrm{Cov}(\ell, \nabla\ell)` and
    :math:`b_i` the score of ln(beta), the derivative of the constraint on the divergence at fixed
    theta, the score of theta is :math:`\omega_i \nabla\ell_i - (c / \lambda) b_i`.

    Parameters
    ----------
    problem : SmoothProblem
    theta : ndarray, shape (k,)
        Parameters of least risk.
    losses, weights : ndarray, shape (n,)
        Losses and weights there.
    lambda_ : float
        Temperature of the weights.
    base : ndarray, shape (n,), optional
        Frequency weights, summing to one; None where they are equal.

    Returns
    -------
    Influence
        Expressions where the rows lie in blocks.
    """
    finite = np.where(weights > 0, losses, 0.0)
    spread = finite - weights @ finite
    hessian, drift = _curvature(problem, theta, spread, weights, lambda_)
    gradients = np.where((weights > 0)[:, None], problem.gradients(theta), 0.0)
    relative = relative_weights(weights, base)
    found, log_beta = relative[:, None] * gradients, 0.0 * weights
    if 0 < lambda_ < np.inf:
        cross, variance = row_sums(_moments, weights, spread / lambda_, gradients)
        log_beta = (relative * (spread / lambda_) + relative - 1.0) / variance
        found = found - log_beta[:, None] * cross
    by_theta = found @ -np.linalg.pinv(hessian, hermitian=True)
    return Influence(by_theta, by_theta @ drift - log_beta)


def _curvature(
    problem: SmoothProblem, theta: Array, spread: Array, weights: Array, lambda_: float
) -> tuple[Array, Array]:
    """Return the Hessian of the concentrated risk (k, k) and the gradient of ln(lambda) (k,)."""
    if problem.blocks is None:
        here = theta[None], spread[None], weights[None], np.array([lambda_])
        _, (hessian,), (drift,) = problem.concentrated(*here)
        return hessian, drift
    beta = 1 / lambda_ if 0 < lambda_ < np.inf else 0.0
    kernel = partial(tilted_part, problem.with_rows, theta, beta)
    sums = row_sums(kernel, spread, weights, *problem.row_arrays)
    variance = np.array([weights @ spread**2])
    gradient, cross, curvature = (each[None] for each in sums)
    _, (hessian,), (drift,) = concentrated_slopes(
        gradient, cross, curvature, variance, np.array([beta])
    )
    return hessian, drift


def _moments(weights: Array, spread: Array, gradients: Array) -> tuple[Array, Array]:
    weighted = weights * spread
    return weighted @ gradients, weighted @ spread


def wald_pvalue(difference: Array, variance: Array) -> float:
    """Return the p-value of Wald's test that a difference is chance.

    Parameters
    ----------
    difference : ndarray, shape (k,)
    variance : ndarray, shape (k, k)
        Its covariance, of any rank.

    Returns
    -------
    float
        NaN where the covariance is not known.
    """
    if not np.isfinite(variance).all():
        return np.nan
    statistic = difference @ np.linalg.pinv(variance, hermitian=True) @ difference
    return float(chi2.sf(statistic, np.linalg.matrix_rank(variance, hermitian=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Which observations may depend on each other; by default none.

    Attributes
    ----------
    groups : ndarray of int, shape (n,) or (n, 2), or None
        Clusters, numbered from zero: observations of one cluster may. With two columns those that
        share one of two clusters.
    maxlags : int or None
        Rows in the order of time: those at most this many apart may.
    """

    groups: np.ndarray | None = None
    maxlags: int | None = None

    @property
    def clusters(self) -> list[np.ndarray]:
        """The clusters: none, one for each observation, or two."""
        return [] if self.groups is None else list(self.groups.reshape(len(self.groups), -1).T)

    @property
    def none(self) -> bool:
        """Whether all observations are independent."""
        return self.groups is None and self.maxlags is None


def influence_covariance(
    influence: Array,
    base: Array | None,
    wnobs: float,
    dependence: Dependence | None = None,
) -> Array:
    """Return the covariance of an estimate from its influence functions.

    Parameters
    ----------
    influence : ndarray, shape (n, k)
        Influence functions.
    base : ndarray, shape (n,), or None
        Frequency weights, summing to one; None where they are equal.
    wnobs : float
        Number of observations that they stand for.
    dependence : Dependence, optional
        Which observations may depend on each other.

    Returns
    -------
    ndarray, shape (k, k)
    """
    n = len(influence)
    if dependence is None or dependence.none:
        if base is None:
            return influence.T @ influence / n**2
        return influence.T @ (base[:, None] * influence) / wnobs
    per_row = influence / n if base is None else base[:, None] * influence
    if dependence.groups is not None:
        return clustered_square(per_row, dependence.clusters)
    return lagged_square(per_row, dependence.maxlags or 0)


def clustered_square(moves: Array, clusters: Sequence[np.ndarray]) -> Array:
    """Return the square of sums over clusters, times G / (G - 1) for G of them, shape (k, k).

    Of two clusters the squares of both less that over their intersections, and G of the fewer.
    """
    counts = [int(groups.max()) + 1 for groups in clusters]
    signed = [(groups, 1.0) for groups in clusters]
    if len(clusters) == 2:
        both = np.unique(clusters[0] * counts[1] + clusters[1], return_inverse=True)[1]
        signed.append((both, -1.0))
    found = np.zeros((moves.shape[1], moves.shape[1]))
    for groups, sign in signed:
        sums = np.array([np.bincount(groups, column) for column in moves.T])
        found += sign * (sums @ sums.T)
    return found * (min(counts) / (min(counts) - 1))


def lagged_square(moves: Array, maxlags: int) -> Array:
    """Return Newey and West's square of a sum over time, shape (k, k).

    Products of rows that are lags apart have Bartlett's weights, which fall to zero past
    `maxlags`.
    """
    found = moves.T @ moves
    for lag in range(1, maxlags + 1):
        cross = (1 - lag / (maxlags + 1)) * moves[lag:].T @ moves[:-lag]
        found += cross + cross.T
    return found
