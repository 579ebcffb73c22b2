"""The Gaussian model of principal components, as scikit-learn's `PCA` has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from rrmstats.core.entropy import Array
from rrmstats.sklearn.fitting import frequency_weights


class ProbabilisticComponents:
    """Covariance and likelihood of good rows: what components explain, and spherical noise.

    The model is that of Tipping and Bishop (1999), with the robust mean, components and variances.
    """

    mean_: Array
    components_: Array
    explained_variance_: Array
    noise_variance_: float

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
        return self._of_directions(self._variances(), self.noise_variance_)

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
        self._check_noise()
        return self._of_directions(1 / self._variances(), 1 / self.noise_variance_)

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
        self._check_noise()
        scores = centered @ self.components_.T
        off = centered - scores @ self.components_
        variances, noise = self._variances(), self.noise_variance_
        n_noise = off.shape[1] - len(variances)
        squares = (scores**2 / variances).sum(axis=1) + (off**2).sum(axis=1) / noise
        size = np.log(variances).sum() + n_noise * np.log(noise)
        return -0.5 * (squares + size + off.shape[1] * np.log(2 * np.pi))

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean Gaussian log-likelihood of rows.

        Corrupted rows count in it like others, and one of them can outweigh all good rows.

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

    def _variances(self) -> Array:
        """Return the variances along the components, which hold noise too, shape (q,)."""
        return np.maximum(self.explained_variance_, self.noise_variance_)

    def _of_directions(self, along: Array, off: float) -> Array:
        """Return the matrix with given eigenvalues along the components, and one off them."""
        matrix = (self.components_.T * (along - off)) @ self.components_
        matrix.flat[:: len(matrix) + 1] += off
        return matrix

    def _check_noise(self) -> None:
        if not self.noise_variance_ > 0:
            raise ValueError(
                f"noise_variance_ is {self.noise_variance_:g}: good rows lie in the subspace of "
                f"the {len(self.components_)} components, where their covariance has no inverse; "
                "use fewer components, or RRMCovariance"
            )
