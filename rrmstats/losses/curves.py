"""Nonlinear regression: squared residuals of a curve, and the linear regression in its place.

Near its end a curve is its tangent, so that both steps, their explanations and their errors are
those of a linear regression on the derivatives of the curve; see `tangents`. The search for the
minimum takes the curve as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import qmc

from rrmstats.core.design import largest_entries, thin_svd
from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_newton
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.starts import affordable_starts
from rrmstats.core.tolerances import MAX_STEPS, ROUNDING, SUM_ROUNDING
from rrmstats.losses.finite_differences import STEP
from rrmstats.losses.numerical import without_held
from rrmstats.losses.regression import RegressionEstimate
from rrmstats.losses.tangents import FittedOnTangents, TangentProblem, carried

#: Predictions (b, n) of a batch of parameters (b, k).
Curve = Callable[[Array], Array]
#: Derivatives (n, k) of the predictions at one parameter vector (k,).
Jacobian = Callable[[Array], Array]

# What a residual counts as where a curve is not defined: no step leads there.
BEYOND = 1e100
# Steps of a fit that is a start, at most, and the relative decrease that is not worth one more.
START_STEPS, ROUGH = 20, 1e-3
# Steps of a fit to a subset, from which others go on.
SUBSET_STEPS = 6


class CurveProblem(FittedOnTangents):
    """Squared residuals of a curve; the weighted fit is Levenberg and Marquardt's.

    Parameters
    ----------
    endog : ndarray, shape (n,)
    curve : callable
        Takes parameters (b, k) and returns predictions (b, n).
    starts : ndarray, shape (s, k)
        Parameters to start from, the user's first.
    bounds : tuple of ndarray, shapes (k,)
        Least and largest values of the parameters.
    jacobian : callable, optional
        Takes parameters (k,) and returns derivatives (n, k); by default differences.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> from rrmstats.losses.curves import CurveProblem
    >>> x = np.linspace(0, 4, 30)
    >>> y = 3 * np.exp(-x) + 0.01 * np.sin(50 * x)
    >>> y[::7] += 2
    >>> ends = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])
    >>> curve = lambda theta: theta[:, :1] * np.exp(-theta[:, 1:] * x)
    >>> minimize(CurveProblem(y, curve, np.ones((1, 2)), ends), eps_bar=0.3).theta.round(1)
    array([3., 1.])
    """

    def __init__(
        self,
        endog: Array,
        curve: Curve,
        starts: Array,
        bounds: tuple[Array, Array],
        jacobian: Jacobian | None = None,
    ) -> None:
        self.endog, self.curve, self.starts, self.bounds = endog, curve, starts, bounds
        self._jacobian = jacobian
        self.n_obs, self.n_params = len(endog), starts.shape[1]
        self.unit = np.where(starts[0] == 0, 1.0, np.abs(starts[0]))
        self._known: dict[tuple[str, bytes], Array] = {}

    def to_params(self, theta: Array) -> Array:
        """Return the parameters, which are those of the data."""
        return theta

    def residuals(self, theta: Array) -> Array:
        """Return the residuals, BEYOND where the curve is not defined, shape (..., n)."""
        batch = theta.reshape(-1, self.n_params)
        with np.errstate(all="ignore"):
            found = self.endog - self.curve(batch)
        found = np.where(np.abs(found) < BEYOND, found, BEYOND)
        return found.reshape(*theta.shape[:-1], self.n_obs)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        return self.residuals(theta) ** 2

    def jacobian(self, theta: Array) -> Array:
        """Return the derivatives of the predictions at one theta, shape (n, k)."""
        return np.asarray(self._jacobians(theta[None])[0])

    def _jacobians(self, theta: Array) -> Array:
        """Return the derivatives at a batch of parameters (b, k), shape (b, n, k)."""
        b, k = theta.shape
        with np.errstate(all="ignore"):
            if self._jacobian is not None:
                found = np.stack([np.asarray(self._jacobian(each), float) for each in theta])
            else:
                steps = (STEP * np.maximum(np.abs(theta), STEP * self.unit))[:, None] * np.eye(k)
                up, down = (self.within(theta[:, None] + sign * steps) for sign in (1.0, -1.0))
                ends = self.curve(np.concatenate([up, down]).reshape(-1, k)).reshape(2, b, k, -1)
                width = np.einsum("bii->bi", up - down)[:, :, None]
                found = ((ends[0] - ends[1]) / width).swapaxes(1, 2)
        return np.where(np.isfinite(found), found, 0.0)

    def gradients(self, theta: Array) -> Array:
        """Return the gradients of the losses at one theta, shape (n, k)."""
        return -2.0 * self.residuals(theta)[:, None] * self.jacobian(theta)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of their Hessians as if the curve were straight, (k, k)."""
        slopes = self.jacobian(theta)
        return 2.0 * self._curvature(slopes.T @ (weights[:, None] * slopes))

    def _curvature(self, gram: Array) -> Array:
        """Return a Gram matrix (..., k, k) with a ridge, so that no parameter runs away.

        Some may not matter, or only together with others.
        """
        sizes = np.einsum("...ii->...i", gram)
        ridge = ROUNDING * sizes + SUM_ROUNDING * (sizes @ self.unit**2)[..., None] / self.unit**2
        return gram + ridge[..., None] * np.eye(self.n_params)

    def tilted_sums(
        self, theta: Array, losses: Array, weights: Array, beta: Array
    ) -> tuple[Array, Array, Array]:
        """Return the sums over rows that Newton's method needs; all curves are taken at once."""
        slopes, resid = self._jacobians(theta), self.residuals(theta)
        gradients = -2.0 * resid[:, :, None] * slopes
        pulled = weights[:, :, None] * gradients
        gram = slopes.swapaxes(1, 2) @ (weights[:, :, None] * slopes)
        curvature = 2.0 * self._curvature(gram) - beta[:, None, None] * (
            pulled.swapaxes(1, 2) @ gradients
        )
        return pulled.sum(axis=1), np.einsum("bn,bnk->bk", losses, pulled), curvature

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away, within the bounds, shape (..., k)."""
        return self.within(theta + step)

    def within(self, theta: Array) -> Array:
        """Return parameters within the bounds, shape (..., k)."""
        return np.clip(theta, *self.bounds)

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        batch = weights.reshape(-1, self.n_obs)
        if theta is not None:
            starts = np.broadcast_to(theta, (*weights.shape[:-1], self.n_params))
            found = self._fits(batch, starts.reshape(-1, self.n_params), MAX_STEPS)
        else:
            found = np.stack([self._best_fit(each) for each in batch])
        return found.reshape(*weights.shape[:-1], self.n_params)

    def _best_fit(self, weights: Array) -> Array:
        """Return the fit under weights (n,) from the first of the best starts, shape (k,)."""

        def found() -> Array:
            many = np.broadcast_to(weights, (len(self.starts), self.n_obs))
            ends = self._fits(many, self.starts, START_STEPS, ROUGH)
            loss = self.losses(ends) @ weights
            best = ends[np.argmax(loss <= (1 + ROUGH) * loss.min())]
            return self._fits(weights[None], best[None], MAX_STEPS)[0]

        return self._once("best", weights, found)

    def _once(self, name: str, given: np.ndarray, found: Callable[[], Array]) -> Array:
        """Return what was found for an array: searches at several bounds ask for the same."""
        key = name, given.tobytes()
        if key not in self._known:
            self._known[key] = found()
        return self._known[key].copy()

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower weighted loss, shape (b, k)."""
        return self._fits(weights, theta, 1)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return fits to subsets of rows, from one start after the other, shape (m, k)."""
        weights = np.zeros((len(subsets), self.n_obs))
        np.put_along_axis(weights, subsets, 1.0 / subsets.shape[1], axis=1)
        starts = self.starts[np.arange(len(subsets)) % len(self.starts)]
        return self._once(
            "subsets", subsets, lambda: self._fits(weights, starts, SUBSET_STEPS, ROUGH)
        )

    def robust_starts(self) -> Array:
        """Return the fits to all rows from each start, shape (s, k)."""
        equal = np.full((len(self.starts), self.n_obs), 1.0 / self.n_obs)
        return self._once("all", equal, lambda: self._fits(equal, self.starts, START_STEPS, ROUGH))

    def _fits(self, weights: Array, theta: Array, steps: int, tol: float = 1e-14) -> Array:
        """Return fits under weights (b, n) from parameters (b, k): damped Gauss-Newton steps."""

        def value(at: Array, places: np.ndarray) -> Array:
            return np.einsum("bn,bn->b", weights[places], self.losses(at))

        def slopes(at: Array, places: np.ndarray) -> tuple[Array, Array]:
            jacobian = self._jacobians(at)
            weighted = weights[places, :, None] * jacobian
            descent = np.einsum("bnk,bn->bk", weighted, self.residuals(at))
            held = self._held(at, descent)
            gram = self._curvature(weighted.swapaxes(1, 2) @ jacobian)
            return without_held(-descent, gram, held)

        return damped_newton(value, slopes, self.retract, theta, steps, tol)

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.subset_size, eps_bar, 60)

    @property
    def subset_size(self) -> int:
        """Rows of a random subset: twice as many as parameters, so that noise counts less."""
        return min(2 * self.n_params, self.n_obs)

    def tangent(self, params: Array, weights: Array) -> CurveTangent:
        """Return the linear regression that takes the place of the curve at parameters (k,).

        Parameters at a bound beyond which the fit under weights (n,) would go are held there.
        """
        slopes = without_rounding(self.jacobian(params))
        held = self._held(params, (weights * self.residuals(params)) @ slopes)
        return CurveTangent(self, params, slopes, held)

    def consistent(self, solution: Solution, setting: Setting) -> RegressionEstimate:
        """Return the estimate of the first step, as that of the tangent at the minimum."""
        problem = self.tangent(solution.theta, solution.weights)
        found = carried(solution, self, problem)
        there = global_minimum(problem, replace(setting, n_starts=0), found.theta)
        found = replace(found, losses=there.losses, risk=there.risk, lambda_=there.lambda_)
        return problem.consistent(found, setting)

    def _held(self, theta: Array, descent: Array) -> np.ndarray:
        """Tell which parameters are at a bound that a descent would cross, shape (..., k)."""
        lower, upper = self.bounds
        return ((theta <= lower) & (descent < 0)) | ((theta >= upper) & (descent > 0))


def without_rounding(slopes: Array) -> Array:
    """Return derivatives (n, k) without the directions of which there is only rounding.

    Differences leave some of directions in which a curve stays as it is.
    """
    scale = largest_entries(np.abs(slopes))
    left, sizes, right = thin_svd(slopes / scale)
    if sizes[-1] > ROUNDING * sizes[0]:
        return slopes
    return (left * np.where(sizes > ROUNDING * sizes[0], sizes, 0.0)) @ right * scale


def starts_within(p0: Array, bounds: tuple[Array, Array], count: int = 16) -> Array:
    """Return parameters to start from: those given, and others within the bounds, (count, k).

    Between finite bounds anywhere, elsewhere within a factor of ten of those given.
    """
    lower, upper = bounds
    finite = np.isfinite(lower) & np.isfinite(upper)
    spread = qmc.Halton(len(p0), scramble=False).random(count)[1:]
    with np.errstate(invalid="ignore"):
        between = np.where(finite, lower + spread * (upper - lower), 0.0)
    near = np.where(p0 == 0, 2 * spread - 1, p0 * 10.0 ** (2 * spread - 1))
    return np.vstack([p0, np.clip(np.where(finite, between, near), lower, upper)])


class CurveTangent(TangentProblem):
    """The linear regression on the derivatives of a curve at given parameters.

    Parameters
    ----------
    whole : CurveProblem
    at : ndarray, shape (k,)
        Parameters at which the curve is taken to be straight.
    slopes : ndarray, shape (n, k)
        Derivatives of the curve there.
    held : ndarray of bool, shape (k,)
        Parameters that stay where they are.
    """

    whole: CurveProblem

    def __init__(self, whole: CurveProblem, at: Array, slopes: Array, held: np.ndarray) -> None:
        self.slopes, self.held = slopes, held
        free = slopes[:, ~held]
        super().__init__(whole, at, whole.residuals(at) + free @ at[~held], free)
        if held.any():
            self.design.place(np.eye(len(at))[:, ~held])
        self.rest = at - super().to_params(self.from_params(at))

    def to_params(self, theta: Array) -> Array:
        """Return all parameters, which stay where the data tell nothing of them."""
        return super().to_params(theta) + self.rest

    def toward(self, params: Array, weights: Array) -> Array:
        """Return the fit of the curve under weights (n,), from the better of two parameters."""
        whole = self.whole
        ends = np.stack([self.at, whole.within(params)])
        return whole.weighted_fit(weights, ends[np.argmin(whole.losses(ends) @ weights)])
