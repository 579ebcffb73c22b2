"""Rivals in linear regression: SEVER and Huber's regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from statsmodels.base.model import Model
from statsmodels.iolib.summary import Summary
from statsmodels.regression.linear_model import OLS, OLSResults, RegressionResultsWrapper
from statsmodels.robust.norms import HuberT
from statsmodels.robust.robust_linear_model import RLM

from rrmstats.core.entropy import Array, check_eps_bar
from replication.rivals.model import R, SeverModel
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.squares import SquaresProblem
from rrmstats.models.checks import (
    check_column,
    check_finite,
    check_kwargs,
    check_numbers,
    readable_errors,
)


class SeverRegression(SeverModel[R]):
    """A regression fitted by SEVER: checks of its data, and the statsmodels model of some rows."""

    def __init__(
        self,
        endog: Any,
        exog: Any = None,
        eps_bar: float | None = None,
        *,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        check_eps_bar(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        if exog is None:
            raise ValueError("exog is required; for an intercept alone use a column of ones")
        check_column("endog", endog)
        endog, exog = check_numbers("endog", endog), check_numbers("exog", exog)
        with readable_errors():
            # The next class is a statsmodels model, which the mixin does not know.
            super().__init__(endog, exog, missing=missing, **kwargs)  # type: ignore[call-arg]
        self._set_options(eps_bar, None)
        check_finite("endog", self.endog)
        check_finite("exog", self.exog)

    def _restricted(self, kind: type[Model], kept: np.ndarray) -> Model:
        """Return a statsmodels model of the kept rows, with the names and formula of this one."""
        model = kind(self.data.orig_endog[kept], self.data.orig_exog[kept])
        for name in ("formula", "design_info", "model_spec"):
            for mine, its in ((self, model), (self.data, model.data)):
                if hasattr(mine, name):
                    setattr(its, name, getattr(mine, name))
        return model


class SeverSummary:
    """Mixin for results: a summary that says what its standard errors ignore."""

    nobs: float
    kept: Any = None
    eps_bar: float | None = None
    rounds: int | None = None

    def summary(self, *args: Any, **kwargs: Any) -> Summary:
        """Return the summary of the last fit.

        Parameters
        ----------
        *args, **kwargs
            As statsmodels' own summary takes them.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        # The next class has statsmodels' results, which the mixin does not know.
        table = super().summary(*args, **kwargs)  # type: ignore[misc]
        table.extra_txt = "\n".join(filter(None, [table.extra_txt, sever_note(self.nobs)]))
        return table


def sever_note(nobs: float) -> str:
    """Return the note of a summary on the rows removed."""
    return (
        f"SEVER: this is the fit to the {nobs:g} rows that it kept.\n"
        "Standard errors take these rows as given: they ignore the removal and are too small."
    )


def fit_to_all(problem: SquaresProblem | LogisticProblem) -> Array:
    """Return the fit with equal weights, shape (k,)."""
    return problem.weighted_fit(np.full(problem.n_obs, 1.0 / problem.n_obs))


def gradients_at_fit(problem: SquaresProblem | LogisticProblem) -> Array:
    """Return the gradients of the losses at the fit with equal weights, shape (n, k)."""
    return problem.gradients(fit_to_all(problem))


class SeverOLS(SeverRegression[RegressionResultsWrapper], OLS):
    """Linear regression by SEVER.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Dependent variable.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is least squares.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    **kwargs
        What statsmodels' formula interface passes on.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from replication.rivals import SeverOLS
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> y = 1 + 2 * x + 0.1 * rng.standard_normal(100)
    >>> y[:10] += 30
    >>> res = SeverOLS(y, sm.add_constant(x), eps_bar=0.2).fit()
    >>> res.params.round(1), int(res.kept[:10].sum()), int(res.nobs)
    (array([1., 2.]), 0, 66)
    """

    def _gradients(self, rows: np.ndarray) -> Array:
        return gradients_at_fit(SquaresProblem(self.endog[rows], self.exog[rows]))

    def _refit(self, kept: np.ndarray) -> RegressionResultsWrapper:
        model = self._restricted(OLS, kept)
        params = np.asarray(model.fit().params)
        return RegressionResultsWrapper(
            SeverOLSResults(model, params, normalized_cov_params=model.normalized_cov_params)
        )


class SeverOLSResults(SeverSummary, OLSResults):
    """statsmodels' results of least squares on the rows that SEVER kept."""


def huber(endog: Any, exog: Any, **kwargs: Any) -> RLM:
    """Return Huber's regression: `statsmodels.api.RLM` with Huber's norm.

    Its results have `weights` where those of SEVER have `kept`: no row is removed.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Dependent variable.
    exog : array_like, shape (n, k)
        Design.
    **kwargs
        Passed on to `RLM`.

    Returns
    -------
    statsmodels.robust.robust_linear_model.RLM
        Call its `fit`.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from replication.rivals import huber
    >>> x = np.arange(20.0)
    >>> y = 1 + 2 * x + np.sin(x)
    >>> y[3] = 100
    >>> huber(y, sm.add_constant(x)).fit().params.round(0)
    array([1., 2.])
    """
    return RLM(endog, exog, M=HuberT(), **kwargs)
