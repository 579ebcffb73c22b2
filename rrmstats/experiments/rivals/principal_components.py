"""Principal components by SEVER."""

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
from rrmstats.results.components import component_names
from rrmstats.results.labels import labeled, labeled_table
from rrmstats.results.summary import number_table


class SeverPCA(SeverMultivariate["SeverPCAResults"]):
    """Principal components by SEVER.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    n_components : int, optional
        Number of components, less than d.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is the classical analysis.
    demean : bool, optional
        False for components around the origin.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' interfaces pass on.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.experiments.rivals import SeverPCA
    >>> rng = np.random.default_rng(0)
    >>> t = rng.standard_normal(100)
    >>> z = np.c_[t, 2 * t] + 0.1 * rng.standard_normal((100, 2))
    >>> z[:5] = [10, -10]
    >>> SeverPCA(z, 1, eps_bar=0.2).fit().loadings.round(1).ravel()
    array([0.4, 0.9])
    """

    def __init__(
        self,
        data: Any,
        n_components: int = 1,
        eps_bar: float | str = "auto",
        *,
        demean: bool = True,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(data, eps_bar, missing=missing, **kwargs)
        d = self.endog.shape[1]
        whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
        if not (whole and 1 <= n_components < d):
            raise ValueError(
                f"n_components must be a whole number from 1 to {d - 1}, fewer than the {d} "
                f"variables, got {n_components!r}"
            )
        self.n_components, self.demean = int(n_components), demean
        self._init_keys.extend(["n_components", "demean"])
        self.data.param_names = component_names(self.n_components)

    def _components(self, rows: np.ndarray) -> tuple[Array, Array, Array]:
        """Return the mean (d,), loadings (d, q) and eigenvalues (q,) of some rows."""
        mean, second = moments(self.endog[rows], self.demean)
        values, vectors = np.linalg.eigh(second)
        loadings = vectors[:, ::-1][:, : self.n_components]
        largest = np.abs(loadings).argmax(axis=0)
        signs = np.sign(loadings[largest, np.arange(self.n_components)])
        return mean, loadings * signs, values[::-1][: self.n_components]

    def _gradients(self, rows: np.ndarray) -> Array:
        mean, loadings, _ = self._components(rows)
        centered = self.endog[rows] - mean
        scores = centered @ loadings
        off = centered - scores @ loadings.T
        turn = -2.0 * (off[:, :, None] * scores[:, None, :]).reshape(len(rows), -1)
        return np.hstack([turn, -2.0 * off]) if self.demean else turn

    def _refit(self, kept: np.ndarray) -> SeverPCAResults:
        return SeverPCAResults(self, int(kept.sum()), *self._components(kept))


class SeverPCAResults(SeverMultivariateResults):
    """Principal components of the rows that SEVER kept.

    Attributes
    ----------
    mean : ndarray or Series, shape (d,)
    loadings : ndarray or DataFrame, shape (d, q)
        Orthonormal axes, one per column.
    eigenvals : ndarray or Series, shape (q,)
        Variances along them; the same as `params`.
    """

    _title = "SEVER: Principal Components"

    def __init__(
        self, model: SeverPCA, nobs: int, mean: Array, loadings: Array, values: Array
    ) -> None:
        super().__init__(model, nobs, values)
        self.mean = labeled(mean, model.variable_index)
        names = model.data.param_names
        self.loadings = labeled_table(loadings, model.variable_index, names)
        self.eigenvals = self.params

    def _tables(self) -> list[SimpleTable]:
        names = list(self.model.data.param_names)
        return [
            number_table(np.asarray(self.loadings), self.model.variables, names),
            number_table(np.asarray(self.eigenvals), ["eigenvalue"], names),
        ]
