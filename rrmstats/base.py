"""What every model and its results share: the one place that touches statsmodels' machinery."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.tools.sm_exceptions import ConvergenceWarning, MissingDataError

from rrmstats.core import Problem, Solution, minimise
from rrmstats.core.entropy import Array, check_eps_bar

# What statsmodels' formula interface passes on to the constructor.
FORMULA_KEYS = {"missing_idx", "formula", "design_info", "model_spec"}


class RRMModel:
    """Mixin for models fitted by robust risk minimisation.

    It stands before a statsmodels model among the bases of a class, adds `eps_bar` and replaces
    `fit`. A model defines `problem` and `_results`.
    """

    eps_bar: float
    _init_keys: list[str]
    _data_attr: list[str]
    #: Prior weights of the rows, or None where they are equal.
    _prior: Array | None = None

    def _set_eps_bar(self, eps_bar: Any) -> None:
        self.eps_bar = check_eps_bar(eps_bar)
        self._init_keys.append("eps_bar")

    def _set_prior(self, weights: Any) -> None:
        """Keep the prior weights of the rows that statsmodels kept; None where all are equal."""
        self._prior = None
        if weights is not None:
            self._prior = np.asarray(self.weights, np.float64)  # type: ignore[attr-defined]
            check_finite("weights", self._prior)
            self._data_attr.append("_prior")

    def _check_kwargs(self, *args: Any, **kwargs: Any) -> None:
        """Leave the check of keywords to `check_kwargs`."""

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        eps_bar: float | None = None,
        subset: Any = None,
        drop_cols: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Create a model from a formula and a data frame.

        Parameters
        ----------
        formula : str
            Formula of the model, as statsmodels takes it.
        data : DataFrame or mapping
            The variables of the formula.
        eps_bar : float
            Upper bound on the fraction of corrupted rows, in [0, 1).
        subset : array_like, optional
            Rows of `data` to use.
        drop_cols : list of str, optional
            Columns to drop from the design.
        *args, **kwargs
            Passed on to the model, but for `eval_env`, which goes to the formula engine.

        Returns
        -------
        model
            The model; call its `fit`.
        """
        check_required(eps_bar)
        check_frame(data)
        eval_env = kwargs.pop("eval_env", 0)
        if isinstance(eval_env, int) and eval_env != -1:
            eval_env += 2  # this frame and statsmodels' own stand between here and the caller
        return super().from_formula(  # type: ignore[misc]
            formula,
            data,
            subset,
            drop_cols,
            *args,
            eps_bar=eps_bar,
            eval_env=eval_env,
            **kwargs,
        )

    def problem(self) -> Problem:
        """Return the losses and their weighted fit, as the core minimises them."""
        raise NotImplementedError

    def _results(self, problem: Problem, solution: Solution) -> Any:
        """Return the results of the first step."""
        raise NotImplementedError

    def _second_step(self, first: Any, efficiency: float) -> Any:
        """Return the results of the second step, from those of the first."""
        raise NotImplementedError

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        return np.asarray(start_params, dtype=float)

    def fit(
        self,
        *,
        efficiency: float | None = None,
        n_starts: int | None = None,
        start_params: npt.ArrayLike | None = None,
        rng: int | np.random.Generator | None = None,
        tol: float = 1e-10,
        maxiter: int = 1000,
        accelerate: bool = True,
        cov_type: str = "sandwich",
        cov_kwds: dict[str, Any] | None = None,
        use_t: bool | None = None,
    ) -> Any:
        """Minimise the robust risk over parameters and weights together.

        Parameters
        ----------
        efficiency : float, optional
            Efficiency on clean data, in (0, 1), that a second step is to have: it starts from
            the minimum and keeps its robustness, but weighs down fewer rows. 0.95 is usual.
        n_starts : int, optional
            Random subsets from which the global minimum is sought. 0 descends from the paper's
            uniform weights alone.
        start_params : array_like, optional
            Parameters to start from in place of uniform weights.
        rng : int or numpy.random.Generator, optional
            Source of the random subsets; by default a fixed one, so that results repeat.
        tol : float, optional
            Size of the last step, in the metric of the risk.
        maxiter : int, optional
            Iterations a descent may take.
        accelerate : bool, optional
            False takes only the steps of the paper's Algorithm 1;
            ``fit(n_starts=0, accelerate=False)`` is that algorithm step for step.
        cov_type : {"sandwich", "cluster", "bootstrap"}, optional
            How standard errors are found. All of them account for the weights being estimated.
        cov_kwds : dict, optional
            For "cluster" `groups`, an array or Series of labels; for "bootstrap" what
            `rrmstats.bootstrap.Bootstrap` takes.
        use_t : bool, optional
            Whether tests use Student's t distribution; by default for linear regression.

        Returns
        -------
        RRMResults
            The fit. Nothing is written on the model.
        """
        problem = self.problem()
        solution = minimise(
            problem,
            self.eps_bar,
            n_starts=n_starts,
            start_theta=None if start_params is None else self._start_theta(problem, start_params),
            prior=self._prior,
            rng=rng,
            tol=tol,
            maxiter=maxiter,
            accelerate=accelerate,
        )
        if not solution.converged:
            warnings.warn(
                f"the risk had not settled after {solution.n_iter} iterations; raise maxiter "
                f"(now {maxiter}) or start elsewhere",
                ConvergenceWarning,
                stacklevel=2,
            )
        results = self._results(problem, solution)
        if efficiency is not None:
            if not 0 < efficiency < 1:
                raise ValueError(f"efficiency must be in (0, 1), got {efficiency!r}")
            # A bootstrap of the first step would take as long again.
            plain = cov_type == "bootstrap"
            results._results.set_covariance(
                "sandwich" if plain else cov_type, {} if plain else cov_kwds or {}, use_t
            )
            results = self._second_step(results, float(efficiency))
        results._results.set_covariance(cov_type, cov_kwds or {}, use_t)
        return results

    def fit_regularized(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: statsmodels' regularised fit knows nothing of `eps_bar`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no fit_regularized: it would ignore eps_bar; use fit()"
        )


