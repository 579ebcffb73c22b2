"""Linear regression by robust risk minimisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import statsmodels.base.wrapper as wrap
from scipy.stats import norm
from statsmodels.regression._prediction import PredictionResults
from statsmodels.regression.linear_model import WLS

from rrmstats import plotting
from rrmstats.base import (
    RRMModel,
    check_column,
    check_finite,
    check_kwargs,
    check_numbers,
    check_required,
    check_weights,
    readable_errors,
)
from rrmstats.core import Problem, Solution
from rrmstats.core.consistency import (
    efficient_ratio,
    gaussian_efficiency,
    kish_fraction,
    second_moment_ratio,
)
from rrmstats.core.entropy import Array
from rrmstats.core.linear import Design, LinearProblem, power_of_two, solve_gram
from rrmstats.core.resample import refits
from rrmstats.core.sandwich import relative_weights, risk_influence
from rrmstats.core.tempered import kept_by_distance, tempered_fit
from rrmstats.diagnostics import (
    RRMInfluence,
    outlier_frame,
    refined_variance,
    studentised,
)
from rrmstats.results import RRMResults, RRMResultsWrapper


class OLSProblem(LinearProblem):
    """Squared residuals; the weighted fit is weighted least squares.

    Residuals that rounding alone could produce count as zero, so that exact fits are seen.
    """

    def __init__(self, endog: Array, exog: Array) -> None:
        super().__init__(endog, exog)
        some = slice(None, None, max(1, len(exog) // 1000))
        unit = 4 * (exog.shape[1] + 4) * np.finfo(float).eps
        self._column_noise = (unit * np.median(np.abs(exog[some]), axis=0)) ** 2
        self._row_noise = (unit * endog) ** 2

    def link_losses(self, eta: Array) -> Array:
        """Return the squared residuals, shape (..., n)."""
        residual = self.endog - eta
        return residual * residual

    def link_slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the derivatives of the squared residuals in the linear predictor."""
        return 2.0 * (eta - self.endog), np.full(eta.shape, 2.0)

    def losses(self, theta: Array) -> Array:
        """Return the squared residuals, zero where they are within rounding of it."""
        losses = super().losses(theta)
        noise = self._row_noise + (theta * theta @ self._column_noise)[..., None]
        losses[losses <= noise] = 0.0
        return losses

    def weighted_fit(self, weights: Array, theta: Array | None = None) -> Array:
        """Return the weighted least squares fit, shape (..., k)."""
        return self.weighted_least_squares(weights, self.endog)

    def subset_fits(self, subsets: np.ndarray) -> Array:
        """Return exact fits to subsets of rows, shape (m, k); NaN where rows are dependent."""
        exog = self.exog[subsets]
        right = np.einsum("mij,mi->mj", exog, self.endog[subsets])
        theta, sound = solve_gram(np.swapaxes(exog, -1, -2) @ exog, right)
        return np.where(sound[:, None], theta, np.nan)

    def take(self, rows: np.ndarray) -> OLSProblem:
        """Return the problem restricted to some rows."""
        return OLSProblem(self.endog[rows], self.exog[rows])


class ScaledOLSProblem(OLSProblem):
    """Squared residuals of data of any scale and any rank.

    Losses of the data are ``endog_unit ** 2`` times those of the problem.
    """

    def __init__(self, endog: Array, exog: Array) -> None:
        self.design = Design(exog)
        self.endog_unit = float(power_of_two(endog))
        if not 1e-152 < self.endog_unit < 1e152:
            raise ValueError(
                f"endog reaches {np.abs(endog).max():.3g}, whose square is not a number that a "
                "computer holds; measure endog in other units or drop such rows"
            )
        scaled = endog if self.endog_unit == 1 else endog / self.endog_unit
        super().__init__(scaled, self.design.exog)


