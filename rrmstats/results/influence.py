"""Leverage and influence of the rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f
from statsmodels.stats.outliers_influence import GLMInfluence, OLSInfluence

from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array
from rrmstats.results.base import standardized

INSTEAD = (
    "there are dfbetas, cooks_distance and summary_frame(); few_rows() of the results fits "
    "without rows"
)


class WeightedInfluence:
    """Measures of rows whose weights are estimated.

    Hat values are those of the weighted design, and deletion effects are the influence functions
    of the fit, which account for the weights being estimated.
    """

    results: Any
    exog: Array
    scale: float

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no {name!r}: {INSTEAD}")

    @property
    def _res_looo(self) -> Any:
        """Refuse fits without each row, which ignore `eps_bar`."""
        raise NotImplementedError(f"no fits without each row: {INSTEAD}")

    def _keep(self, results: Any, weights: Array, influence: Array, corrected: bool) -> None:
        """Keep results, the weights of their rows in the weighted fit, and influence functions.

        Those may be corrected: those of fits without the row.
        """
        self._influence, self._corrected = influence, corrected
        self._counts = results.model.freq_weights
        self._weights = weights if self._counts is None else weights * self._counts
        self.nobs, self.exog = results.wnobs, np.asarray(results.model.exog, float)
        self._df_resid = results.wnobs - results.rank

    @cached_property
    def hat_matrix_diag(self) -> Array:
        """Weighted hat values, shape (n,); where rows count several times, of each time."""
        found, counts = hat_values(self.exog, self._weights), self._counts
        if counts is not None:
            found = np.divide(found, counts, out=np.zeros_like(found), where=counts > 0)
        return np.minimum(found, 1 - np.finfo(float).eps)

    @cached_property
    def _gram(self) -> Array:
        return self.exog.T @ (self._weights[:, None] * self.exog)

    @cached_property
    def d_params(self) -> Array:
        """Change of the parameters that a row makes, shape (n, k)."""
        moves = self._influence / self.nobs
        return moves if self._corrected else moves / (1 - self.hat_matrix_diag)[:, None]

    @property
    def _variance(self) -> Array | float:
        """Variance of the noise without each row, shape (n,), or of all rows."""
        return self.scale

    @cached_property
    def dfbetas(self) -> Array:
        """Change of the parameters in units of their standard errors, shape (n, k)."""
        inverse = np.diag(np.linalg.pinv(self._gram, hermitian=True))
        errors = np.sqrt(np.multiply.outer(self._variance, inverse))
        return np.divide(
            self.d_params, errors, out=np.zeros_like(self._influence), where=errors > 0
        )

    @cached_property
    def cooks_distance(self) -> tuple[Array, Array]:
        """Cook's distance and its p-value under F, shapes (n,)."""
        distance = np.einsum("ni,ij,nj->n", self.d_params, self._gram, self.d_params)
        scaled = standardized(np.sqrt(distance), self.scale) ** 2 / self.results.rank
        return scaled, np.asarray(f.sf(scaled, self.results.rank, self._df_resid))

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
        found: pd.DataFrame = super().summary_frame()  # type: ignore[misc]  # statsmodels'
        return found.assign(weight=np.asarray(self.results.weights))


class MeanInfluence(WeightedInfluence, GLMInfluence):
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
        self.results, self.k_vars, self.scale = results, len(results.params), results.scale
        self.k_params = self.k_vars
        self._keep(results, np.asarray(results.working_weights), influence, corrected)
        self.endog, self.cov_params = results.model.endog, np.asarray(results.cov_params())
        self.resid = np.asarray(results.resid_pearson) / np.sqrt(self.scale)

    @property
    def d_linpred_scaled(self) -> Array:
        """Change of the linear predictor in units of its standard error, shape (n,)."""
        return np.asarray(self.d_linpred / self.results.get_prediction().linpred_se)

    @property
    def d_fittedvalues_scaled(self) -> Array:
        """Change of the fitted value that a row makes, internally studentized, shape (n,)."""
        free = 1 - self.hat_matrix_diag
        return np.asarray(self.resid_studentized * np.sqrt(self.hat_matrix_diag / free))


class RRMInfluence(WeightedInfluence, OLSInfluence):
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
        OLSInfluence.__init__(self, results)
        self._keep(results, results.relative_weights, results.deletion_influence(), False)
        self.resid = np.asarray(results.resid)

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

    @property
    def _variance(self) -> Array:
        return self.sigma2_not_obsi

    @property
    def dfbeta(self) -> Array:
        """Change of the parameters that a row makes, shape (n, k)."""
        return self.d_params

    @property
    def params_not_obsi(self) -> Array:
        """Parameters of the fits without each row, to first order, shape (n, k)."""
        return np.asarray(self.results.params) - self.dfbeta

    @cached_property
    def cov_ratio(self) -> Array:
        """Determinant of the covariance without each row relative to that with it, shape (n,)."""
        return (self.sigma2_not_obsi / self.scale) ** self.k_vars / (1 - self.hat_matrix_diag)
