"""Standard errors: the influence of each observation on parameters and lambda together.

The weights are estimated with the parameters. The estimating equations of theta, beta = 1/lambda
and the normalizing constant are therefore stacked; solved for the last two, what is left is the
score of each observation and the Hessian of the concentrated risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import row_map, row_sums
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


def relative_weights(weights: Array, base: Array | None) -> Array:
    """Return weights in units of those of largest entropy: n times the weights without `base`."""
    if base is None:
        return weights * len(weights)
    return row_map(_ratio, weights, base)


def _ratio(weights: Array, base: Array) -> Array:
    return np.divide(weights, base, out=np.zeros_like(weights), where=base > 0)


def scaled_spread(losses: Array, weights: Array, lambda_: float) -> Array:
    """Return losses about their weighted mean in units of lambda, shape (n,)."""
    finite = np.where(weights > 0, losses, 0.0) / lambda_
    return finite - weights @ finite


def scores(
    problem: SmoothProblem,
    theta: Array,
    losses: Array,
    weights: Array,
    lambda_: float,
    base: Array | None,
) -> tuple[Array, Array]:
    r"""Return the scores of theta (n, k) and of ln(beta) (n,), at a minimum of the risk.

    With :math:`\omega_i` the relative weight, :math:`c = \mathrm{Cov}(\ell,
    \nabla\ell)` and :math:`b_i` the score of ln(beta), the derivative of the constraint on the
    divergence at fixed theta, the score of theta is
    :math:`\omega_i \nabla\ell_i - (c / \lambda) b_i`.
    """
    relative = relative_weights(weights, base)
    gradients = np.where(weights[:, None] > 0, problem.gradients(theta), 0.0)
    found = relative[:, None] * gradients
    if not 0 < lambda_ < np.inf:
        return found, np.zeros(len(losses))
    spread = scaled_spread(losses, weights, lambda_)
    log_beta = (relative * spread + relative - 1.0) / (weights @ spread**2)
    return found - np.outer(log_beta, (weights * spread) @ gradients), log_beta


def minimum_influence(
    problem: SmoothProblem,
    theta: Array,
    losses: Array,
    weights: Array,
    lambda_: float,
    base: Array | None = None,
) -> Influence:
    """Return the influence functions at a minimum of the risk.

    Theta moves by minus the inverse of the Hessian of the concentrated risk times the scores.

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
        Expressions where the rows lie in blocks, after one pass over them.
    """
    if problem.blocks is not None:
        return _influence_in_blocks(problem, theta, losses, weights, lambda_, base)
    _, hessian, drift = (
        part[0]
        for part in problem.concentrated(
            theta[None], losses[None], weights[None], np.array([lambda_])
        )
    )
    found, log_beta = scores(problem, theta, losses, weights, lambda_, base)
    by_theta = -found @ np.linalg.pinv(hessian, hermitian=True)
    return Influence(by_theta, by_theta @ drift - log_beta)


def _influence_in_blocks(
    problem: SmoothProblem,
    theta: Array,
    losses: Array,
    weights: Array,
    lambda_: float,
    base: Array | None,
) -> Influence:
    """Return what `minimum_influence` does, in one pass over the rows and expressions in them."""
    excess = np.where(weights > 0, losses - problem.least_loss(theta), 0.0)
    at = sums_in_blocks(problem, theta, lambda_, excess, weights)
    relative = relative_weights(weights, base)
    gradients = np.where((weights > 0)[:, None], problem.gradients(theta), 0.0)
    log_beta, inverse = 0.0 * weights, np.linalg.pinv(at.hessian, hermitian=True)
    found, drift = gradients * relative[:, None], np.zeros_like(at.gradient)
    if 0 < lambda_ < np.inf:
        spread, drift = (excess - at.mean) / lambda_, at.cross / at.variance
        log_beta = (relative * spread + relative - 1.0) * (lambda_**2 / at.variance)
        found = found - log_beta[:, None] * (at.cross / lambda_)
    by_theta = found @ -inverse
    return Influence(by_theta, by_theta @ drift - log_beta)


def sums_in_blocks(
    problem: SmoothProblem, theta: Array, lambda_: float, excess: Array, weights: Array
) -> WeightedSums:
    """Return what one pass over the rows tells of a minimum.

    Parameters
    ----------
    problem : SmoothProblem
    theta : ndarray, shape (k,)
    lambda_ : float
    excess, weights : BlockArray, shape (n,)
        Losses above the least, and weights that sum to one.
    """
    beta = 1 / lambda_ if 0 < lambda_ < np.inf else 0.0
    kernel = partial(_weighted_sums, problem.with_rows, theta, beta)
    mean, second, *sums = row_sums(kernel, excess, weights, *problem.row_arrays)
    return WeightedSums(float(mean), float(second - mean**2), beta, *sums)


def _weighted_sums(
    make: Callable[..., Any],
    theta: Array,
    beta: float,
    excess: Array,
    weights: Array,
    *arrays: Array,
) -> tuple[Array, ...]:
    weighted = weights * excess
    sums = make(*arrays).tilted_sums(theta, excess, weights, beta)
    return weighted.sum(), weighted @ excess, *sums


class WeightedSums(NamedTuple):
    """Sums over rows in blocks: of losses above the least, and of `SmoothProblem.tilted_sums`."""

    mean: float
    variance: float
    beta: float
    gradient: Array
    moved: Array
    curvature: Array

    @property
    def cross(self) -> Array:
        """Covariance of losses and gradients, shape (k,)."""
        return self.moved - self.mean * self.gradient

    @property
    def hessian(self) -> Array:
        """Hessian of the concentrated risk, shape (k, k)."""
        outer = np.outer(self.gradient, self.gradient)
        if self.beta > 0:
            outer = outer + np.outer(self.cross, self.cross) / self.variance
        return self.curvature + self.beta * outer


def wald_pvalue(difference: Array, variance: Array) -> float:
    """Return the p-value of Wald's test that a difference is chance.

    Parameters
    ----------
    difference : ndarray, shape (k,)
    variance : ndarray, shape (k, k)
        Its covariance, of any rank.
    """
    statistic = difference @ np.linalg.pinv(variance, hermitian=True) @ difference
    return float(chi2.sf(statistic, np.linalg.matrix_rank(variance, hermitian=True)))


def mean_and_error(
    values: Array, change: Array, influence: Array, exog: Array, mass: Array
) -> tuple[float, float]:
    """Return a mean over rows, and its standard error; two passes over rows in blocks.

    Each row moves the mean by its own value, and through the parameters.

    Parameters
    ----------
    values : ndarray, shape (n,)
    change : ndarray, shape (n,)
        Derivatives of the values in the linear predictor.
    influence : ndarray, shape (n, k)
        Influence functions of the parameters: they move by the sum.
    exog : ndarray, shape (n, k)
    mass : ndarray, shape (n,)
        How often each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.sandwich import mean_and_error
    >>> ones, exog = np.ones(4), np.ones((4, 1))
    >>> mean, error = mean_and_error(np.arange(4.0), 0 * ones, 0 * exog, exog, ones)
    >>> mean, bool(np.isclose(error**2, np.var(np.arange(4)) / 4))
    (1.5, True)
    """
    total, first, slope = row_sums(_mean_sums, values, change, exog, mass)
    mean = float(first / total)
    moved = (values - mean) / total + influence @ (slope / total)
    return mean, float(np.sqrt(mass @ moved**2))


def _mean_sums(values: Array, change: Array, exog: Array, mass: Array) -> tuple[Array, ...]:
    return mass.sum(), mass @ values, (mass * change) @ exog


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Which observations may depend on each other; by default none.

    Attributes
    ----------
    groups : ndarray of int, shape (n,), or None
        Clusters, numbered from zero: observations of one cluster may.
    maxlags : int or None
        Rows in the order of time: those at most this many apart may.
    """

    groups: np.ndarray | None = None
    maxlags: int | None = None

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
        return clustered_square(per_row, dependence.groups)
    return lagged_square(per_row, dependence.maxlags or 0)


def clustered_square(moves: Array, groups: np.ndarray) -> Array:
    """Return the square of sums over clusters, times G / (G - 1) for G of them, shape (k, k)."""
    count = int(groups.max()) + 1
    sums = np.array([np.bincount(groups, column, count) for column in moves.T]).T
    return sums.T @ sums * (count / (count - 1))


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
