"""What pictures ask of results and of their models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.floating[Any]]
Flags = npt.NDArray[np.bool_]


class Model(Protocol):
    """What every model offers."""

    @property
    def endog(self) -> Array:
        """Dependent variable, shape (n,), or data, shape (n, d)."""

    @property
    def freq_weights(self) -> Array | None:
        """How often each row counts, shape (n,); None if every row counts once."""


class DesignModel(Model, Protocol):
    """A model with a design."""

    @property
    def exog(self) -> Array:
        """Design, shape (n, k)."""

    @property
    def exog_names(self) -> list[str]:
        """Names of the columns of the design."""

    @property
    def endog_names(self) -> Any:
        """Name of the dependent variable; those of successes and failures where it is two."""

    def design_distances(self) -> Array | None:
        """Return robust distances of the rows of the design, None if it has none."""

    def leverages(self) -> Array:
        """Return the diagonal of the hat matrix, shape (n,)."""


class VariablesModel(Model, Protocol):
    """A model of the joint distribution of several variables."""

    @property
    def variables(self) -> list[str]:
        """Names of the columns of `endog`."""


class ComponentsModel(VariablesModel, Protocol):
    """A model of principal components."""

    @property
    def demean(self) -> bool:
        """Whether the components have a center of their own."""


class Explanation(Protocol):
    """The explanation of the rows."""

    @property
    def sentence(self) -> str:
        """What it says, in plain English."""


class ExplainedDistances(Protocol):
    """Residuals or distances with the densities of good and bad rows."""

    @property
    def values(self) -> Array:
        """Residuals or distances, shape (n,)."""

    @property
    def name(self) -> str:
        """What they are."""

    @property
    def densities(self) -> Callable[[Array], tuple[Array, Array]] | None:
        """Return densities of good and of bad rows, each times its share; None without any."""


class Results(Protocol):
    """What the results of every model offer."""

    @property
    def model(self) -> Model:
        """The model that was fitted."""

    @property
    def eps_bar(self) -> float:
        """Upper bound on the share of bad rows."""

    @property
    def explanation(self) -> Explanation:
        """How a second step explains the rows; None without one."""

    def explained_distances(self) -> ExplainedDistances:
        """Return residuals or distances with the densities of good and bad rows."""

    @property
    def weights(self) -> npt.ArrayLike | None:
        """Probability weights, shape (n,); None after `remove_data`."""

    @property
    def relative_weights(self) -> npt.ArrayLike:
        """Weights in units of equal weights, shape (n,)."""

    @property
    def losses(self) -> npt.ArrayLike:
        """Losses of the rows, shape (n,)."""

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows, or their positions."""

    @property
    def steps(self) -> int:
        """Number of steps, 1 or 2."""

    @property
    def trace(self) -> pd.DataFrame:
        """Risk, lambda and kind of step by iteration."""

    def order_by_weight(self) -> npt.NDArray[np.intp]:
        """Return the positions of the rows, the smallest relative weight first."""

    def outliers(self, level: float | None = None) -> npt.ArrayLike:
        """Return whether each row is an outlier, shape (n,)."""


class GeneralizedModel(DesignModel, Protocol):
    """A generalized linear model."""

    @property
    def family(self) -> Any:
        """Family of statsmodels, with its link."""

    @property
    def rates(self) -> Array:
        """Responses at an offset of zero, shape (n,)."""

    def likelihood_params(self) -> Array:
        """Return the coefficients of maximum likelihood, shape (k,)."""

    def predict(self, params: Array, exog: Array) -> Array:
        """Return means at an offset of zero, shape (m,)."""


class RegressionResults(Results, Protocol):
    """What the results of a linear regression offer."""

    @property
    def model(self) -> DesignModel:
        """The model that was fitted."""

    @property
    def params(self) -> npt.ArrayLike:
        """Coefficients, shape (k,)."""

    @property
    def scale(self) -> float:
        """Variance of the noise."""

    @property
    def fittedvalues(self) -> npt.ArrayLike:
        """Fitted values, shape (n,)."""

    @property
    def resid(self) -> npt.ArrayLike:
        """Residuals, shape (n,)."""

    @property
    def resid_scaled(self) -> npt.ArrayLike:
        """Residuals in standard deviations of the noise, shape (n,)."""


class GeneralizedResults(Results, Protocol):
    """What the results of a generalized linear model offer."""

    @property
    def model(self) -> GeneralizedModel:
        """The model that was fitted."""

    @property
    def params(self) -> npt.ArrayLike:
        """Coefficients, shape (k,)."""

    @property
    def scale(self) -> float:
        """Dispersion; zero at an exact fit."""

    @property
    def fittedvalues(self) -> npt.ArrayLike:
        """Means, shape (n,)."""

    @property
    def resid_deviance(self) -> npt.ArrayLike:
        """Signed roots of the deviances, shape (n,)."""

    @property
    def resid_scaled(self) -> npt.ArrayLike:
        """Deviance residuals over the root of the dispersion, shape (n,)."""

    @property
    def resid_quantile(self) -> npt.ArrayLike:
        """Residuals that are standard normal where the model is right, shape (n,)."""


