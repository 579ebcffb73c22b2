"""What every model and its results share: the one place that touches statsmodels' machinery."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.base.model import LikelihoodModelResults, LikelihoodResultsWrapper
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base, fmt_params
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from rrmstats.core import Problem, Solution, minimise
from rrmstats.core.entropy import Array, check_eps_bar

# What statsmodels' formula interface passes on to the constructor.
FORMULA_KEYS = {"missing_idx", "formula", "design_info", "model_spec"}
# Rows in the summary's table of small weights.
SMALLEST = 5


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
        raise NotImplementedError

    def _start_theta(self, problem: Problem, start_params: npt.ArrayLike) -> Array:
        return np.asarray(start_params, dtype=float)

    def fit(
        self,
        *,
        n_starts: int | None = None,
        start_params: npt.ArrayLike | None = None,
        rng: int | np.random.Generator | None = None,
        tol: float = 1e-10,
        maxiter: int = 1000,
        accelerate: bool = True,
    ) -> Any:
        """Minimise the robust risk over parameters and weights together.

        Parameters
        ----------
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
        return self._results(problem, solution)

    def fit_regularized(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: statsmodels' regularised fit knows nothing of `eps_bar`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no fit_regularized: it would ignore eps_bar; use fit()"
        )


class RRMResults(LikelihoodModelResults):
    """Results of a fit by robust risk minimisation.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Consistent estimates.
    weights : ndarray, shape (n,)
        Probability weights of the observations; they sum to one.
    lambda_ : float
        Temperature: weights are proportional to ``exp(-losses / lambda_)``.
    losses : ndarray, shape (n,)
        Losses of the observations at the minimum.
    risk : float
        ``weights @ losses``.
    entropy : float
        Entropy of the weights.
    n_eff : float
        Exponential of the entropy: ``(1 - eps_bar) * nobs`` but for exact fits.
    n_kish : float
        Kish's effective sample size, ``1 / sum(weights ** 2)``.
    trace : DataFrame
        Risk, lambda, effective sample size and kind of each iteration.
    starts : DataFrame
        Kind and risk of each start.
    final_risks : ndarray
        Risks at the ends of the descents that were taken to the end.
    n_best : int
        How many of them reached the least risk.
    converged : bool
    n_iter : int
        Iterations of the best descent.
    """

    def __init__(
        self,
        model: Any,
        params: Array,
        solution: Solution,
        *,
        unit: float = 1.0,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(model, params, normalized_cov_params=None, scale=scale)
        self.eps_bar = model.eps_bar
        self.nobs = float(len(model.endog))
        self.weights = solution.weights
        self.losses = solution.losses * unit + shift
        self.risk = solution.risk * unit + shift
        self.lambda_ = solution.lambda_ * unit
        self.n_eff = solution.n_eff
        self.entropy = float(np.log(solution.n_eff))
        self.n_kish = kish_size(solution.weights, model._prior)
        self.converged = solution.converged
        self.n_iter = solution.n_iter
        self.final_risks = solution.final_risks * unit + shift
        self.n_best = solution.n_best
        self._steps = [
            step._replace(risk=step.risk * unit + shift, lambda_=step.lambda_ * unit)
            for step in solution.trace
        ]
        self._start_risks = solution.start_risks * unit + shift
        self._data_attr.extend(["weights", "losses"])

    @property
    def trace(self) -> pd.DataFrame:
        """Risk, lambda, effective sample size and kind of step, one row an iteration."""
        index = pd.RangeIndex(len(self._steps), name="iteration")
        return pd.DataFrame(self._steps, index, columns=["risk", "lambda_", "n_eff", "step"])

    @property
    def starts(self) -> pd.DataFrame:
        """Kind and risk of each start, before any step."""
        kinds = ["first"] + ["subset"] * (len(self._start_risks) - 1)
        return pd.DataFrame({"start": kinds, "risk": self._start_risks})

    def cov_params(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: no valid covariance of the estimates is available."""
        raise NotImplementedError(
            "standard errors of RRM estimates are not available: the weights are estimated, and "
            "the covariance of a weighted fit with known weights would be too small"
        )

    def _summary_top(self) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
        left = [
            self._summary_subject(),
            ("Model:", None),
            ("Date:", None),
            ("Time:", None),
            ("No. Observations:", None),
            ("Converged:", ["yes" if self.converged else "NO"]),
            ("Iterations:", [str(self.n_iter)]),
        ]
        right = [
            ("eps_bar:", [f"{self.eps_bar:g}"]),
            ("lambda:", [f"{self.lambda_:.5g}"]),
            ("Risk:", [f"{self.risk:.5g}"]),
            ("Effective size (entropy):", [f"{self.n_eff:.1f}"]),
            ("Effective size (Kish):", [f"{self.n_kish:.1f}"]),
            ("Starts:", [str(len(self._start_risks))]),
            ("Ends at least risk:", [f"{self.n_best} of {len(self.final_risks)}"]),
        ]
        return left, right

    def _summary_subject(self) -> tuple[str, Any]:
        return ("Dep. Variable:", None)

    def _summary_title(self) -> str:
        return "Robust Risk Minimization Results"

    def _params_table(self) -> SimpleTable:
        cells = [
            [f"{value:.4f}" if 1e-4 <= abs(value) < 1e5 else f"{value:.4g}"]
            for value in np.asarray(self.params)
        ]
        return SimpleTable(cells, ["coef"], list(self.model.exog_names), txt_fmt=fmt_params)

    def _smallest_weights(self) -> SimpleTable:
        """Return the rows of smallest weight, named by their index."""
        relative = np.asarray(self.weights) / uniform_weights(self.model._prior, len(self.weights))
        rows = np.argsort(relative, kind="stable")[:SMALLEST]
        labels = self.model.data.row_labels
        names = [str(i if labels is None else labels[i]) for i in rows]
        cells = [[f"{relative[i]:.4f}", f"{self.losses[i]:.5g}"] for i in rows]
        return SimpleTable(
            cells, ["weight * n", "loss"], names, "Smallest weights", txt_fmt=fmt_base
        )

    def _notes(self) -> list[str]:
        notes = [
            "Standard errors are not available: the weights are estimated with the parameters."
        ]
        if self.lambda_ == 0:
            notes.append(
                "Exact fit: the observations with weight share the smallest loss; lambda is 0."
            )
        if not self.converged:
            notes.append("The risk had not settled; raise maxiter.")
        return notes

    def summary(self, yname: str | None = None, title: str | None = None) -> Summary:
        """Return the fit as statsmodels' tables.

        Parameters
        ----------
        yname : str, optional
            Name of the dependent variable.
        title : str, optional
            Title of the tables.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        table = Summary()
        left, right = self._summary_top()
        table.add_table_2cols(
            self, title=title or self._summary_title(), gleft=left, gright=right, yname=yname
        )
        table.tables.append(self._params_table())
        table.tables.append(self._smallest_weights())
        table.add_extra_txt([f"[{i}] {note}" for i, note in enumerate(self._notes(), 1)])
        return table


class RRMResultsWrapper(LikelihoodResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]] = {
        **LikelihoodResultsWrapper._wrap_attrs,
        "weights": "rows",
        "losses": "rows",
    }


def kish_size(weights: Array, prior: Array | None) -> float:
    """Return Kish's effective sample size; a row of prior weight 2 counts as two rows."""
    if prior is None:
        return float(1.0 / np.sum(weights**2))
    used = weights > 0
    return float(1.0 / np.sum(weights[used] ** 2 / prior[used]))


def uniform_weights(prior: Array | None, n: int) -> Array:
    """Return the weights of largest entropy: equal, or proportional to the prior ones."""
    if prior is None:
        return np.full(n, 1.0 / n)
    return np.where(prior > 0, prior, 1.0) / prior.sum()


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


def check_numbers(name: str, values: Any) -> None:
    """Raise where data hold text or nothing, naming the columns."""
    advice = "convert them, or use a formula, which codes categories"
    if isinstance(values, pd.DataFrame):
        bad = [str(c) for c, dtype in values.dtypes.items() if not _numeric(values[c], dtype)]
        if bad:
            raise ValueError(f"{name} must be numbers, but not so {', '.join(bad)}: {advice}")
    elif not _numeric(values, getattr(values, "dtype", None)):
        raise ValueError(f"{name} must be numbers, got {np.asarray(values).dtype}: {advice}")
    if np.size(values) == 0:
        raise ValueError(f"{name} is empty; give at least as many rows as parameters")


def _numeric(values: Any, dtype: Any) -> bool:
    """Tell whether values are numbers or can be read as such."""
    if dtype is not None and pd.api.types.is_numeric_dtype(dtype):
        return True
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return False
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array.dtype.kind in "biuf"
    return all(isinstance(v, int | float | np.number | None) for v in array.ravel())


def check_finite(name: str, values: Array) -> None:
    """Raise where data hold NaN or infinities."""
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"{name} contains {bad} NaN or infinite values; drop these rows, or use "
            "missing='drop' (NaN only)"
        )
