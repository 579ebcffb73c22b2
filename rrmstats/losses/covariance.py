"""Mean and covariance of Gaussian rows: the loss, what its weights tell, and the second step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import aligned, in_blocks, row_map, row_sums, taken
from rrmstats.core.consistency import order_efficiency, second_moment_ratio, untilted_variance
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.estimate import EstimableProblem, Estimate, Untilted
from rrmstats.core.explanations import Explained, of_groups, without_comparison
from rrmstats.core.frames import median_of, sign_frame, typical_spread
from rrmstats.core.points import evaluate
from rrmstats.core.sandwich import minimum_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.starts import USUAL_STARTS, affordable_starts
from rrmstats.core.steps import take_steps
from rrmstats.laws.densities import Densities, distance_densities
from rrmstats.laws.gaussian import Rows
from rrmstats.laws.gaussian_equations import STEP
from rrmstats.losses.gaussian_rows import (
    ExplainedRows,
    FittedMixture,
    continued,
    explained_gaussian,
)
from rrmstats.losses.matrices import (
    FLAT,
    check_range,
    root_values,
    symmetric_root,
    thinned,
    triangular_root,
    unit_spread,
    weighted_scatter,
)

# Coordinates of a step up to which Newton's steps cost less in all than Algorithm 1.
NEWTON_MAX = 20
# Degrees of freedom that an estimate has, however few its rows.
# Convention: six rows.
LEAST_FREEDOM = 6.0
#: A location (1, d), or none (0, d) where it is known to be zero, and a scatter (d, d).
Candidate = tuple[Array, Array]
# Entries of the scatters to start from in all: many variables have few starts.
MOST_ENTRIES = 5000
# Rows nearer than this to a hyperplane, for data in units of their spread, lie on it.
ON_PLANE = 100 * np.sqrt(FLAT)


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


# Weights exp(-r^2 / lambda) narrow Gaussian rows of scatter S to S_w = S / a, whatever else is in
# the data, as long as bad rows have no weight: 1 / S_w = 1 / S + 2 / (lambda S_w), so that the
# order a is 1 / (1 - 2 / lambda).


def tilted_order(lambda_: float, eps_bar: float, dim: float) -> float:
    """Return the scatter of good rows over the weighted one, at most that of clean data."""
    clean = 1 / second_moment_ratio(eps_bar, dim)
    return min(lambda_ / (lambda_ - 2), clean) if 2 < lambda_ < np.inf else clean


def tilts(square: Array, order: float, dim: float) -> Array:
    """Return weights whose mean over good rows is one, shape (n,).

    `square` has squared distances in the scatter of good rows, of `dim` dimensions.
    """
    return np.exp(0.5 * dim * np.log(order) - 0.5 * (order - 1) * square)


def tilted_share(
    square: Array, order: float, dim: float, spread: Array, total: float
) -> tuple[float, float]:
    """Return the share of bad rows and its standard error.

    The error is that of the mean of `tilts`, the size of the scatter estimated with it: ln size
    has the scores ``w (a s / d - 1)``.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances s.
    order, dim : float
    spread : ndarray, shape (n,)
        Frequency weights, summing to one.
    total : float
        Number of observations that they stand for.
    """
    weights = tilts(square, order, dim)
    good, first = (float(each) for each in row_sums(_sums, spread * weights, square))
    moves = weights - good
    if order > 1:
        # d mean(w) / d ln(size) is (a - 1) / 2 times mean(w s), the bread of the score good / a.
        scores = weights * (order * square / dim - 1)
        moves = moves + 0.5 * (order - 1) * order * first / good * scores
    error = float(np.sqrt((spread * moves**2).sum() / total))
    return float(np.clip(1 - good, 0.0, 1.0)), error


def _sums(mass: Array, square: Array) -> tuple[Array, Array]:
    return mass.sum(), mass @ square


def untilted_variances(seen: Array, lambda_: float, eps_bar: float) -> Array:
    """Return the variances of noise whose weighted ones are seen, shape (m,).

    Weights exp(-r^2 / lambda) narrow each v to ``1 / (1 / v + 2 / lambda)``. Lambda counts for no
    less than that of clean rows: the divergence of their weights is ``-ln(1 - eps_bar)``.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.covariance import untilted_variances
    >>> untilted_variances(np.array([0.8, 0.5]), 8.0, 0.2).round(3)
    array([1.   , 0.571])
    """
    used = seen[seen > 0]
    if not len(used) or not eps_bar:
        return seen

    def excess(log_lambda: float) -> float:
        left = 1 - 2 * used / np.exp(log_lambda)
        return float(0.5 * (left - 1 - np.log(left)).sum() + np.log1p(-eps_bar))

    low = float(np.log(2 * used.max()))
    clean = float(np.exp(brentq(excess, low + 1e-12, low + np.log(1e3 * len(used) / eps_bar))))
    return np.asarray(seen / (1 - 2 * seen / max(lambda_, clean)))


def tilted_moves(
    problem: ScatterProblem, solution: Solution, order: float, setting: Setting
) -> tuple[Array, Array]:
    """Return influence functions of location (n, d) and consistent scatter (n, d, d).

    ln a moves by -(a - 1) times what ln lambda does, unless it is that of clean data. They grow
    because the fit has used up some of the rows, but for plain moments, whose errors are known.
    """
    n, base = problem.n_obs, setting.base(problem.n_obs)
    steps, log_lambda = minimum_influence(
        problem, solution.theta, solution.losses, solution.weights, solution.lambda_, base
    )
    location, scatter = problem.directions(solution.theta, steps)
    free = order < 1 / second_moment_ratio(setting.eps_bar, problem.dim)
    wnobs = setting.wnobs(n)
    used = problem.n_params if setting.eps_bar else 0
    enlarged = float(np.sqrt(wnobs / max(wnobs - used, 1.0)))
    grown = -(order - 1) * free * log_lambda[:, None, None] * problem.split(solution.theta)[1]
    return enlarged * location, order * enlarged * (scatter + grown)


def precision_order(order: float, eps_bar: float, eps_hat: float, dim: float) -> float:
    """Return the order that tells how precise a first step is.

    Clean data have that of the budget, and bad rows, which use the budget up, bring it down to
    one; but so do good rows that a small sample leaves out for the sake of a closer fit. The
    share of bad rows, estimated afterwards, tells the two apart.

    Parameters
    ----------
    order : float
        That which lambda implies.
    eps_bar, eps_hat : float
        Bound on the share of bad rows, and its estimate.
    dim : float
    """
    left = 1 - min(eps_hat / eps_bar, 1.0) if eps_bar else 0.0
    return max(order, 1 + (1 / second_moment_ratio(eps_bar, dim) - 1) * left)


def scatter_cutoff(level: float, dim: int, good: float, order: float = 1.0) -> float:
    """Return the quantile of squared distances from an estimated location and scatter.

    The estimate is as precise as a Wishart matrix of m e degrees of freedom, e the efficiency of
    an entry of the scatter, which is that of a location in two more dimensions. Distances of rows
    that have no part in it follow an F distribution (Hardin and Rocke). A row at the cut-off has
    some part in it, which its influence function tells.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    dim : int
    good : float
        Number m of good rows.
    order : float, optional
        Order at which location and scatter were determined; 1 for equal weights of good rows.
    """
    freedom = max(good * order_efficiency(order, dim + 2) - dim, LEAST_FREEDOM)
    far = dim * (freedom + dim - 1) / freedom * f_distribution.ppf(level, dim, freedom)
    square = chi2.ppf(level, dim)
    part = np.exp((dim / 2 + 1) * np.log(order) - 0.5 * (order - 1) * square) / good
    return float(far * np.exp(-part * (order * square + 1)))


def subspace_cutoff(
    level: float, freedom: float, regressors: int, good: float, order: float = 1.0
) -> float:
    """Return the quantile of squared distances from an estimated subspace, in units of their size.

    A row without weight is as far from it as g regressions on q scores predict badly.

    Parameters
    ----------
    level : float
        Probability that a clean row stays below.
    freedom : float
        Degrees of freedom g of the distances.
    regressors : int
        The scores and a constant.
    good : float
        Number of good rows.
    order : float, optional
        Order at which the subspace was determined; 1 for equal weights of good rows.
    """
    spread = regressors / (good * order_efficiency(order, freedom))
    free = max(freedom * (good - regressors), LEAST_FREEDOM)
    return float((1 + spread) * freedom * f_distribution.ppf(level, freedom, free))


def scatter_candidates(
    problem: ScatterProblem, solution: Solution, setting: Setting
) -> list[Candidate]:
    """Return locations and scatters to start from, that of least risk first."""
    found, demean = [], int(problem.demean)
    for theta, lambda_ in distinct_ends(problem, solution, setting, problem.dim):
        location, scatter = problem.split(theta)
        order = tilted_order(lambda_, setting.eps_bar, problem.dim)
        found.append((location[None][:demean], scatter * order))
    return found + robust_starts(some_rows(problem, setting), setting.eps_bar)


def some_rows(problem: MomentProblem, setting: Setting) -> Rows:
    """Return rows in memory that tell the middle of all."""
    counts = aligned(setting.counts(problem.n_obs), problem.blocks)
    data, counts = thinned(problem.data, counts)
    return Rows(data, np.ones((len(data), int(problem.demean))), counts)


def distinct_ends(
    problem: MomentProblem, solution: Solution, setting: Setting, unit: float
) -> list[tuple[Array, float]]:
    """Return parameters and lambda of the minima that the search met, the lowest first.

    Parameters
    ----------
    problem : MomentProblem
    solution : Solution
        The first step.
    setting : Setting
    unit : float
        In which risks are compared.
    """
    found = [(solution.theta, solution.lambda_)]
    others = solution.other_minima(unit)[: MOST_ENTRIES // problem.dim**2]
    if problem.blocks is not None or not len(others):
        return found
    lambdas = evaluate(problem, others, setting.budget(problem.n_obs)).lambda_
    pairs = zip(others, lambdas, strict=True)
    return found + [(theta, float(each)) for theta, each in pairs if 0 < each < np.inf]


def robust_starts(rows: Rows, eps_bar: float) -> list[Candidate]:
    """Return scatters of rows that lie in the middle of the data, by four ways to tell them.

    They are the half of least distance along the axes of the spatial signs, in units of their
    median absolute deviations; those not far out along the first of these axes; and those not far
    out along the first or the last axis of the fourth-moment scatter, on which a cluster makes
    tails heavy or short. It does neither where it has about a fifth of the rows.
    """
    used, demean = rows.counts > 0, bool(rows.n_coef)
    data, counts = rows.data[used], rows.counts[used]
    center, axes = sign_frame(data, demean, counts)
    scores = (data - center) @ axes
    scores -= median_of(scores, counts) * demean
    variances = np.maximum(typical_spread(scores, counts) ** 2, FLAT)
    found = [middle(rows, data, counts, np.sum(scores**2 / variances, axis=1), 0.5)]
    if rows.total > 2 * rows.dim:
        found.append(middle(rows, data, counts, scores[:, 0] ** 2, 1 - eps_bar))
        along = fourth_moment_axes(data, counts, demean)
        for axis in (0, -1):
            score = along[:, axis] - median_of(along[:, axis], counts) * demean
            found.append(middle(rows, data, counts, score**2, 1 - eps_bar))
    return [each for each in found if each is not None]


def fourth_moment_axes(data: Array, counts: Array, demean: bool) -> Array:
    """Return coordinates along the axes of the fourth-moment scatter, the largest first, (n, d).

    Rows are whitened by their covariance, and weighted by their squared distances (FOBI).
    """
    share = counts / counts.sum()
    centered = data - share @ data * demean
    spread, vectors = root_values((share[:, None] * centered).T @ centered)
    z = centered @ (vectors / spread)
    fourth = z.T @ ((share * np.sum(z**2, axis=1))[:, None] * z)
    return np.asarray(z @ np.linalg.eigh(fourth)[1][:, ::-1])


def middle(
    rows: Rows, data: Array, counts: Array, distance: Array, share: float
) -> Candidate | None:
    """Return location and scatter of the rows of least distance; None where it is singular.

    The scatter has a size at which the median squared distance is that of Gaussian rows.
    """
    order = np.argsort(distance, kind="stable")
    reached = np.cumsum(counts[order])
    most = max(int(share * reached[-1] + 1e-9), data.shape[1] + 2)
    kept = np.zeros(len(data))
    kept[order] = np.clip(most - (reached - counts[order]), 0.0, counts[order])
    kept /= kept.sum()
    location = kept @ data * rows.n_coef
    scatter = (kept[:, None] * (data - location)).T @ (data - location)
    if not scatter.any():
        return None
    try:
        square = rows.squares((data - location)[None], scatter[None])[0]
    except np.linalg.LinAlgError:
        return None
    size = float(median_of(square[0], counts)) / float(chi2.ppf(0.5, rows.freedom))
    return location[None][: rows.n_coef], scatter * max(size, FLAT)


class CovarianceProblem(ScatterProblem):
    """The Gaussian losses on data of any scale, in units of their spread.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import CovarianceProblem
    >>> problem = CovarianceProblem(1e6 * rng.standard_normal((50, 2)))
    >>> minimize(problem, eps_bar=0.1).converged
    True
    """

    seeks_minima = True

    def __init__(self, data: Array, demean: bool = True) -> None:
        self.center, self.unit = unit_spread(data)
        if not demean:
            self.center = np.zeros_like(self.center)
        scaled = (data - self.center) / self.unit
        check_range(scaled)
        super().__init__(scaled, demean)

    def to_units(self, location: Array, scatter: Array) -> tuple[Array, Array]:
        """Return location and scatter in the units of the data."""
        return self.center + location * self.unit, scatter * np.outer(self.unit, self.unit)

    def to_params(self, location: Array, scatter: Array) -> Array:
        """Return the mean and the upper triangle of the covariance in the units of the data."""
        mean, cov = self.to_units(location, scatter)
        return np.r_[mean, cov[np.triu_indices(self.dim)]]

    def from_params(self, params: Array, eps_bar: float, base: Array | None) -> Array:
        """Return theta of a mean and the upper triangle of a covariance, whatever its size.

        The size becomes that of the weighted covariance, which is not known from the consistent
        one: weights do not depend on it.
        """
        d = self.dim
        upper = np.zeros((d, d))
        upper[np.triu_indices(d)] = params[d:]
        scatter = (upper + np.triu(upper, 1).T) / np.outer(self.unit, self.unit)
        theta = self.join((params[:d] - self.center) / self.unit, scatter)
        square = self.distances(theta)
        if self.blocks is not None:
            rows = np.arange(self.n_obs)
            (square,) = taken(rows, square)
            base = None if base is None else taken(rows, base)[0]
        weights = entropy_weights(square, eps_bar, freq_weights=base).weights
        used = weights > 0
        size = max(float(weights[used] @ square[used]) / d, FLAT)
        return self.join(self.split(theta)[0], size * scatter)

    def consistent(self, solution: Solution, setting: Setting) -> CovarianceEstimate:
        """Return the estimate of the first step, its covariance consistent."""
        plane = self.hyperplane(solution)
        location, scatter = self.split(solution.theta)
        order, eps_hat, error = 1 / second_moment_ratio(setting.eps_bar, self.dim), 0.0, 0.0
        if plane is not None and setting.eps_bar > 0:
            eps_hat, error = self._off_share(solution, setting)
        elif setting.eps_bar > 0:
            order = tilted_order(solution.lambda_, setting.eps_bar, self.dim)
            square, spread = self.distances(solution.theta) / order, setting.spread(self.n_obs)
            eps_hat, error = tilted_share(
                square, order, self.dim, spread, setting.wnobs(self.n_obs)
            )
            eps_hat = min(eps_hat, setting.eps_bar)
        return CovarianceEstimate(
            **self._fields(location, scatter, order),
            setting=setting,
            solution=solution,
            eps_hat=eps_hat,
            eps_hat_se=error,
            plane=plane,
        )

    def _fields(self, location: Array, scatter: Array, order: float) -> dict[str, Any]:
        """Return what estimates of both steps tell of a location and a scatter over its order."""
        mean, raw = self.to_units(location, scatter)
        return dict(
            problem=self,
            params=self.to_params(location, scatter * order),
            raw_params=self.to_params(location, scatter),
            loss_shift=2.0 * float(np.log(self.unit).sum()),
            mean=mean,
            raw_cov=raw,
            ratio=1 / order,
        )

    def second_step(self, first: Estimate) -> CovarianceEstimate:
        """Return the estimate of the best explanation of the rows.

        Where no row can be bad, or the fit is singular, it is the first step.
        """
        assert isinstance(first, CovarianceEstimate)
        return self.explained(first, first.setting, first.setting.eps_bar)

    def explained(
        self, first: CovarianceEstimate, setting: Setting, eps_bar: float
    ) -> CovarianceEstimate:
        """Return the second step of rows that may count for less than in the first.

        Parameters
        ----------
        first : CovarianceEstimate
        setting : Setting
            With how often each row counts now.
        eps_bar : float
            Bound on the share of bad rows among these.
        """
        if first.setting.eps_bar == 0:
            return replace(first, first=first, explained=first.only_explanation())
        tied = tied_columns(self.data, setting.counts(self.n_obs))
        if tied.any() and not tied.all():
            part = self.data[:, ~tied]
            return self._explained_by(part, first, replace(setting, eps_bar=eps_bar), tied)
        if first.plane is not None:
            part = self._within_planes(setting)
            if 0 < part.shape[1] < self.dim:
                return self._explained_by(part, first, replace(setting, eps_bar=eps_bar))
            return replace(first, first=first, explained=first.only_explanation())
        rows = explained_gaussian(
            self,
            replace(setting, eps_bar=eps_bar),
            self.data,
            np.ones_like(self.data[:, : int(self.demean)]),
            scatter_candidates(self, first.solution, setting),
        )
        location, scatter = rows.fitted.mixture.coef[0].sum(axis=0), consistent_scatter(rows)
        pull, theta = rows.probabilities()[1], self.join(location, scatter)
        first = replace(first, setting=setting)
        share, error = rows.share()
        return ExplainedCovariance(
            **self._fields(location, scatter, 1.0),
            setting=setting,
            solution=continued(self, first, theta, pull, rows.converged),
            first=first,
            explained=rows.explained,
            eps_hat=min(share, eps_bar),
            eps_hat_se=error,
            plane=None,
            rows=rows,
        )

    def _within_planes(self, setting: Setting) -> Array:
        """Return the rows along the axes on which they differ, shape (n, r).

        They have no density where all of them lie on a hyperplane; along its axes they have.
        """
        location, scatter = self.central(self.moments(setting.spread(self.n_obs)))
        along = (self.data - location) @ np.linalg.eigh(scatter)[1]
        return along[:, np.asarray(np.abs(along).max(axis=0) > ON_PLANE)]

    def _explained_by(
        self,
        values: Array,
        first: CovarianceEstimate,
        setting: Setting,
        tied: np.ndarray | None = None,
    ) -> CovarianceEstimate:
        """Return the second step where only some values of the rows, (n, r), have a density.

        On columns that are tied, (d,), more than half of the rows lie in one hyperplane, where
        densities have no bound. The moments of all columns are those of the rows that the values
        tell to be good.
        """
        part = take_steps(CovarianceProblem(values, self.demean), setting)
        assert isinstance(part, CovarianceEstimate)
        first = replace(first, setting=setting)
        made: type[CovarianceEstimate] = CovarianceEstimate
        more: dict[str, Any] = {}
        if isinstance(part, ExplainedCovariance):
            made, more = TiedCovariance, {"rows": part.rows}
            pull = part.rows.probabilities()[1]
            theta = good_moments(self, part.rows, part.rows.fitted)
        else:
            pull = part.solution.weights / setting.spread(self.n_obs)
            theta = self.weighted_fit(part.solution.weights)
        solution = continued(self, first, theta, pull, part.solution.converged)
        return made(
            **self._fields(*self.split(theta), 1.0),
            setting=setting,
            solution=solution,
            first=first,
            explained=part.explained,
            eps_hat=part.eps_hat,
            eps_hat_se=part.eps_hat_se,
            plane=self.hyperplane(solution),
            tied=tied,
            **more,
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, the size of its covariance consistent."""
        assert isinstance(estimate, CovarianceEstimate)
        if estimate.plane is not None:
            return Untilted(estimate, np.zeros((self.n_obs, len(estimate.params))))
        weights = estimate.solution.weights
        location, scatter = self.split(estimate.solution.theta)
        size = untilted_variance(1.0, weights, rates)
        found = replace(estimate, ratio=1 / size, params=self.to_params(location, size * scatter))
        # The size solves sum(weights * left) = 1 with left = size / (1 + 2 size rates).
        left = size / (1 + 2 * size * rates)
        slope = float(weights @ left**2) / size
        moves, scaled = estimate.influence(), found.params / slope
        scaled[: self.dim] = 0.0
        moves[:, self.dim :] *= size
        moves -= np.outer(left - 1, scaled)
        return Untilted(
            found, moves, by_log_lambda=-2 * float(weights @ (rates * left**2)) * scaled
        )

    def _off_share(self, solution: Solution, setting: Setting) -> tuple[float, float]:
        """Return the share of rows off the hyperplane, and its standard error.

        NaN where all rows lie on it, because then it does not tell good rows from bad ones.
        """
        off = float(setting.spread(self.n_obs) @ (self.least_axis(solution.theta)[0] > ON_PLANE))
        if off == 0:
            return np.nan, np.nan
        return off, float(np.sqrt(off * (1 - off) / setting.wnobs(self.n_obs)))

    def hyperplane(self, solution: Solution) -> Hyperplane | None:
        """Return the hyperplane that the observations with weight lie on, or None."""
        if not self.is_flat(solution):
            return None
        distance, direction = self.least_axis(solution.theta)
        normal = direction / self.unit
        length = float(np.linalg.norm(normal))
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))]) / length
        mean, _ = self.to_units(*self.split(solution.theta))
        count = int((distance <= ON_PLANE).sum())
        return Hyperplane(normal, float(normal @ mean), count, ON_PLANE / length)


