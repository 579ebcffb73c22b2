"""Cut-offs for distances from estimates: quantiles that clean rows exceed as often as promised."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.consistency import order_efficiency, second_moment_ratio

# Degrees of freedom that an estimate has, however few its rows.
LEAST_FREEDOM = 6.0


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
