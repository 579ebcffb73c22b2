"""Estimates of principal components: a subspace, and the scatter of the scores within it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from rrmstats.core.consistency import efficient_ratio, second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import minimum_influence, tempered_influence
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.core.tempered import kept_by_distance, tempered_fit
from rrmstats.losses.matrices import (
    check_range,
    unit_spread,
    weighted_median,
    weighted_scatter,
)
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.subspace import SubspaceProblem, complement


class ComponentsProblem(SubspaceProblem):
    """The subspace problem in the span of the data, scaled: wide data cost no more than tall.

    Observations are ``center + column_unit * unit * (data @ span.T)``, with the columns of
    `span` orthonormal.
    """

    def __init__(self, data: Array, q: int, demean: bool, column_unit: Array) -> None:
        n, d = data.shape
        self.column_unit = column_unit
        self.center = np.median(data, axis=0) if demean else np.zeros(d)
        scaled = (data - self.center) / column_unit
        with np.errstate(over="ignore"):
            spread = np.median(np.linalg.norm(scaled, axis=1))
        self.unit = float(np.exp2(np.round(np.log2(spread)))) if spread > 0 else 1.0
        scaled = scaled / self.unit
        check_range(scaled)
        self.span = np.eye(d)
        if d > n:
            self.span = np.linalg.svd(scaled, full_matrices=False)[2].T
            scaled = scaled @ self.span
        if not q < scaled.shape[1]:
            raise ValueError(
                f"n_components={q} is too large: data of shape {data.shape} span "
                f"{scaled.shape[1]} dimensions, and n_components must be smaller than that"
            )
        super().__init__(scaled, q, demean)

    def consistent(self, solution: Solution, setting: Setting) -> ComponentsEstimate:
        """Return the estimate of the first step."""
        inner = InnerScatter.found(self, solution, setting, None)
        return self._estimate(solution, setting, inner)

    def efficient(self, first: Estimate, efficiency: float) -> ComponentsEstimate:
        """Return the subspace of a given efficiency, at the first step's variance off it."""
        found = first.solution
        if found.lambda_ > 0:
            found = self._second_step(found, efficiency, first.setting)
        inner = InnerScatter.found(self, found, first.setting, efficiency)
        return self._estimate(found, first.setting, inner, efficiency, first)

    def _second_step(self, first: Solution, efficiency: float, setting: Setting) -> Solution:
        point, basis = self.split(first.theta)
        off = complement(basis)
        moment = weighted_scatter(self.data, first.weights, point)
        values, vectors = np.linalg.eigh(off.T @ moment @ off)
        # Directions that only rows without weight have a part in: rounding is no distance in them.
        least = max(np.finfo(float).eps * float(values[-1]), np.finfo(float).tiny)
        variances = untilted(np.maximum(values, least), first.lambda_)
        square = (((self.data - point) @ (off @ vectors)) ** 2 / variances).sum(axis=1)
        codim = self.dim - self.q
        # Variances fitted to few rows in many dimensions are too small, and all rows look far.
        middle = weighted_median(square, setting.spread(self.n_obs))
        square /= max(1.0, middle / float(chi2.median(codim)))
        kept = kept_by_distance(square, codim, efficiency)
        lambda_ = 2 * float(variances.mean()) / (1 / efficient_ratio(efficiency, codim) - 1)
        return tempered_fit(self, first, lambda_, setting, kept)

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        inner: InnerScatter,
        efficiency: float | None = None,
        first: Estimate | None = None,
    ) -> ComponentsEstimate:
        point, basis = self.split(solution.theta)
        off, square = complement(basis), self.unit**2
        values, vectors = np.linalg.eigh(inner.scatter)
        axes = self.span @ (basis @ vectors[:, ::-1])
        largest = np.abs(axes).argmax(axis=0)
        signed = vectors[:, ::-1] * np.sign(axes[largest, np.arange(self.q)])
        center = basis @ inner.location + off @ (off.T @ point)
        moment = weighted_scatter(self.data, solution.weights, point)
        left = np.linalg.eigvalsh(off.T @ moment @ off) * square
        return ComponentsEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=solution.converged and inner.solution.converged),
            params=values[::-1] * square,
            raw_params=np.linalg.eigvalsh(moment)[::-1][: self.q] * square,
            efficiency=efficiency,
            first=first,
            loss_unit=square,
            inner=inner,
            vectors=signed,
            loadings=self.span @ (basis @ signed),
            mean=self.center + self.column_unit * self.unit * (self.span @ center),
            rest=float(untilted(left, solution.lambda_ * square).sum()),
        )


