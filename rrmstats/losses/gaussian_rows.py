"""The second step of Gaussian rows: decided on a sample of many rows, polished on all of them.

All that is asked of all rows is a sum over them, or a function of each, so that they may lie in
memory or in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np

from rrmstats.core.block_array import aligned, blocked, portions, row_map, row_sums, taken
from rrmstats.core.blocks import decided_once, deciding_places
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.explanations import Explained, of_groups
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.densities import Densities, residual_densities
from rrmstats.laws.gaussian import Mixtures, Rows
from rrmstats.laws.gaussian_choice import as_explanations, best_explanation
from rrmstats.laws.gaussian_equations import (
    MOST_EQUATIONS,
    MOST_STEP,
    POLISH_TOL,
    SETTLED,
    Equations,
    broyden,
    polished,
)

#: A function of the equations of some rows.
Kernel = Callable[[Equations], Any]


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """All rows of a problem, and the explanation that was chosen for them.

    Attributes
    ----------
    data : ndarray or BlockArray, shape (n, d)
    exog : ndarray or BlockArray, shape (n, k)
    basis : ndarray, shape (k, k)
        Takes predictors to those of the mixture.
    counts : ndarray or BlockArray, shape (n,)
    groups : ndarray, shape (n,), or None
        Numbers of the groups of rows that are good or bad as a whole.
    far : ndarray of bool, shape (n,), or None
        Which rows are far in X, where they are in memory and that is known.
    mixture : Mixtures
        A batch of one; its arrays of rows are those of `decided`.
    decided : Equations
        Its equations on the rows on which it was decided.
    total : float
        Number of observations that all rows stand for.
    compared : Explained
        The explanations of the rows on which they were compared.
    converged : bool
    """

    data: Array
    exog: Array
    basis: Array
    counts: Array
    groups: np.ndarray | None
    far: np.ndarray | None
    mixture: Mixtures
    decided: Equations
    total: float
    compared: Explained
    converged: bool

    @property
    def growth(self) -> float:
        """Number of all observations over that of those on which this was decided."""
        return self.total / self.decided.rows.total

    @property
    def inverse_gram(self) -> Array:
        """Inverse Gram matrix of the predictors of all good rows, shape (k, k)."""
        return np.linalg.pinv(self.growth * self.decided.gram, hermitian=True)

    def _on_rows(self, kernel: Kernel, join: Callable[..., Any]) -> Any:
        """Return what a kernel gives of all rows; groups are not divided."""
        # Blocks elsewhere are sent the mixture, and not the rows.
        on_some = partial(of_equations, kernel, self.mixture, self.decided, self.total, self.basis)
        arrays = self.data, self.exog, self.counts, self.far, self.groups
        return join(on_some, *arrays) if self.groups is None else on_some(*arrays)

    def far_rows(self) -> np.ndarray:
        """Tell which rows in memory are far in X, shape (n,); none where that plays no part."""
        whole, mixture = self.decided.rows.whole, self.decided.mixture
        if not mixture.far.any():
            return np.zeros(len(self.counts), bool)
        parts = portions((self.data, self.exog, self.counts))
        some = (Rows(data, exog @ self.basis, counts, whole) for data, exog, counts in parts)
        return np.concatenate([rows.far(mixture.near[0]) for rows in some])

    def summed(self, kernel: Kernel) -> Any:
        """Return the sum over all rows of what a function gives of the equations of some."""
        return self._on_rows(kernel, row_sums)

    def mapped(self, kernel: Kernel) -> Any:
        """Return what a function of their equations gives of each row."""
        return self._on_rows(kernel, mapped_in_parts)

    def polished(self) -> ExplainedRows:
        """Return the same with a mixture that solves its equations on all rows.

        By Broyden's method, from the derivative on the rows on which the mixture was decided.
        """
        found = self
        value: Array | None = None
        last = np.inf
        step: Array = np.zeros(0)
        inverse: Array = np.zeros((0, 0))
        for _ in range(20):
            before, value = value, found.summed(attrgetter("value"))
            if before is None:
                inverse = np.linalg.inv(found.growth * found.decided.jacobian)
            else:
                inverse = broyden(inverse, step, value - before)
            step = np.clip(-inverse @ value, -MOST_STEP, MOST_STEP)
            size = found.decided.change(step)
            if not (size < last or size > SETTLED):  # rounding
                break
            found, bound = found._moved(step)
            if bound:
                last, value = np.inf, None
                continue
            # What is left, were the next step shorter by the same factor.
            factor = size / last if np.isfinite(last) else 1.0
            left, last = size * min(factor, 1.0), size
            if left < POLISH_TOL:
                break
        return replace(found, converged=last < SETTLED)

    def _moved(self, step: Array) -> tuple[ExplainedRows, bool]:
        """Return the same after a step (q,), and whether it reached a new bound by it."""
        decided = self.decided
        mixture = decided.bounded(decided.moved(step[None], self.mixture))
        sizes = [mixture.size[0, part] for part in (0, 1) if f"size {part}" in decided.places]
        bound = min(sizes, default=2.0) <= 1
        if bound:
            mixture = replace(mixture, good=decided.mixture.good)
            decided = Equations(decided.rows, mixture, decided.eps_bar)
        return replace(self, mixture=mixture, decided=decided), bound

    @cached_property
    def explained(self) -> Explained:
        """The same, with all rows in that which was chosen."""
        prob_bad = of_groups(1 - self.probabilities()[0], self.groups)
        return self.compared.with_chosen(replace(self.compared.chosen, prob_bad=prob_bad))

    def probabilities(self) -> tuple[Array, Array]:
        """Return the probability of each row to be good, and its pull on the fit, (n,) each."""
        return self._probabilities[:, 0], self._probabilities[:, 1]

    @cached_property
    def _probabilities(self) -> Array:
        return self.mapped(lambda some: np.column_stack([some.good, some.pull]))

    @cached_property
    def n_good(self) -> float:
        """Number of good observations: the sum of their probabilities."""
        return float((self.counts * self.probabilities()[0]).sum())

    def influence(self, corrected: bool = True) -> Array:
        """Return the influence functions of all parameters, shape (n, q)."""
        if corrected:
            return self.decided.solved(self.mapped(self._corrected), self.decided.bread)
        slopes = self.mapped(Equations.count_slopes)
        return self.decided.solved(slopes, self.decided.jacobian)

    @property
    def _corrected(self) -> Kernel:
        """What some rows add to the equations, corrected for leverage."""
        return partial(Equations.corrected_scores, inverse=self.inverse_gram)

    def covariance(self) -> Array:
        """Return the covariance of all parameters, rows being independent, shape (q, q)."""

        def square(some: Equations, scores: Kernel = self._corrected) -> Array:
            found = scores(some)
            return found.T @ (some.rows.counts[:, None] * found)

        inverse = np.linalg.pinv(self.growth * self.decided.bread)
        return inverse @ self.summed(square) @ inverse.T

    def cutoffs(self) -> Array:
        """Return standard deviations of residuals of good rows, in units of the noise, (n,)."""
        return self.mapped(partial(Equations.cutoffs, inverse=self.inverse_gram))

    def share(self) -> tuple[float, float]:
        """Return the share of bad rows, and its standard error."""
        decided, total = self.decided, self.total
        bad = float(self.summed(Equations.n_bad))
        share = min(bad / total, decided.eps_bar)  # places of all rows differ from the sample's
        rows, spread = decided.rows, 0.0
        if decided.affordable:
            moves = decided.solved(decided.scores(), decided.jacobian)
            moves = rows.together.sums(moves @ decided.share_slopes)
            spread = float(rows.together.decisions @ moves**2) / rows.total**2
        # Which rows, or which groups, are bad counts as random too.
        variance = max(spread, rows.together.share_variance(share)) * rows.total / total
        return share, float(np.sqrt(variance))


def mapped_in_parts(function: Callable[..., Array], *arrays: Any) -> Any:
    """Return a function of rows, those in memory part by part."""
    if blocked(arrays[0]):
        return row_map(function, *arrays)
    return np.concatenate([function(*part) for part in portions(arrays)])


def of_equations(
    kernel: Kernel,
    mixture: Mixtures,
    decided: Equations,
    total: float,
    basis: Array,
    data: Array,
    exog: Array,
    counts: Array,
    far: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Any:
    """Return a function of the equations of some rows of a mixture that others decided."""
    rows = Rows(data, exog @ basis, counts, decided.rows.whole._replace(total=total), groups)
    if far is None and decided.mixture.far.any():
        far = rows.far(mixture.near[0])
    elif far is None:
        far = np.zeros(len(counts), bool)
    mixture = replace(mixture, far=far[None], good=np.ones((1, len(counts))))
    return kernel(Equations(rows, mixture, decided.eps_bar, like=decided))


def continued(
    problem: EstimableProblem, first: Estimate, theta: Array, pull: Array, converged: bool
) -> Solution:
    """Return the solution of a second step, from what each row counts for in its fit, (n,)."""
    mass = first.setting.spread(problem.n_obs) * pull
    found = first.solution.continued(
        theta, problem.losses(theta), mass / mass.sum(), first.solution.lambda_, first.setting
    )
    return replace(found, converged=first.solution.converged and converged)


def explained_gaussian(
    problem: EstimableProblem,
    setting: Setting,
    data: Array,
    exog: Array,
    candidates: Sequence[tuple[Array, Array]],
    known: ExplainedRows | None = None,
    sample: ExplainedRows | None = None,
    basis: Array | None = None,
) -> ExplainedRows:
    """Return the best explanation of the rows of a problem.

    Parameters
    ----------
    problem : EstimableProblem
    setting : Setting
    data : ndarray or BlockArray, shape (n, d)
    exog : ndarray or BlockArray, shape (n, k)
    candidates : sequence of tuples of ndarray, shapes (k, d) and (d, d)
        Coefficients and scatters to start from, the lowest minimum of the risk first.
    known : ExplainedRows, optional
        An explanation of rows near these that is not to be chosen anew.
    sample : ExplainedRows, optional
        The explanation of some of these rows that all of them have.
    basis : ndarray, shape (k, k), optional
        Takes predictors to those that explanations have.
    """
    basis = np.eye(exog.shape[1]) if basis is None else basis
    n, groups = problem.n_obs, problem.row_groups
    counts = aligned(setting.counts(n), problem.blocks)
    few = data.shape[1] ** 2 / 2 < MOST_EQUATIONS  # of many, Newton's steps cost too much
    places = deciding_places(n, groups) if few else np.arange(n)

    def decide() -> tuple[Explained, Equations, bool]:
        if sample is not None:
            some, told, settled = sample.decided.rows, sample.compared, sample.converged
            return told, Equations(some, sample.decided.mixture, setting.eps_bar), settled
        among = None if groups is None else np.unique(groups[places], return_inverse=True)[1]
        some_data, some_exog, some_counts = taken(places, data, exog, counts)
        some = Rows(some_data, some_exog @ basis, some_counts, None, among, problem.absorbed)
        if known is None:
            told, mixture, settled = best_explanation(some, candidates, setting.eps_bar)
        else:
            mixture, settled = known.mixture, True  # of all rows, to be polished on these again
            if len(places) == n:
                mixture, settled = polished(some, mixture, setting.eps_bar)
            told = known.explained.with_chosen(as_explanations(some, mixture)[0])
        return told, Equations(some, mixture, setting.eps_bar), settled

    compared, decided, sound = decided_once(problem.blocks, decide)
    if len(decided.rows.counts) < n:
        decided = decided.of_sample()
    found = ExplainedRows(
        *(data, exog, basis, counts, groups, None, decided.mixture, decided, setting.wnobs(n)),
        compared=compared,
        converged=sound,
    )
    if problem.blocks is None:
        found = replace(found, far=found.far_rows())
    return found.polished() if len(decided.rows.counts) < n else found


def regression_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of residuals in standard deviations of the noise, at each of (m,)."""
    unit = float(np.sqrt(rows.mixture.scatter[0, 0, 0]))
    return residual_densities(rows.decided.rows, rows.mixture, at * unit).per(unit)
