"""What results tell of the two steps: explanations of the rows, and whether the steps agree."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import norm

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import Explanation
from rrmstats.core.group_estimate import GroupedEstimate
from rrmstats.core.sandwich import wald_pvalue
from rrmstats.results.explanations import (
    ANOTHER_MINIMUM,
    AT_BOUND,
    AT_LARGEST,
    ChosenExplanation,
    Wording,
    at_bound,
    count_bad,
    described,
    explanations_frame,
)
from rrmstats.results.inference import Inference
from rrmstats.results.rows import RowResults
from rrmstats.results.stability import listed

ONE_STEP = "needs the second step, fit(steps=2), of a model that has one, and eps_bar > 0"
FIRST_IS_KEPT = "These are the estimates of the second step; first_step holds those of the first."
SECOND_STEP = "A second step, fit(steps=2), wins them back."
UNSEEN_FLIPS = (
    "Where no labels are called flipped, standard errors and intervals allow for random flips "
    "that do not show."
)
# Difference in BIC below which two explanations are about as good (Kass and Raftery, 1995), and
# the level at which terms are significant.
CLOSE, SIGNIFICANT = 2.0, 0.05
CONDITIONAL = "Intervals are conditional on this explanation; see explanations for the others."


class StepResults(RowResults):
    """Results of a first step, or of a second that explains the rows."""

    _estimate: Estimate
    _inference: Inference
    eps_bar: float

    def _set_steps(self, estimate: Estimate, inference: Inference) -> None:
        self._estimate, self._inference = estimate, inference
        self._rows_per_group = estimate.rows_per_group
        self._unit, self._design_effect = "row", 1.0
        if isinstance(estimate, GroupedEstimate):
            self._unit, self._design_effect = "group", estimate.effect
        self.steps = 1 if estimate.first is None else 2
        self.eps_hat, self.eps_hat_se = estimate.eps_hat, estimate.eps_hat_se
        self._interval_shift, explained = estimate.interval_shift, estimate.explained
        self._other_minimum = explained is not None and explained.other_minimum
        if explained is not None:
            self.prob_bad = self._spread_over_rows(explained.chosen.prob_bad)

    @property
    def _wording(self) -> Wording:
        """Sentences about explanations that differ from those of other models."""
        return {}

    def _spread_over_rows(self, values: Array) -> Array:
        """Return values of groups as those of their rows; others as they are."""
        estimate = self._estimate
        if isinstance(estimate, GroupedEstimate):
            return values[estimate.problem.groups.codes]
        return values

    @property
    def _unit_counts(self) -> Array | None:
        """Number of observations that each row stands for; None where groups have the weights."""
        if isinstance(self._estimate, GroupedEstimate):
            return None
        counts: Array | None = self.model.freq_weights
        return counts

    @cached_property
    def explanation(self) -> ChosenExplanation | None:
        """The explanation that the second step chose; None where there is none.

        It is a text such as "none", "wide", "cluster" or "heavy tails", with a `sentence` in
        plain English.
        """
        explained = self._estimate.explained
        if explained is None:
            return None
        return described(explained.chosen, f"{self._unit}s", self._wording, self.eps_bar)

    @cached_property
    def explanations(self) -> pd.DataFrame | None:
        """The explanations that the second step compared; None where there are none.

        One row per explanation, the one chosen and then the others by BIC: its name,
        `log_likelihood`, `bic` less that of "none" (of the best one, where "none" did not fit),
        the share `eps` of bad rows, `n_bad`, the number of rows that are more likely bad than
        good, and whether it was `chosen`.
        """
        explained = self._estimate.explained
        return None if explained is None else explanations_frame(explained, self._unit_counts)

    @cached_property
    def _bad_of_all(self) -> tuple[float, float] | None:
        """How many observations, or groups, are more likely bad than good, and of how many."""
        explained = self._estimate.explained
        if explained is None:
            return None
        probabilities, counts = explained.chosen.prob_bad, self._unit_counts
        total = len(probabilities) if counts is None else float(np.sum(counts))
        return count_bad(probabilities, counts), total

    @cached_property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the rows that it trusts are good, and the first is
        consistent either way (Hausman's test). Where it is small, prefer the first step.
        """
        first = self._estimate.first
        difference = np.asarray(self.params) - np.asarray((first or self._estimate).params)
        if first is None or not difference.any():
            return 1.0
        moves = self._estimate.influence() - first.influence()
        variance = self._inference.of_influence(self._estimate, moves)
        return wald_pvalue(difference, variance)

    @cached_property
    def rival(self) -> Explanation | None:
        """An explanation that is as good as the chosen one, and tells another story of a term.

        Its BIC is within 2 of that of the chosen one, and the sign of a term that is significant
        at the 5 % level is another there, or a term is significant in one of them alone. Errors
        are those of the chosen one, and a constant counts for nothing. None where there is none.
        """
        explained = self._estimate.explained
        if explained is None or self.steps == 1:
            return None
        close = [
            each
            for each in explained.explanations
            if each is not explained.chosen and 0 <= each.bic - explained.chosen.bic < CLOSE
        ]
        return next((each for each in close if self._changed_terms(each)), None)

    def _changed_terms(self, other: Explanation) -> list[str]:
        """Return the terms of which another explanation tells another story."""
        found = self._estimate.params_of(other)
        if found is None:
            return []
        own, error = np.asarray(self.params), np.asarray(self.bse)
        sure = norm.ppf(1 - 0.5 * SIGNIFICANT) * error
        told, elsewhere = np.abs(own) > sure, np.abs(found) > sure
        opposite = (np.sign(own) != np.sign(found)) & (told | elsewhere)
        changed = opposite | ((told != elsewhere) & (np.abs(found - own) > error))
        constant = self.model.data.const_idx
        places = [i for i in np.flatnonzero(changed) if i != constant]
        return [str(self.model.data.param_names[i]) for i in places]

    @cached_property
    def _rival_note(self) -> str:
        """What to know of an explanation that is as good as the chosen one; empty for none."""
        if self.rival is None:
            return ""
        other = described(self.rival, f"{self._unit}s", self._wording, self.eps_bar)
        chosen = self._estimate.explained
        assert chosen is not None
        return (
            f"Another explanation is about as good (BIC larger by "
            f"{self.rival.bic - chosen.chosen.bic:.1f}), {other.name}: {other.sentence} It tells "
            f"another story of {listed(self._changed_terms(self.rival))}; see explanations."
        )

    def _step_notes(self) -> list[str]:
        """Return how the second step explains the rows."""
        if self.steps == 1:
            return []
        if self.explanation is None:
            return [FIRST_IS_KEPT]
        if self.eps_bar == 0:
            return [self.explanation.sentence]
        conditional = CONDITIONAL if self._interval_shift is None else UNSEEN_FLIPS
        notes = [f"{self.explanation.sentence} {conditional}", FIRST_IS_KEPT]
        if self._other_minimum:
            notes.append(ANOTHER_MINIMUM)
        if at_bound(self.eps_hat, self.eps_bar):
            notes.append(AT_BOUND if self.model.choice is None else AT_LARGEST)
        return [*notes, self._rival_note] if self._rival_note else notes
