"""Problems given by functions of one parameter vector; what they lack is found numerically."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.frames import typical_spread
from rrmstats.core.newton import damped_newton
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.starts import affordable_starts
from rrmstats.losses.finite_differences import (
    bends,
    differences,
    has_kinks,
    inside,
    parameter_units,
    second_differences,
)

if TYPE_CHECKING:
    from typing_extensions import Self

#: Losses (n,) at parameters (k,).
Losses = Callable[[Array], Array]
#: Gradients of the losses (n, k) at parameters (k,).
Gradients = Callable[[Array], Array]
#: Weighted sum of the Hessians of the losses (k, k) at parameters (k,) under weights (n,).
Hessian = Callable[[Array, Array], Array]
#: Parameters (k,) of least weighted loss under weights (n,).
WeightedFit = Callable[[Array], Array]

# Newton steps of a weighted fit, of a fit to a subset, and of one that only improves a start.
FIT_STEPS, SUBSET_STEPS, IMPROVING_STEPS = 60, 15, 2
# What an infinite loss counts as: a step to where all are is then no error, but no step either.
BEYOND = 1e100


class FunctionLoss(Problem):
    """Losses of one parameter vector, given by a function; they may have kinks.

    Parameters
    ----------
    losses : callable
        ``losses(theta)`` returns the n losses of one theta; not finite outside of its domain.
    start : ndarray, shape (k,)
        Parameters within the domain.
    n_obs : int
    weighted_fit : callable, optional
        ``weighted_fit(weights)`` returns the theta of least weighted loss.
    kinds : sequence of ndarray, optional
        Masks of rows, each of which weights must keep a part of, such as the labels of one class.
    gradients : callable, optional
        ``gradients(theta)`` returns the gradients of the losses, shape (n, k).
    hessian : callable, optional
        ``hessian(theta, weights)`` returns the weighted sum of their Hessians, shape (k, k).
    lower : ndarray, shape (k,), optional
        Least values of the parameters.
    """

    row_kinds: Array | None = None

    def __init__(
        self,
        losses: Losses,
        start: Array,
        n_obs: int,
        weighted_fit: WeightedFit | None = None,
        kinds: tuple[np.ndarray, ...] = (),
        *,
        gradients: Gradients | None = None,
        hessian: Hessian | None = None,
        lower: Array | None = None,
    ) -> None:
        self._losses, self.start, self._weighted_fit = losses, start, weighted_fit
        self._gradients, self._hessian = gradients, hessian
        self.n_obs, self.n_params = n_obs, len(start)
        # The rows of this problem among those of the functions.
        self._rows = np.arange(n_obs)
        self._n_all = n_obs
        self.lower = np.full(len(start), -np.inf) if lower is None else lower
        if kinds:
            self.row_kinds = np.column_stack(kinds).astype(float)

    def losses(self, theta: Array) -> Array:
        """Return the losses, BEYOND where they are infinite or not defined, shape (..., n)."""
        batch = theta.reshape(-1, self.n_params)
        return np.array([self._row_losses(one) for one in batch]).reshape(
            *theta.shape[:-1], self.n_obs
        )

    def _row_losses(self, theta: Array) -> Array:
        with np.errstate(all="ignore"):
            return defined_losses(np.asarray(self._losses(theta), dtype=float)[..., self._rows])

    def value(self, theta: Array, weights: Array) -> float:
        """Return the weighted loss at one theta; rows without weight play no part."""
        used = weights > 0
        return float(weights[used] @ self._row_losses(theta)[used])

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of the weighted loss, shape (..., k)."""
        return self._each(weights, theta, FIT_STEPS)

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        return self._each(weights, theta, IMPROVING_STEPS)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the fits to subsets of rows, shape (m, k)."""
        weights = np.zeros((len(subsets), self.n_obs))
        np.put_along_axis(weights, subsets, 1.0 / subsets.shape[1], axis=1)
        return self._each(weights, None, SUBSET_STEPS)

    def _each(self, weights: Array, theta: Array | None, steps: int) -> Array:
        """Fit one theta after the other: the functions take no batches."""
        batch = weights.reshape(-1, self.n_obs)
        start = self.start if theta is None else theta
        starts = np.broadcast_to(start, (*weights.shape[:-1], self.n_params))
        fit = self._searched_fit if self._weighted_fit is None else self._given_fit
        found = [
            fit(w, t, steps) for w, t in zip(batch, starts.reshape(-1, self.n_params), strict=True)
        ]
        return np.array(found).reshape(*weights.shape[:-1], self.n_params)

    def _given_fit(self, weights: Array, theta: Array, steps: int) -> Array:
        assert self._weighted_fit is not None
        found = np.asarray(self._weighted_fit(self._of_all(weights)), dtype=float).ravel()
        if found.shape != (self.n_params,):
            raise ValueError(
                f"weighted_fit must return {self.n_params} parameters, as theta0 has, got shape "
                f"{found.shape}"
            )
        return found

    def _searched_fit(self, weights: Array, theta: Array, steps: int) -> Array:
        """Return the end of scipy's search without derivatives."""
        calls = 20 * steps * self.n_params
        # The types of scipy do not let the function return what `value` does.
        found: Any = scipy_minimize(
            lambda t: self.value(t, weights),
            theta,
            method="Nelder-Mead",
            options={"maxfev": calls, "xatol": 1e-8, "fatol": 1e-10},  # type: ignore[call-overload]
        )
        lower = self.value(found.x, weights) < self.value(theta, weights)
        return np.asarray(found.x if lower else theta, dtype=float)

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.subset_size, eps_bar, 60)  # each is fitted on its own

    @property
    def subset_size(self) -> int:
        """Rows of a random subset: no likelihood has a maximum on rows that it fits exactly."""
        return min(2 * self.n_params + 2, self.n_obs)

    def take(self, rows: np.ndarray) -> Self:
        """Return the problem restricted to some rows, at the cost of the whole."""
        part = copy(self)
        part._rows, part.n_obs = self._rows[rows], len(rows)
        if self.row_kinds is not None:
            kinds = self.row_kinds[rows]
            part.row_kinds = kinds[:, kinds.any(axis=0)]
        return part

    def _of_all(self, weights: Array) -> Array:
        """Return weights of the rows as weights of all that the functions know, shape (n,)."""
        spread = np.zeros(self._n_all)
        spread[self._rows] = weights
        return spread

    def consistent(self, solution: Solution, setting: Setting) -> Estimate:
        """Return the parameters of least risk as an estimate, without influence functions."""
        return RoughEstimate(
            problem=self,  # type: ignore[arg-type]  # no derivatives are asked of it
            setting=setting,
            solution=with_infinite_losses(solution),
            params=solution.theta,
            raw_params=solution.theta,
        )

    def second_step(self, first: Estimate) -> Estimate:
        """Return the first step: nothing is known of the distribution of the losses."""
        return first


