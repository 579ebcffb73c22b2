"""Results along a grid of eps_bar: what depends on the choice of the bound, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.iolib.summary import Summary

from rrmstats import plotting
from rrmstats.core.changes import leaving_rows, left_for_good
from rrmstats.core.choice import Choice
from rrmstats.core.comparison import Agreement, compare
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import Good
from rrmstats.core.steps import second_steps
from rrmstats.report import write_path_report
from rrmstats.results.base import ONE_STEP
from rrmstats.results.grouping import GroupView
from rrmstats.results.inference import Inference
from rrmstats.results.path_summary import make_path_summary
from rrmstats.results.path_terms import Terms, aligned_terms, change_sentences


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
        return make_path_summary(self)

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
    def _units(self) -> list[GroupView | Any]:
        """The results at each bound, or their groups in the place of rows."""
        grouped = self.unit == "group"
        return [each.group_view if grouped else each for each in self.results]

    @cached_property
    def _terms(self) -> list[Terms]:
        return aligned_terms(list(self.results))

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
        for i, terms in enumerate(self._terms):
            results = self._result(i)
            blocks.append(
                pd.DataFrame(
                    {
                        "eps_bar": self.eps_bars[i],
                        "term": terms.names,
                        "estimate": terms.estimates,
                        "std_err": terms.errors,
                        "lower": terms.bounds[:, 0],
                        "upper": terms.bounds[:, 1],
                        "risk": results.risk,
                        "lambda_": results.lambda_,
                        "scale": getattr(self._estimates[i], "scale", np.nan),
                        "eps_hat": results.eps_hat,
                        "n_kish": results.n_kish,
                        "n_flagged": int(self.flags.iloc[:, i].sum()),
                        "explanation": self._explanations[i],
                    }
                )
            )
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
        found = [each.explanation for each in self.results]
        if self.steps == 1 or not any(found):
            return [None] * len(self)
        # Where no row may be bad, some models compare nothing.
        plain = [Good.PLAIN.value if eps_bar == 0 else None for eps_bar in self.eps_bars]
        return [each.name if each else other for each, other in zip(found, plain, strict=True)]

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
        return self._by_unit([np.asarray(each._unit_distances()) for each in self.results])

    @cached_property
    def flags(self) -> pd.DataFrame:
        """Which rows or groups are outliers, one column per bound; see `RRMResults.outliers`."""
        return self._by_unit([np.asarray(each._unit_flags()) for each in self.results])

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
            found.append(
                (
                    *(self.eps_bars[i - 1], self.eps_bars[i], seen.pvalue),
                    bool(self.switched[i]),
                    tuple(names[j] for j in seen.moved),
                    tuple(labels[self._leaving(i - 1, i)]),
                    tuple(labels[self._leaving(i, i - 1)]),
                )
            )
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
