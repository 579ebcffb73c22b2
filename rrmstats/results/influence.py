"""Leverage and influence of the rows of a linear regression, under statsmodels' names."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import f

from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array
from rrmstats.results.outliers import standardized

if TYPE_CHECKING:
    from rrmstats.results.linear import RRMOLSResults


class RRMInfluence:
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
    nobs, k_vars : int
        Numbers of rows and of parameters.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0).fit()
    >>> distance, pvalue = res.get_influence().cooks_distance
    >>> int(distance.argmax())
    33
    """

    def __init__(self, results: RRMOLSResults) -> None:
        self.results = results
        self.model_class = type(results.model)
        self.endog, self.exog = results.model.endog, np.asarray(results.model.exog, float)
        self.nobs, self.k_vars = self.exog.shape
        self.resid = np.asarray(results.resid)
        self.scale = results.scale
        self._weights = results.relative_weights
        self._deletable = results.eps_bar == 0

    @cached_property
    def hat_matrix_diag(self) -> Array:
        """Weighted hat values, shape (n,); where rows count several times, of each time."""
        counts = self.results.model.freq_weights
        if counts is None:
            return hat_values(self.exog, self._weights)
        whole = hat_values(self.exog, self._weights * counts)
        return np.divide(whole, counts, out=np.zeros_like(whole), where=counts > 0)

    @property
    def _df_resid(self) -> float:
        return self.results.wnobs - self.results.rank

    @cached_property
    def _free(self) -> Array:
        """One minus the hat values; what the fit leaves of a residual."""
        return np.maximum(1 - self.hat_matrix_diag, np.finfo(float).eps)

    @cached_property
    def resid_studentized_internal(self) -> Array:
        """Residuals in units of their standard deviations, shape (n,)."""
        return standardized(self.resid / np.sqrt(self._free), self.scale)

    @property
    def resid_studentized(self) -> Array:
        """The same as `resid_studentized_internal`."""
        return self.resid_studentized_internal

    @cached_property
    def sigma2_not_obsi(self) -> Array:
        """Variance of the noise without each row, shape (n,); the robust one hardly changes."""
        if not self._deletable:
            return np.full(self.nobs, self.scale)
        free = self._df_resid
        return (self.scale * free - self.resid**2 / self._free) / (free - 1)

    @cached_property
    def resid_studentized_external(self) -> Array:
        """Residuals in units of their standard deviations in a fit without the row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.resid / np.sqrt(self.sigma2_not_obsi * self._free)
        return np.where(self.resid == 0, 0.0, scaled)

    @property
    def resid_press(self) -> Array:
        """Residuals of fits without the row, shape (n,)."""
        return self.resid / self._free

    @cached_property
    def dfbeta(self) -> Array:
        """Change of the parameters that a row makes, shape (n, k)."""
        influence = self.results.deletion_influence() / self.results.wnobs
        return influence / self._free[:, None]

    @cached_property
    def _gram_inverse(self) -> Array:
        counts = self.results.model.freq_weights
        weights = self._weights if counts is None else self._weights * counts
        gram = self.exog.T @ (weights[:, None] * self.exog)
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

    @property
    def dffits_internal(self) -> tuple[Array, float]:
        """Change of the fitted value, internally studentized, and its threshold."""
        return self._dffits(self.resid_studentized_internal)

    @property
    def dffits(self) -> tuple[Array, float]:
        """Change of the fitted value in a fit without the row, and its threshold."""
        return self._dffits(self.resid_studentized_external)

    def _dffits(self, residuals: Array) -> tuple[Array, float]:
        change = residuals * np.sqrt(self.hat_matrix_diag / self._free)
        return change, 2 * float(np.sqrt(self.k_vars / self.results.wnobs))

    @cached_property
    def cov_ratio(self) -> Array:
        """Determinant of the covariance without each row relative to that with it, shape (n,)."""
        return (self.sigma2_not_obsi / self.scale) ** self.k_vars / self._free

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
        frame = pd.DataFrame(
            self.dfbetas,
            index=self.results.model.data.row_labels,
            columns=[f"dfb_{name}" for name in self.results.model.exog_names],
        )
        frame["cooks_d"] = self.cooks_distance[0]
        frame["standard_resid"] = self.resid_studentized_internal
        frame["hat_diag"] = self.hat_matrix_diag
        frame["dffits_internal"] = self.dffits_internal[0]
        frame["student_resid"] = self.resid_studentized_external
        frame["dffits"] = self.dffits[0]
        frame["weight"] = np.asarray(self.results.weights)
        return frame
