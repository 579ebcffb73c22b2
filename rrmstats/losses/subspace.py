"""Squared distances to a subspace: principal components."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.core.frames import sign_frame
from rrmstats.core.subsets import USUAL_STARTS, affordable_starts
from rrmstats.losses.matrices import weighted_scatter
from rrmstats.losses.scatter import MomentProblem

# Coordinates of a step up to which Newton's steps cost less in all than Algorithm 1, which takes
# hundreds of steps where no direction has a variance of its own.
NEWTON_MAX = 60


class SubspaceProblem(MomentProblem):
    """Squared distances to a q-dimensional affine subspace.

    theta holds a point of the subspace (d,), then its orthonormal basis row by row (d, q). The
    local coordinates of a step turn the basis towards its complement and shift the point along
    the complement.

    Parameters
    ----------
    data : ndarray, shape (n, d)
    q : int
        Dimension of the subspace, less than d.
    demean : bool, optional
        False keeps the subspace through the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import SubspaceProblem
    >>> problem = SubspaceProblem(rng.standard_normal((50, 3)) * [5.0, 1.0, 1.0], 1)
    >>> point, basis = problem.split(minimize(problem, eps_bar=0.1).theta)
    >>> basis.shape, bool(abs(basis[0, 0]) > 0.95)
    ((3, 1), True)
    """

    least_risk = 0.0

    def __init__(self, data: Array, q: int, demean: bool = True) -> None:
        super().__init__(data, demean)
        self.q, self.n_params = q, q + demean
        unit = 4 * (self.dim + 4) * np.finfo(float).eps
        self._noise = unit**2 * np.einsum("nd,nd->n", data, data)

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the point (..., d) and the basis (..., d, q)."""
        d = self.dim
        return theta[..., :d], theta[..., d:].reshape(*theta.shape[:-1], d, self.q)

    def join(self, point: Array, basis: Array) -> Array:
        """Return theta of a point and a basis."""
        flat = basis.reshape(*basis.shape[:-2], self.dim * self.q)
        return np.concatenate([point, flat], axis=-1)

    def losses(self, theta: Array) -> Array:
        """Return squared distances, zero where rounding alone could produce them."""
        if self.blocks is not None:
            return row_map(losses_of, self.data, make=self.with_rows, theta=theta, tail=())
        point, basis = self.split(theta)
        centered = self.data - point[..., None, :]
        rest = centered - (centered @ basis) @ np.swapaxes(basis, -1, -2)
        losses = np.einsum("...nd,...nd->...n", rest, rest)
        losses[losses <= self._noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and leading eigenvectors, shape (..., d + d * q)."""
        point = weights @ self.data * self.demean
        return self._leading(point, weighted_scatter(self.data, weights, point))

    def _leading(self, point: Array, moment: Array) -> Array:
        """Return theta of a point and the leading eigenvectors of a covariance."""
        vectors = np.linalg.eigh(moment)[1]
        return self.join(point, vectors[..., ::-1][..., : self.q])

    def frame(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return scores (n, q), coordinates off the subspace (n, d - q), and their basis."""
        point, basis = self.split(theta)
        off = complement(basis)
        centered = self.data - point
        return centered @ basis, centered @ off, off

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss in the local coordinates, shape (n, k)."""
        x, y, _ = self.frame(theta)
        return row_map(turning_gradients, x, y, demean=self.demean)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        x, y, _ = self.frame(theta)
        codim = self.dim - self.q
        inside = x.T @ (weights[:, None] * x)
        outside = y.T @ (weights[:, None] * y)
        turn = 2.0 * (np.kron(np.eye(codim), inside) - np.kron(outside, np.eye(self.q)))
        if not self.demean:
            return turn
        cross = 2.0 * np.kron(np.eye(codim), (weights @ x)[:, None])
        return np.block([[turn, cross], [cross.T, 2.0 * weights.sum() * np.eye(codim)]])

    @property
    def n_coordinates(self) -> int:
        """Length of a step."""
        return (self.dim - self.q) * (self.q + self.demean)

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.dim, eps_bar, USUAL_STARTS)

    @property
    def newton_pays(self) -> bool:
        """Whether steps are short enough for their Hessian."""
        return self.n_coordinates <= NEWTON_MAX

    def robust_starts(self) -> Array:
        """Return the subspace of the leading axes of the signs, shape (1, d + d * q)."""
        center, axes = sign_frame(self.data, self.demean)
        return self.join(center, axes[:, : self.q])[None]

    def pulls(self, theta: Array) -> Array:
        """Return the observations: those far out along one direction turn the subspace."""
        return self.data

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away in local coordinates, shape (..., d + d * q)."""
        point, basis = self.split(theta)
        off = complement(basis)
        codim = self.dim - self.q
        turn = step[..., : codim * self.q].reshape(*step.shape[:-1], codim, self.q)
        if self.demean:
            point = point + (off @ step[..., codim * self.q :, None])[..., 0]
        return self.join(point, np.linalg.qr(basis + off @ turn)[0])

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the subspaces through subsets of rows, shape (m, d + d * q)."""
        rows = self.data[subsets]
        point = rows.mean(axis=1) if self.demean else np.zeros((len(subsets), self.dim))
        right = np.linalg.svd(rows - point[:, None, :], full_matrices=False)[2]
        return self.join(point, np.swapaxes(right[:, : self.q], 1, 2))

    @property
    def with_rows(self) -> Callable[..., SubspaceProblem]:
        """A function that makes the problem of other rows."""
        return partial(SubspaceProblem, q=self.q, demean=self.demean)


def losses_of(data: Array, make: Callable[..., SubspaceProblem], theta: Array) -> Array:
    """Return the losses of some rows, shape (n,), as one step of an expression."""
    return make(data).losses(theta)


def turning_gradients(x: Array, y: Array, demean: bool) -> Array:
    """Return the gradients of losses (n, k), from coordinates on a basis and off it."""
    turn = -2.0 * (y[:, :, None] * x[:, None, :]).reshape(len(x), x.shape[1] * y.shape[1])
    return np.hstack([turn, -2.0 * y]) if demean else turn


def complement(basis: Array) -> Array:
    """Return an orthonormal basis of what is orthogonal to a basis, shape (..., d, d - q)."""
    return np.linalg.qr(basis, mode="complete")[0][..., basis.shape[-1] :]
