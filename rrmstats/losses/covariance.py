"""Estimates of a mean and covariance on data of any scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import row_map
from rrmstats.core.consistency import (
    gaussian_efficiency,
    second_moment_ratio,
    untilted_variance,
)
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.estimate import Estimate, Untilted
from rrmstats.core.ladder import Ladder, Rung
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.compression import compressed
from rrmstats.losses.cutoffs import precision_order, scatter_cutoff
from rrmstats.losses.matrices import FLAT, check_range, unit_spread
from rrmstats.losses.medians import thinned
from rrmstats.losses.rungs import Place, rung_solution
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_ground import squared, whiten
from rrmstats.losses.scatter_moves import (
    Part,
    good_share,
    rung_moves,
    scatter_influence,
    search_moves,
)
from rrmstats.losses.scatter_rungs import (
    ScatterRung,
    core_of,
    first_scatter,
    scatter_ladder,
)
from rrmstats.losses.sizes import USUAL_EFFICIENCY, Sample

# Relative bias of the size of a first step, below which it tells the contamination by itself.
NEGLIGIBLE = 2e-3
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

    def __init__(self, data: Array) -> None:
        self.center, self.unit = unit_spread(data)
        scaled = (data - self.center) / self.unit
        check_range(scaled)
        super().__init__(scaled)

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
            spread = np.broadcast_to(1.0 / self.n_obs, (self.n_obs,)) if base is None else base
            typical = float(np.median(thinned(square)[0]))
            square, base = compressed(square, spread, typical)
        weights = entropy_weights(square, eps_bar, freq_weights=base).weights
        used = weights > 0
        size = max(float(weights[used] @ square[used]) / d, FLAT)
        return self.join(self.split(theta)[0], size * scatter)

    def consistent(self, solution: Solution, setting: Setting) -> CovarianceEstimate:
        """Return the estimate of the first step, its covariance consistent."""
        plane = self.hyperplane(solution)
        if plane is not None or setting.eps_bar == 0:
            return self._plain(solution, setting, plane)
        sample = Sample.of(setting, self.n_obs)
        rung = first_scatter(self, solution, sample)
        rung = self._in_units(rung)
        told, usual = rung, None
        if -core_of(self).bias(rung.shape_order) > NEGLIGIBLE * rung.good:
            usual = self._ladder(rung, setting, USUAL_EFFICIENCY)
            told = usual.best
        return self._estimate(solution, setting, rung, told, usual=usual)

    def second_step(self, first: Estimate, efficiency: float = 0.95) -> CovarianceEstimate:
        """Return location and scatter of a given efficiency, or of what the data allow of it."""
        assert isinstance(first, CovarianceEstimate)
        if first.rung is None:
            ladder: Ladder[Any] = Ladder((self._only_rung(first),), 0)
            return replace(first, first=first, ladder=ladder)
        climbed = first.usual
        if climbed is None or efficiency != USUAL_EFFICIENCY:
            climbed = self._ladder(first.rung, first.setting, efficiency)
        found, best, passed = first.solution, climbed.best, climbed.rungs[1 : climbed.chosen + 1]
        if passed:
            places = [Place(self.join(r.location, r.weighted), r.lambda_) for r in passed]
            converged = all(rung.converged for rung in passed)
            found = rung_solution(self, found, places, first.setting, converged)
        return self._estimate(found, first.setting, best, best, first, climbed)

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
        moves, scaled = found.influence(), found.params / slope
        scaled[: self.dim] = 0.0
        moves[:, self.dim :] *= size
        moves -= np.outer(left - 1, scaled)
        return Untilted(
            found, moves, by_log_lambda=-2 * float(weights @ (rates * left**2)) * scaled
        )

    def _ladder(
        self, rung: ScatterRung, setting: Setting, efficiency: float
    ) -> Ladder[ScatterRung]:
        """Return the ladder above a first step, with parameters in the units of the data."""
        ladder = scatter_ladder(self, rung, setting, efficiency)
        return replace(ladder, rungs=tuple(map(self._in_units, ladder.rungs)))

    def _in_units(self, rung: ScatterRung) -> ScatterRung:
        """Return a rung with its parameters and its scale in the units of the data."""
        params = self.to_params(rung.location, rung.reported)
        return replace(rung, params=params, scale=self._scale(rung.reported))

    def _scale(self, scatter: Array) -> float:
        """Return the root of the determinant of a scatter, in the units of the data."""
        log_det = np.linalg.slogdet(scatter)[1] + 2 * float(np.log(self.unit).sum())
        return float(np.exp(log_det / self.dim))

    def _only_rung(self, first: CovarianceEstimate) -> Rung:
        """Return the rung of an estimate that has no other."""
        return Rung(
            order=1 / first.ratio,
            efficiency=gaussian_efficiency(first.setting.eps_bar, self.dim),
            params=first.params,
            scale=self._scale(self.split(first.solution.theta)[1] / first.ratio),
            eps_hat=first.eps_hat,
        )

    def _plain(
        self, solution: Solution, setting: Setting, plane: Plane | None
    ) -> CovarianceEstimate:
        """Return the estimate where the ladder says nothing: no bad rows, or a singular fit."""
        ratio = second_moment_ratio(setting.eps_bar, self.dim)
        eps_hat, error = 0.0, 0.0
        if plane is not None:
            eps_hat, error = self._off_share(solution, setting)
        location, scatter = self.split(solution.theta)
        mean, raw = self.to_units(location, scatter)
        return CovarianceEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=self.to_params(location, scatter / ratio),
            raw_params=self.to_params(location, scatter),
            eps_hat=eps_hat,
            eps_hat_se=error,
            loss_shift=2.0 * float(np.log(self.unit).sum()),
            mean=mean,
            raw_cov=raw,
            ratio=ratio,
            plane=plane,
        )

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        rung: ScatterRung,
        told: ScatterRung,
        first: Estimate | None = None,
        ladder: Ladder[ScatterRung] | None = None,
        usual: Ladder[ScatterRung] | None = None,
    ) -> CovarianceEstimate:
        """Return the estimate of a rung, with the contamination that another one tells."""
        mean, raw = self.to_units(rung.location, rung.weighted)
        sample = Sample.of(setting, self.n_obs)
        distances = squared(whiten(self.data, told.location, told.reported))
        square, few = sample.compressed(distances, self.dim)
        share = good_share([Part(square, told.size_order, self.dim)], few)
        return CovarianceEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=rung.params,
            raw_params=self.to_params(rung.location, rung.weighted),
            first=first,
            ladder=ladder,
            eps_hat=told.eps_hat,
            eps_hat_se=share[1],
            loss_shift=2.0 * float(np.log(self.unit).sum()),
            mean=mean,
            raw_cov=raw,
            ratio=1 / (rung.factor * rung.size),
            plane=None,
            rung=rung,
            usual=usual,
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
        normal = normal / np.linalg.norm(normal)
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
        mean, _ = self.to_units(*self.split(solution.theta))
        return Plane(normal, float(normal @ mean), int((distance <= ON_PLANE).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The hyperplane ``normal @ z = offset`` on which `count` observations lie."""

    normal: Array
    offset: float
    count: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CovarianceEstimate(Estimate):
    """The estimate of a mean and covariance.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    raw_cov : ndarray, shape (d, d)
        The weighted covariance.
    ratio : float
        The weighted covariance relative to the consistent one.
    plane : Plane or None
        The hyperplane of an exact fit.
    rung : ScatterRung or None
        The rung of these parameters; None where there is no ladder.
    usual : Ladder or None
        That of the usual efficiency, where a first step has climbed it to tell `eps_hat`.
    """

    problem: CovarianceProblem
    mean: Array
    raw_cov: Array
    ratio: float
    plane: Plane | None
    rung: ScatterRung | None = None
    usual: Ladder[ScatterRung] | None = None

    @property
    def cov(self) -> Array:
        """Consistent covariance, shape (d, d)."""
        return self.raw_cov / self.ratio

    @property
    def _searched(self) -> bool:
        """Whether location and shape are those of least risk."""
        return self.ladder is None or self.ladder.chosen == 0

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        dim, eps_bar = self.problem.dim, self.setting.eps_bar
        if self.plane is not None:
            return float(chi2.ppf(level, dim))
        order = 1.0 if self.rung is None else self.rung.shape_order
        if self._searched:
            order = precision_order(order, eps_bar, self.eps_hat, dim)
        return scatter_cutoff(level, dim, order, self.wnobs * (1 - self.eps_hat))

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
        problem, unit = self.problem, self.problem.unit
        if self._searched:
            mean, scatter = search_moves(problem, (self.first or self).solution, self.base)
        elif self.rung is not None:
            mean, scatter = rung_moves(problem, self.rung, self.solution.weights, self.base)
        if self.rung is not None:
            sample = Sample.of(self.setting, problem.n_obs)
            mean, scatter = scatter_influence(problem, self.rung, (mean, scatter), sample)
        return row_map(moments_in_units, mean, scatter, unit=unit)


def moments_in_units(mean: Array, scatter: Array, unit: Array) -> Array:
    """Return means (n, d) and upper triangles of (n, d, d) in the units of the data, (n, k)."""
    rows, columns = np.triu_indices(len(unit))
    return np.hstack([mean * unit, scatter[:, rows, columns] * unit[rows] * unit[columns]])
