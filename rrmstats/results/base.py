"""What the results of every model share: views of an estimate, which never search or fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from patsy import DesignInfo
from scipy.stats import t
from statsmodels.base.model import LikelihoodModelResults, LikelihoodResultsWrapper
from statsmodels.base.wrapper import populate_wrapper
from statsmodels.iolib import summary2
from statsmodels.iolib.summary import Summary
from statsmodels.stats.contrast import ContrastResults
from statsmodels.tools import eval_measures

from rrmstats import plotting
from rrmstats.core.block_array import row_map, smallest, taken
from rrmstats.core.blocks import DECIDING_ROWS
from rrmstats.core.choice import Choice
from rrmstats.core.consistency import gaussian_efficiency, kish_fraction
from rrmstats.core.conventions import CLOSE
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import FLAGGED, Explanation
from rrmstats.core.grouped import GroupedEstimate
from rrmstats.core.sandwich import relative_weights, wald_pvalue
from rrmstats.interchange import as_pandas, as_values, is_dask
from rrmstats.report import write_report
from rrmstats.results import explanations as texts
from rrmstats.results import summary as tables
from rrmstats.results.inference import (
    Inference,
    ReachingContrast,
    Replicates,
    checked_level,
    contrast_alternatives,
    nested_restriction,
    reaching,
    test_freedom,
)
from rrmstats.results.labels import Labeled, labeled
from rrmstats.results.summary import LIKELY, Table, bad_rows_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Self

    from rrmstats.results.path_results import RRMPath
    from rrmstats.results.removal import FewRows

ONE_STEP = "needs a second step, steps=2, of a model that has one, and eps_bar > 0"
FIRST_IS_KEPT = "These are the estimates of the second step; first_step holds those of the first."
SECOND_STEP = "A second step (steps=2) wins them back."
CONDITIONAL = "Intervals are conditional on this and on eps_bar; see explanations for others."
ONE_OF_SEVERAL = "this fit belongs to another one, or to a path, whose jumps tell"


class Meaningless(AttributeError, NotImplementedError):
    """An attribute of statsmodels' results that has no meaning for a robust fit."""


class DataRemoved(AttributeError, ValueError):
    """Something needs the data, which `remove_data` dropped."""


NEEDS_DATA = "needs the data, which remove_data() dropped; fit again"


def refused(**names: str) -> dict[str, str]:
    """Return the reason for each refused name, from the names by reason."""
    found = {name: REASONS[why] for why, listed in names.items() for name in listed.split()}
    return {**found, **HIDDEN}


REASONS = {
    "likelihood": (
        "the risk is not a likelihood of all rows; compare models with compare() or wald_test()"
    ),
    "ratio": (
        "twice the difference of llf does not follow a chi-squared distribution where bad rows "
        "are modeled; use compare(), which is Wald's test"
    ),
    "f_test": (
        "sums of squares do not follow an F distribution under estimated weights; use compare(), "
        "which is Wald's test"
    ),
    "squares": (
        "a sum of squares counts bad rows like others; see scale and rsquared, and test "
        "terms with compare() or wald_test_terms() in place of anova_lm"
    ),
    "known_weights": (
        "it takes the weights as known; bse is robust already, see fit(cov_type=...)"
    ),
    "empirical": "empirical likelihood counts bad rows like others; use conf_int()",
    "elsewhere": "see condition_number, wald_test, trace and the arguments of fit",
    "optimizer": "the fit is not statsmodels'; see trace, converged and n_iter",
    "deviances": (
        "it counts bad rows like others; see scale, resid_deviance and prsquared, and test terms "
        "with compare() or wald_test_terms()"
    ),
    "linear": "it is that of a linear regression; see pseudo_rsquared() and wald_test_terms()",
    "pictures": (
        "it would draw bad rows like others; use plot_diagnostics() or plot_partial_residuals()"
    ),
    "no_influence": "see weight_table() for the weights and distances of the rows",
}
CRITERIA = ("aic", "bic", "aicc", "hqic")
#: Attributes that statsmodels' code reads itself, so that only users are refused them.
HIDDEN = {
    "normalized_cov_params": "it takes the weights as known and the scale as one; use cov_params()"
}


MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def drawn(plot: MethodT) -> MethodT:
    """Return a picture as a method of results; of those with rows in partitions, of a sample."""

    @wraps(plot)
    def method(results: Any, *args: Any, **kwargs: Any) -> Figure:
        seen = results.seen_rows
        figure: Figure = plot(seen, *args, **kwargs)
        if seen.nobs < results.nobs:
            caption = figure.get_supxlabel()
            said = f"{caption}\n{sample_text(results)}" if caption else sample_text(results)
            figure.supxlabel(said, x=0.99, ha="right", fontsize=8)
        return figure

    return method  # type: ignore[return-value]  # the same signature


#: Options of statsmodels' optimizers, which play no part here.
OPTIMIZER = frozenset(
    """acc atol attach_wls auto_trim_tol check_step cnvrg_tol epsilon fargs ftol gtol
    max_start_irls norm optim_hessian optim_score pgtol profile_scale qc_tol qc_verbose retall
    rtol size_trim_tol tol_criterion trim_mode wls_method xtol zero_tol""".split()
)


def ignoring(names: Collection[str]) -> Callable[[MethodT], MethodT]:
    """Return a decorator of methods that are passed keywords for nothing, so that code runs."""

    def decorate(method: MethodT) -> MethodT:
        @wraps(method)
        def ignorant(self: Any, *args: Any, **kwargs: Any) -> Any:
            known = {name: value for name, value in kwargs.items() if name not in names}
            return method(self, *args, **known)

        return ignorant  # type: ignore[return-value]  # the same signature

    return decorate


def without(**reasons: str) -> Callable[[MethodT], MethodT]:
    """Return a decorator of methods that lack arguments of statsmodels', by their names."""

    def decorate(method: MethodT) -> MethodT:
        @wraps(method)
        def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
            for name in reasons.keys() & kwargs.keys():
                raise NotImplementedError(f"{method.__name__} takes no {name}=: {reasons[name]}")
            return method(self, *args, **kwargs)

        return checked  # type: ignore[return-value]  # the same signature

    return decorate


def sample_text(results: Any) -> str:
    """Return what a picture of a sample says of it."""
    return f"a random sample of {results.seen_rows.nobs:,.0f} of {results.nobs:,.0f} rows"


