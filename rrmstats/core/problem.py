"""What the algorithm asks of a learning problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import in_blocks, row_sums, taken
from rrmstats.core.blocks import CHUNK, Blocks
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import SUM_ROUNDING, TINY

# Share of its rows that a kind, such as the labels of a class, keeps at least under the weights,
# and of an equal weight from which a row is kept.
# Convention: a tenth, so that a rare class cannot be left out.
KEPT_FRACTION = 0.1


class Problem:
    """A loss for each observation, and its minimizer under given weights.

    A subclass sets `n_obs` and `n_params` and defines `losses` and `weighted_fit`; that is all
    that the paper's method needs. The other methods have defaults that are right for any
    problem and slower than what its structure allows.

    Parameters `theta` are flat arrays, and every method takes leading batch axes: `theta` of
    shape (..., k), `losses` and `weights` of shape (..., n).

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import Problem, minimize
    >>> class Middle(Problem):
    ...     n_obs, n_params, z = 5, 1, np.array([1.0, 2.0, 3.0, 2.0, 90.0])
    ...
    ...     def losses(self, theta):
    ...         return (self.z - theta) ** 2
    ...
    ...     def weighted_fit(self, weights, theta=None):
    ...         return (weights @ self.z)[..., None]
    >>> minimize(Middle(), eps_bar=0.3).theta.round(1)
    array([2.])
    """

    n_obs: int
    n_params: int
    #: A risk at which a descent ends, since none is smaller.
    least_risk: float = -np.inf

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        raise NotImplementedError(f"{type(self).__name__} must define losses(theta)")

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of ``sum(weights * losses)``, shape (..., k).

        `theta` is a point to start from, for problems without a closed form.
        """
        raise NotImplementedError(f"{type(self).__name__} must define weighted_fit(weights)")

    def improved(self, weights: Array, theta: Array) -> Array:
        """Return parameters of lower ``sum(weights * losses)`` than `theta`, shape (..., k).

        The minimizer by default; a few steps towards it do where it has no closed form.
        """
        return self.weighted_fit(weights, theta)

    @property
    def row_kinds(self) -> Array | None:
        """Which rows are of each kind that weights must keep, shape (n, m); None for no kinds."""
        return None

    def admissible(self, weights: Array, base: Array) -> np.ndarray | None:
        """Tell which weights, shape (b, n), leave a problem of the same kind; None for all.

        The risk of others counts as infinite. `base` holds the weights that the rows have in the
        data, shape (n,) or (b, n).
        """
        kinds = self.row_kinds
        if kinds is None:
            return None
        kept = weights @ kinds >= KEPT_FRACTION * (base @ kinds)
        return np.asarray(kept.all(axis=-1))

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return the fits to subsets of rows, indices of shape (m, size): shape (m, k)."""
        weights = np.zeros((len(subsets), self.n_obs))
        np.put_along_axis(weights, subsets, 1.0 / subsets.shape[1], axis=1)
        return self.weighted_fit(weights)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return the fit to the first rows of a random order that determine one, shape (k,).

        It is asked for where `subset_fits` finds none; NaN where no rows determine a fit.
        """
        return self.subset_fits(drawn[None, : self.subset_size])[0]

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return 50

    def determines(self, rows: np.ndarray) -> bool:
        """Tell whether some rows determine all parameters."""
        return True

    def completed(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return some rows, with as many of the others as the parameters need."""
        return rows

    @property
    def subset_size(self) -> int:
        """Rows that determine a fit."""
        return self.n_params

    def units(self, wnobs: float) -> float:
        """Return how many units the weights are of, where rows stand for `wnobs` observations."""
        return wnobs

    @property
    def least_units(self) -> int:
        """Units that a bound must leave."""
        return self.n_params

    def check_left(self, eps_bar: float, wnobs: float, used: int) -> None:
        """Raise where a bound leaves fewer observations than parameters.

        The rows stand for `wnobs` observations, and `used` of them count.
        """
        left = (1 - eps_bar) * wnobs
        if left < self.n_params * (1 - SUM_ROUNDING):
            if eps_bar == 0:
                raise ValueError(
                    f"there are {left:.4g} observations for {self.n_params} parameters; drop "
                    "predictors or add data"
                )
            raise ValueError(
                f"eps_bar={eps_bar:g} leaves (1 - eps_bar) * nobs = {left:.4g} observations "
                f"for {self.n_params} parameters; lower eps_bar, drop predictors or add data"
            )
        if used < self.n_params:
            raise ValueError(
                f"only {used} observations have a positive frequency weight, "
                f"for {self.n_params} parameters; drop predictors or add data"
            )

    def take(self, rows: np.ndarray) -> Problem:
        """Return the problem restricted to some rows."""
        if self.row_arrays:
            return self.with_rows(*taken(rows, *self.row_arrays))
        return _Rows(self, rows)

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The arrays, one entry per row, from which `with_rows` makes the problem anew."""
        return ()

    @property
    def with_rows(self) -> Callable[..., Problem]:
        """A function that makes the problem of other rows from arrays like `row_arrays`.

        It holds no rows itself, so that it can be sent to where blocks of them lie.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted to rows in blocks")

    @property
    def blocks(self) -> Blocks | None:
        """The blocks in which the rows lie; None where they are in memory."""
        return in_blocks(*self.row_arrays)


class _Rows(Problem):
    """Any problem on a part of its rows, at the cost of the whole."""

    def __init__(self, whole: Problem, rows: np.ndarray) -> None:
        self.whole, self.rows = whole, rows
        self.n_obs, self.n_params = len(rows), whole.n_params

    def losses(self, theta: Array) -> Array:
        return self.whole.losses(theta)[..., self.rows]

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        spread = np.zeros((*weights.shape[:-1], self.whole.n_obs))
        spread[..., self.rows] = weights
        return self.whole.weighted_fit(spread, theta)


class FunctionProblem(Problem):
    """A problem given by two functions of one parameter vector.

    Parameters
    ----------
    losses : callable
        ``losses(theta)`` returns the n losses of one `theta`.
    weighted_fit : callable
        ``weighted_fit(weights)`` returns the `theta` of least weighted loss.
    n_obs, n_params : int
        Number of observations and of parameters.

    Examples
    --------
    The rate of an exponential distribution, one observation in five bad:

    >>> import numpy as np
    >>> from rrmstats.core import FunctionProblem, minimize
    >>> z = np.r_[np.random.default_rng(0).exponential(2.0, 80), np.full(20, 500.0)]
    >>> problem = FunctionProblem(
    ...     losses=lambda theta: z / theta[0] + np.log(theta[0]),
    ...     weighted_fit=lambda weights: np.array([weights @ z]),
    ...     n_obs=100, n_params=1)
    >>> solution = minimize(problem, eps_bar=0.25)
    >>> bool(solution.theta[0] < 2.0), bool(solution.weights[80:].sum() < 1e-6)
    (True, True)
    """

    def __init__(
        self,
        losses: Callable[[Array], Array],
        weighted_fit: Callable[[Array], Array],
        n_obs: int,
        n_params: int,
    ) -> None:
        self._losses, self._weighted_fit = losses, weighted_fit
        self.n_obs, self.n_params = n_obs, n_params

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        return np.apply_along_axis(self._losses, -1, theta)

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the minimizer of ``sum(weights * losses)``, shape (..., k)."""
        return np.apply_along_axis(self._weighted_fit, -1, weights)


class SmoothProblem(Problem):
    """A problem with derivatives, so that Newton's method applies.

    Derivatives are with respect to local coordinates: `retract` maps a step in them to
    parameters. For plain vectors that is addition.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import SmoothProblem, minimize
    >>> class Middle(SmoothProblem):
    ...     n_obs, n_params, z = 5, 1, np.array([1.0, 2.0, 3.0, 2.0, 90.0])
    ...
    ...     def losses(self, theta):
    ...         return (self.z - theta) ** 2
    ...
    ...     def weighted_fit(self, weights, theta=None):
    ...         return (weights @ self.z)[..., None]
    ...
    ...     def gradients(self, theta):
    ...         return -2 * (self.z - theta)[:, None]
    ...
    ...     def hessian(self, theta, weights):
    ...         return np.array([[2 * weights.sum()]])
    >>> minimize(Middle(), eps_bar=0.3).theta.round(1)
    array([2.])
    """

    def gradients(self, theta: Array) -> Array:
        """Return the gradient of each loss at one `theta`, shape (n, k)."""
        raise NotImplementedError(f"{type(self).__name__} must define gradients(theta)")

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return ``sum(weights * hessian of the losses)`` at one `theta`, shape (k, k)."""
        raise NotImplementedError(f"{type(self).__name__} must define hessian(theta, weights)")

    def retract(self, theta: Array, step: Array) -> Array:
        """Return the parameters a step away, shape (..., k)."""
        return theta + step

    def least_loss(self, theta: Array) -> float:
        """Return the least loss that a row can have at `theta`."""
        return 0.0

    @property
    def newton_pays(self) -> bool:
        """Whether Newton's steps cost less in all than extrapolated steps of Algorithm 1."""
        return True

    @property
    def gradients_pay(self) -> bool:
        """Whether many steps by gradients alone cost less than a few of Newton's."""
        return False

    def weighted_gradient(self, theta: Array, weights: Array) -> Array:
        """Return ``sum(weights * gradient of the losses)`` at one `theta`, shape (k,)."""
        return weights @ self.gradients(theta)

    def pulls(self, theta: Array) -> Array:
        """Return the pull of each row on a fit, shape (n, r), for the spectral starts.

        The gradients of the losses by default. Their frame should be one that bad rows cannot
        stretch: in the metric of a fit to bad rows, these do not stand out.
        """
        return self.gradients(theta)

    def robust_starts(self) -> Array:
        """Return fits that are robust but not of least risk, shape (s, k); none by default."""
        return np.empty((0, 0))

    def tilted_sums(
        self, theta: Array, losses: Array, weights: Array, beta: Array
    ) -> tuple[Array, Array, Array]:
        """Return the sums over rows that Newton's method needs, at a batch of parameters.

        With g the gradients they are ``sum(w g)`` and ``sum(w l g)``, shape (b, k), and
        ``sum(w hess(l)) - beta * sum(w g g')``, shape (b, k, k).
        """
        parts, many = [], self.n_obs > CHUNK and self.row_arrays
        for t, ell, w, b in zip(theta, losses, weights, beta, strict=True):
            if many:
                kernel = partial(tilted_part, self.with_rows, t, b)
                parts.append(row_sums(kernel, ell, w, *self.row_arrays))
                continue
            gradients, root, used = self.gradients(t), np.sqrt(w), w > 0
            if not used.all():  # gradients without weight may be infinite
                gradients, root, ell = gradients[used], root[used], ell[used]
            pulled = root[:, None] * gradients
            curvature = self.hessian(t, w) - b * (pulled.T @ pulled)
            parts.append((root @ pulled, (ell * root) @ pulled, curvature))
        gradient, cross, curvature = (np.array(part) for part in zip(*parts, strict=True))
        return gradient, cross, curvature

    def concentrated(
        self, theta: Array, losses: Array, weights: Array, lambda_: Array
    ) -> tuple[Array, Array, Array]:
        r"""Return derivatives of :math:`F(\theta) = \min_\pi \sum \pi_i \ell_i(\theta)`.

        The gradient is that of the weighted risk (envelope theorem). In the Hessian the weights
        move with theta along the entropy constraint:

        .. math:: \sum \pi \nabla^2 \ell - \frac1\lambda
                  \left[ \mathrm{Cov}(\nabla\ell) -
                  \mathrm{Cov}(\ell, \nabla\ell) \mathrm{Cov}(\ell, \nabla\ell)' /
                  \mathrm{Var}(\ell) \right]

        Parameters
        ----------
        theta : ndarray, shape (b, k)
        losses, weights : ndarray, shape (b, n)
            Losses, and their weights of least risk.
        lambda_ : ndarray, shape (b,)
            Temperatures of the weights.

        Returns
        -------
        gradient : ndarray, shape (b, k)
        hessian : ndarray, shape (b, k, k)
        drift : ndarray, shape (b, k)
            Gradient of ln(lambda): Cov(l, grad l) / Var(l).
        """
        tilted = (lambda_ > TINY) & (lambda_ < np.inf)
        beta = np.divide(1.0, lambda_, out=np.zeros_like(lambda_), where=tilted)
        if not np.isfinite(losses.sum()):
            losses = np.where(weights > 0, losses, 0.0)
        spread = losses - np.einsum("bn,bn->b", weights, losses)[:, None]
        variance = np.einsum("bn,bn,bn->b", weights, spread, spread)
        gradient, cross, curvature = self.tilted_sums(theta, spread, weights, beta)
        return concentrated_slopes(gradient, cross, curvature, variance, beta)


def concentrated_slopes(
    gradient: Array, cross: Array, curvature: Array, variance: Array, beta: Array
) -> tuple[Array, Array, Array]:
    """Return the answers of `concentrated` from sums over rows.

    Parameters
    ----------
    gradient, cross, curvature
        The sums of `tilted_sums`, for losses about their weighted mean.
    variance, beta : ndarray, shape (b,)
        Of the losses under the weights, and 1 / lambda; zero where the weights do not change.
    """
    told = ((beta > 0) & (variance > 0))[:, None]
    drift = np.divide(cross, variance[:, None], out=np.zeros_like(cross), where=told)
    outer = gradient[:, :, None] * gradient[:, None, :] + cross[:, :, None] * drift[:, None, :]
    return gradient, curvature + beta[:, None, None] * outer, drift


def tilted_part(
    make: Callable[..., Any],
    theta: Array,
    beta: float,
    losses: Array,
    weights: Array,
    *arrays: Array,
) -> tuple[Array, Array, Array]:
    """Return what some rows add to `SmoothProblem.tilted_sums` at one theta."""
    gradient, cross, curvature = make(*arrays).tilted_sums(
        theta[None], losses[None], weights[None], np.array([beta])
    )
    return gradient[0], cross[0], curvature[0]
