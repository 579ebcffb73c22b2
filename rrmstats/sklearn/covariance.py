"""Mean and covariance with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.covariance import EmpiricalCovariance, log_likelihood
from sklearn.utils.validation import check_is_fitted, validate_data

from rrmstats.core.entropy import Array
from rrmstats.core.frames import different_rows
from rrmstats.models.covariance import RRMCov
from rrmstats.sklearn.fitting import CountedRows, RobustFit, counted_rows, frequency_weights

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
    efficiency : float, default="deprecated"
        Use `steps`: None was one step, a number two.

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
        x = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rows = counted_rows(x, X, getattr(self, "feature_names_in_", None), sample_weight)
        if too_few(rows, self.eps_bar):
            return self._fit_classical(x, rows)
        model = RRMCov(rows.table(), self.eps_bar, freq_weights=rows.counts)
        results = self._fit_model(model, rows)
        self.location_ = np.asarray(results.mean)
        self._set_covariance(np.asarray(results.cov))
        distances = results.mahalanobis(x)
        self.dist_, self.support_ = distances**2, distances <= results.cutoff()
        # The model knows more of its own rows than their distances.
        self.support_[rows.used] = ~np.asarray(results.outliers())
        return self

    def _fit_classical(self, x: Array, rows: CountedRows) -> Self:
        """Take the classical estimates, with a warning, from rows that are too few for others."""
        warnings.warn(
            f"X has {len(np.unique(rows.x, axis=0))} different rows for {x.shape[1]} features, "
            f"too few for a robust covariance with eps_bar={self.eps_bar}; the classical one is "
            "used, which bad rows spoil. Give more rows or fewer features.",
            UserWarning,
            stacklevel=3,
        )
        counts = np.ones(len(rows.x)) if rows.counts is None else rows.counts
        self.results_, self.eps_bar_, self.eps_hat_, self.n_iter_ = None, 0.0, 0.0, 1
        self.weights_ = rows.spread(counts / counts.sum())
        self.location_ = np.average(rows.x, axis=0, weights=counts)
        moved = rows.x - self.location_
        self._set_covariance((counts * moved.T) @ moved / counts.sum())
        self.dist_ = np.asarray(EmpiricalCovariance.mahalanobis(self, x))
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


def too_few(rows: CountedRows, eps_bar: float | str) -> bool:
    """Tell whether the different rows that `eps_bar` leaves are fewer than the parameters."""
    share = eps_bar if isinstance(eps_bar, int | float) and 0 <= eps_bar < 1 else 0.0
    needed = (rows.x.shape[1] + 1) / (1.0 - share)
    return different_rows(rows.x, int(np.ceil(needed))) < needed
