"""Predicted means with intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import norm, t
from statsmodels.genmod.families.links import Identity

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.results.labels import prediction_frame, side_by_side

#: The link of linear predictors that are predicted themselves.
IDENTITY = Identity()


def predicts_mean(which: str) -> bool:
    """Tell whether means are predicted, and not linear predictors."""
    if which not in ("mean", "linear"):
        raise ValueError(f"which must be 'mean' or 'linear', got {which!r}")
    return which == "mean"


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
        self.predicted = row_map(inverse, linear, tail=())
        self.se = np.abs(row_map(slope, linear, tail=())) * linear_se

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals of the means, those of the linear predictor mapped, shape (m, 2).

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_prediction().conf_int(alpha=0.1).shape
        (10, 2)
        """
        law = norm if self._free == np.inf else t(self._free)
        reach = law.ppf(1 - alpha / 2) * self.linear_se
        ends = side_by_side(self.linear - reach, self.linear + reach)
        return row_map(_sorted, row_map(self._inverse, ends, tail=(2,)), tail=(2,))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return means, standard errors and intervals as a data frame.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_prediction().summary_frame().columns.tolist()
        ['mean', 'mean_se', 'mean_ci_lower', 'mean_ci_upper']
        """
        ends = self.conf_int(alpha)
        columns = {"mean": self.predicted, "mean_se": self.se}
        columns |= {"mean_ci_lower": ends[:, 0], "mean_ci_upper": ends[:, 1]}
        return prediction_frame(columns, self._index)


def _sorted(ends: Array) -> Array:
    return np.sort(ends, axis=1)
