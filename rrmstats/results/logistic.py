"""Results of a logistic regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import entr, expit
from scipy.stats import bernoulli, chi2
from scipy.stats._distn_infrastructure import rv_discrete_frozen
from statsmodels.discrete.discrete_margins import DiscreteMargins

from rrmstats import plotting
from rrmstats.core.entropy import Array
from rrmstats.losses.classification import ClassificationEstimate
from rrmstats.results.base import RRMResults
from rrmstats.results.inference import Inference
from rrmstats.results.prediction import ProbabilityPrediction
from rrmstats.results.refusals import refused
from rrmstats.results.wrapper import wrapper_of

# P-value of the test of the two steps below which the summary prefers the first.
STEPS_DIFFER = 1e-3


class RRMLogitResults(RRMResults):
    """Results of a logistic regression; see `RRMResults` for what all models share.

    The second step is maximum likelihood with Firth's penalty, without the rows that the first
    step exposes. It has the efficiency of maximum likelihood whatever `efficiency` is given, and
    `lambda_` stays that of the first step.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Consistent coefficients: without a penalty ``(1 - 1 / lambda_) * raw_params``.
    raw_params : ndarray, shape (k,)
        The paper's, the minimizer of the risk.
    identified : bool
        Whether the weighted data overlap enough to tell the size of the coefficients. Where they
        do not, only their direction is identified, and `params` are `raw_params`.
    """

    _estimate: ClassificationEstimate
    first_step: RRMLogitResults | None
    _title = "Robust Risk Minimization: Logistic Regression"
    _row_attrs = (
        *RRMResults._row_attrs,
        *("resid_response", "resid_generalized", "resid_pearson", "resid_dev"),
    )
    _meaningless: ClassVar[dict[str, str]] = refused(
        pseudo=("aic", "bic", "info_criteria", "llr", "llr_pvalue", "score_test", "im_ratio"),
        optimizer=("mle_retvals", "mle_settings", "method", "set_null_options"),
        no_influence=("get_influence",),
    )

    def __init__(
        self,
        model: Any,
        estimate: ClassificationEstimate,
        inference: Inference,
        first_step: RRMLogitResults | None = None,
    ) -> None:
        super().__init__(model, estimate, inference, first_step)
        self.identified = estimate.identified
        self._rank = estimate.problem.n_params

    plot_separation = plotting.plot_separation
    plot_reliability = plotting.plot_reliability

    @property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the labels that it keeps are right, and the first is
        consistent either way (Hausman's test). Where it is small, labels are wrong in ways that
        no single row shows, and the first step is to be preferred.
        """
        if self.first_step is None or not self.first_step.identified:
            return 1.0
        difference = np.asarray(self.params) - np.asarray(self.first_step.params)
        inverse = np.linalg.pinv(self.first_step.cov_params_default, hermitian=True)
        return float(chi2.sf(difference @ inverse @ difference, self._rank))

    @property
    def llf(self) -> float:
        """Pseudo-log-likelihood: that of the rows under their weights, times their number."""
        losses = np.logaddexp(0.0, -self._signs * self.fittedvalues)
        return -self.wnobs * float(self.weights @ losses)

    @property
    def llnull(self) -> float:
        """Pseudo-log-likelihood, under the same weights, of a constant probability."""
        rate = float(self.weights @ self.model.endog)
        return self.wnobs * float(entr(rate) + entr(1 - rate)) * -1.0

    @property
    def prsquared(self) -> float:
        """McFadden's pseudo-R-squared, of the pseudo-likelihoods."""
        return 1 - self.llf / self.llnull

    @property
    def df_model(self) -> float:
        """Rank of the design less its constant."""
        return float(self._rank - self.model.k_constant)

    @property
    def df_resid(self) -> float:
        """Number of observations less the rank of the design."""
        return self.nobs - self._rank

    @property
    def fittedvalues(self) -> Array:
        """Linear predictor of all rows, shape (n,)."""
        return self.model.exog @ self.params

    @property
    def _signs(self) -> Array:
        """Labels as -1 and 1, shape (n,)."""
        return 2 * self.model.endog - 1

    @property
    def resid_response(self) -> Array:
        """Labels less probabilities, shape (n,)."""
        return self.model.endog - expit(self.fittedvalues)

    resid_generalized = resid_response

    @property
    def resid_pearson(self) -> Array:
        """Residuals over the standard deviation of a label, shape (n,)."""
        # the root of the odds against the label, which does not overflow
        return self._signs * np.exp(np.clip(-0.5 * self._signs * self.fittedvalues, -700, 700))

    @property
    def resid_dev(self) -> Array:
        """Signed roots of the deviances, shape (n,)."""
        return self._signs * np.sqrt(2 * np.logaddexp(0.0, -self._signs * self.fittedvalues))

    def _distances(self) -> Array:
        return self.resid_dev

    def _flags(self, level: float) -> np.ndarray:
        return expit(self._signs * self.fittedvalues) < 1 - level

    def get_prediction(
        self, exog: pd.DataFrame | npt.ArrayLike | None = None, transform: bool = True
    ) -> ProbabilityPrediction:
        """Predict probabilities with confidence intervals.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.

        Returns
        -------
        ProbabilityPrediction

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> frame = res.get_prediction(cancer.head(2)).summary_frame()
        >>> frame.columns.tolist()
        ['predicted', 'se', 'ci_lower', 'ci_upper']
        """
        rows, labels = self._rows_to_predict(exog, transform)
        return ProbabilityPrediction(rows, self.params, self.cov_params_default, labels)

    def get_margeff(
        self, at: str = "overall", method: str = "dydx", **kwargs: Any
    ) -> DiscreteMargins:
        """Return marginal effects; see statsmodels' `BinaryResults.get_margeff`.

        Parameters
        ----------
        at : str, optional
            Where the effects are taken.
        method : str, optional
            Kind of effect.
        **kwargs
            `atexog`, `dummy` and `count` of statsmodels.

        Returns
        -------
        statsmodels DiscreteMargins

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> bool(res.get_margeff().margeff[0] > 0)
        True
        """
        return DiscreteMargins(self, (at, method), kwargs)

    def get_distribution(
        self, exog: pd.DataFrame | npt.ArrayLike | None = None, transform: bool = True
    ) -> rv_discrete_frozen:
        """Return the distribution of the labels, as scipy's frozen Bernoulli distribution.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        """
        rows, _ = self._rows_to_predict(exog, transform)
        return bernoulli(expit(rows @ self.params))

    def pred_table(self, threshold: float = 0.5) -> Array:
        """Return the table of labels, by row, against predicted labels.

        Parameters
        ----------
        threshold : float, optional
            Probability from which a row is predicted to be 1.

        Returns
        -------
        ndarray, shape (2, 2)
            Counts: entry [i, j] is the number of rows labeled i and predicted j.

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> int(res.pred_table().sum())
        699
        """
        predicted = expit(self.fittedvalues) > threshold
        edges = np.array([0, 0.5, 1])
        return np.histogram2d(self.model.endog, predicted.astype(float), bins=[edges, edges])[0]

    def _efficiency_text(self) -> str:
        return "n/a" if self.efficiency is None else "1.00"

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.efficiency is None and self.eps_bar > 0:
            notes.append(
                "Robustness has a price in efficiency that grows with eps_bar; on clean data "
                "fit(efficiency=0.95) has the variances of maximum likelihood."
            )
        if self.steps_pvalue < STEPS_DIFFER:
            notes.append(
                "The two steps differ by more than chance: labels are wrong in ways that no "
                "single row shows. Prefer first_step."
            )
        if not self.identified:
            notes.append(
                "A hyperplane separates the rows with weight: only the direction of the "
                "coefficients is identified, not their size. A lower eps_bar or "
                "fit(efficiency=0.95) identifies both."
            )
        return notes


RRMLogitResultsWrapper = wrapper_of(RRMLogitResults)
