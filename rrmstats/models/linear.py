"""Linear regression by robust risk minimization."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.regression.linear_model import WLS

from rrmstats.core.blocks import deciding_places
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.interchange import as_pandas, is_dask, used_columns
from rrmstats.laws.families import Gaussian, Link, MeanFunction
from rrmstats.losses.absorbed import AbsorbedProblem, AbsorbedTangent, Factors
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.regression import RegressionProblem
from rrmstats.models import checks
from rrmstats.models.absorbed import DASK, AbsorbedFactors, numbered
from rrmstats.models.base import DesignedModel, RRMModel, same_signature
from rrmstats.models.regularized import RegularizedModel
from rrmstats.results.absorbed import RRMAbsorbedResults
from rrmstats.results.inference import Inference
from rrmstats.results.linear import RRMOLSResults

if TYPE_CHECKING:
    from typing_extensions import Self


class RRMOLS(RegularizedModel, DesignedModel[RegressionProblem, RRMOLSResults], WLS):
    """Linear regression when some of the rows may be bad.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Dependent variable.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is least squares. By default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    absorb : array_like, shape (n,) or (n, f), or DataFrame, optional
        Labels of one factor or of several, each of whose levels has an effect of its own: fixed
        effects. `rrmstats.feols` takes them from a formula. Rows that are alone in a level are
        dropped. The design then holds no constant.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    hasconst : bool, optional
        Whether the design holds a constant; by default it is looked for.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMOLS
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> y = 1 + 2 * x + 0.1 * rng.standard_normal(100)
    >>> y[x > 1] = -5
    >>> RRMOLS(y, sm.add_constant(x), eps_bar=0.3).fit().params.round(1)
    array([1., 2.])
    """

    exog: Array
    _cov_types: tuple[str, ...] = ("sandwich", "nonrobust", "cluster", "HAC", "bootstrap")
    _results_class: type[RRMOLSResults] = RRMOLSResults
    _row_arrays = (*RRMModel._row_arrays, "absorb_codes")
    #: The absorbed factors, and the levels of the rows in them, shape (n, f).
    absorbed: AbsorbedFactors | None = None
    absorb_codes: np.ndarray | None = None
    #: A problem of some of the rows, less medians of all.
    _of_sample: RegressionProblem | None = None

    @same_signature(RRMModel._checked, "given")
    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        absorb: ArrayLike | None = None,
        hasconst: bool | None = None,
        **options: Any,
    ) -> None:
        given = {"endog": endog, "exog": exog}
        held, rows, passed, kept = self._checked(eps_bar, given, **options)
        rows["endog"] = checks.check_numbers("endog", rows["endog"])
        checks.check_column("endog", rows["endog"])
        if absorb is not None:
            self.absorbed = AbsorbedFactors.of(absorb, len(rows["endog"]), held is not None)
            if self.absorbed.n_dropped and "missing_idx" in passed:
                raise ValueError(
                    f"absorb: {self.absorbed.n_dropped} rows are alone in a level; use "
                    "rrmstats.feols, which drops them, or drop them first"
                )
            *arrays, kept["groups"] = self.absorbed.rows(*rows.values(), kept["groups"])
            rows = dict(zip(rows, arrays, strict=True))
        self._weighted = rows["freq_weights"] is not None
        rows = {name: values for name, values in rows.items() if values is not None}
        counts = rows.get("freq_weights", 1.0)
        with checks.readable_errors():
            super().__init__(hasconst=hasconst, weights=counts, **rows, **passed)
        self.__dict__.pop("pinv_wexog", None)  # statsmodels sets None, which hides the property
        self._set_options(**kept, **rows)
        self._hold(held)
        if self.absorbed is not None:
            self.absorb_codes = self.absorbed.codes
            self._results_class = RRMAbsorbedResults
            self._cov_types = ("sandwich", "nonrobust", "cluster")
            self.absorbed.check(self.exog, self.factors, self.exog_names)

    def whiten(self, x: ArrayLike) -> Array:
        """Return data times the root of the frequency weights: the data themselves without any."""
        return super().whiten(x) if self._weighted else np.asarray(x)

    def problem(self) -> RegressionProblem:
        """Return the squared residuals, scaled so that no data overflow."""
        if self._of_sample is not None:
            return self._of_sample
        if self.absorb_codes is not None:
            return self.absorbed_problem
        return RegressionProblem(checks.as_floats(self.endog), checks.as_floats(self.exog))

    @cached_property
    def factors(self) -> Factors:
        """The absorbed factors, as weighted fits take them out of the variables."""
        assert self.absorb_codes is not None
        return Factors(self.absorb_codes)

    @cached_property
    def absorbed_problem(self) -> AbsorbedProblem:
        """The squared residuals of variables from which the factors are taken out."""
        return AbsorbedProblem(self.endog, self.exog, self.factors)

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model of some rows."""
        part = super()._part(rows)
        if part.absorb_codes is not None:
            for name in ("factors", "absorbed_problem"):
                part.__dict__.pop(name, None)
            part.absorb_codes = numbered(part.absorb_codes)
        return part

    def _sampled(self) -> tuple[Self, np.ndarray]:
        """Return the model of some rows; with absorbed effects of whole levels, or of groups."""
        if self.absorb_codes is None or not self._decides_on_sample:
            return super()._sampled()
        groups = self.weighed_groups
        together = self.factors.drawn_together if groups is None else groups.codes
        rows = deciding_places(len(self.endog), together)
        part = self._part(rows)
        part._of_sample = self.absorbed_problem.sample(rows)
        return part, rows

    def _predictors(self) -> Array:
        """Return the rows of the design in memory, less the means of absorbed levels."""
        rows = super()._predictors()
        if self.absorb_codes is None:
            return rows
        return self.factors.within(rows, np.ones(len(rows)))

    def _wrapped(
        self, estimate: Estimate, inference: Inference, first_step: RRMOLSResults | None
    ) -> RRMOLSResults:
        """Return results; with absorbed effects of the model of the rows less these.

        It is the same model, since effects are absorbed whatever they are.
        """
        model, found = copy(self), getattr(estimate, "row_estimate", estimate)
        if isinstance(found.problem, AbsorbedTangent):
            model.endog, model.exog = found.problem.within[:, 0], found.problem.within[:, 1:]
        return RRMModel._wrapped(model, estimate, inference, first_step)

    def _deviances(self) -> DevianceProblem:
        mean = MeanFunction(Link.identity())
        return DevianceProblem(self.endog, self.exog, family=Gaussian(), mean=mean)

    def _around(self, exog: Any, eta: Array | float = 0.0) -> RRMOLS:
        options: Any = {name: getattr(self, name) for name in ("eps_bar_max", "freq_weights")}
        return RRMOLS(self.endog - eta, exog, self.eps_bar, **options)

    @cached_property
    def pinv_wexog(self) -> Array:
        """Pseudo-inverse of the design, as statsmodels' diagnostics use it, shape (k, n)."""
        return np.linalg.pinv(self.wexog)


