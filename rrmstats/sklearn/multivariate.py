"""Covariance, outliers and principal components with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OutlierMixin,
    TransformerMixin,
)
from sklearn.covariance import EllipticEnvelope, EmpiricalCovariance, log_likelihood
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rrmstats.core.entropy import Array
from rrmstats.core.frames import different_rows
from rrmstats.losses.matrices import spanned
from rrmstats.models.checks import EPS_BAR_MAX
from rrmstats.models.multivariate import RRMPCA, RRMCov
from rrmstats.sklearn.fitting import CountedRows, RobustFit, check_flag, frequency_weights

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(eq=False, repr=False, kw_only=True)
class RRMCovariance(RobustFit, EmpiricalCovariance):
    """Mean and covariance when some of the rows may be bad; `rrmstats.RRMCov`.

    It has the interface of `sklearn.covariance.MinCovDet`, `error_norm`, `get_precision` and
    `score` among it.

    Parameters
    ----------
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical estimate.
        "auto" chooses it from the data.
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

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance, consistent at Gaussian rows.
    precision_ : ndarray of shape (n_features, n_features)
        Inverse of the covariance, or its pseudo-inverse; None without `store_precision`.
    support_ : ndarray of shape (n_samples,)
        Which rows are not outliers. Rows of weight zero are judged by their distance alone.
    dist_ : ndarray of shape (n_samples,)
        Squared Mahalanobis distances of the rows.
    weights_ : ndarray of shape (n_samples,)
        Weights of the rows; they sum to one.
    eps_hat_ : float
        Estimated share of bad rows.
    eps_bar_ : float
        The bound of the fit, where "auto" has chosen it.
    results_ : rrmstats.results.RRMCovResults
        What statsmodels users have: standard errors, `summary()`, pictures. It holds the data.
        None where the rows were too few for a robust covariance; a warning says so.
    n_iter_ : int
        Iterations of the best descent, 1 at least.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where all are strings.

    See Also
    --------
    sklearn.covariance.MinCovDet : The minimum covariance determinant.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.sklearn import RRMCovariance
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> model = RRMCovariance(eps_bar=0.25).fit(hbk.exog)
    >>> bool(model.support_[:14].any()), model.location_.round()
    (False, array([2., 2., 2.]))
    """

    store_precision: bool = True

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit mean and covariance.

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
        >>> from rrmstats.sklearn import RRMCovariance
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMCovariance(eps_bar=0.25).fit(hbk.exog)
        >>> model.location_.round()
        array([2., 2., 2.])
        """
        rows = self._counted(X, sample_weight)
        if too_few(rows, self.eps_bar):
            return self._fit_classical(rows)
        model = RRMCov(rows.table, self.eps_bar, freq_weights=rows.counts)
        results = self._fit_model(model, rows)
        self.location_ = np.asarray(results.mean)
        self._set_covariance(np.asarray(results.cov))
        distances = results.mahalanobis(rows.x)
        self.dist_, self.support_ = distances**2, distances <= results.cutoff()
        # The model knows more of its own rows than their distances.
        self.support_[rows.used] = ~np.asarray(results.outliers())
        return self

    def _fit_classical(self, rows: CountedRows) -> Self:
        """Take the classical estimates, with a warning, from rows that are too few for others."""
        used = rows.x[rows.used]
        warnings.warn(
            f"X has {len(np.unique(used, axis=0))} different rows for {used.shape[1]} features, "
            f"too few for a robust covariance with eps_bar={self.eps_bar}; the classical one is "
            "used, which bad rows spoil. Give more rows or fewer features.",
            UserWarning,
            stacklevel=3,
        )
        counts = np.ones(len(used)) if rows.counts is None else rows.counts
        self.results_, self.eps_bar_, self.eps_hat_, self.n_iter_ = None, 0.0, 0.0, 1
        self.weights_ = rows.spread(counts / counts.sum())
        self.location_ = np.average(used, axis=0, weights=counts)
        self._set_covariance(np.atleast_2d(np.cov(used.T, bias=True, aweights=counts)))
        self.dist_ = np.asarray(EmpiricalCovariance.mahalanobis(self, rows.x))
        self.support_ = rows.used.copy()
        return self

    def mahalanobis(self, X: Any) -> Array:
        """Return squared Mahalanobis distances from the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Squares, as scikit-learn has them. Where the covariance is singular, rows off the
            hyperplane of the others are infinitely far.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMCovariance
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMCovariance(eps_bar=0.25).fit(hbk.exog)
        >>> distances = model.mahalanobis(hbk.exog)
        >>> bool(distances[:14].min() > 100 * distances[14:].mean())
        True
        """
        check_is_fitted(self)
        if self.results_ is None:
            return np.asarray(super().mahalanobis(X))
        x = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.results_.mahalanobis(x)) ** 2

    def score(
        self, X_test: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the mean Gaussian log-likelihood of data, under the mean and covariance fitted.

        Bad rows count in it like others, and one of them can outweigh all good rows.

        Parameters
        ----------
        X_test : array-like of shape (n_samples, n_features)
            Data.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        float
            Log-likelihood per row.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMCovariance
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMCovariance(eps_bar=0.25).fit(hbk.exog)
        >>> bool(model.score(hbk.exog[14:]) > model.score(hbk.exog))
        True
        """
        check_is_fitted(self)
        x = validate_data(self, X_test, dtype=np.float64, reset=False)
        weights, moved = frequency_weights(sample_weight, x), x - self.location_
        shares = weights / weights.sum()
        return float(log_likelihood((shares * moved.T) @ moved, self.get_precision()))


def share_left(eps_bar: float | str, largest: float) -> float:
    """Return the share of rows that a bound leaves; one to be chosen is at most `largest`."""
    if isinstance(eps_bar, int | float) and 0 <= eps_bar < 1:
        return 1.0 - eps_bar
    return 1.0 - largest


def too_few(rows: CountedRows, eps_bar: float | str) -> bool:
    """Tell whether the different rows that `eps_bar` leaves are fewer than the parameters."""
    needed = (rows.x.shape[1] + 1) / share_left(eps_bar, 0.0)
    return different_rows(rows.x[rows.used], int(np.ceil(needed))) < needed


AUTO = "auto"


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

    # Of distances, as scikit-learn has them: the lower a score, the more of an outlier.
    score_samples = EllipticEnvelope.score_samples
    decision_function = EllipticEnvelope.decision_function
    predict = EllipticEnvelope.predict
    score = EllipticEnvelope.score


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
    tied = 1e-9 * abs(last) if np.isfinite(last) else 0.0
    others = ordered[ordered > last + tied]
    if not len(others):
        return float(last)
    middle = 0.5 * (last + others[0])
    return float(middle if np.isfinite(middle) else others[0])


@dataclass(eq=False, repr=False, kw_only=True)
class RRMDecomposition(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RobustFit, BaseEstimator
):
    """Principal components when some of the rows may be bad; `rrmstats.RRMPCA`.

    It has the interface of `sklearn.decomposition.PCA`, with its likelihood (Tipping and Bishop,
    1999) of good rows: what components explain, and spherical noise. Where `eps_bar` is 0 its
    numbers are those of `PCA`, but variances are divided by the number of rows, not by one less.

    Parameters
    ----------
    n_components : int, float or None, default=1
        Number of components, less than that of the features; or, in (0, 1), the fraction of the
        variance that they are to explain. None is as many as leave some of the variance: one less
        than the dimensions that the rows span. These are `n_features`, or fewer where the
        different rows that `eps_bar` leaves are no more than the features.
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical analysis.
        "auto" chooses it from the data.
    steps : {1, 2}, default=2
        1 for the estimate of least risk, the paper's; 2 fits the paper's model of good and bad
        rows from there.
    whiten : bool, default=False
        Whether scores are in units of their standard deviations, so that those of good rows have
        variance one. `inverse_transform` undoes it.
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
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal components as rows, the largest variance first. The largest entry of each is
        positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variances along the components.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as fractions of the whole variance of good rows.
    singular_values_ : ndarray of shape (n_components,)
        Lengths of the columns of scores of the good rows, taken to be ``(1 - eps_hat_)`` of all:
        the roots of ``explained_variance_ * (1 - eps_hat_) * n``, where ``n`` is the number of
        rows, or the sum of `sample_weight`.
    noise_variance_ : float
        Mean variance in the ``n_features - n_components`` directions that the components leave
        out. `PCA` takes the mean of fewer where there are fewer rows than features.
    mean_ : ndarray of shape (n_features,)
        Center.
    n_components_ : int
        Number of components.
    weights_ : ndarray of shape (n_samples,)
        Weights of the rows; they sum to one.
    outliers_ : ndarray of shape (n_samples,)
        Which rows are far from the subspace, or far out in it. Of clean rows one in forty is.
    eps_hat_ : float
        Estimated share of bad rows.
    eps_bar_ : float
        The bound of the fit, where "auto" has chosen it.
    results_ : rrmstats.results.RRMPCAResults
        What statsmodels users have: standard errors, `summary()`, pictures. It holds the data;
        `results_.remove_data()` makes pickles small.
    n_iter_ : int
        Iterations of the best descent, 1 at least.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where all are strings.

    See Also
    --------
    sklearn.decomposition.PCA : The classical analysis.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.sklearn import RRMDecomposition
    >>> hbk = rrmstats.datasets.hbk.load_pandas()
    >>> model = RRMDecomposition(eps_bar=0.25).set_output(transform="pandas")
    >>> model.fit_transform(hbk.exog).columns.tolist()
    ['rrmdecomposition0']
    >>> bool(model.outliers_[:14].all())
    True
    """

    n_components: float | None = field(default=1, kw_only=False)
    eps_bar: float | str = "auto"
    whiten: bool = False

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the components.

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
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(2, eps_bar=0.25).fit(hbk.exog)
        >>> model.components_.shape
        (2, 3)
        """
        check_flag("whiten", self.whiten)
        rows = self._counted(X, sample_weight, ensure_min_features=2)
        asked = self.n_components
        if asked is None:
            asked = most_components(rows.x[rows.used], self.eps_bar)
        model = RRMPCA(rows.table, asked, self.eps_bar, freq_weights=rows.counts)
        results = self._fit_model(model, rows)
        self.mean_ = np.asarray(results.mean)
        self.components_ = np.asarray(results.loadings).T
        self.explained_variance_ = np.asarray(results.eigenvals)
        self.explained_variance_ratio_ = np.asarray(results.explained_variance_ratio)
        self.n_components_ = self._n_features_out = len(self.components_)
        left_out = rows.x.shape[1] - self.n_components_
        self.noise_variance_ = results.unexplained_variance / left_out
        total = rows.used.sum() if rows.counts is None else rows.counts.sum()
        self.singular_values_ = np.sqrt(self.explained_variance_ * total * (1 - self.eps_hat_))
        self.outliers_ = rows.spread(results.outliers())
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores of rows on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Scores; with `whiten` in units of their standard deviations.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(2, eps_bar=0.25).fit(hbk.exog)
        >>> model.transform(hbk.exog).shape
        (75, 2)
        """
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        return (x - self.mean_) @ self.components_.T / self._score_unit()

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of the subspace that have given scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows; of `transform` of data their projections.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(2, eps_bar=0.25).fit(hbk.exog)
        >>> model.inverse_transform(model.transform(hbk.exog)).shape
        (75, 3)
        """
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64)
        if scores.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but there are {self.n_components_} components; "
                "give scores as transform returns them"
            )
        return (scores * self._score_unit()) @ self.components_ + self.mean_

    def get_covariance(self) -> Array:
        """Return the covariance of good rows: that of the components, and noise off them.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Covariance. Unlike that of `PCA`, it is the same with `whiten` and without.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> RRMDecomposition(eps_bar=0.25).fit(hbk.exog).get_covariance().shape
        (3, 3)
        """
        check_is_fitted(self)
        return self._covariance_to(1)

    def get_precision(self) -> Array:
        """Return the inverse of the covariance.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Inverse of `get_covariance()`.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(eps_bar=0.25).fit(hbk.exog)
        >>> np.allclose(model.get_precision() @ model.get_covariance(), np.eye(3))
        True
        """
        check_is_fitted(self)
        if not self.noise_variance_ > 0:
            raise ValueError(
                f"noise_variance_ is {self.noise_variance_:g}: good rows lie in the subspace of "
                f"the {len(self.components_)} components, where their covariance has no inverse; "
                "use fewer components, or RRMCovariance"
            )
        return self._covariance_to(-1)

    def _covariance_to(self, power: int) -> Array:
        """Return a power of the covariance; variances along components hold noise too."""
        off = self.noise_variance_**power
        along = np.maximum(self.explained_variance_, self.noise_variance_) ** power
        matrix = (self.components_.T * (along - off)) @ self.components_
        return matrix + off * np.eye(len(matrix))

    def score_samples(self, X: Any) -> Array:
        """Return the Gaussian log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-likelihoods.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(eps_bar=0.25).fit(hbk.exog)
        >>> logs = model.score_samples(hbk.exog)
        >>> bool(logs[:14].max() < logs[14:].min())
        True
        """
        check_is_fitted(self)
        centered = validate_data(self, X, dtype=np.float64, reset=False) - self.mean_
        precision = self.get_precision()
        squares = np.einsum("ni,ij,nj->n", centered, precision, centered)
        size = np.linalg.slogdet(precision)[1] - len(precision) * np.log(2 * np.pi)
        return 0.5 * (size - squares)

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean Gaussian log-likelihood of rows.

        Bad rows count in it like others, and one of them can outweigh all good rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        float
            Log-likelihood per row.

        Examples
        --------
        >>> import rrmstats
        >>> from rrmstats.sklearn import RRMDecomposition
        >>> hbk = rrmstats.datasets.hbk.load_pandas()
        >>> model = RRMDecomposition(eps_bar=0.25).fit(hbk.exog)
        >>> bool(model.score(hbk.exog[14:]) > model.score(hbk.exog))
        True
        """
        logs = self.score_samples(X)
        return float(np.average(logs, weights=frequency_weights(sample_weight, logs[:, None])))

    def _score_unit(self) -> Array:
        """Return what scores are divided by, shape (n_components,)."""
        if not self.whiten:
            return np.ones(self.n_components_)
        return np.sqrt(self.explained_variance_)


def most_components(x: Array, eps_bar: float | str) -> int:
    """Return the largest number of components that rows, shape (m, d), allow, 1 at least.

    Parameters
    ----------
    x : ndarray, shape (m, d)
    eps_bar : float or "auto"
        The bound; what is none is left to the model to refuse.
    """
    share, d = share_left(eps_bar, EPS_BAR_MAX), x.shape[1]
    different = different_rows(x, int(np.ceil((d + 1) / share)))
    left = int(share * different * (1 + 1e-12))
    dimensions = min(left - 1, spanned(x, np.ones(len(x)), True, d))
    return max(dimensions - 1, 1)
