"""Linear regression by robust risk minimization."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.regression.linear_model import WLS

from rrmstats.core.entropy import Array
from rrmstats.core.setting import ThetaStep
from rrmstats.losses.regression import RegressionProblem
from rrmstats.models.base import DesignedModel, RRMModel, held_arrays
from rrmstats.models.checks import (
    EPS_BAR_MAX,
    as_floats,
    check_column,
    check_finite,
    check_freq_weights,
    check_kwargs,
    check_numbers,
    checked_bound,
    readable_errors,
)
from rrmstats.results.linear import RRMOLSResults, RRMOLSResultsWrapper


class RRMOLS(DesignedModel, RRMModel[RegressionProblem, RRMOLSResults], WLS):
    """Linear regression when some of the rows may be bad.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Dependent variable.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is least squares. By default it is
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
    hasconst : bool, optional
        Whether the design holds a constant; by default it is looked for.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMOLS
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> y = 1 + 2 * x + 0.1 * rng.standard_normal(100)
    >>> y[x > 1] = -5
    >>> RRMOLS(y, sm.add_constant(x), eps_bar=0.3).fit().params.round(1)
    array([1., 2.])
    """

    exog: Array
    _cov_types = ("sandwich", "nonrobust", "cluster", "HAC", "bootstrap")
    _results_class = RRMOLSResults
    _wrapper_class = RRMOLSResultsWrapper

    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        eps_bar_max: float = EPS_BAR_MAX,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        hasconst: bool | None = None,
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        checked_bound(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        held, given = held_arrays(
            missing, persist, endog=endog, exog=exog, freq_weights=freq_weights
        )
        exog, freq_weights = given["exog"], given["freq_weights"]
        values: Any = check_numbers("endog", given["endog"])
        check_column("endog", values)
        if exog is None:
            raise ValueError("exog is required; for a location model use a column of ones")
        exog = check_numbers("exog", exog)
        counts: dict[str, Any] = {"weights": 1.0}
        if freq_weights is not None:
            before = kwargs.get("missing_idx")
            check_freq_weights(freq_weights, len(values) if before is None else len(before))
            counts = {"weights": freq_weights, "freq_weights": freq_weights}
        self._weighted = freq_weights is not None
        with readable_errors():
            super().__init__(values, exog, missing=missing, hasconst=hasconst, **counts, **kwargs)
        self.__dict__.pop("pinv_wexog", None)  # statsmodels sets None, which hides the property
        self._set_options(eps_bar, freq_weights, eps_bar_max, groups)
        check_finite("endog", self.endog)
        check_finite("exog", self.exog)
        self._hold(held)

    def whiten(self, x: ArrayLike) -> Array:
        """Return data times the root of the frequency weights: the data themselves without any."""
        return super().whiten(x) if self._weighted else np.asarray(x)

    def problem(self) -> RegressionProblem:
        """Return the squared residuals, scaled so that no data overflow."""
        return RegressionProblem(as_floats(self.endog), as_floats(self.exog))

    def _start_theta(self, problem: RegressionProblem, start_params: ArrayLike) -> Array:
        params = np.asarray(start_params, dtype=float)
        if params.shape != (self.exog.shape[1],):
            raise ValueError(
                f"start_params must be {self.exog.shape[1]} numbers, one per column of exog, got "
                f"shape {params.shape}"
            )
        return problem.from_params(params)

    def _theta_step(self, problem: RegressionProblem) -> ThetaStep:
        def refit(weights: Array, theta: Array) -> Array:
            params = WLS(self.endog, self.exog, weights=weights).fit().params
            return problem.from_params(np.asarray(params))

        return refit

    @cached_property
    def pinv_wexog(self) -> Array:
        """Pseudo-inverse of the design, as statsmodels' diagnostics use it, shape (k, n)."""
        return np.linalg.pinv(self.wexog)
