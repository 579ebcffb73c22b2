"""Problems whose losses depend on a linear predictor: kernels shared by regressions."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.problem import SmoothProblem

# Rows whose slice of the design stays in a core's cache.
CHUNK = 4096
# Below this many entries the products of pairs of columns are stored: Grams are one product.
PAIRS_MAX = 400_000
# Squared condition number past which normal equations lose the eighth digit.
GRAM_CONDITION = 1e8
# Rows enough to tell the condition of a design; the loop notices the rare worse one.
CONDITION_ROWS = 10_000
# Sizes past which squares and their sums could overflow or vanish.
EXTREME = 1e60


class LinearProblem(SmoothProblem):
    """Losses rho(y_i, x_i' theta), for one design and a smooth rho.

    Subclasses define `link_losses` and `link_slopes` as functions of the linear predictor.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
        Design of full column rank and moderate condition; see `Design`.
    """

    default_starts: ClassVar[int] = 200

    def __init__(self, endog: Array, exog: Array) -> None:
        self.endog, self.exog = endog, exog
        self.n_obs, self.n_params = exog.shape

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors of shape (..., n)."""
        raise NotImplementedError

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the losses in the linear predictor."""
        raise NotImplementedError

    def predictor(self, theta: Array) -> Array:
        """Return ``exog @ theta``, shape (..., n)."""
        return theta @ self.exog.T

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        return self.link_losses(self.predictor(theta))

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss, shape (n, k)."""
        return self.link_slopes(self.predictor(theta))[0][:, None] * self.exog

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        second = self.link_slopes(self.predictor(theta))[1]
        return self.gram(weights * second, np.empty((*weights.shape[:-1], 0, self.n_obs)))[0]

    def concentrated(
        self, theta: Array, losses: Array, weights: Array, lambda_: Array
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of the concentrated risk without forming gradients.

        Every term that is quadratic in the design shares one weighted Gram matrix.
        """
        first, second = self.link_slopes(self.predictor(theta))
        tilted = (lambda_ > 0) & (lambda_ < np.inf)
        beta = np.divide(1.0, lambda_, out=np.zeros_like(lambda_), where=tilted)
        spread = losses - np.einsum("bn,bn->b", weights, losses)[:, None]
        variance = np.einsum("bn,bn,bn->b", weights, spread, spread)
        pulled = weights * first
        second *= weights
        second -= beta[:, None] * pulled * first
        hessian, moments = self.gram(second, np.stack([pulled, pulled * spread], axis=-2))
        gradient, cross = moments[:, 0], moments[:, 1]
        drift = np.divide(
            cross, variance[:, None], out=np.zeros_like(cross), where=variance[:, None] > 0
        )
        hessian += beta[:, None, None] * (
            gradient[:, :, None] * gradient[:, None, :] + cross[:, :, None] * drift[:, None, :]
        )
        return gradient, hessian, drift

    def tempered(self, theta: Array, tilt: Array, lambda_: float) -> tuple[Array, Array]:
        """Return the derivatives of the risk at a fixed lambda without forming gradients."""
        first, second = self.link_slopes(self.predictor(theta))
        pulled = tilt * first
        hessian, moments = self.gram(tilt * second - pulled * first / lambda_, pulled[None])
        return moments[0], hessian

    @cached_property
    def _pairs(self) -> Array | None:
        """Products of pairs of columns, shape (n, k * k), for small problems."""
        n, k = self.exog.shape
        if n * k * k > PAIRS_MAX:
            return None
        return (self.exog[:, :, None] * self.exog[:, None, :]).reshape(n, k * k)

    def gram(self, weights: Array, targets: Array) -> tuple[Array, Array]:
        """Return ``exog' diag(weights) exog`` and ``targets @ exog`` in one pass over the design.

        Parameters
        ----------
        weights : ndarray, shape (..., n)
        targets : ndarray, shape (..., t, n)

        Returns
        -------
        gram : ndarray, shape (..., k, k)
        moments : ndarray, shape (..., t, k)
        """
        k = self.exog.shape[1]
        if self._pairs is not None:
            return (weights @ self._pairs).reshape(*weights.shape[:-1], k, k), targets @ self.exog
        gram = np.zeros((*weights.shape[:-1], k, k))
        moments = np.zeros((*targets.shape[:-1], k))
        for i in range(0, self.n_obs, CHUNK):
            rows = self.exog[i : i + CHUNK]
            gram += rows.T @ (weights[..., i : i + CHUNK, None] * rows)
            moments += targets[..., i : i + CHUNK] @ rows
        return gram, moments

    def weighted_least_squares(self, weights: Array, target: Array) -> Array:
        """Return the weighted least squares fit to `target`, shape (..., k).

        Normal equations where they keep eight digits, an orthogonal factorisation elsewhere.
        """
        gram, moments = self.gram(weights, (weights * target)[..., None, :])
        solution, sound = solve_gram(gram, moments[..., 0, :])
        if sound.all():
            return solution
        targets = np.broadcast_to(target, weights.shape)
        for i in np.ndindex(sound.shape):
            if not sound[i]:
                solution[i] = orthogonal_fit(self.exog, targets[i], weights[i])
        return solution


def solve_gram(gram: Array, right: Array) -> tuple[Array, Array]:
    """Solve positive semi-definite systems of shape (..., k, k), and say which are sound."""
    diagonal = np.sqrt(np.einsum("...ii->...i", gram))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = gram / (diagonal[..., :, None] * diagonal[..., None, :])
        scaled = right / diagonal
    try:
        inverse = np.linalg.inv(unit)
    except np.linalg.LinAlgError:
        unit = np.where(np.isfinite(unit), unit, 0.0)
        inverse = np.linalg.pinv(unit, hermitian=True)
        rank = np.linalg.matrix_rank(unit, hermitian=True)
        inverse[rank < unit.shape[-1]] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        solution = np.einsum("...ij,...j->...i", inverse, scaled) / diagonal
        condition = np.abs(inverse).sum(axis=-1).max(axis=-1)
    return solution, np.asarray(condition < GRAM_CONDITION) & np.isfinite(solution).all(axis=-1)


def orthogonal_fit(exog: Array, target: Array, weights: Array) -> Array:
    """Return a weighted least squares fit by an orthogonal factorisation.

    Among several it is the one of least norm when every column is in units of its largest entry.
    """
    used = weights > 0
    root = np.sqrt(weights[used] / weights.max())
    rows = root[:, None] * exog[used]
    unit = np.abs(rows).max(axis=0)
    unit[unit == 0] = 1.0
    return np.linalg.lstsq(rows / unit, root * target[used], rcond=None)[0] / unit


class Design:
    """A design with the same column space as `exog` that is safe for normal equations.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
        Design, of any rank and scale.

    Attributes
    ----------
    exog : ndarray, shape (n, r)
        The given design where its condition allows, else an orthonormal basis of its columns.
    back : ndarray, shape (k, r), or None
        Takes parameters of the basis to the parameters of least norm of the given design; None
        where they are the same.
    """

    def __init__(self, exog: Array) -> None:
        self.exog = exog
        self.back: Array | None = None
        scale = power_of_two(exog, axis=0)
        some = exog[:: max(1, len(exog) // CONDITION_ROWS)]
        if (scale == 1).all() and solve_gram(some.T @ some, np.zeros(exog.shape[1]))[1]:
            return
        check_range(exog, scale)
        left, singular, right = np.linalg.svd(exog / scale, full_matrices=False)
        rank = int((singular > singular[0] * max(exog.shape) * np.finfo(float).eps).sum())
        back = (right[:rank].T / singular[:rank]) / scale[:, None]
        if rank < exog.shape[1]:
            null = np.linalg.qr(right[rank:].T / scale[:, None])[0]
            back = back - null @ (null.T @ back)
        self.exog, self.back = left[:, :rank], back
        self._forth = singular[:rank, None] * right[:rank] * scale

    def to_params(self, theta: Array) -> Array:
        """Return the parameters of the given design."""
        return theta if self.back is None else self.back @ theta

    def from_params(self, params: Array) -> Array:
        """Return the parameters of the basis."""
        return params if self.back is None else self._forth @ params


def check_range(exog: Array, scale: Array) -> None:
    """Raise where the entries of a column are too far apart to compute with."""
    for j in np.flatnonzero(scale > 1):
        typical = np.median(np.abs(exog[exog[:, j] != 0, j]))
        if typical < scale[j] / EXTREME:
            raise ValueError(
                f"column {j} of the design has entries from {typical:.3g} to {scale[j]:.3g}, too "
                "far apart to compute with; mend or drop the rows with the largest"
            )


def power_of_two(values: Array, axis: int | None = None) -> Array:
    """Return a unit, free of rounding, for data too large or too small to square; else 1."""
    size = np.maximum(values.max(axis=axis), -values.min(axis=axis))
    extreme = (size > 0) & ((size > EXTREME) | (size < 1 / EXTREME))
    return np.where(extreme, np.exp2(np.floor(np.log2(np.where(extreme, size, 1.0)))), 1.0)
