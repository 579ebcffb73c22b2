"""How few rows decide a conclusion: refits without the rows that influence functions tell."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.linalg import LinAlgError
from scipy.stats import t

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import ROUNDING, TINY
from rrmstats.results.base import RRMResults, RRMResultsWrapper
from rrmstats.results.inference import test_freedom
from rrmstats.results.removal import FewRows, FittedTerm


class Ranking(NamedTuple):
    """Rows whose removal brings a change nearer.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows, the most influential first.
    needed : int or None
        How many of them change the conclusion to first order; None where all do not.
    """

    rows: np.ndarray
    needed: int | None


def most_influential(
    moves: Array, estimate: float, error: float, critical: float | None = None
) -> Ranking:
    r"""Return the rows whose removal changes the sign of an estimate, or its significance.

    With :math:`m_i` the move of the estimate where row i is removed, the standard error moves by
    :math:`\mathrm{se}\,(1 / n - m_i^2 / (2 \sum_j m_j^2))`: the sum of squares of the influence
    functions loses one of them, and their mean is over fewer rows.

    Parameters
    ----------
    moves : ndarray, shape (n,)
        How far the estimate moves where a row is removed; 0 for rows that are out already.
    estimate, error : float
        The estimate and its standard error.
    critical : float, optional
        The estimate is significant beyond so many standard errors; by default its sign is to
        change.

    Returns
    -------
    Ranking
        Of an estimate that is not significant, towards the side that takes fewer rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.models.removal import most_influential
    >>> z = np.array([-1.0, -1.0, 0.0, 9.0])
    >>> moves = (z.mean() - z) / 3
    >>> most_influential(moves, z.mean(), 2.0)
    Ranking(rows=array([3]), needed=1)
    """
    side = 1.0 if estimate >= 0 else -1.0
    if critical is None:
        return _ranking(-side * moves, abs(estimate))
    squares = float(moves @ moves)
    widening = error * (1 / len(moves) - moves**2 / (2 * squares)) if squares > 0 else 0 * moves
    margin = abs(estimate) - critical * error
    if margin > 0:
        return _ranking(critical * widening - side * moves, margin)
    sides = [
        _ranking(s * moves - critical * widening, critical * error - s * estimate)
        for s in (side, -side)
    ]
    return min(sides, key=lambda found: np.inf if found.needed is None else found.needed)


def _ranking(gains: Array, needed: float) -> Ranking:
    """Return the rows that bring a change nearer, and how many make up for what is needed."""
    size = max(float(np.abs(gains).max(initial=0.0)), TINY)
    # Rows that only rounding tells apart stay in the order of the data.
    order = np.argsort(-np.round(gains / (ROUNDING * size)), kind="stable")
    rows = order[gains[order] > 0]
    count = int(np.searchsorted(np.cumsum(gains[rows]), needed, side="right")) + 1
    return Ranking(rows, count if count <= len(rows) else None)


def few_rows(results: Any, term: str, what: str = "sign", alpha: float = 0.05) -> FewRows:
    """Return the fewest rows whose removal changes the sign or the significance of a term.

    Influence functions tell the rows, and fits without them prove it. It is for the classical fit
    what `few_rows` of robust results is for theirs, so that the two can be compared.

    Parameters
    ----------
    results : results of statsmodels, or of a model here
        Of a linear regression (OLS, WLS), a generalized linear model, or a model with a
        likelihood of each row, such as Logit or Poisson.
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
    >>> import numpy as np, pandas as pd, rrmstats, statsmodels.formula.api as smf
    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame({"dose": rng.standard_normal(100)})
    >>> data["response"] = 0.5 * data.dose + rng.standard_normal(100)
    >>> data.loc[:3, ["dose", "response"]] = 5, -7
    >>> rrmstats.few_rows(smf.ols("response ~ dose", data).fit(), "dose").n_rows
    3
    >>> rrmstats.few_rows(rrmstats.ols("response ~ dose", data).fit(), "dose").n_rows > 20
    True
    """
    if isinstance(results, RRMResults | RRMResultsWrapper):
        return results.few_rows(term, what, alpha)
    return ClassicalRemoval(results, term, what, alpha).found()


class TermFit(NamedTuple):
    """A term of a fit without some rows.

    Attributes
    ----------
    fitted : FittedTerm
    moves : ndarray, shape (n,)
        How far the estimate moves where each row is removed; 0 for those that are out.
    critical : float
        Beyond how many standard errors the estimate is significant.
    """

    fitted: FittedTerm
    moves: Array
    critical: float


class Removal(ABC):
    """The search for the smallest set of rows whose removal changes a conclusion on a term.

    Rows go in the order of their influence until a refit confirms them; then fewer of them are
    tried, other rows one by one, and all smaller sets where these are few.
    """

    #: Refits at most, and rows in all of them together.
    limits: tuple[int, int]

    def __init__(self, results: Any, nobs: int, term: str, what: str, alpha: float) -> None:
        names = list(results.model.data.param_names)
        if term not in names:
            raise ValueError(f"there is no term {term!r}; terms are {', '.join(names)}")
        if what not in ("sign", "significance"):
            raise ValueError(f"what must be 'sign' or 'significance', got {what!r}")
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be in (0, 1), got {alpha!r}")
        self.results, self.model, self.nobs = results, results.model, nobs
        self.term, self.place, self.what, self.alpha = term, names.index(term), what, alpha
        self.whole = self.read(results, np.arange(nobs))
        before = self.whole.fitted
        if not np.isfinite(before).all() or before.estimate == 0 or before.bse <= 0:
            raise ValueError(
                f"{term} has the estimate {before.estimate:g} with the standard error "
                f"{before.bse:g}; few_rows needs one that is not 0, with an error that is known"
            )
        self.fits: dict[frozenset[int], TermFit | None] = {frozenset(): self.whole}
        most, rows = self.limits
        self.most = self.last = min(most, rows // nobs)

    @abstractmethod
    def refit(self, keep: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the results of the rows at some positions, and the positions of its rows."""

    @abstractmethod
    def moves(self, results: Any) -> Array:
        """Return how far the estimate moves where each row of some results is removed."""

    def read(self, results: Any, keep: np.ndarray) -> TermFit:
        """Return the term of the results of the rows at some positions."""
        each = (results.params, results.bse, results.pvalues)
        moves = np.zeros(self.nobs)
        moves[keep] = self.moves(results)
        fitted = FittedTerm(*(float(np.asarray(values)[self.place]) for values in each))
        return TermFit(fitted, moves, float(t.isf(self.alpha / 2, test_freedom(results))))

    def found(self) -> FewRows:
        """Return the rows whose removal changes the conclusion, with what proves it."""
        removed, confirmed, smallest = self.run()
        after = self.fits.get(frozenset(removed)) or self.whole
        rows, labels = np.array(removed, int), self.model.data.row_labels
        table = {"position": rows, "change": self.whole.moves[rows]}
        known = [(len(out), *fit.fitted) for out, fit in self.fits.items() if fit is not None]
        refits = pd.DataFrame(known, columns=["n_removed", *FittedTerm._fields])
        asked = {name: getattr(self, name) for name in ("term", "what", "alpha", "nobs")}
        return FewRows(
            **asked,
            rows=pd.DataFrame(table, index=rows if labels is None else labels[rows]),
            before=self.whole.fitted,
            after=after.fitted,
            confirmed=confirmed,
            smallest=smallest,
            n_predicted=self.ranking(self.whole).needed,
            moves=self.whole.moves,
            refits=refits.sort_values("n_removed", kind="stable", ignore_index=True),
        )

    def run(self) -> tuple[list[int], bool, bool]:
        """Return the rows, whether a refit confirms them, and whether no smaller set does."""
        removed, failed = self.grown()
        self.last = len(self.fits) + self.most
        if not self.changed(removed):
            return self.compared(removed, self.nobs // 2 + 1)
        removed = self.one_by_one(self.shortened(removed, failed))
        return self.compared(removed, len(removed))

    def ranking(self, fit: TermFit) -> Ranking:
        """Return the rows that are best removed from a fit next."""
        critical = None if self.what == "sign" else fit.critical
        return most_influential(fit.moves, fit.fitted.estimate, fit.fitted.bse, critical)

    def gap(self, fit: TermFit | None) -> float:
        """Return how far a fit is from changing the conclusion, which it does below 0.

        A significant term loses its significance also where it gains that of the other sign.
        """
        if fit is None:
            return np.inf
        found, before = fit.fitted, self.whole.fitted
        if self.what == "sign":
            return found.estimate * before.estimate
        if before.pvalue < self.alpha:
            return found.estimate * np.sign(before.estimate) - fit.critical * found.bse
        return fit.critical * found.bse - abs(found.estimate)

    def fit(self, removed: Iterable[int]) -> TermFit | None:
        """Return the fit without some rows, made once; None where the others have none."""
        rows = frozenset(removed)
        if rows in self.fits:
            return self.fits[rows]
        found: TermFit | None = None
        keep = np.setdiff1d(np.arange(self.nobs), np.fromiter(rows, int))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # too few rows for the parameters, or classes without rows
            with suppress(ValueError, ArithmeticError, LinAlgError):
                found = self.read(*self.refit(keep))
        known = found is not None and np.isfinite(found.fitted).all()
        self.fits[rows] = found if known else None
        return self.fits[rows]

    def changed(self, removed: Iterable[int]) -> bool:
        """Tell whether the fit without some rows changes the conclusion."""
        return self.gap(self.fit(removed)) < 0

    def left(self) -> int:
        """Return how many refits may still be made."""
        return self.last - len(self.fits)

    def grown(self) -> tuple[list[int], int]:
        """Return rows in order until a refit confirms them, and how many of the first do not.

        At least half of the rows stay. Each round adds as many as the influence functions of the
        last fit tell: at least a tenth of those before, so that the rounds are few, and at most a
        tenth of all rows, beyond which first-order moves tell little.
        """
        removed: list[int] = []
        failed, fit = 0, self.whole
        while not self.changed(removed):
            failed = len(removed)
            ranking = self.ranking(fit)
            wanted = len(ranking.rows) if ranking.needed is None else ranking.needed
            wanted = min(max(wanted, failed // 10), max(self.nobs // 10, 1))
            rows = ranking.rows[: min(wanted, self.nobs // 2 - failed)]
            more = [*removed, *rows.tolist()]
            last = self.fit(more)
            if len(rows) == 0 or last is None:
                break
            removed, fit = more, last
        return removed, failed

    def shortened(self, removed: list[int], failed: int) -> list[int]:
        """Return as many of the first rows as it takes, by interpolation."""
        enough = len(removed)
        while enough - failed > 1 and self.left() > 0:
            ends = (self.fit(removed[:end]) or self.whole for end in (failed, enough))
            before, after = (self.gap(fit) for fit in ends)
            middle = failed + round((enough - failed) * before / (before - after))
            middle = min(max(middle, failed + 1), enough - 1)
            if self.changed(removed[:middle]):
                enough = middle
            else:
                failed = middle
        return removed[:enough]

    def one_by_one(self, removed: list[int]) -> list[int]:
        """Return fewer rows where removing them one by one, with refits, takes fewer."""
        rows: list[int] = []
        fit: TermFit | None = self.whole
        more = len(removed) - 1 if len(removed) <= self.left() else 0
        while len(rows) < more and fit is not None and len(self.ranking(fit).rows):
            rows = [*rows, int(self.ranking(fit).rows[0])]
            fit = self.fit(rows)
            if self.gap(fit) < 0:
                return rows
        return removed

    def compared(self, removed: list[int], size: int) -> tuple[list[int], bool, bool]:
        """Return the smallest of all sets below a size where these are few enough to be tried."""
        found = self.changed(removed)
        sizes = range(1, size)
        if any(n > self.left() for n in accumulate(comb(self.nobs, small) for small in sizes)):
            return removed, found, False
        helpful = self.ranking(self.whole).rows.tolist()
        rows = [*helpful, *np.setdiff1d(np.arange(self.nobs), helpful).tolist()]
        sets = chain.from_iterable(combinations(rows, small) for small in sizes)
        smaller = next((some for some in sets if self.changed(some)), None)
        return (removed, found, True) if smaller is None else (list(smaller), True, True)


class RobustRemoval(Removal):
    """Refits of a robust model, at the bound and with the options of its results."""

    # Seconds: a refit takes some 30 ms, and 0.2 s at 100,000 rows.
    limits = 200, 100_000

    def __init__(self, results: RRMResults, term: str, what: str, alpha: float) -> None:
        self.options = {**results._fit_options, "stability": False}
        if results.bootstrap is not None:
            self.options |= {"cov_type": "sandwich", "cov_kwds": {}}
        self.clusters = results._inference.dependence.groups
        super().__init__(results, int(results.nobs), term, what, alpha)

    def refit(self, keep: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the results of the rows at some positions, and the positions of its rows."""
        part = self.model._part(keep)
        places = keep if len(part.endog) == len(keep) else np.arange(self.nobs)
        options = dict(self.options)
        if self.clusters is not None:
            options["cov_kwds"] = {"groups": self.clusters[places]}
        return part.fit(**options)._results, places

    def moves(self, results: Any) -> Array:
        """Return how far the estimate moves where each row of some results is removed."""
        estimate = results._estimate
        influence = np.asarray(estimate.influence())[:, self.place]
        return -influence * (1 / len(influence) if estimate.base is None else estimate.base)


def rebuilt(model: Any, rows: np.ndarray) -> Any:
    """Return a statsmodels model of some of its rows."""
    part = partial(of_rows, rows=rows, n=len(model.endog))
    options = {name: part(value) for name, value in model._get_init_kwds().items()}
    return type(model)(part(model.endog), part(model.exog), **options)


def of_rows(value: Any, rows: np.ndarray, n: int) -> Any:
    """Return the part of some rows, of a value that has one entry for each of n."""
    by_row = np.ndim(value) > 0 and len(value) == n
    return np.asarray(value)[rows] if by_row else value


# Options of standard errors that statsmodels' `fit` takes back from `cov_kwds` of results.
COV_OPTIONS = ("groups", "maxlags", "use_correction", "time", "kernel", "weights_func")


class ClassicalRemoval(Removal):
    """Refits of a statsmodels model, with the standard errors of its results."""

    limits = 20_000, 1_000_000

    def __init__(self, results: Any, term: str, what: str, alpha: float) -> None:
        results = getattr(results, "_results", results)
        model = getattr(results, "model", None)
        self.linear = hasattr(model, "wexog") and hasattr(model, "pinv_wexog")
        likelihood = hasattr(model, "score_obs") and hasattr(model, "hessian")
        if not (self.linear or likelihood) or np.ndim(getattr(results, "params", 0)) != 1:
            raise TypeError(
                "few_rows takes results of a statsmodels model that has score_obs and hessian, "
                f"such as OLS, GLM or Logit, or of a model here; got {type(results).__name__}"
            )
        super().__init__(results, len(results.model.endog), term, what, alpha)

    def refit(self, keep: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the results of the rows at some positions, and the positions of its rows."""
        old = self.results
        given = {
            key: each for key, each in getattr(old, "cov_kwds", {}).items() if key in COV_OPTIONS
        }
        how = {key: of_rows(each, keep, self.nobs) for key, each in given.items()}
        asked = {"cov_type": old.cov_type, "cov_kwds": how, "use_t": old.use_t}
        if not self.linear:
            asked |= {"start_params": np.asarray(old.params)}
            asked |= {} if hasattr(self.model, "family") else {"disp": 0}
        found = rebuilt(self.model, keep).fit(**asked)
        return getattr(found, "_results", found), keep

    def moves(self, results: Any) -> Array:
        """Return how far the estimate moves where each row of some results is removed."""
        model = results.model
        if not self.linear:
            bread = np.linalg.pinv(-model.hessian(results.params))[self.place]
            return np.asarray(-model.score_obs(results.params) @ bread)
        leverage = np.einsum("ik,ki->i", model.wexog, model.pinv_wexog)
        shortened = np.maximum(1 - leverage, np.finfo(float).eps)
        return np.asarray(-model.pinv_wexog[self.place] * results.wresid / shortened)
