"""Estimates of a mean and covariance on data of any scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.consistency import second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import minimum_influence, tempered_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.matrices import FLAT, check_range, unit_spread
from rrmstats.losses.scatter import ScatterProblem


class CovarianceProblem(ScatterProblem):
    """The Gaussian losses on data of any scale, in units of their spread."""

    def __init__(self, data: Array) -> None:
        self.center, self.unit = unit_spread(data)
        scaled = (data - self.center) / self.unit
        check_range(scaled)
        super().__init__(scaled)

    def to_units(self, theta: Array) -> tuple[Array, Array]:
        """Return location and scatter in the units of the data."""
        location, scatter = self.split(theta)
        return self.center + location * self.unit, scatter * np.outer(self.unit, self.unit)

    def from_params(self, params: Array, ratio: float) -> Array:
        """Return theta of a mean and the upper triangle of a consistent covariance."""
        d = self.dim
        upper = np.zeros((d, d))
        upper[np.triu_indices(d)] = params[d:]
        scatter = (upper + np.triu(upper, 1).T) * ratio
        location = (params[:d] - self.center) / self.unit
        return self.join(location, scatter / np.outer(self.unit, self.unit))

    def consistent(self, solution: Solution, setting: Setting) -> CovarianceEstimate:
        """Return the estimate of the first step, its covariance consistent on clean data."""
        ratio = second_moment_ratio(setting.eps_bar, self.dim)
        return self._estimate(solution, setting, ratio, self.hyperplane(solution))

    def efficient(self, first: Estimate, efficiency: float) -> CovarianceEstimate:
        """Return the location and shape of a given efficiency; the size stays the first step's.

        The size is the root of the determinant.
        """
        setting, found = first.setting, first.solution
        ratio, plane = second_moment_ratio(setting.eps_bar, self.dim), self.hyperplane(found)
        if plane is None:
            found = self.second_step(found, ratio, efficiency, setting)
            ratio *= self.relative_size(found.theta, first.solution.theta)
        return self._estimate(found, setting, ratio, plane, efficiency, first)

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        ratio: float,
        plane: Plane | None,
        efficiency: float | None = None,
        first: Estimate | None = None,
    ) -> CovarianceEstimate:
        mean, scatter = self.to_units(solution.theta)
        upper = scatter[np.triu_indices(self.dim)]
        return CovarianceEstimate(
            problem=self,
            setting=setting,
            solution=solution,
            params=np.r_[mean, upper / ratio],
            raw_params=np.r_[mean, upper],
            efficiency=efficiency,
            first=first,
            loss_shift=2.0 * float(np.log(self.unit).sum()),
            mean=mean,
            raw_cov=scatter,
            ratio=ratio,
            plane=plane,
        )

    def relative_size(self, theta: Array, other: Array) -> float:
        """Return the size of a scatter, the root of its determinant, relative to another's."""
        sizes = [np.linalg.slogdet(self.split(t)[1])[1] / self.dim for t in (theta, other)]
        return float(np.exp(sizes[0] - sizes[1]))

    def hyperplane(self, solution: Solution) -> Plane | None:
        """Return the hyperplane that the observations with weight lie on, or None."""
        location, scatter = self.split(solution.theta)
        direction = np.linalg.eigh(scatter)[1][:, 0]
        distance = np.abs((self.data - location) @ direction)
        used = solution.weights > 0
        # Not the eigenvalue, which rounding keeps far from zero.
        if solution.weights[used] @ distance[used] ** 2 > 4 * FLAT:
            return None
        normal = direction / self.unit
        normal = normal / np.linalg.norm(normal)
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
        mean, _ = self.to_units(solution.theta)
        count = int((distance <= 100 * np.sqrt(FLAT)).sum())
        return Plane(normal, float(normal @ mean), count)


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
    """

    problem: CovarianceProblem
    mean: Array
    raw_cov: Array
    ratio: float
    plane: Plane | None

    @property
    def cov(self) -> Array:
        """Consistent covariance, shape (d, d)."""
        return self.raw_cov / self.ratio

    def influence(self) -> Array:
        """Return the influence functions of the mean and the upper triangle, shape (n, k)."""
        if self.plane is not None:
            raise ValueError(
                "the covariance is singular, so it has no standard errors: the observations with "
                "weight lie on a hyperplane; see hyperplane"
            )
        problem, unit = self.problem, self.problem.unit
        mean, scatter = self._first_step() if self.first is None else self._second_step()
        rows, columns = np.triu_indices(problem.dim)
        return np.hstack(
            [mean * unit, scatter[:, rows, columns] * unit[rows] * unit[columns] / self.ratio]
        )

    def _first_step(self) -> tuple[Array, Array]:
        found = (self.first or self).solution
        steps = minimum_influence(
            self.problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        ).theta
        return self.problem.directions(found.theta, steps)

    def _second_step(self) -> tuple[Array, Array]:
        """Return those of a scatter whose size is that of the first step."""
        problem, found = self.problem, self.solution
        first = (self.first or self).solution
        size = _trace(problem.split(first.theta)[1], self._first_step()[1])
        steps = tempered_influence(problem, found.theta, found.weights, found.lambda_, self.base)
        mean, scatter = problem.directions(found.theta, steps)
        own = problem.split(found.theta)[1]
        size -= _trace(own, scatter)
        return mean, scatter + size[:, None, None] * own / problem.dim


def _trace(scatter: Array, changes: Array) -> Array:
    """Return the trace of the inverse of a scatter times each change, shape (n,)."""
    return np.einsum("ij,nji->n", np.linalg.inv(scatter), changes)
