"""Mean and covariance of Gaussian rows: the loss, what its weights tell, and the second step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
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
from rrmstats.core.problem import Problem
from rrmstats.core.sandwich import minimum_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.starts import USUAL_STARTS, affordable_starts
from rrmstats.core.steps import take_steps
from rrmstats.core.tolerances import ROUNDING
from rrmstats.laws.densities import Densities, distance_densities
from rrmstats.laws.gaussian import Rows, ridged
from rrmstats.laws.gaussian_equations import STEP
from rrmstats.losses.gaussian_rows import ExplainedRows, continued, explained_gaussian
from rrmstats.losses.matrices import (
    FLAT,
    central_moments,
    check_range,
    scatter_root,
    symmetric,
    thinned,
    unit_spread,
    upper_triangle,
    weighted_scatter,
)

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
    width : int
        Columns of the matrix that theta holds, row by row, after a point (d,).

    Attributes
    ----------
    most_coordinates : int
        Coordinates of a step up to which Newton's steps cost less in all than Algorithm 1.
    """

    n_coordinates: int
    most_coordinates: int

    def __init__(self, data: Array, demean: bool, width: int) -> None:
        self.data, self.demean, self.width = data, demean, width
        self.n_obs, self.dim = data.shape

    @property
    def row_arrays(self) -> tuple[Array, ...]:
        """The observations."""
        return (self.data,)

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the point (..., d) and the matrix (..., d, width) of parameters."""
        d = self.dim
        return theta[..., :d], theta[..., d:].reshape(*theta.shape[:-1], d, self.width)

    def join(self, point: Array, matrix: Array) -> Array:
        """Return theta of a point and a matrix."""
        flat = matrix.reshape(*matrix.shape[:-2], self.dim * self.width)
        return np.concatenate([point, flat], axis=-1)

    def weighted_moments(self, weights: Array) -> tuple[Array, Array]:
        """Return the weighted mean (..., d), zero where it is known, and the scatter around it."""
        point = weights @ self.data * self.demean
        return point, weighted_scatter(self.data, weights, point)

    @property
    def newton_pays(self) -> bool:
        """Whether steps are short enough for their Hessian."""
        return self.n_coordinates <= self.most_coordinates


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

    most_coordinates = 20

    def __init__(self, data: Array, demean: bool = True) -> None:
        super().__init__(data, demean, data.shape[1])
        self.n_params = self.dim + demean
        self.n_coordinates = self.dim * demean + self.dim * (self.dim + 1) // 2

    def whitened(self, theta: Array) -> tuple[Array, Array]:
        """Return the data in the frame of theta (..., n, d), and ln det S (...)."""
        location, scatter = self.split(theta)
        _, inverse, log_det = scatter_root(scatter)
        return (self.data - location[..., None, :]) @ np.swapaxes(inverse, -1, -2), log_det

    def distances(self, theta: Array) -> Array:
        """Return the squared distances from the location, shape (..., n)."""
        u, _ = self.whitened(theta)
        return np.einsum("...nd,...nd->...n", u, u)

    def losses(self, theta: Array) -> Array:
        """Return the loss of each observation, shape (..., n)."""
        u, log_det = self.whitened(theta)
        return np.einsum("...nd,...nd->...n", u, u) + log_det[..., None]

    def least_loss(self, theta: Array) -> float:
        """Return ln det S, the loss of an observation at the location."""
        return float(scatter_root(self.split(theta)[1])[2])

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted mean and covariance, shape (..., d + d * d)."""
        return self.join(*self.weighted_moments(weights))

    @cached_property
    def _basis(self) -> Array:
        """Basis of the symmetric matrices, shape (d * (d + 1) / 2, d, d)."""
        return symmetric(np.eye(self.dim * (self.dim + 1) // 2), self.dim)

    def default_starts(self, eps_bar: float) -> int:
        """Return how many random subsets to try where the user does not say."""
        return affordable_starts(self.n_params, eps_bar, USUAL_STARTS)

    def tilt(self, lambda_: float, eps_bar: float) -> Tilt:
        """Return what weights tell of good rows, in the frame of the weighted scatter."""
        return untilted(np.ones(self.dim), lambda_, eps_bar)

    @cached_property
    def _robust(self) -> tuple[Array, Array, Array]:
        return sign_scatter(self.data, self.demean)

    def robust_starts(self) -> Array:
        """Return the scatter with the axes of the signs, shape (1, d + d * d)."""
        location, axes, spread = self._robust
        return self.join(location, (axes * spread**2) @ axes.T)[None]

    def pulls(self, theta: Array) -> Array:
        """Return the pulls on the location, in units of a robust scatter, shape (n, d)."""
        location, axes, spread = self._robust
        return (self.data - location) @ axes / spread

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
        root = scatter_root(scatter)[0]
        if self.demean:
            location = location + (root @ step[..., : self.dim, None])[..., 0]
            step = step[..., self.dim :]
        values, vectors = np.linalg.eigh(symmetric(step, self.dim))
        change = (vectors * np.exp(-np.clip(values, -50, 50))[..., None, :]) @ np.swapaxes(
            vectors, -1, -2
        )
        return self.join(location, root @ change @ np.swapaxes(root, -1, -2))

    def directions(self, theta: Array) -> Array:
        """Return what small steps do to the location and the upper triangle of the scatter.

        One row for each coordinate of a step, shape (k, d + d * (d + 1) / 2).
        """
        root = scatter_root(self.split(theta)[1])[0]
        changes = upper_triangle(-root @ self._basis @ root.T)
        return np.asarray(block_diag(root.T[: self.dim * self.demean], changes))

    def least_axis(self, theta: Array) -> tuple[Array, Array]:
        """Return distances along the axis of least variance, (n,), and that axis, (d,)."""
        location, scatter = self.split(theta)
        axis = np.linalg.eigh(scatter)[1][:, 0]
        return np.abs((self.data - location) @ axis), axis

    @property
    def subset_size(self) -> int:
        """Rows that determine a start."""
        return self.dim + 3

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


class Tilt(NamedTuple):
    """What weights ``exp(-loss / lambda)`` tell of the Gaussian noise of good rows.

    They narrow each variance v to ``1 / (1 / v + 2 / lambda)``, whatever else is in the data, as
    long as bad rows have no weight.

    Attributes
    ----------
    variances : ndarray, shape (m,)
        Of good rows.
    rate : float
        1 / lambda, at the lambda that counts.
    size : float
        What takes the mean of ``exp(-rate * loss)`` over good rows to one.
    """

    variances: Array
    rate: float
    size: float

    def share(
        self, losses: Array, spread: Array, total: float, sized: bool = False
    ) -> tuple[float, float]:
        """Return the share of bad rows and its standard error.

        Parameters
        ----------
        losses : ndarray, shape (n,)
        spread : ndarray, shape (n,)
            Frequency weights, summing to one.
        total : float
            Number of observations that they stand for.
        sized : bool, optional
            Whether losses are squared distances in the weighted scatter: the error is then also
            that of its size.
        """
        weights = self.size * np.exp(-self.rate * losses)
        good, first = (float(each) for each in row_sums(_sums, spread * weights, losses))
        moves = weights - good
        if sized:
            # d mean(w) / d ln(size) is (a - 1) / 2 times mean(w s), a being the variances and s
            # the loss over a; ln size has the scores w (a s / d - 1) and the bread good / a.
            slope = 0.5 * (self.variances[0] - 1) * first / good
            moves = moves + slope * weights * (losses / len(self.variances) - 1)
        error = float(np.sqrt((spread * moves**2).sum() / total))
        return float(np.clip(1 - good, 0.0, 1.0)), error


def _sums(mass: Array, losses: Array) -> tuple[Array, Array]:
    return mass.sum(), mass @ losses


def share_of(bad: np.ndarray, setting: Setting) -> tuple[float, float]:
    """Return the share of rows that are bad, (n,), and its standard error."""
    share = float(setting.spread(len(bad)) @ (1.0 * bad))
    return share, float(np.sqrt(max(share * (1 - share), 0.0) / setting.wnobs(len(bad))))


def untilted(seen: Array, lambda_: float, eps_bar: float) -> Tilt:
    """Return what weights tell of noise whose weighted variances are seen, shape (m,).

    Lambda counts for no less than that of clean rows: the divergence of their weights is
    ``-ln(1 - eps_bar)``.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.losses.covariance import untilted
    >>> untilted(np.array([0.8, 0.5]), 8.0, 0.2).variances.round(3)
    array([1.   , 0.571])
    """
    used = seen[seen > 0]
    if not len(used) or not eps_bar:
        return Tilt(seen, 0.0, 1.0)

    def excess(log_lambda: float) -> float:
        left = 1 - 2 * used / np.exp(log_lambda)
        return float(0.5 * (left - 1 - np.log(left)).sum() + np.log1p(-eps_bar))

    low = float(np.log(2 * used.max()))
    clean = float(np.exp(brentq(excess, low + 1e-12, low + np.log(1e3 * len(used) / eps_bar))))
    rate = 1 / max(lambda_, clean)
    left = 1 - 2 * seen * rate
    return Tilt(seen / left, rate, float(np.exp(-0.5 * np.log(left).sum())))


def tilted_moves(
    problem: ScatterProblem, solution: Solution, order: float, setting: Setting
) -> Array:
    """Return influence functions of location and consistent scatter, its upper triangle, (n, k).

    ln a moves by -(a - 1) times what ln lambda does, unless it is that of clean data. They grow
    because the fit has used up some of the rows, but for plain moments, whose errors are known.
    """
    n, dim, wnobs = problem.n_obs, problem.dim, setting.wnobs(problem.n_obs)
    steps, log_lambda = minimum_influence(
        problem, solution.theta, solution.losses, solution.weights, solution.lambda_,
        setting.base(n),
    )  # fmt: skip
    free = order < (1 - ROUNDING) / second_moment_ratio(setting.eps_bar, dim)
    upper = upper_triangle(problem.split(solution.theta)[1])
    grown = np.r_[np.zeros(dim), (order - 1) * free * upper]
    used = problem.n_params if setting.eps_bar else 0
    enlarged = float(np.sqrt(wnobs / max(wnobs - used, 1.0)))
    moves = steps @ problem.directions(solution.theta) - log_lambda[:, None] * grown
    return moves * (enlarged * np.r_[np.ones(dim), np.full(len(upper), order)])


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
        order = problem.tilt(lambda_, setting.eps_bar).variances[0]
        found.append((location[None][:demean], scatter * order))
    rows = some_rows(problem, setting)
    return different(rows, found + robust_starts(rows, setting.eps_bar))


def different(rows: Rows, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates from which most rows are not as far as from an earlier one.

    Those whose distances differ by less than a tenth of a standard deviation lead to one end.
    """
    kept: list[Candidate] = []
    known: list[Array] = []
    for coef, scatter in candidates:
        resid = rows.data - coef.sum(axis=0)
        distance = np.sqrt(rows.measured(resid[None], ridged(scatter[None])).square[0])
        if all(median_of(np.abs(distance - each), rows.counts) > 0.1 for each in known):
            kept.append((coef, scatter))
            known.append(distance)
    return kept


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
    location, axes, spread = sign_scatter(data, demean, counts)
    scores = (data - location) @ axes
    found = [middle(rows, data, counts, np.sum((scores / spread) ** 2, axis=1), 0.5)]
    if rows.total > 2 * rows.dim:
        found.append(middle(rows, data, counts, scores[:, 0] ** 2, 1 - eps_bar))
        along = fourth_moment_axes(data, counts, demean)
        for axis in (0, -1):
            score = along[:, axis] - median_of(along[:, axis], counts) * demean
            found.append(middle(rows, data, counts, score**2, 1 - eps_bar))
    return [each for each in found if each is not None]


def sign_scatter(
    data: Array, demean: bool, counts: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return a location (d,), the axes of the spatial signs (d, d), and the spread along each."""
    center, axes = sign_frame(data, demean, counts)
    scores = (data - center) @ axes
    middle = median_of(scores, counts) * demean
    spread = np.maximum(typical_spread(scores - middle, counts), np.sqrt(FLAT))
    return center + axes @ middle, axes, spread


def fourth_moment_axes(data: Array, counts: Array, demean: bool) -> Array:
    """Return coordinates along the axes of the fourth-moment scatter, the largest first, (n, d).

    Rows are whitened by their covariance, and weighted by their squared distances (FOBI).
    """
    share = counts / counts.sum()
    centered = data - share @ data * demean
    z = centered @ scatter_root((share[:, None] * centered).T @ centered)[1].T
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
        square = rows.measured((data - location)[None], scatter[None]).square
    except np.linalg.LinAlgError:
        return None
    size = float(median_of(square[0], counts)) / float(chi2.ppf(0.5, rows.freedom))
    return location[None][: rows.n_coef], scatter * max(size, FLAT)


class CovarianceProblem(ScatterProblem):
    """The Gaussian losses on data of any scale, in units of their spread.

    Parameters
    ----------
    data : ndarray, shape (n, d)
    demean : bool, optional
        False fixes mu at zero.
    like : CovarianceProblem, optional
        One whose units serve these data too.

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

    def __init__(
        self, data: Array, demean: bool = True, like: CovarianceProblem | None = None
    ) -> None:
        if like is None:
            center, self.unit = unit_spread(data)
            self.center = center if demean else np.zeros_like(center)
        else:
            self.center, self.unit = like.center, like.unit
        scaled = (data - self.center) / self.unit
        check_range(scaled)
        super().__init__(scaled, demean)

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them."""
        assert isinstance(other, CovarianceProblem)
        return np.array_equal([self.center, self.unit], [other.center, other.unit])

    def flat(self, theta: Array) -> Array:
        """Return the location and the upper triangle of the scatter of theta, (d + k,)."""
        location, scatter = self.split(theta)
        return np.r_[location * self.demean, upper_triangle(scatter)]

    def to_params(self, location: Array, scatter: Array) -> Array:
        """Return the mean and the upper triangle of the covariance in the units of the data."""
        upper = upper_triangle(scatter * np.outer(self.unit, self.unit))
        return np.r_[self.center + location * self.unit, upper]

    def from_params(self, params: Array, eps_bar: float, base: Array) -> Array:
        """Return theta of a mean and the upper triangle of a covariance, whatever its size.

        The size becomes that of the weighted covariance, which is not known from the consistent
        one: weights do not depend on it. `base`, shape (n,), has the frequency weights.
        """
        scatter = symmetric(params[self.dim :], self.dim) / np.outer(self.unit, self.unit)
        location = (params[: self.dim] - self.center) / self.unit
        square = self.distances(self.join(location, scatter))
        square, base = taken(np.arange(self.n_obs), square, aligned(base, self.blocks))
        weights = entropy_weights(square, eps_bar, freq_weights=base).weights
        used = weights > 0
        size = max(float(weights[used] @ square[used]) / self.dim, FLAT)
        return self.join(location, size * scatter)

    def consistent(self, solution: Solution, setting: Setting) -> CovarianceEstimate:
        """Return the estimate of the first step, its covariance consistent."""
        plane, eps_bar = self.hyperplane(solution), setting.eps_bar
        order, eps_hat, error = 1 / second_moment_ratio(eps_bar, self.dim), 0.0, 0.0
        if plane is not None and eps_bar > 0:
            off = self.least_axis(solution.theta)[0] > ON_PLANE
            eps_hat, error = share_of(off, setting)
            if eps_hat == 0:  # all rows lie on it, which does not tell good rows from bad ones
                eps_hat = error = np.nan
        elif eps_bar > 0:
            tilt, square = self.tilt(solution.lambda_, eps_bar), self.distances(solution.theta)
            spread, wnobs = setting.spread(self.n_obs), setting.wnobs(self.n_obs)
            order, (eps_hat, error) = tilt.variances[0], tilt.share(square, spread, wnobs, True)
        found = self._estimate(solution, setting, order, plane=plane)
        return replace(found, eps_hat=min(eps_hat, eps_bar), eps_hat_se=error)

    def _estimate(
        self, solution: Solution, setting: Setting, order: float, **more: Any
    ) -> CovarianceEstimate:
        """Return the estimate whose scatter is `order` times that of a solution."""
        location, scatter = self.split(solution.theta)
        root = scatter_root(scatter)[0]  # of variances that are not zero
        scatter = root @ root.T
        return CovarianceEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=self.to_params(location, scatter * order),
            raw_params=self.to_params(location, scatter),
            loss_shift=2.0 * float(np.log(self.unit).sum()),
            order=order,
            **more,
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

        On columns that are tied more than half of the rows lie in one hyperplane, and where all
        rows do, they have no density. Bad rows are then told by the other columns, or along the
        axes of the hyperplane. The moments of all columns are those of the rows that are good.

        Parameters
        ----------
        first : CovarianceEstimate
        setting : Setting
            With how often each row counts now.
        eps_bar : float
            Bound on the share of bad rows among these.
        """
        values, tied = self.data, tied_columns(self.data, setting.counts(self.n_obs))
        if tied is not None:
            values = values[:, ~tied]
        elif first.plane is not None:
            values = self._within_planes(setting)
        apart = tied is not None or first.plane is not None
        if first.setting.eps_bar == 0 or (apart and not 0 < values.shape[1] < self.dim):
            return replace(first, first=first, explained=first.only_explanation())
        first = replace(first, setting=setting)
        bounded, rows = replace(setting, eps_bar=eps_bar), None
        if apart:
            problem = CovarianceProblem(values, self.demean).in_groups(self.row_groups)
            part = take_steps(problem, bounded)
            assert isinstance(part, CovarianceEstimate)
            rows, told, converged = part.rows, part.explained, part.solution.converged
            share, error = part.eps_hat, part.eps_hat_se
        else:
            ones, sample = np.ones_like(self.data[:, : int(self.demean)]), None
            if isinstance(first.decided, CovarianceEstimate) and first.decided.tied is None:
                sample = first.decided.rows
            starts = [] if sample else scatter_candidates(self, first.solution, setting)
            rows = explained_gaussian(self, bounded, self.data, ones, starts, sample=sample)
            told, converged, (share, error) = rows.explained, rows.converged, rows.share()
        if rows is None:
            pull: Array = part.solution.weights / setting.spread(self.n_obs)
            theta = self.weighted_fit(part.solution.weights)
        else:
            pull, theta = rows.probabilities()[1], good_moments(self, rows)
            if not apart:  # the number of good rows is the divisor of the scatter
                theta[self.dim :] *= (rows.n_good - rows.exog.shape[1]) / rows.n_good
        solution = continued(self, first, theta, pull, converged)
        return self._estimate(
            solution,
            setting,
            1.0,
            first=first,
            explained=told,
            eps_hat=min(share, eps_bar),
            eps_hat_se=error,
            plane=self.hyperplane(solution) if apart else None,
            tied=tied,
            rows=rows,
        )

    def _within_planes(self, setting: Setting) -> Array:
        """Return the rows along the axes on which they differ, shape (n, r)."""
        _, location, scatter = central_moments(self.data, setting.spread(self.n_obs), self.demean)
        along = (self.data - location) @ np.linalg.eigh(scatter)[1]
        return along[:, np.asarray(np.abs(along).max(axis=0) > ON_PLANE)]

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, the size of its covariance consistent."""
        assert isinstance(estimate, CovarianceEstimate)
        if estimate.plane is not None:
            return Untilted(estimate, np.zeros((self.n_obs, len(estimate.params))))
        weights = estimate.solution.weights
        location, scatter = self.split(estimate.solution.theta)
        size = untilted_variance(1.0, weights, rates)
        found = replace(estimate, order=size, params=self.to_params(location, size * scatter))
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

    def hyperplane(self, solution: Solution) -> Hyperplane | None:
        """Return the hyperplane that the observations with weight lie on, or None."""
        distance, direction = self.least_axis(solution.theta)
        # The eigenvalue would not tell, which rounding keeps far from zero.
        if not solution.weights @ distance**2 <= 4 * FLAT:
            return None
        normal = direction / self.unit
        length = float(np.linalg.norm(normal))
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))]) / length
        mean = self.center + self.split(solution.theta)[0] * self.unit
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
    """The estimate of a mean and covariance.

    Attributes
    ----------
    order : float
        The consistent covariance over the weighted one.
    plane : Hyperplane or None
        The hyperplane of an exact fit.
    tied : ndarray of bool, shape (d,), or None
        Variables that did not tell bad rows from good: most of their values are the same.
    rows : ExplainedRows or None
        In the second step the rows and their explanation, in the units of the problem; those of
        the columns, or axes, that tell bad rows from good.
    """

    problem: CovarianceProblem
    order: float
    plane: Hyperplane | None
    tied: np.ndarray | None = None
    rows: ExplainedRows | None = None

    def only_explanation(self) -> Explained:
        """Return the explanation where no row can be bad, or rows lie on a hyperplane."""
        problem, bad = self.problem, 0.0 * self.solution.weights
        if self.plane is not None:
            bad = 1.0 * (problem.least_axis(self.solution.theta)[0] > ON_PLANE)
        return without_comparison(of_groups(bad, problem.row_groups), self.eps_hat)

    @property
    def mean(self) -> Array:
        """Location, shape (d,)."""
        return self.params[: self.problem.dim]

    @property
    def cov(self) -> Array:
        """Consistent covariance, shape (d, d)."""
        return symmetric(self.params[self.problem.dim :], self.problem.dim)

    @property
    def inference_freedom(self) -> float:
        """Degrees of freedom of t tests: in the second step the good rows less one."""
        return np.inf if self.rows is None else max(self.wnobs * (1 - self.eps_hat) - 1, 1.0)

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        dim, order = self.problem.dim, 1.0
        if self.rows is None:
            if self.plane is not None:
                return float(chi2.ppf(level, dim))
            order = precision_order(self.order, self.setting.eps_bar, self.eps_hat, dim)
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
        return self.moves()

    def moves(self) -> Array:
        """Return the influence functions of all parameters, also of a singular covariance.

        In the second step through the parameters of the mixture; where other columns tell what a
        row counts for, it moves the moments of all columns itself too.
        """
        problem, rows = self.problem, self.rows
        unit = np.r_[problem.unit, upper_triangle(np.outer(problem.unit, problem.unit))]
        if rows is None:
            return tilted_moves(problem, self.solution, self.order, self.setting) * unit
        slopes = []
        for step in STEP * np.eye(len(rows.decided.value)):
            up, down = (
                good_moments(problem, replace(rows, mixture=rows.decided.moved(by, rows.mixture)))
                for by in (step[None], -step[None])
            )
            slopes.append(problem.flat((up - down) / (2 * STEP)))
        moves: Array = rows.influence() @ np.array(slopes)
        if rows.data.shape[1] < problem.dim:
            good, pull = rows.probabilities()
            mass = float((rows.counts * pull).sum())
            moves = moves + rows.total * row_map(
                own_moves, problem.data, pull / mass, good / rows.n_good, tail=(len(unit),),
                moments=problem.flat(self.solution.theta),
                size=student_scale(rows) * mass / rows.n_good,
            )  # fmt: skip
        return moves * unit


