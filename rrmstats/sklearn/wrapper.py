"""Any estimator of scikit-learn, made robust: it is fitted to the rows that are good."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, assert_all_finite, check_array, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from rrmstats.core.entropy import Array, entropy_weights
from rrmstats.core.explanations import FLAGGED
from rrmstats.laws.classes import wrong_labels
from rrmstats.models.checks import AUTO, checked_bound
from rrmstats.models.linear import RRMOLS
from rrmstats.models.regularized import FIRST_BOUND, explained_rows
from rrmstats.sklearn.fitting import frequency_weights, random_source

if TYPE_CHECKING:
    from typing_extensions import Self

#: Losses (n,) of responses and predictions.
Loss = Callable[[Array, Array], Array]
# Weights below this, relative to the largest, are zero: a tree gives any other row a leaf.
LEAST_WEIGHT = 0.1
# Rounds with entropy weights before rows are explained, and the mean change of relative weights at
# which they have settled.
FIRST_ROUNDS, SETTLED = 3, 0.01


def _has(method: str) -> Callable[[Any], bool]:
    """Return a check whether the estimator of a wrapper has a method."""
    return lambda wrapper: hasattr(getattr(wrapper, "estimator_", wrapper.estimator), method)


class RRMWrapper(MetaEstimatorMixin, BaseEstimator):
    """Any regressor or classifier with sample weights, when some of the rows may be bad.

    Rows are judged by predictions of fits without them (cross-validation), since flexible
    estimators fit bad rows as well as good ones. First the paper's entropy weights of these losses
    and the weighted fit take turns. Then the rows are explained: residuals as those of a robust
    mean, labels by rates of label noise. The estimator is fitted to the rows that are good.

    Parameters
    ----------
    estimator : estimator
        A regressor, or a classifier with `predict_proba`, whose `fit` takes `sample_weight`; or a
        pipeline whose last step does.
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). "auto" chooses it from the data.
    loss : callable, default=None
        Takes responses and predictions and returns the losses of the rows. None takes squared
        errors of regressors, and log losses of classifiers. Rows with a loss of your own are
        weighted, not explained.
    cv : int or splitter, default=5
        Parts of the cross-validation.
    max_iter : int, default=10
        Rounds of cross-validation at most.
    n_jobs : int, default=None
        Fits at the same time.
    random_state : int or RandomState instance, default=None
        Source of the parts; None is a fixed one.

    Attributes
    ----------
    estimator_ : estimator
        The estimator, fitted to the good rows.
    weights_ : ndarray of shape (n_samples,)
        Weights of the rows in this fit; they sum to one.
    prob_bad_ : ndarray of shape (n_samples,)
        Probability of each row to be bad; not with a loss of your own.
    eps_hat_ : float
        Estimated share of bad rows; NaN with a loss of your own.
    outlier_scores_ : ndarray of shape (n_samples,)
        Losses of the rows under fits without them.
    n_iter_ : int
        Rounds of cross-validation.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from rrmstats.sklearn import RRMWrapper
    >>> x = np.linspace(0, 6, 300)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.05 * np.cos(40 * x[:, 0])
    >>> y[::10] += 5
    >>> model = RRMWrapper(DecisionTreeRegressor(min_samples_leaf=5)).fit(x, y)
    >>> bool((model.prob_bad_[::10] > 0.9).all()), round(model.eps_hat_, 1)
    (True, 0.1)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        eps_bar: float | str = AUTO,
        loss: Loss | None = None,
        cv: Any = 5,
        max_iter: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.eps_bar, self.loss, self.cv = estimator, eps_bar, loss, cv
        self.max_iter, self.n_jobs, self.random_state = max_iter, n_jobs, random_state

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.input_tags.sparse = own.estimator_type, own.input_tags.sparse
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.target_tags.required = True
        return tags

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, where all are strings."""
        return np.asarray(self.estimator_.feature_names_in_)

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the estimator to the good rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Responses or labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, were all of them good.

        Returns
        -------
        self : object
            The fitted wrapper.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> from rrmstats.sklearn import RRMWrapper
        >>> RRMWrapper(Ridge()).fit([[i] for i in range(20)], range(20)).eps_hat_
        0.0
        """
        self._check()
        if getattr(X, "ndim", 0) == 2:
            check_array(
                X, accept_sparse=True, dtype=None, ensure_all_finite=False, ensure_min_samples=2
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        self.eps_hat_ = np.nan
        if self._classifies:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        else:
            y = codes = np.asarray(y, dtype=float)
        if len(np.unique(codes)) < 2:
            kind = "class" if self._classifies else "value"
            raise ValueError(f"y has one {kind}, {y[0]}, in all rows; there is nothing to fit")
        given = None if sample_weight is None else frequency_weights(sample_weight, y[:, None])
        relative: Array = np.ones(len(y))
        last = relative
        for rounds in range(1, self.max_iter + 1):
            found = self._predictions(X, y, codes, relative if given is None else relative * given)
            if rounds == 2:
                self._check_weights_matter(relative, found, last)
            last, before = found, relative
            self.outlier_scores_ = self._losses(codes, found)
            if rounds <= FIRST_ROUNDS or self.loss is not None:
                relative = self._first_weights(codes)
            else:
                self.prob_bad_, self.eps_hat_ = self._explained(codes, found)
                relative = np.where(self.prob_bad_ > FLAGGED, 0.0, 1.0 - self.prob_bad_)
                if np.mean(np.abs(relative - before)) < SETTLED:
                    break
        self.n_iter_ = rounds
        total = relative if given is None else relative * given
        self.weights_ = total / total.sum()
        self.estimator_ = clone(self.estimator).fit(X, y, **self._weighted(total))
        return self

    @property
    def _classifies(self) -> bool:
        return get_tags(self.estimator).estimator_type == "classifier"

    def _check(self) -> None:
        """Raise where options or the estimator cannot be used."""
        checked_bound(self.eps_bar)
        if not (isinstance(self.max_iter, int) and self.max_iter >= 1):
            raise ValueError(f"max_iter must be a whole number from 1 on, got {self.max_iter!r}")
        if self.loss is not None and not callable(self.loss):
            raise TypeError(f"loss must be a function of y and predictions, got {self.loss!r}")
        name, tags = type(self.estimator).__name__, get_tags(self.estimator)
        last = (
            self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
        )
        if not has_fit_parameter(last, "sample_weight"):
            raise TypeError(
                f"{name} takes no sample_weight in fit, without which rows cannot count for less; "
                "use an estimator that does, such as a tree, a forest or a linear model"
            )
        if tags.estimator_type == "classifier" and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"{name} has no predict_proba, by which labels are judged; wrap "
                f"CalibratedClassifierCV({name}()) instead"
            )

    def _weighted(self, weights: Array) -> dict[str, Array]:
        """Return weights as the keyword of `fit`."""
        steps = getattr(self.estimator, "steps", None)
        return {f"{steps[-1][0]}__sample_weight" if steps else "sample_weight": weights}

    def _predictions(self, X: Any, y: Any, codes: np.ndarray, weights: Array) -> Array:
        """Return predictions of fits without the row: responses (n,), or probabilities (n, c)."""
        parts = self.cv
        if isinstance(parts, int):
            seed = random_source(self.random_state)
            fewest = np.bincount(codes).min() if self._classifies else 0
            kind = StratifiedKFold if fewest >= parts else KFold
            parts = kind(
                min(parts, len(y)), shuffle=True, random_state=0 if seed is None else seed
            )
        method = "predict_proba" if self._classifies else "predict"
        found = cross_val_predict(
            self.estimator, X, y, cv=parts, method=method, n_jobs=self.n_jobs,
            params=self._weighted(weights),
        )  # fmt: skip
        return np.asarray(found, dtype=float)

    def _check_weights_matter(self, relative: Array, found: Array, last: Array) -> None:
        """Raise where predictions stay the same although rows have lost their weight."""
        if np.mean(relative == 0) > SETTLED and np.array_equal(found, last):
            raise ValueError(
                f"{type(self.estimator).__name__} ignores sample_weight: predictions are the same "
                "with and without rows of weight zero; use an estimator that weighs its rows"
            )

    def _losses(self, codes: np.ndarray, found: Array) -> Array:
        """Return the losses of the rows, shape (n,)."""
        if self.loss is not None:
            losses = np.asarray(self.loss(codes, found), dtype=float)
            if losses.shape != codes.shape or np.isnan(losses).any():
                raise ValueError(
                    f"loss must return one number per row, shape {codes.shape}, got shape "
                    f"{losses.shape}{' with NaN' if np.isnan(losses).any() else ''}"
                )
            return losses
        if not self._classifies:
            return (codes - found) ** 2
        own = found[np.arange(len(codes)), codes]
        return -np.log(np.maximum(own, np.finfo(float).tiny))

    def _first_weights(self, codes: np.ndarray) -> Array:
        """Return the entropy weights of the losses relative to the largest, shape (n,).

        Those of each class by themselves: a class that is hard to predict would lose all rows.
        """
        bound = FIRST_BOUND if self.eps_bar == AUTO else float(self.eps_bar)
        found = np.empty(len(codes))
        for rows in [codes == code for code in np.unique(codes)] if self._classifies else [...]:
            weights = entropy_weights(self.outlier_scores_[rows], bound).weights
            found[rows] = weights / weights.max()
        return np.where(found < LEAST_WEIGHT, 0.0, found)

    def _explained(self, codes: np.ndarray, found: Array) -> tuple[Array, float]:
        """Return the probability of each row to be bad, and the share of bad rows."""
        if self._classifies:
            bound = 0.5 if self.eps_bar == AUTO else float(self.eps_bar)
            told = wrong_labels(found, codes, bound)
            return told.prob_bad, told.eps
        results = explained_rows(RRMOLS(codes - found, np.ones((len(codes), 1)), self.eps_bar))
        return np.asarray(results.prob_bad), float(results.eps_hat)

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions of the estimator that was fitted to the good rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Responses or labels.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> from rrmstats.sklearn import RRMWrapper
        >>> model = RRMWrapper(Ridge(1e-9)).fit([[i] for i in range(20)], range(20))
        >>> model.predict([[30]]).round()
        array([30.])
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of the classes, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the score of the estimator: R squared, or the accuracy."""
        check_is_fitted(self)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **weight))
