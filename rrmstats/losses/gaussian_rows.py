"""The second step of Gaussian rows: decided on a sample of many rows, polished on all of them.

All that is asked of all rows is a sum over them, or a function of each, so that they may lie in
memory or in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rrmstats.core.block_array import aligned, in_blocks, row_map, row_sums, taken
from rrmstats.core.blocks import added, decided_once, sample_places
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.explanations import Explained, of_groups
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.densities import Densities, residual_densities
from rrmstats.laws.gaussian import Mixtures, Rows
from rrmstats.laws.gaussian_choice import best_explanation
from rrmstats.laws.gaussian_equations import (
    MOST_EQUATIONS,
    MOST_STEP,
    POLISH_TOL,
    SETTLED,
    Equations,
    quadratic_forms,
)

# Rows on which an explanation is chosen: BIC tells explanations apart on far fewer than a million.
DECIDING_ROWS = 5_000
# Rows of an array that are looked at together.
PORTION = 32_768
# Steps on all rows from a solution on some of them.
STEPS = 20
#: Numbers of the groups of rows, shape (n,); None where rows are good or bad by themselves.
Groups = np.ndarray | None


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture, and the equations of the rows that it was decided on.

    Attributes
    ----------
    mixture : Mixtures
        A batch of one; its arrays of rows are those of `decided`.
    decided : Equations
        Its equations on the rows on which it was decided.
    total : float
        Number of observations that all rows stand for.
    """

    mixture: Mixtures
    decided: Equations
    total: float

    def equations(
        self, data: Array, exog: Array, counts: Array, groups: Groups = None
    ) -> Equations:
        """Return the equations of some rows; the other methods take the same arguments."""
        frame = self.decided.rows.whole._replace(total=self.total)
        rows = Rows(data, exog, counts, frame, groups)
        far = np.zeros(len(counts), bool)
        if self.decided.mixture.far.any():
            far = rows.far(self.mixture.near[0])
        mixture = replace(self.mixture, far=far[None], good=np.ones((1, len(counts))))
        return Equations(rows, mixture, self.decided.eps_bar, like=self.decided)

    @property
    def growth(self) -> float:
        """Number of all observations over that of those on which this was decided."""
        return self.total / self.decided.rows.total

    @property
    def inverse_gram(self) -> Array:
        """Inverse Gram matrix of the predictors of all good rows, shape (k, k)."""
        return np.linalg.pinv(self.growth * self.decided.gram, hermitian=True)

    def moved(self, step: Array) -> tuple[FittedMixture, bool]:
        """Return the mixture after a step (q,), and whether it reached a new bound by it."""
        decided = self.decided
        mixture = decided.bounded(decided.moved(step[None], self.mixture))
        sizes = [mixture.size[0, part] for part in (0, 1) if f"size {part}" in decided.places]
        if min(sizes, default=2.0) > 1:
            return replace(self, mixture=mixture), False
        mixture = replace(mixture, good=decided.mixture.good)
        decided = Equations(decided.rows, mixture, decided.eps_bar)
        return replace(self, mixture=mixture, decided=decided), True

    def value(self, *rows: Any) -> Array:
        """Return what some rows add to the equations, shape (q,)."""
        return self.equations(*rows).value

    def n_bad(self, *rows: Any) -> Array:
        """Return how many of some rows are expected to be bad."""
        found = self.equations(*rows)
        return np.asarray(found.mixture.row_shares().sum(axis=(0, 1)) @ found.rows.counts)

    def probabilities(self, *rows: Any) -> Array:
        """Return the probability of each row to be good, and its pull on the fit, shape (n, 2)."""
        found = self.equations(*rows)
        return np.column_stack([found.good, found.pull])

    def influence(self, *rows: Any, corrected: bool = True) -> Array:
        """Return the influence functions of all parameters, shape (n, q)."""
        if corrected:
            scores = self.corrected_scores(*rows)
            return self.decided.solved(scores, self.decided.bread)
        found = self.equations(*rows)
        return found.solved(found.count_slopes(), self.growth * self.decided.jacobian)

    def corrected_scores(self, *rows: Any) -> Array:
        """Return what some rows add to the equations, corrected for leverage, shape (n, q)."""
        found = self.equations(*rows)
        return found.scores(1 / (1 - found.leverage(self.inverse_gram)))

    def square(self, *rows: Any) -> Array:
        """Return the sum of the squares of the corrected scores of some rows, shape (q, q)."""
        scores = self.corrected_scores(*rows)
        return scores.T @ (rows[2][:, None] * scores)

    def cutoffs(self, *rows: Any) -> Array:
        """Return the standard deviations of the residuals of good rows at each row, shape (n,).

        In units of the noise. A row that had a part in the fit is nearer to it than one that had
        none.
        """
        found = self.equations(*rows)
        reach = quadratic_forms(found.rows.exog, self.inverse_gram)
        relative = (1 - 2 * found.good) * reach / found.size**2
        return np.asarray(found.size * np.sqrt(np.maximum(1 + relative, np.finfo(float).eps)))