class RRMOLS(RRMModel, WLS):
    """Linear regression when some of the rows may be wrong.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Dependent variable.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float
        Upper bound on the fraction of corrupted rows, in [0, 1). 0 is least squares.
    weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 is the row twice.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    hasconst : bool, optional
        Whether the design holds a constant; by default it is looked for.
    **kwargs
        What statsmodels' formula interface passes on.

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

    def __init__(
        self,
        endog: Any,
        exog: Any = None,
        eps_bar: float | None = None,
        *,
        weights: Any = None,
        missing: str = "none",
        hasconst: bool | None = None,
        **kwargs: Any,
    ) -> None:
        check_required(eps_bar)
        check_kwargs(type(self).__name__, kwargs)
        endog = check_numbers("endog", endog)
        check_column("endog", endog)
        if exog is None:
            raise ValueError("exog is required; for a location model use a column of ones")
        exog = check_numbers("exog", exog)
        if weights is not None:
            given = kwargs.get("missing_idx")
            check_weights(weights, len(endog) if given is None else len(given))
        self._weighted = weights is not None
        with readable_errors():
            super().__init__(
                endog,
                exog,
                weights=1.0 if weights is None else weights,
                missing=missing,
                hasconst=hasconst,
                **kwargs,
            )
        self._set_eps_bar(eps_bar)
        check_finite("endog", self.endog)
        check_finite("exog", self.exog)
        self._set_prior(weights)

    def whiten(self, x: npt.ArrayLike) -> Array:
        """Return data times the root of the prior weights: the data themselves without any."""
        return super().whiten(x) if self._weighted else np.asarray(x)

    def problem(self) -> ScaledOLSProblem:
        """Return the squared residuals, scaled so that no data overflow."""
        return ScaledOLSProblem(np.asarray(self.endog, float), np.asarray(self.exog, float))

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        assert isinstance(problem, ScaledOLSProblem)
        params = np.asarray(start_params, dtype=float)
        if params.shape != (self.exog.shape[1],):
            raise ValueError(
                f"start_params must be {self.exog.shape[1]} numbers, one a column of exog, got "
                f"shape {params.shape}"
            )
        return problem.design.from_params(params / problem.endog_unit)

    def _results(self, problem: Problem, solution: Solution) -> Any:
        assert isinstance(problem, ScaledOLSProblem)
        scale = self._scale(solution.risk, problem.n_params)
        return RRMOLSResultsWrapper(RRMOLSResults(self, problem, solution, scale))

    def _second_step(self, first: Any, efficiency: float) -> Any:
        solution = second_step(
            first._problem, first._solution, first._scale, efficiency, first._share
        )
        results = RRMOLSResults(self, first._problem, solution, first._scale)
        results.efficiency, results.first_step = efficiency, first
        return RRMOLSResultsWrapper(results)

    def _scale(self, risk: float, rank: int) -> float:
        """Return the consistent variance of the noise, in the units of the problem."""
        if risk == 0:
            return 0.0
        total = self.nobs if self._prior is None else float(self._prior.sum())
        inflation = overfit(rank, total, gaussian_efficiency(self.eps_bar))
        return risk / second_moment_ratio(self.eps_bar) * inflation


def overfit(rank: int, total: float, efficiency: float) -> float:
    """Return by how much squared residuals fall short because they were fitted.

    To first order the risk is short by ``rank / (total * efficiency)`` of itself. At efficiency
    one this is the usual correction for degrees of freedom.
    """
    return float((1 - rank / total) ** (-1 / efficiency)) if total > rank else np.inf


def second_step(
    problem: OLSProblem, first: Solution, scale: float, efficiency: float, share: Array | None
) -> Solution:
    """Return the fit with weights of a given efficiency, at the scale of the first step."""
    if scale == 0:
        return first
    a = 1 / efficient_ratio(efficiency)
    kept = kept_by_distance(first.losses / scale, 1, efficiency)
    return tempered_fit(problem, first, 2 * scale / (a - 1), share, kept=kept)


class RRMOLSResults(RRMResults):
    """Results of a linear regression; see `RRMResults` for what all models share.

    Attributes
    ----------
    scale : float
        Consistent variance of the noise, from the first step.
    raw_scale : float
        The paper's: the weighted mean of the squared residuals, which is the risk.
    rank : int
        Rank of the design.
    """

    _default_use_t: ClassVar[bool] = True
    _meaningless: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("llf", "aic", "bic", "info_criteria", "compare_lr_test"),
            "the risk is not a likelihood of all rows; compare models with compare()",
        ),
        **dict.fromkeys(
            ("compare_f_test", "compare_lm_test"),
            "sums of squares have no F law under estimated weights; use compare(), Wald's test",
        ),
        **dict.fromkeys(
            ("ssr", "ess", "centered_tss", "uncentered_tss", "mse_model", "mse_total"),
            "a sum of squares counts corrupted rows like others; see scale and rsquared",
        ),
        **dict.fromkeys(
            (
                *("HC0_se", "HC1_se", "HC2_se", "HC3_se", "get_robustcov_results", "cov"),
                *("cov_HC0", "cov_HC1", "cov_HC2", "cov_HC3", "bcov_scaled", "bcov_unscaled"),
            ),
            "they take the weights as known; bse is robust already, see fit(cov_type=...)",
        ),
        **dict.fromkeys(
            ("el_test", "conf_int_el"),
            "empirical likelihood counts corrupted rows like others; use conf_int()",
        ),
        **dict.fromkeys(
            ("eigenvals", "chisq", "fit_history", "fit_options"),
            "see condition_number, wald_test, trace and the arguments of fit",
        ),
    }

    def __init__(
        self, model: RRMOLS, problem: ScaledOLSProblem, solution: Solution, scale: float
    ) -> None:
        unit = problem.endog_unit**2
        params = problem.endog_unit * problem.design.to_params(solution.theta)
        super().__init__(model, params, problem, solution, unit=unit, scale=unit * scale)
        self._scale = scale
        self.rank = problem.n_params

    @property
    def _gaussian_efficiency(self) -> float:
        return self.efficiency or gaussian_efficiency(self.eps_bar)

    def _influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k).

        The least risk is fitted to the noise, so that its Hessian overstates the curvature and
        its residuals understate the noise. The curvature is therefore that of the weighted
        squares times the factor by which it falls on Gaussian residuals, in which the residuals
        are corrected; it is never below that of clean data.
        """
        problem, found = self._problem, self._solution
        assert isinstance(problem, ScaledOLSProblem)
        moved = np.zeros((problem.n_obs, problem.n_params))
        if found.lambda_ > 0 and found.risk > 0:
            inflation = overfit(self.rank, self._total, self._gaussian_efficiency)
            least = second_moment_ratio(self.eps_bar)
            if self.efficiency is not None:
                least = efficient_ratio(self.efficiency)
            curvature = max(1 - 2 * inflation * found.risk / found.lambda_, least)
            bread = curvature * problem.hessian(found.theta, found.weights)
            inverse = np.linalg.pinv(bread, hermitian=True)
            moved = -self._scores() @ inverse * np.sqrt(inflation)
        if problem.design.back is not None:
            moved = moved @ problem.design.back.T
        return problem.endog_unit * moved

    def _scores(self) -> Array:
        """Return the scores of the reported step; the second depends on the first's scale.

        The covariance of losses and gradients, by which lambda would enter the first, is zero
        for symmetric noise. Rows far out that have hardly any weight would make it large.
        """
        problem, found = self._problem, self._solution
        assert isinstance(problem, ScaledOLSProblem)
        gradients = problem.gradients(found.theta)
        relative = relative_weights(found.weights, self._share)
        found_scores = gradients * relative[:, None]
        if self.efficiency is None:
            return found_scores
        first = self.first_step._solution
        by_scale = (found.weights * found.losses / found.lambda_) @ gradients
        relative = relative_weights(first.weights, self._share)
        log_scale = risk_influence(first.lambda_, relative) / first.risk
        return found_scores + np.outer(log_scale, by_scale)

    def _refits(self, counts: Array) -> Array:
        problem, first = self._problem, self._solution
        assert isinstance(problem, ScaledOLSProblem)
        if self.efficiency is not None:
            first = self.first_step._solution
        points = refits(problem, self.eps_bar, counts, first.theta)
        theta = points.theta
        if self.efficiency is not None:
            theta = np.array(
                [
                    second_step(
                        problem,
                        replace(first, theta=t, losses=ell),
                        self.model._scale(float(risk), self.rank),
                        self.efficiency,
                        count / count.sum(),
                    ).theta
                    for t, ell, risk, count in zip(
                        theta, points.losses, points.risk, counts, strict=True
                    )
                ]
            )
        return problem.endog_unit * np.array([problem.design.to_params(t) for t in theta])

    plot_diagnostics = plotting.plot_diagnostics
    plot_fit = plotting.plot_fit

    @property
    def n_kish_clean(self) -> float:
        """Kish's effective sample size that clean Gaussian data would have in the first step."""
        return self._total * kish_fraction(self.eps_bar)

    @property
    def _noise(self) -> float:
        """Variance of the noise of rows that are not far out; see `refined_variance`."""
        inflation = overfit(self.rank, self._total, 1.0)
        return refined_variance(self.resid, self.scale, self._share, inflation)

    @property
    def rsquared(self) -> float:
        """Share of the variance that the fit explains.

        The weighted variance of the fitted values over its sum with the consistent variance of
        the noise: rows without weight count in neither. At eps_bar = 0 it is the usual one.
        """
        fitted, weights = self.fittedvalues, self.weights
        centre = weights @ fitted if self.model.k_constant else 0.0
        explained = float(weights @ (fitted - centre) ** 2)
        first = self if self.first_step is None else self.first_step
        noise = first.risk / second_moment_ratio(self.eps_bar)
        return explained / (explained + noise) if explained + noise > 0 else 0.0

    @property
    def rsquared_adj(self) -> float:
        """`rsquared`, adjusted for the number of parameters."""
        free = self.nobs - self.model.k_constant
        return 1 - (1 - self.rsquared) * free / self.df_resid

    @property
    def mse_resid(self) -> float:
        """The consistent variance of the noise, `scale`."""
        return self.scale

    @property
    def wresid(self) -> Array:
        """Residuals times the root of the weights relative to the prior, shape (n,)."""
        return self.resid * np.sqrt(relative_weights(self.weights, self._share))

    @property
    def resid_pearson(self) -> Array:
        """Residuals in standard deviations of the noise, shape (n,)."""
        return studentised(self.resid, self.scale)

    sresid = resid_pearson

    @property
    def fvalue(self) -> float:
        """Statistic of Wald's test that all slopes are zero."""
        return float(self._slopes_test().fvalue)

    @property
    def f_pvalue(self) -> float:
        """Its p-value."""
        return float(self._slopes_test().pvalue)

    def _slopes_test(self) -> Any:
        slopes = np.arange(len(self.params)) != self.model.data.const_idx
        return self.wald_test(np.eye(len(self.params))[slopes], scalar=True, use_f=True)

    @property
    def condition_number(self) -> float:
        """Condition number of the design."""
        return float(np.linalg.cond(self.model.exog))

    def _distances(self) -> Array:
        return self.resid_pearson

    def _flags(self, level: float) -> np.ndarray:
        return np.abs(self.resid_pearson) > norm.ppf((1 + level) / 2)

    def get_influence(self) -> RRMInfluence:
        """Return weighted hat values, Cook's distances and effects on the parameters."""
        return RRMInfluence(self)

    def outlier_test(self, method: str = "bonf", alpha: float = 0.05) -> Any:
        """Test every standardised residual.

        Parameters
        ----------
        method : str, optional
            Correction for the number of tests, one of
            `statsmodels.stats.multitest.multipletests`.
        alpha : float, optional
            Level of the tests.

        Returns
        -------
        DataFrame
            Standardised residual, p-value and corrected p-value of each row.
        """
        labels = self.model.data.row_labels
        return outlier_frame(studentised(self.resid, self._noise), method, alpha, labels)

    def get_prediction(self, exog: Any = None, transform: bool = True) -> PredictionResults:
        """Predict with confidence and prediction intervals.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.

        Returns
        -------
        statsmodels PredictionResults
            ``summary_frame()`` has means, their intervals, and prediction intervals for rows
            that are not corrupted.
        """
        rows, labels = self._rows_to_predict(exog, transform)
        variance = np.einsum("ni,ij,nj->n", rows, self.cov_params_default, rows)
        return PredictionResults(
            rows @ self.params,
            variance,
            self._noise,
            df=self.df_resid_inference,
            dist="t" if self.use_t else "norm",
            row_labels=labels,
        )

    @property
    def raw_scale(self) -> float:
        """Weighted mean of the squared residuals."""
        return self.risk

    @property
    def fittedvalues(self) -> Array:
        """Fitted values of all rows, shape (n,)."""
        return self.model.exog @ self.params

    @property
    def resid(self) -> Array:
        """Residuals of all rows, shape (n,)."""
        return self.model.endog - self.fittedvalues

    @property
    def df_model(self) -> float:
        """Rank of the design less its constant."""
        return float(self.rank - self.model.k_constant)

    @property
    def df_resid(self) -> float:
        """Number of observations less the rank of the design."""
        return self.nobs - self.rank

    @property
    def df_resid_inference(self) -> float:
        """Degrees of freedom of tests: those of the observations that clean data would equal."""
        return max(self._total * self._gaussian_efficiency - self.rank, 1.0)

    def _efficiency_text(self) -> str:
        return f"{self._gaussian_efficiency:.2f}"

    def _summary_title(self) -> str:
        return "Robust Risk Minimization: Linear Regression"

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.efficiency is None and self.eps_bar > 0:
            notes.append(
                f"The price of eps_bar={self.eps_bar:g}: on clean Gaussian data the variances "
                f"are those of {self._gaussian_efficiency:.0%} of the rows. "
                "fit(efficiency=0.95) makes it 95%."
            )
        if self.rank < len(self.params):
            notes.append(
                f"The design has rank {self.rank} but {len(self.params)} columns: these are the "
                "parameters of least norm."
            )
        return notes


class RRMOLSResultsWrapper(RRMResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {
        **RRMResultsWrapper._wrap_attrs,
        "wresid": "rows",
        "resid_pearson": "rows",
        "sresid": "rows",
    }


wrap.populate_wrapper(RRMOLSResultsWrapper, RRMOLSResults)
