"""Problems whose losses depend on a linear predictor: kernels shared by regressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import aligned, blocked, row_sums, smallest, taken
from rrmstats.core.blocks import sample_places
from rrmstats.core.design import (
    WIDE,
    Thinned,
    exact_fit,
    orthogonal_fit,
    solve_gram,
)
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem
from rrmstats.core.frames import column_frame, independent_rows
from rrmstats.core.newton import damped_newton
from rrmstats.core.polish import minimum_on_rows
from rrmstats.core.starts import affordable_starts

# Rows whose slice of the design stays in a core's cache.
CHUNK = 4096
# Below this many entries the products of pairs of columns are stored: Grams are one product.
PAIRS_MAX = 400_000
# Newton steps of a weighted fit, and those that improve a start.
FIT_STEPS = 50
IMPROVING_STEPS = 2


class LinearProblem(EstimableProblem):
    """Losses rho(y_i, x_i' theta), for one design and a smooth rho.

    Subclasses define `link_losses` and `link_slopes` as functions of the linear predictor; that
    is all. Where the weighted fit has a closed form, they define `weighted_fit` too.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    exog : ndarray, shape (n, k)
        Design of full column rank and moderate condition; see `Design`.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import LinearProblem, minimize
    >>> class LogCosh(LinearProblem):
    ...     def link_losses(self, eta):
    ...         return np.log(np.cosh(eta - self.endog))
    ...
    ...     def link_slopes(self, eta):
    ...         slope = np.tanh(eta - self.endog)
    ...         return slope, 1 - slope**2
    >>> y = np.array([2.0, 3.0, 1.0, 2.0, 2.0, 90.0])
    >>> minimize(LogCosh(y, np.ones((6, 1))), eps_bar=0.2).theta.round(1)
    array([2.])
    """

    def __init__(self, endog: Array, exog: Array) -> None:
        self.endog, self.exog = endog, exog
        #: The columns as given, where `exog` is another basis of them.
        self.columns = exog
        self.n_obs, self.n_params = exog.shape
        #: Every loss has ``theta' ridge theta / 2`` added to it, shape (k, k).
        self.ridge: Array = np.zeros((self.n_params, self.n_params))
        self._thinned: dict[int, Thinned] = {}

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors of shape (..., n)."""
        raise NotImplementedError(f"{type(self).__name__} must define link_losses(eta)")

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the losses in the linear predictor."""
        raise NotImplementedError(f"{type(self).__name__} must define link_slopes(eta)")

    def thinned(self, count: int) -> Thinned:
        """Return about `count` rows, evenly spaced among those on which decisions are made."""
        if count not in self._thinned:
            drawn = sample_places(self.n_obs)
            places = drawn[:: max(1, len(drawn) // count)]
            self._thinned[count] = Thinned(places, *taken(places, self.endog, self.exog))
        return self._thinned[count]

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The response and the design."""
        return self.endog, self.exog

    @property
    def with_rows(self) -> Callable[..., LinearProblem]:
        """A function that makes the problem of other rows."""
        return type(self)

    def take(self, rows: np.ndarray) -> LinearProblem:
        """Return the problem restricted to some rows."""
        columns, *arrays = taken(rows, self.columns, *self.row_arrays)
        part = self.with_rows(*arrays)
        part.columns = columns
        return part

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of the weighted loss by damped Newton steps, shape (..., k)."""
        if self.blocks is not None:
            return self._fit_in_blocks(aligned(weights, self.blocks), theta)
        batch = weights.reshape(-1, self.n_obs)
        if theta is None:
            start = self.start(batch)
        else:
            start = np.broadcast_to(theta, (*weights.shape[:-1], self.n_params))
            start = start.reshape(-1, self.n_params).copy()
        return self._newton(batch, start, FIT_STEPS).reshape(*weights.shape[:-1], -1)

    def _fit_in_blocks(self, weights: Array, theta: Array | None) -> Array:
        """Return the minimizer from `theta`, or from that on a sample, shape (k,)."""
        if theta is None:
            places = sample_places(self.n_obs)
            (share,) = taken(places, weights)
            theta = self.take(places).weighted_fit(share / share.sum())
        return minimum_on_rows(self, weights, theta, np.inf).theta

    def start(self, weights: Array) -> Array:
        """Return parameters from which a weighted fit starts, shape (..., k)."""
        return np.zeros((*weights.shape[:-1], self.n_params))

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters a few Newton steps towards the weighted fit, shape (b, k)."""
        return self._newton(weights, theta, IMPROVING_STEPS)

    def _newton(self, weights: Array, theta: Array, steps: int) -> Array:
        return damped_newton(
            lambda t, places: np.einsum("bn,bn->b", weights[places], self.losses(t)),
            lambda t, places: self.weighted_slopes(t, weights[places]),
            self.retract,
            theta,
            steps,
        )

    def products(
        self, weights: Sequence[Array], targets: Sequence[Array], values: Sequence[Array]
    ) -> tuple[list[Array], list[Array], list[float]]:
        """Return several sums over the rows; in one pass where these lie in blocks.

        Parameters
        ----------
        weights, targets, values : sequence of ndarray, shape (n,)

        Returns
        -------
        grams : list of ndarray, shape (k, k)
            ``exog' diag(w) exog`` of each of the weights.
        moments : list of ndarray, shape (k,)
            ``t @ exog`` of each of the targets.
        totals : list of float
            Sums of each of the values.
        """
        if self.blocks is not None:
            kernel = partial(_products, len(weights), len(targets))
            grams, moments, totals = row_sums(kernel, self.exog, *weights, *targets, *values)
            return list(grams), list(moments), [float(total) for total in totals]
        none = np.empty((0, self.n_obs))
        return (
            [self.gram(w, none)[0] for w in weights],
            [t @ self.exog for t in targets],
            [float(v.sum()) for v in values],
        )

    def weighted_slopes(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        """Return gradients (b, k) and Hessians (b, k, k) of the weighted losses."""
        first, second = self.link_slopes(self.predictor(theta))
        hessian, moments = self.gram(weights * second, (weights * first)[:, None, :])
        return moments[:, 0, :] + theta @ self.ridge, hessian + self.ridge

    def predictor(self, theta: Array) -> Array:
        """Return ``exog @ theta``, shape (..., n)."""
        return theta @ self.exog.T

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        losses = self.link_losses(self.predictor(theta))
        if not self.ridge.any():
            return losses
        return losses + 0.5 * np.sum(theta @ self.ridge * theta, axis=-1)[..., None]

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss, shape (n, k)."""
        found = self.link_slopes(self.predictor(theta))[0][:, None] * self.exog
        return found + self.ridge @ theta if self.ridge.any() else found

    @property
    def gradients_pay(self) -> bool:
        """Whether many steps by gradients alone cost less than a few of Newton's."""
        return self.n_params > WIDE

    def weighted_gradient(self, theta: Array, weights: Array) -> Array:
        """Return the gradient of the weighted loss, shape (k,)."""
        pulled = (weights * self.link_slopes(self.predictor(theta))[0]) @ self.exog
        return pulled + weights.sum() * (self.ridge @ theta)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        second = self.link_slopes(self.predictor(theta))[1]
        none = np.empty((*weights.shape[:-1], 0, self.n_obs))
        return self.gram(weights * second, none)[0] + self.ridge

    def tilted_sums(
        self, theta: Array, losses: Array, weights: Array, beta: Array
    ) -> tuple[Array, Array, Array]:
        """Return the sums that Newton's method needs without forming gradients.

        Every term that is quadratic in the design shares one weighted Gram matrix.
        """
        first, second = self.link_slopes(self.predictor(theta))
        pulled = weights * first
        curvature, moments = self.gram(
            weights * second - beta[:, None] * pulled * first,
            np.stack([pulled, pulled * losses], axis=-2),
        )
        gradient, cross = moments[:, 0], moments[:, 1]
        if not self.ridge.any():
            return gradient, cross, curvature
        common, mass = theta @ self.ridge, weights.sum(axis=-1)[:, None]
        half = (gradient + 0.5 * mass * common)[:, :, None] * common[:, None, :]
        both = half + np.swapaxes(half, 1, 2)
        curvature += mass[:, :, None] * self.ridge - beta[:, None, None] * both
        with_losses = np.einsum("bn,bn->b", weights, losses)[:, None]
        return gradient + mass * common, cross + with_losses * common, curvature

    def pulls(self, theta: Array) -> Array:
        """Return the gradients of the losses in units of the spread of each column, (n, k)."""
        return self.link_slopes(self.predictor(theta))[0][:, None] * self._frame

    @cached_property
    def _frame(self) -> Array:
        return column_frame(self.columns)

    def subset_solutions(self, subsets: np.ndarray, target: Array) -> Array:
        """Return least squares fits to subsets of rows (m, k); NaN where rows are dependent."""
        exog = self.exog[subsets]
        right = np.einsum("mij,mi->mj", exog, target[subsets])
        theta, sound = solve_gram(np.swapaxes(exog, -1, -2) @ exog, right)
        return np.where(sound[:, None], theta, np.nan)

    def independent_fit(self, drawn: np.ndarray, target: Array) -> Array:
        """Return the exact fit to the first independent rows of a random order, shape (k,)."""
        rows = drawn[: self.n_params]
        if self.n_params > WIDE:  # more than rounding is left of them, and the search is slow
            found = exact_fit(self.exog[rows], target[rows])
            if np.isfinite(found).all():
                return found
        rows = drawn[independent_rows(self.exog[drawn])]
        return exact_fit(self.exog[rows], target[rows])

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.n_params, eps_bar)

    def determines(self, rows: np.ndarray) -> bool:
        """Tell whether the design of some rows has full rank."""
        some = self.exog[rows]
        return bool(solve_gram(some.T @ some, np.zeros(self.n_params))[1])

    def completed(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return some rows, with as many of the others as give the design full rank."""
        if self.blocks is not None:
            return self._completed_in_blocks(rows)
        both = np.concatenate([rows, others])
        return np.union1d(rows, both[independent_rows(self.exog[both])])

    def _completed_in_blocks(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows with those that reach furthest out of their span, one at a time."""
        some = self.exog[rows]
        for _ in range(self.n_params):
            unit = np.abs(some).max(axis=0)
            unit[unit == 0] = 1.0
            _, singular, right = np.linalg.svd(some / unit, full_matrices=True)
            rank = int((singular > 1e-7 * singular[0]).sum())
            if rank == self.n_params:
                break
            free = right[rank:].T / unit[:, None]
            new = smallest(1, -np.abs(self.exog @ free).max(axis=1))
            rows, some = np.r_[rows, new], np.vstack([some, self.exog[new]])
        return np.unique(rows)

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
        weights = aligned(weights, self.blocks)
        if blocked(weights):
            return row_sums(weighted_gram, self.exog, weights), np.empty((0, k))
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

        Normal equations where they keep eight digits, an orthogonal factorization elsewhere.
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


def weighted_gram(exog: Array, weights: Array) -> Array:
    """Return ``exog' diag(weights) exog``, shape (k, k)."""
    return exog.T @ (weights[:, None] * exog)


def _products(n_weights: int, n_targets: int, exog: Array, *arrays: Array) -> tuple[Any, ...]:
    weights, rest = arrays[:n_weights], arrays[n_weights:]
    return (
        tuple(weighted_gram(exog, w) for w in weights),
        tuple(t @ exog for t in rest[:n_targets]),
        tuple(v.sum() for v in rest[n_targets:]),
    )
