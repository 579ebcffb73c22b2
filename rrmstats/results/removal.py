"""How few rows decide a conclusion, in a frame and a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from rrmstats.core.entropy import Array
from rrmstats.plotting.any_model import plot_few_rows
from rrmstats.results.explanations import percent


class FittedTerm(NamedTuple):
    """A term of a fit.

    Attributes
    ----------
    estimate, bse, pvalue : float

    Examples
    --------
    >>> from rrmstats.results import FittedTerm
    >>> FittedTerm(estimate=1.0, bse=0.5, pvalue=0.046).pvalue
    0.046
    """

    estimate: float
    bse: float
    pvalue: float


@dataclass(frozen=True, eq=False, kw_only=True)
class FewRows:
    """The rows whose removal changes a conclusion, as `few_rows` finds them.

    Attributes
    ----------
    term : str
    what : {"sign", "significance"}
        What changes.
    alpha : float
        Level of significance.
    rows : DataFrame
        The rows by the index of the data: their `position`, and the `change` of the estimate that
        influence functions tell for the removal of each alone.
    nobs : int
        Number of rows of the fit.
    before, after : FittedTerm
        Estimate, standard error and p-value of the term, with all rows and without these.
    confirmed : bool
        Whether the fit without these rows changes the conclusion. False where no set was found
        that does; the rows are then the last that were tried.
    smallest : bool
        Whether all smaller sets were tried. Otherwise a smaller one may exist. Where no set was
        found, whether all sets of up to half of the rows were tried.
    n_predicted : int or None
        How many rows influence functions alone tell, without a refit; None where they tell of no
        such set.
    moves : ndarray, shape (n,)
        The changes of all rows.
    refits : DataFrame
        The fits on the way: number of rows removed, estimate, standard error and p-value.

    Examples
    --------
    >>> import rrmstats, statsmodels.formula.api as smf
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> few = rrmstats.few_rows(smf.ols("log_light ~ log_te", stars).fit(), "log_te")
    >>> few.n_rows, few.confirmed, few.smallest
    (2, True, True)
    """

    term: str
    what: str
    alpha: float
    rows: pd.DataFrame
    nobs: int
    before: FittedTerm
    after: FittedTerm
    confirmed: bool
    smallest: bool
    n_predicted: int | None
    moves: Array = field(repr=False)
    refits: pd.DataFrame = field(repr=False)

    plot = plot_few_rows

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.rows)

    @property
    def share(self) -> float:
        """Which share of all rows."""
        return self.n_rows / self.nobs

    @property
    def sentence(self) -> str:
        """What was found, for a paper."""
        rows = f"{self.n_rows:,} of {self.nobs:,} rows ({percent(self.share)})"
        before, after = (_numbers(fit) for fit in (self.before, self.after))
        if not self.confirmed:
            none = "No set of up to half of the rows" if self.smallest else "No set of rows"
            return (
                f"{none} was found whose removal changes the {self.what} of {self.term} "
                f"({before}): without {rows} the estimate is {after}."
            )
        sure = " No smaller set does." if self.smallest else " A smaller set may exist."
        sure = "" if self.n_rows == 1 else sure
        return (
            f"Removing {rows} {self._change} {self.term}: {before} with all rows, {after} "
            f"without.{sure}"
        )

    @property
    def _change(self) -> str:
        if self.what == "sign" or self.before.pvalue < self.alpha > self.after.pvalue:
            return "changes the sign of"
        level = f"at the {percent(self.alpha)} level"
        if self.before.pvalue < self.alpha:
            return f"takes away the significance {level} of"
        return f"brings significance {level} to"

    def __str__(self) -> str:
        return self.sentence


def _numbers(fit: FittedTerm) -> str:
    p = "p < 0.001" if fit.pvalue < 0.001 else f"p = {fit.pvalue:.3f}"
    return f"{fit.estimate:.3g}, {p}"
