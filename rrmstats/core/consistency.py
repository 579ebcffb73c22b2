"""What clean Gaussian data look like under the weights: the factors that undo the bias."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from rrmstats.core.entropy import Array

# Factor at most by which a variance is enlarged for the weights that made it smaller.
MOST_ENLARGED = 10.0


def second_moment_ratio(eps_bar: float, dim: float = 1) -> float:
    r"""Return the weighted second moment of Gaussian data relative to the true one.

    In the population the weights tilt a Gaussian distribution of `dim` dimensions to a narrower
    one. The ratio s of its covariance to the true one is the root below one of

    .. math:: d (s - 1 - \ln s) = -2 \ln(1 - \bar\epsilon).

    Parameters
    ----------
    eps_bar : float
        Upper bound on the fraction of corrupted observations.
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


def efficient_order(efficiency: float, dim: float = 1) -> float:
    """Return the order at which the weights have a given efficiency; see `order_efficiency`.

    Parameters
    ----------
    efficiency : float
        Gaussian efficiency of a location or of regression slopes, in (0, 1).
    dim : float, optional
        Dimension of the Gaussian part of a loss; 1 for regression.

    Examples
    --------
    >>> round(efficient_order(0.95), 3)
    1.225
    """
    if not 0 < efficiency < 1:
        raise ValueError(f"efficiency must be in (0, 1), got {efficiency:g}")
    high = 2.0
    while order_efficiency(high, dim) > efficiency:
        high *= 2.0
    return float(brentq(lambda a: order_efficiency(a, dim) - efficiency, 1.0, high, xtol=1e-14))


def gaussian_efficiency(eps_bar: float, dim: float = 1) -> float:
    """Return the efficiency of a location or of regression slopes on clean Gaussian data.

    Parameters
    ----------
    eps_bar : float
        Upper bound on the fraction of corrupted observations.
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
        Upper bound on the fraction of corrupted observations.
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
