"""What results tell of the two steps: efficiency, contamination and the ladder between them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from rrmstats.core.estimate import Estimate
from rrmstats.core.sandwich import wald_pvalue
from rrmstats.results.inference import Inference
from rrmstats.results.rows import RowResults


class StepResults(RowResults):
    """Results of a first step, or of a second that agrees with it."""

    _estimate: Estimate
    _inference: Inference
    eps_bar: float

    def _set_steps(self, estimate: Estimate, inference: Inference) -> None:
        self._estimate, self._inference = estimate, inference
        self._rows_per_group = estimate.rows_per_group
        self.efficiency = estimate.efficiency
        self.efficiency_reached = estimate.efficiency_reached
        self.eps_hat, self.eps_hat_se = estimate.eps_hat, estimate.eps_hat_se
        self._reason = "" if estimate.ladder is None else estimate.ladder.reason

    @cached_property
    def ladder(self) -> pd.DataFrame | None:
        """Fits of the second step from the robust to the efficient end; None with one step.

        One row per rung, the first step on top: its `order` of robustness, `efficiency` on clean
        data, parameters, `scale` where the model has one, `eps_hat`, the least `pvalue` of
        agreement with the rungs above, and whether it was `chosen`. The rung chosen is the last
        that agrees with all above it (Lepski's rule). One that gives up more than `eps_bar` of
        the rows is not chosen either; `pvalue` is then that of giving up no more.
        """
        ladder = self._estimate.ladder
        if ladder is None:
            return None
        frame = pd.DataFrame(
            [rung.params for rung in ladder.rungs], columns=list(self.model.data.param_names)
        )
        rungs = ladder.rungs
        frame.insert(0, "order", [rung.order for rung in rungs])
        frame.insert(1, "efficiency", [rung.efficiency for rung in rungs])
        frame["scale"] = [rung.scale for rung in rungs]
        frame["eps_hat"] = [rung.eps_hat for rung in rungs]
        frame["pvalue"] = [rung.pvalue for rung in rungs]
        frame["chosen"] = np.arange(len(rungs)) == ladder.chosen
        frame = frame.drop(columns="scale") if frame["scale"].isna().all() else frame
        return frame.rename_axis("rung")

    @cached_property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the rows that it trusts are good, and the first is
        consistent either way (Hausman's test). The rule of `ladder` is meant to keep it from
        being small; where it is small all the same, prefer the first step.
        """
        first = self._estimate.first
        difference = np.asarray(self.params) - np.asarray((first or self._estimate).params)
        if first is None or not difference.any():
            return 1.0
        moves = self._estimate.influence() - first.influence()
        variance = self._inference.of_influence(self._estimate, moves)
        return wald_pvalue(difference, variance)

    def _efficiency_text(self) -> str:
        """Return the efficiency of the reported step on clean data."""
        if self.efficiency is None or self.efficiency_reached is None:
            return "n/a"
        asked = f" (asked {self.efficiency:.2f})"
        short = self.efficiency_reached < self.efficiency - 0.005
        return f"{self.efficiency_reached:.2f}{asked if short else ''}"

    def _ladder_notes(self) -> list[str]:
        """Return where the second step stopped and why."""
        if self.efficiency is None:
            return []
        notes = [
            "These are the estimates of the second step; first_step holds those of the first."
        ]
        rungs, reason = self.ladder, self._reason
        if reason:
            return [*notes, reason]
        if rungs is None or len(rungs) == 1:
            return notes
        chosen = int(np.flatnonzero(rungs["chosen"])[0])
        if chosen == len(rungs) - 1:
            return [*notes, f"The second step went all the way: its {chosen} rungs agree."]
        where = f"rung {chosen} of {len(rungs) - 1}" if chosen else "the first step"
        return [
            *notes,
            f"The second step stopped at {where}: the next, more efficient fit differs from the "
            f"more robust ones by more than chance allows (p = {rungs['pvalue'].iloc[-1]:.1g}), "
            "as it does where corrupted rows come back. Intervals are conditional on this choice; "
            "see ladder.",
        ]
