"""Mean and covariance by robust risk minimization."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.entropy import Array, base_weights
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.models.checks import EPS_BAR_MAX
from rrmstats.models.multivariate import RRMMultivariate
from rrmstats.results.covariance import RRMCovResults, RRMCovResultsWrapper


class RRMCov(RRMMultivariate[CovarianceProblem, RRMCovResults]):
    """Mean and covariance when some of the rows may be bad.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical estimate. By
        default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import RRMCov
    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((200, 2)) @ [[1, 0.8], [0, 0.6]]
    >>> z[:30] += 20
    >>> res = RRMCov(z, eps_bar=0.2).fit()
    >>> bool(abs(res.corr[0, 1] - 0.8) < 0.1), int(res.outliers()[:30].sum())
    (True, 30)
    """

    _results_class = RRMCovResults
    _wrapper_class = RRMCovResultsWrapper
    _no_predictions = "results have mahalanobis(new) for distances of new rows, mean and cov"

    def __init__(
        self,
        data: ArrayLike,
        eps_bar: float | str = "auto",
        *,
        eps_bar_max: float = EPS_BAR_MAX,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            data,
            eps_bar,
            eps_bar_max=eps_bar_max,
            freq_weights=freq_weights,
            groups=groups,
            missing=missing,
            persist=persist,
            **kwargs,
        )
        self.data.param_names = moment_names(self.variables)

    def problem(self) -> CovarianceProblem:
        """Return the Gaussian losses, in units of the spread of the data."""
        return CovarianceProblem(self.endog)

    def _start_theta(self, problem: CovarianceProblem, start_params: ArrayLike) -> Array:
        base = base_weights(self.freq_weights, problem.n_obs)
        return problem.from_params(np.asarray(start_params, dtype=float), self._bound, base)


def moment_names(variables: list[str]) -> list[str]:
    """Return the names of the means and of the upper triangle of the covariance."""
    rows, columns = np.triu_indices(len(variables))
    pairs = zip(rows, columns, strict=True)
    means = [f"mean[{name}]" for name in variables]
    return means + [f"cov[{variables[i]}, {variables[j]}]" for i, j in pairs]