def defined_losses(found: Array) -> Array:
    """Return losses, BEYOND where they are infinite or not defined."""
    return np.where(np.isnan(found) | (found > BEYOND), BEYOND, found)


def with_infinite_losses(solution: Solution) -> Solution:
    """Return a solution whose losses are infinite where they are not defined."""
    losses = solution.losses
    return replace(solution, losses=np.where(losses >= BEYOND, np.inf, losses))


class RoughEstimate(Estimate):
    """The estimate of a loss without derivatives: it has no influence functions."""

    def influence(self) -> Array:
        """Return NaN, shape (n, k)."""
        return np.full((self.problem.n_obs, len(self.params)), np.nan)


class NumericalProblem(FunctionLoss, EstimableProblem):
    """Smooth losses of one parameter vector; derivatives that are not given are differences.

    See `FunctionLoss` for the parameters.
    """

    @cached_property
    def unit(self) -> Array:
        """Changes of the parameters over which the mean loss bends, shape (k,)."""
        return parameter_units(self._curvature, self.start)

    def _curvature(self, theta: Array, unit: Array) -> Array:
        """Return the second derivatives of the mean loss in each parameter, shape (k,).

        At a lower bound they are those a step inside, since there is nothing beyond it.
        """
        step = 1e-3 * unit
        theta = np.maximum(theta, self.lower + step)
        weights = np.full(self.n_obs, 1.0 / self.n_obs)
        return bends(lambda t: np.asarray(self.value(t, weights)), theta, step) / step**2

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss, shape (n, k); zero where it is not defined."""
        with np.errstate(all="ignore"):
            found = (
                differences(self._losses, theta, self.unit).T
                if self._gradients is None
                else np.asarray(self._gradients(theta), dtype=float)
            )[self._rows]
        return np.where(np.isfinite(found), found, 0.0)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the losses, shape (k, k)."""
        if self._hessian is not None:
            with np.errstate(all="ignore"):
                return np.asarray(self._hessian(theta, self._of_all(weights)), dtype=float)
        if self._gradients is None:
            return second_differences(lambda t: self.value(t, weights), theta, self.unit)
        used, at = weights > 0, inside(theta, self.unit, self.lower)
        slope = differences(lambda t: weights[used] @ self.gradients(t)[used], at, self.unit)
        return 0.5 * (slope + slope.T)

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away, at least the lower bounds, shape (..., k)."""
        return np.maximum(theta + step, self.lower)

    def concentrated(
        self, theta: Array, losses: Array, weights: Array, lambda_: Array
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of the concentrated risk in the parameters that can move."""
        gradient, hessian, drift = super().concentrated(theta, losses, weights, lambda_)
        held = (theta <= self.lower) & (gradient > 0)
        return *without_held(gradient, hessian, held), np.where(held, 0.0, drift)

    def rough_hessian(self, theta: Array, weights: Array) -> Array:
        """Return what serves for the Hessian far from the end, where steps need not be exact."""
        return self.hessian(theta, weights)

    def pulls(self, theta: Array) -> Array:
        """Return the gradients in units of their typical sizes, shape (n, k)."""
        found = self.gradients(theta)
        size = typical_spread(found)
        return found / np.where(size > 0, size, 1.0)

    def _searched_fit(self, weights: Array, theta: Array, steps: int) -> Array:
        """Return parameters of lower weighted loss, after at most `steps` Newton steps."""
        curvature = self.hessian if steps == FIT_STEPS else self.rough_hessian

        def slopes(at: Array, _: np.ndarray) -> tuple[Array, Array]:
            gradient = weights @ self.gradients(at[0])
            return gradient[None], curbed(curvature(at[0], weights))[None]

        def losses(at: Array, _: np.ndarray) -> Array:
            return self.losses(at)

        return bounded_fits(losses, slopes, weights[None], theta[None], self.lower, steps)[0]

    def consistent(self, solution: Solution, setting: Setting) -> Estimate:
        """Return the parameters of least risk as an estimate, rough where losses have kinks."""
        theta = solution.theta
        if self._hessian is None and has_kinks(
            self._losses, theta, parameter_units(self._curvature, theta), solution.weights
        ):
            return super().consistent(solution, setting)
        return EstimableProblem.consistent(self, with_infinite_losses(solution), setting)


