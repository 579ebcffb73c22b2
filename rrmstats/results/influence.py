"""Leverage and influence of the rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f
from statsmodels.stats.outliers_influence import MLEInfluence, OLSInfluence

from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array
from rrmstats.results.base import standardized


def counted_weights(results: Any, weights: Array) -> Array:
    """Return weights of rows times how often each row counts, shape (n,)."""
    counts = results.model.freq_weights
    return weights if counts is None else weights * counts


def hats_of_each_time(results: Any, exog: Array, mass: Array) -> Array:
    """Return weighted hat values, shape (n,); where rows count several times, of each time."""
    whole, counts = hat_values(exog, mass), results.model.freq_weights
    if counts is None:
        return whole
    return np.divide(whole, counts, out=np.zeros_like(whole), where=counts > 0)


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
        self._mass = counted_weights(results, np.asarray(results.working_weights))
        self._influence, self._corrected = influence, corrected

    @cached_property
    def hat_matrix_diag(self) -> Array:
        """Weighted hat values, shape (n,); where rows count several times, of each time."""
        return hats_of_each_time(self.results, self.exog, self._mass)

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
        return self.exog.T @ (self._mass[:, None] * self.exog) / self.scale

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


class RRMInfluence(OLSInfluence):
    """Leverage and influence of the rows, as statsmodels' `OLSInfluence` has them.

    At ``eps_bar = 0`` all numbers are those of statsmodels. For ``eps_bar > 0`` hat values are
    those of the weighted design; deletion effects are the influence functions of the fit, which
    account for the weights being estimated; and no deletion changes the scale, which is robust,
    so that external and internal residuals are the same. With groups, a row moves the weight of
    its group too, and its deletion effects account for that.

    Parameters
    ----------
    results : RRMOLSResults

    Attributes
    ----------
    resid : ndarray, shape (n,)
    nobs : float
        Sum of the frequency weights.
    k_vars : int
        Number of parameters.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0).fit()
    >>> distance, pvalue = res.get_influence().cooks_distance
    >>> int(distance.argmax())
    33
    """

    def __init__(self, results: Any) -> None:
        super().__init__(results)
        self.nobs, self.exog = results.wnobs, np.asarray(results.model.exog, float)
        self.resid = np.asarray(results.resid)
        self._weights = counted_weights(results, results.relative_weights)
        self._df_resid = results.wnobs - results.rank

    @cached_property
    def hat_matrix_diag(self) -> Array:
        """Weighted hat values, shape (n,); where rows count several times, of each time."""
        found = hats_of_each_time(self.results, self.exog, self._weights)
        return np.minimum(found, 1 - np.finfo(float).eps)

    @cached_property
    def sigma2_not_obsi(self) -> Array:
        """Variance of the noise without each row, shape (n,); the robust one hardly changes."""
        if self.results.eps_bar > 0:
            return np.full(len(self.resid), self.scale)
        left = self.scale * self._df_resid - self.resid * self.resid_press
        return left / (self._df_resid - 1)

    def get_resid_studentized_external(self, sigma: Any = None) -> Array:
        """Return residuals in units of their standard deviations, given those of the noise."""
        scaled = self.resid / np.sqrt(1 - self.hat_matrix_diag)
        return standardized(scaled, self.scale if sigma is None else sigma**2)

    @cached_property
    def dfbeta(self) -> Array:
        """Change of the parameters that a row makes, shape (n, k)."""
        influence = self.results.deletion_influence() / self.nobs
        return influence / (1 - self.hat_matrix_diag[:, None])

    @property
    def params_not_obsi(self) -> Array:
        """Parameters of the fits without each row, to first order, shape (n, k)."""
        return np.asarray(self.results.params) - self.dfbeta

    @cached_property
    def _gram_inverse(self) -> Array:
        gram = self.exog.T @ (self._weights[:, None] * self.exog)
        return np.linalg.pinv(gram, hermitian=True)

    @cached_property
    def dfbetas(self) -> Array:
        """Change of the parameters in units of their standard errors, shape (n, k)."""
        errors = np.sqrt(np.outer(self.sigma2_not_obsi, np.diag(self._gram_inverse)))
        return np.divide(self.dfbeta, errors, out=np.zeros_like(self.dfbeta), where=errors > 0)

    @cached_property
    def cooks_distance(self) -> tuple[Array, Array]:
        """Cook's distance and its p-value under F, shapes (n,)."""
        metric = np.linalg.pinv(self._gram_inverse, hermitian=True)
        distance = np.einsum("ni,ij,nj->n", self.dfbeta, metric, self.dfbeta)
        scaled = standardized(np.sqrt(distance), self.scale) ** 2 / self.results.rank
        return scaled, np.asarray(f.sf(scaled, self.results.rank, self._df_resid))

    @cached_property
    def cov_ratio(self) -> Array:
        """Determinant of the covariance without each row relative to that with it, shape (n,)."""
        return (self.sigma2_not_obsi / self.scale) ** self.k_vars / (1 - self.hat_matrix_diag)

    def summary_frame(self) -> pd.DataFrame:
        """Return the measures as a data frame with statsmodels' columns, and the weights.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.get_influence().summary_frame()["cooks_d"].max() > 0
        np.True_
        """
        return super().summary_frame().assign(weight=np.asarray(self.results.weights))
