"""Models whose mean is a function of a linear predictor: predicted means, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base._prediction_inference import PredictionResultsMonotonic
from statsmodels.discrete.discrete_margins import DiscreteMargins

from rrmstats.core.block_array import blocked, row_map
from rrmstats.core.entropy import Array
from rrmstats.interchange import as_pandas, as_values, is_dask
from rrmstats.results.base import LikelihoodResults, RRMResults, without
from rrmstats.results.inference import check_order
from rrmstats.results.influence import MeanInfluence
from rrmstats.results.labels import NewRows, prediction_frame, side_by_side

#: What to use in place of averages of predictions.
PREDICT = "average predict(), or use get_margeff() for effects"
#: Names of means, standard errors and ends of intervals in a data frame.
COLUMNS = ("mean", "mean_se", "mean_ci_lower", "mean_ci_upper")
NO_RESIDUALS = dict.fromkeys(
    ("resid_type", "use_glm_weights", "fit_kwargs"),
    "residuals are those of the weighted fit; see resid_working and working_weights",
)
#: The mean as a function of the linear predictor, and its derivative.
LinkFunctions = tuple[Callable[[Array], Array], Callable[[Array], Array]]


class MeanPrediction(PredictionResultsMonotonic):
    """Predicted means of a generalized linear model; statsmodels' results, with labels.

    Parameters
    ----------
    linear, linear_se : ndarray, shape (m,)
        Linear predictors and their standard errors.
    inverse, slope : callable
        Inverse of the link, and its derivative.
    free : float
        Degrees of freedom of the intervals; infinite for normal ones.
    index : Index or None
        Labels of the rows.
    columns : sequence of str, optional
        Names of means, standard errors and ends of intervals in a data frame.
    noise : float, optional
        Variance of single responses around their means, for intervals of these.

    Attributes
    ----------
    predicted, predicted_mean : ndarray, shape (m,)
        Means.
    se, se_mean : ndarray, shape (m,)
        Their standard errors, by the delta method.
    linpred, linpred_se : ndarray, shape (m,)
        Linear predictors and their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.results.means import MeanPrediction
    >>> found = MeanPrediction(np.array([0.0]), np.array([0.1]), np.exp, np.exp, np.inf, None)
    >>> found.summary_frame().round(2)
       mean  mean_se  mean_ci_lower  mean_ci_upper
    0   1.0      0.1           0.82           1.22
    """

    def __init__(
        self,
        linear: Array,
        linear_se: Array,
        inverse: Callable[[Array], Array],
        slope: Callable[[Array], Array],
        free: float,
        index: pd.Index | None,
        columns: Sequence[str] = COLUMNS,
        noise: float | None = None,
    ) -> None:
        se = np.abs(row_map(slope, linear, tail=())) * linear_se
        super().__init__(
            row_map(inverse, linear, tail=()),
            se**2,
            linear,
            linear_se,
            inverse,
            slope,
            *((None, "norm") if free == np.inf else (free, "t")),
            index,
        )
        self.predicted_mean, self.se_mean = self.predicted, self.se
        self._columns, self._noise = columns, noise

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"no {name!r}: there are predicted, se, conf_int() and summary_frame()"
        )

    @property
    def se_obs(self) -> Array:
        """Standard errors of single responses of a linear regression, shape (m,)."""
        if self._noise is None:
            raise NotImplementedError(
                "these are means; for responses of good rows use get_distribution().interval()"
            )
        return np.sqrt(self.var_pred + self._noise)

    def conf_int(
        self, alpha: float = 0.05, obs: bool = False, *, method: str = "endpoint"
    ) -> Array:
        """Return intervals of the means, shape (m, 2).

        Parameters
        ----------
        alpha : float, optional
            One minus the level.
        obs : bool, optional
            Intervals of responses, of linear regressions alone: others have `get_distribution`.
        method : {"endpoint", "delta"}, optional
            Whether intervals of the linear predictor are mapped, or those of the means are
            symmetric.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_prediction().conf_int(alpha=0.1).shape
        (10, 2)
        """
        if method not in ("endpoint", "delta"):
            raise ValueError(f"method must be 'endpoint' or 'delta', got {method!r}")
        quantile = self.dist.ppf(1 - alpha / 2, *self.dist_args)
        if obs or method == "delta":
            reach = quantile * (self.se_obs if obs else self.se)
            return side_by_side(self.predicted - reach, self.predicted + reach)
        reach = quantile * self.linpred_se
        ends = side_by_side(self.linpred - reach, self.linpred + reach)
        return row_map(_sorted, row_map(self.func, ends, tail=(2,)), tail=(2,))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return means, standard errors and intervals as a data frame.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_prediction().summary_frame().columns.tolist()
        ['mean', 'mean_se', 'mean_ci_lower', 'mean_ci_upper']
        """
        ends = self.conf_int(alpha)
        values = (self.predicted, self.se, ends[:, 0], ends[:, 1])
        table = dict(zip(self._columns, values, strict=True))
        if self._noise is not None:
            ends = self.conf_int(alpha, obs=True)
            table |= {"obs_ci_lower": ends[:, 0], "obs_ci_upper": ends[:, 1]}
        return prediction_frame(table, self.row_labels)