@dataclass(frozen=True, slots=True, eq=False)
class Hyperplane:
    """The hyperplane ``normal @ z = offset`` on which an exact fit lies.

    Attributes
    ----------
    normal : ndarray or Series, shape (d,)
        Unit vector orthogonal to the hyperplane.
    offset : float
    count : int
        Observations on it.
    width : float
        Distance from it that is rounding.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> z = np.random.default_rng(0).standard_normal((40, 2))
    >>> z[:30, 1] = 2 * z[:30, 0]
    >>> plane = rrmstats.RRMCov(z, eps_bar=0.3).fit().hyperplane
    >>> plane.count, bool(abs(plane.normal @ [1, 2]) < 1e-6)
    (30, True)
    """

    normal: Any
    offset: float
    count: int
    width: float


@dataclass(frozen=True, eq=False, kw_only=True)
class CovarianceEstimate(Estimate):
    """The estimate of a mean and covariance by the first step.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    raw_cov : ndarray, shape (d, d)
        The weighted covariance.
    ratio : float
        The weighted covariance relative to the consistent one.
    plane : Hyperplane or None
        The hyperplane of an exact fit.
    tied : ndarray of bool, shape (d,), or None
        Variables that did not tell bad rows from good: most of their values are the same.
    """

    problem: CovarianceProblem
    mean: Array
    raw_cov: Array
    ratio: float
    plane: Hyperplane | None
    tied: np.ndarray | None = None

    def only_explanation(self) -> Explained:
        """Return the explanation where no row can be bad, or rows lie on a hyperplane."""
        problem, bad = self.problem, 0.0 * self.solution.weights
        if self.plane is not None:
            bad = 1.0 * (problem.least_axis(self.solution.theta)[0] > ON_PLANE)
        return without_comparison(of_groups(bad, self.setting.groups), self.eps_hat)

    @property
    def cov(self) -> Array:
        """Consistent covariance, shape (d, d)."""
        return self.raw_cov / self.ratio

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        dim, eps_bar = self.problem.dim, self.setting.eps_bar
        if self.plane is not None:
            return float(chi2.ppf(level, dim))
        order = precision_order(1 / self.ratio, eps_bar, self.eps_hat, dim) if eps_bar else 1.0
        return scatter_cutoff(level, dim, self.wnobs * (1 - self.eps_hat), order)

    def departures(self, other: Estimate) -> Array:
        """Return how far off another estimate is in standard errors, shape (k,).

        NaN where the covariance is singular.
        """
        if self.plane is not None:
            return np.full(len(self.params), np.nan)
        return super().departures(other)

    def influence(self) -> Array:
        """Return the influence functions of the mean and the upper triangle, shape (n, k)."""
        if self.plane is not None:
            raise ValueError(
                "the covariance is singular, so it has no standard errors: the observations with "
                "weight lie on a hyperplane; see hyperplane"
            )
        unit, tail = self.problem.unit, (len(self.params),)
        return row_map(moments_in_units, *self.moves(), tail=tail, unit=unit)

    def moves(self) -> tuple[Array, Array]:
        """Return influence functions of location (n, d) and scatter (n, d, d) of the problem."""
        return tilted_moves(self.problem, self.solution, 1 / self.ratio, self.setting)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedCovariance(CovarianceEstimate):
    """The estimate of a mean and covariance by the second step.

    Attributes
    ----------
    rows : ExplainedRows
        The rows and their explanation, in the units of the problem.
    """

    rows: ExplainedRows

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: the good rows less one."""
        return max(self._good - 1, 1.0)

    @property
    def _good(self) -> float:
        return self.wnobs * (1 - self.eps_hat)

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        return scatter_cutoff(level, self.problem.dim, self._good)

    def moves(self) -> tuple[Array, Array]:
        """Return influence functions of location (n, d) and scatter (n, d, d) of the problem."""
        rows, dim = self.rows, self.problem.dim
        decided, mixture = rows.fitted.decided, rows.fitted.mixture
        df, tails = float(mixture.df[0]), decided.place("df")
        slope = np.zeros(tails.stop - tails.start)
        if len(slope):
            up, down = (np.log(student_size(df * factor, dim)) for factor in (1.01, 1 / 1.01))
            slope[:] = (up - down) / (2 * np.log(1.01))
        root, moves = np.linalg.cholesky(mixture.scatter[0]), rows.influence()
        scatter = row_map(
            _scatter_moves, moves[:, decided.place("scatter")], moves[:, tails], tail=(dim, dim),
            slope=slope, root=np.sqrt(student_size(df, dim)) * root,
        )  # fmt: skip
        if not self.problem.demean:
            return moves[:, :1] * np.zeros(dim), scatter
        return moves[:, decided.place("coef")] @ root.T, scatter


@dataclass(frozen=True, eq=False, kw_only=True)
class TiedCovariance(ExplainedCovariance):
    """The estimate of a second step that some variables had no part in; see `tied`."""

    def moves(self) -> tuple[Array, Array]:
        """Return influence functions of location (n, d) and scatter (n, d, d) of the problem.

        Those of moments of rows that count for what the other variables tell, and what these
        counts move with their own parameters.
        """
        problem, rows, fitted, d = self.problem, self.rows, self.rows.fitted, self.problem.dim
        slopes = []
        for step in STEP * np.eye(len(fitted.decided.value)):
            up, down = (
                good_moments(
                    problem,
                    rows,
                    replace(fitted, mixture=fitted.decided.moved(by, fitted.mixture)),
                )
                for by in (step[None], -step[None])
            )
            slopes.append((up - down) / (2 * STEP))
        good, pull = rows.probabilities()
        mass = float((rows.counts * pull).sum())
        moves = fitted.total * row_map(
            _good_moment_moves, problem.data, pull / mass, good / rows.n_good, tail=(d + d * d,),
            theta=self.solution.theta, size=student_scale(rows, fitted) * mass / rows.n_good,
        )  # fmt: skip
        moves = moves + rows.influence() @ np.array(slopes)
        return moves[:, :d] * problem.demean, row_map(_squared, moves[:, d:], tail=(d, d))


def _good_moment_moves(data: Array, pull: Array, good: Array, theta: Array, size: float) -> Array:
    """Return the influence functions of `good_moments`, what rows count for being known."""
    d = data.shape[1]
    centered = data - theta[:d]
    outer = (size * pull[:, None] * centered)[:, :, None] * centered[:, None]
    moved = _squared(good[:, None] * theta[d:])
    return np.hstack([pull[:, None] * centered, (outer - moved).reshape(len(data), d * d)])


def _squared(values: Array) -> Array:
    d = int(np.sqrt(values.shape[1]))
    return values.reshape(len(values), d, d)


def good_moments(problem: CovarianceProblem, rows: ExplainedRows, fitted: FittedMixture) -> Array:
    """Return location and scatter of all columns of the good rows, shape (d + d * d,).

    `rows` has some of the columns, of which `fitted` is a mixture. See also `consistent_scatter`.
    """
    both = row_map(fitted.probabilities, rows.data, rows.exog, rows.counts, rows.groups)
    sums = row_sums(moment_sums, problem.data, rows.counts * both[:, 1])
    location, scatter = problem.central(normalized(sums))
    n_good = float((rows.counts * both[:, 0]).sum())
    return problem.join(location, scatter * (student_scale(rows, fitted) * sums[0] / n_good))


def scatter_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of distances in the metric of `consistent_scatter`, at each of (m,)."""
    fitted = rows.fitted
    unit = float(np.sqrt(consistent_scatter(rows)[0, 0] / fitted.mixture.scatter[0, 0, 0]))
    return distance_densities(fitted.decided.rows, fitted.mixture, at * unit).per(unit)