def feols(
    fml: str,
    data: Any,
    eps_bar: float | str = "auto",
    *,
    vcov: str | Mapping[str, str] | None = None,
    freq_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    eps_bar_max: float = checks.EPS_BAR_MAX,
    **options: Any,
) -> RRMAbsorbedResults:
    """Fit a linear regression with fixed effects, as pyfixest's `feols` does.

    Rows with missing values, and rows that are alone in a level of a factor, are dropped.

    Parameters
    ----------
    fml : str
        Such as ``"y ~ x1 + x2 | firm + year"``: after the bar the factors whose levels have
        effects; ``firm^year`` has one effect for each pair of levels.
    data : DataFrame or mapping
        The variables of the formula.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default chosen from the data. 0 is
        least squares, with pyfixest's numbers.
    vcov : str or dict, optional
        "iid", "hetero" (or "HC1"), or ``{"CRV1": "firm"}`` or ``{"CRV1": "firm + year"}`` for
        errors clustered in one way or in two. By default clustered by `groups`, if there are any,
        else by the first factor.
    freq_weights : str or array_like, optional
        How often each row counts.
    groups : str or array_like, optional
        Clusters that may be bad as a whole, such as "firm": each has one weight.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    **options
        What `fit` takes besides, such as `steps`, `rng` and `stability`.

    Returns
    -------
    RRMAbsorbedResults
        The fit. ``RRMOLS(y, x, absorb=...)`` makes a model that is yet to be fitted.

    Examples
    --------
    >>> import numpy as np, pandas as pd, rrmstats
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"firm": np.repeat(np.arange(30), 8), "x": rng.normal(size=240)})
    >>> frame["year"] = np.tile(np.arange(8), 30)
    >>> frame["y"] = 2 * frame.x + frame.firm + 0.1 * rng.normal(size=240)
    >>> frame.loc[::15, "y"] += 20
    >>> res = rrmstats.feols("y ~ x | firm + year", frame, vcov={"CRV1": "firm"})
    >>> res.params.round(1).to_dict(), int(res.outliers().sum()), res.n_effects
    ({'x': 2.0}, 16, 37)
    """
    linear, terms = bar_formula(fml)
    if is_dask(data):
        raise NotImplementedError(DASK)
    frame: Any = pd.DataFrame(as_pandas(data))
    parts = {term: [name.strip() for name in term.split("^")] for term in terms}
    factors = [name for names in parts.values() for name in names]
    for name in factors:
        checks.named_column("the factor", name, frame)
    used = used_columns(linear, list(frame)) + factors
    whole = frame[used].notna().all(axis=1).to_numpy()
    if not whole.any():
        raise ValueError(
            f"no rows are left: each has a missing value in {', '.join(dict.fromkeys(used))}"
        )
    found = frame.loc[whole]
    labels = pd.DataFrame(
        {
            term: found[names[0]] if len(names) == 1 else found[names].agg(tuple, axis=1)
            for term, names in parts.items()
        }
    )
    absorbed = AbsorbedFactors.of(labels, len(labels))
    kept = whole.copy()
    kept[whole] = absorbed.kept
    given: Any = {"absorb": labels[absorbed.kept], "freq_weights": freq_weights, "groups": groups}
    given |= {"eps_bar_max": eps_bar_max, "eval_env": checks.names_of_caller(0, 1)}
    subset = None if kept.all() else kept
    model = RRMOLS.from_formula(linear, frame, eps_bar, subset, ["Intercept"], **given)
    model.absorbed = absorbed
    if vcov is None and groups is None:
        vcov = {"CRV1": terms[0]} if "^" not in terms[0] else "hetero"
    found = model.fit(**errors_of(vcov), **options)
    assert isinstance(found._results, RRMAbsorbedResults)
    return found


