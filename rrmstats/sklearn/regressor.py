"""Linear regression with the interface of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearModel

from rrmstats.models.checks import AUTO
from rrmstats.models.linear import RRMOLS
from rrmstats.sklearn.fitting import LinearFit, random_source

#: Part of the absolute values in each penalty; None where it is given.
PENALTIES = {"l2": 0.0, "l1": 1.0, "elasticnet": None}


@dataclass(eq=False, repr=False, kw_only=True)
class RRMRegressor(RegressorMixin, LinearFit, LinearModel):
    """Linear regression when some of the rows may be bad; `rrmstats.RRMOLS`.

    Parameters
    ----------
    eps_bar : float or "auto", default="auto"
        Upper bound on the share of bad rows, in [0, 1). 0 is least squares. "auto"
        chooses it from the data.
    steps : {1, 2}, default=2
        1 for the estimate of least risk, the paper's; 2 fits the paper's model of good and bad
        rows from there.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    penalty : {None, "l2", "l1", "elasticnet"}, default=None
        Penalty of the coefficients: of ridge regression, the lasso, or the elastic net. With one
        there may be more features than samples, and `steps`, `n_starts`, `tol` and `max_iter`
        play no part.
    alpha : float or "auto", default="auto"
        Weight of the penalty; "auto" chooses it from the data.
    l1_ratio : float, default=0.5
        Part of the absolute values in the penalty of the elastic net, from 0 to 1.
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
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept; 0 without one.
    scale_ : float
        Standard deviation of the noise of the good rows, the root of `results_.scale`.
    weights_ : ndarray of shape (n_samples,)
        Weights of the rows; they sum to one.
    outliers_ : ndarray of shape (n_samples,)
        Which rows have residuals that of clean rows one in forty has. With a penalty those that
        are more likely bad than good.
    eps_hat_ : float
        Estimated share of bad rows.
    eps_bar_ : float
        The bound of the fit, where "auto" has chosen it.
    results_ : rrmstats.results.RRMOLSResults or RRMRegularizedResults
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
    sklearn.linear_model.HuberRegressor : Bounds residuals, not leverage.
    sklearn.linear_model.RANSACRegressor : Needs a threshold of residuals in place of `eps_bar`.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.sklearn import RRMRegressor
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas()
    >>> model = RRMRegressor(eps_bar=0.2).fit(stars.exog, stars.endog)
    >>> bool(model.coef_[0] > 2), model.outliers_[[10, 19, 29, 33]].tolist()
    (True, [True, True, True, True])
    """

    penalty: str | None = None
    alpha: float | str = AUTO
    l1_ratio: float = 0.5

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> RRMRegressor:
        """Fit the regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Response.
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
        >>> from rrmstats.sklearn import RRMRegressor
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas()
        >>> bool(RRMRegressor(eps_bar=0.2).fit(stars.exog, stars.endog).coef_[0] > 2)
        True
        """
        if self.penalty not in (None, *PENALTIES):
            raise ValueError(
                f"penalty must be None, 'l2', 'l1' or 'elasticnet', got {self.penalty!r}"
            )
        rows = self._counted(X, sample_weight, y, y_numeric=True)
        self.intercept_, self.coef_ = self._fit_linear(RRMOLS, rows, rows.y, y)
        self.scale_ = float(np.sqrt(self.results_.scale))
        return self

    def _fitted(self, model: Any) -> Any:
        if self.penalty is None:
            return super()._fitted(model)
        part = PENALTIES[self.penalty]
        return model.fit_regularized(
            alpha=self.alpha,
            L1_wt=self.l1_ratio if part is None else part,
            rng=random_source(self.random_state),
        )
