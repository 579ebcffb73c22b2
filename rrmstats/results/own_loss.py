"""Results of a user's own loss."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.losses.numerical import RoughEstimate
from rrmstats.results.base import RRMResults
from rrmstats.results.inference import Inference
from rrmstats.results.loss_flags import loss_cutoff, loss_distances
from rrmstats.results.refusals import refused
from rrmstats.results.wrapper import wrapper_of

NO_ERRORS = (
    "The losses are not smooth, so that there are no standard errors by the sandwich; "
    "cov_type='bootstrap' has some."
)
NOT_CORRECTED = (
    "The parameters are those of least risk. On clean data the weights prefer rows of small loss, "
    "so that parameters of scale come out too small."
)


class RRMCustomResults(RRMResults):
    """Results of a loss of your own; see `RRMResults` for what all models share.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Parameters of least risk.
    bse : ndarray, shape (k,)
        Standard errors by the sandwich; NaN where the losses are not smooth.
    smooth : bool
        Whether the losses have two derivatives; False where they were found to have kinks.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> z = np.r_[np.random.default_rng(0).standard_normal(90), np.full(10, 50.0)]
    >>> res = rrmstats.custom(lambda theta: (z - theta[0]) ** 2, [z.mean()], eps_bar=0.2).fit()
    >>> res.smooth, int(res.outliers()[90:].sum())
    (True, 10)
    """

    first_step: RRMCustomResults | None
    _title = "Robust Risk Minimization: Loss of Your Own"
    _meaningless: ClassVar[dict[str, str]] = {
        **refused(likelihood=("llf", "aic", "bic", "info_criteria")),
        "fittedvalues": "losses tell nothing about responses; see params and losses",
    }

    def __init__(
        self,
        model: Any,
        estimate: Estimate,
        inference: Inference,
        first_step: RRMCustomResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self.smooth = not isinstance(estimate, RoughEstimate)

    def _distances(self) -> Array:
        return loss_distances(np.asarray(self.losses), self._base)

    def _flags(self, level: float) -> np.ndarray:
        losses = np.asarray(self.losses)
        return losses > loss_cutoff(losses, level, self._base)

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.eps_bar > 0:
            notes.append(NOT_CORRECTED)
        if not self.smooth and self.bootstrap is None:
            notes.append(NO_ERRORS)
        return notes


RRMCustomResultsWrapper = wrapper_of(RRMCustomResults)
