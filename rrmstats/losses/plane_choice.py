"""The second step of subspaces: the best explanation of distances off them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import aligned, row_map, taken
from rrmstats.core.consistency import gaussian_efficiency
from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.explanations import Explained
from rrmstats.core.grouped import GroupedProblem, Groups
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian import Mixtures
from rrmstats.laws.gaussian_choice import compared, explanation, in_order, sound
from rrmstats.laws.planes import (
    PlaneRows,
    distinct_axes,
    probabilities_at,
    radial_slopes,
    seen_by,
    settled,
)
from rrmstats.losses.gaussian_rows import DECIDING_ROWS, some_places
from rrmstats.losses.matrices import weighted_scatter
from rrmstats.losses.scatter_starts import Candidate, distinct_ends, robust_starts
from rrmstats.losses.subspace import SubspaceProblem
from rrmstats.losses.tilted_scatter import untilted_variances

# Probability that the true subspace is refused because of its risk.
CHANCE = 1e-3
# Least part of the rows that a subspace is taken to rest on.
LEAST_BREAD = 0.1


def risk_at(
    problem: SubspaceProblem, weighed: Problem, budget: Budget, point: Array, basis: Array
) -> float:
    """Return the risk of a point (d,) and a basis (d, q), where rows or groups of them weigh."""
    theta = problem.join(point, basis)
    return float(evaluate(weighed, theta[None], budget).risk[0])


def plane_risk(problem: SubspaceProblem, setting: Setting) -> Callable[[Array, Array], float]:
    """Return the risk of subspaces at the rows of a problem, or at their groups."""
    if setting.groups is None:
        return partial(risk_at, problem, problem, setting.budget(problem.n_obs))
    groups = Groups(setting.groups, int(setting.groups.max()) + 1, setting.freq_weights)
    budget = replace(setting, freq_weights=groups.sizes).budget(groups.count)
    return partial(risk_at, problem, GroupedProblem(problem, groups), budget)


@dataclass(frozen=True, eq=False)
class ExplainedPlane:
    """A subspace with the explanation of the distances off it.

    Attributes
    ----------
    rows : PlaneRows
    mixture : Mixtures
        A batch of one.
    told : Explained
    settled : bool
        Whether it converged.
    """

    rows: PlaneRows
    mixture: Mixtures
    told: Explained
    settled: bool

    def probabilities(self, data: Array) -> tuple[Array, Array]:
        """Return the probability of each row to be good, and its pull on the fit, (n,) each.

        Rows in memory or in blocks.
        """
        both = row_map(self._of_rows, data, tail=(2,))
        return both[:, 0], both[:, 1]

    def _part(self, data: Array) -> PlaneRows:
        """Return some of the rows, within what is known of all."""
        if self.rows.groups is not None:  # of all rows, in memory
            return replace(self.rows, data=data)
        exog = np.ones((len(data), self.rows.n_coef))
        return replace(
            self.rows, data=data, exog=exog, counts=np.ones(len(data)), frame=self.rows.whole
        )

    def _of_rows(self, data: Array) -> Array:
        return np.column_stack(probabilities_at(self._part(data), self.mixture))

    @cached_property
    def bread(self) -> float:
        """Mean pull of a row and what its slope adds to it, as of elliptical rows."""
        pull = probabilities_at(self.rows, self.mixture)[1]
        slopes = radial_slopes(self.rows, self.mixture)
        found = pull + slopes / (self.rows.freedom * self.rows.together.sizes)
        return max(float(self.rows.counts @ found) / self.rows.total, LEAST_BREAD)

    def turns(self, data: Array) -> Array:
        """Return how the basis turns off itself, shape (n, d, q), for rows in memory or blocks.

        The leading axes of a covariance turn towards another by their cross moment over the
        difference of the variances. Weights of rows fall with their distances, of which `bread`
        takes account.
        """
        return row_map(self._turns_of, data, tail=(self.rows.dim, self.rows.q))

    def _turns_of(self, data: Array) -> Array:
        part, q = self._part(data), self.rows.q
        values, axes = np.linalg.eigh(self.mixture.scatter[0])
        values, axes = values[::-1], axes[:, ::-1]
        centered = (data - part.fitted(self.mixture.coef)[0]) @ axes
        pull = probabilities_at(part, self.mixture)[1] / self.bread
        gap = np.maximum(values[:q] - values[q:, None], np.finfo(float).tiny)
        moved = (pull[:, None] * centered[:, q:])[:, :, None] * centered[:, None, :q] / gap
        return np.asarray(axes[:, q:] @ moved)


def explained_plane(
    problem: SubspaceProblem, solution: Solution, setting: Setting, codim: int
) -> ExplainedPlane:
    """Return the best explanation of the rows around a subspace.

    Which axes off it have variances of their own is told by the first step, and once more by the
    explanation.

    Parameters
    ----------
    problem : SubspaceProblem
    solution : Solution
        The first step.
    setting : Setting
    codim : int
        Dimensions off the subspace.
    """
    n, groups = problem.n_obs, setting.groups
    counts = aligned(setting.counts(n), problem.blocks)
    places = some_places(n, groups) if n > DECIDING_ROWS else np.arange(n)
    rows = plane_rows(problem, solution, setting, codim, places, counts)
    starts = end_candidates(problem, solution, setting, rows)
    for _ in range(2):
        rows = replace(rows, own=own_axes(rows, starts[0][1], setting.eps_bar))
        every = [*starts, *robust_starts(rows, setting.eps_bar)]
        ranked = in_order(compared(rows, every, setting.eps_bar))
        best = ranked[0]
        if own_axes(rows, best.mixture.scatter[0], best.eps) == rows.own:
            break
        starts = [(best.mixture.coef[0], best.mixture.scatter[0]), *starts[1:]]
    for best in ranked:
        mixture, done = settled(rows, best.mixture, setting.eps_bar)
        if len(sound(rows, mixture, setting.eps_bar)):
            break
    others = [each for each in ranked if each is not best]
    chosen = explanation(rows, mixture)
    if len(places) < n:
        own = rows.own
        rows = replace(
            plane_rows(problem, solution, setting, codim, np.arange(n), counts), own=own
        )
        mixture, done = settled(rows, seen_by(mixture, n), setting.eps_bar)
        chosen = replace(chosen, prob_bad=explanation(rows, mixture).prob_bad)
    told = Explained(explanations=(chosen, *others), chosen=chosen)
    return ExplainedPlane(rows, mixture, told, done)


def plane_rows(
    problem: SubspaceProblem,
    solution: Solution,
    setting: Setting,
    codim: int,
    places: np.ndarray,
    counts: Array,
) -> PlaneRows:
    """Return rows of a problem in memory, and which subspaces may explain them.

    Parameters
    ----------
    problem, solution, setting, codim
        As `explained_plane` takes them.
    places : ndarray of int, shape (m,)
    counts : ndarray or BlockArray, shape (n,)
    """
    data, counts = taken(places, problem.data, counts)
    groups = setting.groups
    if groups is not None:
        groups = np.unique(groups[places], return_inverse=True)[1]
    among = replace(setting, freq_weights=counts, groups=groups)
    risk = plane_risk(problem.with_rows(data), among)
    exog = np.ones((len(data), int(problem.demean)))
    least = risk(*problem.split(solution.theta))
    return PlaneRows(
        data, exog, counts, groups=groups, q=problem.q, codim=codim, own=0, risk=risk,
        most_risk=least * excess_risk(problem, float(counts.sum()), setting.eps_bar, codim),
    )  # fmt: skip


def excess_risk(problem: SubspaceProblem, wnobs: float, eps_bar: float, codim: int) -> float:
    r"""Return the relative risk that the true subspace exceeds with probability CHANCE.

    Relative to the least risk its excess is that of a fit with efficiency e,
    :math:`\chi^2_k / (g n e)` with k coordinates and g dimensions off the subspace.
    """
    good = wnobs * (1 - eps_bar) * gaussian_efficiency(eps_bar, codim)
    return 1 + float(chi2.isf(CHANCE, codim * problem.n_params)) / (codim * good)


def own_axes(rows: PlaneRows, scatter: Array, bad: float) -> int:
    """Return how many axes off the leading ones of a scatter have variances of their own."""
    values = np.maximum(np.linalg.eigvalsh(scatter)[::-1][rows.q :], 0.0)
    return distinct_axes(values, rows.codim, rows.total * (1 - bad))


def end_candidates(
    problem: SubspaceProblem, solution: Solution, setting: Setting, rows: PlaneRows
) -> list[Candidate]:
    """Return the minima that the search met, with their weighted covariances made consistent.

    The variances off the subspace become those of good rows, and those within grow as much, so
    that the leading axes remain so.
    """
    found: list[Candidate] = []
    data, base = rows.data, rows.counts / rows.total
    for theta, lambda_ in distinct_ends(problem, solution, setting, solution.risk):
        losses = problem.with_rows(data).losses(theta)
        weights = entropy_weights(losses, setting.eps_bar, freq_weights=base).weights
        location = weights @ data * problem.demean
        values, axes = np.linalg.eigh(weighted_scatter(data, weights, location))
        values, q = np.maximum(values[::-1], 0.0), problem.q
        off = untilted_variances(values[q:], lambda_, setting.eps_bar)
        grown = float(off.sum() / max(values[q:].sum(), np.finfo(float).tiny))
        full = np.r_[values[:q] * max(grown, 1.0), off]
        axes = axes[:, ::-1]
        found.append((location[None][: int(problem.demean)], (axes * full) @ axes.T))
    return found
