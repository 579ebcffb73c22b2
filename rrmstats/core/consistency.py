"""What clean Gaussian data look like under the weights: the factors that undo the bias."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from rrmstats.core.entropy import Array

# Factor at most by which a variance is enlarged for the weights that made it smaller.
# Convention: beyond, the weights tell nothing of a variance.
MOST_ENLARGED = 10.0


def second_moment_ratio(eps_bar: float, dim: float = 1) -> float:
    r"""Return the weighted second moment of Gaussian data relative to the true one.

    In the population the weights tilt a Gaussian distribution of `dim` dimensions to a narrower
    one. The ratio s of its covariance to the true one is the root below one of

    .. math:: d (s - 1 - \ln s) = -2 \ln(1 - \bar\epsilon).

    Parameters
    ----------
    eps_bar : float
        Upper bound on the share of bad rows.
    dim : float, optional
        Dimension of the Gaussian part of a loss; 1 for regression.

    Returns
    -------
    float
        s in (0, 1]. Dividing a raw variance by s makes it consistent.

    Examples
    --------
    >>> round(second_moment_ratio(0.4), 4)
    0.1546
    """
    if eps_bar == 0:
        return 1.0
    target = -2.0 * np.log1p(-eps_bar) / dim
    # In u = -ln s the equation is expm1(-u) + u = target, increasing in u.
    root = brentq(lambda u: np.expm1(-u) + u - target, 0.0, target + 1.0, xtol=1e-14)
    return float(np.exp(-root))


def order_efficiency(order: float, dim: float = 1) -> float:
    r"""Return the efficiency of a location or of regression slopes on clean Gaussian data.

    Parameters
    ----------
    order : float
        a >= 1 of the weights :math:`\exp(-(a - 1) r^2 / 2)`, r the distance in units of the true
        covariance; 1 / a is the second moment that they leave.
    dim : float, optional
        Dimension of the Gaussian part of a loss; 1 for regression.

    Returns
    -------
    float
        :math:`(2a - 1)^{d/2 + 1} / a^{d + 2}`, the asymptotic variance of the classical estimate
        divided by that of the weighted one.

    Examples
    --------
    >>> round(order_efficiency(2.0), 3)
    0.65
    """
    return float(np.exp((dim / 2 + 1) * np.log(2 * order - 1) - (dim + 2) * np.log(order)))


def gaussian_efficiency(eps_bar: float, dim: float = 1) -> float:
    """Return the efficiency of a location or of regression slopes on clean Gaussian data.

    Parameters
    ----------
    eps_bar : float
        Upper bound on the share of bad rows.
    dim : float, optional
        Dimension of the Gaussian part of a loss; 1 for regression.

    Returns
    -------
    float
        Asymptotic variance of the classical estimate divided by that of the robust one.

    Examples
    --------
    >>> [round(gaussian_efficiency(eps_bar), 2) for eps_bar in (0.0, 0.1, 0.2, 0.4)]
    [1.0, 0.63, 0.4, 0.15]
    """
    return order_efficiency(1.0 / second_moment_ratio(eps_bar, dim), dim)


def kish_fraction(eps_bar: float, dim: float = 1) -> float:
    """Return Kish's effective sample size of clean Gaussian data, as a fraction of n.

    Parameters
    ----------
    eps_bar : float
        Upper bound on the share of bad rows.
    dim : float, optional
        Dimension of the Gaussian part of a loss; 1 for regression.

    Returns
    -------
    float
        Population value of ``1 / (n * sum(weights ** 2))``.

    Examples
    --------
    >>> round(kish_fraction(0.2), 3)
    0.739
    """
    a = 1.0 / second_moment_ratio(eps_bar, dim)
    return float((np.sqrt(2 * a - 1) / a) ** dim)


def untilted_variance(variance: float, weights: Array, rates: Array) -> float:
    """Return the variance of Gaussian noise whose squares were tilted at some rates.

    Weights ``exp(-rate * square)`` narrow noise of variance s to ``1 / (1 / s + 2 rate)``; the
    weighted mean of that is what was seen.

    Parameters
    ----------
    variance : float
        Weighted mean of the squares.
    weights : ndarray, shape (n,)
        Weights, summing to one.
    rates : ndarray, shape (n,)
        Rates of the rows, not negative.

    Returns
    -------
    float
        At most MOST_ENLARGED times `variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core.consistency import untilted_variance
    >>> round(untilted_variance(0.8, np.full(4, 0.25), np.full(4, 0.125)), 12)
    1.0
    """

    def excess(enlarged: float) -> float:
        return float(weights @ (enlarged / (1 + 2 * enlarged * variance * rates))) - 1

    if not variance > 0 or not rates.any():
        return variance
    if excess(MOST_ENLARGED) <= 0:
        return MOST_ENLARGED * variance
    return variance * float(brentq(excess, 1.0, MOST_ENLARGED, xtol=1e-14))


def robust_order(eps_bar: float) -> float:
    """Return an order that bad rows five standard deviations off hardly move.

    A share eps of rows d standard deviations off biases a location of order a by
    ``eps / (1 - eps) * d * exp(-d^2 / 2 * (1 - 1 / a))`` standard deviations. Here it is what
    40 % of the rows, whose odds are 1 / 1.5, do at order 2: 0.0064 standard deviations.
    """
    if eps_bar == 0:
        return 1.0
    reach = 0.5 + 2 * np.log(1.5 * eps_bar / (1 - eps_bar)) / 5.0**2
    return float(1 / (1 - max(reach, 0.0)))


def scale_shortfall(order: float, fitted: float) -> float:
    r"""Return by how much the log scale falls short, per parameter and good row.

    The scale of order a solves the mean of :math:`w (a z^2 - 1) = 0`, its residuals left by a fit
    of order b. With :math:`A = a + b - 1` and e the efficiency,

    .. math:: (ab / A)^{3/2} (3a - 1 - 3a(a - 1) / A) - 1 / e(b).

    Parameters
    ----------
    order : float
        Order a of the scale.
    fitted : float
        Order b of the fit.
    """
    total = order + fitted - 1
    shrunk = (order * fitted / total) ** 1.5
    shrunk *= 3 * order - 1 - 3 * order * (order - 1) / total
    return shrunk - 1 / order_efficiency(fitted)


def share_excess(order: float, fitted: float) -> float:
    """Return by how much the share of good rows is overstated, per parameter and good row.

    Residuals that were fitted are too small, at a scale that is right, and their weights too
    large; see `scale_shortfall` for the arguments.
    """
    total = order + fitted - 1
    drawn = (order - 1) * order**0.5 * (fitted / total) ** 1.5
    return drawn - 0.5 * (order - 1) / order / order_efficiency(fitted)


def scale_factor(params_per_row: float, order: float, fitted: float) -> float:
    """Return the factor of ``a * sum(w r^2) / sum(w)`` that makes up for the fit.

    A factor c raises the fixed point by ``a * log(c)``. At order one it is n / (n - k).

    Examples
    --------
    >>> round(scale_factor(0.1, 1.0, 1.0), 4)
    1.1111
    """
    return _left(params_per_row) ** (-scale_shortfall(order, fitted) / order)


def share_factor(params_per_row: float, order: float, fitted: float) -> float:
    """Return the factor by which fitting overstates the share of good rows."""
    exponent = -share_excess(order, fitted) * np.log(_left(params_per_row))
    return float(np.exp(np.clip(exponent, -50.0, 50.0)))  # orders that explode would overflow


def residual_factor(params_per_row: float, order: float) -> float:
    """Return the factor by which the weighted squares of fitted residuals fall short.

    The least risk falls short of its expectation by ``k / (n e)`` of itself.
    """
    return _left(params_per_row) ** (-1 / order_efficiency(order))


def scale_variance(order: float) -> float:
    """Return the variance of the log scale on one good row; 2 at order one.

    Examples
    --------
    >>> scale_variance(1.0)
    2.0
    """
    double = 2 * order - 1
    spread = 3 * order**2 / double**2 - 2 * order / double + 1
    return float(order**3 * spread / double**0.5)


def _left(params_per_row: float) -> float:
    """Return the share of the rows' freedom that a fit leaves, a quarter at least.

    Corrections for more parameters than three in four rows are not known.
    """
    return max(1 - params_per_row, 0.25)


def bad_share(ratio: float, params: int, total: float, order: float, eps_bar: float) -> float:
    """Return the share of bad rows that weights tell, at most eps_bar.

    Parameters
    ----------
    ratio : float
        Mean over the rows of their weights, each over its expectation: one at good rows.
    params : int
        Number of parameters that were fitted.
    total : float
        Number of rows.
    order : float
        Order of the weights.
    eps_bar : float
    """
    good = min(max(ratio, 1.0 - eps_bar), 1.0)
    factor = share_factor(params / max(total * good, 1.0), order, order)
    return 1.0 - min(max(ratio / factor, 1.0 - eps_bar), 1.0)