def check_required(eps_bar: Any) -> None:
    """Raise where the one number that the method needs is missing."""
    if eps_bar is None:
        raise TypeError(
            "eps_bar is required: an upper bound on the fraction of corrupted rows, for example "
            "eps_bar=0.2"
        )


def check_kwargs(name: str, kwargs: dict[str, Any]) -> None:
    """Raise on keywords that no statsmodels interface passes."""
    unknown = sorted(set(kwargs) - FORMULA_KEYS)
    if unknown:
        raise TypeError(f"{name} got unknown keywords: {', '.join(unknown)}")


def check_frame(data: Any) -> None:
    """Raise where a data frame has no rows."""
    if hasattr(data, "__len__") and hasattr(data, "columns") and len(data) == 0:
        raise ValueError("data has no rows; give at least as many as there are parameters")


def check_numbers(name: str, values: Any) -> Any:
    """Return data as numbers; raise where they hold text or nothing, naming the columns."""
    advice = "convert them, or use a formula, which codes categories"
    if isinstance(values, pd.DataFrame):
        bad = [str(c) for c, dtype in values.dtypes.items() if not _numeric(values[c], dtype)]
        if bad:
            raise ValueError(f"{name} must be numbers, but not so {', '.join(bad)}: {advice}")
    elif not _numeric(values, getattr(values, "dtype", None)):
        raise ValueError(f"{name} must be numbers, got {np.asarray(values).dtype}: {advice}")
    if np.size(values) == 0:
        raise ValueError(f"{name} is empty; give at least as many rows as parameters")
    boxed = np.dtype("O")
    if isinstance(values, pd.DataFrame):
        return values.astype(float) if (values.dtypes == boxed).any() else values
    return values.astype(float) if getattr(values, "dtype", None) == boxed else values


def _numeric(values: Any, dtype: Any) -> bool:
    """Tell whether values are numbers or can be read as such."""
    if dtype is not None and pd.api.types.is_numeric_dtype(dtype):
        return not pd.api.types.is_complex_dtype(dtype)
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return False
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array.dtype.kind in "biuf"
    return all(isinstance(v, int | float | np.number | None) for v in array.ravel())


def check_weights(weights: Any, nobs: int) -> None:
    """Raise where prior weights are not one number a row, or negative."""
    check_numbers("weights", weights)
    values = np.asarray(weights, dtype=float)
    if values.ndim and values.size != nobs:
        raise ValueError(f"weights must be one number a row, {nobs} of them, got {values.size}")
    if (values < 0).any():
        raise ValueError(f"weights must not be negative, got {np.nanmin(values):g}")


def check_column(name: str, values: Any) -> None:
    """Raise where a variable has several columns."""
    shape = np.shape(values)
    if len(shape) > 1 and shape[1] > 1:
        raise ValueError(f"{name} must have one column, got {shape[1]}; fit each on its own")


@contextmanager
def readable_errors() -> Iterator[None]:
    """Say what to do where statsmodels' own errors do not."""
    try:
        yield
    except MissingDataError as error:
        if "inf or nans" not in str(error):
            raise
        raise MissingDataError(
            "exog contains NaN or infinite values; drop these rows, or use missing='drop' "
            "(NaN only)"
        ) from None
    except ValueError as error:
        if "zero-size array" not in str(error):
            raise
        raise ValueError("no rows are left once those with missing values are dropped") from None


def check_finite(name: str, values: Array) -> None:
    """Raise where data hold NaN or infinities."""
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"{name} contains {bad} NaN or infinite values; drop these rows, or use "
            "missing='drop' (NaN only)"
        )
