"""Results of a linear regression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.stats import t
from statsmodels.regression._prediction import PredictionResults
from statsmodels.stats.multitest import multipletests

from rrmstats import plotting
from rrmstats.core.block_array import blocked
from rrmstats.core.conventions import FAR
from rrmstats.core.design import triangle
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED
from rrmstats.losses.gaussian_rows import regression_densities
from rrmstats.losses.regression import ExplainedRegression, RegressionEstimate
from rrmstats.results.base import (
    LikelihoodResults,
    RRMResults,
    drawn,
    refused,
    standardized,
    without,
)
from rrmstats.results.explanations import ONE_SIDE, ExplainedDistances, Wording
from rrmstats.results.inference import LEVEL
from rrmstats.results.influence import RRMInfluence
from rrmstats.results.labels import NewRows


class RRMOLSResults(LikelihoodResults):
    """Results of a linear regression; see `RRMResults` for what all models share.

    Attributes
    ----------
    scale : float
        Variance of the noise of the good rows: consistent whatever their share.
    raw_scale : float
        The paper's: the weighted mean of the squared residuals, which is the risk.
    rank : int
        Rank of the design.
    curvature_pvalue : float
        P-value of Ramsey's RESET test on the good rows of the second step, with the squares of
        the predictors; NaN with one step.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> bool(res.scale > 0), res.rank, bool(0 < res.rsquared < 1)
    (True, 2, True)
    """

    _estimate: RegressionEstimate
    _estimate_attrs = ("scale", "curvature_pvalue", "inference_freedom")
    scale: float
    curvature_pvalue: float
    inference_freedom: float
    _title = "Robust Risk Minimization: Linear Regression"
    _default_use_t = True
    _dimension = 1
    _row_attrs = (*RRMResults._row_attrs, "wresid", "resid_pearson", "resid_scaled", "sresid")
    _meaningless: ClassVar[dict[str, str]] = refused(
        f_test="compare_f_test compare_lm_test",
        ratio="compare_lr_test",
        squares="ssr ess centered_tss uncentered_tss mse_model mse_total",
        known_weights=(
            "HC0_se HC1_se HC2_se HC3_se cov cov_HC0 cov_HC1 cov_HC2 cov_HC3 bcov_scaled "
            "bcov_unscaled"
        ),
        empirical="el_test conf_int_el",
        elsewhere="eigenvals chisq fit_history fit_options",
    )

    @property
    def _wording(self) -> Wording:
        prob_bad = self._unit_prob_bad
        if self._unit != "row" or prob_bad is None or blocked(prob_bad):
            return {}
        bad = np.asarray(self.resid)[np.asarray(prob_bad) > FLAGGED]
        if len(bad) < 2 or bad.min() < 0 < bad.max():
            return {}
        return ONE_SIDE["above" if bad[0] > 0 else "below"]

    plot_fit = drawn(plotting.plot_fit)

    def deletion_influence(self) -> Array:
        """Return the influence functions of the parameters on these very rows, shape (n, k).

        Those behind the standard errors are longer, to make up for residuals that the fit has
        shortened.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.deletion_influence().shape
        (47, 2)
        """
        return self._estimate.deletion_influence()

    @cached_property
    def _log_likelihood(self) -> float:
        """Log-likelihood of all rows in the units of the data; NaN where it is not known."""
        unit = 0.0 if self.eps_bar == 0 else 0.5 * np.log(self._estimate.loss_unit)
        return super()._log_likelihood - self.wnobs * unit

    @property
    def _classical_llf(self) -> float:
        with np.errstate(divide="ignore"):  # an exact fit
            return -0.5 * self.wnobs * float(np.log(2 * np.pi * self.risk) + 1)

    @property
    def rsquared(self) -> float:
        """Fraction of the variance that the fit explains.

        The weighted variance of the fitted values over its sum with the consistent variance of
        the noise: rows without weight count in neither. At eps_bar = 0 it is the usual one.
        """
        return self._explained_variance(self.weights)

    def _explained_share(self, endog: Array) -> float:
        """Return which share of the variance of responses the fit explains, rows by weight."""
        weights = np.asarray(self.weights)
        spread = float(weights @ (endog - weights @ endog) ** 2)
        left = float(weights @ np.asarray(self.resid) ** 2)
        return 1 - left / spread if spread > 0 else 0.0

    @property
    def rsquared_adj(self) -> float:
        """`rsquared`, adjusted for the number of parameters."""
        return self._adjusted(self.rsquared)

    @property
    def mse_resid(self) -> float:
        """The consistent variance of the noise, `scale`."""
        return self.scale

    @property
    def wresid(self) -> Array:
        """Residuals times the root of the relative weights, shape (n,)."""
        return self.resid * np.sqrt(self.relative_weights)

    @property
    def resid_pearson(self) -> Array:
        """Residuals in standard deviations of the noise, shape (n,)."""
        return standardized(self.resid, self.scale)

    sresid = resid_scaled = resid_pearson

    @property
    def working_weights(self) -> Array:
        """Weights of the residuals in the weighted fit, shape (n,); the relative weights."""
        return self.relative_weights

    @property
    def fvalue(self) -> float:
        """Statistic of Wald's test that all slopes are zero."""
        return float(self._slopes_test().fvalue)

    @property
    def f_pvalue(self) -> float:
        """P-value of `fvalue`."""
        return float(self._slopes_test().pvalue)

    @property
    def condition_number(self) -> float:
        """Condition number of the design."""
        return float(np.linalg.cond(triangle(self.model.exog)))

    def _distances(self) -> Array:
        return self.resid_pearson

    def _flags(self, level: float) -> np.ndarray:
        return np.abs(self.resid) > self._estimate.residual_cutoffs(level)

    def explained_distances(self) -> ExplainedDistances:
        """Return standardized residuals, as `plot_explanation` shows them; see `RRMResults`.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> rrmstats.ols("log_light ~ log_te", stars).fit().explained_distances().name
        'standardized residual'
        """
        estimate = self._estimate
        if not isinstance(estimate, ExplainedRegression):
            return super().explained_distances()
        densities = partial(regression_densities, estimate.rows)
        return ExplainedDistances(self._distances(), "standardized residual", densities)

    def get_influence(self) -> RRMInfluence:
        """Return leverages, studentized residuals, Cook's distances and deletion effects.

        Returns
        -------
        RRMInfluence
            With the names of statsmodels' `OLSInfluence`, and its numbers at eps_bar = 0.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.get_influence().summary_frame().shape
        (47, 9)
        """
        self.model.refuse_partitions(
            "get_influence", "weight_table and outliers work, or fit a sample of the rows"
        )
        return RRMInfluence(self)

    def outlier_test(
        self,
        method: str = "bonf",
        alpha: float = 0.05,
        labels: Sequence[Any] | None = None,
        order: bool = False,
        cutoff: float | None = None,
    ) -> pd.DataFrame:
        """Test every residual, in units of what a row as far out in its predictors may have.

        Parameters
        ----------
        method : str, optional
            Correction for the number of tests, one of
            `statsmodels.stats.multitest.multipletests`.
        alpha : float, optional
            Level of the tests.
        labels : sequence, optional
            Labels of the rows in place of their own.
        order : bool, optional
            Whether to sort by the p-values.
        cutoff : float, optional
            Largest corrected p-value of the rows to return.

        Returns
        -------
        DataFrame
            Studentized residual, p-value and corrected p-value of each row.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3).fit()
        >>> table = res.outlier_test()
        >>> bool((table["bonf(p)"][[10, 19, 29, 33]] < 0.05).all())
        True
        """
        self.model.refuse_partitions("outlier_test", "use outliers(level) for flags")
        free = self._estimate.scale_freedom()
        if self.eps_bar == 0:  # as statsmodels has it, each in a fit without the row
            influence = self.get_influence()
            values, free = influence.resid_studentized_external, influence._df_resid - 1
        else:
            unit = self._estimate.residual_cutoffs(LEVEL) / t.ppf((1 + LEVEL) / 2, free)
            values = standardized(self.resid, unit**2)
        p = 2 * t.sf(np.abs(values), free)
        corrected = multipletests(p, alpha=alpha, method=method)[1]
        table = pd.DataFrame(
            {"student_resid": values, "unadj_p": p, f"{method}(p)": corrected},
            index=self.model.data.row_labels if labels is None else pd.Index(labels),
        )
        table = table if cutoff is None else table[corrected < cutoff]
        return table.sort_values("unadj_p") if order else table

    @without(weights="prediction intervals are those of rows that count once; see wls()")
    def get_prediction(
        self,
        exog: NewRows = None,
        transform: bool = True,
        *,
        row_labels: Sequence[Any] | None = None,
    ) -> PredictionResults:
        """Predict with confidence and prediction intervals.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        row_labels : sequence, optional
            Labels of the predictions in place of those of the rows.

        Returns
        -------
        statsmodels PredictionResults
            ``summary_frame()`` has means, their intervals, and prediction intervals for rows
            that are not bad.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3).fit()
        >>> frame = res.get_prediction(pd.DataFrame({"log_te": [4.2]})).summary_frame()
        >>> bool(frame["obs_ci_lower"][0] < frame["mean"][0] < frame["obs_ci_upper"][0])
        True
        """
        rows, labels = self._rows_to_predict(exog, transform, row_labels)
        if blocked(rows):
            raise NotImplementedError(
                "get_prediction needs its rows in memory; use predict for rows in partitions"
            )
        return self._prediction(rows @ self.params, rows, labels)

    def _prediction(
        self, mean: Array, slopes: Array, labels: pd.Index | None
    ) -> PredictionResults:
        """Return predictions (m,) with intervals, given their derivatives (m, k)."""
        variance = np.einsum("ni,ij,nj->n", slopes, self.cov_params_default, slopes)
        kind = "t" if self.use_t else "norm"
        return PredictionResults(
            mean, variance, self.scale, df=self.df_resid_inference, dist=kind, row_labels=labels
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
        """Residuals of all rows, shape (n,); at an exact fit rounding counts as zero."""
        values = self.model.endog - self.fittedvalues
        return values if self.scale > 0 else np.where(self.losses == 0, 0.0, values)

    @property
    def df_resid_inference(self) -> float:
        """Degrees of freedom of t tests.

        The good rows from which least squares would be as precise, less the parameters.
        """
        return self.inference_freedom

    def _notes(self) -> list[str]:
        notes = [*super()._notes(), *self._price("Gaussian data the variances are those of")]
        if self.curvature_pvalue < FAR:
            notes.append(
                "The good rows are curved: squares of the predictors explain their residuals "
                f"(RESET test, p = {self.curvature_pvalue:.1g}). Add squares or transform a "
                "variable; until then bad rows may be good ones off the line."
            )
        notes += self._rank_notes()
        if np.isnan(self.scale):
            notes.append(
                "There are no more observations than parameters, so that any rows fit: standard "
                "errors are unknown (nan)."
            )
        return notes
