"""What the estimators share: rows that count, and the fit of a model to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight
from statsmodels.tools import sm_exceptions

from rrmstats.core.entropy import Array
from rrmstats.core.setting import MAXITER, TOL
from rrmstats.interchange import as_pandas
from rrmstats.models.base import RRMModel
from rrmstats.models.checks import warn

CONSTANT = "const"


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """The rows that count: those of positive weight.

    Attributes
    ----------
    x : ndarray, shape (m, d)
        Their features.
    counts : ndarray, shape (m,), or None
        How often each counts; None for once.
    used : ndarray of bool, shape (n,)
        Which of all rows they are.
    names : list of str or None
        Names of the features.
    index : pandas.Index or None
        Labels of the rows.
    """

    x: Array
    counts: Array | None
    used: np.ndarray
    names: list[str] | None
    index: pd.Index | None

    @property
    def total(self) -> float:
        """Number of rows; the sum of their counts where they have any."""
        return float(len(self.x) if self.counts is None else self.counts.sum())

    def table(self) -> Array | pd.DataFrame:
        """Return the features, shape (m, d), with their names where they have any."""
        return self._named(self.x, self.names)

    def design(self, constant: bool) -> Array | pd.DataFrame:
        """Return the design of a regression, a constant first where one is asked for."""
        if not constant:
            return self.table()
        names = None
        if self.names is not None:
            own = CONSTANT
            while own in self.names:
                own += "_"
            names = [own, *self.names]
        return self._named(np.column_stack([np.ones(len(self.x)), self.x]), names)

    def response(self, y: Array, given: Any) -> Array | pd.Series:
        """Return the response of these rows, shape (m,), labeled like the design.

        Parameters
        ----------
        y : ndarray, shape (n,)
            Response of all rows.
        given : array_like, shape (n,)
            The same as the user gave it, perhaps with a name.
        """
        values = np.asarray(y, dtype=float)[self.used]
        if self.names is None:
            return values
        name = getattr(as_pandas(given), "name", None)
        return pd.Series(values, index=self.index, name=name if isinstance(name, str) else None)

    def spread(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values of these rows among all rows, zero or False in the others, shape (n,)."""
        own = np.asarray(values)
        full = np.zeros(len(self.used), own.dtype)
        full[self.used] = own
        return full

    def _named(self, values: Array, names: list[str] | None) -> Array | pd.DataFrame:
        if names is None:
            return values
        return pd.DataFrame(values, columns=names, index=self.index)


def counted_rows(
    x: Array, given: Any, names: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None
) -> CountedRows:
    """Return the rows that count.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features of all rows.
    given : array_like, shape (n, d)
        The same as the user gave them, perhaps with labels.
    names : sequence of str or None
        Names of the features.
    sample_weight : array_like, shape (n,), or None
    """
    weights = frequency_weights(sample_weight, x)
    used = weights > 0
    index = given.index[used] if isinstance(given, pd.DataFrame) else None
    return CountedRows(
        x[used],
        None if sample_weight is None else weights[used],
        used,
        None if names is None else [str(name) for name in np.asarray(names)],
        index,
    )


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


def split_constant(params: Any, constant: bool) -> tuple[float, Array]:
    """Return the intercept, 0 where there is none, and the coefficients of the features."""
    values = np.asarray(params, dtype=float)
    return (float(values[0]), values[1:]) if constant else (0.0, values)
