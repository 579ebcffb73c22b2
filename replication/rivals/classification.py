"""Logistic regression by SEVER."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from statsmodels.discrete.discrete_model import BinaryResultsWrapper, Logit, LogitResults
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from rrmstats.core.entropy import Array
from replication.rivals.regression import (
    SeverRegression,
    SeverSummary,
    fit_to_all,
    gradients_at_fit,
)
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.models.classes import check_binary, check_classes


class SeverLogit(SeverRegression[BinaryResultsWrapper], Logit):
    """Logistic regression by SEVER.

    Where a hyperplane separates the kept rows, the likelihood has no maximum; the parameters then
    have the direction of the hyperplane, and a warning says so.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Labels, 0 and 1.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is maximum likelihood.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' formula interface passes on.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from replication.rivals import SeverLogit
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> y = (rng.random(500) < 1 / (1 + np.exp(-2 * x))).astype(float)
    >>> y[np.argsort(x)[-20:]] = 0
    >>> res = SeverLogit(y, sm.add_constant(x), eps_bar=0.05).fit()
    >>> int(res.nobs), bool(res.params[1] > sm.Logit(y, sm.add_constant(x)).fit(disp=0).params[1])
    (454, True)
    """

    def __init__(
        self,
        endog: Any,
        exog: Any = None,
        eps_bar: float | None = None,
        *,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(endog, exog, eps_bar, missing=missing, **kwargs)
        check_binary(self.endog)
        check_classes(self.endog, None)
        # statsmodels adds an offset, which clones would take for an unknown keyword.
        self._init_keys = [key for key in self._init_keys if key != "offset"]

    def _problem(self, rows: np.ndarray) -> LogisticProblem:
        return LogisticProblem(self.endog[rows], self.exog[rows])

    def _gradients(self, rows: np.ndarray) -> Array:
        return gradients_at_fit(self._problem(rows))

    def _refit(self, kept: np.ndarray) -> BinaryResultsWrapper:
        labels = self.endog[kept]
        if np.ptp(labels) == 0:
            raise ValueError(
                f"every row that SEVER kept has the label {labels[0]:g}; lower eps_bar"
            )
        problem = self._problem(kept)
        theta = fit_to_all(problem)
        separated = problem.separated(theta)
        if separated:
            warnings.warn(
                "a hyperplane separates the rows that SEVER kept, so that the likelihood has no "
                "maximum; only the direction of the parameters is meaningful",
                PerfectSeparationWarning,
                stacklevel=3,
            )
        model = self._restricted(Logit, kept)
        with warnings.catch_warnings():
            if separated:
                warnings.simplefilter("ignore")  # the warning above says it
            fit = model.fit(start_params=theta, maxiter=0 if separated else 35, disp=0)
        return BinaryResultsWrapper(SeverLogitResults(model, fit._results))


class SeverLogitResults(SeverSummary, LogitResults):
    """statsmodels' results of maximum likelihood on the rows that SEVER kept."""