def portions(n: int, groups: Groups) -> list[slice]:
    """Return portions of rows that a processor's cache can hold; groups are not divided."""
    size = max(n, 1) if groups is not None else PORTION
    return [slice(i, i + size) for i in range(0, n, size)]


def summed(
    kernel: Callable[..., Any], data: Any, exog: Any, counts: Any, groups: Groups = None
) -> Any:
    """Return a sum over rows, in memory or in blocks."""
    if in_blocks(data) is not None:
        return row_sums(kernel, data, exog, counts, groups)
    some = portions(len(data), groups)
    return added([kernel(data[i], exog[i], counts[i], groups) for i in some])


def mapped(
    kernel: Callable[..., Any], data: Any, exog: Any, counts: Any, groups: Groups = None
) -> Any:
    """Return a function of each row, in memory or in blocks."""
    if in_blocks(data) is not None:
        return row_map(kernel, data, exog, counts, groups)
    some = portions(len(data), groups)
    return np.concatenate([kernel(data[i], exog[i], counts[i], groups) for i in some])


def polished_on_all(fitted: FittedMixture, *rows: Any) -> tuple[FittedMixture, bool]:
    """Return a mixture that solves its equations on all rows, and whether it does.

    By Broyden's method, from the derivative on the rows on which the mixture was decided.
    """
    value: Array | None = None
    last, step, inverse = np.inf, np.zeros(0), np.zeros((0, 0))
    for _ in range(STEPS):
        before, value = value, summed(fitted.value, *rows)
        if before is None:
            inverse = np.linalg.inv(fitted.growth * fitted.decided.jacobian)
        else:
            found = inverse @ (value - before)
            inverse = inverse + np.outer(step - found, step @ inverse) / (step @ found)
        step = np.clip(-inverse @ value, -MOST_STEP, MOST_STEP)
        change = fitted.decided.change(step)
        if not (change < last or change > SETTLED):  # rounding
            break
        fitted, bound = fitted.moved(step)
        if bound:
            last, value = np.inf, None
            continue
        # What is left, were the next step shorter by the same factor.
        factor = change / last if np.isfinite(last) else 1.0
        left, last = change * min(factor, 1.0), change
        if left < POLISH_TOL:
            break
    return fitted, last < SETTLED


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """All rows of a problem, and the explanation that was chosen for them.

    Attributes
    ----------
    data : ndarray or BlockArray, shape (n, d)
    exog : ndarray or BlockArray, shape (n, k)
    counts : ndarray or BlockArray, shape (n,)
    groups : ndarray, shape (n,), or None
        Numbers of the groups of rows that are good or bad as a whole.
    fitted : FittedMixture
    explained : Explained
    converged : bool
    """

    data: Array
    exog: Array
    counts: Array
    groups: np.ndarray | None
    fitted: FittedMixture
    explained: Explained
    converged: bool

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The rows, as functions of `fitted` take them."""
        return self.data, self.exog, self.counts, self.groups

    def probabilities(self) -> tuple[Array, Array]:
        """Return the probability of each row to be good, and its pull on the fit, (n,) each."""
        both = mapped(self.fitted.probabilities, *self.arrays)
        return both[:, 0], both[:, 1]

    @cached_property
    def n_good(self) -> float:
        """Number of good observations: the sum of their probabilities."""
        return float((self.counts * self.probabilities()[0]).sum())

    def influence(self, corrected: bool = True) -> Array:
        """Return the influence functions of all parameters, shape (n, q)."""
        tail = (len(self.fitted.decided.value),)
        return row_map(self.fitted.influence, *self.arrays, corrected=corrected, tail=tail)

    def covariance(self) -> Array:
        """Return the covariance of all parameters, rows being independent, shape (q, q)."""
        square = summed(self.fitted.square, *self.arrays)
        inverse = np.linalg.pinv(self.fitted.growth * self.fitted.decided.bread)
        return inverse @ square @ inverse.T

    def cutoffs(self) -> Array:
        """Return standard deviations of residuals of good rows, in units of the noise, (n,)."""
        return row_map(self.fitted.cutoffs, *self.arrays)

    def share(self) -> tuple[float, float]:
        """Return the share of bad rows, and its standard error."""
        decided, total = self.fitted.decided, self.fitted.total
        bad = float(summed(self.fitted.n_bad, *self.arrays))
        share = min(bad / total, decided.eps_bar)  # places of all rows differ from the sample's
        rows, spread = decided.rows, 0.0
        if decided.affordable:
            moves = decided.solved(decided.scores(), decided.jacobian)
            moves = rows.together.sums(moves @ decided.share_slopes)
            spread = float(rows.together.decisions @ moves**2) / rows.total**2
        # Which rows, or which groups, are bad counts as random too.
        variance = max(spread, rows.together.share_variance(share)) * rows.total / total
        return share, float(np.sqrt(variance))


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
    problem: Problem,
    setting: Setting,
    data: Array,
    exog: Array,
    candidates: Sequence[tuple[Array, Array]],
) -> ExplainedRows:
    """Return the best explanation of the rows of a problem.

    Parameters
    ----------
    problem : Problem
    setting : Setting
    data : ndarray or BlockArray, shape (n, d)
    exog : ndarray or BlockArray, shape (n, k)
    candidates : sequence of tuples of ndarray, shapes (k, d) and (d, d)
        Coefficients and scatters to start from, the lowest minimum of the risk first.
    """
    n, groups = problem.n_obs, setting.groups
    counts = aligned(setting.counts(n), problem.blocks)
    places = np.arange(n)
    few = data.shape[1] ** 2 / 2 < MOST_EQUATIONS  # of many, Newton's steps cost too much
    if few and n > DECIDING_ROWS:
        places = some_places(n, groups)

    def decide() -> tuple[Explained, Equations, bool]:
        among = None if groups is None else np.unique(groups[places], return_inverse=True)[1]
        some_data, some_exog, some_counts = taken(places, data, exog, counts)
        some = Rows(some_data, some_exog, some_counts, groups=among)
        return best_explanation(some, candidates, setting.eps_bar)

    explained, decided, sound = decided_once(problem.blocks, decide)
    fitted = FittedMixture(decided.mixture, decided, setting.wnobs(n))
    if len(places) < n:
        fitted, sound = polished_on_all(fitted, data, exog, counts, groups)
    found = ExplainedRows(data, exog, counts, groups, fitted, explained, sound)
    prob_bad = of_groups(1 - found.probabilities()[0], groups)
    told = explained.with_chosen(replace(explained.chosen, prob_bad=prob_bad))
    return replace(found, explained=told)


def some_places(n: int, groups: np.ndarray | None) -> np.ndarray:
    """Return places of random rows on which to decide, or of all rows of random groups."""
    rng = np.random.default_rng(0)
    if groups is None:
        return np.sort(rng.choice(sample_places(n), DECIDING_ROWS, replace=False))
    order = rng.permutation(int(groups.max()) + 1)
    taken_rows = np.cumsum(np.bincount(groups)[order])
    drawn = order[: max(2, int(np.searchsorted(taken_rows, DECIDING_ROWS)))]
    return np.flatnonzero(np.isin(groups, drawn))


def regression_densities(rows: ExplainedRows, at: Array) -> Densities:
    """Return the densities of residuals in standard deviations of the noise, at each of (m,)."""
    fitted = rows.fitted
    unit = float(np.sqrt(fitted.mixture.scatter[0, 0, 0]))
    return residual_densities(fitted.decided.rows, fitted.mixture, at * unit).per(unit)
