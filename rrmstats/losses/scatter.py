"""Location and scatter of Gaussian data: the covariance problem, also used within subspaces."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem
from rrmstats.core.frames import sign_frame, typical_spread
from rrmstats.core.search import Solution
from rrmstats.core.subsets import USUAL_STARTS, affordable_starts
from rrmstats.losses.matrices import (
    FLAT,
    root_values,
    symmetric_root,
    triangular_root,
    weighted_scatter,
)

# Coordinates of a step up to which Newton's steps cost less in all than Algorithm 1.
NEWTON_MAX = 20
# Standard deviations below this part of the largest are taken to be so large.
LEAST_ROOT = 1e-6


class MomentProblem(EstimableProblem):
    """Losses of rows whose weighted fit needs two moments of them, all of one scale or whitened.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Observations in units near their spread.
    demean : bool
        False fixes the location at zero.
    """

    def __init__(self, data: Array, demean: bool) -> None:
        self.data, self.demean = data, demean
        self.n_obs, self.dim = data.shape

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The observations."""
        return (self.data,)

    def moments(self, weights: Array) -> Array:
        """Return the mean and second moment about zero under weights (n,), shape (d + d * d,).

        One pass over the rows.
        """
        return normalized(row_sums(moment_sums, self.data, weights))

    def central(self, moments: Array) -> tuple[Array, Array]:
        """Return the location (d,) and the covariance (d, d) of moments about zero.

        Zero, and the second moments, where the location is fixed.
        """
        d = self.dim
        location, second = moments[:d] * self.demean, moments[d:].reshape(d, d)
        return location, second - np.outer(location, location)


