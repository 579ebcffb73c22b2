"""Estimates of principal components: a subspace, and the scatter of the scores within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rrmstats.core.block_array import blocked, row_map, row_sums
from rrmstats.core.consistency import gaussian_efficiency, untilted_variance
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate, Untilted, standardized_departures
from rrmstats.core.ladder import Ladder, Rung
from rrmstats.core.sandwich import influence_covariance, minimum_influence
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.component_moves import (
    along_axes,
    basis_turns,
    flat_rows,
    outer_rows,
    turn_sums,
    turned_loadings,
)
NEGLIGIBLE = 2e-3
from rrmstats.losses.old_cutoffs import nearness, precision_order, subspace_cutoff
from rrmstats.losses.gaussian import Core
from rrmstats.losses.inner import InnerScatter
from rrmstats.losses.matrices import check_range, weighted_scatter
from rrmstats.losses.medians import thinned
from rrmstats.losses.moment_problem import moment_sums, normalized
from rrmstats.losses.plane_rungs import core_moments, subspace_ladder
from rrmstats.losses.planes import PlaneRung, first_plane, is_fed
from rrmstats.losses.rungs import Place, rung_solution
from rrmstats.losses.scatter_moves import Part, bounded, enlargement, good_share
from rrmstats.losses.sizes import USUAL_EFFICIENCY, Sample, tilts
from rrmstats.losses.subspace import SubspaceProblem, complement

# Rows per variable from which the errors of loadings can be relied on.
ROWS_PER_VARIABLE = 5


class ComponentsProblem(SubspaceProblem):
    """The subspace problem in the span of the data, scaled: wide data cost no more than tall.

    Observations are ``center + column_unit * unit * (data @ span.T)``, with the columns of
    `span` orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import minimize
    >>> rng = np.random.default_rng(0)
    >>> from rrmstats.losses import ComponentsProblem
    >>> z = rng.standard_normal((50, 3)) * [5.0, 1.0, 1.0]
    >>> problem = ComponentsProblem(z, 1, True, np.ones(3))
    >>> minimize(problem, eps_bar=0.1).converged
    True
    """

    def __init__(self, data: Array, q: int, demean: bool, column_unit: Array) -> None:
        n, d = data.shape
        if blocked(data) and d >= n:
            raise ValueError(
                f"data of {n} rows and {d} columns lie in blocks, which needs more rows than "
                "columns; bring them into memory"
            )
        self.column_unit = column_unit
        (some,) = thinned(data)
        self.center = np.median(some, axis=0) if demean else np.zeros(d)
        with np.errstate(over="ignore"):
            length = np.linalg.norm((some - self.center) / column_unit, axis=1)
        spread = np.median(length)
        self.unit = float(np.exp2(np.round(np.log2(spread)))) if spread > 0 else 1.0
        scaled = (data - self.center) / (column_unit * self.unit)
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
        """Return the estimate of the first step, its eigenvalues consistent."""
        inner = InnerScatter.found(self, self.split(solution.theta)[1], setting)
        if 0 in (setting.eps_bar, solution.lambda_, solution.risk):
            return self._plain(solution, setting, inner)
        plane = first_plane(self, solution, setting, len(self.span) - self.q)
        told, within, usual = plane, inner, None
        if -self.core(plane).bias(plane.shape_order) > NEGLIGIBLE * plane.good:
            usual = self._ladder(plane, inner, setting, USUAL_EFFICIENCY)
            told = usual.best
            within = inner.climbed(USUAL_EFFICIENCY, near_rows(told, setting))
        found = self._estimate(solution, setting, inner, plane)
        eps_hat, error = contamination(told, within, setting)
        return replace(found, eps_hat=eps_hat, eps_hat_se=error, usual=usual)

    def second_step(self, first: Estimate, efficiency: float = 0.95) -> ComponentsEstimate:
        """Return the subspace of a given efficiency, or of what the data allow of it."""
        assert isinstance(first, ComponentsEstimate)
        setting, ladder = first.setting, first.usual
        if first.plane is None:
            return self._stay(first, Ladder((first.only_rung(),), 0))
        if ladder is None or efficiency != USUAL_EFFICIENCY:
            ladder = self._ladder(first.plane, first.inner, setting, efficiency)
        plane, passed = ladder.best, ladder.rungs[1 : ladder.chosen + 1]
        if not passed and ladder.refused is not None:
            return self._stay(first, ladder)
        found, inner = first.solution, first.inner
        if passed:
            places = [Place(self.join(r.point, r.basis), r.lambda_, r.kept) for r in passed]
            converged = all(rung.converged for rung in passed)
            found = rung_solution(self, found, places, setting, converged)
            inner = InnerScatter.found(self, plane.basis, setting)
        inner = inner.climbed(efficiency, near_rows(plane, setting))
        second = self._estimate(found, setting, inner, plane)
        eps_hat, error = contamination(plane, inner, setting)
        return replace(
            second,
            first=first,
            ladder=with_params(ladder, first.params, second.params),
            eps_hat=eps_hat,
            eps_hat_se=error,
        )

    def untilted(self, estimate: Estimate, rates: Array) -> Untilted:
        """Return an estimate under weights of groups, its variance off the subspace consistent.

        The variances within the subspace have no part in the losses, and need no correction.
        """
        assert isinstance(estimate, ComponentsEstimate)
        weights, theta = estimate.solution.weights, estimate.solution.theta
        off = self.frame(theta)[1]
        seen = np.linalg.eigvalsh(weighted_scatter(off, weights, weights @ off))
        rest = sum(untilted_variance(max(float(v), 0.0), weights, rates) for v in seen)
        found = replace(estimate, rest=rest * self.unit**2)
        return Untilted(found, found.influence())

    def _stay(self, first: ComponentsEstimate, ladder: Ladder[Any]) -> ComponentsEstimate:
        """Return the first step as the result of the second."""
        ladder = with_params(ladder, first.params, first.params)
        return replace(first, first=first, ladder=ladder, usual=None)

    def core(self, plane: PlaneRung) -> Core:
        """Return what is estimated of each degree of freedom off the subspace."""
        return Core(plane.freedom, self.n_params, False)

    def _ladder(
        self, plane: PlaneRung, inner: InnerScatter, setting: Setting, efficiency: float
    ) -> Ladder[PlaneRung]:
        """Return the ladder above a first step, with eigenvalues in the units of the data."""
        within = inner.distances()
        ladder = subspace_ladder(self, plane, within, setting, efficiency)
        weights = setting.spread(self.n_obs) * tilts(within, inner.size_order)
        cov = core_moments(self.data, weights).cov
        unit = inner.size_order * self.unit**2
        rungs = []
        for rung in ladder.rungs:
            values = np.linalg.eigvalsh(rung.basis.T @ cov @ rung.basis)
            scale = rung.reported * self.unit**2
            rungs.append(replace(rung, params=unit * values[::-1], scale=scale))
        return replace(ladder, rungs=tuple(rungs))

    def _plain(
        self, solution: Solution, setting: Setting, inner: InnerScatter
    ) -> ComponentsEstimate:
        """Return the estimate where the ladder says nothing: no bad rows, or an exact fit."""
        found = self._estimate(solution, setting, inner, None)
        off = float(setting.spread(self.n_obs) @ (solution.losses > 0)) * (setting.eps_bar > 0)
        error = float(np.sqrt(off * (1 - off) / setting.wnobs(self.n_obs)))
        return replace(found, eps_hat=off, eps_hat_se=error)

    def _estimate(
        self,
        solution: Solution,
        setting: Setting,
        inner: InnerScatter,
        plane: PlaneRung | None,
    ) -> ComponentsEstimate:
        point, basis = self.split(solution.theta)
        off, square = complement(basis), self.unit**2
        values, vectors = np.linalg.eigh(inner.scatter)
        values = np.maximum(values, np.finfo(float).eps ** 2 * values[-1])
        axes = self.span @ (basis @ vectors[:, ::-1])
        largest = np.abs(axes).argmax(axis=0)
        signed = vectors[:, ::-1] * np.sign(axes[largest, np.arange(self.q)])
        center = basis @ inner.location + off @ (off.T @ point)
        sums = row_sums(moment_sums, self.data - point, solution.weights)
        moment = self.central(normalized(sums))[1]
        rest = float(solution.weights @ solution.losses)
        if plane is not None:
            rest = plane.reported * plane.freedom
        return ComponentsEstimate(
            problem=self,
            setting=setting,
            solution=replace(solution, converged=solution.converged and inner.converged),
            params=values[::-1] * square,
            raw_params=np.linalg.eigvalsh(moment)[::-1][: self.q] * square,
            loss_unit=square,
            inner=inner,
            plane=plane,
            vectors=signed,
            loadings=self.span @ (basis @ signed),
            mean=self.center + self.column_unit * self.unit * (self.span @ center),
            rest=rest * square,
        )


def near_rows(plane: PlaneRung, setting: Setting) -> Array | None:
    """Return what is left of rows at their distances off a subspace, shape (n,), or None for all.

    See `nearness`.
    """
    kept = row_map(nearness, plane.square, plane.freedom, tail=())
    few = float(setting.spread(len(kept)) @ kept) < 0.9 * (1 - setting.eps_bar)
    return None if few else kept


def contamination(plane: PlaneRung, inner: InnerScatter, setting: Setting) -> tuple[float, float]:
    """Return the share of rows bad off a subspace or within it, and its standard error.

    Rows off the subspace that lie within the scores of the others widen their scatter, and hide
    there: the share is at least that off the subspace.
    """
    sample = Sample.of(setting, len(plane.square))
    off = Part(plane.square, plane.size_order, plane.freedom)
    squares, few = sample.compressed(plane.square, plane.freedom)
    share, error = good_share([off._replace(square=squares)], few)
    if inner.rung is not None:
        within = Part(inner.distances(), inner.size_order, len(inner.unit))
        share, error = min((share, error), good_share([off, within], sample))
    return max(1 - share, 0.0), error


def with_params(ladder: Ladder[Any], first: Array, best: Array) -> Ladder[Any]:
    """Return a ladder whose first and chosen rungs have given parameters."""
    rungs = list(ladder.rungs)
    rungs[ladder.chosen] = replace(rungs[ladder.chosen], params=best)
    if ladder.chosen:
        rungs[0] = replace(rungs[0], params=first)
    return replace(ladder, rungs=tuple(rungs))


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsEstimate(Estimate):
    """The estimate of principal components; `params` are the eigenvalues.

    Attributes
    ----------
    inner : InnerScatter
    plane : PlaneRung or None
        The rung of the subspace; None where there is no ladder.
    vectors : ndarray, shape (q, q)
        Axes within the subspace.
    loadings : ndarray, shape (d, q)
    mean : ndarray, shape (d,)
    rest : float
        Variance off the subspace.
    usual : Ladder or None
        That of the usual efficiency, where a first step has climbed it to tell `eps_hat`.
    """

    problem: ComponentsProblem
    inner: InnerScatter
    plane: PlaneRung | None
    vectors: Array
    loadings: Array
    mean: Array
    rest: float
    usual: Ladder[PlaneRung] | None = None

    @property
    def _searched(self) -> bool:
        """Whether the subspace is that of least risk."""
        return self.ladder is None or self.ladder.chosen == 0

    def only_rung(self) -> Rung:
        """Return the rung of an estimate that has no other."""
        codim = self.problem.dim - self.problem.q
        return Rung(
            order=1.0,
            efficiency=gaussian_efficiency(self.setting.eps_bar, codim),
            params=self.params,
            scale=self.rest / codim,
            eps_hat=self.eps_hat,
        )

    def score_cutoff(self, level: float) -> float:
        """Return the quantile of the squared score distances of clean rows."""
        return self.inner.cutoff(level)

    def orthogonal_cutoff(self, level: float) -> float | None:
        """Return the quantile of the squared orthogonal distances of clean rows, where known."""
        plane = self.plane
        if plane is None:
            return None
        core, order = self.problem.core(plane), plane.shape_order
        good = self.wnobs * (1 - plane.eps_hat)
        if self._searched:
            eps_bar = self.setting.eps_bar
            order = precision_order(order, eps_bar, plane.eps_hat, plane.freedom)
            if is_fed(plane, self.problem.n_params, self.wnobs):
                return None
        found = subspace_cutoff(level, core, order, good)
        return found * plane.reported * self.problem.unit**2

    def influence(self) -> Array:
        """Return the influence functions of the eigenvalues, shape (n, q)."""
        along = row_map(along_axes, self.inner.influence(), axes=self.vectors)
        return along * self.problem.unit**2

    def departures(self, other: Estimate) -> Array:
        """Return how far off eigenvalues and loadings are in standard errors, shape (q + d q,).

        NaN for the loadings of data with few rows per variable, whose errors are too small.
        """
        assert isinstance(other, ComponentsEstimate)
        along = super().departures(other)
        if self.wnobs < ROWS_PER_VARIABLE * len(self.loadings):
            return np.r_[along, np.full(self.loadings.size, np.nan)]
        signs = np.where(np.sum(self.loadings * other.loadings, axis=0) < 0, -1.0, 1.0)
        influence = flat_rows(self.loadings_influence())
        variance = np.diag(influence_covariance(influence, self.base, self.wnobs))
        turned = standardized_departures(
            (signs * other.loadings).ravel(), self.loadings.ravel(), np.sqrt(variance)
        )
        return np.r_[along, turned]

    def loadings_influence(self) -> Array:
        """Return the influence functions of the loadings, shape (n, d, q)."""
        problem = self.problem
        basis = problem.split(self.solution.theta)[1]
        return row_map(
            turned_loadings,
            self._search_turns() if self._searched else self._rung_turns(),
            self.inner.influence(),
            axes=self.vectors,
            basis=basis,
            values=self.params / problem.unit**2,
            span=problem.span,
        )

    def _search_turns(self) -> Array:
        """Return how the basis of least risk turns off itself, shape (n, d, q)."""
        problem, found = self.problem, self.solution
        steps = minimum_influence(
            problem, found.theta, found.losses, found.weights, found.lambda_, self.base
        ).theta
        factor = 1.0 if self.plane is None else self._enlargement()
        off = complement(problem.split(found.theta)[1])
        return row_map(basis_turns, steps, off=factor * off)

    def _rung_turns(self) -> Array:
        """Return how the basis of a rung turns off itself, shape (n, d, q).

        The frame of the scores makes the derivative one number, observed as of elliptical rows,
        times their variances less the noise.
        """
        problem, plane = self.problem, self.plane
        assert plane is not None
        share, order, freedom = self.setting.spread(problem.n_obs), plane.order, plane.freedom
        centered = problem.data - plane.point
        scores = centered @ plane.basis
        rest = centered - scores @ plane.basis.T
        square = self.solution.losses / plane.noise
        tilt = tilts(square, order)
        w = tilt if plane.kept is None else tilt * plane.kept
        good, mass, first, second = row_sums(turn_sums, scores, square, share * tilt, share * w)
        bread = float(mass - (order - 1) * first / freedom)
        bread = bounded(bread, order, freedom, order ** (freedom / 2) * float(good))
        spread, axes = np.linalg.eigh(second / mass)
        gap = np.maximum(spread - plane.noise / order, np.finfo(float).tiny)
        moved = (w[:, None] * (scores @ axes)) / (bread * gap)
        return row_map(outer_rows, self._enlargement() * rest, moved @ axes.T)

    def _enlargement(self) -> float:
        sample = Sample.of(self.setting, self.problem.n_obs)
        return enlargement(sample, self.problem.n_params)
