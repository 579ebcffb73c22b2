"""Results along a grid of eps_bar: what depends on the choice of the bound, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats import plotting
from rrmstats.core.choice import Choice
from rrmstats.core.comparison import Agreement, compare, leaving_rows, left_for_good, steady_runs
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import Good
from rrmstats.core.steps import second_steps
from rrmstats.report import write_path_report
from rrmstats.results.base import ONE_STEP, Units
from rrmstats.results.explanations import listed
from rrmstats.results.inference import Inference


def term_table(names: list[str], estimates: Array, errors: Array, ends: Array) -> pd.DataFrame:
    """Return estimates with their names, standard errors and the ends of intervals (2, k)."""
    low, high = ends
    columns = {"term": names, "estimate": estimates, "std_err": errors}
    return pd.DataFrame({**columns, "lower": low, "upper": high})


def params_table(results: Any) -> pd.DataFrame:
    """Return the parameters of results with 95 % intervals."""
    names, params = list(results.model.data.param_names), np.asarray(results.params, dtype=float)
    if getattr(results, "singular", False):  # a covariance without standard errors
        return term_table(names, params, params * np.nan, params * np.full((2, 1), np.nan))
    errors, ends = (np.asarray(each, float) for each in (results.bse, results.conf_int(0.05)))
    return term_table(names, params, errors, ends.T)


def loadings_table(results: Any, axes: Array) -> pd.DataFrame:
    """Return loadings with 95 % intervals, with the signs of `axes`, shape (d, q)."""
    estimates, errors = axes.ravel(), np.asarray(results.loadings_bse, dtype=float).ravel()
    components = results.model.data.param_names
    names = [f"loading[{v}, {c}]" for v in results.model.variables for c in components]
    margin = norm.ppf(0.975) * errors
    return term_table(names, estimates, errors, np.array([estimates - margin, estimates + margin]))


def change_sentences(frame: pd.DataFrame) -> list[str]:
    """Return where terms lose or gain significance, or change their sign.

    Parameters
    ----------
    frame : DataFrame
        With columns eps_bar, term, estimate, lower and upper, in the order of eps_bar.
    """
    sentences: list[str] = []
    for term, table in frame.groupby("term", sort=False):
        known = table[np.isfinite(table["lower"]) & np.isfinite(table["upper"])]
        if len(known) > 1:
            sentences += _changes(str(term), known)
    return sentences


def _changes(term: str, table: pd.DataFrame) -> list[str]:
    grid, positive = table["eps_bar"].to_numpy(), table["estimate"].to_numpy() > 0
    significant = np.asarray((table["lower"] > 0) | (table["upper"] < 0))

    def word(states: np.ndarray, run: tuple[int, int], words: tuple[str, str]) -> str:
        """Return the word for a state that holds, or for one that does not, in most of a run."""
        return words[0] if np.mean(states[slice(*run)]) > 0.5 else words[1]

    found = [
        f"{term} {word(significant, run, ('becomes significant', 'loses significance'))} from "
        f"eps_bar = {grid[run[0]]:g} on"
        for run in steady_runs(significant)[1:]
    ]
    sign = ("positive", "negative")
    return found + [
        f"{term} changes sign from eps_bar = {grid[run[0]]:g} on: {word(positive, last, sign)} "
        f"before, {word(positive, run, sign)} after"
        for last, run in pairwise(steady_runs(positive))
        if significant[last[0] : run[1]].any()
    ]


def _top(path: RRMPath) -> SimpleTable:
    steps = "one" if path.steps == 1 else "two"
    chosen = "none" if path.choice is None else f"{path.choice.eps_bar:g}"
    grid = f"{len(path)} values, {path.eps_bars[0]:g} to {path.eps_bars[-1]:g}"
    cells = [
        ["Model:", type(path.model).__name__, "eps_bar:", grid],
        ["No. Observations:", str(len(path.model.endog)), "Chosen eps_bar:", chosen],
        ["Steps:", steps, "Jumps:", str(len(path.jumps))],
    ]
    if path.unit == "group":
        cells.append(["No. Groups:", str(len(path.weights)), "", ""])
    return SimpleTable(cells, None, None, "Robust Risk Minimization: Path", txt_fmt=fmt_base)


def _fits(path: RRMPath) -> SimpleTable:
    """Return what concerns whole fits, at bounds spread over the grid.

    In two steps these are the bounds at which another explanation is chosen, and others.
    """
    fits = path.frame.drop_duplicates("eps_bar").reset_index(drop=True)
    names = fits["explanation"]
    told = names.notna().any()
    places = np.linspace(0, len(path) - 1, 6).round().astype(int)
    if told:
        places = np.r_[places, np.flatnonzero(names != names.shift())]
    fits = fits.iloc[np.unique(places)]
    cells = [
        [
            (row.explanation or "n/a") if told else f"{row.risk:.4g}",
            *(f"{row.eps_hat:.3f}", f"{row.n_kish:.1f}", str(row.n_flagged)),
        ]
        for row in fits.itertuples()
    ]
    headers = ["explanation" if told else "risk", "eps_hat", "n_kish", "flagged"]
    stubs = [f"{value:g}" for value in fits["eps_bar"]]
    return SimpleTable(cells, headers, stubs, "Fits by eps_bar", txt_fmt=fmt_base)


def _jumps(path: RRMPath) -> SimpleTable:
    units = f"{path.unit}s"
    cells = [
        [
            *(f"{row.pvalue:.1g}", "another" if row.switched else "same"),
            *(listed(getattr(row, name), 3) or "-" for name in ("terms", units, f"{units}_back")),
        ]
        for row in path.jumps.itertuples()
    ]
    stubs = [f"{row.eps_bar_from:g} to {row.eps_bar_to:g}" for row in path.jumps.itertuples()]
    headers = ["p-value", "minimum", "terms", f"{units} that leave", f"{units} back"]
    return SimpleTable(cells, headers, stubs, "Jumps", txt_fmt=fmt_base)


def _notes(path: RRMPath) -> list[str]:
    notes = [] if path.choice is None else [path.choice.reason]
    if not len(path.jumps):
        notes.append("No jump: the fit moves along the path by no more than chance allows.")
    shown, others = path.signs[:12], path.signs[12:]
    notes += [f"{sentence}." for sentence in shown]
    return [*notes, f"{len(others)} more changes of terms: see signs."] if others else notes


class RRMPath:
    """Fits of a model at each of several bounds on the share of bad rows.

    Where the model has groups, which share a weight, what is said of rows holds for groups.

    Attributes
    ----------
    model : model
        The model, without regard to its own `eps_bar`.
    eps_bars : ndarray, shape (m,)
        The bounds, increasing.
    steps : int
        2 for the estimates of second steps, 1 for those of first ones, the paper's.
    switched : ndarray of bool, shape (m,)
        Where another local minimum is the lowest than at the bound before.

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2])
    >>> path.eps_bars, len(path)
    (array([0. , 0.1, 0.2]), 3)
    """

    def __init__(
        self,
        model: Any,
        eps_bars: Array,
        estimates: Sequence[Estimate],
        inferences: Sequence[Inference],
        switched: np.ndarray,
    ) -> None:
        self.model, self.eps_bars, self.switched = model, eps_bars, switched
        self.steps = 1 if estimates[-1].first is None else 2
        self._estimates, self._inferences = tuple(estimates), tuple(inferences)
        self._built: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.eps_bars)

    def __repr__(self) -> str:
        formula = getattr(self.model, "formula", None)
        what = "" if formula is None else f" {formula},"
        return (
            f"<{type(self).__name__} of {type(self.model).__name__}:{what} {len(self)} values of "
            f"eps_bar from {self.eps_bars[0]:g} to {self.eps_bars[-1]:g}, "
            f"steps={self.steps}; call summary()>"
        )

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())

    plot = plotting.plot_path
    plot_weights = plotting.plot_path_weights
    plot_residuals = plotting.plot_path_residuals
    report = write_path_report

    def summary(self) -> Summary:
        """Return the grid, some of its fits, the jumps and what changes as tables.

        Returns
        -------
        statsmodels.iolib.summary.Summary

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path()
        >>> "Fits by eps_bar" in path.summary().as_text()
        True
        """
        summary = Summary()
        summary.tables = [_top(self), _fits(self), *([_jumps(self)] if len(self.jumps) else [])]
        summary.add_extra_txt([f"[{i}] {note}" for i, note in enumerate(_notes(self), 1)])
        return summary

    def _result(self, i: int) -> Any:
        if i not in self._built:
            model = self.model.with_eps_bar(self.eps_bars[i])
            self._built[i] = model.results_of(self._estimates[i], self._inferences[i])
        return self._built[i]

    @property
    def results(self) -> tuple[Any, ...]:
        """The results at each bound, with all that a fit offers."""
        return tuple(self._result(i) for i in range(len(self)))

    def at(self, eps_bar: float) -> Any:
        """Return the results at one bound of the grid.

        Parameters
        ----------
        eps_bar : float
            One of `eps_bars`.

        Returns
        -------
        RRMResults
            As `fit` returns them.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2])
        >>> bool(path.at(0.2).params["log_te"] > 0)
        True
        """
        distance = np.abs(self.eps_bars - eps_bar)
        i = int(np.argmin(distance))
        if not distance[i] <= 1e-9:
            near = np.sort(self.eps_bars[np.argsort(distance, kind="stable")[:3]])
            raise ValueError(
                f"eps_bar={eps_bar:g} is not on the grid of the path; the nearest values are "
                f"{', '.join(f'{value:g}' for value in near)}"
            )
        return self._result(i)

    @cached_property
    def choice(self) -> Choice | None:
        """The bound that ``eps_bar="auto"`` chooses; None where "auto" does not work.

        It need not be on the grid. The model makes the choice when it is first asked for; the
        path of a fit has that of the fit.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> path = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).path([0.1, 0.2, 0.3])
        >>> path.choice.eps_bar
        0.22
        """
        if self.model.choice is not None:  # that of the fit
            return self.model.choice
        try:
            return self.model.chosen(self._estimates[0].setting)
        except NotImplementedError:
            return None

    @property
    def unit(self) -> str:
        """What has a weight each: "row", or "group" where the model has groups."""
        return "group" if self.model.weighs_groups else "row"

    @cached_property
    def _units(self) -> list[Units]:
        """The results at each bound, or their groups in the place of rows."""
        grouped = self.unit == "group"
        return [each.group_view if grouped else each for each in self.results]

    @cached_property
    def _terms(self) -> list[pd.DataFrame]:
        """The terms at each bound; the signs of loadings change as little as can be."""
        tables, axes = [params_table(each) for each in self.results], None
        for i, each in enumerate(self.results):
            if hasattr(each, "loadings_bse"):
                own = np.asarray(each.loadings, dtype=float)
                turned = axes is not None and (own * axes).sum(axis=0) < 0
                axes = np.where(turned, -own, own)
                tables[i] = pd.concat([tables[i], loadings_table(each, axes)])
        return tables

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Estimates at each bound, one row per bound and term.

        Columns are eps_bar, term, estimate, std_err, the 95 % interval (lower, upper), and what
        concerns the whole fit: risk, ``lambda_``, scale (NaN where the model has none), eps_hat,
        n_kish, n_flagged, the number of rows or groups that are outliers, and the name of the
        explanation of the rows (None where there is none). The terms of principal components are
        the eigenvalues and the loadings, whose signs are aligned along the path.
        """
        blocks = []
        for i, (terms, results) in enumerate(zip(self._terms, self.results, strict=True)):
            block = terms.assign(
                risk=results.risk,
                lambda_=results.lambda_,
                scale=getattr(self._estimates[i], "scale", np.nan),
                eps_hat=results.eps_hat,
                n_kish=results.n_kish,
                n_flagged=int(self.flags.iloc[:, i].sum()),
                explanation=self._explanations[i],
            )
            block.insert(0, "eps_bar", self.eps_bars[i])
            blocks.append(block)
        return pd.concat(blocks, ignore_index=True)

    def _by_unit(self, columns: list[npt.NDArray[Any]]) -> pd.DataFrame:
        labels = self.model.data.row_labels
        if self.unit == "group":
            labels = self.model.group_labels.rename("group")
        eps_bars = pd.Index(self.eps_bars, name="eps_bar")
        return pd.DataFrame(np.column_stack(columns), index=labels, columns=eps_bars)

    @cached_property
    def weights(self) -> pd.DataFrame:
        """Probability weights of the rows or groups, one column per bound."""
        return self._by_unit([np.asarray(each.weights) for each in self._units])

    @cached_property
    def relative_weights(self) -> pd.DataFrame:
        """Weights in units of equal ones, or of frequency weights or the sizes of groups."""
        return self._by_unit([np.asarray(each.relative_weights) for each in self._units])

    @cached_property
    def _explanations(self) -> list[str | None]:
        """The name of the explanation at each bound; None where there is none."""
        found = [each and each.name for each in (each.explanation for each in self.results)]
        if self.steps == 2 and any(found) and self.eps_bars[0] == 0:
            found[0] = found[0] or Good.PLAIN.value  # some models compare nothing there
        return found

    @cached_property
    def prob_bad(self) -> pd.DataFrame:
        """Probabilities of the rows or groups to be bad, one column per bound; in two steps only.

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> path = rrmstats.ols("log_light ~ log_te", stars).path([0, 0.1, 0.2])
        >>> (path.prob_bad.loc[10] > 0.5).tolist()
        [False, True, True]
        """
        columns = [each._unit_prob_bad for each in self.results]
        known = [column for column in columns if column is not None]
        if self.steps == 1 or not known:
            raise AttributeError(f"prob_bad {ONE_STEP}")
        none = np.zeros_like(known[0])  # no row may be bad where eps_bar is 0
        return self._by_unit([none if column is None else column for column in columns])

    @cached_property
    def residuals(self) -> pd.DataFrame:
        """Standardized residuals or distances of the rows, one column per bound.

        Of groups their mean losses as standard normal scores.
        """
        return self._by_unit([np.asarray(each._distances()) for each in self._units])

    @cached_property
    def flags(self) -> pd.DataFrame:
        """Which rows or groups are outliers, one column per bound; see `RRMResults.outliers`."""
        return self._by_unit([np.asarray(each._flagged(None)) for each in self._units])

    @cached_property
    def leaves(self) -> pd.DataFrame:
        """The bound at which each row or group leaves the fit.

        Columns `below_half` and `below_1pct` hold the smallest eps_bar of the grid from which on
        its probability to be good stays below 0.5 and 0.01 to the end of the grid; NaN where it
        is not below at the end. In one step it is the weight, in units of an equal one, that
        stays below.
        """
        grid = np.r_[self.eps_bars, np.nan]
        prob_bad = getattr(self, "prob_bad", None)
        left = self.relative_weights if prob_bad is None else 1 - prob_bad
        columns = {
            name: grid[left_for_good(left.to_numpy(), threshold)]
            for name, threshold in (("below_half", 0.5), ("below_1pct", 0.01))
        }
        return pd.DataFrame(columns, index=self.weights.index)

    @cached_property
    def signs(self) -> list[str]:
        """Sentences on where terms lose or gain significance (5 %), or change their sign.

        A crossing that comes back at the next bound is left out, and so is a change of sign of
        a term that is significant neither before nor after it.
        """
        return change_sentences(self.frame)

    @cached_property
    def jumps(self) -> pd.DataFrame:
        """Where the fit moves along the path by more than its errors allow.

        One row per jump: eps_bar_from and eps_bar_to; the pvalue of the largest difference, in
        units of the standard errors at the larger bound, corrected for the number of terms;
        whether another local minimum of the risk became the lowest (switched); the terms that
        moved beyond chance, the farthest first; the labels of the rows (of the groups, where the
        model has some) that leave there, and of the rows_back (groups_back). A pvalue below 0.01
        makes a jump.

        Second steps are compared, also where the path has one step; there differences of the
        first steps count too where `switched`, in units of the smaller error of the two. In two
        steps rows leave where they become more likely bad than good, in one step where their
        weight, in units of an equal one, falls from above 0.5 to below 0.1.
        """
        found, labels = [], self.weights.index
        for i in range(1, len(self)):
            seen = compare(self._second_steps[i - 1], self._second_steps[i])
            if seen.agrees and self.switched[i] and self.steps == 1:
                seen = self._compared_first_steps(i)
            if seen.agrees:
                continue
            names = self._result(i).term_names
            moved = tuple(names[j] for j in seen.moved)
            leave, back = (
                tuple(labels[self._leaving(*ends)]) for ends in ((i - 1, i), (i, i - 1))
            )
            here = (*self.eps_bars[i - 1 : i + 1], seen.pvalue, bool(self.switched[i]))
            found.append((*here, moved, leave, back))
        names = ["eps_bar_from", "eps_bar_to", "pvalue", "switched", "terms"]
        names += [f"{self.unit}s", f"{self.unit}s_back"]
        return pd.DataFrame(found, columns=names)

    @cached_property
    def _second_steps(self) -> tuple[Estimate, ...]:
        """Second steps at each bound, which nearly coincide along the path on clean data."""
        return self._estimates if self.steps == 2 else second_steps(self._estimates)

    def _compared_first_steps(self, place: int) -> Agreement:
        """Return how far first steps move to a place, in the smaller errors of the two."""
        there, back = (
            compare(self._estimates[i], self._estimates[j])
            for i, j in ((place - 1, place), (place, place - 1))
        )
        return max(there, back, key=lambda seen: np.nanmax(np.abs(seen.zscores), initial=0.0))

    def _leaving(self, before: int, after: int) -> np.ndarray:
        """Return the places of rows that leave between two places of the path."""
        if self.steps == 2:
            flags = self.flags.to_numpy()
            return np.flatnonzero(flags[:, after] & ~flags[:, before])
        relative = self.relative_weights.to_numpy()
        return leaving_rows(relative[:, before], relative[:, after])
