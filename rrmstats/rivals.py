"""Rivals of robust risk minimisation, in the same dress: SEVER and Huber's regression.

SEVER (Diakonikolas, Kamath, Kane, Li, Steinhardt and Stewart, ICML 2019) fits the model, finds
the direction in which the centred gradients of the losses spread most, removes the rows that lie
farthest along it, and repeats. The settings here are those of its authors' experiments: each of
four rounds removes a share ``eps_bar / 2`` of the rows that are left.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.discrete.discrete_model import BinaryResultsWrapper, Logit, LogitResults
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base
from statsmodels.regression.linear_model import OLS, OLSResults, RegressionResultsWrapper
from statsmodels.robust.norms import HuberT
from statsmodels.robust.robust_linear_model import RLM
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from rrmstats.base import (
    RRMModel,
    check_column,
    check_finite,
    check_kwargs,
    check_numbers,
    check_required,
    readable_errors,
)
from rrmstats.core.entropy import Array
from rrmstats.core.logistic import LogitProblem
from rrmstats.labels import check_binary, check_classes
from rrmstats.multivariate import RRMMultivariate, labelled, number_table
from rrmstats.ols import OLSProblem
from rrmstats.pca import component_names

__all__ = [
    "SeverCov",
    "SeverLogit",
    "SeverOLS",
    "SeverPCA",
    "filter_round",
    "huber",
    "sever",
]

# Rounds of removal, as in the experiments of SEVER's authors.
ROUNDS = 4
# What rounding may take from a share of rows that is a whole number.
WHOLE = 1e-9


def filter_round(gradients: Array, share: float) -> np.ndarray:
    """Return which rows one round of SEVER keeps.

    Parameters
    ----------
    gradients : ndarray, shape (m, k)
        Gradients of the losses of the rows at their fit.
    share : float
        Share of the rows to remove, rounded down to whole rows.

    Returns
    -------
    ndarray of bool, shape (m,)
        False for the rows with the largest squared projections of the centred gradients on
        their first right singular vector.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.rivals import filter_round
    >>> filter_round(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 9.0], [0.0, 1.0]]), 0.25)
    array([ True,  True, False,  True])
    """
    centred = gradients - gradients.mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    scores = (centred @ direction) ** 2
    kept = np.ones(len(scores), dtype=bool)
    kept[np.argsort(-scores, kind="stable")[: int(share * len(scores) + WHOLE)]] = False
    return kept


def sever(
    gradients: Callable[[np.ndarray], Array], n: int, eps_bar: float, rounds: int = ROUNDS
) -> np.ndarray:
    """Return which of `n` rows SEVER keeps.

    Parameters
    ----------
    gradients : callable
        Takes the indices of m rows, and returns the gradients of their losses at the fit to
        them, shape (m, k).
    n : int
        Number of rows.
    eps_bar : float
        Upper bound on the fraction of corrupted rows; each round removes half of this share.
    rounds : int, optional
        Number of rounds.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.rivals import sever
    >>> z = np.array([0.1, -0.2, 0.0, 50.0, 0.2, -0.1, 0.3, -0.3])
    >>> sever(lambda rows: (z[rows] - z[rows].mean())[:, None], len(z), 0.25, rounds=1)
    array([ True,  True,  True, False,  True,  True,  True,  True])
    """
    rows = np.arange(n)
    for _ in range(rounds):
        rows = rows[filter_round(gradients(rows), eps_bar / 2)]
    kept = np.zeros(n, dtype=bool)
    kept[rows] = True
    return kept


class SeverModel(RRMModel):
    """Mixin for models fitted by SEVER: it stands before a statsmodels model.

    A model defines `_gradients` and `_refit`.
    """

    endog: Array
    exog: Array
    data: Any

    def _gradients(self, rows: np.ndarray) -> Array:
        """Return the gradients of the losses of some rows at the fit to them, shape (m, k)."""
        raise NotImplementedError

    def _refit(self, kept: np.ndarray) -> Any:
        """Return the results of the fit to the kept rows."""
        raise NotImplementedError

    @property
    def _rows_needed(self) -> int:
        """Rows without which there is no fit."""
        return self.exog.shape[1]

    def fit(self, *, rounds: int = ROUNDS) -> Any:  # type: ignore[override]
        """Remove rows in rounds, then fit the model to those that are left.

        Parameters
        ----------
        rounds : int, optional
            Rounds of removal.

        Returns
        -------
        results
            Those of the fit to the kept rows, with `kept` (one boolean a row), `eps_bar` and
            `rounds`. Its standard errors take the kept rows as given.
        """
        if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 0:
            raise ValueError(f"rounds must be a whole number, not negative, got {rounds!r}")
        n = left = len(self.endog)
        for _ in range(rounds):
            left -= int(self.eps_bar / 2 * left + WHOLE)
        if left < self._rows_needed:
            raise ValueError(
                f"eps_bar={self.eps_bar:g} leaves {left} of {n} rows after {rounds} rounds, but "
                f"at least {self._rows_needed} are needed; lower eps_bar"
            )
        kept = sever(self._gradients, n, self.eps_bar, int(rounds))
        results = self._refit(kept)
        labels = self.data.row_labels
        results.kept = kept if labels is None else pd.Series(kept, index=labels, name="kept")
        results.eps_bar, results.rounds = self.eps_bar, int(rounds)
        return results


class SeverRegression(SeverModel):
    """What regressions fitted by SEVER share: the data of the kept rows as a statsmodels model."""

    def __init__(
        self,
        endog: Any,
        exog: Any = None,
        eps_bar: float | None = None,
        *,
        missing: str = "none",
        **kwargs: Any,
    ) -> None:
        check_required(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        if exog is None:
            raise ValueError("exog is required; for an intercept alone use a column of ones")
        check_column("endog", endog)
        endog, exog = check_numbers("endog", endog), check_numbers("exog", exog)
        with readable_errors():
            super().__init__(endog, exog, missing=missing, **kwargs)  # type: ignore[call-arg]
        self._set_eps_bar(eps_bar)
        check_finite("endog", self.endog)
        check_finite("exog", self.exog)

    def _restricted(self, kind: Any, kept: np.ndarray) -> Any:
        """Return a statsmodels model of the kept rows, with the names and formula of this one."""
        model = kind(self.data.orig_endog[kept], self.data.orig_exog[kept])
        for name in ("formula", "design_info", "model_spec"):
            for mine, its in ((self, model), (self.data, model.data)):
                if hasattr(mine, name):
                    setattr(its, name, getattr(mine, name))
        return model


class SeverSummary:
    """Mixin for results: a summary that says what its standard errors leave out."""

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
        table = super().summary(*args, **kwargs)  # type: ignore[misc]
        table.extra_txt = "\n".join(filter(None, [table.extra_txt, sever_note(self.nobs)]))
        return table


def sever_note(nobs: float) -> str:
    """Return what a summary has to say about the rows removed."""
    return (
        f"SEVER: this is the fit to the {nobs:g} rows that it kept.\n"
        "Standard errors take these rows as given: they ignore the removal and are too small."
    )


class SeverOLS(SeverRegression, OLS):
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
    >>> from rrmstats.rivals import SeverOLS
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> y = 1 + 2 * x + 0.1 * rng.standard_normal(100)
    >>> y[:10] += 30
    >>> res = SeverOLS(y, sm.add_constant(x), eps_bar=0.2).fit()
    >>> res.params.round(1), int(res.kept[:10].sum()), int(res.nobs)
    (array([1., 2.]), 0, 66)
    """

    def _gradients(self, rows: np.ndarray) -> Array:
        return gradients_at_fit(OLSProblem(self.endog[rows], self.exog[rows]))

    def _refit(self, kept: np.ndarray) -> Any:
        model = self._restricted(OLS, kept)
        params = np.asarray(model.fit().params)
        return RegressionResultsWrapper(
            SeverOLSResults(model, params, normalized_cov_params=model.normalized_cov_params)
        )


