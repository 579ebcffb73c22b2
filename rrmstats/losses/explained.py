"""The second step of losses whose rows have a distribution: labels, counts, any likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.explanations import Explanation, of_groups, without_comparison
from rrmstats.core.problem import Problem
from rrmstats.laws.explain import explained_rows
from rrmstats.laws.mixture import Laws
from rrmstats.laws.rows import PredictorRows
from rrmstats.losses.label_explanations import explained_labels
from rrmstats.losses.logistic import LogisticProblem


class ExplainedProblem(EstimableProblem):
    """A problem whose second step explains the rows."""

    nested = True
    #: Coordinates of the problem.
    design: Design
    #: Function of the estimate of a first step that returns the rows as laws take them.
    law_rows: Callable[..., PredictorRows]
    #: Function of these that returns what they may look like.
    laws: Callable[..., Laws]
    #: Function of the first step that returns parameters to start from, the likeliest first.
    candidates: Callable[..., Sequence[Array]]
    #: Function of the first step and of what explains the rows that returns its estimate.
    explained_by: Callable[..., Estimate]

    @property
    def labels(self) -> LogisticProblem | None:
        """The rows as labels of a logistic regression; None where they are something else."""
        return None

    @property
    def follows_first(self) -> bool:  # type: ignore[override]  # a value in others
        """Whether the second step starts from the first: that of labels does not."""
        return self.labels is None

    def shares_coordinates(self, other: Problem) -> bool:
        """Tell whether the second step of the problem of some of the rows serves all of them."""
        assert isinstance(other, ExplainedProblem)
        return self.design.back is None and other.design.back is None

    def second_step(self, first: Estimate) -> Estimate:
        """Return the estimate of the best explanation of the rows, from the first step."""
        assert isinstance(first, ExplainedEstimate)
        bound, labels, known = first.setting.eps_bar, self.labels, first.decided
        if first.exact or bound == 0:
            bad = of_groups(float(first.exact) * (first.solution.weights == 0), self.row_groups)
            told = without_comparison(bad, first.eps_hat if first.exact else 0.0)
            return replace(first, first=first, explained=told)
        rows = self.law_rows(first)
        if labels is not None and self.row_groups is None:
            return self.explained_by(first, explained_labels(labels, self.design, rows, first))
        starts = self.candidates(first) if known is None else ()
        sample = None if known is None else known.explained
        return self.explained_by(
            first, explained_rows(rows, self.laws(rows), starts, bound, sample)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedEstimate(Estimate):
    """The estimate of either step.

    Attributes
    ----------
    exact : bool
        Whether the rows with weight have no dispersion at all.
    identified : bool
        Whether the size of the parameters is identified, and not only their direction.
    moves : ndarray, shape (n, k), or None
        Influence functions of a second step, in the coordinates of the problem.
    """

    problem: ExplainedProblem
    exact: bool = False
    identified: bool = True
    moves: Array | None = None

    def params_of(self, explanation: Explanation) -> Array | None:
        """Return the parameters under an explanation that was compared; None if not known."""
        theta = explanation.theta
        return None if theta is None else self.problem.design.to_params(theta)

    def first_moves(self) -> Array:
        """Return the influence functions of a first step, in the coordinates of the problem."""
        return super().influence()

    def influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        moves, back = self.moves, self.problem.design.back
        moves = self.first_moves() if moves is None else moves
        return moves if back is None else moves @ back.T
