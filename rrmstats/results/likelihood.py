"""Results of a statsmodels model with a likelihood per row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from rrmstats.core.consistency import gaussian_efficiency
from rrmstats.core.entropy import Array
from rrmstats.losses.likelihood import LikelihoodEstimate
from rrmstats.results.base import RRMResults
from rrmstats.results.inference import Inference
from rrmstats.results.loss_flags import loss_cutoff, loss_distances
from rrmstats.results.refusals import refused
from rrmstats.results.wrapper import wrapper_of

NO_SATURATED = (
    "The loss is minus the log-likelihood, because the largest value that it could have is not "
    "known: rows whose response has a wide distribution lose weight whatever it is. "
    "robustify(saturated=) takes the largest values."
)
NOT_CORRECTED = (
    "The parameters are those of least risk, not corrected: the model has no get_distribution "
    "that gives one distribution per row. On clean data the weights prefer rows near the fit, so "
    "that parameters of scale come out too small."
)


class RRMLikelihoodResults(RRMResults):
    """Results of a statsmodels model; see `RRMResults` for what all models share.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Parameters of the model in one vector, auxiliary ones such as alpha among them. They are
        consistent where `corrected`.
    raw_params : ndarray, shape (k,)
        The paper's, the minimizer of the risk.
    corrected : bool
        Whether the distribution of the responses is known, so that `params` are consistent.
    saturated : bool
        Whether losses are above the largest log-likelihood that a row could have.
    """

    _estimate: LikelihoodEstimate
    first_step: RRMLikelihoodResults | None
    _meaningless: ClassVar[dict[str, str]] = {
        **refused(
            likelihood=("llf", "llnull", "aic", "bic", "info_criteria", "prsquared", "llr"),
            optimizer=("mle_retvals", "mle_settings", "fit_history"),
            no_influence=("get_influence",),
        ),
        "get_margeff": "it is not offered for any likelihood; see RRMGLM and RRMLogit",
        "get_prediction": "intervals are not offered for any likelihood; see predict()",
    }

    def __init__(
        self,
        model: Any,
        estimate: LikelihoodEstimate,
        inference: Inference,
        first_step: RRMLikelihoodResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self.corrected = estimate.corrected
        self.saturated = estimate.saturated

    @property
    def _title(self) -> str:  # type: ignore[override]  # it names the model that was given
        return f"Robust Risk Minimization: {self.model.kind}"

    @property
    def fittedvalues(self) -> Array:
        """What the model predicts for the rows of the fit."""
        return np.asarray(self.model.predict(np.asarray(self.params)))

    @property
    def _reported_losses(self) -> Array:
        """Losses at `params`; those of least risk where they are not corrected."""
        rows = self._estimate.rows
        return np.asarray(self.losses) if rows is None else rows.losses

    def _distances(self) -> Array:
        losses = self._reported_losses
        if self.saturated:
            return np.sqrt(2.0 * np.maximum(losses, 0.0))
        return loss_distances(losses, self._base)

    def _flags(self, level: float) -> np.ndarray:
        tail = self._estimate.tail()
        if tail is not None:
            return tail < 1 - level
        return self._reported_losses > loss_cutoff(self._reported_losses, level, self._base)

    def _efficiency_text(self) -> str:
        if self.efficiency is not None or not self.corrected:
            return super()._efficiency_text()
        return f"{self._first_efficiency:.2f}"

    @property
    def _first_efficiency(self) -> float:
        """Efficiency of the first step on clean data; rows of a group are its dimensions."""
        return gaussian_efficiency(self.eps_bar, self._rows_per_group)

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.eps_bar == 0:
            return notes
        if not self.saturated:
            notes.append(NO_SATURATED)
        if not self.corrected:
            notes.append(NOT_CORRECTED)
        elif self.efficiency is None and not self.model._incomparable:
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean data the variances are about "
                f"those of {self._first_efficiency:.0%} of the rows. "
                "fit(efficiency=0.95) makes it 95%."
            )
        return notes


RRMLikelihoodResultsWrapper = wrapper_of(RRMLikelihoodResults)