class SeverOLSResults(SeverSummary, OLSResults):
    """statsmodels' results of least squares on the rows that SEVER kept."""


class SeverLogit(SeverRegression, Logit):
    """Logistic regression by SEVER.

    Where the kept rows are separated by a hyperplane, no finite parameters are best; those given
    then have its direction, and a warning says so.

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
    >>> from rrmstats.rivals import SeverLogit
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

    def _problem(self, rows: np.ndarray) -> LogitProblem:
        return LogitProblem(self.endog[rows], self.exog[rows])

    def _gradients(self, rows: np.ndarray) -> Array:
        return gradients_at_fit(self._problem(rows))

    def _refit(self, kept: np.ndarray) -> Any:
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
                "a hyperplane separates the rows that SEVER kept, so that no finite parameters "
                "are best; only the direction of these has a meaning",
                PerfectSeparationWarning,
                stacklevel=3,
            )
        model = self._restricted(Logit, kept)
        with warnings.catch_warnings():
            if separated:
                warnings.simplefilter("ignore")  # that there is no maximum has been said
            fit = model.fit(start_params=theta, maxiter=0 if separated else 35, disp=0)
        return BinaryResultsWrapper(SeverLogitResults(model, fit._results))


class SeverLogitResults(SeverSummary, LogitResults):
    """statsmodels' results of maximum likelihood on the rows that SEVER kept."""


