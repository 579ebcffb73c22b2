"""The second step of Gaussian rows: decided on a sample of many rows, polished on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rrmstats.core.block_array import aligned, row_map, row_sums, taken
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.explanations import Explained
from rrmstats.core.problem import Problem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian import Rows
from rrmstats.laws.gaussian_choice import best_explanation
from rrmstats.laws.gaussian_equations import MOST_EQUATIONS
from rrmstats.laws.gaussian_passes import FittedMixture, polished_on_all

# Rows on which an explanation is chosen: BIC tells explanations apart on far fewer than a million.
DECIDING_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """All rows of a problem, and the explanation that was chosen for them.

    Attributes
    ----------
    data : ndarray or BlockArray, shape (n, d)
    exog : ndarray or BlockArray, shape (n, k)
    counts : ndarray or BlockArray, shape (n,)
    fitted : FittedMixture
    explained : Explained
    converged : bool
    """

    data: Array
    exog: Array
    counts: Array
    fitted: FittedMixture
    explained: Explained
    converged: bool

    def probabilities(self) -> tuple[Array, Array]:
        """Return the probability of each row to be good, and its pull on the fit, (n,) each."""
        both = row_map(self.fitted.probabilities, self.data, self.exog, self.counts)
        return both[:, 0], both[:, 1]

    @cached_property
    def n_good(self) -> float:
        """Number of good observations: the sum of their probabilities."""
        return float((self.counts * self.probabilities()[0]).sum())

    def influence(self, corrected: bool = True) -> Array:
        """Return the influence functions of all parameters, shape (n, q)."""
        q = len(self.fitted.decided.value)
        return row_map(
            self.fitted.influence, self.data, self.exog, self.counts, corrected=corrected,
            tail=(q,),
        )  # fmt: skip

    def cutoffs(self) -> Array:
        """Return standard deviations of residuals of good rows, in units of the noise, (n,)."""
        return row_map(self.fitted.cutoffs, self.data, self.exog, self.counts)

    def share(self) -> tuple[float, float]:
        """Return the share of bad rows, and its standard error."""
        decided, total = self.fitted.decided, self.fitted.total
        bad = float(row_sums(self._bad, self.data, self.exog, self.counts))
        share = min(bad / total, decided.eps_bar)  # places of all rows differ from the sample's
        spread = 0.0
        if decided.affordable:
            moves = decided.solved(np.ones(len(decided.good)), decided.jacobian)
            moves = moves @ decided.share_slopes
            spread = float(np.sqrt(decided.rows.counts @ moves**2 / decided.rows.total))
        # Which rows are bad counts as random too.
        least = float(np.sqrt(max(share * (1 - share), 0.0)))
        return share, max(spread, least) / float(np.sqrt(total))

    def _bad(self, data: Array, exog: Array, counts: Array) -> Array:
        mixture = self.fitted.equations(data, exog, counts).mixture
        return np.asarray(mixture.row_shares().sum(axis=(0, 1)) @ counts)


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
    n = problem.n_obs
    counts = aligned(setting.counts(n), problem.blocks)
    places = np.arange(n)
    few = data.shape[1] ** 2 / 2 < MOST_EQUATIONS  # of many, Newton's steps cost too much
    if few and n > DECIDING_ROWS:
        places = np.sort(np.random.default_rng(0).choice(n, DECIDING_ROWS, replace=False))
    some_data, some_exog, some_counts = taken(places, data, exog, counts)
    some = Rows(some_data, some_exog, some_counts)
    explained, decided, sound = best_explanation(some, candidates, setting.eps_bar)
    fitted = FittedMixture(decided.mixture, decided, setting.wnobs(n))
    if few and n > DECIDING_ROWS:
        fitted, sound = polished_on_all(fitted, data, exog, counts)
    found = ExplainedRows(data, exog, counts, fitted, explained, sound)
    chosen = replace(explained.chosen, prob_bad=1 - found.probabilities()[0])
    others = explained.explanations[1:]
    told = replace(explained, chosen=chosen, explanations=(chosen, *others))
    return replace(found, explained=told)