class Units:
    """Order, flags and tables of rows that have a weight each, or of groups in their place."""

    model: Any
    nobs: float
    weights: Array
    losses: Array
    relative_weights: Any

    def order_by_weight(self, count: int | None = None) -> np.ndarray:
        """Return the positions of the rows, the smallest weight first, ties by larger loss.

        Parameters
        ----------
        count : int, optional
            How many; None for all.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> sorted(res.order_by_weight(4).tolist())
        [10, 19, 29, 33]
        """
        if count is None:
            self.model.refuse_partitions("the order of all rows", "ask for some of them")
            count = int(self.nobs)
        return smallest(count, self.relative_weights, -self.losses)

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows, or their positions where they have none."""
        self.model.refuse_partitions("row_names", "use the index of the data")
        return [str(name) for name in self._labels_at(np.arange(int(self.nobs)))]

    @property
    def _labels(self) -> Any:
        """Labels of all rows, those of rows in partitions; None where they have none."""
        return self.model.data.row_labels

    def _labels_at(self, places: np.ndarray) -> Any:
        """Return the labels of some rows, or their positions where they have none."""
        labels = self._labels
        if labels is None or isinstance(labels, pd.Index):
            return places if labels is None else labels[places]
        return labels.labels_at(places)

    def _distances(self) -> Array:
        """Return standardized residuals or distances of the rows, shape (n,)."""
        raise NotImplementedError

    def _flags(self, level: float) -> np.ndarray:
        """Tell which rows lie beyond a level, shape (n,)."""
        raise NotImplementedError

    def _flagged(self, level: float | None) -> np.ndarray:
        """Tell which rows are bad, or lie beyond a level where one is given, shape (n,)."""
        prob_bad = vars(self).get("prob_bad")
        if level is None and prob_bad is not None:
            return np.greater(prob_bad, FLAGGED)
        return self._flags(checked_level(level))

    def outliers(self, level: float | None = None) -> Labeled:
        """Tell which rows are outliers.

        Parameters
        ----------
        level : float, optional
            Fraction of clean rows that are not flagged, in (0, 1): of clean Gaussian data about
            ``1 - level`` are flagged by chance, of clean labels at most that. By default the
            flags of a second step are the rows that are more likely bad than good, ``prob_bad >
            0.5``; those of a first step have the level 0.975.

        Returns
        -------
        ndarray or Series of bool, shape (n,)

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> bool(res.outliers()[[10, 19, 29, 33]].all())
        True
        """
        return labeled(self._flagged(level), self._labels)

    def weight_table(self, k: int | None = 10, level: float | None = None) -> pd.DataFrame:
        """Return the rows of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many; None for all.
        level : float, optional
            Level of the flag; see `outliers`.

        Returns
        -------
        DataFrame
            Loss, weight in units of equal ones, standardized residual or distance, in two steps
            the probability to be bad, and flag, by the index of the data; the smallest weights
            first.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> sorted(res.weight_table(4).index)
        [10, 19, 29, 33]
        """
        return self._rows_at(self.order_by_weight(k), level)

    def suspicious_table(self, k: int = 10) -> pd.DataFrame:
        """Return the rows most likely bad, or in one step those of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many at most.

        Returns
        -------
        DataFrame
            As `weight_table` has it, the most likely bad rows first; those with a probability
            below 1 % are left out.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> table = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit().suspicious_table()
        >>> bool(table["prob_bad"].is_monotonic_decreasing), {10, 19, 29, 33} <= set(table.index)
        (True, True)
        """
        prob_bad = vars(self).get("prob_bad")
        if prob_bad is None:
            return self.weight_table(k)
        places = smallest(k, -prob_bad, -self.losses)
        return self._rows_at(places[np.asarray(taken(places, prob_bad)[0]) >= LIKELY], None)

    def outlier_table(self, k: int | None = None, level: float | None = None) -> pd.DataFrame:
        """Return the flagged rows.

        Parameters
        ----------
        k : int, optional
            How many at most; None for all.
        level : float, optional
            Level of the flag; see `outliers`.

        Returns
        -------
        DataFrame
            As `weight_table` has it, the smallest weights first.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> len(res.outlier_table()) == int(res.outliers().sum())
        True
        """
        flags = self._flagged(level)
        count = int(flags.sum())
        count = count if k is None else min(count, k)
        return self._rows_at(
            smallest(count, 1.0 - flags, self.relative_weights, -self.losses), level
        )

    def _rows_at(self, places: np.ndarray, level: float | None) -> pd.DataFrame:
        """Return loss, weight, distance, probability to be bad and flag of some rows."""
        columns = {
            "loss": self.losses,
            "relative_weight": self.relative_weights,
            "distance": self._distances(),
            "prob_bad": vars(self).get("prob_bad"),
            "outlier": self._flagged(level),
        }
        known = {name: values for name, values in columns.items() if values is not None}
        values = taken(places, *known.values())
        return Table(dict(zip(known, values, strict=True)), index=self._labels_at(places))


class GroupView(Units):
    """Groups in the place of rows, as pictures and tables read them.

    Attributes
    ----------
    model : RRMModel
    nobs : float
        Number of groups.
    weights, relative_weights, losses, distances : ndarray, shape (g,)
    row_names : list of str
        Labels of the groups.
    prob_bad : ndarray, shape (g,), or None
        Probability of each group to be bad; None in one step.
    """

    def __init__(self, results: RRMResults) -> None:
        self.model, self._results = results.model, results
        groups = self.model.row_groups
        base = groups.sizes / groups.sizes.sum()
        self.nobs, self.codes = float(groups.count), groups.codes
        self.weights = np.zeros(groups.count)
        np.add.at(self.weights, groups.codes, np.asarray(results.weights))
        self.relative_weights = relative_weights(self.weights, base)
        self.losses = groups.means(np.asarray(results.losses))
        self.prob_bad = results._unit_prob_bad

    @property
    def _labels(self) -> Any:
        return self.model.group_labels.rename("group")

    @property
    def distances(self) -> Array:
        """Mean losses as standard normal scores, shape (g,)."""
        return self._distances()

    def _distances(self) -> Array:
        estimate = self._results._estimate
        if isinstance(estimate, GroupedEstimate):
            return estimate.scores
        return np.asarray(self._results._distances())

    def _flags(self, level: float) -> np.ndarray:
        estimate = self._results._estimate
        if isinstance(estimate, GroupedEstimate):
            return estimate.flags(level)
        return self._results._flags(level)

    def _rows_at(self, places: np.ndarray, level: float | None) -> pd.DataFrame:
        table = super()._rows_at(places, level)
        table.insert(0, "rows", np.bincount(self.codes)[places])
        return table


class RRMResults(Units, LikelihoodModelResults):
    """Results of a fit by robust risk minimization.

    Attributes
    ----------
    params : Series or ndarray, shape (k,)
        Consistent estimates: a Series where the data have labels, as all that has one value per
        parameter or row.
    raw_params : Series or ndarray, shape (k,)
        The paper's, before any correction.
    weights : Series or ndarray, shape (n,)
        Probability weights of the observations; they sum to one.
    lambda_ : float
        Temperature of the first step: its weights are proportional to
        ``exp(-losses / lambda_)``.
    losses : Series or ndarray, shape (n,)
        Losses of the observations at the minimum.
    risk : float
        ``weights @ losses``.
    entropy : float
        Entropy of the weights.
    n_eff : float
        Exponential of the entropy: ``(1 - eps_bar) * nobs`` except for exact fits.
    n_kish : float
        Kish's effective sample size, ``1 / sum(weights ** 2)``.
    nobs, wnobs : float
        Number of rows, and the sum of their frequency weights.
    final_risks : ndarray
        Risks at the ends of the descents that were run to convergence.
    n_reached : int
        How many of them reached the minimum.
    n_best : int
        How many starts that are apart from each other lead to it.
    converged : bool
    n_iter : int
        Iterations of the best descent.
    steps : int
        2 for the estimates of the second step, 1 for those of the first, the paper's.
    first_step : results or None
        Results of the first step where these are of the second.
    eps_hat, eps_hat_se : float
        Estimated share of bad rows, those of bad groups where rows come in groups, and its
        standard error; NaN where the model has no such estimate.
    prob_bad : Series or ndarray, shape (n,)
        Probability of each row to be bad; that of its group, where rows come in groups. Only in
        two steps.
    cov_type : {"sandwich", "nonrobust", "cluster", "HAC", "bootstrap"}
        How standard errors are found.
    bootstrap : Replicates or None
        What the bootstrap found.
    stability : Stability
        Whether a larger `eps_bar` changes the fit.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> res.eps_bar, res.steps, res.converged, bool(res.relative_weights[[10, 19]].max() < 0.1)
    (0.2, 2, True, True)
    """

    #: Attributes of statsmodels' results that would mislead, and why.
    _meaningless: ClassVar[dict[str, str]] = refused(likelihood="llf aic bic info_criteria")
    _default_use_t: ClassVar[bool] = False
    _distance_name: ClassVar[str] = "distance"
    _title: ClassVar[str] = "Robust Risk Minimization Results"
    #: Dimension of the rows, whose noise is about Gaussian in the first step; None if not known.
    _dimension: int | None = None
    #: Whether the parameters are those of a design, whose columns may depend on each other.
    _has_design: ClassVar[bool] = False
    #: Attributes that are those of the estimate.
    _estimate_attrs: ClassVar[tuple[str, ...]] = ()
    #: Arrays that the wrapper labels by row and by parameter.
    _row_attrs: ClassVar[tuple[str, ...]] = ("weights", "relative_weights", "losses", "prob_bad")
    _column_attrs: ClassVar[tuple[str, ...]] = ("raw_params",)

    first_step: Self | None
    #: The class of results with the labels of the data.
    _wrapper: ClassVar[type[RRMResultsWrapper]]
    #: Whether `remove_data` has dropped the data.
    _without_data = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, reason in cls._meaningless.items():
            if hasattr(cls, name) and name not in {*HIDDEN, *vars(cls)}:  # `__getattr__` says why
                setattr(cls, name, property(_refused, doc=f"Refuse: {reason}."))
        cls._wrapper = wrapper_of(cls)

    def __init__(
        self, model: Any, estimate: Estimate, inference: Inference, first_step: Self | None = None
    ) -> None:
        super().__init__(model, estimate.params, normalized_cov_params=None)
        self._estimate, self._inference = estimate, inference
        self._rows_per_group = estimate.rows_per_group
        self._unit, self._design_effect = "row", 1.0
        if isinstance(estimate, GroupedEstimate):
            self._unit, self._design_effect = "group", estimate.effect
        self.steps = 1 if estimate.first is None else 2
        self.eps_hat, self.eps_hat_se = estimate.eps_hat, estimate.eps_hat_se
        self._alternatives = estimate.alternatives
        self._has_errors = bool(getattr(estimate, "identified", True))
        self._separated = bool(getattr(estimate, "separated", False))
        for name in self._estimate_attrs:
            setattr(self, name, getattr(estimate, name, np.nan))
        self._explained = explained = estimate.explained
        self._other_minimum = explained is not None and explained.other_minimum
        if explained is not None:
            self.prob_bad = explained.chosen.prob_bad
            if self._unit == "group":
                self.prob_bad = self.prob_bad[model.row_groups.codes]
        self.first_step = first_step
        if self._has_design:
            self.rank = estimate.problem.n_params
        found, unit, shift = estimate.solution, estimate.loss_unit, estimate.loss_shift
        self.raw_params = estimate.raw_params
        self.eps_bar = estimate.setting.eps_bar
        self.stability = texts.Stability(eps_bar=self.eps_bar, why=ONE_OF_SEVERAL)
        self.nobs, self.wnobs = float(len(found.weights)), estimate.wnobs
        self.weights = found.weights
        self.losses = found.losses * unit + shift
        self.risk = found.risk * unit + shift
        tempered = found if explained is None else (estimate.first or estimate).solution
        self.lambda_ = tempered.lambda_ * unit
        self.n_eff, self.entropy = found.n_eff, float(np.log(found.n_eff))
        self.n_kish = float(self.wnobs / (found.weights @ self.relative_weights))
        self.converged, self.n_iter = bool(found.converged), found.n_iter
        self.final_risks = found.final_risks * unit + shift
        self.n_reached, self.n_best = found.n_reached, found.n_best
        self.cov_type, self.cov_kwds = inference.cov_type, inference.cov_kwds
        self.use_t = self._default_use_t if inference.use_t is None else inference.use_t
        self._data_attr.extend(["weights", "losses", "prob_bad"])
        self._cache: dict[str, Any] = {}  # as all results of statsmodels have

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._meaningless:
            raise Meaningless(f"{name} has no meaning here: {type(self)._meaningless[name]}")
        if name in ("llf", "aic", "bic", "bic_llf"):
            raise Meaningless(f"{name} {self._why_no_likelihood}")
        if name == "prob_bad":
            raise AttributeError(f"prob_bad {ONE_STEP}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        formula = getattr(self.model, "formula", None)
        what = "" if formula is None else f" {formula},"
        return (
            f"<{type(self).__name__}:{what} {self.nobs:.0f} observations, "
            f"eps_bar={self.eps_bar:g}, steps={self.steps}, "
            f"{'converged' if self.converged else 'NOT CONVERGED'}; call summary()>"
        )

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    def _repr_latex_(self) -> str:
        return str(self.summary().as_latex())

    plot_explanation = drawn(plotting.plot_explanation)
    plot_weights = drawn(plotting.plot_weights)
    plot_trace = plotting.plot_trace
    report = write_report

    def explained_distances(self) -> texts.ExplainedDistances:
        """Return residuals or distances of the rows, as `plot_explanation` shows them.

        With the densities of good and of bad rows, where the explanation has simple ones.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> rrmstats.cov("~ x1 + x2 + x3", hbk).fit().explained_distances().name
        'robust distance'
        """
        name = self._distance_name if self._unit == "row" else "mean loss as a normal score"
        return texts.ExplainedDistances(np.asarray(self._weighed._distances()), name)

    @property
    def bootstrap(self) -> Replicates | None:
        """What the bootstrap found; None without ``cov_type="bootstrap"``."""
        return self._inference.replicates

    @property
    def n_kish_clean(self) -> float | None:
        """Kish's effective sample size that clean data would have in the first step, nearly.

        None where it is not known.
        """
        if self._dimension is None:
            return None
        return self.wnobs * kish_fraction(self.eps_bar, self._dimension * self._rows_per_group)

    @property
    def trace(self) -> pd.DataFrame:
        """Risk, lambda, effective sample size and kind of step, one row per iteration."""
        frame = Table(self._trace, columns=["risk", "lambda_", "n_eff", "step"])
        return frame.rename_axis("iteration")

    @cached_property
    def _trace(self) -> list[tuple[float, float, float, str]]:
        unit, shift = self._estimate.loss_unit, self._estimate.loss_shift
        return [
            (step.risk * unit + shift, step.lambda_ * unit, step.n_eff, step.kind)
            for step in self._estimate.solution.trace
        ]

    @property
    def lambda_trace(self) -> pd.Series:
        """Lambda at each iteration."""
        return self.trace["lambda_"]

    @cached_property
    def starts(self) -> pd.DataFrame:
        """Kind and risk of each start, before any step."""
        estimate = self._estimate
        risks = estimate.solution.start_risks * estimate.loss_unit + estimate.loss_shift
        return pd.DataFrame({"start": estimate.solution.start_kinds, "risk": risks})

    @property
    def df_resid(self) -> float:
        """Number of observations less that of the parameters, or less the rank of the design."""
        return self.nobs - getattr(self, "rank", len(self.params))

    @cached_property
    def cov_params_default(self) -> Array:
        """Covariance of the parameters, shape (k, k)."""
        return self._inference.covariance(self._estimate)

    @property
    def tvalues(self) -> Array:
        """Parameters in units of their standard errors; at an exact fit 0 or infinite."""
        params = np.asarray(self.params)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(params == 0, 0.0, params / np.asarray(self.bse, dtype=float))

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return confidence intervals of the parameters.

        Parameters
        ----------
        alpha : float, optional
            One minus the level.

        Returns
        -------
        ndarray, shape (k, 2)
            Normal or t intervals; with ``cov_type="bootstrap"`` percentile or BCa intervals. Those
            of labels reach further from zero where flips that do not show may have shrunk slopes.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> low, high = res.conf_int().loc["log_te"]
        >>> bool(low < res.params["log_te"] < high)
        True
        """
        if self.bootstrap is not None and self._has_errors:
            return self.bootstrap.intervals(np.asarray(self.params), alpha)
        return reaching(super().conf_int(alpha), np.asarray(self.bse), self._alternatives)

    def t_test(self, r_matrix: Any, cov_p: Any = None, use_t: bool | None = None) -> Any:
        """Test linear combinations of the parameters one by one; see statsmodels' `t_test`.

        Parameters
        ----------
        r_matrix : str, array_like or tuple
            Such as ``"x1 = 0, x2 - x3 = 1"``.
        cov_p : array_like, optional
            Covariance of the parameters; by default that of the fit.
        use_t : bool, optional
            Whether tests use Student's t distribution; by default as in this fit.

        Returns
        -------
        statsmodels ContrastResults
            Its intervals agree with those of `conf_int`.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> bool((res.t_test("log_te = 0").conf_int() == res.conf_int()[1:].to_numpy()).all())
        True
        """
        found = super().t_test(r_matrix, cov_p=cov_p, use_t=use_t)
        if not self._alternatives or cov_p is not None:
            return found
        contrasts = DesignInfo(self.model.data.cov_names).linear_constraint(r_matrix).coefs
        return ReachingContrast(found, contrast_alternatives(self._alternatives, contrasts))

    def get_robustcov_results(
        self, cov_type: str | None = "HC1", use_t: bool | None = None, **kwds: Any
    ) -> RRMResults:
        """Return the same fit with another kind of standard errors.

        Parameters
        ----------
        cov_type : str, optional
            As `fit` takes it; "HC1" is "sandwich".
        use_t : bool, optional
            Whether tests use Student's t distribution; by default as in this fit.
        **kwds
            What `cov_kwds` of `fit` holds, such as ``groups="column"``.

        Returns
        -------
        RRMResults

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.get_robustcov_results("HAC", maxlags=2).cov_type
        'HAC'
        """
        use_t = self.use_t if use_t is None else use_t
        errors = self.model.inference(cov_type, kwds, use_t).resampled(self._estimate)
        found: RRMResults = self.model.results_of(self._estimate, errors)
        found._results.stability = self.stability
        return found

    @property
    def _fit_options(self) -> dict[str, Any]:
        """What `fit` was asked for."""
        search, errors = self._estimate.setting, self._inference
        asked = {name: getattr(search, name) for name in ("n_starts", "rng", "tol", "maxiter")}
        asked |= {name: getattr(errors, name) for name in ("cov_type", "cov_kwds", "use_t")}
        return {"steps": self.steps, **asked}

    def remove_data(self) -> None:
        """Drop the arrays as long as the data, after what needs them has been computed.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.remove_data()
        >>> bool(res.params["log_te"] > 2), hasattr(res, "weights")
        (True, False)
        """
        _ = self.cov_params_default, self._trace, self.starts, self.steps_pvalue
        _ = self.explanation, self.explanations, self._bad_of_all, self.rival, self._rival_note
        _ = self.model.endog_names, self.model.exog_names, self.model.data.row_labels
        for name in ("_log_likelihood", "_extra_params", "rsquared_within", "n_effects"):
            getattr(self, name, None)  # of models that have it
        if self.first_step is not None:
            self.first_step.remove_data()
        super().remove_data()
        del self._estimate, self._explained
        self._without_data = True

    @property
    def default_model_infos(self) -> dict[str, Callable[[Any], str]]:
        """Rows that `summary_col` adds below the parameters."""
        return {
            "eps_bar": lambda res: f"{res.eps_bar:g}",
            "Bad rows": bad_rows_text,
            "Effective size": lambda res: f"{res.n_eff:.1f}",
            "No. Observations": lambda res: f"{res.nobs:.0f}",
        }

    def _rank_notes(self) -> list[str]:
        """Return what to know of a design whose columns depend on each other."""
        columns = len(self.params)
        rank = getattr(self, "rank", columns)
        note = (
            f"The design has rank {rank} but {columns} columns: these are the parameters of "
            "smallest norm."
        )
        return [] if rank == columns else [note]

    def summary(
        self,
        yname: str | None = None,
        xname: list[str] | None = None,
        title: str | None = None,
        alpha: float = 0.05,
        slim: bool = False,
    ) -> Summary:
        """Return the fit as statsmodels' tables.

        Parameters
        ----------
        yname : str, optional
            Name of the dependent variable.
        xname : list of str, optional
            Names of the parameters.
        title : str, optional
            Title of the tables.
        alpha : float, optional
            One minus the level of the intervals.
        slim : bool, optional
            Leave out what is about the search, and the table of small weights.

        Returns
        -------
        statsmodels.iolib.summary.Summary

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> text = res.summary(title="Stars", slim=True).as_text()
        >>> "Stars" in text, "Smallest weights" in text
        (True, False)
        """
        table = Summary()
        left, right = tables.top_entries(self)
        if slim:
            left, right = (
                [entry for entry in part if entry[0] in tables.SLIM] for part in (left, right)
            )
        table.add_table_2cols(
            self, title=title or self._title, gleft=left, gright=right, yname=yname
        )
        self._add_params(table, yname, xname, alpha)
        if self.weights is not None and not slim:  # remove_data drops them
            table.tables += tables.suspicious(self)
        return tables.finished(table, self._notes())

    def summary2(
        self,
        yname: str | None = None,
        xname: list[str] | None = None,
        title: str | None = None,
        alpha: float = 0.05,
        float_format: str = "%.4f",
    ) -> summary2.Summary:
        """Return the fit as statsmodels' second kind of tables.

        Parameters
        ----------
        yname : str, optional
            Name of the dependent variable.
        xname : list of str, optional
            Names of the parameters.
        title : str, optional
            Title of the tables.
        alpha : float, optional
            One minus the level of the intervals.
        float_format : str, optional
            Format of the numbers.

        Returns
        -------
        statsmodels.iolib.summary2.Summary

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> "eps_bar" in res.summary2().as_text()
        True
        """
        table, (left, right) = summary2.Summary(), tables.top_entries(self)
        known = {
            "Dep. Variable:": yname or self.model.endog_names,
            "Model:": type(self.model).__name__,
            "No. Observations:": f"{self.nobs:.0f}",
        }
        entries = {name: value[0] if value else known.get(name) for name, value in left + right}
        table.add_dict({name: value for name, value in entries.items() if value is not None})
        frame = summary2.summary_params(self, yname, xname, alpha, self.use_t)
        table.add_df(frame, float_format=float_format)
        for note in self._notes():
            table.add_text(note)
        table.add_title(title or self._title)
        return table

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        values = {"b": self.params, "se": self.bse, "t": self.tvalues, "p": self.pvalues}
        values["ci95l"], values["ci95u"] = np.transpose(self.conf_int())
        return pd.DataFrame(values, index=list(self.model.data.param_names))

    def __maketables_stat__(self, key: str) -> Any:
        if key == "N":
            return int(self.nobs)
        if key == "bad_rows":
            return bad_rows_text(self)
        if key == "explanation":
            return None if self.explanation is None else str(self.explanation)
        names = {"r2": "rsquared", "adj_r2": "rsquared_adj", "ll": "llf", "se_type": "cov_type"}
        return getattr(self, names.get(key, key), None)

    @property
    def __maketables_depvar__(self) -> str:
        return str(self.model.endog_names)

    @property
    def __maketables_vcov_info__(self) -> dict[str, str]:
        return {"se_type": self.cov_type}

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return tables.COLUMN_LABELS

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        return list(tables.COLUMN_LABELS)

    def _summary_subject(self) -> tuple[str, list[str] | None]:
        return ("Dep. Variable:", None)

    def _more_entries(self) -> tuple[list[Any], list[Any]]:
        """Return what a model adds to the two columns at the top of a summary."""
        return [], []

    def _add_params(
        self, table: Summary, yname: str | None, xname: Sequence[str] | None, alpha: float
    ) -> None:
        table.add_table_params(self, yname=yname, xname=xname, alpha=alpha, use_t=self.use_t)

    def _notes(self) -> list[str]:
        """Return what to know of the fit, what matters most first."""
        done = self.converged or self._separated
        notes = [] if done else ["The fit did not converge; raise maxiter."]
        notes += [*self._group_notes(), *self._story_notes(), *self._bound_notes()]
        if self._has_errors:
            notes.append(self._inference.describe())
        if self.steps == 2 and (self.explanation is None or self.eps_bar > 0):
            minimum = f" {texts.ANOTHER_MINIMUM}" if self._other_minimum else ""
            notes.append(f"{FIRST_IS_KEPT}{minimum}")
        if self.lambda_ == 0:
            notes.append(
                "Exact fit: the observations with weight share the smallest loss; lambda is 0."
            )
        return notes + self._search_notes()

    def _price(self, known: str, dim: int = 1) -> list[str]:
        """Return what one step costs on clean data, where a second one would win it back."""
        if self.steps == 2 or self.eps_bar == 0 or self.model.incomparable:
            return []
        # Rows of a group are its dimensions.
        rows = gaussian_efficiency(self.eps_bar, dim * self._rows_per_group)
        return [
            f"The price of eps_bar={self.eps_bar:g}: on clean {known} {rows:.0%} of the rows. "
            f"{SECOND_STEP}"
        ]

    def _story_notes(self) -> list[str]:
        """Return how the second step explains the rows, and a rival that does so as well."""
        if self.steps == 1 or self.explanation is None:
            return []
        if self.eps_bar == 0:
            return [self.explanation.sentence]
        given = texts.UNSEEN_FLIPS if self._alternatives else CONDITIONAL
        notes = [f"{self.explanation.sentence} {given if self._has_errors else ''}".strip()]
        if texts.at_bound(self.eps_hat, self.eps_bar):
            notes.append(texts.AT_BOUND if self.model.choice is None else texts.AT_LARGEST)
        return [*notes, self._rival_note] if self._rival_note else notes

    def _bound_notes(self) -> list[str]:
        """Return whether a larger `eps_bar` changes the fit, and how it was chosen."""
        found = self.stability
        unknown = found.largest is None and self.eps_bar > 0
        tells = unknown or not found.stable or found.explained_at is not None
        notes = [found.message] if tells else []
        return notes + ([] if self.choice is None else [self.choice.reason])

    def _search_notes(self) -> list[str]:
        """Return what to know of a search whose minimum no two different starts agree on."""
        if self.eps_bar == 0 or len(self.starts) == 1:
            return []
        if not np.isfinite(self.starts["risk"][1:]).any():
            return [
                "No start besides the first gave a fit, so that the minimum may be a local one; "
                "try a larger n_starts=."
            ]
        total = len(self.final_risks)
        if self.n_best > 1 or total == 1:
            return []
        others = f"all {total} descents agree, but they started from similar weights"
        if self.n_reached < total:
            others = f"{total - self.n_reached} of {total} descents ended higher"
        return [
            f"No two starts that are far apart lead to this minimum: {others}. A larger n_starts= "
            "checks that there is none lower."
        ]

    def t_test_pairwise(self, term_name: str, *args: Any, **kwargs: Any) -> Any:
        """Test the differences between all pairs of levels of a categorical term.

        Parameters
        ----------
        term_name : str
            A categorical term of the formula, such as ``"C(region)"``.
        *args, **kwargs
            `method`, `alpha` and `factor_labels` of statsmodels.

        Returns
        -------
        statsmodels MultiCompResult

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> hbk["third"] = ["abc"[i % 3] for i in range(len(hbk))]
        >>> res = rrmstats.ols("y ~ x1 + third", hbk, eps_bar=0.2).fit()
        >>> res.t_test_pairwise("third").result_frame.index.tolist()
        ['b-a', 'c-a', 'c-b']
        """
        try:
            return super().t_test_pairwise(term_name, *args, **kwargs)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"t_test_pairwise compares the levels of a categorical term of a formula, got "
                f"{term_name!r}; test other parameters with t_test()"
            ) from None

    def compare(self, other: RRMResults) -> ContrastResults:
        """Test a smaller model against this one by Wald's test.

        Likelihood ratios and sums of squares do not have their usual distributions under
        estimated weights; Wald's test with this covariance does.

        Parameters
        ----------
        other : results
            Fit of a model nested in this one: its predictors are among those of this one.

        Returns
        -------
        statsmodels ContrastResults
            Test that the parameters which `other` lacks are zero. Its `table` has the two models
            as rows, as `anova_lm` of statsmodels has them, without sums of squares.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> large = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
        >>> small = rrmstats.ols("y ~ x1", hbk, eps_bar=0.2).fit()
        >>> bool(large.compare(small).pvalue > 0.05)
        True
        """
        restriction = nested_restriction(self.model.exog_names, other.model.exog_names)
        if other.nobs != self.nobs:
            raise ValueError(
                f"the models were fitted to {self.nobs:g} and {other.nobs:g} rows; fit both to "
                "the same rows"
            )
        found = self.wald_test(restriction, scalar=True)
        test = found.distribution  # "F" or "chi2"
        names = ["df_resid", "df_diff", test, f"Pr(>{test})"]
        small = [other.df_resid, 0.0, np.nan, np.nan]
        large = [self.df_resid, len(restriction), float(found.statistic), float(found.pvalue)]
        found.table = pd.DataFrame([small, large], columns=names)
        return found

    @property
    def relative_weights(self) -> Array:
        """Weights in units of equal ones, or of the frequency weights, shape (n,)."""
        return relative_weights(self.weights, self._base)

    @property
    def _base(self) -> Array | None:
        counts = self.model.freq_weights
        return None if counts is None else counts / counts.sum()

    @cached_property
    def seen_rows(self) -> Any:
        """The fit as pictures draw it: itself, or a sample where rows are in partitions."""
        if not self.model.in_partitions:
            return self
        model, estimate = self.model.on_sample(self._estimate)
        return model.results_of(estimate, self._inference)

    def _rows_to_predict(
        self, exog: Any, transform: bool, row_labels: Any = None
    ) -> tuple[Array, pd.Index | None]:
        """Return rows of the design, those of the fit where none are given, and their labels."""
        if row_labels is not None:
            return self._rows_to_predict(exog, transform)[0], pd.Index(row_labels)
        if exog is None:
            return self.model.exog, self.model.data.row_labels
        held = self.model.design_in_partitions(exog)
        if held is not None:
            return held.arrays["exog"], held
        exog = as_pandas(exog)
        rows, labels = self._transform_predict_exog(exog, transform=transform)
        return np.atleast_2d(np.asarray(rows, dtype=float)), labels

    def predict(self, exog: Any = None, transform: bool = True, *args: Any, **kwargs: Any) -> Any:
        """Return predictions for new data, or for the rows of the fit, as statsmodels does.

        Parameters
        ----------
        exog : array_like, DataFrame or Dask collection, optional
            Rows to predict; by default those of the fit.
        transform : bool, optional
            Whether data frames pass through the formula.
        *args, **kwargs
            Passed on to the `predict` of statsmodels' model.

        Returns
        -------
        ndarray, Series or Dask collection

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> res.predict(stars.head(2)).round().tolist()
        [5.0, 5.0]
        """
        in_partitions = self.model.in_partitions if exog is None else is_dask(exog)
        if not in_partitions:
            kwargs = {name: as_values(value) for name, value in kwargs.items()}
            return super().predict(as_pandas(exog), transform, *args, **kwargs)
        if args or kwargs:
            given = ", ".join(kwargs) or "more arguments"
            raise NotImplementedError(
                f"predict takes no {given} for rows in partitions; predict one partition at a "
                "time, with map_partitions"
            )
        rows, labels = self._rows_to_predict(exog, transform)
        offset = self.model.fitted_offset if exog is None else 0.0
        return labeled(self.model.predicted(np.asarray(self.params), rows, offset), labels)

    @property
    def _wording(self) -> texts.Wording:
        """Sentences about explanations that differ from those of other models."""
        return {}

    @property
    def _unit_counts(self) -> Array | None:
        """Number of observations that each row stands for; None where groups have the weights."""
        return self.model.freq_weights if self._unit == "row" else None

    @cached_property
    def explanation(self) -> texts.ChosenExplanation | None:
        """The explanation that the second step chose; None where there is none.

        It is a text such as "none", "wide", "cluster" or "heavy tails", with a `sentence` in
        plain English.
        """
        return None if self._explained is None else self._told(self._explained.chosen)

    def _told(self, explanation: Explanation) -> texts.ChosenExplanation:
        """Return an explanation in the words of this model."""
        return texts.described(explanation, f"{self._unit}s", self._wording, self.eps_bar)

    @cached_property
    def explanations(self) -> pd.DataFrame | None:
        """The explanations that the second step compared; None where there are none.

        One row per explanation, the one chosen and then the others by BIC: its name,
        `log_likelihood`, `bic` less that of "none" (of the best one, where "none" did not fit),
        the share `eps` of bad rows, `n_bad`, the number of rows that are more likely bad than
        good, and whether it was `chosen`.
        """
        found, counts = self._explained, self._unit_counts
        return None if found is None else texts.explanations_frame(found, counts)

    @cached_property
    def _bad_of_all(self) -> tuple[float, float] | None:
        """How many observations, or groups, are more likely bad than good, and of how many."""
        probabilities, counts = self._unit_prob_bad, self._unit_counts
        if probabilities is None:
            return None
        total = len(probabilities) if counts is None else float(np.sum(counts))
        return texts.count_bad(probabilities, counts), total

    @cached_property
    def steps_pvalue(self) -> float:
        """P-value of the test that the two steps estimate the same; 1 where there is one.

        The second is efficient where the rows that it trusts are good, and the first is
        consistent either way (Hausman's test). Where it is small, prefer the first step.
        """
        first = self._estimate.first
        difference = np.asarray(self.params) - np.asarray((first or self._estimate).params)
        if first is None or not difference.any():
            return 1.0
        moves = self._estimate.influence() - first.influence()
        variance = self._inference.of_influence(self._estimate, moves)
        return wald_pvalue(difference, variance)

    @cached_property
    def rival(self) -> Explanation | None:
        """An explanation that is as good as the chosen one, and tells another story of a term.

        Its BIC is within 2 of that of the chosen one, and the sign of a term that is significant
        at the 5 % level is another there, or a term is significant in one of them alone, with a
        t value that differs by more than 1. Where the errors under an explanation are not known,
        those of the chosen one serve, and a constant counts for nothing. None where there is none.
        """
        explained = self._explained
        if explained is None or self.steps == 1:
            return None
        close = [
            each
            for each in explained.explanations
            if each is not explained.chosen and 0 <= each.bic - explained.chosen.bic < CLOSE
        ]
        return next((each for each in close if self._changed_terms(each)), None)

    def _changed_terms(self, other: Explanation) -> list[str]:
        """Return the terms of which another explanation tells another story, with what it says."""
        found = self._estimate.params_of(other)
        if found is None:
            return []
        errors = self._estimate.errors_of(other, self._inference.dependence)
        own = self.tvalues
        with np.errstate(invalid="ignore", divide="ignore"):  # constant columns have no errors
            there = found / (np.asarray(self.bse) if errors is None else errors)
        critical = t.isf(0.025, test_freedom(self))  # of the 5 % level
        sure, there_sure = (np.abs(z) > critical for z in (own, there))
        opposite = (np.sign(own) != np.sign(there)) & (sure | there_sure)
        with np.errstate(invalid="ignore"):  # exact fits have infinite ones
            changed = opposite | ((sure != there_sure) & (np.abs(own - there) > 1))
        return [
            f"{self.model.data.param_names[i]} ({found[i]:.3g}"
            + (")" if errors is None else f", se {errors[i]:.2g})")
            for i in np.flatnonzero(changed)
            if i != self.model.data.const_idx
        ]

    @cached_property
    def _rival_note(self) -> str:
        """What to know of an explanation that is as good as the chosen one; empty for none."""
        explained, rival = self._explained, self.rival
        if explained is None or rival is None:
            return ""
        other = self._told(rival)
        return (
            f"Another explanation is about as good (BIC larger by "
            f"{rival.bic - explained.chosen.bic:.1f}), {other.name}: {other.sentence} It tells "
            f"another story of {texts.listed(self._changed_terms(rival))}; see explanations."
        )

    @property
    def group_view(self) -> GroupView | None:
        """The groups in the place of rows; None without groups."""
        if self.model.groups is None or self.weights is None:
            return None
        return GroupView(self)

    @property
    def _weighed(self) -> Units:
        """What has a weight each: the rows, or the groups where the model has some."""
        return self.group_view or self

    def _groups(self) -> GroupView:
        view = self.group_view
        if view is None:
            raise ValueError(
                "the model has no groups; give groups=, a column of the data or labels of the rows"
            )
        return view

    @property
    def group_weights(self) -> pd.Series:
        """Weight of each group by its label, in units of its size: 1 where all are equal.

        Examples
        --------
        >>> import numpy as np, pandas as pd, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"sensor": np.repeat(list("abcdefghij"), 8)})
        >>> data["x"] = rng.standard_normal(80)
        >>> data["y"] = 2 * data.x + 0.1 * rng.standard_normal(80)
        >>> data.loc[data.sensor == "c", "y"] *= -1
        >>> res = rrmstats.ols("y ~ x", data, eps_bar=0.2, groups="sensor").fit()
        >>> res.group_weights.idxmin(), bool(res.group_weights["c"] < 1e-6)
        ('c', True)
        """
        view = self._groups()
        return pd.Series(view.relative_weights, view._labels, name="relative_weight")

    def outlier_groups(self, level: float | None = None) -> pd.Series:
        """Tell which groups are outliers.

        Parameters
        ----------
        level : float, optional
            Fraction of clean groups that are not flagged, in (0, 1). By default the flags of a
            second step are the groups that are more likely bad than good; those of a first step
            have the level 0.975.

        Returns
        -------
        Series of bool
            By the labels of the groups.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> z, unit = rng.standard_normal((200, 2)), np.repeat(np.arange(20), 10)
        >>> z[unit == 7] += 6
        >>> res = rrmstats.RRMCov(z, eps_bar=0.2, groups=unit).fit()
        >>> flags = res.outlier_groups(0.999)
        >>> list(flags.index[flags])
        [7]
        """
        return pd.Series(self._groups().outliers(level), name="outlier")

    def group_table(self, k: int | None = 10, level: float | None = None) -> pd.DataFrame:
        """Return the groups of smallest weight.

        Parameters
        ----------
        k : int, optional
            How many; None for all.
        level : float, optional
            Level of the flag; see `outlier_groups`.

        Returns
        -------
        DataFrame
            Number of rows, mean loss, weight in units of the size, how far out the mean loss is
            as a standard normal score, in two steps the probability to be bad, and flag, by the
            label of the group; the smallest weights first.

        Examples
        --------
        >>> import numpy as np, rrmstats
        >>> rng = np.random.default_rng(0)
        >>> z, unit = rng.standard_normal((200, 2)), np.repeat(np.arange(20), 10)
        >>> z[unit == 7] += 6
        >>> table = rrmstats.RRMCov(z, eps_bar=0.2, groups=unit).fit().group_table(3)
        >>> int(table.index[0]), int(table["rows"].iloc[0])
        (7, 10)
        """
        return self._groups().weight_table(k, level)

    @property
    def _unit_prob_bad(self) -> Array | None:
        """Probability of each group to be bad, or of each row where these have the weights."""
        return None if self._explained is None else self._explained.chosen.prob_bad

    def _group_notes(self) -> list[str]:
        """Return sentences on the groups, where there are any."""
        if self.model.groups is None:
            return []
        count, named = len(self.model.group_labels), ""
        two = self.steps == 2 and self.explanation is not None
        how, found = "has one weight, which its rows share", "Far out"
        if two:
            how, found = "is good or bad as a whole", "Bad"
        if self.weights is not None and self.eps_bar > 0:
            flags = self.outlier_groups(None if two else 0.999)
            names = flags.index[flags].tolist()
            named = f" {found}: {texts.listed(names)}." if names else f" None is {found.lower()}."
        notes = [
            f"Each of {count} groups {how}; eps_bar bounds the share of rows in bad groups.{named}"
        ]
        if self._design_effect > 1:
            notes.append(
                "The rows of a group depend on each other: to tell bad groups from good ones, "
                f"a group counts as if it had 1 / {self._design_effect:.2g} of its rows."
            )
        return notes

    @property
    def choice(self) -> Choice | None:
        """How `eps_bar` was chosen, where it was "auto"; None where it was given."""
        return self.model.choice

    @property
    def term_names(self) -> list[str]:
        """Names of what the model estimates."""
        return list(self.model.data.param_names)

    def path(self, eps_bar: ArrayLike | None = None, *, progress: bool | None = None) -> RRMPath:
        """Fit the model at each of several bounds, with the steps and the options of this fit.

        Parameters
        ----------
        eps_bar : array_like, optional
            The bounds; see `path` of the model.
        progress : bool, optional
            Show a progress bar; see `path` of the model.

        Returns
        -------
        RRMPath

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars).fit()
        >>> path = res.path([0, 0.1, 0.2])
        >>> path.steps, path.choice.eps_bar == res.eps_bar
        (2, True)
        """
        return self.model.path(eps_bar, progress=progress, **self._fit_options)

    def few_rows(self, term: str, what: str = "sign", alpha: float = 0.05) -> FewRows:
        """Return the fewest rows whose removal changes the sign or the significance of a term.

        Influence functions tell the rows; fits without them, at the bound of this fit, prove it.

        Parameters
        ----------
        term : str
            Name of a parameter.
        what : {"sign", "significance"}, optional
            What is to change.
        alpha : float, optional
            Level of significance, in (0, 1): terms with a smaller p-value are significant.

        Returns
        -------
        rrmstats.results.FewRows

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk).fit()
        >>> few = res.few_rows("x1")
        >>> few.confirmed, few.before.estimate * few.after.estimate < 0
        (True, True)
        """
        return self.model.few_rows_of(self, term, what, alpha)


