"""How few rows decide a conclusion: refits without the rows that influence functions tell."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import accumulate, combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.linalg import LinAlgError
from scipy.stats import norm, t

from rrmstats.core.entropy import Array
from rrmstats.core.removal import Ranking, most_influential
from rrmstats.results.base import RRMResults, RRMResultsWrapper
from rrmstats.results.removal import FewRows, FittedTerm, removed_frame

WHAT = ("sign", "significance")


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
    return found_rows(ClassicalRefits(results, term), what, alpha)


class TermFit(NamedTuple):
    """A term of a fit without some rows.

    Attributes
    ----------
    fitted : FittedTerm
    freedom : float
        Degrees of freedom of its test; infinite for a normal one.
    moves : callable
        Returns how far the estimate moves where each row is removed, shape (n,); 0 for those
        that are out.
    """

    fitted: FittedTerm
    freedom: float
    moves: Callable[[], Array]


class Refits(ABC):
    """Fits of one term without some rows.

    Attributes
    ----------
    nobs : int
        Number of rows.
    labels : Index or None
        Their labels.
    most : int
        Most refits that look for a smaller set, once there is one.
    """

    nobs: int
    labels: pd.Index | None
    most: int
    term: str

    def __init__(self, term: str, names: Iterable[str]) -> None:
        names = list(names)
        if term not in names:
            raise ValueError(f"there is no term {term!r}; terms are {', '.join(names)}")
        self.term, self.place = term, names.index(term)

    @abstractmethod
    def whole(self) -> TermFit:
        """Return the fit to all rows."""

    @abstractmethod
    def refit(self, keep: np.ndarray) -> TermFit:
        """Return the fit to the rows at some positions."""

    def without(self, removed: Iterable[int]) -> TermFit | None:
        """Return the fit without some rows; None where the others have none."""
        keep = np.setdiff1d(np.arange(self.nobs), np.fromiter(removed, int))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = self.refit(keep)
            except (ValueError, ArithmeticError, LinAlgError):
                return None  # too few rows for the parameters, or classes without rows
        return found if np.isfinite(found.fitted).all() else None

    def spread(self, keep: np.ndarray, moves: Array) -> Array:
        """Return values of the rows that are kept as those of all rows, 0 elsewhere."""
        found = np.zeros(self.nobs)
        found[keep] = moves
        return found


class RobustRefits(Refits):
    """Fits of a robust model, at the bound and with the options of its results."""

    def __init__(self, results: RRMResults, term: str) -> None:
        super().__init__(term, results.model.data.param_names)
        self.results, self.model = results, results.model
        self.nobs, self.labels = int(results.nobs), results.model.data.row_labels
        # Seconds: a refit takes some 30 ms, and 0.2 s at 100,000 rows.
        self.most = min(200, 100_000 // self.nobs)
        setting, inference = results._estimate.setting, results._inference
        self.options = {
            "steps": results.steps,
            "n_starts": setting.n_starts,
            "rng": setting.rng,
            "tol": setting.tol,
            "maxiter": setting.maxiter,
            "cov_type": "sandwich" if inference.replicates is not None else inference.cov_type,
            "use_t": inference.use_t,
            "stability": False,
        }
        self.clusters = inference.dependence.groups
        self.cov_kwds = {} if inference.replicates is not None else dict(inference.cov_kwds)

    def whole(self) -> TermFit:
        """Return the fit to all rows."""
        return self._read(self.results, np.arange(self.nobs))

    def refit(self, keep: np.ndarray) -> TermFit:
        """Return the fit to the rows at some positions."""
        part = self.model._of_rows(keep)
        places = keep if len(part.endog) == len(keep) else np.arange(self.nobs)
        cov_kwds = dict(self.cov_kwds)
        if self.clusters is not None:
            cov_kwds["groups"] = self.clusters[places]
        found = part.fit(cov_kwds=cov_kwds, **self.options)
        return self._read(found._results, places)

    def _read(self, results: Any, keep: np.ndarray) -> TermFit:
        def moves() -> Array:
            estimate = results._estimate
            influence = np.asarray(estimate.influence())[:, self.place]
            base = estimate.base
            shares = 1 / len(influence) if base is None else base
            return self.spread(keep, -shares * influence)

        free = (
            getattr(results, "df_resid_inference", results.df_resid) if results.use_t else np.inf
        )
        return TermFit(_fitted(results, self.place), float(free), moves)


class ClassicalRefits(Refits):
    """Fits of a statsmodels model, with the standard errors of its results."""

    model: Any

    def __init__(self, results: Any, term: str) -> None:
        results = getattr(results, "_results", results)
        self.results, self.model = results, getattr(results, "model", None)
        linear = hasattr(self.model, "wexog") and hasattr(self.model, "pinv_wexog")
        likelihood = hasattr(self.model, "score_obs") and hasattr(self.model, "hessian")
        if not (linear or likelihood) or np.ndim(getattr(results, "params", 0)) != 1:
            raise TypeError(
                "few_rows takes results of a statsmodels model that has score_obs and hessian, "
                f"such as OLS, GLM or Logit, or of a model here; got {type(results).__name__}"
            )
        super().__init__(term, self.model.data.param_names)
        self.linear = linear
        self.nobs, self.labels = len(self.model.endog), self.model.data.row_labels
        self.most = min(20_000, 1_000_000 // self.nobs)

    def whole(self) -> TermFit:
        """Return the fit to all rows."""
        return self._read(self.results, np.arange(self.nobs))

    def refit(self, keep: np.ndarray) -> TermFit:
        """Return the fit to the rows at some positions."""

        def taken(value: Any) -> Any:
            by_row = np.ndim(value) > 0 and len(value) == self.nobs
            return np.asarray(value)[keep] if by_row else value

        model, old = self.model, self.results
        options = {key: taken(value) for key, value in model._get_init_kwds().items()}
        part = type(model)(taken(model.endog), taken(model.exog), **options)
        how = {key: taken(value) for key, value in getattr(old, "cov_kwds", {}).items()}
        how = {key: value for key, value in how.items() if key in COV_OPTIONS}
        asked = {"cov_type": old.cov_type, "cov_kwds": how, "use_t": old.use_t}
        if not self.linear:
            asked |= {"start_params": np.asarray(old.params)}
            asked |= {} if hasattr(model, "family") else {"disp": 0}
        found = part.fit(**asked)
        return self._read(getattr(found, "_results", found), keep)

    def _read(self, results: Any, keep: np.ndarray) -> TermFit:
        def moves() -> Array:
            model = results.model
            if self.linear:
                by_row = model.pinv_wexog
                leverage = np.einsum("ik,ki->i", model.wexog, by_row)
                shortened = np.maximum(1 - leverage, np.finfo(float).eps)
                return self.spread(keep, -by_row[self.place] * results.wresid / shortened)
            scores = model.score_obs(results.params)
            bread = np.linalg.pinv(-model.hessian(results.params))[self.place]
            return self.spread(keep, -scores @ bread)

        free = (
            getattr(results, "df_resid_inference", results.df_resid) if results.use_t else np.inf
        )
        return TermFit(_fitted(results, self.place), float(free), moves)


# Options of standard errors that statsmodels' `fit` takes back from `cov_kwds` of results.
COV_OPTIONS = ("groups", "maxlags", "use_correction", "time", "kernel", "weights_func")


def _fitted(results: Any, place: int) -> FittedTerm:
    values = (results.params, results.bse, results.pvalues)
    return FittedTerm(*(float(np.asarray(each)[place]) for each in values))


def found_rows(refits: Refits, what: str, alpha: float) -> FewRows:
    """Return the rows whose removal changes a conclusion on a term."""
    if what not in WHAT:
        raise ValueError(f"what must be 'sign' or 'significance', got {what!r}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha!r}")
    whole = refits.whole()
    before = whole.fitted
    if not np.isfinite(before).all() or before.estimate == 0 or before.bse <= 0:
        raise ValueError(
            f"{refits.term} has the estimate {before.estimate:g} with the standard error "
            f"{before.bse:g}; few_rows needs one that is not 0, with an error that is known"
        )
    search = Search(refits, whole, what, alpha)
    removed, confirmed, smallest = search.run()
    moves = whole.moves()
    after = search.fits.get(frozenset(removed), whole)
    assert after is not None
    return FewRows(
        term=refits.term,
        what=what,
        alpha=alpha,
        rows=removed_frame(np.array(removed, int), moves, refits.labels),
        nobs=refits.nobs,
        before=before,
        after=after.fitted,
        confirmed=confirmed,
        smallest=smallest,
        n_predicted=search.ranking(whole).needed,
        moves=moves,
        refits=search.frame(),
    )


class Search:
    """The search for the smallest set of rows whose removal changes a conclusion.

    Attributes
    ----------
    fits : dict
        The fits so far, by the rows that they leave out; None for those that fail.
    """

    def __init__(self, refits: Refits, whole: TermFit, what: str, alpha: float) -> None:
        self.refits, self.whole, self.what, self.alpha = refits, whole, what, alpha
        self.fits: dict[frozenset[int], TermFit | None] = {frozenset(): whole}

    def run(self) -> tuple[list[int], bool, bool]:
        """Return the rows, whether a refit confirms them, and whether no smaller set does."""
        removed, failed = self.grown()
        self.last = len(self.fits) + self.refits.most
        if not self.changed(removed):
            return self.compared(removed, self.refits.nobs // 2 + 1)
        removed = self.shortened(removed, failed)
        removed = self.one_by_one(removed)
        removed = self.thinned(removed)
        return self.compared(removed, len(removed))

    def ranking(self, fit: TermFit) -> Ranking:
        """Return the rows that are best removed from a fit next."""
        critical = None if self.what == "sign" else self.critical(fit)
        return most_influential(fit.moves(), fit.fitted.estimate, fit.fitted.bse, critical)

    def critical(self, fit: TermFit) -> float:
        """Return beyond how many standard errors the estimate of a fit is significant."""
        law = norm if np.isinf(fit.freedom) else t(fit.freedom)
        return float(law.isf(self.alpha / 2))

    def changed(self, removed: Iterable[int]) -> bool:
        """Tell whether the fit without some rows changes the conclusion.

        A term is no longer significant, too, where it is so with the other sign.
        """
        rows = frozenset(removed)
        if rows not in self.fits:
            self.fits[rows] = self.refits.without(rows)
        fit, before = self.fits[rows], self.whole.fitted
        if fit is None:
            return False
        opposite = fit.fitted.estimate * before.estimate < 0
        if self.what == "sign":
            return opposite
        if before.pvalue < self.alpha:
            return opposite or fit.fitted.pvalue >= self.alpha
        return fit.fitted.pvalue < self.alpha

    def gap(self, removed: Iterable[int]) -> float:
        """Return how far a fit is from a change, at which it is 0."""
        fit, before = self.fits[frozenset(removed)], self.whole.fitted
        assert fit is not None
        if self.what == "sign":
            return fit.fitted.estimate * before.estimate
        distance = fit.fitted.estimate / fit.fitted.bse
        if before.pvalue < self.alpha:
            return np.sign(before.estimate) * distance - self.critical(fit)
        return self.critical(fit) - abs(distance)

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
            wanted = min(max(wanted, failed // 10), max(self.refits.nobs // 10, 1))
            rows = ranking.rows[: min(wanted, self.refits.nobs // 2 - failed)]
            more = [*removed, *rows.tolist()]
            self.changed(more)
            last = self.fits[frozenset(more)]
            if len(rows) == 0 or last is None:
                break
            removed, fit = more, last
        return removed, failed

    def shortened(self, removed: list[int], failed: int) -> list[int]:
        """Return as many of the first rows as it takes, by interpolation."""
        enough = len(removed)
        while enough - failed > 1 and self.left() > 0:
            gaps = self.gap(removed[:failed]), self.gap(removed[:enough])
            middle = failed + round((enough - failed) * gaps[0] / (gaps[0] - gaps[1]))
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
        if len(removed) > self.left():
            return removed
        while len(rows) < len(removed) - 1 and fit is not None:
            best = self.ranking(fit).rows
            if len(best) == 0:
                break
            rows = [*rows, int(best[0])]
            if self.changed(rows):
                return rows
            fit = self.fits[frozenset(rows)]
        return removed

    def thinned(self, removed: list[int]) -> list[int]:
        """Return the rows without those that are not needed, the last ones first."""
        if 1 < len(removed) <= self.left():
            for row in reversed(removed):
                fewer = [each for each in removed if each != row]
                if fewer and self.changed(fewer):
                    removed = fewer
        return removed

    def compared(self, removed: list[int], size: int) -> tuple[list[int], bool, bool]:
        """Return the smallest of all sets below a size where these are few enough to be tried."""
        found = self.changed(removed)
        sets = accumulate(comb(self.refits.nobs, smaller) for smaller in range(1, size))
        if any(count > self.left() for count in sets):
            return removed, found, False
        helpful = self.ranking(self.whole).rows.tolist()
        others = np.setdiff1d(np.arange(self.refits.nobs), helpful).tolist()
        for smaller in range(1, size):
            for rows in combinations([*helpful, *others], smaller):
                if self.changed(rows):
                    return list(rows), True, True
        return removed, found, True

    def frame(self) -> pd.DataFrame:
        """Return the fits, by the number of rows that they leave out."""
        known = [(len(rows), *fit.fitted) for rows, fit in self.fits.items() if fit is not None]
        frame = pd.DataFrame(known, columns=["n_removed", *FittedTerm._fields])
        return frame.sort_values("n_removed", kind="stable", ignore_index=True)
