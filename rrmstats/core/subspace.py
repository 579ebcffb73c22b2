"""Principal components: distances to a subspace, in the span of the data."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from rrmstats.core.consistency import efficient_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.minimise import Solution
from rrmstats.core.problem import SmoothProblem
from rrmstats.core.scatter import check_range, weighted_scatter
from rrmstats.core.tempered import kept_by_distance, tempered_fit


class SubspaceProblem(SmoothProblem):
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
    """

    default_starts: ClassVar[int] = 200

    def __init__(self, data: Array, q: int, demean: bool = True) -> None:
        self.data, self.q, self.demean = data, q, demean
        self.n_obs, self.dim = data.shape
        self.n_params = q + demean
        unit = 4 * (self.dim + 4) * np.finfo(float).eps
        self._noise = (unit * np.linalg.norm(data, axis=-1)) ** 2

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
        point, basis = self.split(theta)
        centred = self.data - point[..., None, :]
        rest = centred - (centred @ basis) @ np.swapaxes(basis, -1, -2)
        losses = np.einsum("...nd,...nd->...n", rest, rest)
        losses[losses <= self._noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and leading eigenvectors, shape (..., d + d * q)."""
        point = weights @ self.data * self.demean
        moment = weighted_scatter(self.data, weights, point)
        vectors = np.linalg.eigh(moment)[1]
        return self.join(point, vectors[..., ::-1][..., : self.q])

    def frame(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return scores (n, q), coordinates off the subspace (n, d - q), and their basis."""
        point, basis = self.split(theta)
        off = np.linalg.qr(basis, mode="complete")[0][..., self.q :]
        centred = self.data - point
        return centred @ basis, centred @ off, off

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss in the local coordinates, shape (n, k)."""
        x, y, _ = self.frame(theta)
        turn = -2.0 * (y[:, :, None] * x[:, None, :]).reshape(self.n_obs, -1)
        return np.hstack([turn, -2.0 * y]) if self.demean else turn

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

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away in local coordinates, shape (..., d + d * q)."""
        point, basis = self.split(theta)
        off = np.linalg.qr(basis, mode="complete")[0][..., self.q :]
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

    def take(self, rows: np.ndarray) -> SubspaceProblem:
        """Return the problem restricted to some rows."""
        return SubspaceProblem(self.data[rows], self.q, self.demean)


class ReducedSubspaceProblem(SubspaceProblem):
    """The subspace problem in the span of the data, scaled: wide data cost no more than tall.

    Observations are ``centre + unit * (data @ span.T)``, with the columns of `span` orthonormal.
    """

    def __init__(self, data: Array, q: int, demean: bool, column_unit: Array) -> None:
        n, d = data.shape
        self.centre = np.median(data, axis=0) if demean else np.zeros(d)
        scaled = (data - self.centre) / column_unit
        with np.errstate(over="ignore"):
            spread = np.median(np.linalg.norm(scaled, axis=1))
        self.unit = float(np.exp2(np.round(np.log2(spread)))) if spread > 0 else 1.0
        scaled = scaled / self.unit
        check_range(scaled)
        self.span = np.eye(d)
        if d > n:
            self.span = np.linalg.svd(scaled, full_matrices=False)[2].T
            scaled = scaled @ self.span
        if not q < scaled.shape[1]:
            raise ValueError(
                f"n_components={q} leaves nothing to lose: data of shape {data.shape} span "
                f"{scaled.shape[1]} dimensions, and fewer are needed; lower n_components"
            )
        super().__init__(scaled, q, demean)


def second_subspace(
    problem: SubspaceProblem, first: Solution, efficiency: float, share: Array | None
) -> Solution:
    """Return the subspace of a given efficiency, at the first step's variance off it."""
    point, basis = problem.split(first.theta)
    off = np.linalg.qr(basis, mode="complete")[0][:, problem.q :]
    moment = weighted_scatter(problem.data, first.weights, point)
    values, vectors = np.linalg.eigh(off.T @ moment @ off)
    variances = np.maximum(untilted(values, first.lambda_), np.finfo(float).tiny)
    square = ((problem.data - point) @ (off @ vectors)) ** 2 / variances
    kept = kept_by_distance(square.sum(axis=1), problem.dim - problem.q, efficiency)
    ratio = efficient_ratio(efficiency, problem.dim - problem.q)
    lambda_ = 2 * float(variances.mean()) / (1 / ratio - 1)
    return tempered_fit(problem, first, lambda_, share, kept=kept)


def untilted(variances: Array, lambda_: float) -> Array:
    """Return the Gaussian variances that the weights exp(-y'y / lambda) narrowed to these.

    Precisions add: the weights add 2 / lambda to each.
    """
    if not 0 < lambda_ < np.inf:
        return variances
    shrink = 1.0 - 2.0 * variances / lambda_
    return variances / np.maximum(shrink, np.finfo(float).eps)