class CovarianceResults(Results, Protocol):
    """What the results of a mean and covariance offer."""

    @property
    def model(self) -> VariablesModel:
        """The model that was fitted."""

    @property
    def mean(self) -> npt.ArrayLike:
        """Mean, shape (d,)."""

    @property
    def cov(self) -> npt.ArrayLike:
        """Covariance, shape (d, d)."""

    @property
    def singular(self) -> bool:
        """Whether the covariance is singular."""

    def mahalanobis(self) -> npt.ArrayLike:
        """Return the distances of the rows from the mean, shape (n,)."""

    def cutoff(self, level: float) -> float:
        """Return the quantile of the distances of clean rows."""


class ComponentsResults(Results, Protocol):
    """What the results of principal components offer."""

    @property
    def model(self) -> ComponentsModel:
        """The model that was fitted."""

    @property
    def column_unit(self) -> npt.ArrayLike:
        """Units of the variables, shape (d,), which are 1 unless they were standardized."""

    @property
    def eigenvals(self) -> npt.ArrayLike:
        """Variances along the components, shape (q,)."""

    @property
    def explained_variance_ratio(self) -> npt.ArrayLike:
        """Share of each component in the variance, shape (q,)."""

    @property
    def loadings(self) -> npt.ArrayLike:
        """Components as columns, shape (d, q)."""

    @property
    def scores(self) -> npt.ArrayLike:
        """Scores of the rows, shape (n, q)."""

    @property
    def score_distance(self) -> npt.ArrayLike:
        """Distances from the center within the subspace, shape (n,)."""

    @property
    def orthogonal_distance(self) -> npt.ArrayLike:
        """Distances from the subspace, shape (n,)."""

    def score_cutoff(self, level: float) -> float:
        """Return the quantile of the score distances of clean data."""

    def orthogonal_cutoff(self, level: float) -> float:
        """Return the quantile of the orthogonal distances of clean data."""


class LabelResults(Results, Protocol):
    """What the results of a model of labels 0 and 1 offer."""

    @property
    def model(self) -> DesignModel:
        """The model that was fitted."""

    @property
    def fittedvalues(self) -> npt.ArrayLike:
        """Linear predictor, shape (n,)."""

    @property
    def resid_dev(self) -> npt.ArrayLike:
        """Signed roots of the deviances, shape (n,)."""

    def predict(self) -> npt.ArrayLike:
        """Return the fitted probabilities of label 1, shape (n,)."""

    def pred_table(self) -> npt.ArrayLike:
        """Return the counts of labels by predicted label, shape (2, 2)."""


class Choice(Protocol):
    """A value of eps_bar chosen from a path."""

    @property
    def eps_bar(self) -> float:
        """The value."""

    @property
    def reason(self) -> str:
        """Why it was chosen."""


class FittedPath(Protocol):
    """What the fits along a grid of eps_bar offer, n rows or groups at m values."""

    @property
    def unit(self) -> str:
        """What has a weight each: "row" or "group"."""

    @property
    def model(self) -> Any:
        """The model that was fitted."""

    @property
    def eps_bars(self) -> Array:
        """The grid, in increasing order, shape (m,)."""

    @property
    def frame(self) -> pd.DataFrame:
        """Estimates and their intervals by eps_bar and term, and what explains the rows."""

    @property
    def weights(self) -> pd.DataFrame:
        """Probability weights, shape (n, m)."""

    @property
    def relative_weights(self) -> pd.DataFrame:
        """Weights in units of equal ones, shape (n, m)."""

    @property
    def prob_bad(self) -> pd.DataFrame:
        """Probabilities of the rows to be bad, shape (n, m); in two steps only."""

    @property
    def residuals(self) -> pd.DataFrame:
        """Standardized residuals or distances, shape (n, m)."""

    @property
    def flags(self) -> pd.DataFrame:
        """Whether each row is an outlier, shape (n, m)."""

    @property
    def jumps(self) -> pd.DataFrame:
        """Where estimates change abruptly, and the rows that leave there."""

    @property
    def leaves(self) -> pd.DataFrame:
        """Where each row leaves: its probability to be good, or weight, is below 0.5 or 0.01."""

    @property
    def signs(self) -> list[str]:
        """What the path shows, in sentences."""

    @property
    def choice(self) -> Choice | None:
        """The value that an automatic choice has; None for models without one."""

    def at(self, eps_bar: float) -> Any:
        """Return the results at one value of the grid."""
