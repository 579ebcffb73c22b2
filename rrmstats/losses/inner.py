"""Location and scatter of the scores within a subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from rrmstats.core.consistency import second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.search import Solution, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.old_cutoffs import precision_order, scatter_cutoff
from rrmstats.losses.matrices import unit_spread
from rrmstats.losses.planes import reweighted
from rrmstats.losses.rungs import tempered_weights
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_ground import squared, whiten
from rrmstats.losses.scatter_moves import rung_moves, scatter_influence, search_moves
from rrmstats.losses.scatter_rungs import (
    ScatterRung,
    collapsed,
    first_scatter,
    restarted,
    scatter_ladder,
)
from rrmstats.losses.sizes import USUAL_EFFICIENCY, Sample
from rrmstats.losses.subspace import SubspaceProblem


@dataclass(frozen=True, slots=True, eq=False)
class InnerScatter:
    """Robust location and scatter of the scores within a subspace, by a search of its own.

    Rows far out in the subspace lose no weight in the search for it, and would otherwise inflate
    the eigenvalues. A second step leaves out rows far off the subspace, of which it is known that
    they are bad. The search does not: bad rows in the subspace would be more than eps_bar of the
    rest.

    Attributes
    ----------
    problem : ScatterProblem
        The scores in units of their spread.
    setting : Setting
        That of the fit; in a second step frequency weights leave out rows off the subspace.
    kept : ndarray, shape (n,), or None
        What they leave of the rows, in units of the mean; None for all.
    solution : Solution
        That of least risk.
    center, unit : ndarray, shape (q,)
    first, rung : ScatterRung or None
        The first step and the rung reported; None where there is no ladder.
    ratio : float
        The weighted scatter relative to the consistent one, where there is no ladder.
    """

    problem: ScatterProblem
    setting: Setting
    kept: Array | None
    solution: Solution
    center: Array
    unit: Array
    first: ScatterRung | None
    rung: ScatterRung | None
    ratio: float

    @classmethod
    def found(cls, outer: SubspaceProblem, basis: Array, setting: Setting) -> InnerScatter:
        """Search for the scatter of the scores on a basis."""
        values = outer.data @ basis
        center, unit = unit_spread(values)
        if not outer.demean:
            center = np.zeros_like(center)
        problem = ScatterProblem((values - center) / unit, outer.demean)
        solution = global_minimum(problem, setting)
        ratio = second_moment_ratio(setting.eps_bar, problem.dim)
        first = None
        if setting.eps_bar > 0 and not problem.is_flat(solution):
            first = first_scatter(problem, solution, Sample.of(setting, problem.n_obs))
        rung = first if first is None else uncollapsed(problem, first, setting, USUAL_EFFICIENCY)
        return cls(problem, setting, None, solution, center, unit, first, rung, ratio)

    def climbed(self, efficiency: float, kept: Array | None) -> InnerScatter:
        """Return the scatter of a given efficiency, or of what the data allow of it.

        `kept`, shape (n,), is what counts of each row because of its distance off the subspace.
        """
        if self.first is None:
            return self
        setting = self.setting
        if kept is not None:
            sample = reweighted(Sample.of(setting, len(kept)), kept)
            kept = kept / float(setting.spread(len(kept)) @ kept)
            setting = replace(setting, freq_weights=sample.share * sample.total)
        ladder = scatter_ladder(self.problem, self.first, setting, efficiency)
        best = ladder.best if ladder.chosen else self.first
        rung = uncollapsed(self.problem, best, setting, efficiency)
        if rung is self.first:
            return replace(self, rung=rung)
        return replace(self, rung=rung, setting=setting, kept=kept)

    @property
    def converged(self) -> bool:
        """Whether the search and the rung converged."""
        return self.solution.converged and (self.rung is None or self.rung.converged)

    @property
    def size_order(self) -> float:
        """Order at which the size was determined."""
        return 1 / self.ratio if self.rung is None else self.rung.size_order

    @property
    def _place(self) -> tuple[Array, Array]:
        """Location and consistent scatter of the problem."""
        if self.rung is not None:
            return self.rung.location, self.rung.reported
        location, scatter = self.problem.split(self.solution.theta)
        return location, scatter / self.ratio

    @property
    def location(self) -> Array:
        """Location of the scores, shape (q,)."""
        return np.asarray(self.center + self.unit * self._place[0])

    @property
    def scatter(self) -> Array:
        """Consistent scatter of the scores, shape (q, q)."""
        return self._place[1] * np.outer(self.unit, self.unit)

    def distances(self) -> Array:
        """Return the squared distances of the rows within the subspace, shape (n,)."""
        return squared(whiten(self.problem.data, *self._place))

    def cutoff(self, level: float) -> float:
        """Return the quantile of the squared distances of clean rows."""
        dim, rung = self.problem.dim, self.rung
        if rung is None:
            return float(chi2.ppf(level, dim))
        order = rung.shape_order
        if rung is self.first:
            order = precision_order(order, self.setting.eps_bar, rung.eps_hat, dim)
        wnobs = self.setting.wnobs(self.problem.n_obs)
        return scatter_cutoff(level, dim, order, wnobs * (1 - rung.eps_hat))

    def influence(self) -> Array:
        """Return the influence functions of the scatter, shape (n, q, q)."""
        problem, rung, setting = self.problem, self.rung, self.setting
        base = setting.base(problem.n_obs)
        if rung is None or rung is self.first:
            moves = search_moves(problem, self.solution, base)
        else:
            losses = problem.losses(problem.join(rung.location, rung.weighted))
            weights = tempered_weights(losses, rung.lambda_, setting.spread(problem.n_obs))
            moves = rung_moves(problem, rung, weights, base)
        if rung is None:
            scatter = moves[1] / self.ratio
        else:
            sample = Sample.of(setting, problem.n_obs)
            scatter = scatter_influence(problem, rung, moves, sample)[1]
        if self.kept is not None:
            scatter = scatter * self.kept[:, None, None]
        return scatter * np.outer(self.unit, self.unit)


def uncollapsed(
    problem: ScatterProblem, rung: ScatterRung, setting: Setting, efficiency: float
) -> ScatterRung:
    """Return a rung none of whose variances has collapsed; the same where none has."""
    if collapsed(problem, rung, Sample.of(setting, problem.n_obs)):
        return restarted(problem, setting, efficiency)
    return rung
