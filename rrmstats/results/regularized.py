"""Results of fits with a penalty."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from statsmodels.base.elastic_net import RegularizedResults
from statsmodels.base.wrapper import ResultsWrapper, populate_wrapper
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_base

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import FLAGGED
from rrmstats.results.explanations import percent
from rrmstats.results.summary import number_table, numbered, text_width

BIASED = (
    "Penalized coefficients are pulled toward zero; they have no standard errors. refit=True fits "
    "the selected columns again without a penalty."
)
CHOSEN_FIRST = (
    "Standard errors of the refit take the selected columns as given. The same rows have selected "
    "them, so that intervals are too short and p-values too small; fit other rows to test."
)


class RRMRegularizedResults(RegularizedResults):
    """A fit with a penalty.

    Attributes
    ----------
    params : Series or ndarray, shape (k,)
        Coefficients; those that the penalty has left out are zero.
    alpha, L1_wt : float
        The penalty.
    weights : Series or ndarray, shape (n,)
        Weights of the rows in the fit; they sum to one.
    prob_bad : Series or ndarray, shape (n,)
        Probability of each row to be bad.
    eps_hat : float
        Estimated share of bad rows.
    eps_bar : float
        The bound on it, where "auto" has chosen it.
    explanation : str
        What the bad rows are like.
    scale : float
        Variance, or dispersion, of good rows around fits without each of them; 1 for labels.
    freedom : float
        Degrees of freedom: the trace of the hat matrix.
    bic : float
        BIC of good and bad rows around fits without each of them, by which "auto" chooses.
    converged : bool
        Whether the weights have settled.
    n_iter : int
        Rounds of fits and weights.
    selected : list of str
        Columns with a coefficient, besides the constant.
    path : DataFrame or None
        What ``alpha="auto"`` has tried: `bic`, share of bad rows, degrees of freedom and
        coefficients at each alpha.
    refit : results or None
        Fit of the selected columns without a penalty, where ``refit=True`` asked for it.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk).fit_regularized(alpha=0.1, L1_wt=0)
    >>> int(res.outliers().sum()), res.selected
    (10, ['x1', 'x2', 'x3'])
    """

    def __init__(
        self,
        model: Any,
        params: Array,
        *,
        alpha: float,
        L1_wt: float,
        weights: Array,
        explained: Any,
        freedom: float,
        converged: bool,
        n_iter: int,
        path: pd.DataFrame | None,
        refit: Any,
    ) -> None:
        super().__init__(model, params)
        self.alpha, self.L1_wt, self.weights = alpha, L1_wt, weights
        self.prob_bad, self.eps_hat = np.asarray(explained.prob_bad), float(explained.eps_hat)
        self.eps_bar, self.explanation = float(explained.eps_bar), str(explained.explanation)
        self.scale = float(getattr(explained, "scale", 1.0))
        self.bic = float(getattr(explained, "bic", np.nan))
        self.freedom, self.converged, self.n_iter = freedom, converged, n_iter
        self.path, self.refit = path, refit

    @property
    def selected(self) -> list[str]:
        """Names of the columns with a coefficient, besides the constant."""
        constant = getattr(self.model.data, "const_idx", None)
        names = self.model.data.xnames
        return [names[i] for i in np.flatnonzero(self.params) if i != constant]

    def outliers(self) -> np.ndarray:
        """Return which rows are more likely bad than good, shape (n,)."""
        return np.asarray(self.prob_bad > FLAGGED)

    def summary(self) -> Summary:
        """Return the coefficients that are not zero, and what was found about the rows."""
        model, names = self.model, self.model.data.xnames
        bad, n = int(self.outliers().sum()), len(self.prob_bad)
        kind = {0.0: "ridge", 1.0: "lasso"}.get(self.L1_wt, "elastic net")
        entries = [
            ("Dep. Variable:", str(model.endog_names), "alpha:", f"{self.alpha:.4g}"),
            ("Model:", type(model).__name__, "L1_wt:", f"{self.L1_wt:.3g} ({kind})"),
            ("No. Observations:", str(n), "eps_bar:", f"{self.eps_bar:.3g}"),
            ("Columns:", str(len(names)), "Bad rows:", f"{bad} ({percent(self.eps_hat)})"),
            ("Selected:", str(len(self.selected)), "Explanation:", self.explanation),
            ("Degrees of freedom:", f"{self.freedom:.1f}", "Scale:", f"{self.scale:.4g}"),
        ]
        title = "Robust Risk Minimization with a Penalty"
        places = np.flatnonzero(self.params)
        values, columns = np.asarray(self.params)[places, None], ["coef"]
        if self.refit is not None:
            again = np.full((len(names), 2), np.nan)
            kept = [names.index(name) for name in self.refit.model.exog_names]
            again[kept] = np.column_stack([self.refit.params, self.refit.bse])
            values, columns = (
                np.column_stack([values, again[places]]),
                ["coef", "refit", "std err"],
            )
        table = Summary()
        table.tables = [
            SimpleTable(entries, title=title, txt_fmt=fmt_base),
            number_table(values, [names[i] for i in places], columns),
        ]
        width = max(map(text_width, table.tables))
        notes = [BIASED if self.refit is None else CHOSEN_FIRST]
        table.add_extra_txt([numbered(i + 1, note, width) for i, note in enumerate(notes)])
        return table


class RRMRegularizedResultsWrapper(ResultsWrapper):
    """Results with the labels of the data."""

    _attrs: ClassVar[dict[str, str]] = {
        "params": "columns",
        **dict.fromkeys(("fittedvalues", "weights", "prob_bad"), "rows"),
    }
    _wrap_attrs = _attrs
    _wrap_methods: ClassVar[dict[str, str]] = {"outliers": "rows"}


populate_wrapper(RRMRegularizedResultsWrapper, RRMRegularizedResults)


def regularized_results(*args: Any, **kwargs: Any) -> RRMRegularizedResults:
    """Return results with the labels of the data."""
    return RRMRegularizedResultsWrapper(RRMRegularizedResults(*args, **kwargs))
