"""What the results of every model share: weights, inference and tables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from statsmodels.base.model import LikelihoodModelResults, LikelihoodResultsWrapper
from statsmodels.iolib import summary2
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats import plotting
from rrmstats.bootstrap import Bootstrap
from rrmstats.core import Problem, Solution
from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import covariance
from rrmstats.diagnostics import Meaningless, Table
from rrmstats.report import report

# Rows in the summary's table of small weights.
SMALLEST = 5
COV_TYPES = ("sandwich", "cluster", "bootstrap")


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
    efficiency : float or None
        Efficiency asked of the second step; None where there was none.
    first_step : results or None
        Results of the first step where these are of the second.
    cov_type : {"sandwich", "cluster", "bootstrap"}
        How standard errors are found.
    """

    efficiency: float | None = None
    first_step: Any = None
    #: Attributes of statsmodels' results that would mislead, and why.
    _meaningless: ClassVar[dict[str, str]] = dict.fromkeys(
        ("llf", "aic", "bic", "info_criteria"), "the risk is not a likelihood of all rows"
    )
    _default_use_t: ClassVar[bool] = False

    def __init__(
        self,
        model: Any,
        params: Array,
        problem: Problem,
        solution: Solution,
        *,
        unit: float = 1.0,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(model, params, normalized_cov_params=None, scale=scale)
        self._problem, self._solution = problem, solution
        self._covariance: Array | None = None
        self.eps_bar = model.eps_bar
        self.nobs = float(len(model.endog))
        # Rows count as often as their prior weights say.
        self._total = self.nobs if model._prior is None else float(model._prior.sum())
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

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._meaningless:
            raise Meaningless(f"{name} has no meaning here: {type(self)._meaningless[name]}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        steps = "" if self.efficiency is None else f", efficiency={self.efficiency:g}"
        formula = getattr(self.model, "formula", None)
        what = "" if formula is None else f" {formula!r},"
        return (
            f"<{type(self).__name__}:{what} eps_bar={self.eps_bar:g}{steps}, "
            f"{self.nobs:.0f} rows, risk {self.risk:.4g}, "
            f"{'converged' if self.converged else 'NOT CONVERGED'}>"
        )

    @property
    def llf(self) -> float:
        """Refuse statsmodels' likelihood, which counts corrupted rows like others."""
        return float(self.__getattr__("llf"))

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    def _repr_latex_(self) -> str:
        return str(self.summary().as_latex())

    plot_weights = plotting.plot_weights
    plot_trace = plotting.plot_trace
    report = report

    @property
    def lambda_trace(self) -> pd.Series:
        """Lambda at each iteration."""
        return self.trace["lambda_"]

    def _distances(self) -> Array:
        """Return standardised residuals or distances of the rows, shape (n,)."""
        raise NotImplementedError

    def _flags(self, level: float) -> np.ndarray:
        """Tell which rows lie beyond a level, shape (n,)."""
        raise NotImplementedError

    def outliers(self, level: float = 0.975) -> Any:
        """Tell which rows are outliers.

        Parameters
        ----------
        level : float, optional
            Share of clean rows that are not flagged, in (0, 1): of clean Gaussian data about
            ``1 - level`` are flagged by chance, of clean labels at most that.

        Returns
        -------
        ndarray or Series of bool, shape (n,)
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level:g}")
        flags, labels = self._flags(level), self.model.data.row_labels
        return flags if labels is None else pd.Series(flags, index=labels)

    def weight_table(self, k: int | None = 10, level: float = 0.975) -> pd.DataFrame:
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
            Loss, weight relative to its prior share, standardised residual or distance, and
            flag, by the index of the data; the smallest weights first.
        """
        relative = np.asarray(self.weights) / uniform_weights(self.model._prior, len(self.weights))
        table = Table(
            {
                "loss": np.asarray(self.losses),
                "relative_weight": relative,
                "distance": self._distances(),
                "outlier": self._flags(level),
            },
            index=self.model.data.row_labels,
        )
        order = table.iloc[np.lexsort((-table["loss"], table["relative_weight"]))]
        return order if k is None else order.head(k)

    @property
    def default_model_infos(self) -> dict[str, Any]:
        """Rows that `summary_col` adds below the parameters."""
        return {
            "eps_bar": lambda res: f"{res.eps_bar:g}",
            "Effective size": lambda res: f"{res.n_eff:.1f}",
            "No. Observations": lambda res: f"{res.nobs:.0f}",
        }

    def summary2(
        self, title: str | None = None, alpha: float = 0.05, float_format: str = "%.4f"
    ) -> Any:
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
        """
        table = summary2.Summary()
        left, right = self._summary_top()
        known = {
            "Dep. Variable:": self.model.endog_names,
            "Model:": type(self.model).__name__,
            "No. Observations:": f"{self.nobs:.0f}",
        }
        entries = {
            name: value[0] if value else known[name]
            for name, value in (*left, *right)
            if value or name in known
        }
        table.add_dict(entries)
        frame = summary2.summary_params(self, alpha=alpha, use_t=self.use_t)
        table.add_df(frame, float_format=float_format)
        for note in self._notes():
            table.add_text(note)
        table.add_title(title or self._summary_title())
        return table

    @property
    def trace(self) -> pd.DataFrame:
        """Risk, lambda, effective sample size and kind of step, one row an iteration."""
        index = pd.RangeIndex(len(self._steps), name="iteration")
        return Table(self._steps, index, columns=["risk", "lambda_", "n_eff", "step"])

    @property
    def starts(self) -> pd.DataFrame:
        """Kind and risk of each start, before any step."""
        kinds = ["first"] + ["subset"] * (len(self._start_risks) - 1)
        return pd.DataFrame({"start": kinds, "risk": self._start_risks})

    def set_covariance(self, cov_type: str, cov_kwds: dict[str, Any], use_t: bool | None) -> None:
        """Choose how standard errors are found; `fit` calls it."""
        if cov_type not in COV_TYPES:
            raise ValueError(
                f"cov_type must be one of {', '.join(COV_TYPES)}, got {cov_type!r}; a covariance "
                "that takes the weights as known is not offered, for it is far too small"
            )
        self.cov_type, self.cov_kwds = cov_type, cov_kwds
        self.use_t = self._default_use_t if use_t is None else use_t
        self._covariance = None
        self._groups: Array | None = None
        self.bootstrap: Bootstrap | None = None
        if cov_type == "cluster":
            self._groups = group_numbers(cov_kwds, self.model)
        elif cov_type == "bootstrap":
            self.bootstrap = Bootstrap(**cov_kwds)
            self.bootstrap.run(self)
        elif cov_kwds:
            raise TypeError(f"cov_type='sandwich' takes no cov_kwds, got {sorted(cov_kwds)}")

    def _influence(self) -> Array:
        """Return the influence functions of the parameters, shape (n, k)."""
        raise NotImplementedError

    def _refits(self, counts: Array) -> Array:
        """Return the parameters fitted to resampled data, counts of shape (b, n): (b, k)."""
        raise NotImplementedError

    @property
    def df_resid(self) -> float:
        """Number of observations less that of the parameters."""
        return self.nobs - len(self.params)

    @property
    def _share(self) -> Array | None:
        """Prior weights of the rows that sum to one; None where all are equal."""
        prior = self.model._prior
        return None if prior is None else prior / prior.sum()

    @property
    def cov_params_default(self) -> Array:
        """Covariance of the parameters, shape (k, k)."""
        if self._covariance is None:
            if self.bootstrap is not None:
                self._covariance = np.atleast_2d(np.cov(self.bootstrap.replicates, rowvar=False))
            else:
                self._covariance = covariance(
                    self._influence(), self._share, self._total, self._groups
                )
        return self._covariance

    @property
    def tvalues(self) -> Array:
        """Parameters in units of their standard errors; at an exact fit 0 or infinite."""
        params, errors = np.asarray(self.params), np.asarray(self.bse)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(params == 0, 0.0, params / errors)

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return confidence intervals of the parameters.

        Parameters
        ----------
        alpha : float, optional
            One minus the level.

        Returns
        -------
        ndarray, shape (k, 2)
            Normal or t intervals; with ``cov_type="bootstrap"`` percentile or BCa intervals.
        """
        if self.bootstrap is None:
            return super().conf_int(alpha)
        return self.bootstrap.intervals(np.asarray(self.params), alpha)

    def _rows_to_predict(self, exog: Any, transform: bool) -> tuple[Array, Any]:
        """Return rows of the design, those of the fit where none are given, and their labels."""
        if exog is None:
            return self.model.exog, self.model.data.row_labels
        rows, labels = self._transform_predict_exog(exog, transform=transform)
        return np.atleast_2d(np.asarray(rows, dtype=float)), labels

    def compare(self, other: Any) -> Any:
        """Test a smaller model against this one by Wald's test.

        Likelihood ratios and sums of squares do not have their usual laws under estimated
        weights; Wald's test with this covariance does.

        Parameters
        ----------
        other : results
            Fit of a model nested in this one: its predictors are among those of this one.

        Returns
        -------
        statsmodels ContrastResults
            Test that the parameters which `other` lacks are zero.
        """
        mine, theirs = list(self.model.exog_names), list(other.model.exog_names)
        strangers = [name for name in theirs if name not in mine]
        tested = [name for name in mine if name not in theirs]
        if strangers or not tested:
            raise ValueError(
                "compare needs a smaller, nested model: its predictors must be some, not all, of "
                f"{mine}, got {theirs}"
            )
        if other.nobs != self.nobs:
            raise ValueError(
                f"the models were fitted to {self.nobs:g} and {other.nobs:g} rows; fit both to "
                "the same rows"
            )
        restriction = np.eye(len(mine))[[mine.index(name) for name in tested]]
        return self.wald_test(restriction, scalar=True)

    def remove_data(self) -> None:
        """Drop the arrays as long as the data, after what needs them has been found."""
        _ = self.cov_params_default, self.model.endog_names, self.model.data.row_labels
        if self.first_step is not None:
            self.first_step.remove_data()
        super().remove_data()
        self._problem = self._solution = None  # type: ignore[assignment]

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
            ("Effective size (Kish):", [self._kish_text()]),
            ("Starts:", [str(len(self._start_risks))]),
            ("Ends at least risk:", [f"{self.n_best} of {len(self.final_risks)}"]),
        ]
        left.append(("Steps:", ["one" if self.efficiency is None else "two"]))
        right.append(("Efficiency, clean data:", [self._efficiency_text()]))
        return left, right

    def _kish_text(self) -> str:
        clean = getattr(self, "n_kish_clean", None)
        if clean is None or self.efficiency is not None or self.eps_bar == 0:
            return f"{self.n_kish:.1f}"
        return f"{self.n_kish:.1f} (clean {clean:.1f})"

    def _efficiency_text(self) -> str:
        """Return the efficiency of the reported step on clean data."""
        return "n/a" if self.efficiency is None else f"{self.efficiency:.2f}"

    def _summary_subject(self) -> tuple[str, Any]:
        return ("Dep. Variable:", None)

    def _summary_title(self) -> str:
        return "Robust Risk Minimization Results"

    def _add_params(self, table: Summary, yname: str | None, alpha: float) -> None:
        table.add_table_params(self, yname=yname, alpha=alpha, use_t=self.use_t)

    def _smallest_weights(self) -> SimpleTable:
        """Return the rows of smallest weight, named by their index."""
        relative = np.asarray(self.weights) / uniform_weights(self.model._prior, len(self.weights))
        rows = np.lexsort((-self.losses, relative))[:SMALLEST]
        labels = self.model.data.row_labels
        names = [str(i if labels is None else labels[i]) for i in rows]
        distances = self._distances()
        cells = [
            [f"{relative[i]:.4f}", f"{self.losses[i]:.5g}", f"{distances[i]:.3g}"] for i in rows
        ]
        columns = ["weight * n", "loss", "distance"]
        return SimpleTable(cells, columns, names, "Smallest weights", txt_fmt=fmt_base)

    def _covariance_note(self) -> str:
        if self.bootstrap is not None:
            return f"Standard errors and intervals: {self.bootstrap.describe()}."
        kind = "clustered by groups" if self.cov_type == "cluster" else "sandwich"
        return f"Standard errors: {kind}; the weights are estimated with the parameters."

    def _notes(self) -> list[str]:
        notes = [self._covariance_note()]
        if self.efficiency is not None:
            notes.append(
                "These are the estimates of the second step; first_step holds those of the first."
            )
        if self.lambda_ == 0:
            notes.append(
                "Exact fit: the observations with weight share the smallest loss; lambda is 0."
            )
        if not self.converged:
            notes.append("The risk had not settled; raise maxiter.")
        return notes

    def summary(
        self, yname: str | None = None, title: str | None = None, alpha: float = 0.05
    ) -> Summary:
        """Return the fit as statsmodels' tables.

        Parameters
        ----------
        yname : str, optional
            Name of the dependent variable.
        title : str, optional
            Title of the tables.
        alpha : float, optional
            One minus the level of the intervals.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        table = Summary()
        left, right = self._summary_top()
        table.add_table_2cols(
            self, title=title or self._summary_title(), gleft=left, gright=right, yname=yname
        )
        self._add_params(table, yname, alpha)
        if self.weights is not None:  # remove_data drops them
            table.tables.append(self._smallest_weights())
        table.add_extra_txt([f"[{i}] {note}" for i, note in enumerate(self._notes(), 1)])
        return table


class RRMResultsWrapper(LikelihoodResultsWrapper):
    """Attach the labels of the data to the arrays of the results."""

    def __repr__(self) -> str:
        return repr(self._results)

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


def group_numbers(cov_kwds: dict[str, Any], model: Any) -> np.ndarray:
    """Return the clusters of `cov_kwds` numbered from zero, for the rows of the model."""
    unknown = sorted(set(cov_kwds) - {"groups"})
    if unknown or "groups" not in cov_kwds:
        raise TypeError(
            f"cov_type='cluster' takes cov_kwds={{'groups': labels}}, got {sorted(cov_kwds)}"
        )
    groups, n, labels = cov_kwds["groups"], len(model.endog), model.data.row_labels
    if isinstance(groups, pd.Series) and labels is not None and len(groups) != n:
        groups = groups.loc[labels]
    numbers, levels = pd.factorize(np.asarray(groups))
    if len(numbers) != n:
        raise ValueError(
            f"groups must have one label for each of the {n} rows, got {len(numbers)}"
        )
    if (numbers < 0).any():
        raise ValueError("groups must not be missing")
    if len(levels) < 2:
        raise ValueError("cov_type='cluster' needs at least two groups")
    return numbers
