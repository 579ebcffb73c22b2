"""Predicted means with intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from rrmstats.core.entropy import Array


class MeanPrediction:
    """Predicted means of a generalized linear model, by the delta method.

    Parameters
    ----------
    linear, linear_se : ndarray, shape (m,)
        Linear predictors and their standard errors.
    inverse, slope : callable
        Inverse of the link, and its derivative.
    free : float
        Degrees of freedom of the intervals; infinite for normal ones.
    index : Index or None
        Labels of the rows.

    Attributes
    ----------
    predicted : ndarray, shape (m,)
        Means.
    se : ndarray, shape (m,)
        Their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.results.means import MeanPrediction
    >>> found = MeanPrediction(np.array([0.0]), np.array([0.1]), np.exp, np.exp, np.inf, None)
    >>> found.summary_frame().round(2)
       mean  mean_se  mean_ci_lower  mean_ci_upper
    0   1.0      0.1           0.82           1.22
    """

    def __init__(
        self,
        linear: Array,
        linear_se: Array,
        inverse: Callable[[Array], Array],
        slope: Callable[[Array], Array],
        free: float,
        index: pd.Index | None,
    ) -> None:
        self.linear, self.linear_se = linear, linear_se
        self._inverse, self._free, self._index = inverse, free, index
        self.predicted = np.asarray(inverse(linear))
        self.se = np.abs(np.asarray(slope(linear))) * linear_se

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals of the means, those of the linear predictor mapped, shape (m, 2)."""
        law = norm if self._free == np.inf else t(self._free)
        reach = law.ppf(1 - alpha / 2) * self.linear_se
        ends = np.c_[self.linear - reach, self.linear + reach]
        return np.sort(np.asarray(self._inverse(ends)), axis=1)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return means, standard errors and intervals as a data frame."""
        low, high = self.conf_int(alpha).T
        columns = {"mean": self.predicted, "mean_se": self.se}
        columns |= {"mean_ci_lower": low, "mean_ci_upper": high}
        return pd.DataFrame(columns, index=self._index)
