"""The weight step: the probability weights of least risk within an entropy budget."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from rrmstats.core.tolerances import MAX_STEPS

Array = npt.NDArray[np.floating[Any]]

# Relative accuracy of the divergence at the root; its rounding error is near 1e-15.
DIVERGENCE_RTOL = 1e-12
# exp(-SATURATED) is zero, and its square still a number.
SATURATED = 1e150
# Largest logarithm of scale / lambda; its exponential is a number.
FARTHEST = 700.0
# What to do about an eps_bar that is none.
ADVICE = "give the largest share of bad rows that you think possible, such as eps_bar=0.2"


class EntropyWeights(NamedTuple):
    """Weights of least risk within an entropy budget.

    Attributes
    ----------
    weights : ndarray, shape (..., n)
        Probability weights; they sum to one along the last axis.
    lambda_ : ndarray, shape (...)
        Temperature: weights are proportional to ``freq_weights * exp(-losses / lambda_)``. It
        is infinite where the weights are as spread out as possible, and zero where only the
        observations tied at the smallest loss have weight.
    divergence : ndarray, shape (...)
        Kullback-Leibler divergence of the weights from equal ones, or from the frequency
        weights. The effective sample size
        is ``n * exp(-divergence)``.

    Examples
    --------
    >>> from rrmstats.core import entropy_weights
    >>> found = entropy_weights([0.1, 0.2, 0.3, 50.0], eps_bar=0.25)
    >>> round(float(found.lambda_), 2), round(float(found.divergence), 3)
    (4.89, 0.288)
    """

    weights: Array
    lambda_: Array
    divergence: Array


def entropy_weights(
    losses: ArrayLike,
    eps_bar: float,
    *,
    freq_weights: ArrayLike | None = None,
    lambda_start: ArrayLike | None = None,
    rtol: float = DIVERGENCE_RTOL,
) -> EntropyWeights:
    r"""Minimize ``sum(weights * losses)`` under a bound on the entropy of the weights.

    The entropy must be at least ``log((1 - eps_bar) * n)``. The minimizer is an exponential
    tilt, :math:`\pi_i \propto \exp(-\ell_i / \lambda)`, and the only unknown is
    :math:`\lambda`: the root of a monotone function, found by safeguarded Newton steps.

    Parameters
    ----------
    losses : array_like, shape (..., n)
        Losses of the observations; leading axes are independent problems. A loss of ``+inf``
        has weight zero.
    eps_bar : float
        Upper bound on the share of bad rows, in [0, 1).
    freq_weights : array_like, shape (n,), optional
        Frequency weights, nonnegative and in any unit: an observation of weight 2 counts as two.
        The constraint then bounds the divergence from them by ``-log(1 - eps_bar)``.
    lambda_start : array_like, shape (...), optional
        Guess of `lambda_`; it saves passes and does not change the answer.
    rtol : float, optional
        Relative accuracy of the divergence.

    Returns
    -------
    EntropyWeights
        Named tuple of ``weights``, ``lambda_`` and ``divergence``.

    Examples
    --------
    >>> from rrmstats.core import entropy_weights
    >>> weights, lambda_, divergence = entropy_weights([0.1, 0.2, 0.3, 50.0], eps_bar=0.25)
    >>> weights.round(3)
    array([0.34 , 0.333, 0.327, 0.   ])
    """
    losses = np.asarray(losses, dtype=float)
    if losses.ndim == 0 or losses.shape[-1] == 0:
        raise ValueError(f"losses must hold at least one observation, got shape {losses.shape}")
    n = losses.shape[-1]
    eps_bar = check_eps_bar(eps_bar)
    if freq_weights is None and (1 - eps_bar) * n < 1 - 1e-12:
        raise ValueError(
            f"eps_bar={eps_bar:g} leaves (1 - eps_bar) * n = {(1 - eps_bar) * n:.3g} of {n} "
            "observations; it must leave at least one: lower eps_bar"
        )
    batch = losses.reshape(-1, n)
    guess = None
    if lambda_start is not None:
        guess = np.broadcast_to(np.asarray(lambda_start, float), losses.shape[:-1]).reshape(-1)
    found = tilt(batch, eps_bar, base_weights(freq_weights, n), guess, rtol)
    return EntropyWeights(
        found.weights.reshape(losses.shape),
        found.lambda_.reshape(losses.shape[:-1])[()],
        found.divergence.reshape(losses.shape[:-1])[()],
    )


def check_eps_bar(eps_bar: Any) -> float:
    """Return `eps_bar` as a float in [0, 1), or say what is wrong with it."""
    number = eps_bar[()] if isinstance(eps_bar, np.ndarray) and eps_bar.ndim == 0 else eps_bar
    if isinstance(number, bool) or not isinstance(number, Real | Decimal):
        raise TypeError(f"eps_bar must be a number in [0, 1), got {eps_bar!r}; {ADVICE}")
    value = float(number)
    if not 0 <= value < 1:
        raise ValueError(f"eps_bar must be in [0, 1), got {value:g}; {ADVICE}")
    return value


def base_weights(freq_weights: ArrayLike | None, n: int) -> Array | None:
    """Return frequency weights scaled to sum to one, or None where they are all equal."""
    if freq_weights is None:
        return None
    given = np.asarray(freq_weights, dtype=float)
    if given.shape != (n,):
        raise ValueError(
            f"freq_weights must have shape ({n},), one weight per loss, got {given.shape}"
        )
    if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
        raise ValueError("freq_weights must be finite and nonnegative, and not all zero")
    if (given == given[0]).all():
        return None
    scaled = given / given.max()
    return scaled / scaled.sum()


def tilt(
    losses: Array, eps_bar: float | Array, base: Array | None, guess: Array | None, rtol: float
) -> EntropyWeights:
    """Solve a batch of weight steps from arguments already checked.

    `losses` have shape (b, n), `base` (n,) or (b, n), `eps_bar` one value or (b,). Weights may be
    uniform, on all rows or on those tied at the smallest loss.
    """
    seen = losses if base is None else np.where(base > 0, losses, np.inf)
    least = seen.min(axis=-1)
    if not np.isfinite(least).all() or np.isnan(losses).any():
        raise ValueError(
            "losses must be numbers or +inf, with at least one finite; found NaN, -inf or only "
            "+inf: check the data and the parameters for overflow"
        )
    excess = seen - least[:, None]
    parts = (excess == 0, np.isfinite(excess))
    if base is None:
        tied, room = (np.count_nonzero(part, axis=-1) / part.shape[-1] for part in parts)
    else:
        tied, room = (np.where(part, base, 0.0).sum(axis=-1) for part in parts)
    if (room < (1 - eps_bar) * (1 - 1e-12)).any():
        raise ValueError(
            f"more than a fraction eps_bar={np.max(eps_bar):g} of the losses is +inf, so that no "
            "weights have finite risk; raise eps_bar or fix the losses"
        )
    spread = np.broadcast_to(1.0 / losses.shape[-1] if base is None else base, excess.shape)
    found = EntropyWeights(np.empty_like(excess), np.empty(len(excess)), np.empty(len(excess)))
    uniform = (tied >= room * (1 - 1e-15)) | (room * (1 - 1e-12) <= 1 - eps_bar)
    exact = ~uniform & (tied >= (1 - eps_bar) * (1 - 1e-12))
    for rows, mass, lambda_ in ((uniform, room, np.inf), (exact, tied, 0.0)):
        if rows.any():
            chosen = np.isfinite(excess[rows]) if lambda_ else excess[rows] == 0
            found.weights[rows] = chosen * spread[rows] / mass[rows, None]
            found.lambda_[rows] = lambda_
            found.divergence[rows] = -np.log(np.minimum(mass[rows], 1.0))
    rest = ~(uniform | exact)
    if rest.all():
        return _root(excess, base, eps_bar, guess, rtol)
    if rest.any():
        start = None if guess is None else guess[rest]
        bound = eps_bar[rest] if isinstance(eps_bar, np.ndarray) else eps_bar
        solved = _root(excess[rest], None if base is None else spread[rest], bound, start, rtol)
        for whole, part in zip(found, solved, strict=True):
            whole[rest] = part
    return found


def _root(
    excess: Array, base: Array | None, eps_bar: float | Array, guess: Array | None, rtol: float
) -> EntropyWeights:
    """Find lambda for losses above their minimum, of shape (b, n); `excess` is overwritten.

    Newton's method on the logarithm of the divergence as a function of t = ln(beta),
    beta = scale / lambda: increasing and, without clusters of losses, concave, so that the
    steps from the left do not overshoot.
    """
    if guess is not None and _are_near(guess, excess.max(axis=-1)):
        scale = guess
    else:
        scale = _typical_excess(excess, eps_bar)
    budget = -np.log1p(-eps_bar)
    tolerance = rtol * budget + 4e-15
    log_n = np.log(excess.shape[-1]) if base is None else 0.0
    weights = np.empty_like(excess)
    t = np.zeros(len(scale))
    low, high = t - np.inf, t + np.inf
    with np.errstate(all="ignore"):
        np.divide(excess, scale[:, None], out=excess)
        np.minimum(excess, SATURATED, out=excess)
        for k in range(MAX_STEPS):
            beta = np.exp(t)
            np.multiply(excess, -beta[:, None], out=weights)
            np.exp(weights, out=weights)
            if base is not None:
                np.multiply(weights, base, out=weights)
            total = np.add.reduce(weights, axis=-1)
            mean = np.einsum("bn,bn->b", weights, excess) / total
            divergence = log_n - np.log(total) - beta * mean
            gap = divergence - budget
            open_ = np.abs(gap) > tolerance
            if not open_.any():
                break
            square = np.einsum("bn,bn,bn->b", weights, excess, excess) / total
            slope = beta * beta * (square - mean * mean) / divergence
            step = np.log(budget / divergence) / slope
            # 3-8 passes need no bracket; the rest is bisection across the whole range of doubles.
            if k < 8 and np.abs(step).max() < 3.0:
                t = t + step
                continue
            low, high = np.where(gap < 0, t, low), np.where(gap > 0, t, high)
            inside = (t + step > low) & (t + step < high) & (np.abs(step) < 20.0)
            t = np.where(open_, np.where(inside, t + step, _midpoint(t, low, high)), t)
            if not (open_ & (high - low > 1e-14)).any():
                break
    weights /= total[:, None]
    return EntropyWeights(weights, scale / beta, divergence)


def _are_near(guess: Array, largest: Array) -> bool:
    """Tell whether guesses of lambda are of the size of the losses, or not far from it."""
    with np.errstate(all="ignore"):
        return bool((np.abs(np.log(guess / largest)) < 0.1 * FARTHEST).all())


def _midpoint(t: Array, low: Array, high: Array) -> Array:
    """Return the middle of each bracket, or a point beyond its known side, ever further out."""
    stride = np.maximum(3.0, np.abs(t))
    outward = np.clip(np.where(np.isfinite(high), t - stride, t + stride), -FARTHEST, FARTHEST)
    return np.where(np.isfinite(low) & np.isfinite(high), 0.5 * (low + high), outward)


def _typical_excess(excess: Array, eps_bar: float | Array) -> Array:
    """Return a positive scale of each row: about the (1 - eps_bar) quantile of its excess."""
    some = excess[:, :: max(1, excess.shape[-1] // 512)]
    k = np.minimum(np.ceil((1 - eps_bar) * some.shape[-1]).astype(int), some.shape[-1] - 1)
    scale = np.partition(some, np.unique(k), axis=-1)[np.arange(len(some)), k]
    for i in np.flatnonzero(~((scale > 0) & (scale < np.inf))):
        positive = excess[i][(excess[i] > 0) & np.isfinite(excess[i])]
        scale[i] = np.median(positive)
    return scale
