"""Location and scatter of the scores within a subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import relative_weights
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian import Rows
from rrmstats.losses.explained_scatter import consistent_scatter, explained_moves
from rrmstats.losses.gaussian_rows import ExplainedRows, explained_gaussian
from rrmstats.losses.matrices import unit_spread
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_starts import (
    ones_column,
    robust_starts,
    scatter_candidates,
    some_rows,
)
from rrmstats.losses.subspace import SubspaceProblem
from rrmstats.losses.tilted_scatter import (
    precision_order,
    scatter_cutoff,
    tilted_moves,
    tilted_order,
    tilts,
)

# Rows that may always be bad: less than one is none.
LEAST_BAD = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class InnerScatter:
    """Robust location and scatter of the scores within a subspace, by a search of its own.

    Rows far out in the subspace lose no weight in the search for it, and would otherwise inflate
    the eigenvalues.

    Attributes
    ----------
    problem : ScatterProblem
        The scores in units of their spread.
    setting : Setting
    solution : Solution
        That of least risk.
    center, unit : ndarray, shape (q,)
    place : tuple of ndarray, shapes (q,) and (q, q)
        Location and consistent scatter of the problem.
    order : float
        The consistent scatter over the weighted one.
    """

    problem: ScatterProblem
    setting: Setting
    solution: Solution
    center: Array
    unit: Array
    place: tuple[Array, Array]
    order: float

    @classmethod
    def found(cls, outer: SubspaceProblem, basis: Array, setting: Setting) -> InnerScatter:
        """Search for the scatter of the scores on a basis."""
        values = outer.data @ basis
        center, unit = unit_spread(values)
        if not outer.demean:
            center = np.zeros_like(center)
        problem = ScatterProblem((values - center) / unit, outer.demean)
        solution = global_minimum(problem, setting)
        location, scatter = problem.split(solution.theta)
        order = tilted_order(solution.lambda_, setting.eps_bar, problem.dim)
        made = cls(problem, setting, solution, center, unit, (location, order * scatter), order)
        return made if setting.eps_bar == 0 else made._uncollapsed()

    def _uncollapsed(self) -> InnerScatter:
        """Return a scatter of most of the rows, where least risk is that of few."""
        if self.flat:
            return self
        data, counts = some_rows(self.problem, self.setting)
        rows = Rows(data, np.ones((len(data), int(self.problem.demean))), counts)
        if not rows.refuses(*self.place):
            return self
        starts = robust_starts(rows, self.setting.eps_bar)
        if not starts:
            return self
        location = starts[0][0].sum(axis=0)
        return replace(self, place=(location, starts[0][1]))

    @property
    def flat(self) -> bool:
        """Whether the scores with weight lie on a hyperplane."""
        return self.problem.is_flat(self.solution)

    def explained(self, kept: Array) -> InnerScatter:
        """Return the scatter of the best explanation of the scores.

        `kept`, shape (n,), is what counts of each row because of its distance off the subspace.
        Rows that are bad off the subspace and within it are at most eps_bar together.
        """
        if self.flat or self.setting.eps_bar == 0:
            return self
        problem, n = self.problem, self.problem.n_obs
        counted = replace(self.setting, freq_weights=self.setting.counts(n) * kept)
        exog = ones_column(problem.data, int(problem.demean))
        starts = scatter_candidates(problem, self.solution, counted)
        good = float(self.setting.spread(n) @ kept)
        left = max(1 - (1 - self.setting.eps_bar) / good, LEAST_BAD / self.setting.wnobs(n))
        rows = explained_gaussian(
            problem, replace(counted, eps_bar=left), problem.data, exog, starts
        )
        place = rows.fitted.mixture.coef[0].sum(axis=0), consistent_scatter(rows)
        return ExplainedScatter(
            problem, self.setting, replace(self.solution, converged=rows.converged), self.center,
            self.unit, place, 1.0, rows,
        )  # fmt: skip

    @property
    def location(self) -> Array:
        """Location of the scores, shape (q,)."""
        return np.asarray(self.center + self.unit * self.place[0])

    @property
    def scatter(self) -> Array:
        """Consistent scatter of the scores, shape (q, q)."""
        return self.place[1] * np.outer(self.unit, self.unit)

    def good(self) -> Array:
        """Return weights of the rows whose mean over good rows is one, shape (n,)."""
        theta = self.problem.join(*self.place)
        return tilts(self.problem.distances(theta), self.order, self.problem.dim)

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        dim, eps_bar = self.problem.dim, self.setting.eps_bar
        if eps_bar == 0 or self.flat:
            return float(chi2.ppf(level, dim))
        wnobs = self.setting.wnobs(self.problem.n_obs)
        bad = float(np.clip(1 - self.setting.spread(self.problem.n_obs) @ self.good(), 0, eps_bar))
        order = precision_order(self.order, eps_bar, bad, dim)
        return scatter_cutoff(level, dim, wnobs * (1 - bad), order)

    def influence(self) -> Array:
        """Return the influence functions of the scatter, shape (n, q, q)."""
        moves = tilted_moves(self.problem, self.solution, self.order, self.setting)[1]
        return moves * np.outer(self.unit, self.unit)


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedScatter(InnerScatter):
    """That of a second step.

    Attributes
    ----------
    rows : ExplainedRows
        The scores and their explanation.
    """

    rows: ExplainedRows

    def good(self) -> Array:
        """Return the probability of each row to be good, shape (n,)."""
        return self.rows.probabilities()[0]

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        return scatter_cutoff(level, self.problem.dim, self.rows.n_good)

    def influence(self) -> Array:
        """Return the influence functions of the scatter, shape (n, q, q).

        A row counts for what is left of it at its distance off the subspace.
        """
        counts = self.rows.counts
        base = self.setting.base(self.problem.n_obs)
        relative = relative_weights(counts / counts.sum(), base)
        moves = explained_moves(self.rows)[1]
        return relative[:, None, None] * moves * np.outer(self.unit, self.unit)
