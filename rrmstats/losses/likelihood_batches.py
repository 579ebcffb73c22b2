"""Many weighted fits of a likelihood in closed form at once."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_newton
from rrmstats.losses.predictors import PredictorLikelihood

# Entries of the arrays that a batch works on.
BLOCK = 1_000_000
# Steps of a fit to all rows, whose end is not exact.
OWN_STEPS = 100
# What rows outside of their domain lose.
BEYOND = 1e100


def batch_fits(
    form: PredictorLikelihood,
    largest: Array,
    weights: Array,
    theta: Array,
    lower: Array,
    steps: int,
) -> Array:
    """Return parameters of lower weighted loss, after a few steps, shape (b, k).

    The outer products of the scores serve for Hessians.

    Parameters
    ----------
    form : PredictorLikelihood
    largest : ndarray, shape (n,) or (b, n)
        Largest log-likelihoods of the rows.
    weights : ndarray, shape (b, n)
    theta : ndarray, shape (b, k)
        Where to start.
    lower : ndarray, shape (k,)
        Least values of the parameters.
    steps : int
        Number of steps at most.
    """

    def value(at: Array) -> Array:
        with np.errstate(all="ignore"):
            losses = largest - form.log_likelihood(at)
        losses = np.where(np.isnan(losses) | (losses > BEYOND), BEYOND, losses)
        return np.where(weights > 0, weights * losses, 0.0).sum(axis=-1)

    def slopes(at: Array) -> tuple[Array, Array]:
        scores = form.scores(at)
        scores[~np.isfinite(scores)] = 0.0
        pulled = weights[..., None] * scores
        gradient = -pulled.sum(axis=-2)
        hessian = np.swapaxes(pulled, -1, -2) @ scores
        held = (at <= lower) & (gradient > 0)
        gradient[held] = 0.0
        hessian[held[:, :, None] | held[:, None, :]] = 0.0
        return gradient, hessian + held[:, :, None] * np.eye(len(lower))

    def retract(at: Array, step: Array) -> Array:
        return np.maximum(at + step, lower)

    return damped_newton(value, slopes, retract, theta, steps)


def own_fit(form: PredictorLikelihood, start: Array, lower: Array) -> Array:
    """Return the parameters of largest likelihood near a start, shape (k,)."""
    n = form.endog.shape[-1]
    weights = np.full((1, n), 1.0 / n)
    return batch_fits(form, np.zeros(n), weights, start[None], lower, OWN_STEPS)[0]


def batch_slices(n_fits: int, n_obs: int, n_params: int) -> list[slice]:
    """Return parts of a batch whose arrays fit in memory."""
    size = max(1, BLOCK // (n_obs * n_params))
    return [slice(i, i + size) for i in range(0, n_fits, size)]
