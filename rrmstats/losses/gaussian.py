"""Gaussian rows under weights exp(-(a - 1) r^2 / 2): what fits at an order a are like.

r is the distance of a row of a standard Gaussian distribution in `dim` dimensions, which may be
any positive number: its square is a chi-square variable with so many degrees of freedom. The order
a is the ratio of the true to the weighted second moment. The product of two such weights is a
weight of order a + a' - 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rrmstats.core.consistency import order_efficiency
from rrmstats.core.entropy import Array


class Core(NamedTuple):
    """The distribution of good rows, and what of it is estimated besides its size.

    Attributes
    ----------
    dim : float
        Degrees of freedom of squared distances.
    regressors : int
        Columns of a regression that takes the place of the location; 1 for a plain location, 0
        where it is known.
    shaped : bool
        Whether the shape is estimated too.
    """

    dim: float
    regressors: int = 1
    shaped: bool = True

    def efficiency(self, order: float) -> float:
        """Return the efficiency of the location at an order."""
        return order_efficiency(order, self.dim)

    def bias(self, order: float, shape_order: float | None = None) -> float:
        """Return the second-order bias of the size; see `size_bias`."""
        return size_bias(self, order, order if shape_order is None else shape_order)

    def overfit(self, order: float, good: float, shape_order: float | None = None) -> float:
        """Return the factor c of ``S = c a S_w`` that undoes the bias of a fit to good rows.

        Within the fixed point a factor acts to the power a.
        """
        return float(np.exp(-self.bias(order, shape_order) / (order * good)))


def tilted_moments(core: Core, order: float, power: float) -> Array:
    """Return E[r^(2k) exp(-(order - 1) r^2 / 2)] exp(power) for k = 0, 1, 2, 3, shape (4,)."""
    d = core.dim
    chi = np.cumprod([1.0, d, d + 2, d + 4]) / order ** np.arange(4)
    return np.asarray(chi * np.exp(power - 0.5 * d * np.log(order)))


@lru_cache(maxsize=1024)
def size_bias(core: Core, order: float, shape_order: float) -> float:
    r"""Return :math:`\beta`: on n Gaussian rows, the mean of the size is 1 + beta / n.

    It is the second-order bias of the fixed point of ``S = a S_w``, whose location and shape were
    determined at `shape_order`; exact, and -1 at order 1 where the location is estimated: the
    familiar n - 1.
    """
    a, other, d = order, shape_order, core.dim
    rest, k = (1 - 1 / d) * core.shaped, core.regressors
    unit, other_unit = ((d / 2 + 1) * np.log(value) for value in (a, other))
    cross, own = (
        tilted_moments(core, a + other - 1, other_unit),
        tilted_moments(core, 2 * a - 1, unit),
    )
    slope = k * ((a - 1) * (a * cross[2] - d * cross[1]) - 2 * a * cross[1])
    slope += other * rest * (0.5 * (a - 1) * (a * cross[3] - d * cross[2]) - a * cross[2])
    slope += 0.5 * (a - 1) / d * (a * a * own[3] - 2 * a * d * own[2] + d * d * own[1])
    slope -= a / d * (a * own[2] - d * own[1])
    double = tilted_moments(core, 2 * a - 1, 2 * unit)
    shape = tilted_moments(core, 2 * other - 1, 2 * other_unit)
    size = a * a * double[2] - 2 * a * d * double[1] + d * d * double[0]
    curve = k * shape[1] + (other**2 * rest * shape[2] + (1 / d - 0.5 * (a - 1)) * size) / a
    return float((np.exp(unit) * slope + curve) / d)


class Spread(NamedTuple):
    """Variances or covariances of ln size, a coordinate of the location, an entry of the shape.

    The entry is one off the diagonal of the scatter, in units of the size.
    """

    size: float
    location: float
    shape: float


@lru_cache(maxsize=1024)
def rung_covariance(order: float, other: float, dim: float) -> Spread:
    """Return the covariances of the fits at two orders to the same Gaussian rows, times n."""
    b, d = order + other - 1, dim
    factor = float(np.exp((d / 2 + 1) * np.log(order * other) - 0.5 * d * np.log(b)))
    size = order * other * (d + 2) / (d * b * b) - (order + other) / b + 1
    return Spread(factor * size, factor / b, factor * order * other / (b * b))


@lru_cache(maxsize=1024)
def difference_variance(order: float, other: float, dim: float) -> Spread:
    """Return the variances of the differences of fits at two orders, times n."""
    one, two = (rung_covariance(a, a, dim) for a in (order, other))
    both = rung_covariance(order, other, dim)
    return Spread(*(x + y - 2 * z for x, y, z in zip(one, two, both, strict=True)))