def _refused(results: RRMResults) -> NoReturn:
    raise AttributeError


class RRMResultsWrapper(LikelihoodResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    _wrap_attrs: ClassVar[dict[str, str]]

    def __repr__(self) -> str:
        return repr(self._results)

    def __reduce__(self) -> tuple[Any, ...]:
        return labeled_results, (self._results,)

    def save(self, fname: Any, remove_data: bool = False) -> None:
        """Save a pickle of the results, as statsmodels does; rows in partitions cannot be."""
        self._results.model.refuse_partitions(
            "save", "write res.params, res.cov_params() and res.weights.to_frame().to_parquet()"
        )
        super().save(fname, remove_data)

    def __getattribute__(self, name: str) -> Any:
        if name in HIDDEN:
            raise Meaningless(f"{name} has no meaning here: {HIDDEN[name]}")
        read = super().__getattribute__
        if name.startswith("_"):
            return read(name)
        results = self._results
        held, by_row = results.model.partitioned_rows, name in results._data_attr
        dropped = results._without_data and (by_row or hasattr(type(results), name))
        if held is None and not dropped:
            return read(name)

        def finished(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            """Return values of rows as the data were; raise on those of dropped data."""
            try:
                found = call(*args, **kwargs)
            except NotImplementedError:
                raise
            except Exception as error:
                if not dropped or "remove_data" in str(error):
                    raise
                raise DataRemoved(f"{what} {NEEDS_DATA}") from error
            if dropped and by_row and found is None:
                raise DataRemoved(f"{what} {NEEDS_DATA}")
            plain = held is None or isinstance(found, MethodType)
            return found if plain else held.in_partitions(found)

        found = finished(name, read, name)
        if not isinstance(found, MethodType):
            return found
        return wraps(found)(lambda *args, **kwargs: finished(f"{name}()", found, *args, **kwargs))


def labeled_results(results: RRMResults) -> RRMResultsWrapper:
    """Return results that have the labels of the data."""
    return type(results)._wrapper(results)


def wrapper_of(kind: type[RRMResults]) -> type[RRMResultsWrapper]:
    """Return the wrapper class of a class of results.

    The attributes that it labels are those that the class and its bases name in `_row_attrs`
    and `_column_attrs`.
    """
    labels = {
        **dict.fromkeys(kind._row_attrs, "rows"),
        **dict.fromkeys(kind._column_attrs, "columns"),
    }
    members = {
        "__doc__": RRMResultsWrapper.__doc__,
        "__module__": kind.__module__,
        "_wrap_attrs": {**LikelihoodResultsWrapper._wrap_attrs, **labels},
    }
    wrapper = type(f"{kind.__name__}Wrapper", (RRMResultsWrapper,), members)
    populate_wrapper(wrapper, kind)
    return wrapper


class LikelihoodResults(RRMResults):
    """Results of models whose second step has a likelihood of all rows, good and bad.

    Where `eps_bar` is 0, all numbers are statsmodels'.
    """

    rank: int
    _has_design = True
    _meaningless: ClassVar[dict[str, str]] = {}

    plot_diagnostics = drawn(plotting.plot_diagnostics)
    plot_partial_residuals = drawn(plotting.plot_partial_residuals)
    plot_added_variable = drawn(plotting.plot_added_variable)

    @property
    def df_model(self) -> float:
        """Rank of the design less its constant."""
        return float(self.rank - self.model.k_constant)

    def _explained_variance(self, mass: Array) -> float:
        """Return the fraction of the variance that a linear regression explains.

        The variance of the fitted values of rows with a mass (n,) over its sum with the
        consistent variance of the noise: rows without weight count in neither.
        """
        fitted = self.fittedvalues
        center = mass @ fitted / mass.sum() if self.model.k_constant else 0.0
        explained = float(mass @ (fitted - center) ** 2)
        noise = self.scale * max(1 - self.rank / (self.wnobs * (1 - self.eps_hat)), 0.0)
        return explained / (explained + noise) if explained + noise > 0 else 0.0

    def _adjusted(self, rsquared: float) -> float:
        """Return a fraction of the variance, adjusted for the number of parameters."""
        return 1 - (1 - rsquared) * (self.nobs - self.model.k_constant) / self.df_resid

    def _slopes_test(self) -> ContrastResults:
        """Return Wald's test that all slopes are zero."""
        slopes = np.arange(len(self.params)) != self.model.data.const_idx
        return self.wald_test(np.eye(len(self.params))[slopes], scalar=True, use_f=True)

    @property
    def _classical_llf(self) -> float:
        """Log-likelihood of the rows under their weights, times their number."""
        raise NotImplementedError

    @cached_property
    def _log_likelihood(self) -> float:
        """Log-likelihood of all rows; NaN where it is not known."""
        if self.eps_bar == 0:
            return self._classical_llf
        explained = self._estimate.explained
        if self.steps == 1 or explained is None or self.nobs > DECIDING_ROWS:
            return np.nan
        return explained.chosen.log_likelihood

    @cached_property
    def _extra_params(self) -> int:
        """Number of parameters of the explanation besides those of good rows."""
        explained = self._estimate.explained
        return 0 if explained is None else explained.chosen.n_params

    @property
    def _why_no_likelihood(self) -> str:
        """What to do where there is no likelihood."""
        if self.steps == 1:
            return (
                "needs a model of the bad rows, which the first step does not have; use "
                "fit(steps=2), or test terms with compare() or wald_test()"
            )
        if self.nobs > DECIDING_ROWS:
            return (
                f"is not known: explanations of more than {DECIDING_ROWS:,} rows are compared on "
                "a sample; test terms with compare() or wald_test()"
            )
        return "is not known at an exact fit; see risk and losses"

    @property
    def llf(self) -> float:
        """Log-likelihood of all rows under the fitted model of good and bad ones, in two steps.

        With ``eps_bar=0`` it is statsmodels'. With other bounds it is that of `explanation`:
        compare it only with fits to the same rows.
        """
        if np.isnan(self._log_likelihood):
            raise AttributeError("llf")  # `__getattr__` of the results says why
        return self._log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's criterion of `llf`; see `info_criteria`."""
        return self.info_criteria("aic")

    @property
    def bic(self) -> float:
        """Schwarz's criterion of `llf`; see `info_criteria`.

        The `bic` of `explanations`, which chooses among them, also integrates over coefficients.
        """
        return self.info_criteria("bic")

    def info_criteria(self, crit: str, scale: Any = None, dk_params: float = 0) -> float:
        """Return an information criterion of the fitted model of good and bad rows.

        Parameters
        ----------
        crit : {"aic", "bic", "aicc", "hqic"}
        scale : optional
            Accepted as in statsmodels, and not used.
        dk_params : float, optional
            What to add to the number of parameters: coefficients, and those of the explanation
            such as the share of bad rows. As in statsmodels, the scale does not count.

        Returns
        -------
        float

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> line = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> mean = rrmstats.ols("log_light ~ 1", stars, eps_bar=0.2).fit()
        >>> line.info_criteria("aic") < mean.info_criteria("aic")
        True
        """
        if crit not in CRITERIA:
            raise ValueError(f"crit must be one of {', '.join(CRITERIA)}, got {crit!r}")
        count = self.rank + self._extra_params + dk_params
        return float(getattr(eval_measures, crit)(self.llf, self.wnobs, count))


def standardized(resid: Array, variance: float | Array) -> Array:
    """Return residuals in standard deviations; at an exact fit zero or infinite."""
    return row_map(_standardized, resid, variance)


def _standardized(resid: Array, variance: float | Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(resid == 0, 0.0, resid / np.sqrt(variance))
