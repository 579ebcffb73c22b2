"""Leverage and influence of the rows of models of means."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f
from statsmodels.stats.outliers_influence import MLEInfluence

from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array


class MeanInfluence(MLEInfluence):
    """Leverage and influence of the rows, as statsmodels' `GLMInfluence` has them.

    At ``eps_bar = 0`` all numbers are those of statsmodels. For ``eps_bar > 0`` hat values are
    those of the weighted design, and deletion effects are the influence functions of the fit,
    which account for the weights being estimated.

    Parameters
    ----------
    results : RRMGLMResults or RRMLogitResults
    influence : ndarray, shape (n, k)
        Influence functions of the parameters.
    corrected : bool
        Whether these are those of fits without the row.

    Examples
    --------
    >>> import pandas as pd, rrmstats
    >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
    >>> frame = rrmstats.poisson("calls ~ hour", calls, 0.2).fit().get_influence().summary_frame()
    >>> bool(frame["weight"][6] < 1e-6), bool(frame["standard_resid"].idxmax() == 6)
    (True, True)
    """

    def __init__(self, results: Any, influence: Array, corrected: bool) -> None:
        self.results, self.exog = results, np.asarray(results.model.exog, float)
        self.endog, self.cov_params = results.model.endog, np.asarray(results.cov_params())
        self.nobs, self.k_vars = self.exog.shape
        self.resid, self.scale = np.asarray(results.resid_pearson), results.scale
        self._mass = np.asarray(results.working_weights)
        self._influence, self._corrected = influence, corrected

    @cached_property
    def hat_matrix_diag(self) -> Array:
        """Weighted hat values, shape (n,); where rows count several times, of each time."""
        counts = self.results.model.freq_weights
        if counts is None:
            return hat_values(self.exog, self._mass)
        whole = hat_values(self.exog, self._mass * counts)
        return np.divide(whole, counts, out=np.zeros_like(whole), where=counts > 0)

    @cached_property
    def _free(self) -> Array:
        """One minus the hat values; what the fit leaves of a residual."""
        return np.maximum(1 - self.hat_matrix_diag, np.finfo(float).eps)

    @property
    def resid_studentized(self) -> Array:
        """Pearson residuals in units of their standard deviations, shape (n,)."""
        return self.resid / np.sqrt(self.scale * self._free)

    @cached_property
    def d_params(self) -> Array:
        """Change of the parameters that a row makes, shape (n, k)."""
        moves = self._influence / self.results.wnobs
        return moves if self._corrected else moves / self._free[:, None]

    @cached_property
    def _gram(self) -> Array:
        counts = self.results.model.freq_weights
        mass = self._mass if counts is None else self._mass * counts
        return self.exog.T @ (mass[:, None] * self.exog) / self.scale

    @cached_property
    def dfbetas(self) -> Array:
        """Change of the parameters in units of their standard errors, shape (n, k)."""
        errors = np.sqrt(np.diag(np.linalg.pinv(self._gram, hermitian=True)))
        return self.d_params / errors

    @cached_property
    def cooks_distance(self) -> tuple[Array, Array]:
        """Cook's distance and its p-value under F, shapes (n,)."""
        distance = np.einsum("ni,ij,nj->n", self.d_params, self._gram, self.d_params)
        distance = distance / self.k_vars
        return distance, np.asarray(f.sf(distance, self.k_vars, self.results.df_resid))

    @property
    def d_linpred(self) -> Array:
        """Change of its linear predictor that a row makes, shape (n,)."""
        return np.asarray((self.exog * self.d_params).sum(axis=1))

    @property
    def dffits_internal(self) -> tuple[Array, float]:
        """Change of the fitted value, internally studentized, and its threshold."""
        change = self.resid_studentized * np.sqrt(self.hat_matrix_diag / self._free)
        return change, 2 * float(np.sqrt(self.k_vars / self.results.wnobs))

    def summary_frame(self) -> pd.DataFrame:
        """Return the measures as a data frame with statsmodels' columns, and the weights.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_influence().summary_frame().shape
        (10, 7)
        """
        frame = pd.DataFrame(
            self.dfbetas,
            index=self.results.model.data.row_labels,
            columns=[f"dfb_{name}" for name in self.results.model.exog_names],
        )
        frame["cooks_d"] = self.cooks_distance[0]
        frame["standard_resid"] = self.resid_studentized
        frame["hat_diag"] = self.hat_matrix_diag
        frame["dffits_internal"] = self.dffits_internal[0]
        frame["weight"] = np.asarray(self.results.weights)
        return frame
