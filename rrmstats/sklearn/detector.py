"""Detection of outliers with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.metrics import accuracy_score

from rrmstats.core.entropy import Array
from rrmstats.sklearn.covariance import RRMCovariance
from rrmstats.sklearn.fitting import frequency_weights

if TYPE_CHECKING:
    from typing_extensions import Self

AUTO = "auto"
# Scores that differ by no more, relative to their size, are the same up to rounding.
TIED = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class RRMOutlierDetector(OutlierMixin, RRMCovariance):
    """Outliers: rows far from the others in the metric of a robust covariance.

    It has the interface of `sklearn.covariance.EllipticEnvelope`, and the attributes of
    `RRMCovariance`.

    Parameters
    ----------
    contamination : "auto" or float, default="auto"
        Share of the rows of `fit` to flag, in (0, 0.5]. "auto" flags as many as are more likely
        bad than good under the explanation of the fit, and the farthest row in any case.
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). "auto" chooses it from the data.
    steps : {1, 2}, default=2
        1 for the estimate of least risk, the paper's; 2 fits the paper's model of good and bad
        rows from there.
    store_precision : bool, default=True
        Whether the inverse of the covariance is kept.
    n_starts : int, default=None
        Random subsets from which the global minimum is sought; None chooses their number.
    tol : float, default=1e-10
        Size of the last step, in the metric of the risk.
    max_iter : int, default=1000
        Iterations that a descent may take.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the random subsets. Unlike in scikit-learn, None is a fixed one: fits repeat.
    efficiency : float, default="deprecated"
        Use `steps`: None was one step, a number two.

    Attributes
    ----------
    offset_ : float
        Rows with `score_samples` below it are outliers.
    location_, covariance_, precision_, support_, dist_, weights_, eps_hat_, eps_bar_, results_
        As in `RRMCovariance`. `support_` tells which rows are more likely good than bad, `predict`
        goes by their distances and `offset_`.
    n_iter_ : int
        Iterations of the best descent, 1 at least.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where all are strings.

    See Also
    --------
    sklearn.covariance.EllipticEnvelope : The same with `MinCovDet` and a given contamination.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.sklearn import RRMOutlierDetector
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> flags = RRMOutlierDetector().fit_predict(hbk.exog)
    >>> (flags == -1).nonzero()[0]
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13])
    """

    contamination: float | str = field(default=AUTO, kw_only=False)
    eps_bar: float | str = "auto"

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit mean and covariance, and the distance beyond which rows are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : Ignored
            Not used, present for API consistency by convention.
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
        >>> from rrmstats.sklearn import RRMOutlierDetector
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMOutlierDetector().fit(hbk.exog)
        >>> bool(model.offset_ < 0), bool(0.15 < model.eps_hat_ < 0.25)
        (True, True)
        """
        check_contamination(self.contamination)
        super().fit(X, y, sample_weight)
        counts = frequency_weights(sample_weight, self.dist_[:, None])
        share = self.contamination
        if isinstance(share, str):
            share = counts[~self.support_].sum() / counts.sum()
        self.offset_ = lower_quantile(-self.dist_, counts, float(share))
        return self

    def score_samples(self, X: Any) -> Array:
        """Return squared Mahalanobis distances, negative: the lower, the more of an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMOutlierDetector
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMOutlierDetector().fit(hbk.exog)
        >>> scores = model.score_samples(hbk.exog)
        >>> bool(scores[:14].max() < scores[14:].min())
        True
        """
        return -self.mahalanobis(X)

    def decision_function(self, X: Any) -> Array:
        """Return scores less `offset_`: negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Shifted scores.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMOutlierDetector
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMOutlierDetector().fit(hbk.exog)
        >>> int((model.decision_function(hbk.exog) < 0).sum())
        14
        """
        scores = self.score_samples(X)
        return scores - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Tell outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for outliers, 1 for other rows.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMOutlierDetector
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMOutlierDetector().fit(hbk.exog)
        >>> model.predict(hbk.exog)[10:18]
        array([-1, -1, -1, -1,  1,  1,  1,  1])
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def score(  # type: ignore[override]  # of labels, as in scikit-learn
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the fraction of rows whose flags are right.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,)
            -1 for outliers, 1 for other rows.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        float
            Accuracy.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMOutlierDetector
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMOutlierDetector().fit(hbk.exog)
        >>> model.score(hbk.exog, [-1] * 14 + [1] * 61)
        1.0
        """
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def check_contamination(contamination: Any) -> None:
    """Raise where the fraction of rows to flag is neither a fraction nor "auto"."""
    if isinstance(contamination, str) and contamination == AUTO:
        return
    number = isinstance(contamination, int | float | np.number)
    if not (number and 0 < contamination <= 0.5):
        raise ValueError(
            f"contamination must be 'auto' or a number in (0, 0.5], got {contamination!r}"
        )


def lower_quantile(scores: Array, counts: Array, share: float) -> float:
    """Return a score between the lowest, a share of the rows but at least one, and the others.

    Parameters
    ----------
    scores, counts : ndarray, shape (n,)
        Scores, and how often each counts.
    share : float
    """
    order = np.argsort(scores, kind="stable")
    order = order[counts[order] > 0]
    before, ordered = np.cumsum(counts[order]), scores[order]
    last = ordered[np.searchsorted(before, share * before[-1] * (1 - 1e-12))]
    tied = TIED * abs(last) if np.isfinite(last) else 0.0
    others = ordered[ordered > last + tied]
    if not len(others):
        return float(last)
    middle = 0.5 * (last + others[0])
    return float(middle if np.isfinite(middle) else others[0])
