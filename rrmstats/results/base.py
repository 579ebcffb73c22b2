"""What the results of every model share: views of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from statsmodels.iolib import summary2
from statsmodels.iolib.summary import Summary

from rrmstats import plotting
from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.report import write_report
from rrmstats.results.bootstrap import Replicates
from rrmstats.results.bound import BoundResults
from rrmstats.results.explained_distances import ExplainedDistances
from rrmstats.results.inference import Inference, shifted_intervals
from rrmstats.results.pictures import drawn
from rrmstats.results.refusals import Meaningless, refused
from rrmstats.results.stability import Stability
from rrmstats.results.steps import ONE_STEP
from rrmstats.results.summary import bad_rows_text, make_summary, make_summary2
from rrmstats.results.tables import Table

ONE_OF_SEVERAL = "this fit belongs to another one, or to a path, whose jumps tell"


class RRMResults(BoundResults):
    """Results of a fit by robust risk minimization.

    Attributes
    ----------
    params : ndarray, shape (k,)
        Consistent estimates.
    raw_params : ndarray, shape (k,)
        The paper's, before any correction.
    weights : ndarray, shape (n,)
        Probability weights of the observations; they sum to one.
    lambda_ : float
        Temperature of the first step: its weights are proportional to
        ``exp(-losses / lambda_)``.
    losses : ndarray, shape (n,)
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
        Estimated fraction of bad rows, those of bad groups where rows come in groups, and its
        standard error; NaN where the model has no such estimate.
    prob_bad : ndarray, shape (n,)
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
    _meaningless: ClassVar[dict[str, str]] = refused(
        likelihood=("llf", "aic", "bic", "info_criteria")
    )
    _default_use_t: ClassVar[bool] = False
    _title: ClassVar[str] = "Robust Risk Minimization Results"
    #: Arrays that the wrapper labels by row and by parameter.
    _row_attrs: ClassVar[tuple[str, ...]] = ("weights", "losses", "prob_bad")
    _column_attrs: ClassVar[tuple[str, ...]] = ("raw_params",)

    first_step: RRMResults | None
    #: Whether `remove_data` has dropped the data.
    _without_data = False

    def __init__(
        self,
        model: Any,
        estimate: Estimate,
        inference: Inference,
        first_step: RRMResults | None = None,
    ) -> None:
        super().__init__(model, estimate.params, normalized_cov_params=None)
        self._set_steps(estimate, inference)
        self.first_step = first_step
        found, unit, shift = estimate.solution, estimate.loss_unit, estimate.loss_shift
        self.raw_params = estimate.raw_params
        self.eps_bar = estimate.setting.eps_bar
        self.stability = Stability(eps_bar=self.eps_bar, why=ONE_OF_SEVERAL)
        self.nobs, self.wnobs = float(len(found.weights)), estimate.wnobs
        self.weights = found.weights
        self.losses = found.losses * unit + shift
        self.risk = found.risk * unit + shift
        tempered = found if estimate.explained is None else (estimate.first or estimate).solution
        self.lambda_ = tempered.lambda_ * unit
        self.n_eff, self.entropy = found.n_eff, float(np.log(found.n_eff))
        self.n_kish = kish_size(found.weights, model.freq_weights)
        self.converged, self.n_iter = bool(found.converged), found.n_iter
        self.final_risks = found.final_risks * unit + shift
        self.n_reached, self.n_best = found.n_reached, found.n_best
        self.cov_type, self.cov_kwds = inference.cov_type, inference.cov_kwds
        self.use_t = self._default_use_t if inference.use_t is None else inference.use_t
        self._data_attr.extend(["weights", "losses", "prob_bad"])

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._meaningless:
            raise Meaningless(f"{name} has no meaning here: {type(self)._meaningless[name]}")
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

    @property
    def llf(self) -> float:
        """Refuse statsmodels' likelihood, which counts corrupted rows like others."""
        return float(self.__getattr__("llf"))

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    def _repr_latex_(self) -> str:
        return str(self.summary().as_latex())

    plot_explanation = drawn(plotting.plot_explanation)
    plot_weights = drawn(plotting.plot_weights)
    plot_trace = plotting.plot_trace
    report = write_report

    def explained_distances(self) -> ExplainedDistances:
        """Return residuals or distances of the rows, as `plot_explanation` shows them.

        With the densities of good and of bad rows, where the explanation has simple ones.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> rrmstats.cov("~ x1 + x2 + x3", hbk).fit().explained_distances().name
        'robust distance'
        """
        name = "distance" if self._unit == "row" else "mean loss as a normal score"
        return ExplainedDistances(self._unit_distances(), name)

    @property
    def bootstrap(self) -> Replicates | None:
        """What the bootstrap found; None without ``cov_type="bootstrap"``."""
        return self._inference.replicates

    @property
    def n_kish_clean(self) -> float | None:
        """Kish's effective sample size that clean data would have; None where it is not known."""
        return None

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
        """Number of observations less that of the parameters."""
        return self.nobs - len(self.params)

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
            of labels are not centered at the parameters where flips that do not show may have
            shrunk these.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
        >>> low, high = res.conf_int().loc["log_te"]
        >>> bool(low < res.params["log_te"] < high)
        True
        """
        if self.bootstrap is not None:
            return self.bootstrap.intervals(np.asarray(self.params), alpha)
        ends, shift = super().conf_int(alpha), self._interval_shift
        return ends if shift is None else shifted_intervals(ends, self.bse, shift)

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
        _ = self.model.endog_names, self.model.data.row_labels
        if self.first_step is not None:
            self.first_step.remove_data()
        super().remove_data()
        del self._estimate
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

    def _summary_subject(self) -> tuple[str, list[str] | None]:
        return ("Dep. Variable:", None)

    def _add_params(
        self, table: Summary, yname: str | None, xname: Sequence[str] | None, alpha: float
    ) -> None:
        table.add_table_params(self, yname=yname, xname=xname, alpha=alpha, use_t=self.use_t)

    def _notes(self) -> list[str]:
        notes = [*self._group_notes(), self._inference.describe(), *self._bound_notes()]
        notes += self._step_notes()
        if self.lambda_ == 0:
            notes.append(
                "Exact fit: the observations with weight share the smallest loss; lambda is 0."
            )
        if not self.converged:
            notes.append("The fit did not converge; raise maxiter.")
        return notes + self._search_notes()

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
        others = (
            f"all {total} descents agree, but they started from similar weights"
            if self.n_reached == total
            else f"{total - self.n_reached} of {total} descents ended higher"
        )
        return [
            f"No two starts that are far apart lead to this minimum: {others}. A larger n_starts= "
            "checks that there is none lower."
        ]

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
        return make_summary(self, yname, xname, title, alpha, slim)

    def summary2(
        self, title: str | None = None, alpha: float = 0.05, float_format: str = "%.4f"
    ) -> summary2.Summary:
        """Return the fit as statsmodels' second kind of tables.

        Parameters
        ----------
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
        return make_summary2(self, title, alpha, float_format)


def kish_size(weights: Array, freq_weights: Array | None) -> float:
    """Return Kish's effective sample size; a row of frequency weight 2 counts as two rows."""
    if freq_weights is None:
        return 1.0 / float(weights @ weights)
    return 1.0 / float(row_sums(_square_per_count, weights, freq_weights))


def _square_per_count(weights: Array, freq_weights: Array) -> Array:
    used = weights > 0
    return np.asarray(np.sum(weights[used] ** 2 / freq_weights[used]))
