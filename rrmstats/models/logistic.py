"""Logistic regression by robust risk minimization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit
from statsmodels.discrete.discrete_model import Logit
from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.frames import clipped_spread
from rrmstats.laws.families import Binomial as BinomialFamily
from rrmstats.laws.families import Link, MeanFunction
from rrmstats.losses.classification import ClassificationProblem
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.models import checks
from rrmstats.models.base import DesignedModel, RRMModel, same_signature
from rrmstats.models.regularized import RegularizedModel
from rrmstats.partitions.rows import PartitionedRows
from rrmstats.results.logistic import RRMLogitResults

BINOMIAL = "use rrmstats.glm(..., family=sm.families.Binomial())"
# Weight of the term that keeps the losses bounded, and of the ridge.
DEFAULT_ALPHA = {None: 1e-5, "l2": 1e-3}


class RRMLogit(RegularizedModel, DesignedModel[ClassificationProblem, RRMLogitResults], Logit):
    """Logistic regression when some of the rows may be bad.

    Once misclassified rows have lost their weight, a hyperplane separates the others, and then
    the plain cross-entropy has no finite minimizer. The default loss therefore adds
    ``alpha / 4 * (x' params) ** 4`` to that of each row: a term that is negligible unless
    probabilities are close to 0 or 1, and that is equivariant to linear changes of the design.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Labels: 0 and 1, booleans, or two levels of which `level` names the one that counts as 1.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is maximum likelihood. By default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    alpha : float, optional
        Weight of the penalty. By default 1e-5, or 1e-3 with `penalty`; 0 where `eps_bar` is 0.
    penalty : {None, "l2"}, optional
        None for the default loss; "l2" for a ridge penalty, ``alpha / 2`` times the sum of the
        squared coefficients of the standardized predictors, the intercept left out.
    level : optional
        The level of `endog` that counts as 1, where it is not numeric.
    offset : array_like, shape (n,), optional
        Added to the linear predictor. In a formula also the name of a column.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMLogit
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> y = (rng.random(500) < 1 / (1 + np.exp(-2 * x))).astype(float)
    >>> y[np.argsort(x)[-40:]] = 0
    >>> res = RRMLogit(y, sm.add_constant(x), eps_bar=0.1).fit()
    >>> bool(abs(res.params[1] - 2) < 0.7)
    True
    """

    exog: Array
    _formula_max_endog = None
    _row_arrays = (*RRMModel._row_arrays, "offset")
    _results_class = RRMLogitResults

    @same_signature(RRMModel._checked, "given")
    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        alpha: float | None = None,
        penalty: str | None = None,
        level: object = None,
        offset: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        given = {"endog": endog, "exog": exog, "offset": offset}
        held, rows, passed, kept = self._checked(eps_bar, given, **options)
        if penalty not in (None, "l2"):
            raise ValueError(f"penalty must be None or 'l2', got {penalty!r}")
        if alpha is not None and not 0 <= alpha < np.inf:
            raise ValueError(f"alpha must be a finite number, not negative, got {alpha!r}")
        rows["endog"] = as_labels(rows["endog"], level)
        rows = {name: values for name, values in rows.items() if values is not None}
        with checks.readable_errors():
            super().__init__(check_rank=False, **rows, **passed)
        self._set_options(**kept, **rows)
        check_classes(self.endog, self.freq_weights)
        self.penalty, self._given_alpha = penalty, alpha
        self._init_keys.extend(["alpha", "penalty"])
        self._hold(held)

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        arrays, endog = super()._held_arrays(held), held.arrays["endog"]
        if endog.ndim == 2 and self._formula_design is not None:
            column = self._formula_design.column_names[0].index(self.endog_names)
            return {**arrays, "endog": endog[:, column]}
        if not held.of_labels:
            raise ValueError(
                "endog must be 0 and 1 in all partitions; recode it, for example "
                "with (labels == 'yes').astype(float)"
            )
        return arrays

    def predicted(self, params: Array, rows: Array, offset: Array | float) -> Array:
        """Return the probabilities of rows of the design in partitions."""
        return expit(rows @ params + offset)

    @property
    def fitted_offset(self) -> Array | float:  # type: ignore[override]  # found when asked for
        """What is added to the linear predictors of the rows of the fit."""
        return getattr(self, "offset", 0.0)

    @property
    def alpha(self) -> float:
        """Weight of the penalty: the one given, or the default for `eps_bar`."""
        if self._given_alpha is not None:
            return self._given_alpha
        return DEFAULT_ALPHA[self.penalty] * (self.eps_bar != 0)

    def problem(self) -> ClassificationProblem:
        """Return the cross-entropy losses with their penalty."""
        offset = getattr(self, "offset", None)
        if self.penalty is None:
            return ClassificationProblem(self.endog, self.exog, offset, alpha=self.alpha)
        ridge = np.diag(self.alpha * clipped_spread(self.exog, self.freq_weights) ** 2)
        return ClassificationProblem(self.endog, self.exog, offset, ridge=ridge)

    def _deviances(self) -> DevianceProblem:
        family, endog = BinomialFamily(), np.asarray(self.endog, float)
        mean = MeanFunction.between(Link.logit(), *family.mean_bounds(endog))
        offset = self.fitted_offset + np.zeros(len(endog))
        return DevianceProblem(endog, self.exog, offset, family=family, mean=mean)

    def _around(self, exog: Any, eta: Array | float = 0.0) -> RRMLogit:
        options: Any = {name: getattr(self, name) for name in ("eps_bar_max", "freq_weights")}
        offset = self.fitted_offset + eta + np.zeros(len(self.endog))
        options |= {"alpha": self._given_alpha, "offset": offset}
        return RRMLogit(self.endog, exog, self.eps_bar, **options)

    def _warn(self, estimate: Estimate) -> None:
        first = estimate.first or estimate
        if getattr(first, "separated", False):
            checks.warn(
                "a hyperplane separates the rows with weight, so that no finite parameters are "
                "best; these were stopped where the probabilities are 0 and 1 to rounding. Give "
                "alpha > 0 (1e-5 is the default where eps_bar > 0) or penalty='l2'",
                PerfectSeparationWarning,
            )
        elif not np.isfinite(first.solution.risk):
            checks.warn(
                "from every start the weights leave out nearly all rows of one class, so that the "
                "first step has no minimum; lower eps_bar below the share of the rarer class",
                ConvergenceWarning,
            )
        else:
            super()._warn(estimate)


def as_labels(endog: Any, level: Any) -> Any:
    """Return labels as zeros and ones, keeping missing values and the index."""
    check_no_counts(endog)
    if isinstance(endog, pd.DataFrame) and (endog.shape[1] > 1 or _is_dummy(endog, level)):
        return _dummy_column(endog, level)
    if isinstance(endog, pd.DataFrame):
        endog = endog.iloc[:, 0]
    series = endog if isinstance(endog, pd.Series) else pd.Series(np.asarray(endog).squeeze())
    if series.empty:
        raise ValueError("endog is empty: no rows, or none without missing values")
    if pd.api.types.is_numeric_dtype(series.dtype) and level is None:
        values = series.astype(float)
        check_binary(values.dropna().to_numpy())
    else:
        _check_level(level, pd.unique(series.dropna()).tolist())
        values = (series == level).astype(float).where(series.notna())
    return values if isinstance(endog, pd.Series) else values.to_numpy()


def check_no_counts(endog: Any) -> None:
    """Raise where a response has two columns of counts, not dummies of the levels of a label."""
    names = [str(name) for name in getattr(endog, "columns", ())]
    if np.ndim(endog) < 2 or np.shape(endog)[1] < 2 or any(name.endswith("]") for name in names):
        return
    shown = f" ({', '.join(names)})" if names else ""
    raise ValueError(
        f"endog must be one column of labels, got {np.shape(endog)[1]}{shown}; for counts of "
        f"successes and failures {BINOMIAL}"
    )


def _is_dummy(endog: pd.DataFrame, level: Any) -> bool:
    """Tell whether one column is a formula's dummy of the only level that there is."""
    return level is not None and str(endog.columns[0]).endswith("]")


def _dummy_column(endog: pd.DataFrame, level: Any) -> pd.Series:
    """Return the column of the level that counts as 1, out of a formula's dummy columns."""
    levels = [str(name).rsplit("[", 1)[-1].removesuffix("]") for name in endog.columns]
    if level is None and sorted(levels) == ["False", "True"]:
        level = "True"
    _check_level(None if level is None else str(level), levels)
    return endog.iloc[:, levels.index(str(level))]


def _check_level(level: Any, levels: list[Any]) -> None:
    if len(levels) > 2:
        raise ValueError(f"endog must have two levels, got {len(levels)}: {levels[:5]}")
    if level is None:
        raise ValueError(
            f"endog has the levels {levels}; name the one that counts as 1, for example "
            f"level={levels[-1]!r}"
        )
    if level not in levels:
        raise ValueError(f"level={level!r} is not among the levels of endog: {levels}")


def check_binary(labels: Array) -> None:
    """Raise where labels are not zeros and ones."""
    if np.isin(labels, (0.0, 1.0)).all():
        return
    found = np.unique(labels)
    advice = "for two other levels name the one that counts as 1 with level="
    if len(found) > 2 and found[0] >= 0:
        advice = f"for {'shares of successes' if found[-1] <= 1 else 'counts'} {BINOMIAL}"
    raise ValueError(f"endog must be 0 and 1, got {found[:5]}; {advice}")


def check_classes(labels: Array, freq_weights: Array | None) -> None:
    """Raise where labels are all the same."""
    counted = labels if freq_weights is None else labels[freq_weights > 0]
    if len(np.unique(counted)) == 1:
        raise ValueError(
            f"endog has one class only, all {counted[0]:g}: a logistic regression needs both"
        )
