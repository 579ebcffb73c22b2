"""Predictions with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from rrmstats.core.entropy import Array
from rrmstats.results.labels import prediction_frame, side_by_side
from rrmstats.results.means import predicts_mean


class ProbabilityPrediction:
    """Predicted probabilities with intervals, by the delta method on the linear predictor.

    Parameters
    ----------
    exog : ndarray, shape (m, k)
        Rows to predict.
    params : ndarray, shape (k,)
    cov_params : ndarray, shape (k, k)
    index : Index or None
        Labels of the rows.
    which : {"mean", "linear"}, optional
        Probabilities, or linear predictors.

    Attributes
    ----------
    predicted : ndarray, shape (m,)
        Probabilities, or linear predictors.
    se : ndarray, shape (m,)
        Their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.results.prediction import ProbabilityPrediction
    >>> rows, params, cov = np.array([[1.0, 2.0]]), np.array([-2.0, 1.0]), 0.04 * np.eye(2)
    >>> ProbabilityPrediction(rows, params, cov, None).summary_frame().round(2)
       predicted    se  ci_lower  ci_upper
    0        0.5  0.11      0.29      0.71
    """

    def __init__(
        self,
        exog: Array,
        params: Array,
        cov_params: Array,
        index: pd.Index | None,
        which: str = "mean",
    ) -> None:
        self._mean = predicts_mean(which)
        self._linear = exog @ params
        self._linear_se = np.sqrt(np.einsum("ni,ij,nj->n", exog, cov_params, exog))
        self._index = index
        self.predicted, self.se = self._linear, self._linear_se
        if self._mean:
            self.predicted = expit(self._linear)
            self.se = self.predicted * (1 - self.predicted) * self._linear_se

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals, those of probabilities within (0, 1), shape (m, 2).

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> res.get_prediction(cancer.head(3)).conf_int().shape
        (3, 2)
        """
        reach = norm.ppf(1 - alpha / 2) * self._linear_se
        ends = side_by_side(self._linear - reach, self._linear + reach)
        return expit(ends) if self._mean else ends

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return predictions, standard errors and intervals as a data frame.

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> res.get_prediction(cancer.head(3)).summary_frame().shape
        (3, 4)
        """
        ends = self.conf_int(alpha)
        columns = {"predicted": self.predicted, "se": self.se}
        columns |= {"ci_lower": ends[:, 0], "ci_upper": ends[:, 1]}
        return prediction_frame(columns, self._index)
