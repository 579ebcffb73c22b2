"""What the weights of a first step tell of a scatter: its size, and the share of good rows.

Weights exp(-r^2 / lambda) narrow Gaussian rows of scatter S to S_w = S / a, whatever else is in
the data, as long as bad rows have no weight: 1 / S_w = 1 / S + 2 / (lambda S_w), so that the order
a is 1 / (1 - 2 / lambda).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.consistency import order_efficiency, second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import minimum_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.scatter import ScatterProblem

# Degrees of freedom that an estimate has, however few its rows.
LEAST_FREEDOM = 6.0


def tilted_order(lambda_: float, eps_bar: float, dim: float) -> float:
    """Return the scatter of good rows over the weighted one, at most that of clean data."""
    clean = 1 / second_moment_ratio(eps_bar, dim)
    return min(lambda_ / (lambda_ - 2), clean) if 2 < lambda_ < np.inf else clean


def tilts(square: Array, order: float, dim: float) -> Array:
    """Return weights whose mean over good rows is one, shape (n,).

    `square` has squared distances in the scatter of good rows, of `dim` dimensions.
    """
    return np.exp(0.5 * dim * np.log(order) - 0.5 * (order - 1) * square)


def tilted_share(
    square: Array, order: float, dim: float, spread: Array, total: float
) -> tuple[float, float]:
    """Return the share of bad rows and its standard error.

    The error is that of the mean of `tilts`, the size of the scatter estimated with it: ln size
    has the scores ``w (a s / d - 1)``.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances s.
    order, dim : float
    spread : ndarray, shape (n,)
        Frequency weights, summing to one.
    total : float
        Number of observations that they stand for.
    """
    weights = row_map(tilts, square, order, dim, tail=())
    good, first = (float(each) for each in row_sums(_sums, spread * weights, square))
    moves = weights - good
    if order > 1:
        # d mean(w) / d ln(size) is (a - 1) / 2 times mean(w s), the bread of the score good / a.
        moves = moves + 0.5 * (order - 1) * order * first / good * row_map(
            _size_scores, square, weights, order, dim, tail=()
        )
    error = float(np.sqrt((spread * moves**2).sum() / total))
    return float(np.clip(1 - good, 0.0, 1.0)), error


def _sums(mass: Array, square: Array) -> tuple[Array, Array]:
    return mass.sum(), mass @ square


def _size_scores(square: Array, weights: Array, order: float, dim: float) -> Array:
    return np.asarray(weights * (order * square / dim - 1))


def untilted_variances(seen: Array, lambda_: float, eps_bar: float) -> Array:
    """Return the variances of noise whose weighted ones are seen, shape (m,).

    Weights exp(-r^2 / lambda) narrow each v to ``1 / (1 / v + 2 / lambda)``. Lambda counts for no
    less than that of clean rows: the divergence of their weights is ``-ln(1 - eps_bar)``.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.tilted_scatter import untilted_variances
    >>> untilted_variances(np.array([0.8, 0.5]), 8.0, 0.2).round(3)
    array([1.   , 0.571])
    """
    used = seen[seen > 0]
    if not len(used) or not eps_bar:
        return seen

    def excess(log_lambda: float) -> float:
        left = 1 - 2 * used / np.exp(log_lambda)
        return float(0.5 * (left - 1 - np.log(left)).sum() + np.log1p(-eps_bar))

    low = float(np.log(2 * used.max()))
    clean = float(np.exp(brentq(excess, low + 1e-12, low + np.log(1e3 * len(used) / eps_bar))))
    return np.asarray(seen / (1 - 2 * seen / max(lambda_, clean)))


def tilted_moves(
    problem: ScatterProblem, solution: Solution, order: float, setting: Setting
) -> tuple[Array, Array]:
    """Return influence functions of location (n, d) and consistent scatter (n, d, d).

    ln a moves by -(a - 1) times what ln lambda does, unless it is that of clean data. They grow
    because the fit has used up some of the rows, but for plain moments, whose errors are known.
    """
    n, base = problem.n_obs, setting.base(problem.n_obs)
    steps, log_lambda = minimum_influence(
        problem, solution.theta, solution.losses, solution.weights, solution.lambda_, base
    )
    location, scatter = problem.directions(solution.theta, steps)
    free = order < 1 / second_moment_ratio(setting.eps_bar, problem.dim)
    wnobs = setting.wnobs(n)
    used = problem.n_params if setting.eps_bar else 0
    enlarged = float(np.sqrt(wnobs / max(wnobs - used, 1.0)))
    scatter = row_map(
        _resized, scatter, -(order - 1) * free * log_lambda, tail=(problem.dim, problem.dim),
        here=problem.split(solution.theta)[1], order=order * enlarged,
    )  # fmt: skip
    return enlarged * location, scatter


def _resized(scatter: Array, grown: Array, here: Array, order: float) -> Array:
    return np.asarray(order * (scatter + grown[:, None, None] * here))


def precision_order(order: float, eps_bar: float, eps_hat: float, dim: float) -> float:
    """Return the order that tells how precise a first step is.

    Clean data have that of the budget, and bad rows, which use the budget up, bring it down to
    one; but so do good rows that a small sample gives up for the sake of a closer fit. The
    contamination estimated afterwards tells the two apart.

    Parameters
    ----------
    order : float
        That which lambda implies.
    eps_bar, eps_hat : float
        Bound on the contamination, and its estimate.
    dim : float
    """
    left = 1 - min(eps_hat / eps_bar, 1.0) if eps_bar else 0.0
    return max(order, 1 + (1 / second_moment_ratio(eps_bar, dim) - 1) * left)


def scatter_cutoff(level: float, dim: int, good: float, order: float = 1.0) -> float:
    """Return the quantile of squared distances from an estimated location and scatter.

    The estimate is as precise as a Wishart matrix of m e degrees of freedom, e the efficiency of
    an entry of the scatter, which is that of a location in two more dimensions. Distances of rows
    that have no part in it follow an F distribution (Hardin and Rocke). A row at the cut-off has
    some part in it, which its influence function tells.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    dim : int
    good : float
        Number m of good rows.
    order : float, optional
        Order at which location and scatter were determined; 1 for equal weights of good rows.
    """
    freedom = max(good * order_efficiency(order, dim + 2) - dim, LEAST_FREEDOM)
    far = dim * (freedom + dim - 1) / freedom * f_distribution.ppf(level, dim, freedom)
    square = chi2.ppf(level, dim)
    part = np.exp((dim / 2 + 1) * np.log(order) - 0.5 * (order - 1) * square) / good
    return float(far * np.exp(-part * (order * square + 1)))


def subspace_cutoff(
    level: float, freedom: float, regressors: int, good: float, order: float = 1.0
) -> float:
    """Return the quantile of squared distances from an estimated subspace, in units of their size.

    A row without weight is as far from it as g regressions on q scores predict badly.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    freedom : float
        Degrees of freedom g of the distances.
    regressors : int
        The scores and a constant.
    good : float
        Number of good rows.
    order : float, optional
        Order at which the subspace was determined; 1 for equal weights of good rows.
    """
    spread = regressors / (good * order_efficiency(order, freedom))
    free = max(freedom * (good - regressors), LEAST_FREEDOM)
    return float((1 + spread) * freedom * f_distribution.ppf(level, freedom, free))