def fit_to_all(problem: OLSProblem | LogitProblem) -> Array:
    """Return the fit with equal weights, shape (k,)."""
    return problem.weighted_fit(np.full(problem.n_obs, 1.0 / problem.n_obs))


def gradients_at_fit(problem: OLSProblem | LogitProblem) -> Array:
    """Return the gradients of the losses at the fit with equal weights, shape (n, k)."""
    return problem.gradients(fit_to_all(problem))


class SeverMultivariate(SeverModel, RRMMultivariate):
    """A model of the joint law of several variables, fitted by SEVER."""

    @property
    def _rows_needed(self) -> int:
        return self.endog.shape[1] + 1


class SeverMultivariateResults:
    """Results of a model of several variables, fitted by SEVER.

    Attributes
    ----------
    params : ndarray or Series
        The parameters, named where the data were.
    kept : ndarray or Series of bool, shape (n,)
        Whether a row was kept.
    nobs : float
        Number of rows kept.
    eps_bar : float
    rounds : int
    """

    kept: Any
    eps_bar: float
    rounds: int
    _title: str

    def __init__(self, model: SeverMultivariate, nobs: int, params: Array) -> None:
        self.model, self.nobs = model, float(nobs)
        names = model.data.param_names
        self.params = params if model.data.row_labels is None else pd.Series(params, index=names)

    def _tables(self) -> list[SimpleTable]:
        """Return the estimates as tables."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """Return the fit as statsmodels' tables.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        cells = [
            [f"{len(self.kept)}"],
            [f"{self.nobs:g}"],
            [f"{self.eps_bar:g}"],
            [f"{self.rounds}"],
        ]
        rows = ["No. Observations:", "Kept:", "eps_bar:", "Rounds:"]
        table = Summary()
        table.tables = [SimpleTable(cells, None, rows, self._title, txt_fmt=fmt_base)]
        table.tables.extend(self._tables())
        return table


class SeverPCA(SeverMultivariate):
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
    >>> from rrmstats.rivals import SeverPCA
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
        eps_bar: float | None = None,
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
        centred = self.endog[rows] - mean
        scores = centred @ loadings
        off = centred - scores @ loadings.T
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
        Orthonormal axes, one a column.
    eigenvals : ndarray or Series, shape (q,)
        Variances along them; the same as `params`.
    """

    _title = "SEVER: Principal Components"

    def __init__(
        self, model: SeverPCA, nobs: int, mean: Array, loadings: Array, values: Array
    ) -> None:
        super().__init__(model, nobs, values)
        self.mean = labelled(model, mean)
        self.loadings = labelled(model, loadings, model.data.param_names)
        self.eigenvals = self.params

    def _tables(self) -> list[SimpleTable]:
        names = list(self.model.data.param_names)
        return [
            number_table("Loadings", np.asarray(self.loadings), self.model.variables, names),
            number_table("Eigenvalues", np.asarray(self.eigenvals), ["eigenvalue"], names),
        ]


class SeverCov(SeverMultivariate):
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
    >>> from rrmstats.rivals import SeverCov
    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((200, 2)) @ [[1, 0.8], [0, 0.6]]
    >>> z[:5] = [5, -5]
    >>> res = SeverCov(z, eps_bar=0.1).fit()
    >>> int(res.kept[:5].sum()), res.cov.shape
    (0, (2, 2))
    """

    def __init__(
        self, data: Any, eps_bar: float | None = None, *, missing: str = "none", **kwargs: Any
    ) -> None:
        super().__init__(data, eps_bar, missing=missing, **kwargs)
        names = self.variables
        rows, columns = np.triu_indices(len(names))
        self.data.param_names = [f"mean[{name}]" for name in names] + [
            f"cov[{names[i]}, {names[j]}]" for i, j in zip(rows, columns, strict=True)
        ]

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
        self.mean, self.cov = labelled(model, mean), labelled(model, cov)

    def _tables(self) -> list[SimpleTable]:
        names = self.model.variables
        return [
            number_table("Mean", np.asarray(self.mean), ["mean"], names),
            number_table("Covariance", np.asarray(self.cov), names, names),
        ]


def moments(data: Array, demean: bool = True) -> tuple[Array, Array]:
    """Return the mean (d,), or zero, and the second moment around it (d, d)."""
    mean = data.mean(axis=0) * demean
    centred = data - mean
    return mean, centred.T @ centred / len(data)


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
    >>> from rrmstats.rivals import huber
    >>> x = np.arange(20.0)
    >>> y = 1 + 2 * x + np.sin(x)
    >>> y[3] = 100
    >>> huber(y, sm.add_constant(x)).fit().params.round(0)
    array([1., 2.])
    """
    return RLM(endog, exog, M=HuberT(), **kwargs)
