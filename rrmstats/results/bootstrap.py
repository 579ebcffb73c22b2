"""What the bootstrap found, and the intervals that it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from rrmstats.core.entropy import Array


@dataclass(frozen=True, eq=False)
class Replicates:
    """Parameters fitted to resampled data.

    Attributes
    ----------
    replicates : ndarray, shape (n_boot, k)
        Parameters fitted to each sample.
    acceleration : ndarray, shape (k,)
        That of the BCa intervals.
    interval : {"bca", "percentile"}
        Kind of the confidence intervals.
    scheme : {"pairs", "stratified", "groups"}
        How the samples were drawn.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(
    ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
    >>> res.bootstrap.n_boot, res.bootstrap.scheme
    (50, 'pairs')
    """

    replicates: Array
    acceleration: Array
    interval: str
    scheme: str

    @property
    def n_boot(self) -> int:
        """Number of samples."""
        return len(self.replicates)

    def covariance(self) -> Array:
        """Return the covariance of the parameters over the samples, shape (k, k).

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> bool(abs(res.bootstrap.covariance() - res.cov_params()).max(axis=None) < 1e-12)
        True
        """
        return np.atleast_2d(np.cov(self.replicates, rowvar=False))

    def intervals(self, params: Array, alpha: float) -> Array:
        """Return percentile or BCa intervals, shape (k, 2).

        The acceleration of BCa is the skewness of the influence functions over six.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> res.bootstrap.intervals(res.params.to_numpy(), alpha=0.1).shape
        (2, 2)
        """
        levels = np.tile([alpha / 2, 1 - alpha / 2], (len(params), 1))
        if self.interval == "bca":
            below = (self.replicates < params).mean(axis=0)
            bias = norm.ppf(np.clip(below, 0.5 / self.n_boot, 1 - 0.5 / self.n_boot))
            z = bias[:, None] + norm.ppf(levels)
            levels = norm.cdf(bias[:, None] + z / (1 - self.acceleration[:, None] * z))
        return np.array(
            [np.quantile(draws, q) for draws, q in zip(self.replicates.T, levels, strict=True)]
        )

    def describe(self) -> str:
        """Return what was done in a few words.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(
        ...     cov_type="bootstrap", cov_kwds={"n_boot": 50})
        >>> res.bootstrap.describe()
        'pairs bootstrap, 50 samples, BCa intervals'
        """
        name = {"bca": "BCa", "percentile": "percentile"}[self.interval]
        return f"{self.scheme} bootstrap, {self.n_boot} samples, {name} intervals"


def skewness(influence: Array) -> Array:
    """Return the sum of cubes over that of squares to the power 1.5, shape (k,)."""
    square = (influence**2).sum(axis=0)
    cube = (influence**3).sum(axis=0)
    return np.divide(cube, square**1.5, out=np.zeros_like(cube), where=square > 0)
