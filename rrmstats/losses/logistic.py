"""Cross-entropy: logistic regression, with fits that stay finite on separated classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

from rrmstats.core.block_array import row_map, row_sums, smallest
from rrmstats.core.design import exact_fit
from rrmstats.core.entropy import Array
from rrmstats.core.frames import independent_rows
from rrmstats.core.linear import LinearProblem

# Linear predictors are kept below this in the middle of the data: probabilities past it are 0
# or 1 to rounding, and without a penalty separated data have no finite fit.
# exp(-40) is rounding beside one.
MIDDLE_MAX = 40.0
# Objective of the linear program, relative to its unit, that counts as zero: its own tolerance.
ZERO = 1e-7
# Rows of a first linear program, and those added to it that it leaves on the wrong side.
PROGRAM_ROWS, ADDED_ROWS = 500, 500


class LogisticProblem(LinearProblem):
    """Cross-entropy losses, bounded by a small term in the linear predictor.

    Parameters
    ----------
    endog : ndarray, shape (n,)
        Labels, 0 or 1.
    exog : ndarray, shape (n, k)
    offset : ndarray, shape (n,), optional
        Added to the linear predictor.
    alpha : float
        The loss of an observation has ``alpha / 4 * (x' theta) ** 4`` added to it.
    ridge : ndarray, shape (k, k), optional
        Every loss has ``theta' ridge theta / 2`` added to it.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import LogisticProblem
    >>> x = np.c_[np.ones(200), rng.standard_normal(200)]
    >>> y = (x[:, 1] + rng.standard_normal(200) > 0).astype(float)
    >>> bool(minimize(LogisticProblem(y, x, alpha=1e-5), eps_bar=0.1).theta[1] > 1)
    True
    """

    def __init__(
        self,
        endog: Array,
        exog: Array,
        offset: Array | None = None,
        *,
        alpha: float = 0.0,
        ridge: Array | None = None,
    ) -> None:
        super().__init__(endog, exog)
        self.alpha, self.offset = alpha, offset
        if ridge is not None:
            self.ridge = ridge
        self.bounded = alpha > 0 or bool(self.ridge.any())
        self.signs = 2.0 * endog - 1.0

    def predictor(self, theta: Array) -> Array:
        """Return ``exog @ theta`` with the offset, shape (..., n)."""
        found = super().predictor(theta)
        return found if self.offset is None else found + self.offset

    def link_losses(self, eta: Array) -> Array:
        """Return the losses at linear predictors, shape (..., n)."""
        return row_map(bounded_entropy, self.signs, eta, self.alpha)

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the losses in the linear predictor."""
        p = expit(eta)
        square = eta * eta
        return (
            p - self.endog + self.alpha * eta * square,
            p * (1.0 - p) + 3.0 * self.alpha * square,
        )

    def retract(self, theta: Array, step: Array) -> Array:
        """Return ``theta + step``, shrunk where separated data would let it grow without limit."""
        moved = theta + step
        if self.bounded:
            return moved
        middle = self._middle(moved)
        shrink = np.minimum(1.0, MIDDLE_MAX / np.maximum(middle, MIDDLE_MAX))
        return moved * shrink[..., None]

    def separated(self, theta: Array) -> bool:
        """Tell whether only the bound of `retract` keeps `theta` finite."""
        return not self.bounded and bool(self._middle(theta) > 0.99 * MIDDLE_MAX)

    def _middle(self, theta: Array) -> Array:
        """Return the median size of the linear predictors of rows evenly spaced among all."""
        return np.asarray(np.median(np.abs(theta @ self.thinned(20_000).exog.T), axis=-1))

    @cached_property
    def row_kinds(self) -> Array:
        """The labels of each class, shape (n, 2).

        Where a class is rarer than eps_bar, the least risk of all would leave it out.
        """
        return np.column_stack([self.endog, 1.0 - self.endog])

    @property
    def subset_size(self) -> int:
        """Rows that determine a start."""
        return self.n_params + 1

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return directions fitted to the labels of subsets of rows by least squares."""
        mixed = np.abs(self.signs[subsets].sum(axis=-1)) < subsets.shape[-1]
        return np.where(mixed[:, None], self.subset_solutions(subsets, self._target), np.nan)

    @property
    def _target(self) -> Array:
        """Log-odds near the labels, without the offset."""
        return 3.0 * self.signs - (0.0 if self.offset is None else self.offset)

    def determined_fit(self, drawn: np.ndarray) -> Array:
        """Return a direction fitted to rows of full rank and both classes, shape (k,)."""
        rows = drawn[independent_rows(self.exog[drawn])]
        others = np.flatnonzero(self.signs[drawn] != self.signs[rows[0]])
        if len(others):
            rows = np.append(rows, drawn[others[0]])
        return exact_fit(self.exog[rows], self._target[rows])

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The labels, the design and the offset, where there is one."""
        offset = () if self.offset is None else (self.offset,)
        return self.endog, self.exog, *offset

    @property
    def with_rows(self) -> Callable[..., LogisticProblem]:
        """A function that makes the problem of other rows."""
        return partial(LogisticProblem, alpha=self.alpha, ridge=self.ridge)


def bounded_entropy(signs: Array, eta: Array, alpha: float) -> Array:
    """Return cross-entropies of labels -1 and 1, with the term that bounds them, (..., n)."""
    losses = np.logaddexp(0.0, -signs * eta)
    if not alpha:
        return losses
    with np.errstate(over="ignore"):  # an infinite loss refuses the start that it is of
        return losses + 0.25 * alpha * (eta * eta) ** 2


class TiltedLabels:
    """Labels under weights that tilt their log-odds, and the consistent fit to them.

    The log-odds of clean labels at x are ``x' (true + rate * theta)`` and ``1 + rate`` times the
    offset. So the true coefficients are fitted, without the penalty alpha, with the rest as an
    offset. A ridge is a choice of the user's, kept as it is.

    Parameters
    ----------
    problem : LogisticProblem
    theta : ndarray, shape (k,)
        Coefficients of least risk.
    rates : ndarray, shape (n,)
        Weights of clean labels are proportional to ``exp(-rates * losses)``, besides what does
        not depend on the label.
    weights : ndarray, shape (n,)
        Weights, summing to one.
    rate : float, optional
        The ridge is that of the coefficients with so many times theta.
    """

    def __init__(
        self,
        problem: LogisticProblem,
        theta: Array,
        rates: Array,
        weights: Array,
        rate: float = 0.0,
    ) -> None:
        self.theta, self.rates, self.weights, self.rate = theta, rates, weights, rate
        self.tilt = rates * problem.predictor(theta)
        offset = self.tilt - rate * (problem.exog @ theta)
        if problem.offset is not None:
            offset = offset + problem.offset
        self.plain = LogisticProblem(problem.endog, problem.exog, offset, ridge=problem.ridge)

    def coefficients(self) -> Array | None:
        """Return the consistent coefficients, shape (k,); None where a hyperplane separates."""
        start = (1.0 + self.rate - self.weights @ self.rates) * self.theta
        fitted = self.plain.weighted_fit(self.weights, start)
        return None if self.plain.separated(fitted) else fitted - self.rate * self.theta

    def influence(self, beta: Array, onto: Array) -> tuple[Array, Array, Array]:
        """Return how coefficients move with the rows (n, m), theta (k, m) and ln(lambda) (m,).

        In the directions of a matrix (k, m).
        """
        plain, ridge = self.plain, self.plain.ridge
        first, second = plain.link_slopes(plain.predictor(beta + self.rate * self.theta))
        curved = self.weights * second
        (hessian, tilted), (pulled,), _ = plain.products(
            [curved, curved * self.rates], [curved * self.tilt], []
        )
        inverse = np.linalg.pinv(hessian + ridge, hermitian=True) @ onto
        shrunk = ridge @ (beta + self.rate * self.theta)
        scores = first[:, None] * plain.exog + shrunk
        by_theta = -(tilted + self.rate * ridge) @ inverse
        return -scores @ inverse, by_theta, (pulled + self.rate * ridge @ self.theta) @ inverse


def contamination(
    problem: LogisticProblem,
    gamma: float,
    beta: Array,
    influence: Callable[[Array], Array],
    mass: Array,
) -> tuple[float, float]:
    r"""Return the share of wrong labels that the weights show, and its standard error.

    A right label has, at any x, a weight of mean :math:`c = S^{1 / (1 + \gamma)}`, where
    :math:`S = p^{1 + \gamma} + (1 - p)^{1 + \gamma}`; one that is wrong where the model is sure
    has weight near zero. So one minus the mean of w / c is the share of the latter, wherever they
    are. Labels that are wrong where the model is in doubt count in part.

    Parameters
    ----------
    problem : LogisticProblem
    gamma : float
        Exponent of the weights, above 0.
    beta : ndarray, shape (k,)
        Consistent coefficients.
    influence : callable
        Takes directions (k, 1) and returns their influence functions along these, (n, 1): they
        move by the mean over the observations.
    mass : ndarray, shape (n,)
        How often each row counts.
    """
    eta, power = problem.predictor(beta), 1.0 + gamma
    log_sum = np.logaddexp(0.0, -power * np.abs(eta)) - power * np.logaddexp(0.0, -np.abs(eta))
    ratio = np.exp(-gamma * np.logaddexp(0.0, -problem.signs * eta) - log_sum)
    p = expit(power * eta)
    change = ratio * (gamma * (problem.endog - p) - (p - expit(eta)))
    total, first, slope = row_sums(_share_sums, ratio, change, problem.exog, mass)
    mean = float(first / total)
    # Each row moves the mean by its own value, and through the parameters.
    moved = ratio - mean + influence(slope[:, None] / total)[:, 0]
    return max(0.0, 1.0 - mean), float(np.sqrt(mass @ moved**2) / total)


def _share_sums(ratio: Array, change: Array, exog: Array, mass: Array) -> tuple[Array, ...]:
    return mass.sum(), mass @ ratio, (mass * change) @ exog


def separable(problem: LogisticProblem, rows: np.ndarray) -> bool:
    """Tell whether a hyperplane separates the labels of some rows, touching them at most.

    A linear program: a direction b with s x'b >= 0 for all rows and > 0 for some exists exactly
    then, and maximum likelihood has no finite value. Of rows in blocks it takes a few, and then
    those that its solution has on the wrong side, until it separates no longer or there are none.

    Parameters
    ----------
    problem : LogisticProblem
    rows : ndarray of bool, shape (n,)
        The rows in question.
    """
    signed = np.where(rows[:, None], problem.signs[:, None] * problem.exog, 0.0)
    unit, total = np.abs(signed).max(axis=0), signed.mean(axis=0)
    used = signed[:: max(1, problem.n_obs // PROGRAM_ROWS)]
    while True:
        found = _direction(used, unit, total)
        if found is None:
            return False
        worst = signed[smallest(ADDED_ROWS, signed @ found)]
        beyond = worst[worst @ found < -ZERO]
        if not len(beyond):
            return True
        used = np.vstack([used, beyond])


def _direction(signed: Array, unit: Array, total: Array) -> Array | None:
    """Return a direction b with s x'b >= 0 for some rows s x and > 0 for their total, or None."""
    unit = np.maximum(unit, np.finfo(float).tiny)
    scaled, goal = signed / unit, total / unit
    found = linprog(-goal, A_ub=-scaled, b_ub=np.zeros(len(scaled)), bounds=(-1.0, 1.0))
    if found.status != 0 or found.x is None:
        return np.zeros_like(unit)
    return found.x / unit if float(goal @ found.x) > ZERO else None
