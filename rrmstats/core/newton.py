"""Newton's method with halved steps, for a batch of smooth convex functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rrmstats.core.design import solve_gram
from rrmstats.core.entropy import Array

# Predicted decrease, relative to the value, at which the method stops.
DECREASE_TOL = 1e-20
# What rounding may add to a value, relative to it: near the end steps change it by less.
VALUE_NOISE = 1e-14
HALVINGS = 10


def damped_newton(
    value: Callable[[Array], Array],
    slopes: Callable[[Array], tuple[Array, Array]],
    retract: Callable[[Array, Array], Array],
    theta: Array,
    steps: int,
) -> Array:
    """Return parameters of lower value, after at most `steps` Newton steps.

    Parameters
    ----------
    value : callable
        Takes parameters (b, k) and returns values (b,).
    slopes : callable
        Takes parameters (b, k) and returns gradients (b, k) and Hessians (b, k, k).
    retract : callable
        Takes parameters and a step, both (b, k), and returns the parameters a step away.
    theta : ndarray, shape (b, k)
        Where to start.
    steps : int
        Number of steps at most.

    Returns
    -------
    ndarray, shape (b, k)
    """
    here = value(theta)
    for _ in range(steps):
        gradient, hessian = slopes(theta)
        step = -solve_gram(hessian, gradient)[0]
        step[~np.isfinite(step).all(axis=-1)] = 0.0
        decrease = -np.einsum("bk,bk->b", gradient, step)
        if (decrease <= DECREASE_TOL * np.maximum(np.abs(here), 1e-300)).all():
            break
        fraction = 1.0
        for _ in range(HALVINGS):
            trial = retract(theta, fraction * step)
            new = value(trial)
            lower = new <= here + VALUE_NOISE * np.abs(here)
            theta = np.where(lower[:, None], trial, theta)
            here = np.where(lower, new, here)
            step[lower] = 0.0
            if lower.all():
                break
            fraction *= 0.5
    return theta