def student_scale(rows: ExplainedRows, fitted: FittedMixture) -> float:
    """Return `student_size` of the noise of a mixture."""
    return student_size(float(fitted.mixture.df[0]), rows.data.shape[1])


def tied_columns(data: Array, counts: Array) -> np.ndarray:
    """Tell in which columns more than half of the values are the same, but not all, (d,)."""
    some, counts = thinned(data, aligned(counts, in_blocks(data)))
    center = median_of(some, counts)
    tied = median_of(np.abs(some - center), counts) == 0
    return np.asarray(tied & (np.abs(data - center).max(axis=0) > 0)) if tied.any() else tied


def student_size(df: float, dim: int) -> float:
    """Return by how much the scatter of Student noise is smaller than that of its middle half.

    A Gaussian distribution of the larger scatter has the same median distance.
    """
    if np.isinf(df):
        return 1.0
    return float(dim * f_distribution.ppf(0.5, dim, df) / chi2.ppf(0.5, dim))


def consistent_scatter(rows: ExplainedRows) -> Array:
    """Return the scatter of the good rows, shape (d, d), their number its divisor.

    That of Student noise has the size of its middle half; see `student_size`.
    """
    good, fitted = rows.n_good, rows.fitted
    size = student_scale(rows, fitted) * (good - rows.exog.shape[1]) / good
    return fitted.mixture.scatter[0] * size


def _scatter_moves(upper: Array, tails: Array, slope: Array, root: Array) -> Array:
    dim = len(root)
    rows, columns = np.triu_indices(dim)
    shape = np.zeros((len(upper), dim, dim))
    shape[:, rows, columns] = shape[:, columns, rows] = upper
    shape += (tails @ slope)[:, None, None] * np.eye(dim)
    return np.asarray(root @ shape @ root.T)


def moments_in_units(mean: Array, scatter: Array, unit: Array) -> Array:
    """Return means (n, d) and upper triangles of (n, d, d) in the units of the data, (n, k)."""
    rows, columns = np.triu_indices(len(unit))
    return np.hstack([mean * unit, scatter[:, rows, columns] * unit[rows] * unit[columns]])
