"""Logistic regression with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from rrmstats.core.entropy import Array
from rrmstats.models.logistic import RRMLogit
from rrmstats.sklearn.fitting import LinearFit


@dataclass(eq=False, repr=False, kw_only=True)
class RRMClassifier(LinearClassifierMixin, LinearFit, BaseEstimator):
    """Logistic regression of two classes when some labels may be wrong; `rrmstats.RRMLogit`.

    Parameters
    ----------
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). 0 is maximum likelihood. "auto"
        chooses it from the data.
    steps : {1, 2}, default=2
        1 for the estimate of least risk, the paper's; 2 fits the paper's model of good and bad
        rows from there.
    alpha : float, default=None
        Weight of the penalty. None is 1e-5, or 1e-3 with `penalty="l2"`, or 0 where `eps_bar` is
        0.
    penalty : {None, "l2"}, default=None
        None adds ``alpha / 4`` times the fourth power of the decision function to the loss of
        each row, which matters only where probabilities are close to 0 or 1, but keeps
        coefficients finite where a hyperplane separates the classes. "l2" is a ridge,
        ``alpha / 2`` times the sum of the squared coefficients of the standardized features; in
        `LogisticRegression`, ``1 / (C * n_samples)`` corresponds to `alpha`.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    n_starts : int, default=None
        Random subsets from which the global minimum is sought; None chooses their number.
    tol : float, default=1e-10
        Size of the last step, in the metric of the risk.
    max_iter : int, default=1000
        Iterations that a descent may take.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the random subsets. Unlike in scikit-learn, None is a fixed one: fits repeat.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels; coefficients are those of the second.
    coef_ : ndarray of shape (1, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        Intercept; 0 without one.
    weights_ : ndarray of shape (n_samples,)
        Weights of the rows; they sum to one.
    outliers_ : ndarray of shape (n_samples,)
        Which rows have a label of probability less than 0.025.
    eps_hat_ : float
        Estimated share of wrong labels; NaN where one step identifies only the direction of
        the coefficients.
    eps_bar_ : float
        The bound of the fit, where "auto" has chosen it.
    results_ : rrmstats.results.RRMLogitResults
        What statsmodels users have: standard errors, tests, `summary()`, pictures. It holds the
        data; `results_.remove_data()` makes pickles small.
    n_iter_ : int
        Iterations of the best descent, 1 at least.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where all are strings.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : The classical fit, with a ridge.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.sklearn import RRMClassifier
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas()
    >>> labels = cancer.data.loc[cancer.exog.index, "diagnosis"]
    >>> model = RRMClassifier(eps_bar=0.02).fit(cancer.exog, labels)
    >>> model.predict(cancer.exog[:3]).tolist(), bool(model.score(cancer.exog, labels) > 0.95)
    (['benign', 'malignant', 'benign'], True)
    """

    alpha: float | None = None
    penalty: str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> RRMClassifier:
        """Fit the regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels of two classes, numbers or words.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: a row of weight 2 counts as two rows, one of weight 0 as
            none.

        Returns
        -------
        self : object
            The fitted estimator.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMClassifier
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas()
        >>> model = RRMClassifier(eps_bar=0.02).fit(cancer.exog, cancer.endog)
        >>> model.coef_.shape, model.classes_.tolist()
        ((1, 9), [0, 1])
        """
        rows = self._counted(X, sample_weight, y)
        self.classes_, codes = two_classes(rows.y, rows.used)
        options = {"alpha": self.alpha, "penalty": self.penalty}
        intercept, coef = self._fit_linear(RRMLogit, rows, codes, y, **options)
        self.intercept_, self.coef_ = np.array([intercept]), coef[None, :]
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities of a right label, in the order of `classes_`.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMClassifier
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas()
        >>> model = RRMClassifier(eps_bar=0.02).fit(cancer.exog, cancer.endog)
        >>> model.predict_proba(cancer.exog[:3]).sum(axis=1).round(12)
        array([1., 1., 1.])
        """
        odds = self.decision_function(X)
        return expit(np.column_stack([-odds, odds]))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of both classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Logarithms, in the order of `classes_`; finite however small a probability is.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMClassifier
        >>> cancer = rrmstats.datasets.breast_cancer.load_pandas()
        >>> model = RRMClassifier(eps_bar=0.02).fit(cancer.exog, cancer.endog)
        >>> bool((model.predict_log_proba(cancer.exog) <= 0).all())
        True
        """
        odds = self.decision_function(X)
        return log_expit(np.column_stack([-odds, odds]))


def two_classes(labels: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, Array]:
    """Return the two classes of labels, and the labels as zeros and ones, shape (n,).

    Parameters
    ----------
    labels : ndarray, shape (n,)
    used : ndarray of bool, shape (n,)
        Rows that count; both classes have to have some.
    """
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}; for "
            "more classes use OneVsRestClassifier(RRMClassifier())."
        )
    classes, codes = np.unique(labels, return_inverse=True)
    found = np.unique(codes[used])
    if len(found) < 2:
        raise ValueError(
            f"y has one class only, {classes[found[0]]}: a classifier needs rows of both"
        )
    return classes, codes.astype(float)
