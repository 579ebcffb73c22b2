"""Generalized linear models by robust risk minimization."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.genmod import families
from statsmodels.genmod.families import links
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from rrmstats.core.block_array import aligned, row_map
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.laws import families as laws
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.generalized import GeneralizedEstimate, GeneralizedProblem
from rrmstats.models import checks
from rrmstats.models.base import LIKELIHOOD, DesignedModel, RRMModel, same_signature
from rrmstats.models.regularized import RegularizedModel
from rrmstats.partitions.rows import PartitionedRows
from rrmstats.results.generalized import RRMGLMResults

ProblemT = TypeVar("ProblemT", bound=DevianceProblem)


class RRMGLM(RegularizedModel, DesignedModel[GeneralizedProblem, RRMGLMResults], GLM):
    """Generalized linear model when some of the rows may be bad.

    The loss of a row is half its unit deviance times its variance weight, over the dispersion
    where the family has one.

    Parameters
    ----------
    endog : array_like, shape (n,) or (n, 2)
        Response. For the binomial family 0 and 1, shares of successes, or two columns of counts:
        successes and failures.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is maximum likelihood. By default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    family : statsmodels family, optional
        Gaussian by default; Binomial, Poisson, Gamma, InverseGaussian, NegativeBinomial with its
        alpha given, or Tweedie, each with any link.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    exposure : array_like, shape (n,), optional
        Positive; its logarithm is added to the linear predictor. For the log link only.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    var_weights : array_like, shape (n,), optional
        Positive; a response of weight 2 has half the variance, as a mean of two has. For shares
        of successes the numbers of trials.
    groups : array_like, shape (n,), optional
        Labels of groups of rows that are bad as a whole: each has one weight.
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
    >>> from rrmstats import RRMGLM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(300)
    >>> y = rng.poisson(np.exp(1 + 0.5 * x))
    >>> y[x > 1.5] = 0
    >>> model = RRMGLM(y, sm.add_constant(x), eps_bar=0.2, family=sm.families.Poisson())
    >>> model.fit().params.round(1)
    array([1. , 0.5])
    """

    exog: Array
    _row_arrays = (*RRMModel._row_arrays, "var_weights", "n_trials", "_offset_exposure")
    _results_class = RRMGLMResults

    @same_signature(RRMModel._checked, "given")
    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        family: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        var_weights: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        trials = {"n_trials": options.pop("n_trials")} if "n_trials" in options else {}
        family = check_family(family)
        given = {"endog": endog, "exog": exog, "offset": offset}
        given |= {"exposure": exposure, "var_weights": var_weights}
        held, rows, passed, kept = self._checked(eps_bar, given, **options)
        rows["endog"] = checks.check_numbers("endog", rows["endog"])
        if isinstance(family, families.Binomial):
            check_columns(rows["endog"])
        else:
            checks.check_column("endog", rows["endog"])
        with checks.readable_errors():
            super().__init__(family=family, **rows, **trials, **passed)
        self._set_options(**kept, **rows)
        name, losses = type(family).__name__, loss_family(family)
        check_responses(name, losses, self.endog)
        check_link(self.family.link, losses, self.endog, self.row_sizes)
        if self.eps_bar != 0:
            warn_of_fractions(name, losses, self.endog, self.row_sizes)
        self._hold(held)

    def _held_arrays(self, held: PartitionedRows) -> dict[str, Any]:
        arrays, n = super()._held_arrays(held), len(held)
        if "exposure" in arrays:
            arrays["exposure"] = np.log(arrays["exposure"])  # as statsmodels holds it
        offset = arrays.get("offset", 0.0) + arrays.get("exposure", 0.0)
        endog, ones = arrays["endog"], np.broadcast_to(1.0, (n,))
        ones = ones.copy() if held.in_memory else aligned(ones, held.blocks)
        trials = ones if endog.ndim == 1 else endog.sum(axis=1)
        arrays["endog"] = endog if endog.ndim == 1 else endog[:, 0] / trials
        check_responses(type(self.family).__name__, loss_family(self.family), arrays["endog"])
        arrays |= {"n_trials": trials, "_offset_exposure": offset * ones}
        return {"var_weights": ones, **arrays}

    def predicted(self, params: Array, rows: Array, offset: Array | float) -> Array:
        """Return the means of rows of the design in partitions."""
        return row_map(self.family.link.inverse, rows @ params + offset, tail=())

    @property
    def fitted_offset(self) -> Array | float:  # type: ignore[override]  # found when asked for
        """What is added to the linear predictors of the rows of the fit."""
        return self._offset_exposure

    @property
    def incomparable(self) -> str:  # type: ignore[override]  # found when it is asked for
        """Why fits with different bounds cannot be compared; empty where they can."""
        family = self.family
        if not isinstance(family, families.Binomial) or type(family.link) is links.Logit:
            return ""
        labels = (self.endog == 0) | (self.endog == 1)
        if not (labels.all() and (self.row_sizes == 1).all()):
            return ""
        return (
            "no single label of 0 or 1 is improbable enough to tell a wrong one from chance; the "
            "logit link has a second step for labels"
        )

    def problem(self) -> GeneralizedProblem:
        """Return half the unit deviances."""
        return self._problem_of(GeneralizedProblem)

    def _deviances(self) -> DevianceProblem:
        return self._problem_of(DevianceProblem)

    def _around(self, exog: Any, eta: Array | float = 0.0) -> RRMGLM:
        options: Any = {name: getattr(self, name) for name in ("eps_bar_max", "freq_weights")}
        options["offset"] = self._offset_exposure + eta + np.zeros(len(self.endog))
        options |= {"var_weights": self.row_sizes, "family": self.family}
        return RRMGLM(self.endog, exog, self.eps_bar, **options)

    def _problem_of(self, kind: type[ProblemT]) -> ProblemT:
        """Return the losses of the rows as a problem of some kind."""
        family = loss_family(self.family)
        endog, offset = checks.as_floats(self.endog), checks.as_floats(self._offset_exposure)
        if not self.in_partitions:
            offset = np.broadcast_to(offset, endog.shape).copy()
        mean = mean_function(self.family.link, family, endog)
        rows = endog, checks.as_floats(self.exog), offset, self.row_sizes
        return kind(*rows, family=family, mean=mean)

    @property
    def row_sizes(self) -> Array:
        """Variance weights times numbers of trials, shape (n,)."""
        return checks.as_floats(self.var_weights) * checks.as_floats(self.n_trials)

    @property
    def rates(self) -> Array:
        """Responses at an offset of zero, which only a log link has, shape (n,)."""
        offset = np.asarray(self._offset_exposure, float)
        if not offset.any():
            return np.asarray(self.endog, float)
        if not isinstance(self.family.link, links.Log):
            raise ValueError(
                f"responses with an offset can be compared only under a log link, got "
                f"{type(self.family.link).__name__}"
            )
        return np.asarray(self.endog / np.exp(offset))

    def get_distribution(self, params: ArrayLike, scale: float | None = None, **given: Any) -> Any:
        """Return the distributions of the responses at parameters; see statsmodels' GLM.

        Parameters
        ----------
        params : array_like, shape (k,)
        scale : float, optional
            Dispersion, as `scale` of the results has it; 1 for families without one.
        **given
            `exog`, `exposure`, `offset`, `var_weights` and `n_trials` of statsmodels.

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> law = res.model.get_distribution(res.params)
        >>> bool(law.sf(98)[6] < 1e-6)
        True
        """
        if scale is None and loss_family(self.family).dispersed:
            raise TypeError("scale is required for this family; give scale=res.scale")
        return super().get_distribution(params, 1.0 if scale is None else scale, **given)

    def _traits(self) -> list[str]:
        family, link = type(self.family).__name__, type(self.family.link).__name__
        return [f"{family} family", f"{link} link", *super()._traits()]

    def _warn(self, estimate: Estimate) -> None:
        if isinstance(estimate, GeneralizedEstimate) and estimate.boundary:
            binomial = isinstance(self.family, families.Binomial)
            remedy = "drop the predictors that single such rows out"
            remedy = "logit bounds them" if binomial else remedy
            checks.warn(
                "predictors separate some rows with weight whose responses are all at the edge of "
                "what the family allows, so that no finite parameters are best; these were "
                f"stopped where the means are at the edge to rounding. Lower eps_bar; {remedy}",
                PerfectSeparationWarning,
            )
        else:
            super()._warn(estimate)


class RRMPoisson(RRMGLM):
    """Poisson regression when some of the rows may be bad: `RRMGLM` with a log link.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Counts.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is maximum likelihood. By default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    exposure : array_like, shape (n,), optional
        Positive; its logarithm is added to the linear predictor.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    var_weights : array_like, shape (n,), optional
        Positive; a response of weight 2 has half the variance, as a mean of two has.
    groups : array_like, shape (n,), optional
        Labels of groups of rows that are bad as a whole: each has one weight.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections; see `RRMGLM`.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMPoisson
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(300)
    >>> y = rng.poisson(np.exp(1 + 0.5 * x))
    >>> y[:20] = 100
    >>> RRMPoisson(y, sm.add_constant(x), eps_bar=0.1).fit().params.round(1)
    array([1. , 0.5])
    """

    _refusals: ClassVar[dict[str, str]] = {"loglikeobs": LIKELIHOOD}

    @same_signature(RRMGLM.__init__, "family")
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "family" in kwargs:
            raise TypeError("RRMPoisson has no family=; use RRMGLM for another family or link")
        super().__init__(*args, family=families.Poisson(), **kwargs)
        self._init_keys = [key for key in self._init_keys if key != "family"]


def _tweedie(family: Any) -> laws.Family:
    power = float(family.var_power)
    if power in (0, 1, 2, 3):
        return (laws.Gaussian, laws.DispersedPoisson, laws.Gamma, laws.InverseGaussian)[
            int(power)
        ]()
    if 1 < power < 2:
        return laws.Tweedie(power)
    raise ValueError(
        f"Tweedie needs var_power from 1 to 2, or 0 or 3, got {power:g}: no other has a "
        "distribution that expectations can be taken over"
    )


def _negative_binomial(family: Any) -> laws.Family:
    alpha = float(family.alpha)
    if not alpha > 0:
        raise ValueError(f"NegativeBinomial needs alpha > 0, got {alpha:g}; 0 is Poisson")
    return laws.NegativeBinomial(alpha)


#: The families offered, by those of statsmodels.
FAMILIES: dict[type, Callable[[Any], laws.Family]] = {
    families.Gaussian: lambda _: laws.Gaussian(),
    families.Binomial: lambda _: laws.Binomial(),
    families.Poisson: lambda _: laws.Poisson(),
    families.Gamma: lambda _: laws.Gamma(),
    families.InverseGaussian: lambda _: laws.InverseGaussian(),
    families.NegativeBinomial: _negative_binomial,
    families.Tweedie: _tweedie,
}


def check_family(family: Any) -> Any:
    """Return a copy of a family of statsmodels, Gaussian where none is given.

    A copy, because statsmodels keeps the numbers of trials on it.
    """
    if family is None:
        return families.Gaussian()
    offered = ", ".join(kind.__name__ for kind in FAMILIES)
    if isinstance(family, type):
        raise TypeError(
            f"family must be an instance, such as sm.families.Poisson(), got the class "
            f"{family.__name__}"
        )
    if type(family) not in FAMILIES:
        raise TypeError(f"family must be one of statsmodels' {offered}, got {family!r}")
    return copy.copy(family)


def loss_family(family: Any) -> laws.Family:
    """Return the deviance and distribution of a family of statsmodels."""
    return FAMILIES[type(family)](family)


def mean_function(link: Any, family: laws.Family, endog: Array) -> laws.MeanFunction:
    """Return the inverse of a link of statsmodels within the domain of a family."""
    functions = laws.Link(link.__call__, link.inverse, link.inverse_deriv, link.inverse_deriv2)
    if isinstance(link, links.Power) and link.power == 1:
        functions = laws.Link.identity()
        if not family.positive:
            return laws.MeanFunction(functions)
    elif isinstance(link, links.Log):
        functions = laws.Link.log()
    elif type(link) is links.Logit:  # other links of probabilities inherit from it
        functions = laws.Link.logit()
    return laws.MeanFunction.between(functions, *family.mean_bounds(endog))


def check_responses(name: str, family: laws.Family, endog: Array) -> None:
    """Raise where a deviance is not defined for some responses."""
    if not family.positive:
        return
    if isinstance(family, laws.Binomial):
        _check_shares(endog)
        return
    bad, what, advice = endog < 0, "must not be negative", ""
    if not family.zeros:
        bad, what = endog <= 0, "must be positive"
        advice = ", or use a Tweedie family, which has zeros"
    if bad.any():
        raise ValueError(
            f"endog {what} for the {name} family, got {int(bad.sum())} such rows, the smallest "
            f"{endog.min():g}; fix or drop these rows{advice}"
        )
    if not endog.max() > 0:
        raise ValueError(f"endog is all zeros; {name} needs some positive responses")


def check_columns(endog: Any) -> None:
    """Raise where counts of successes and failures are not counts."""
    if np.ndim(endog) < 2 or np.shape(endog)[1] == 1:
        return
    names = [str(name) for name in getattr(endog, "columns", ())]
    if all(name.endswith("]") for name in names) and len(names) == 2:
        label = names[0].partition("[")[0]
        raise ValueError(
            f"{label} is not numeric: the formula makes the columns {' and '.join(names)}, and "
            f"the first would be the successes; give 0 and 1, such as I(({label} == ...) * 1)"
        )
    values = np.asarray(endog, dtype=float)
    if values.shape[1] != 2:
        raise ValueError(
            f"endog must have one column, or two with successes and failures, got "
            f"{values.shape[1]}"
        )
    bad = (values < 0).any(axis=1)
    if bad.any():
        raise ValueError(
            f"endog has negative counts in {int(bad.sum())} rows, such as {values[bad][0]}; the "
            "columns are successes and failures, trials less successes, and no row can have more "
            "successes than trials"
        )
    empty = values.sum(axis=1) == 0
    if empty.any():
        raise ValueError(
            f"endog has {int(empty.sum())} rows without successes and failures; drop them"
        )


def warn_of_fractions(name: str, family: laws.Family, endog: Array, sizes: Array) -> None:
    """Warn where responses are not counts, whose distribution corrects the parameters."""
    if not isinstance(family, laws.Counts) or family.dispersed:
        return
    counts = endog * sizes
    broken = np.abs(counts - np.round(counts)) > 1e-6 * np.maximum(counts, 1.0)  # by rounding
    if not broken.any():
        return
    advice = (
        "give counts with exposure= in place of rates, or use Tweedie(var_power=1), which is "
        "quasi-Poisson and has a dispersion"
    )
    if isinstance(family, laws.Binomial):
        advice = "give shares with their numbers of trials as var_weights="
    checks.warn(
        f"{int(broken.sum())} responses are not whole numbers, such as {counts[broken][0]:g}; the "
        f"correction and the flags take them for {name} counts, and may be off; {advice}"
    )


def check_link(link: Any, family: laws.Family, endog: Array, sizes: Array) -> None:
    """Raise where a link has no value at means near the responses."""
    with np.errstate(all="ignore"):
        forward = mean_function(link, family, endog).link.forward
        bad = ~np.isfinite(forward(family.near_means(endog, sizes)))
    if bad.any():
        raise ValueError(
            f"the {type(link).__name__} link is not defined for means near {int(bad.sum())} of "
            f"the responses, such as {endog[bad][0]:g}; use another link"
        )


def _check_shares(endog: Array) -> None:
    """Raise where binomial responses are not shares of successes."""
    bad = (endog < 0) | (endog > 1)
    if bad.any():
        raise ValueError(
            f"endog must be 0 and 1 or shares in [0, 1] for the Binomial family, got "
            f"{int(bad.sum())} rows outside, from {endog.min():g} to {endog.max():g}; give counts "
            "as two columns, successes and failures"
        )
    if endog.min() == endog.max() and endog.min() in (0.0, 1.0):
        raise ValueError(
            f"endog has one outcome only, all {endog.min():g}: a binomial model needs both"
        )
