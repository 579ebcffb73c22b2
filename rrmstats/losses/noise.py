"""Gaussian noise under weights exp(-(a - 1) z^2 / 2): what fitting takes away from residuals.

The order a is one at least squares and rises with robustness. Expectations are over standard
normal z, to first order in the number of parameters per good row.
"""

from __future__ import annotations

import numpy as np

from rrmstats.core.consistency import order_efficiency

# Most parameters per good row that the corrections are made for; beyond it nothing is known.
MOST_PARAMS = 0.75
# Largest logarithm of a correction, up or down; orders that explode would overflow.
MOST_LOG = 50.0
# The robust order is that at which eps_bar of the rows, DISTANCE standard deviations off on one
# side, move a fit by no more than 40 % of them do at order 2: 0.0064 standard deviations.
DISTANCE, BIAS = 5.0, 5.0 / 1.5 * np.exp(-6.25)


def robust_order(eps_bar: float) -> float:
    """Return an order that bad rows at DISTANCE hardly move.

    A share eps of rows d standard deviations off biases a location of order a by
    ``eps / (1 - eps) * d * exp(-d^2 / 2 * (1 - 1 / a))`` standard deviations.
    """
    odds = eps_bar / (1 - eps_bar)
    reach = 2 * np.log(max(odds * DISTANCE / BIAS, 1.0)) / DISTANCE**2
    return float(1 / (1 - reach))


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
    return float(np.exp(np.clip(exponent, -MOST_LOG, MOST_LOG)))


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
    """Return the share of the rows' freedom that a fit leaves."""
    return 1 - min(params_per_row, MOST_PARAMS)
