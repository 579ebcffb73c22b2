"""What every model shares: the one flow from a problem through its steps to results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from patsy import EvalEnvironment
from statsmodels.tools.sm_exceptions import (
    ConvergenceWarning,
    ModelWarning,
    SingularMatrixWarning,
)

from rrmstats.core import steps as two_steps
from rrmstats.core.block_array import blocked, on_rows, taken
from rrmstats.core.blocks import deciding_places
from rrmstats.core.choice import STEP, Choice, chosen
from rrmstats.core.comparison import Agreement, compare
from rrmstats.core.design import hat_values
from rrmstats.core.entropy import Array, check_eps_bar
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.grouped import GroupedProblem, Groups
from rrmstats.core.path import solution_path
from rrmstats.core.problem import Problem
from rrmstats.core.rounds import in_rounds
from rrmstats.core.sandwich import Dependence
from rrmstats.core.search import minimize
from rrmstats.core.setting import MAXITER, TOL, Setting
from rrmstats.core.tolerances import ROUNDING
from rrmstats.interchange import as_pandas, as_values, is_dask, is_dask_frame, readable_frame
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.models import checks
from rrmstats.models.bootstrap import Bootstrap
from rrmstats.models.removal import RobustRemoval
from rrmstats.optional import with_progress
from rrmstats.partitions.formulas import FormulaDesign
from rrmstats.partitions.rows import (
    BESIDE,
    PartitionedRows,
    array_rows,
    formula_rows,
    predictor_rows,
)
from rrmstats.results.base import OPTIMIZER, RRMResults, ignoring, labeled_results, without
from rrmstats.results.explanations import AT_LARGEST, Stability, UnstableWarning, at_bound
from rrmstats.results.inference import (
    COV_TYPES,
    Inference,
    check_order,
    checked_cov_type,
    group_numbers,
    label_array,
    row_dependence,
)
from rrmstats.results.labels import labeled
from rrmstats.results.path_results import RRMPath
from rrmstats.results.removal import FewRows

if TYPE_CHECKING:
    from typing_extensions import Self

ProblemT = TypeVar("ProblemT", bound=EstimableProblem)
ResultsT = TypeVar("ResultsT", bound=RRMResults)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
# Arguments of models with one value per row that may be given beside a frame.
BESIDE_FRAME = ("freq_weights", "offset", "exposure", "var_weights")
#: Methods of statsmodels' models that would ignore `eps_bar`, and what to use instead.
LIKELIHOOD = (
    "a likelihood counts bad rows like others; the losses are those of problem(), and "
    "results have cov_params() and compare()"
)
REFUSED = {
    **dict.fromkeys(("loglike", "loglikeobs", "loglike_mu"), LIKELIHOOD),
    **dict.fromkeys(("score", "score_obs", "score_factor"), LIKELIHOOD),
    **dict.fromkeys(("hessian", "hessian_factor", "information"), LIKELIHOOD),
    "score_test": "a score test counts bad rows like others; use wald_test() of the results",
    "fit_regularized": "it would ignore eps_bar; use fit()",
    "fit_constrained": "it would ignore eps_bar; use fit() and wald_test() of the results",
    "cov_params_func_l1": "it is part of fit_regularized(); use fit() and cov_params()",
    "estimate_scale": "it counts bad rows like others; use scale of the results",
    "estimate_tweedie_power": (
        "it counts bad rows like others; fit with several var_power= and compare flags"
    ),
}


class RRMModel(Generic[ProblemT, ResultsT]):
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

    #: The bound on the share of bad rows, or "auto".
    eps_bar: float | str
    eps_bar_max: float
    #: How an automatic bound was chosen; None for one that was given.
    choice: Choice | None = None
    #: Arrays of the model with one entry or row per row of the data.
    _row_arrays: ClassVar[tuple[str, ...]] = ("endog", "exog", "freq_weights", "groups")
    _init_keys: list[str]
    _data_attr: list[str]
    endog: Array
    data: Any
    #: How often each row counts; None where each counts once.
    freq_weights: Array | None
    #: Labels of the groups of the rows that the model has, shape (n,); None without groups.
    groups: np.ndarray | None = None
    #: The groups, and their labels in the order of their first rows; None without groups.
    row_groups: Groups | None = None
    group_labels: pd.Index | None = None
    #: The rows in partitions; None where they are in memory.
    partitioned_rows: PartitionedRows | None = None
    #: Why fits with different bounds cannot be compared; empty where they can.
    incomparable: str = ""
    #: What is added to the linear predictors of the rows of the fit.
    fitted_offset: Array | float = 0.0
    #: The formula, as partitions and new rows of several variables evaluate it.
    _formula_design: FormulaDesign | None = None
    _cov_types: tuple[str, ...] = COV_TYPES
    #: Methods that a model does not have, besides `REFUSED`, and what to use instead.
    _refusals: ClassVar[dict[str, str]] = {}
    _results_class: type[RRMResults]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, reason in {**REFUSED, **cls._refusals}.items():
            if name in vars(cls):
                continue
            owner = next((kind for kind in cls.__mro__ if name in vars(kind)), object)
            if name in cls._refusals or owner.__module__.startswith("statsmodels"):
                setattr(cls, name, _refusal(name, reason))

    def _set_options(
        self, eps_bar: Any, eps_bar_max: Any, groups: Any = None, **rows: Any
    ) -> None:
        """Keep the bounds and groups, and check what statsmodels kept of arrays of the rows."""
        self.eps_bar = checks.checked_bound(eps_bar)
        self.eps_bar_max = checks.checked_most(eps_bar_max)
        if rows.get("freq_weights") is None:
            self.freq_weights = None
        else:
            self.freq_weights = np.asarray(self.freq_weights, np.float64)
            self._data_attr.append("freq_weights")
        keys = [key for key in self._init_keys if key not in ("weights", "freq_weights")]
        self._init_keys = [*keys, "eps_bar", "eps_bar_max", "freq_weights", "groups"]
        labels = getattr(self.data, "row_labels", None)
        for name, values in {**rows, "groups": groups}.items():
            check_order(name, values, labels, self._dropped)
            if values is not None and name != "groups":
                checks.check_finite(name, np.asarray(getattr(self, name), float))
        if groups is not None:
            self.groups = label_array(groups, len(self.endog), None, self._dropped)
            group_numbers(self.groups)
            self._number_groups()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise for what statsmodels' `fit` writes on a model, and for what there is not."""
            if name.startswith("_") or hasattr(type(self), name):  # a property raised it
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}: fit() writes nothing on the model, see "
                "the results that it returns"
            )

    def _checked(
        self,
        eps_bar: Any,
        given: dict[str, Any],
        *,
        eps_bar_max: float = checks.EPS_BAR_MAX,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> tuple[PartitionedRows | None, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what the options that all models have make of the arrays of a model.

        Parameters
        ----------
        eps_bar, eps_bar_max, freq_weights, groups, missing, persist
            As the constructors take them.
        given : dict
            Arrays of the model by name; those besides `endog` and `exog` have one number per row.
        **kwargs
            Other keywords, which only statsmodels' formulas may pass.

        Returns
        -------
        held : PartitionedRows or None
            The rows in partitions, if there are any.
        rows : dict
            The arrays, with frequency weights, or samples of them.
        passed : dict
            What statsmodels' constructor takes besides.
        kept : dict
            What `_set_options` takes besides the rows.
        """
        checks.checked_bound(eps_bar)
        checks.check_kwargs(type(self).__name__, kwargs)
        given = {**given, "freq_weights": freq_weights}
        if "exog" in given and given["exog"] is None:
            raise ValueError("exog is required; for an intercept alone use a column of ones")
        rows, held = ("endog", "exog"), None
        given = {name: as_pandas(v) if name in rows else as_values(v) for name, v in given.items()}
        if any(is_dask(values) for values in given.values()):
            used = {name: values for name, values in given.items() if values is not None}
            for name, values in used.items():
                checks.check_kinds(name, getattr(values, "_meta", values))
            held, samples = array_rows(used, missing, persist)
            given = {name: samples.get(name) for name in given}
        given = {n: np.asarray(v) if isinstance(v, list | tuple) else v for n, v in given.items()}
        dropped = kwargs.get("missing_idx")
        nobs = (np.shape(given["endog"] if dropped is None else dropped) or (1,))[0]
        for name, values in given.items():
            if name == "exog":
                given[name] = checks.check_numbers(name, values)
            elif name != "endog":
                given[name] = checks.per_row(name, values, nobs)
        kept = {"eps_bar": eps_bar, "eps_bar_max": eps_bar_max, "groups": groups}
        return held, given, {"missing": missing, **kwargs}, kept

    @property
    def exog_names(self) -> list[str]:
        """Names of the parameters."""
        return self.data.param_names

    def __repr__(self) -> str:
        groups = [] if self.group_labels is None else [f"{len(self.group_labels)} groups"]
        rows = self.nobs if hasattr(self, "nobs") else len(self.endog)
        told = [f"{rows:.0f} observations", *groups, *self._traits()]
        bound = repr(checks.AUTO) if self.eps_bar == checks.AUTO else f"{self.eps_bar:g}"
        if hasattr(self, "formula"):
            told.insert(0, str(self.formula))
        return f"<{type(self).__name__}: {', '.join(told)}, eps_bar={bound}>"

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
        missing: str = "drop",
        eval_env: Any = 0,
        **kwargs: Any,
    ) -> Self:
        """Create a model from a formula and a data frame.

        Parameters
        ----------
        formula : str
            Such as ``"y ~ x1 + C(group)"``, as statsmodels takes it. For models of several
            variables it is one-sided, such as ``"~ a + b + np.log(c)"``, and an intercept plays
            no part.
        data : DataFrame or mapping
            The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
        eps_bar : float or "auto", optional
            Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the
            data.
        subset : array_like, optional
            Rows of `data` to use, as labels or a mask.
        drop_cols : list of str, optional
            Columns to drop from the design.
        missing : {"drop", "raise"}, optional
            What to do with rows that have missing values.
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
        checks.checked_bound(eps_bar)
        names = checks.names_of_caller(eval_env, 1)
        held, design = None, None
        data, subset = as_pandas(data), as_values(subset)
        kwargs = {name: as_values(value) for name, value in kwargs.items()} | {"missing": missing}
        beside = [name for name in (*BESIDE_FRAME, "groups") if kwargs.get(name) is not None]
        kwargs |= {name: checks.named_column(name, kwargs[name], data) for name in beside}
        with checks.naming_columns(formula, data):
            if is_dask_frame(data):
                held, design, data = held_formula(formula, data, names, drop_cols, subset, kwargs)
            checks.check_frame(data)
            if isinstance(data, pd.DataFrame):
                data = readable_frame(data, formula)
            if subset is not None:
                data = pd.DataFrame(data)
                kwargs |= {name: checks.of_subset(kwargs[name], data, subset) for name in beside}
            model = cls._from_design(
                formula, data, subset, drop_cols, eps_bar=eps_bar, eval_env=names, **kwargs
            )
        model._hold(held, design)
        return model

    @classmethod
    def _from_design(
        cls, formula: str, data: Any, subset: Any, drop_cols: Any, **kwargs: Any
    ) -> Self:
        """Make the design and the model; `eval_env` has the names of the formula."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "EvalEnvironment is deprecated", FutureWarning)
            return super().from_formula(  # type: ignore[misc]  # statsmodels' model
                formula, data, subset, drop_cols, **kwargs
            )

    def problem(self) -> ProblemT:
        """Return the losses and their weighted fit, as the core minimizes them."""
        raise NotImplementedError

    def _start_theta(self, problem: ProblemT, start_params: ArrayLike) -> Array:
        """Return parameters that a user gave in the coordinates of the problem."""
        return checks.checked_start(start_params, self.exog_names)

    @ignoring(OPTIMIZER)
    @without(scale="it is estimated from the good rows; see scale of the results")
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
        method: str | None = None,
        disp: bool | int = False,
        full_output: bool = True,
        callback: Callable[[Array], Any] | None = None,
        warn_convergence: bool = True,
        skip_hessian: bool = False,
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
            spectral starts; by default 5 to 2,000, more where `eps_bar` and the number of
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
            ``fit(n_starts=0, accelerate=False)`` is that algorithm step for step.
        cov_type : {"sandwich", "cluster", "HAC", "bootstrap"}, optional
            How standard errors are found: "sandwich" by default, "cluster" by the groups of a
            model that has `groups`. `RRMOLS` also has "nonrobust", for noise that does not change
            with the predictors. All account for the weights being estimated. statsmodels' "HC0",
            "HC1", "HC2", "HC3" and "robust" all are "sandwich". With ``eps_bar=0`` it is "HC3" of
            linear and generalized linear models, and "HC0" of labels.
        cov_kwds : dict, optional
            For "cluster" `groups`, an array or Series of labels, or a column of the data of a
            formula, or a pair of these for clusters of two kinds; for "HAC" `maxlags`, the number
            of rows, in the order of time, over which they depend; for "bootstrap" what
            `rrmstats.models.Bootstrap` takes.
        use_t : bool, optional
            Whether tests use Student's t distribution; by default for linear regression.
        stability : bool, optional
            Whether the fit is compared with fits that have a larger `eps_bar`; of more than
            20,000 rows this takes a fit to a sample of them.
        method, disp, full_output, callback, warn_convergence, skip_hessian : optional
            Options of statsmodels' optimizers, which play no part here: they and others, such as
            `ftol`, are accepted so that code written for statsmodels runs.

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
        steps = checks.checked_steps(steps)
        inference = self.inference(cov_type, cov_kwds or {}, use_t)
        setting = self._setting(
            n_starts=n_starts, rng=rng, tol=tol, maxiter=maxiter, accelerate=accelerate
        )
        model, robust = self._with_choice(setting)
        setting = replace(setting, eps_bar=model._bound)
        # The same number, given, has the same fit: others do not begin at the largest bound.
        if robust and robust.problem.follows_first and not robust.problem.seeks_minima:
            robust = None
        decided = None
        if steps == 2 and setting.eps_bar > 0 and model._decides_on_sample:
            part = model._sampled()[0]
            asked = replace(setting, freq_weights=part._search_counts)
            decided = two_steps.take_steps(
                part._search_problem(), asked, robust=robust, stability=stability
            )
        known = robust if decided is None else None

        def run() -> tuple[Estimate, ResultsT]:
            problem = model._search_problem()
            rows: ProblemT = row_problem(problem)
            start = None if start_params is None else model._start_theta(rows, start_params)
            estimate = two_steps.take_steps(
                problem, setting, start, steps, known, stability, decided
            )
            return estimate, model.results_of(estimate, inference.resampled(estimate))

        rows = self.partitioned_rows
        if rows is None or rows.in_memory:
            estimate, results = run()
        else:
            estimate, results = in_rounds(rows.blocks, run, _numbers)
        warn_of_bound(estimate.problem, setting, automatic=model.choice is not None)
        model._warn(estimate)
        found = model._stability(estimate, decided, "" if stability else "stability=False")
        if not found.stable:
            checks.warn(found.message, UnstableWarning)
        results._results.stability = found
        binds = model.choice is not None and at_bound(estimate.eps_hat, estimate.setting.eps_bar)
        for text in results._rank_notes():
            checks.warn(text, SingularMatrixWarning)
        for text in (results._rival_note, AT_LARGEST if binds else ""):
            if text:
                checks.warn(text)
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
    ) -> RRMPath:
        """Fit the model at each of several bounds on the share of bad rows.

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
            default on terminals and in notebooks where tqdm is installed.

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
        steps = checks.checked_steps(steps)
        self.refuse_partitions("path", "take a sample of the rows, data.sample(frac=...)")
        inference = self.inference(cov_type, cov_kwds or {}, use_t)
        setting = self._setting(n_starts=n_starts, rng=rng, tol=tol, maxiter=maxiter)
        model = self._path_model()
        robust = model.with_eps_bar(checks.EPS_BAR_MAX)._search_problem()
        if eps_bar is None:
            grid = default_grid(two_steps.largest_bound(robust, setting.wnobs(robust.n_obs)))
        else:
            grid = check_grid(eps_bar)
        parts = [(robust, grid[grid > 0])]
        if grid[0] == 0:
            parts.insert(0, (model.with_eps_bar(0.0)._search_problem(), grid[:1]))
        firsts, switched = [], []
        for problem, values in parts:
            shown = partial(with_progress, progress=progress, name="path", unit="searches")
            path = solution_path(problem, setting, values, shown)
            settings = [replace(setting, eps_bar=float(value)) for value in values]
            firsts += list(map(problem.consistent, path.solutions, settings))
            switched += path.switched
        beyond = two_steps.compared_beyond(firsts[-1]) if steps == 2 else None
        estimates, inferences = [], []
        for first in with_progress(firsts, progress, "path", "fits"):
            estimates.append(two_steps.second_step_of(first, beyond) if steps == 2 else first)
            inferences.append(inference.resampled(estimates[-1]))
        warn_once(model, estimates)
        return RRMPath(model, grid, estimates, inferences, np.array(switched))

    def _setting(self, **search: Any) -> Setting:
        """Return options of a search of this model; the bound is yet to be set."""
        return Setting(eps_bar=0.0, freq_weights=self._search_counts, **search)

    def few_rows_of(self, results: ResultsT, term: str, what: str, alpha: float) -> FewRows:
        """Return the rows whose removal changes a conclusion of results of this model."""
        self.refuse_partitions("few_rows", "fit a sample of the rows, data.sample(frac=...)")
        if self.weighs_groups:
            raise NotImplementedError(
                "few_rows removes single rows, but these are good or bad by whole groups; fit "
                "without groups=, with cov_type='cluster' where rows of a group depend on each "
                "other"
            )
        if what == "significance" and results.bootstrap is not None:
            raise NotImplementedError(
                "few_rows would run a bootstrap of each refit; fit with cov_type='sandwich'"
            )
        return RobustRemoval(results, term, what, alpha).found()

    def _path_model(self) -> Self:
        """Return the model whose parameters are the same at all bounds."""
        return self

    def inference(
        self, cov_type: str | None, cov_kwds: Mapping[str, Any], use_t: bool | None
    ) -> Inference:
        """Return how standard errors are found; the bootstrap has yet to run."""
        kept = {"grouped": self.weighs_groups, "weighted": self.freq_weights is not None}
        cov_type = checked_cov_type(cov_type, cov_kwds, self._cov_types, **kept)
        if self.in_partitions and cov_type not in ("sandwich", "nonrobust"):
            raise NotImplementedError(
                f"cov_type={cov_type!r} needs all rows in memory, but these lie in partitions; "
                "use cov_type='sandwich', or fit a sample of the rows in memory"
            )
        n, labels = len(self.endog), cov_kwds.get("groups")
        if labels is not None:
            frame = getattr(self.data, "frame", None)
            kinds = labels if isinstance(labels, list | tuple) and len(labels) == 2 else [labels]
            if frame is not None:
                kinds = [checks.named_column("groups", each, frame) for each in kinds]
            labels = [label_array(each, n, self.data.row_labels, self._dropped) for each in kinds]
        dependence = row_dependence(cov_type, cov_kwds, n, labels)
        groups, clusters = self.weighed_groups, dependence.groups
        if groups is not None and clusters is not None:
            if clusters.ndim == 2:
                raise NotImplementedError(
                    "clusters of two kinds are for rows, but with groups= whole groups have "
                    "influence; give one kind of clusters, or leave cov_kwds out"
                )
            found = np.zeros(groups.count, dtype=int)
            found[groups.codes] = clusters
            if (found[groups.codes] != clusters).any():
                raise ValueError(
                    "cov_kwds={'groups': ...} splits some of the groups that have one weight; "
                    "give clusters that hold whole groups, or leave cov_kwds out"
                )
            dependence = Dependence(groups=found)
        resample = Bootstrap(**cov_kwds).run if cov_type == "bootstrap" else None
        return Inference(cov_type, cov_kwds, use_t, dependence, bootstrap=resample)

    @property
    def _dropped(self) -> np.ndarray:
        """Positions of the rows that statsmodels dropped."""
        found = getattr(self.data, "missing_row_idx", None)
        return np.array([] if found is None else found, dtype=int)

    def _warn(self, estimate: Estimate) -> None:
        """Warn where a step did not converge."""
        if estimate.solution.converged:
            return
        first = estimate.first is None or not estimate.first.solution.converged
        checks.warn(
            f"the {'first' if first else 'second'} step did not converge within maxiter="
            f"{estimate.setting.maxiter} iterations; raise maxiter or try other starts",
            ConvergenceWarning,
        )

    def results_of(self, estimate: Estimate, inference: Inference) -> ResultsT:
        """Return results that hold all they need: they never search or fit.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.RRMOLS.from_formula("log_light ~ log_te", stars, eps_bar=0.2)
        >>> res = model.fit()
        >>> same = model.results_of(res._estimate, res._inference)
        >>> bool((same.params == res.params).all())
        True
        """
        first_step = None
        if estimate.first is not None:
            first_step = self._wrapped(estimate.first, inference.of_first_step(), None)
        return self._wrapped(estimate, inference, first_step)

    def _wrapped(
        self, estimate: Estimate, inference: Inference, first_step: ResultsT | None
    ) -> ResultsT:
        results = self._results_class(self, estimate, inference, first_step)
        if self.in_partitions:  # partitions may be gone when errors are read
            _ = results.cov_params_default
        # A wrapper has the attributes of the results, with the labels of the data.
        return labeled_results(results)

    @property
    def _bound(self) -> float:
        """The bound as a number."""
        if isinstance(self.eps_bar, str):
            raise ValueError(
                "eps_bar='auto' has no value before fit(); use the model of its results, res.model"
            )
        return self.eps_bar

    def with_eps_bar(self, eps_bar: float) -> Self:
        """Return the same model of the same data with another bound.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.RRMOLS.from_formula("log_light ~ log_te", stars, eps_bar=0.2)
        >>> model.with_eps_bar(0.3).eps_bar
        0.3
        """
        model = copy(self)
        model.eps_bar = check_eps_bar(eps_bar)
        return model

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model of some rows."""
        part = copy(self)
        values = {name: getattr(self, name, None) for name in self._row_arrays}
        by_row = {name: v for name, v in values.items() if v is not None and np.ndim(v) > 0}
        for name, some in zip(by_row, taken(rows, *by_row.values()), strict=True):
            setattr(part, name, some)
        if self.partitioned_rows is not None:
            part.data = SampledData(self.data._sample, self.partitioned_rows.labels_at(rows))
            part.partitioned_rows, part.nobs = None, float(len(rows))
        if part.groups is not None:
            part._number_groups()
        return part

    def _with_choice(self, setting: Setting) -> tuple[Self, Estimate | None]:
        """Return the model, with the bound chosen where it is automatic, and what chose it."""
        if self.eps_bar != checks.AUTO:
            return self, None
        robust = self._robust_fit(setting)
        choice = chosen(robust, self.eps_bar_max)
        model = self.with_eps_bar(choice.eps_bar)
        model.choice = choice
        return model, robust

    def _robust_fit(self, setting: Setting) -> Estimate:
        """Return the second step at the largest bound, on a sample of many rows.

        The bound of `setting` plays no part.
        """
        if self.incomparable:
            raise NotImplementedError(
                f"eps_bar='auto' does not work here: {self.incomparable}. Give a number, and try "
                "others"
            )
        part = self._sampled()[0].with_eps_bar(checks.EPS_BAR_MAX)
        problem = part._search_problem()
        asked = replace(setting, freq_weights=part._search_counts)
        bound = two_steps.largest_bound(problem, asked.wnobs(problem.n_obs))
        return two_steps.robust_estimate(problem, replace(asked, eps_bar=bound))

    def chosen(self, setting: Setting) -> Choice:
        """Return the bound that "auto" chooses, whatever bound the model has."""
        return chosen(self._robust_fit(setting), self.eps_bar_max)

    @property
    def _decides_on_sample(self) -> bool:
        """Whether explanations and bounds are compared on a sample of the rows."""
        many = self.in_partitions or len(self.endog) > two_steps.MOST_ROWS
        return many and not self.incomparable

    def _sampled(self) -> tuple[Self, np.ndarray]:
        """Return the model of about DECIDING_ROWS random rows, or of all where there are few.

        With the places of the rows. Groups are drawn as a whole.
        """
        n = len(self.endog)
        if n <= two_steps.MOST_ROWS and not self.in_partitions:
            return self, np.arange(n)
        groups = self.weighed_groups
        rows = deciding_places(n, None if groups is None else groups.codes)
        return self._part(rows), rows

    def _stability(self, estimate: Estimate, decided: Estimate | None, why: str) -> Stability:
        """Tell whether a larger eps_bar changes a fit.

        Of many rows a sample tells, `decided` being its fit. `why` says why no bounds are
        compared, where that is known.
        """
        eps_bar, why = estimate.setting.eps_bar, self._why_not_compared(estimate) or why
        own = decided or estimate
        if not why and own.largest < eps_bar + STEP:
            why = "the data have too few rows for a larger eps_bar"
        if why:
            return Stability(eps_bar=eps_bar, why=why)
        found = Stability(eps_bar=eps_bar, largest=own.largest)
        last = own
        for bound, other in two_steps.steps_beyond(own):
            if found.explained_at is None and other.explanation != own.explanation:
                found = replace(found, explained_at=bound, explanation=other.explanation)
            seen = compare(last, other)
            if not seen.agrees:
                return replace(found, **self._differences(own, other, bound, seen))
            last = other
        return found

    def _differences(
        self, own: Estimate, other: Estimate, bound: float, seen: Agreement
    ) -> dict[str, Any]:
        """Return how a fit at a larger bound differs, as `Stability` tells it."""
        plain = Inference("sandwich", {}, None)
        part, rows = self._sampled()
        before = part.results_of(own, plain)
        after = part.with_eps_bar(bound).results_of(other, plain)
        flags, other_flags = (each._weighed._flagged(None) for each in (before, after))
        names: Any = part.group_labels if part.weighs_groups else before._labels_at(rows)
        return {
            "differs_at": bound,
            "pvalue": seen.pvalue,
            "terms": tuple(after.term_names[i] for i in seen.moved),
            "gained": tuple(names[other_flags & ~flags].tolist()),
            "lost": tuple(names[flags & ~other_flags].tolist()),
            "unit": "groups" if self.weighs_groups else "rows",
        }

    def _why_not_compared(self, estimate: Estimate) -> str:
        """Return why larger bounds are not compared; empty where they can be."""
        if self.incomparable:
            return self.incomparable
        if estimate.setting.eps_bar == 0:
            return "no row may be bad, since eps_bar is 0"
        if estimate.first is None:
            return "the fit has one step, and second steps are compared"
        return "" if estimate.solution.converged else "the fit did not converge"

    def _number_groups(self) -> None:
        """Keep the groups, numbered in the order of their first rows."""
        codes, labels = pd.factorize(np.asarray(self.groups))
        self.row_groups = Groups(codes, len(labels), self.freq_weights)
        self.group_labels = pd.Index(labels)

    @property
    def weighed_groups(self) -> Groups | None:
        """The groups that have the weights; None where rows have, as groups of one row each."""
        groups = self.row_groups
        return None if groups is None or groups.count == len(self.endog) else groups

    @property
    def row_counts(self) -> Array:
        """How often each row counts, shape (n,)."""
        counts = self.freq_weights
        return np.broadcast_to(1.0, (len(self.endog),)) if counts is None else counts

    @property
    def weighs_groups(self) -> bool:
        """Whether weights are of groups."""
        return self.weighed_groups is not None

    def _search_problem(self) -> EstimableProblem:
        """Return the problem whose observations have the weights: rows or groups."""
        problem, groups = self.problem(), self.weighed_groups
        return problem if groups is None else GroupedProblem(problem, groups)

    @property
    def _search_counts(self) -> Array | None:
        """How often the observations of that problem count: the sizes of the groups."""
        groups = self.weighed_groups
        return self.freq_weights if groups is None else groups.sizes

    def _hold(self, held: PartitionedRows | None, formula: FormulaDesign | None = None) -> None:
        """Let rows in partitions take the place of the sample that the model was made from."""
        if held is None:
            return
        self.partitioned_rows, self._formula_design = held, formula
        for name in ("weights", "wendog", "wexog"):
            vars(self).pop(name, None)
        for name, array in self._held_arrays(held).items():
            setattr(self, name, array)
        self.data = SampledData(self.data, held.index if held.in_memory else held)
        for name in ("design_info", "model_spec"):  # statsmodels 0.14 and 0.15
            if formula is not None and hasattr(self.data, name):
                setattr(self.data, name, formula.designs[-1])
        self.nobs = float(len(held))
        place, exog = self.data.const_idx, held.arrays.get("exog")
        if place is not None and exog is not None:
            if exog.min(axis=0)[place] != exog.max(axis=0)[place]:  # one in the sample alone
                self.data.const_idx, self.data.k_constant, self.k_constant = None, 0, 0

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        """Return the arrays of all rows by the names of the model's attributes."""
        return dict(held.arrays)

    @property
    def in_partitions(self) -> bool:
        """Whether the rows lie in partitions, and not in memory."""
        return self.partitioned_rows is not None and not self.partitioned_rows.in_memory

    def refuse_partitions(self, what: str, advice: str) -> None:
        """Refuse what needs all rows in memory, where these lie in partitions."""
        if self.in_partitions:
            raise NotImplementedError(
                f"{what} needs all rows in memory, but these lie in partitions; {advice}"
            )

    def on_sample(self, estimate: Estimate) -> tuple[Any, Estimate]:
        """Return the model and an estimate as seen on a random sample of the rows."""
        if self.partitioned_rows is None:
            raise ValueError("on_sample is for rows in partitions; these are in memory as a whole")
        n = len(self.partitioned_rows)
        rows = deciding_places(n)
        return self._part(rows), _scaled_up(on_rows(estimate, rows), n / len(rows))

    def design_in_partitions(self, data: Any) -> PartitionedRows | None:
        """Return new data in partitions as rows of the design; None for data in memory."""
        if not is_dask(data):
            return None
        if self._formula_design is not None and is_dask_frame(data):
            return predictor_rows(self._formula_design, data)
        return array_rows({"exog": data}, "none", persist=False)[0]

    def predicted(self, params: Array, rows: Array, offset: Array | float) -> Array:
        """Return the means of rows of the design in partitions."""
        return rows @ params


class DesignedModel(RRMModel[ProblemT, ResultsT]):
    """A model whose rows have predictors."""

    exog: Array

    def _start_theta(self, problem: Any, start_params: ArrayLike) -> Array:
        params = super()._start_theta(problem, start_params)
        unit = getattr(problem, "endog_unit", 1.0)  # that of the response, where it has one
        return np.asarray(problem.design.from_params(params / unit))

    def _predictors(self) -> Array:
        """Return the rows of the design in memory, shape (n, k)."""
        return np.asarray(self.exog, float)

    def classical_params(self) -> Array:
        """Return the parameters of maximum likelihood, or of least squares, shape (k,).

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
        >>> model.classical_params().round(3)
        array([ 6.793, -0.413])
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            return np.asarray(self.with_eps_bar(0.0).fit(stability=False).params)

    def leverages(self) -> Array:
        """Return the diagonal of the hat matrix of least squares, shape (n,).

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2)
        >>> round(float(model.leverages().sum()), 6)
        2.0
        """
        self.refuse_partitions("leverages", "fit a sample of the rows")
        return hat_values(self._predictors(), self.row_counts)

    def design_distances(self) -> Array | None:
        """Return robust distances of the rows of the predictors from their middle.

        Returns
        -------
        ndarray, shape (n,), or None
            None without predictors, with too few rows, or where the design is flat in the rows
            with weight, as with rare dummies.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> model = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2)
        >>> bool((model.design_distances()[:14] > 10).all())
        True
        """
        self.refuse_partitions("design_distances", "fit a sample of the rows")
        exog = self._predictors()
        columns = exog[:, np.ptp(exog, axis=0) > 0]
        n, d = columns.shape
        few = (1 - self._bound) * n < 2 * (d + 1)
        if d == 0 or few or np.linalg.matrix_rank(columns) < d:
            return None
        problem = CovarianceProblem(columns)
        found = minimize(problem, self._bound, freq_weights=self.freq_weights)
        if np.linalg.eigvalsh(problem.split(found.theta)[1])[0] < ROUNDING:
            return None
        order = problem.tilt(found.lambda_, self._bound).variances[0]
        return np.sqrt(problem.distances(found.theta) / order)


def row_problem(problem: EstimableProblem) -> Any:
    """Return the problem of the rows, in whose coordinates parameters are."""
    return problem.problem if isinstance(problem, GroupedProblem) else problem


def _scaled_up(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate of a sample whose weights are in units of equal ones."""
    first = None if estimate.first is None else _scaled_up(estimate.first, factor)
    weights = estimate.solution.weights * factor
    return replace(estimate, solution=replace(estimate.solution, weights=weights), first=first)