class MeanResults(LikelihoodResults):
    """What results of labels, counts and other generalized linear models share.

    Examples
    --------
    >>> import rrmstats
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> res.get_prediction(cancer.head(2)).summary_frame().columns.tolist()
    ['predicted', 'se', 'ci_lower', 'ci_upper']
    """

    _row_attrs = (
        *RRMResults._row_attrs,
        *("resid", "resid_response", "resid_pearson", "resid_working", "working_weights"),
    )
    #: Names of predictions in a data frame.
    _columns: ClassVar[tuple[str, ...]] = COLUMNS
    #: Whether influence functions are those of fits without the row.
    _corrected: ClassVar[bool]

    #: Log-likelihood of a constant mean, under the weights of the rows.
    _null_llf: float
    #: Variance of single responses around their means, of linear regressions.
    _noise: float | None = None

    plot_added_variable = without(**NO_RESIDUALS)(LikelihoodResults.plot_added_variable)

    @property
    def prsquared(self) -> float:
        """McFadden's pseudo-R-squared of the rows under their weights: of the good ones."""
        return 1 - self._classical_llf / self._null_llf

    def _link(self) -> LinkFunctions:
        raise NotImplementedError

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of intervals; infinite for normal ones."""
        return self.df_resid if self.use_t else np.inf

    @without(y_values="probabilities of counts are those of predict_prob()")
    def predict(
        self, exog: NewRows = None, transform: bool = True, *args: Any, **kwargs: Any
    ) -> Any:
        """Predict means; see statsmodels' `GLM.predict` and `Logit.predict`.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit, with their offset and exposure.
        transform : bool, optional
            Whether data frames pass through the formula.
        *args, **kwargs
            `offset`, `which` and, of generalized linear models, `exposure` of statsmodels.

        Returns
        -------
        ndarray or Series, shape (m,)

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> bool(5 < res.predict(pd.DataFrame({"hour": [6]}))[0] < 9)
        True
        """
        if not is_dask(exog):
            exog = as_pandas(exog)
            self._check_rows(exog, **kwargs)
        return super().predict(exog, transform, *args, **kwargs)

    def _check_rows(
        self, exog: Any, offset: Any = None, exposure: Any = None, **other: object
    ) -> None:
        """Raise where an offset or exposure is not that of the rows to predict."""
        rows = self.model.data.orig_exog if exog is None else exog
        labels = rows.index if isinstance(rows, pd.DataFrame) else None
        for name, values in (("offset", offset), ("exposure", exposure)):
            check_order(name, values, labels)
            if np.ndim(values) and np.ndim(rows) == 2 and np.shape(values) != (len(rows),):
                raise ValueError(
                    f"{name} must have one number per row to predict, shape ({len(rows)},), got "
                    f"{np.shape(values)}"
                )

    @without(
        weights="responses to predict have weight one; see se_obs",
        average=PREDICT,
        agg_weights=PREDICT,
    )
    def get_prediction(
        self,
        exog: NewRows = None,
        transform: bool = True,
        *,
        which: str = "mean",
        row_labels: Sequence[Any] | None = None,
        **given: ArrayLike | None,
    ) -> MeanPrediction:
        """Predict means, or linear predictors, with confidence intervals.

        Parameters
        ----------
        exog : array_like or DataFrame, optional
            Rows to predict; by default those of the fit, with their offset and exposure.
        transform : bool, optional
            Whether data frames pass through the formula.
        which : {"mean", "linear"}, optional
            What to predict.
        row_labels : sequence, optional
            Labels of the predictions in place of those of the rows.
        **given
            `offset` and, of generalized linear models, `exposure` of the rows to predict; by
            default 0 and 1.

        Returns
        -------
        MeanPrediction

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.glm("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
        >>> res.get_prediction(hbk.head(2)).summary_frame().columns.tolist()
        ['mean', 'mean_se', 'mean_ci_lower', 'mean_ci_upper', 'obs_ci_lower', 'obs_ci_upper']
        """
        if which not in ("mean", "linear"):
            raise ValueError(
                f"which must be 'mean' or 'linear', got {which!r}; get_distribution() has "
                "probabilities and variances"
            )
        exog, beside = as_pandas(exog), {name: as_values(each) for name, each in given.items()}
        self._check_rows(exog, **beside)
        rows, labels = self._rows_to_predict(exog, transform, row_labels)
        asked = None if exog is None else rows
        linear = self.model.predict(np.asarray(self.params), asked, which="linear", **beside)
        linear = linear if blocked(linear) else np.asarray(linear)
        spread = np.sqrt(np.einsum("ni,ij,nj->n", rows, self.cov_params_default, rows))
        same: LinkFunctions = (np.positive, np.ones_like)
        functions = self._link() if which == "mean" else same
        return MeanPrediction(
            linear, spread, *functions, self._freedom, labels, self._columns, self._noise
        )

    def get_margeff(
        self,
        at: str = "overall",
        method: str = "dydx",
        atexog: Mapping[int, float] | None = None,
        dummy: bool = False,
        count: bool = False,
    ) -> Any:
        """Return marginal effects; see statsmodels' `get_margeff`.

        Parameters
        ----------
        at : str, optional
            Where the effects are taken.
        method : str, optional
            Kind of effect.
        atexog : dict, optional
            Values of predictors by their position.
        dummy, count : bool, optional
            Whether effects of 0/1 columns, and of counts, are those of a change by one.

        Returns
        -------
        statsmodels DiscreteMargins

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> bool(res.get_margeff().margeff[0] > 0)
        True
        """
        self.model.refuse_partitions("get_margeff", "fit a sample, or compare predictions")
        if np.any(self.model.fitted_offset):
            raise NotImplementedError(
                "marginal effects with an offset or exposure are not available; compare predict() "
                "at changed predictors"
            )
        return DiscreteMargins(self, (at, method, atexog, dummy, count), {})

    def get_influence(self, observed: bool = True) -> MeanInfluence:
        """Return leverages, studentized residuals, Cook's distances and deletion effects.

        Parameters
        ----------
        observed : bool, optional
            Accepted as in statsmodels, and not used.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> res.get_influence().hat_matrix_diag.shape
        (10,)
        """
        self.model.refuse_partitions("get_influence", "use weight_table() and outliers()")
        return MeanInfluence(self, self._estimate.influence(), self._corrected)

    def get_hat_matrix_diag(self, observed: bool = True) -> Array:
        """Return the weighted hat values of expected information, shape (n,).

        Parameters
        ----------
        observed : bool, optional
            Accepted as in statsmodels, and not used.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> round(float(res.get_hat_matrix_diag().sum()), 6)
        2.0
        """
        return self.get_influence().hat_matrix_diag


def _sorted(ends: Array) -> Array:
    return np.sort(ends, axis=1)
