"""Derivatives by central differences, one-sided at the edge of a domain."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import SUM_ROUNDING

# Step of a central difference, in units of the parameter: the cube root of the rounding error.
STEP = float(np.finfo(float).eps ** (1 / 3))
# Step over which losses are looked at for kinks, in units of the parameter.
KINK_STEP = 0.05


def differences(function: Callable[[Array], Array], theta: Array, unit: Array) -> Array:
    """Return the derivative of a function of a vector, shape (k, ...).

    Parameters
    ----------
    function : callable
        Takes theta (k,) and returns an array of any shape.
    theta : ndarray, shape (k,)
    unit : ndarray, shape (k,)
        Changes of the parameters over which the function bends.

    Returns
    -------
    ndarray, shape (k, ...)
        Where one side has no finite value, the derivative is one-sided; NaN where neither has.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.finite_differences import differences
    >>> found = differences(lambda t: np.array([t[0] ** 2, t[0] * t[1]]), np.array([3.0, 2.0]),
    ...                     np.ones(2))
    >>> found.round(6)
    array([[6., 2.],
           [0., 3.]])
    """
    center = None
    slopes = []
    for j in range(len(theta)):
        step = np.zeros_like(theta)
        step[j] = STEP * unit[j]
        up, down = theta + step, theta - step
        with np.errstate(all="ignore"):
            above, below = np.asarray(function(up)), np.asarray(function(down))
            slope = (above - below) / (up[j] - down[j])
        odd = ~np.isfinite(slope)
        if odd.any():
            center = np.asarray(function(theta)) if center is None else center
            with np.errstate(all="ignore"):
                forward = (above - center) / (up[j] - theta[j])
                backward = (center - below) / (theta[j] - down[j])
            slope = np.where(odd, np.where(np.isfinite(forward), forward, backward), slope)
        slopes.append(slope)
    return np.array(slopes)


def inside(theta: Array, unit: Array, lower: Array | None) -> Array:
    """Return parameters from which a central difference stays above the lower bounds, (k,)."""
    return theta if lower is None else np.maximum(theta, lower + STEP * unit)


def second_differences(function: Callable[[Array], float], theta: Array, unit: Array) -> Array:
    """Return the Hessian of a number that depends on a vector, shape (k, k).

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.finite_differences import second_differences
    >>> second_differences(lambda t: t[0] ** 2 * t[1], np.array([3.0, 2.0]), np.ones(2)).round(4)
    array([[4., 6.],
           [6., 0.]])
    """
    k = len(theta)
    step = np.diag(float(np.finfo(float).eps ** (1 / 4)) * unit)
    found = np.empty((k, k))
    with np.errstate(all="ignore"):
        for i in range(k):
            for j in range(i + 1):
                along, across = step[i] + step[j], step[i] - step[j]
                same = function(theta + along) + function(theta - along)
                corners = same - function(theta + across) - function(theta - across)
                found[i, j] = found[j, i] = corners / (4 * step[i, i] * step[j, j])
    return found


def bends(function: Callable[[Array], Array], theta: Array, steps: Array) -> Array:
    """Return second differences of a function of a vector over steps (k,), shape (k, ...)."""
    with np.errstate(all="ignore"):
        ends = [function(theta + move) + function(theta - move) for move in np.diag(steps)]
        return np.array(ends) - 2.0 * np.asarray(function(theta))


def parameter_units(curvature: Callable[[Array, Array], Array], theta: Array) -> Array:
    """Return a unit of each parameter: the change that bends the mean loss by about one.

    Parameters
    ----------
    curvature : callable
        Takes theta (k,) and units (k,) and returns the second derivatives of the mean loss (k,).
    theta : ndarray, shape (k,)
    """
    unit = np.maximum(np.abs(theta), 0.1)  # at zero its own size tells nothing
    for _ in range(2):
        bend = curvature(theta, unit)
        known = np.isfinite(bend) & (bend > 0)
        unit = np.where(known, np.where(known, bend, 1.0) ** -0.5, unit)
        # A unit below the rounding of its parameter would give no difference at all.
        unit = np.maximum(unit, 1e-6 * np.abs(theta))
    return unit


def has_kinks(losses: Callable[[Array], Array], theta: Array, unit: Array, weights: Array) -> bool:
    """Tell whether losses bend in kinks, so that they have no second derivatives.

    The second difference of a smooth function over half a length is a quarter of that over it.
    That of a function with a kink is half of it, or nothing where the kink is in between.

    Parameters
    ----------
    losses : callable
        Takes theta (k,) and returns losses (n,).
    theta : ndarray, shape (k,)
    unit : ndarray, shape (k,)
        Changes of the parameters over which the mean loss bends.
    weights : ndarray, shape (n,)
        Rows with small weight count less.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.finite_differences import has_kinks
    >>> y, one = np.linspace(-1, 1, 50), np.ones(1)
    >>> [has_kinks(f, np.zeros(1), one, np.ones(50)) for f in (
    ...     lambda t: (y - t[0]) ** 2, lambda t: np.abs(y - t[0]))]
    [False, True]
    """
    # A single kink a third of a step away looks smooth to one pair of lengths, not to two.
    steps = [0.5**i * KINK_STEP * unit for i in range(3)]
    found = [4.0**i * _finite(bends(losses, theta, step)) for i, step in enumerate(steps)]
    off, bent = 0.0, 0.0
    for whole, half in pairwise(found):
        off += float((np.abs(whole - half) @ weights).sum())
        bent += float(((np.abs(whole) + np.abs(half)) @ weights).sum())
    with np.errstate(all="ignore"):
        size = float(weights @ np.abs(_finite(np.asarray(losses(theta), dtype=float))))
    # Second differences that are not those of a smooth function are a fifth of all.
    return bent <= SUM_ROUNDING * size or off > 0.2 * bent


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)