def bounded_fits(
    losses: Callable[[Array, np.ndarray], Array],
    slopes: Callable[[Array, np.ndarray], tuple[Array, Array]],
    weights: Array,
    theta: Array,
    lower: Array,
    steps: int,
) -> Array:
    """Return parameters of lower weighted loss above lower bounds, shape (b, k).

    Parameters
    ----------
    losses : callable
        Takes parameters (m, k) and the places (m,) of these in the batch; returns losses (m, n).
    slopes : callable
        Takes the same and returns gradients (m, k) and Hessians (m, k, k) of the weighted loss.
    weights : ndarray, shape (b, n)
        Rows without weight play no part.
    theta : ndarray, shape (b, k)
        Where to start.
    lower : ndarray, shape (k,)
        Least values of the parameters.
    steps : int
        Number of steps at most.
    """

    def value(at: Array, places: np.ndarray) -> Array:
        some = weights[places]
        return (some * np.where(some > 0, losses(at, places), 0.0)).sum(axis=-1)

    def free_slopes(at: Array, places: np.ndarray) -> tuple[Array, Array]:
        gradient, hessian = slopes(at, places)
        return without_held(gradient, hessian, (at <= lower) & (gradient > 0))

    def retract(at: Array, step: Array) -> Array:
        return np.maximum(at + step, lower)

    return damped_newton(value, free_slopes, retract, theta, steps)


def without_held(gradient: Array, hessian: Array, held: np.ndarray) -> tuple[Array, Array]:
    """Return gradients (..., k) and Hessians in which some parameters are held at their bounds."""
    if not held.any():
        return gradient, hessian
    either = held[..., :, None] | held[..., None, :]
    kept = np.where(either, held[..., None] * np.eye(held.shape[-1]), hessian)
    return np.where(held, 0.0, gradient), kept


def curbed(hessian: Array) -> Array:
    """Return a Hessian whose directions of negative curvature are turned, shape (k, k).

    Zero where it has entries that are not finite.
    """
    if not np.isfinite(hessian).all():
        return np.zeros_like(hessian)
    size = np.sqrt(np.abs(np.diag(hessian)))
    size[size == 0] = 1.0
    values, vectors = np.linalg.eigh(hessian / np.outer(size, size))
    least = 1e-3 if values[0] < 0 else float(np.finfo(float).eps) * len(size)
    most = float(np.abs(values).max())
    values = np.maximum(np.abs(values), least * (most if most > 0 else 1.0 / least))
    return (vectors * values) @ vectors.T * np.outer(size, size)
