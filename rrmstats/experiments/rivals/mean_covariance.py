"""Mean and covariance by SEVER."""

from __future__ import annotations

from typing import Any

import numpy as np
from statsmodels.iolib.table import SimpleTable

from rrmstats.core.entropy import Array
from rrmstats.experiments.rivals.multivariate import (
    SeverMultivariate,
    SeverMultivariateResults,
    moments,
)
from rrmstats.models.covariance import moment_names
from rrmstats.results.labels import labeled, labeled_table
from rrmstats.results.summary import number_table


class SeverCov(SeverMultivariate["SeverCovResults"]):
    """Mean and covariance by SEVER.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is the classical estimate.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' interfaces pass on.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.experiments.rivals import SeverCov
    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((200, 2)) @ [[1, 0.8], [0, 0.6]]
    >>> z[:5] = [5, -5]
    >>> res = SeverCov(z, eps_bar=0.1).fit()
    >>> int(res.kept[:5].sum()), res.cov.shape
    (0, (2, 2))
    """

    def __init__(
        self, data: Any, eps_bar: float | str = "auto", *, missing: str = "none", **kwargs: Any
    ) -> None:
        super().__init__(data, eps_bar, missing=missing, **kwargs)
        self.data.param_names = moment_names(self.variables)

    def _gradients(self, rows: np.ndarray) -> Array:
        mean, cov = moments(self.endog[rows])
        precision = np.linalg.pinv(cov, hermitian=True)
        whitened = (self.endog[rows] - mean) @ precision
        by_cov = precision - whitened[:, :, None] * whitened[:, None, :]
        return np.hstack([-2.0 * whitened, by_cov.reshape(len(rows), -1)])

    def _refit(self, kept: np.ndarray) -> SeverCovResults:
        return SeverCovResults(self, int(kept.sum()), *moments(self.endog[kept]))


class SeverCovResults(SeverMultivariateResults):
    """Mean and covariance of the rows that SEVER kept.

    Attributes
    ----------
    mean : ndarray or Series, shape (d,)
    cov : ndarray or DataFrame, shape (d, d)
    """

    _title = "SEVER: Mean and Covariance"

    def __init__(self, model: SeverCov, nobs: int, mean: Array, cov: Array) -> None:
        super().__init__(model, nobs, np.r_[mean, cov[np.triu_indices(len(mean))]])
        self.mean = labeled(mean, model.variable_index)
        self.cov = labeled_table(cov, model.variable_index, model.variables)

    def _tables(self) -> list[SimpleTable]:
        names = self.model.variables
        return [
            number_table(np.asarray(self.mean), ["mean"], names),
            number_table(np.asarray(self.cov), names, names),
        ]