def bar_formula(formula: str) -> tuple[str, list[str]]:
    """Return the formula before the bar, and the factors after it."""
    linear, *rest = formula.split("|")
    if len(rest) != 1 or not rest[0].strip():
        raise ValueError(
            "the formula must be such as 'y ~ x1 + x2 | firm + year', with one bar and the "
            f"absorbed factors after it, got {formula!r}; without factors use rrmstats.ols"
        )
    return linear.strip(), [term.strip() for term in rest[0].split("+")]


def errors_of(vcov: str | Mapping[str, str] | None) -> dict[str, Any]:
    """Return what `fit` takes for pyfixest's name of a covariance."""
    if vcov is None:
        return {}
    if isinstance(vcov, Mapping) and list(vcov) == ["CRV1"]:
        clusters: Any = [name.strip() for name in vcov["CRV1"].split("+")]
        if len(clusters) <= 2:
            groups = clusters if len(clusters) == 2 else clusters[0]
            return {"cov_type": "cluster", "cov_kwds": {"groups": groups}}
    names = {"iid": "nonrobust", "hetero": "sandwich", "HC1": "sandwich"}
    if isinstance(vcov, str) and vcov in names:
        return {"cov_type": names[vcov]}
    raise ValueError(
        "vcov must be 'iid', 'hetero', {'CRV1': 'firm'} or {'CRV1': 'firm + year'}, got "
        f"{vcov!r}"
    )
