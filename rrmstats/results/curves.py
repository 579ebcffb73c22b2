"""Results of a nonlinear regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.regression._prediction import PredictionResults

from rrmstats.core.entropy import Array
from rrmstats.losses.curves import CurveTangent
from rrmstats.results.base import standardized
from rrmstats.results.labels import labeled
from rrmstats.results.linear import RRMOLSResults


class RRMNLSResults(RRMOLSResults):
    """Results of a nonlinear regression; see `RRMResults` for what all models share.

    Standard errors, leverages and influence are those of a linear regression on the derivatives of
    the curve at its parameters, which `model.exog` holds.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> x = np.linspace(0, 4, 60)
    >>> y = 3 * np.exp(-x) + 0.05 * np.random.default_rng(0).standard_normal(60)
    >>> res = rrmstats.RRMNLS(lambda x, a, b: a * np.exp(-b * x), x, y).fit()
    >>> res.predict(np.array([0.0])).round(1)
    array([3.])
    """

    _title = "Robust Risk Minimization: Nonlinear Regression"

    @property
    def fittedvalues(self) -> Array:
        """Predictions of all rows, shape (n,)."""
        return self.model.predict(self.params)

    @property
    def resid_pearson(self) -> Array:
        """Residuals in standard deviations of the noise of their rows, shape (n,)."""
        return standardized(self._scaled_resid, self.scale)

    sresid = resid_scaled = resid_pearson

    @property
    def _scaled_resid(self) -> Array:
        """Residuals in units of `sigma`, shape (n,)."""
        sigma = self.model.sigma
        return self.resid if sigma is None else self.resid / sigma

    def _flags(self, level: float) -> np.ndarray:
        return np.abs(self._scaled_resid) > self._estimate.residual_cutoffs(level)

    @property
    def rsquared(self) -> float:
        """Share of the variance of the good responses that the curve explains.

        Of rows by their weights; at eps_bar = 0 one less the ratio of the sums of squares.
        """
        return self._explained_share(self.model.endog)

    def _notes(self) -> list[str]:
        problem, notes = self._estimate.problem, super()._notes()
        assert isinstance(problem, CurveTangent)
        names = np.array(self.model.exog_names)[problem.held]
        if len(names):
            notes.append(f"{', '.join(names)}: at a bound, so that there is no standard error.")
        return notes

    def predict(self, exog: Any = None, transform: bool = True) -> Any:
        """Return predictions for other `x`, or for the rows of the fit.

        Parameters
        ----------
        exog : array_like, DataFrame or mapping, optional
            What the function of the model takes; by default that of the fit.
        transform : bool, optional
            Of no effect: columns pass through the formula in any case.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> x = np.linspace(0, 4, 30)
        >>> res = rrmstats.RRMNLS(lambda x, a: np.exp(-a * x), x, np.exp(-x), eps_bar=0).fit()
        >>> res.predict(np.array([0.0, 1.0])).round(2)
        array([1.  , 0.37])
        """
        return labeled(self.model.predict(self.params, exog), self._index_of(exog))

    def _index_of(self, exog: Any) -> pd.Index | None:
        if exog is None:
            return self.model.data.row_labels
        return exog.index if isinstance(exog, pd.DataFrame | pd.Series) else None

    def get_prediction(
        self, exog: Any = None, transform: bool = True, *, row_labels: Sequence[Any] | None = None
    ) -> PredictionResults:
        """Predict with confidence and prediction intervals, by the delta method.

        Parameters
        ----------
        exog : array_like, DataFrame or mapping, optional
            What the function of the model takes; by default that of the fit.
        transform : bool, optional
            Of no effect: columns pass through the formula in any case.
        row_labels : sequence, optional
            Labels of the predictions in place of those of the rows.

        Returns
        -------
        statsmodels PredictionResults
            Prediction intervals are those of rows that are not bad, whose `sigma` is one.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> x = np.linspace(0, 4, 60)
        >>> y = 3 * np.exp(-x) + 0.05 * np.random.default_rng(0).standard_normal(60)
        >>> res = rrmstats.RRMNLS(lambda x, a, b: a * np.exp(-b * x), x, y).fit()
        >>> res.get_prediction(np.array([1.0])).summary_frame().round(1)["mean"].tolist()
        [1.1]
        """
        slopes = self.model.slopes(np.asarray(self.params), exog)
        labels = self._index_of(exog) if row_labels is None else pd.Index(row_labels)
        return self._prediction(np.asarray(self.predict(exog)), slopes, labels)
