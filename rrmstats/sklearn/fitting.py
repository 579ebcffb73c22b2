"""What the estimators share: rows that count, and the fit of a model to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, validate_data
from statsmodels.tools import sm_exceptions

from rrmstats.core.entropy import Array
from rrmstats.core.setting import MAXITER, TOL
from rrmstats.interchange import as_pandas
from rrmstats.models.base import RRMModel
from rrmstats.models.checks import warn

CONSTANT = "const"


class CountedRows(NamedTuple):
    """The rows that count: those of positive weight.

    Attributes
    ----------
    x : ndarray, shape (n, d)
        Features of all rows.
    y : ndarray, shape (n,)
        Their responses; None where there are none.
    table : ndarray or DataFrame, shape (m, d)
        Features of the rows that count, with labels where they have any.
    counts : ndarray, shape (m,), or None
        How often each counts; None for once.
    used : ndarray of bool, shape (n,)
        Which of all rows they are.
    """

    x: Array
    y: Any
    table: Array | pd.DataFrame
    counts: Array | None
    used: np.ndarray

    def spread(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values of these rows among all rows, zero or False in the others, shape (n,)."""
        own = np.asarray(values)
        full = np.zeros(len(self.used), own.dtype)
        full[self.used] = own
        return full


def frequency_weights(sample_weight: npt.ArrayLike | None, x: Array) -> Array:
    """Return weights of rows as frequency weights, ones where there are none, shape (n,).

    Parameters
    ----------
    sample_weight : array_like, shape (n,), or None
    x : ndarray, shape (n, d)
    """
    weights = np.asarray(_check_sample_weight(sample_weight, x, dtype=np.float64))
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")
    if not weights.any():
        raise ValueError("sample_weight is zero in all rows; give at least one a positive weight")
    return weights


@dataclass(eq=False, repr=False, kw_only=True)
class RobustFit:
    """What the estimators share: the options of a fit, and the attributes that it leaves."""

    eps_bar: float | str = field(default="auto", kw_only=False)
    steps: int = 2
    n_starts: int | None = None
    tol: float = TOL
    max_iter: int = MAXITER
    random_state: Any = None

    def _counted(
        self, X: Any, sample_weight: Any, y: Any = "no_validation", **checks: Any
    ) -> CountedRows:
        """Check the data as scikit-learn does, and return the rows that count."""
        found = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, **checks)
        x, response = found if isinstance(found, tuple) else (found, None)
        weights = frequency_weights(sample_weight, x)
        used, names = weights > 0, getattr(self, "feature_names_in_", None)
        table = x[used]
        if names is not None:
            labels = X.index[used] if isinstance(X, pd.DataFrame) else None
            table = pd.DataFrame(table, labels, [str(name) for name in names])
        return CountedRows(
            x, response, table, None if sample_weight is None else weights[used], used
        )

    def _fit_model(self, model: RRMModel[Any, Any], rows: CountedRows) -> Any:
        """Fit a model with the options of the estimator; return results, keep what all tell."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            results = self._fitted(model)
        warn_again(found)
        self.results_ = results
        self.weights_ = rows.spread(results.weights)
        self.eps_bar_, self.eps_hat_ = float(results.eps_bar), float(results.eps_hat)
        self.n_iter_ = max(int(results.n_iter), 1)
        return results

    def _fitted(self, model: Any) -> Any:
        """Return the results of a model."""
        return model.fit(
            steps=self.steps,
            n_starts=self.n_starts,
            rng=random_source(self.random_state),
            tol=self.tol,
            maxiter=self.max_iter,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class LinearFit(RobustFit):
    """What regression and classification share: features with a constant, and coefficients."""

    fit_intercept: bool = True

    def _fit_linear(
        self, model: type[Any], rows: CountedRows, endog: Any, given: Any, **options: Any
    ) -> tuple[float, Array]:
        """Fit a linear model, and return the intercept, 0 where there is none, and the others.

        Parameters
        ----------
        model : class of a model
        rows : CountedRows
        endog : ndarray, shape (n,)
            Responses as numbers.
        given : array_like, shape (n,)
            The same as the user gave them, perhaps with a name.
        **options
            Passed on to the model.
        """
        check_flag("fit_intercept", self.fit_intercept)
        exog: Any = rows.table
        endog = np.asarray(endog, dtype=float)[rows.used]
        if isinstance(exog, pd.DataFrame):
            name = getattr(as_pandas(given), "name", None)
            endog = pd.Series(endog, exog.index, name=name if isinstance(name, str) else None)
            if self.fit_intercept:
                own = CONSTANT
                while own in exog:
                    own += "_"
                exog.insert(0, own, 1.0)
        elif self.fit_intercept:
            exog = np.column_stack([np.ones(len(exog)), exog])
        built = model(endog, exog, self.eps_bar, freq_weights=rows.counts, **options)
        results = self._fit_model(built, rows)
        self.outliers_ = rows.spread(results.outliers())
        params = np.asarray(results.params, dtype=float)
        return (float(params[0]), params[1:]) if self.fit_intercept else (0.0, params)


def warn_again(found: Iterable[warnings.WarningMessage]) -> None:
    """Give the warnings of a fit in the words and classes of scikit-learn."""
    for warning in found:
        text, kind = str(warning.message).replace("maxiter", "max_iter"), warning.category
        if issubclass(kind, sm_exceptions.ConvergenceWarning):
            kind = ConvergenceWarning
        warn(text, kind)


def check_flag(name: str, value: Any) -> None:
    """Raise where a parameter that is to be true or false is neither."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def random_source(random_state: Any) -> int | np.random.Generator | None:
    """Return the source of random subsets; None is the fixed one of rrmstats."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    return random_state
