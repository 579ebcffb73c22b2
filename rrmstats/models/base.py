"""What every model shares: the one flow from a problem through its steps to results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.tools.sm_exceptions import ConvergenceWarning, ModelWarning

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.setting import MAXITER, TOL, Setting, ThetaStep
from rrmstats.core.steps import take_steps
from rrmstats.interchange import as_pandas, as_values
from rrmstats.models.bootstrap import Bootstrap
from rrmstats.models.bounding import BoundedModel
from rrmstats.models.bounds import (
    EPS_BAR_MAX,
    checked_bound,
    checked_most,
    checked_stability,
    warn_of_bound,
)
from rrmstats.models.checks import DEPRECATED, check_finite, check_frame, checked_steps
from rrmstats.models.descriptions import counted, describe
from rrmstats.models.grouping import (
    GroupedModel,
    chosen_cov_type,
    column_labels,
    grouped_step,
    of_subset,
    row_problem,
)
from rrmstats.models.partitioned import (
    BESIDE_FRAME,
    PartitionedModel,
    check_partitioned,
    held_formula,
)
from rrmstats.models.paths import fit_path
from rrmstats.models.refusals import RefusingModel
from rrmstats.partitions.formulas import readable_frame
from rrmstats.partitions.sources import is_dask_frame
from rrmstats.results.base import RRMResults
from rrmstats.results.bound import caller_level
from rrmstats.results.explanations import AT_LARGEST, at_bound
from rrmstats.results.inference import COV_TYPES, Inference, check_inference, row_dependence
from rrmstats.results.path_results import RRMPath
from rrmstats.results.row_order import check_order
from rrmstats.results.stability import Stability, UnstableWarning
from rrmstats.results.wrapper import RRMResultsWrapper

if TYPE_CHECKING:
    from typing_extensions import Self

ProblemT = TypeVar("ProblemT", bound=EstimableProblem)
ResultsT = TypeVar("ResultsT", bound=RRMResults)


class RRMModel(
    BoundedModel, GroupedModel, PartitionedModel, RefusingModel, Generic[ProblemT, ResultsT]
):
    """Mixin for models fitted by robust risk minimization.

    It stands before a statsmodels model among the bases of a class, adds `eps_bar` and replaces
    `fit`. A model defines `problem` and the two classes of its results.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
    >>> isinstance(model, rrmstats.models.RRMModel), model
    (True, <RRMOLS: log_light ~ log_te, 47 observations, 2 parameters, eps_bar=0.2>)
    """

    _data_attr: list[str]
    _cov_types: ClassVar[tuple[str, ...]] = COV_TYPES
    _results_class: ClassVar[type[RRMResults]]
    _wrapper_class: ClassVar[type[RRMResultsWrapper]]

    def _set_options(
        self, eps_bar: Any, freq_weights: Any, eps_bar_max: Any = EPS_BAR_MAX, groups: Any = None
    ) -> None:
        """Keep `eps_bar`, and frequency weights and groups of the rows that statsmodels kept."""
        self.eps_bar, self.eps_bar_max = checked_bound(eps_bar), checked_most(eps_bar_max)
        if freq_weights is None:
            self.freq_weights = None
        else:
            self.freq_weights = np.asarray(self.freq_weights, np.float64)
            check_finite("freq_weights", self.freq_weights)
            self._data_attr.append("freq_weights")
        keys = [key for key in self._init_keys if key not in ("weights", "freq_weights")]
        self._init_keys = [*keys, "eps_bar", "eps_bar_max", "freq_weights"]
        self._check_orders(freq_weights=freq_weights, groups=groups)
        self._set_groups(groups)

    def _check_orders(self, **given: Any) -> None:
        """Raise where a Series with one entry per row has the rows in another order."""
        data = getattr(self, "data", None)
        labels, dropped = (getattr(data, key, None) for key in ("row_labels", "missing_row_idx"))
        for name, values in given.items():
            if values is not None:
                check_order(name, values, labels, dropped)

    def __repr__(self) -> str:
        return describe(self)

    def _traits(self) -> list[str]:
        """Return what tells the model from others, for its description."""
        return [counted(len(self.data.param_names), "parameter")]

    def _check_kwargs(self, *args: object, **kwargs: object) -> None:
        """Leave the check of keywords to `check_kwargs`."""

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame | Mapping[str, Any],
        eps_bar: float | str = "auto",
        subset: ArrayLike | None = None,
        drop_cols: list[str] | None = None,
        *,
        eval_env: Any = 0,
        **kwargs: Any,
    ) -> Self:
        """Create a model from a formula and a data frame.

        Parameters
        ----------
        formula : str
            Formula of the model, as statsmodels takes it. For models of several variables it is
            one-sided, such as ``"~ a + b + np.log(c)"``, and an intercept plays no part.
        data : DataFrame or mapping
            The variables of the formula.
        eps_bar : float or "auto", optional
            Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the
            data.
        subset : array_like, optional
            Rows of `data` to use.
        drop_cols : list of str, optional
            Columns to drop from the design.
        eval_env : int or patsy.EvalEnvironment, optional
            Where functions in the formula are looked up, as in statsmodels.
        **kwargs
            What the class takes besides its data, such as `freq_weights` and `groups`.

        Returns
        -------
        model
            The model; call its `fit`.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.RRMOLS.from_formula("log_light ~ log_te", stars, eps_bar=0.2)
        >>> model.exog_names
        ['Intercept', 'log_te']
        """
        checked_bound(eps_bar)
        held, made = None, None
        data, subset = as_pandas(data), as_values(subset)
        kwargs = {name: as_values(value) for name, value in kwargs.items()}
        if is_dask_frame(data):
            check_partitioned(subset, kwargs)
            held, made, data = held_formula(formula, data, eval_env, drop_cols, kwargs)
        check_frame(data)
        if isinstance(data, pd.DataFrame):
            data = readable_frame(data, formula)
        if kwargs.get("groups") is not None:
            kwargs["groups"] = column_labels(kwargs["groups"], data)
        if subset is not None:
            data = pd.DataFrame(data)
            given = [name for name in (*BESIDE_FRAME, "groups") if kwargs.get(name) is not None]
            kwargs |= {name: of_subset(kwargs[name], data, subset) for name in given}
        if isinstance(eval_env, int) and eval_env != -1:
            eval_env += 2  # this frame, and that of `_from_design`
        model = cls._from_design(
            formula, data, subset, drop_cols, eps_bar=eps_bar, eval_env=eval_env, **kwargs
        )
        model._hold(held, made)
        return model

    @classmethod
    def _from_design(
        cls, formula: str, data: Any, subset: Any, drop_cols: Any, **kwargs: Any
    ) -> Self:
        """Make the design and the model; `eval_env` counts frames from the caller's on."""
        env = kwargs.pop("eval_env")
        if isinstance(env, int) and env != -1:
            env += 1  # statsmodels' own frame
        return super().from_formula(  # type: ignore[misc]  # statsmodels' model
            formula, data, subset, drop_cols, eval_env=env, **kwargs
        )

    def problem(self) -> ProblemT:
        """Return the losses and their weighted fit, as the core minimizes them."""
        raise NotImplementedError

    def _start_theta(self, problem: ProblemT, start_params: ArrayLike) -> Array:
        """Return parameters that a user gave in the coordinates of the problem."""
        return np.asarray(start_params, dtype=float)

    def _theta_step(self, problem: ProblemT) -> ThetaStep | None:
        """Return statsmodels' weighted fit as the step of Algorithm 1, where it has one."""
        return None

    def fit(
        self,
        *,
        steps: int = 2,
        n_starts: int | None = None,
        start_params: ArrayLike | None = None,
        rng: int | np.random.Generator | None = None,
        tol: float = TOL,
        maxiter: int = MAXITER,
        accelerate: bool = True,
        cov_type: str | None = None,
        cov_kwds: Mapping[str, Any] | None = None,
        use_t: bool | None = None,
        stability: bool = True,
        efficiency: float | str | None = DEPRECATED,
    ) -> ResultsT:
        """Minimize the robust risk over parameters and weights together.

        Parameters
        ----------
        steps : {2, 1}, optional
            1 for the estimate of least risk, the paper's. 2, the default, fits the paper's model
            of the data from there, good rows and bad ones: it has the precision of a fit to the
            good rows, and tells how likely each row is to be bad. Losses without a distribution
            have one step.
        n_starts : int, optional
            Random subsets from which the global minimum is sought, besides the uniform and the
            spectral starts; by default 20 to 2,000, more where `eps_bar` and the number of
            parameters are larger. 0 descends from the paper's uniform weights alone.
        start_params : array_like, optional
            Parameters to start from in place of uniform weights.
        rng : int or numpy.random.Generator, optional
            Source of the random subsets; by default a fixed one, so that results repeat.
        tol : float, optional
            Size of the last step, in the metric of the risk.
        maxiter : int, optional
            Iterations that a descent may take.
        accelerate : bool, optional
            False takes only the steps of the paper's Algorithm 1;
            ``fit(n_starts=0, accelerate=False)`` is that algorithm step for step, with
            statsmodels' weighted fit in each.
        cov_type : {"sandwich", "cluster", "HAC", "bootstrap"}, optional
            How standard errors are found: "sandwich" by default, "cluster" by the groups of a
            model that has `groups`. `RRMOLS` also has "nonrobust", for noise that does not change
            with the predictors. All account for the weights being estimated.
        cov_kwds : dict, optional
            For "cluster" `groups`, an array or Series of labels; for "HAC" `maxlags`, the number
            of rows, in the order of time, over which they depend; for "bootstrap" what
            `rrmstats.models.Bootstrap` takes.
        use_t : bool, optional
            Whether tests use Student's t distribution; by default for linear regression.
        stability : bool, optional
            Whether the fit is compared with fits that have a larger `eps_bar`; of more than
            20,000 rows this takes a fit to a sample of them.
        efficiency : float or None, optional
            Deprecated: None is ``steps=1``, a number ``steps=2``.

        Returns
        -------
        RRMResults
            The fit. Nothing is written on the model.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
        >>> res = model.fit()
        >>> bool(res.bse["log_te"] < res.first_step.bse["log_te"])
        True
        """
        steps = checked_steps(steps, efficiency)
        inference = self._inference(cov_type, cov_kwds or {}, use_t)
        bootstrap = Bootstrap(**inference.cov_kwds) if cov_type == "bootstrap" else None
        setting = Setting(
            0.0, self._search_counts, n_starts, rng, tol, maxiter, accelerate, stability=stability
        )
        model, robust = self._with_choice(setting)
        problem = model._search_problem() if robust is None else robust.problem
        rows: ProblemT = row_problem(problem)
        theta_step = None
        if not accelerate and self._held is None:
            theta_step = grouped_step(model._theta_step(rows), problem)
        setting = replace(setting, eps_bar=model._bound, theta_step=theta_step)
        start = None if start_params is None else model._start_theta(rows, start_params)
        estimate = take_steps(problem, setting, start, steps, robust)
        warn_of_bound(problem, setting, automatic=model.choice is not None)
        model._warn(estimate)
        replicates = None if bootstrap is None else bootstrap.run(estimate)
        found = checked_stability(model, estimate)
        if not found.stable:
            warnings.warn(found.message, UnstableWarning, stacklevel=caller_level())
        results = model._results(estimate, replace(inference, replicates=replicates), found)
        binds = model.choice is not None and at_bound(estimate.eps_hat, estimate.setting.eps_bar)
        for text in (results._rival_note, AT_LARGEST if binds else ""):
            if text:
                warnings.warn(text, ModelWarning, stacklevel=caller_level())
        return results

    def path(
        self,
        eps_bar: ArrayLike | None = None,
        *,
        steps: int = 2,
        n_starts: int | None = None,
        rng: int | np.random.Generator | None = None,
        tol: float = TOL,
        maxiter: int = MAXITER,
        cov_type: str | None = None,
        cov_kwds: Mapping[str, Any] | None = None,
        use_t: bool | None = None,
        progress: bool | None = None,
        efficiency: float | str | None = DEPRECATED,
    ) -> RRMPath:
        """Fit the model at each of several bounds on the corrupted fraction.

        Each fit is the global minimum, as `fit` finds it, at a fraction of the cost: minima are
        followed from one bound to the next, in both directions.

        Parameters
        ----------
        eps_bar : array_like, optional
            The bounds, in [0, 1); by default 0, 0.02, ..., up to the largest,
            ``(nobs - k) / (2 nobs)``. The model's own `eps_bar` plays no part.
        steps : {2, 1}, optional
            Number of steps of each fit; see `fit`.
        n_starts, rng, tol, maxiter, cov_type, cov_kwds, use_t : optional
            As `fit` takes them.
        progress : bool, optional
            Show a progress bar, through tqdm, where the path takes more than two seconds; by
            default on a terminal where tqdm is installed.
        efficiency : float or None, optional
            Deprecated; see `fit`.

        Returns
        -------
        RRMPath
            The results at each bound, and what changes along them.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> path = rrmstats.ols("y ~ x1 + x2 + x3", hbk).path([0, 0.1, 0.2])
        >>> path.frame["explanation"].unique().tolist()
        ['none', 'cluster']
        """
        steps = checked_steps(steps, efficiency)
        self._refuse_partitions("path", "take a sample of the rows, data.sample(frac=...)")
        inference = self._inference(cov_type, cov_kwds or {}, use_t)
        bootstrap = Bootstrap(**inference.cov_kwds) if cov_type == "bootstrap" else None
        setting = Setting(0.0, self._search_counts, n_starts, rng, tol, maxiter)
        return fit_path(
            self._path_model(), eps_bar, steps, setting, inference, bootstrap, progress
        )

    def _path_model(self) -> Self:
        """Return the model whose parameters are the same at all bounds."""
        return self

    def _inference(
        self, cov_type: str | None, cov_kwds: Mapping[str, Any], use_t: bool | None
    ) -> Inference:
        """Return how standard errors are found; the bootstrap has yet to run."""
        cov_type = chosen_cov_type(cov_type, cov_kwds, self._weighs_groups)
        self._check_inference(cov_type)
        if self._weighs_groups and cov_type == "cluster":
            return Inference(cov_type, cov_kwds, use_t, self._group_dependence(cov_kwds))
        check_inference(cov_type, cov_kwds, self._cov_types, self.freq_weights is not None)
        dependence = row_dependence(cov_type, cov_kwds, len(self.endog), self.data.row_labels)
        return Inference(cov_type, cov_kwds, use_t, dependence)

    def _warn(self, estimate: Estimate) -> None:
        """Warn where a step did not converge."""
        if estimate.solution.converged:
            return
        first = estimate.first is None or not estimate.first.solution.converged
        warnings.warn(
            f"the {'first' if first else 'second'} step did not converge within maxiter="
            f"{estimate.setting.maxiter} iterations; raise maxiter or try other starts",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )

    def _results(
        self, estimate: Estimate, inference: Inference, stability: Stability | None = None
    ) -> ResultsT:
        """Return results that hold all they need: they never search or fit."""
        first_step = None
        if estimate.first is not None:
            first_step = self._wrapped(estimate.first, inference.of_first_step(), None, None)
        return self._wrapped(estimate, inference, first_step, stability)

    def _wrapped(
        self,
        estimate: Estimate,
        inference: Inference,
        first_step: ResultsT | None,
        stability: Stability | None,
    ) -> ResultsT:
        results = self._results_class(self, estimate, inference, first_step)
        results.stability = stability or results.stability
        if self._held is not None:  # partitions may be gone when errors are read
            _ = results.cov_params_default
        # A wrapper has the attributes of the results, with the labels of the data.
        return self._wrapper_class(results)
