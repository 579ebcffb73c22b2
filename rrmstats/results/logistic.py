"""Results of a logistic regression."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit
from scipy.stats import bernoulli
from scipy.stats._distn_infrastructure import rv_discrete_frozen

from rrmstats import plotting
from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import wald_pvalue
from rrmstats.losses.classification import ClassificationEstimate
from rrmstats.results.base import drawn, refused
from rrmstats.results.explanations import LABELS, Wording, separated_note
from rrmstats.results.labels import NewRows
from rrmstats.results.means import LinkFunctions, MeanResults

PRIORS = (
    "The slopes have weak prior distributions (Cauchy; Gelman et al. 2008), which keep them finite"
)
NO_PRIORS = "; with eps_bar=0 the estimates are those of maximum likelihood"


class RRMLogitResults(MeanResults):
    """Results of a logistic regression; see `RRMResults` for what all models share.

    The second step fits explanations of the labels and chooses among them: none are flipped
    (maximum likelihood with weak Cauchy priors of the slopes), they are flipped at random, by
    class, or where the model is sure of them. Where none are called flipped, some still may be:
    they shrink slopes long before they show. Intervals then reach as far from zero as under
    explanations whose BIC is larger by less than 10. Its `lambda_` is that of the first step.

    Attributes
    ----------
    params : Series or ndarray, shape (k,)
        Consistent coefficients: without a penalty ``(1 - 1 / lambda_) * raw_params``.
    raw_params : Series or ndarray, shape (k,)
        The paper's, the minimizer of the risk.
    identified : bool
        Whether the size of the coefficients is identified. Where it is not, only their direction
        is: standard errors, tests and intervals are NaN, and `params` of the first step are
        `raw_params`.
    eps_hat, eps_hat_se : float
        Estimated share of flipped labels and its standard error. In the first step a lower
        bound: labels that are wrong where the model is in doubt look like right ones.
        NaN in a first step that identifies only the direction; 0 where `eps_bar` is 0.

    Examples
    --------
    >>> import rrmstats
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> res.identified, bool(res.prsquared > 0)
    (True, True)
    """

    _estimate: ClassificationEstimate
    _columns = ("predicted", "se", "ci_lower", "ci_upper")
    _corrected = False
    _freedom = np.inf
    _estimate_attrs = ("identified",)
    identified: bool
    _title = "Robust Risk Minimization: Logistic Regression"
    _row_attrs = (*MeanResults._row_attrs, "resid_generalized", "resid_dev")
    _meaningless: ClassVar[dict[str, str]] = refused(
        ratio="llr llr_pvalue score_test im_ratio",
        optimizer="mle_retvals mle_settings method set_null_options",
    )

    plot_separation = drawn(plotting.plot_separation)
    plot_reliability = drawn(plotting.plot_reliability)

    @cached_property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the labels that it trusts are right, and the first is
        consistent either way (Hausman's test). What the prior moved is no evidence. NaN
        where a step identifies only the direction.
        """
        estimate, first = self._estimate, self._estimate.first
        if first is None:
            return 1.0
        if not (self.identified and self.first_step and self.first_step.identified):
            return np.nan
        difference = estimate.params - first.params
        if estimate.shift is None or not difference.any():
            return 1.0
        moves = estimate.influence() - first.influence()
        shift = estimate.problem.design.to_params(estimate.shift)
        variance = self._inference.of_influence(estimate, moves) + np.outer(shift, shift)
        return wald_pvalue(difference, variance)

    @cached_property
    def cov_params_default(self) -> Array:
        """Covariance of the coefficients, shape (k, k); NaN where their size is not identified."""
        if not self.identified:
            return np.full((len(self.params), len(self.params)), np.nan)
        return self._inference.covariance(self._estimate)

    @property
    def _classical_llf(self) -> float:
        """Log-likelihood of the rows under their weights, times their number."""
        losses = np.logaddexp(0.0, -self._signs * self.fittedvalues)
        return -self.wnobs * float(self.weights @ losses)

    @property
    def llnull(self) -> float:
        """Log-likelihood of a constant probability, under the weights of the rows."""
        rate = float(self.weights @ self.model.endog)
        return -self.wnobs * float(entr(rate) + entr(1 - rate))

    _null_llf = llnull

    @property
    def fittedvalues(self) -> Array:
        """Linear predictor of all rows, shape (n,)."""
        return self.model.exog @ self.params + self.model.fitted_offset

    @property
    def _signs(self) -> Array:
        """Labels as -1 and 1, shape (n,)."""
        return 2 * self.model.endog - 1

    @property
    def resid_response(self) -> Array:
        """Labels less probabilities, shape (n,)."""
        return self.model.endog - expit(self.fittedvalues)

    resid = resid_generalized = resid_response
    #: Dispersion of labels.
    scale = 1.0

    @property
    def resid_working(self) -> Array:
        """Residuals on the scale of the linear predictor, shape (n,)."""
        own = self._signs * self.fittedvalues
        return self._signs * (1 + np.exp(-np.clip(own, -700, 700)))

    @property
    def working_weights(self) -> Array:
        """Weights of `resid_working` in the weighted fit, shape (n,)."""
        return self.relative_weights * expit(self.fittedvalues) * expit(-self.fittedvalues)

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

    def _link(self) -> LinkFunctions:
        return expit, _slope

    def get_distribution(
        self, exog: NewRows = None, transform: bool = True, offset: ArrayLike | None = None
    ) -> rv_discrete_frozen:
        """Return the distribution of the labels, as scipy's frozen Bernoulli distribution.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        offset : array_like, optional
            That of the rows to predict; by default 0 for new rows.

        Examples
        --------
        >>> import rrmstats
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
        >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
        >>> res.get_distribution(cancer.head(2)).mean().shape
        (2,)
        """
        if exog is None:
            self.model.refuse_partitions("get_distribution", "give it some rows")
        return bernoulli(np.asarray(self.predict(exog, transform, offset=offset)))

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
        return row_sums(_label_table, self.model.endog, expit(self.fittedvalues) > threshold)

    @property
    def _wording(self) -> Wording:
        return LABELS

    def _notes(self) -> list[str]:
        notes, first = super()._notes(), self.first_step
        if self.steps == 1 and self.eps_bar > 0:
            notes.append(
                "Robustness has a price in efficiency that grows with eps_bar; on clean data "
                "fit(steps=2) has the variances of maximum likelihood."
            )
        if self.steps == 2 and self.eps_bar > 0 and self.model.groups is None:
            notes.append(f"{PRIORS}{NO_PRIORS if self.identified else ''}.")
        if self.identified and first is not None and not first.identified:
            notes.append(
                "At this eps_bar the first step identifies only the direction of the "
                "coefficients, so that the second cannot be checked against it."
            )
        if not self.identified and self.steps == 1 and self.eps_bar > 0:
            notes.append(
                "A hyperplane nearly separates the rows with weight: only the direction of the "
                "coefficients is identified, not their size, so that there are no standard "
                "errors, tests or intervals. Lower eps_bar, or try fit(steps=2)."
            )
        elif not self.identified:
            notes.append(separated_note(self._bad_of_all, self.eps_bar))
        return notes


def _slope(linear: Array) -> Array:
    return np.asarray(expit(linear) * expit(-linear))


def _label_table(labels: Array, predicted: np.ndarray) -> Array:
    """Return counts of rows by label and predicted label, shape (2, 2)."""
    edges = np.array([0, 0.5, 1])
    return np.histogram2d(labels, predicted.astype(float), bins=[edges, edges])[0]
