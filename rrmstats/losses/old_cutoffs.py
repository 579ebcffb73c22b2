"""Cut-offs for distances from estimates: quantiles that clean rows exceed as often as promised."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, chdtri
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.entropy import Array
from rrmstats.losses.gaussian import Core, rung_covariance
from rrmstats.losses.sizes import budget_order

# Degrees of freedom that an estimate has, however few its rows.
LEAST_FREEDOM = 6.0
# Part of them, at most, that small samples lose to the bias of the size.
MOST_LOST = 0.5
# Good rows in so many are out as far as to fade, and to be left out.
FADING, GONE = 100.0, 1e4


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
    return max(order, 1 + (budget_order(eps_bar, dim) - 1) * left)


def scatter_cutoff(level: float, dim: int, order: float, good: float) -> float:
    """Return the quantile of squared distances from an estimated location and scatter.

    The estimate is as precise as a Wishart matrix of m e degrees of freedom, e the efficiency of
    an entry of the scatter, less the bias of its size in small samples. Distances of rows that
    have no part in it follow an F distribution (Hardin and Rocke). A row at the cut-off has some
    part in it, which its influence function tells.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    dim : int
    order : float
        Order at which location and shape were determined.
    good : float
        Number m of good rows.
    """
    lost = min(-Core(dim).bias(order) / good, MOST_LOST)
    freedom = (1 - lost) * good / rung_covariance(order, order, dim).shape - dim
    freedom = max(freedom, LEAST_FREEDOM)
    far = dim * (freedom + dim - 1) / freedom * f_distribution.ppf(level, dim, freedom)
    square = chi2.ppf(level, dim)
    part = np.exp((dim / 2 + 1) * np.log(order) - 0.5 * (order - 1) * square) / good
    return float(far * np.exp(-part * (order * square + 1)))


def subspace_cutoff(level: float, core: Core, order: float, good: float) -> float:
    """Return the quantile of squared distances from an estimated subspace, in units of their size.

    A row without weight is as far from it as g regressions on q scores predict badly.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    core : Core
        Degrees of freedom g of the distances; regressors, the scores and a constant.
    order : float
        Order at which the subspace was determined.
    good : float
        Number of good rows.
    """
    g, k = core.dim, core.regressors
    spread = rung_covariance(order, order, g).location * k / good
    lost = max(-core.bias(order) - k, 0.0) / good
    free = max(g * (good - k), LEAST_FREEDOM)
    enlarged = 1 + spread + min(0.5 * lost, MOST_LOST)
    return float(enlarged * g * f_distribution.ppf(level, g, free))


def nearness(square: Array, freedom: float) -> Array:
    """Return what is left of rows at chi-square distances of given freedom, shape (n,).

    Rows as improbable as one in GONE are left out, and fade from one in FADING on.
    """
    near, far = chdtri(freedom, 1 / FADING), chdtri(freedom, 1 / GONE)
    kept = (square <= near).astype(float)
    between = (square > near) & (square < far)
    tail = np.maximum(chdtrc(freedom, square[between]), 1 / GONE)
    kept[between] = np.minimum(np.log(tail * GONE) / np.log(GONE / FADING), 1.0)
    return kept