def _refusal(name: str, reason: str) -> Any:
    def method(cls: type, /, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{cls.__name__} has no {name}(): {reason}")

    method.__name__, method.__doc__ = name, f"Refuse: {reason}."
    return classmethod(method)


def warn_of_bound(problem: Problem, setting: Setting, automatic: bool) -> None:
    """Warn where a bound leaves out a majority, or leaves few rows for the parameters."""
    eps_bar, k = setting.eps_bar, min(problem.n_params, problem.subset_size)
    left, enough = (1 - eps_bar) * setting.wnobs(problem.n_obs) / k, 3  # rows per parameter
    if eps_bar > 0.5:
        checks.warn(
            f"eps_bar={eps_bar:g} lets the fit leave out a majority of the rows: it may describe "
            "a minority that agrees by chance. Use eps_bar <= 0.5"
        )
    elif eps_bar > 0 and left < enough:
        checks.warn(
            f"eps_bar={eps_bar:g}{', chosen automatically,' if automatic else ''} leaves "
            f"(1 - eps_bar) * nobs / k = {left:.1f} rows per parameter (k = {k}), fewer than "
            f"{enough}: the fit follows the noise. "
            f"{'Drop' if automatic else 'Lower eps_bar, drop'} predictors or add data"
        )


def counted(number: int, thing: str) -> str:
    """Return a number with its thing, such as "1 parameter" or "2 parameters"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def same_signature(source: Callable[..., Any], *without: str) -> Callable[[MethodT], MethodT]:
    """Let `help` show the arguments of what a function passes its own on to, but for some."""

    def shown(function: MethodT) -> MethodT:
        passed = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        named = [p for p in signature(function).parameters.values() if p.kind not in passed]
        hidden = {*without, *(parameter.name for parameter in named)}
        named += [p for name, p in signature(source).parameters.items() if name not in hidden]
        named.sort(key=lambda parameter: parameter.kind)
        shown_as = Signature(named, return_annotation=signature(function).return_annotation)
        function.__signature__ = shown_as  # type: ignore[attr-defined]  # what help reads
        return function

    return shown


def _numbers(found: tuple[Estimate, Any]) -> tuple[Array, Array]:
    """Return parameters and standard errors, which tell whether a fit has settled."""
    estimate, results = found
    errors = np.sqrt(np.diag(results._results.cov_params_default))
    return estimate.params, np.nan_to_num(errors)


def check_grid(eps_bar: ArrayLike) -> Array:
    """Return the values of a grid in increasing order, or say what is wrong with them."""
    values = np.atleast_1d(np.asarray(eps_bar, dtype=object))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"eps_bar must be a list of numbers in [0, 1), got {eps_bar!r}")
    return np.unique([check_eps_bar(value) for value in values])


def default_grid(largest: float) -> Array:
    """Return 0, 0.02, ..., up to the largest bound that the rows allow."""
    grid = np.round(two_steps.GRID * np.arange(int(np.ceil(1 / two_steps.GRID))), 9)
    return grid[(grid == 0) | (grid <= largest + 1e-12)]


def warn_once(model: Any, estimates: Sequence[Estimate]) -> None:
    """Give each warning of the fits once, with the bounds that it concerns."""
    found: dict[tuple[type[Warning], str], list[float]] = {}
    for estimate in estimates:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model._warn(estimate)
        for each in caught:
            key = each.category, str(each.message)
            found.setdefault(key, []).append(estimate.setting.eps_bar)
    for (category, message), values in found.items():
        where = ", ".join(f"{value:g}" for value in values)
        checks.warn(f"at eps_bar = {where}: {message}", category)


def held_formula(
    formula: str, data: Any, names: EvalEnvironment, drop_cols: Any, subset: Any, kwargs: Any
) -> tuple[PartitionedRows, FormulaDesign, pd.DataFrame]:
    """Return the rows of a formula in partitions, and a sample; `kwargs` become the sample's.

    Parameters
    ----------
    formula : str
    data : dask DataFrame
    names : patsy.EvalEnvironment
        Where functions of the formula are looked up.
    drop_cols : sequence of str, optional
    subset : None
        Anything else is refused.
    kwargs : dict
        Keywords of the model; arrays given beside the frame are replaced by those of the sample.
    """
    if subset is not None:
        raise ValueError("subset needs rows in memory; filter the Dask frame, data[condition]")
    if kwargs.get("groups") is not None:
        raise NotImplementedError(
            "groups needs rows in memory; for clustered data in partitions use row weights"
        )
    beside = {name: kwargs[name] for name in BESIDE_FRAME if kwargs.get(name) is not None}
    for name, values in beside.items():
        if not is_dask(values):
            raise TypeError(
                f"{name} must be a Dask Series like the columns of the data, got "
                f"{type(values).__name__}"
            )
    missing = "drop" if kwargs.get("missing", "drop") == "drop" else "raise"
    persist = kwargs.pop("persist", "auto")
    given = (formula, data, names, beside, drop_cols or (), missing, persist)
    held, sample, made = formula_rows(*given)
    kwargs.update({name: sample[BESIDE + name] for name in beside})
    return held, made, sample


class SampledData:
    """What statsmodels knows of a sample, with the labels of other rows.

    Parameters
    ----------
    sample : statsmodels ModelData
    row_labels : pandas.Index, PartitionedRows or None
    """

    def __init__(self, sample: Any, row_labels: Any) -> None:
        vars(self).update(_sample=sample, row_labels=row_labels)

    def __copy__(self) -> SampledData:
        return type(self)(copy(self._sample), self.row_labels)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._sample, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sample":
            raise AttributeError(name)
        return getattr(self._sample, name)

    def wrap_output(self, values: Any, how: str = "columns", names: Any = None) -> Any:
        """Return values with labels: those of rows in partitions as Dask collections."""
        in_memory = not isinstance(self.row_labels, PartitionedRows)
        if blocked(values) or (how == "rows" and in_memory):
            return labeled(values, self.row_labels)
        return self._sample.wrap_output(values, how, names)
