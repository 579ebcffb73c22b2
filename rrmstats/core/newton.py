"""Newton's method with halved steps: minima of a batch of functions, and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from rrmstats.core.design import solve_gram
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import HALVINGS, TINY

#: Where a search for a root is.
Place = TypeVar("Place")


def damped_newton(
    value: Callable[[Array, np.ndarray], Array],
    slopes: Callable[[Array, np.ndarray], tuple[Array, Array]],
    retract: Callable[[Array, Array], Array],
    theta: Array,
    steps: int,
    tol: float = 1e-20,
) -> Array:
    """Return parameters of lower value, after at most `steps` Newton steps.

    Parameters
    ----------
    value : callable
        Takes parameters (m, k) and the places (m,) of these in the batch, and returns values (m,).
    slopes : callable
        Takes the same and returns gradients (m, k) and Hessians (m, k, k).
    retract : callable
        Takes parameters and a step, both (b, k), and returns the parameters a step away.
    theta : ndarray, shape (b, k)
        Where to start.
    steps : int
        Number of steps at most.
    tol : float, optional
        Decrease relative to the value that is not worth a step: by default the square of what
        rounding leaves of it, so that the last step is taken in full.

    Returns
    -------
    ndarray, shape (b, k)
    """
    theta, going = theta.copy(), np.arange(len(theta))
    here = value(theta, going)
    for _ in range(steps):
        if not len(going):
            break
        gradient, hessian = slopes(theta[going], going)
        step = -solve_gram(hessian, gradient)[0]
        step[~np.isfinite(step).all(axis=-1)] = 0.0
        decrease = -np.einsum("bk,bk->b", gradient, step)
        worth = decrease > tol * np.maximum(np.abs(here[going]), TINY)
        going = left = going[worth]
        step = step[worth]
        for _ in range(HALVINGS):
            if not len(left):
                break
            trial = retract(theta[left], step)
            new = value(trial, left)
            # Near the end rounding may raise it.
            lower = new <= here[left] + 1e-14 * np.abs(here[left])
            theta[left[lower]], here[left[lower]] = trial[lower], new[lower]
            left, step = left[~lower], 0.5 * step[~lower]
        going = np.setdiff1d(going, left)  # where no part of a step is lower, none will be
    return theta


def damped_root(
    place: Place,
    step: Callable[[Place], tuple[Array, float]],
    move: Callable[[Place, Array], Place],
    tol: float,
    steps: int,
) -> tuple[Place, float]:
    """Return where steps to a root end, and the size of the last.

    Steps that turn back and do not shrink are halved. Steps that go on in one direction are on
    their way, however slowly they shrink.

    Parameters
    ----------
    place
        Where to start.
    step : callable
        Step at a place, shape (k,), and its size.
    move : callable
        The place a step away from another.
    tol : float
        Size of a step that is not taken any more.
    steps : int
        Number of steps at most.
    """
    size, length = np.inf, 1.0
    last: Array | None = None
    for _ in range(steps):
        found, new = step(place)
        turned = last is not None and float(found @ last) < 0
        overshot = turned and new > 0.9 * size
        length = max(0.5 * length, 0.05) if overshot else min(1.0, 1.5 * length)
        size, last = new, found
        if not size > tol:
            break
        place = move(place, length * found)
    return place, size