def untilted(variances: Array, lambda_: float) -> Array:
    """Return the Gaussian variances that the weights exp(-y'y / lambda) narrowed to these.

    Precisions add: the weights add 2 / lambda to each.
    """
    if not 0 < lambda_ < np.inf:
        return variances
    shrink = 1.0 - 2.0 * variances / lambda_
    return variances / np.maximum(shrink, np.finfo(float).eps)


@dataclass(frozen=True, slots=True, eq=False)
class InnerScatter:
    """Robust location and scatter of the scores within a subspace, by a search of its own.

    Rows far out in the subspace lose no weight in the search for it, and would otherwise inflate
    the eigenvalues.

    Attributes
    ----------
    problem : ScatterProblem
        The scores in units of their spread.
    solution : Solution
    unit : ndarray, shape (q,)
    location : ndarray, shape (q,)
    ratio : float
        The scatter found relative to the consistent one.
    efficient : bool
        Whether the solution is that of a second step.
    """

    problem: ScatterProblem
    solution: Solution
    unit: Array
    location: Array
    ratio: float
    efficient: bool

    @classmethod
    def found(
        cls,
        outer: ComponentsProblem,
        subspace: Solution,
        setting: Setting,
        efficiency: float | None,
    ) -> InnerScatter:
        """Search for the scatter of the scores of a subspace."""
        values = outer.data @ outer.split(subspace.theta)[1]
        center, unit = unit_spread(values)
        if not outer.demean:
            center = np.zeros_like(center)
        problem = ScatterProblem((values - center) / unit, outer.demean)
        found = global_minimum(problem, setting)
        ratio = second_moment_ratio(setting.eps_bar, outer.q)
        if efficiency is not None:
            raise NotImplementedError
            ratio = efficient_ratio(efficiency, outer.q)
        location = center + unit * problem.split(found.theta)[0]
        return cls(problem, found, unit, location, ratio, efficiency is not None)

    @property
    def scatter(self) -> Array:
        """Consistent scatter, shape (q, q)."""
        return self._in_units(self.problem.split(self.solution.theta)[1])

    def _in_units(self, scatter: Array) -> Array:
        return scatter * np.outer(self.unit, self.unit) / self.ratio

    def influence(self, base: Array | None) -> Array:
        """Return the influence functions of the scatter, shape (n, q, q)."""
        steps = step_influence(self.problem, self.solution, base, self.efficient)
        return self._in_units(self.problem.directions(self.solution.theta, steps)[1])


def step_influence(
    problem: ScatterProblem | SubspaceProblem,
    found: Solution,
    base: Array | None,
    efficient: bool,
) -> Array:
    """Return the influence functions of theta in the first or the second step, shape (n, k)."""
    if efficient:
        return tempered_influence(problem, found.theta, found.weights, found.lambda_, base)
    return minimum_influence(
        problem, found.theta, found.losses, found.weights, found.lambda_, base
    ).theta


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsEstimate(Estimate):
    """The estimate of principal components; `params` are the eigenvalues.

    Attributes
    ----------
    inner : InnerScatter
    vectors : ndarray, shape (q, q)
        Axes within the subspace.
    loadings : ndarray, shape (d, q)
    mean : ndarray, shape (d,)
    rest : float
        Variance off the subspace.
    """

    problem: ComponentsProblem
    inner: InnerScatter
    vectors: Array
    loadings: Array
    mean: Array
    rest: float

    def influence(self) -> Array:
        """Return the influence functions of the eigenvalues, shape (n, q)."""
        scatter = self.inner.influence(self.base)
        along = np.einsum("ij,nik,kj->nj", self.vectors, scatter, self.vectors)
        return along * self.problem.unit**2

    def loadings_influence(self) -> Array:
        """Return the influence functions of the loadings, shape (n, d, q)."""
        problem, found = self.problem, self.solution
        steps = step_influence(problem, found, self.base, self.efficiency is not None)
        _, basis = problem.split(found.theta)
        codim = problem.dim - problem.q
        turned = steps[:, : codim * problem.q].reshape(-1, codim, problem.q) @ self.vectors
        within = self.vectors.T @ self.inner.influence(self.base) @ self.vectors
        values = self.params / problem.unit**2
        gap = np.broadcast_to(values[None, :] - values[:, None], within.shape)
        rotation = np.divide(within, gap, out=np.zeros_like(within), where=gap != 0)
        off = complement(basis)
        return problem.span @ (off @ turned + basis @ self.vectors @ rotation)
