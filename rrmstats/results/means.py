"""Predicted means with intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
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

    #: Names of means, standard errors and ends of intervals in a data frame.
    _columns = ("mean", "mean_se", "mean_ci_lower", "mean_ci_upper")

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

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"no {name!r}: there are predicted, se, conf_int() and summary_frame()"
        )

    @property
    def predicted_mean(self) -> Array:
        """Another name of `predicted`, shape (m,)."""
        return self.predicted

    @property
    def se_mean(self) -> Array:
        """Another name of `se`, shape (m,)."""
        return self.se

    def conf_int(self, alpha: float = 0.05, obs: bool = False) -> Array:
        """Return intervals of the means, those of the linear predictor mapped, shape (m, 2).

        Parameters
        ----------
        alpha : float, optional
            One minus the level.
        obs : bool, optional
            Intervals of responses, which are refused: use `get_distribution` of the results.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_prediction().conf_int(alpha=0.1).shape
        (10, 2)
        """
        if obs:
            raise NotImplementedError(
                "these are intervals of means; for responses of good rows use "
                "get_distribution().interval()"
            )
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
        values = (self.predicted, self.se, ends[:, 0], ends[:, 1])
        return prediction_frame(dict(zip(self._columns, values, strict=True)), self._index)


class ProbabilityPrediction(MeanPrediction):
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
    offset : ndarray, shape (m,), or float, optional
        Added to the linear predictors.

    Attributes
    ----------
    predicted : ndarray, shape (m,)
        Probabilities, or linear predictors.
    se : ndarray, shape (m,)
        Their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.results import ProbabilityPrediction
    >>> rows, params, cov = np.array([[1.0, 2.0]]), np.array([-2.0, 1.0]), 0.04 * np.eye(2)
    >>> ProbabilityPrediction(rows, params, cov, None).summary_frame().round(2)
       predicted    se  ci_lower  ci_upper
    0        0.5  0.11      0.29      0.71
    """

    _columns = ("predicted", "se", "ci_lower", "ci_upper")

    def __init__(
        self,
        exog: Array,
        params: Array,
        cov_params: Array,
        index: pd.Index | None,
        which: str = "mean",
        offset: Array | float = 0.0,
    ) -> None:
        linear_se = np.sqrt(np.einsum("ni,ij,nj->n", exog, cov_params, exog))
        functions = (IDENTITY.inverse, IDENTITY.inverse_deriv)
        if predicts_mean(which):
            functions = (expit, _slope)
        super().__init__(exog @ params + offset, linear_se, *functions, np.inf, index)


def _slope(linear: Array) -> Array:
    return np.asarray(expit(linear) * expit(-linear))


def _sorted(ends: Array) -> Array:
    return np.sort(ends, axis=1)
