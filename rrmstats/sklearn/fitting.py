"""Fits of models with the options of an estimator, and the attributes that they leave."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from statsmodels.tools import sm_exceptions

from rrmstats.core.entropy import Array
from rrmstats.models.base import RRMModel
from rrmstats.results.stability import caller_level
from rrmstats.sklearn.rows import CountedRows

# Seeds that numpy's RandomState can draw.
MOST_SEED = 2**31 - 1


class RobustFit:
    """What the estimators share: the options of a fit, and the attributes that it leaves."""

    steps: int
    efficiency: float | str | None
    n_starts: int | None
    tol: float
    max_iter: int
    random_state: Any

    def _fit_model(self, model: RRMModel[Any, Any], rows: CountedRows) -> Any:
        """Fit a model with the options of the estimator; return results, keep what all tell."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            results = model.fit(
                steps=self.steps,
                efficiency=self.efficiency,
                n_starts=self.n_starts,
                rng=random_source(self.random_state),
                tol=self.tol,
                maxiter=self.max_iter,
            )
        warn_again(found)
        self.results_ = results
        self.weights_ = rows.spread(results.weights)
        self.eps_bar_, self.eps_hat_ = float(results.eps_bar), float(results.eps_hat)
        self.n_iter_ = max(int(results.n_iter), 1)
        return results


def warn_again(found: Iterable[warnings.WarningMessage]) -> None:
    """Give the warnings of a fit in the words and classes of scikit-learn."""
    for warning in found:
        text, kind = str(warning.message).replace("maxiter", "max_iter"), warning.category
        if issubclass(kind, sm_exceptions.ConvergenceWarning):
            kind = ConvergenceWarning
        warnings.warn(text, kind, stacklevel=caller_level())


def check_flag(name: str, value: Any) -> None:
    """Raise where a parameter that is to be true or false is neither."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def random_source(random_state: Any) -> int | np.random.Generator | None:
    """Return the source of random subsets; None is the fixed one of rrmstats."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MOST_SEED))
    return random_state


def split_constant(params: Any, constant: bool) -> tuple[float, Array]:
    """Return the intercept, 0 where there is none, and the coefficients of the features."""
    values = np.asarray(params, dtype=float)
    return (float(values[0]), values[1:]) if constant else (0.0, values)