def own_moves(data: Array, pull: Array, good: Array, moments: Array, size: float) -> Array:
    """Return the influence functions of `good_moments`, what rows count for being known."""
    d = data.shape[1]
    centered = data - moments[:d]
    outer = upper_triangle(centered[:, :, None] * centered[:, None])
    scatter = size * pull[:, None] * outer - good[:, None] * moments[d:]
    return np.hstack([pull[:, None] * centered, scatter])


def good_moments(problem: CovarianceProblem, rows: ExplainedRows) -> Array:
    """Return location and scatter of all columns of the good rows, shape (d + d * d,).

    Where `rows` has some of the columns alone, the number of good rows is the divisor of the
    scatter, otherwise that of its degrees of freedom.
    """
    if rows.data.shape[1] == problem.dim:
        mixture = rows.mixture
        return problem.join(mixture.coef[0].sum(axis=0), mixture.scatter[0] * student_scale(rows))
    pull = rows.counts * rows.probabilities()[1]
    mass, location, scatter = central_moments(problem.data, pull, problem.demean)
    return problem.join(location, scatter * (student_scale(rows) * mass / rows.n_good))


def scatter_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of distances in the metric of `consistent_size`, at each of (m,)."""
    unit = float(np.sqrt(consistent_size(rows)))
    return distance_densities(rows.decided.rows, rows.mixture, at * unit).per(unit)


def consistent_size(rows: ExplainedRows) -> float:
    """Return the scatter of the good rows over that of their mixture, their number its divisor."""
    return student_scale(rows) * (rows.n_good - rows.exog.shape[1]) / rows.n_good


def student_scale(rows: ExplainedRows) -> float:
    """Return `student_size` of the noise of a mixture."""
    return student_size(float(rows.mixture.df[0]), rows.data.shape[1])


def tied_columns(data: Array, counts: Array) -> np.ndarray | None:
    """Tell in which columns more than half of the values are the same, but not all, (d,).

    None where there are no such columns, or no others.
    """
    some, counts = thinned(data, aligned(counts, in_blocks(data)))
    center = median_of(some, counts)
    tied = median_of(np.abs(some - center), counts) == 0
    if tied.any():
        tied &= np.abs(data - center).max(axis=0) > 0
    return np.asarray(tied) if tied.any() and not tied.all() else None


def student_size(df: float, dim: int) -> float:
    """Return by how much the scatter of Student noise is smaller than that of its middle half.

    A Gaussian distribution of the larger scatter has the same median distance.
    """
    if np.isinf(df):
        return 1.0
    return float(dim * f_distribution.ppf(0.5, dim, df) / chi2.ppf(0.5, dim))
