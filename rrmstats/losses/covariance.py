"""Estimates of a mean and covariance on data of any scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import aligned, in_blocks, row_map, row_sums, taken
from rrmstats.core.consistency import second_moment_ratio, untilted_variance
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.explanations import Explained, without_comparison
from rrmstats.core.frames import median_of
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.laws.gaussian_equations import STEP
from rrmstats.losses.gaussian_rows import (
    ExplainedRows,
    FittedMixture,
    continued,
    explained_gaussian,
)
from rrmstats.losses.matrices import FLAT, check_range, thinned, unit_spread
from rrmstats.losses.scatter import ScatterProblem, moment_sums, normalized
from rrmstats.losses.scatter_starts import ones_column, scatter_candidates
from rrmstats.losses.tilted_scatter import (
    precision_order,
    scatter_cutoff,
    tilted_moves,
    tilted_order,
    tilted_share,
)

# Rows nearer than this to a hyperplane, for data in units of their spread, lie on it.
ON_PLANE = 100 * np.sqrt(FLAT)


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
        if plane is not None:
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
            return self._explained_without(tied, first, replace(setting, eps_bar=eps_bar))
        if first.plane is not None:
            return replace(first, first=first, explained=first.only_explanation())
        rows = explained_gaussian(
            self,
            replace(setting, eps_bar=eps_bar),
            self.data,
            ones_column(self.data, int(self.demean)),
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

    def _explained_without(
        self, tied: np.ndarray, first: CovarianceEstimate, setting: Setting
    ) -> CovarianceEstimate:
        """Return the second step where some columns, shape (d,), do not tell bad rows from good.

        On each of these more than half of the rows lie in one hyperplane, where densities have no
        bound. Their moments are those of the rows that the other columns tell to be good.
        """
        part = take_steps(CovarianceProblem(self.data[:, ~tied], self.demean), setting)
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

    def hyperplane(self, solution: Solution) -> Plane | None:
        """Return the hyperplane that the observations with weight lie on, or None."""
        if not self.is_flat(solution):
            return None
        distance, direction = self.least_axis(solution.theta)
        normal = direction / self.unit
        length = float(np.linalg.norm(normal))
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))]) / length
        mean, _ = self.to_units(*self.split(solution.theta))
        count = int((distance <= ON_PLANE).sum())
        return Plane(normal, float(normal @ mean), count, ON_PLANE / length)


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The hyperplane ``normal @ z = offset``; `count` observations are within `width` of it."""

    normal: Array
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
    plane : Plane or None
        The hyperplane of an exact fit.
    tied : ndarray of bool, shape (d,), or None
        Variables that did not tell bad rows from good: most of their values are the same.
    """

    problem: CovarianceProblem
    mean: Array
    raw_cov: Array
    ratio: float
    plane: Plane | None
    tied: np.ndarray | None = None

    def only_explanation(self) -> Explained:
        """Return what is told where no row can be bad, or rows lie on a hyperplane."""
        problem, bad = self.problem, 0.0 * self.solution.weights
        if self.plane is not None:
            bad = 1.0 * (problem.least_axis(self.solution.theta)[0] > ON_PLANE)
        return without_comparison(bad, self.eps_hat)

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