class ScatterProblem(MomentProblem):
    """Losses (z - mu)' S^-1 (z - mu) + ln det S; theta holds mu, then S row by row.

    The local coordinates of a step are a shift a and a symmetric matrix A in the frame where
    S = L L' is the identity: mu moves to mu + L a, S to L exp(-A) L'.

    Parameters
    ----------
    data : ndarray, shape (n, d)
        Observations in units near their spread; see `unit_spread`.
    demean : bool, optional
        False fixes mu at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import ScatterProblem
    >>> problem = ScatterProblem(rng.standard_normal((200, 2)))
    >>> mean, cov = problem.split(minimize(problem, eps_bar=0.1).theta)
    >>> mean.shape, cov.shape
    ((2,), (2, 2))
    """

    def __init__(self, data: Array, demean: bool = True) -> None:
        super().__init__(data, demean)
        self.n_params = self.dim + demean

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return location (..., d) and scatter (..., d, d)."""
        d = self.dim
        return theta[..., :d], theta[..., d:].reshape(*theta.shape[:-1], d, d)

    def join(self, location: Array, scatter: Array) -> Array:
        """Return theta of a location and a scatter whose variances are at least FLAT."""
        if triangular_root(scatter) is None:
            values, vectors = np.linalg.eigh(scatter)
            low = values[..., 0] < FLAT
            floored = vectors * np.maximum(values, FLAT)[..., None, :]
            raised = floored @ np.swapaxes(vectors, -1, -2)
            scatter = np.where(low[..., None, None], raised, scatter)
        flat = scatter.reshape(*scatter.shape[:-2], self.dim**2)
        return np.concatenate([location, flat], axis=-1)

    def whitened(self, theta: Array) -> tuple[Array, Array]:
        """Return the data in the frame of theta (..., n, d), and ln det S (...)."""
        location, scatter = self.split(theta)
        spread, vectors = root_values(scatter)
        inverse = (vectors / spread[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        centered = self.data - location[..., None, :]
        return centered @ inverse, 2.0 * np.log(spread).sum(axis=-1)

    def distances(self, theta: Array) -> Array:
        """Return the squared distances from the location, shape (..., n)."""
        return self._distances(theta)[0]

    def _distances(self, theta: Array) -> tuple[Array, Array]:
        """Return the squared distances (..., n) and ln det S (...), by any root of S."""
        location, scatter = self.split(theta)
        root = triangular_root(scatter)
        if root is None:
            u, log_det = self.whitened(theta)
        else:
            inverse = np.swapaxes(np.linalg.inv(root), -1, -2)
            u = (self.data - location[..., None, :]) @ inverse
            log_det = 2.0 * np.log(np.einsum("...ii->...i", root)).sum(axis=-1)
        return np.einsum("...nd,...nd->...n", u, u), log_det

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        square, log_det = self._distances(theta)
        return square + log_det[..., None]

    def least_loss(self, theta: Array) -> float:
        """Return ln det S, the loss of an observation at the location."""
        return float(self._distances(theta)[1])

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and covariance, shape (..., d + d * d)."""
        location = (
            weights @ self.data if self.demean else np.zeros((*weights.shape[:-1], self.dim))
        )
        return self.join(location, weighted_scatter(self.data, weights, location))

    @cached_property
    def _basis(self) -> Array:
        """Basis of the symmetric matrices, shape (d * (d + 1) / 2, d, d)."""
        rows, columns = np.triu_indices(self.dim)
        basis = np.zeros((len(rows), self.dim, self.dim))
        index = np.arange(len(rows))
        basis[index, rows, columns] = 1.0
        basis[index, columns, rows] = 1.0
        return basis

    @property
    def n_coordinates(self) -> int:
        """Length of a step."""
        return self.dim * self.demean + self.dim * (self.dim + 1) // 2

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.n_params, eps_bar, USUAL_STARTS)

    @property
    def newton_pays(self) -> bool:
        """Whether steps are short enough for their Hessian."""
        return self.n_coordinates <= NEWTON_MAX

    @cached_property
    def _robust(self) -> tuple[Array, Array]:
        """Location (d,) and scatter (d, d) with the axes of the signs and typical spreads."""
        center, axes = sign_frame(self.data, self.demean)
        scores = (self.data - center) @ axes
        middle = np.median(scores, axis=0) * self.demean
        variances = np.maximum(typical_spread(scores - middle) ** 2, FLAT)
        return center + axes @ middle, (axes * variances) @ axes.T

    def robust_starts(self) -> Array:
        """Return the scatter with the axes of the signs, shape (1, d + d * d)."""
        location, scatter = self._robust
        return self.join(location, scatter)[None]

    def pulls(self, theta: Array) -> Array:
        """Return the pulls on the location, in units of a robust scatter, shape (n, d)."""
        location, scatter = self._robust
        spread, vectors = root_values(scatter)
        return (self.data - location) @ vectors / spread

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss in the local coordinates, shape (n, k)."""
        u, _ = self.whitened(theta)
        return row_map(whitened_gradients, u, demean=self.demean)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        u, _ = self.whitened(theta)
        moment = u.T @ (weights[:, None] * u)
        k = len(self._basis)
        turned = self._basis @ moment
        inner = turned.reshape(k, -1) @ self._basis.transpose(0, 2, 1).reshape(k, -1).T
        inner = 0.5 * (inner + inner.T)
        if not self.demean:
            return inner
        cross = -2.0 * (self._basis @ (weights @ u)).T
        return np.block([[2.0 * weights.sum() * np.eye(self.dim), cross], [cross.T, inner]])

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away in local coordinates, shape (..., d + d * d)."""
        location, scatter = self.split(theta)
        root = symmetric_root(scatter)
        if self.demean:
            location = location + (root @ step[..., : self.dim, None])[..., 0]
            step = step[..., self.dim :]
        tangent = np.tensordot(step, self._basis, axes=1)
        values, vectors = np.linalg.eigh(tangent)
        change = (vectors * np.exp(-np.clip(values, -50, 50))[..., None, :]) @ np.swapaxes(
            vectors, -1, -2
        )
        return self.join(location, root @ change @ root)

    def directions(self, theta: Array, steps: Array) -> tuple[Array, Array]:
        """Return what small steps, shape (m, k), do to location (m, d) and scatter (m, d, d)."""
        root = symmetric_root(self.split(theta)[1])
        location = steps[:, :1] * np.zeros(self.dim)
        if self.demean:
            location, steps = steps[:, : self.dim] @ root, steps[:, self.dim :]
        return location, row_map(scatter_changes, steps, basis=self._basis, root=root)

    def least_axis(self, theta: Array) -> tuple[Array, Array]:
        """Return distances along the axis of least variance, (n,), and that axis, (d,)."""
        location, scatter = self.split(theta)
        axis = np.linalg.eigh(scatter)[1][:, 0]
        return np.abs((self.data - location) @ axis), axis

    def is_flat(self, solution: Solution) -> bool:
        """Tell whether the observations with weight lie on a hyperplane.

        The eigenvalue would not tell, which rounding keeps far from zero.
        """
        distance = self.least_axis(solution.theta)[0]
        return bool(solution.weights @ distance**2 <= 4 * FLAT)

    @property
    def subset_size(self) -> int:
        """Rows that determine a start."""
        return self.dim + 3

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return means and covariances of subsets of rows, shape (m, d + d * d)."""
        rows = self.data[subsets]
        location = rows.mean(axis=1) if self.demean else np.zeros((len(subsets), self.dim))
        centered = rows - location[:, None, :]
        return self.join(location, np.swapaxes(centered, 1, 2) @ centered / subsets.shape[1])

    @property
    def with_rows(self) -> Callable[..., ScatterProblem]:
        """A function that makes the problem of other rows."""
        return partial(ScatterProblem, demean=self.demean)


def whitened_gradients(u: Array, demean: bool) -> Array:
    """Return the gradients of losses of whitened rows (n, d), shape (n, k)."""
    rows, columns = np.triu_indices(u.shape[1])
    double = np.where(rows == columns, 1.0, 2.0)
    scatter = u[:, rows] * u[:, columns] * double - (rows == columns)
    return np.hstack([-2.0 * u, scatter]) if demean else scatter


def scatter_changes(steps: Array, basis: Array, root: Array) -> Array:
    """Return the changes (m, d, d) of a scatter with a given root, for steps of its shape."""
    return np.asarray(-root @ np.tensordot(steps, basis, axes=1) @ root)


def moment_sums(data: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the sums of weights w, w z and w z z' over rows z."""
    weighted = weights[:, None] * data
    return weights.sum(), weighted.sum(axis=0), data.T @ weighted


def normalized(sums: tuple[Any, Array, Array]) -> Array:
    """Return `moment_sums` as the mean and second moment about zero, shape (d + d * d,)."""
    mass, first, second = sums
    return np.concatenate([first, second.ravel()]) / mass
