"""Generalized linear models by robust risk minimization."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.genmod import families
from statsmodels.genmod.families import links
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools.sm_exceptions import ModelWarning, PerfectSeparationWarning

from rrmstats.core.block_array import aligned, row_map
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.generalized import GeneralizedEstimate, GeneralizedProblem
from rrmstats.models import checks
from rrmstats.models.base import DesignedModel
from rrmstats.models.families import (
    check_columns,
    check_family,
    check_link,
    check_responses,
    loss_family,
    mean_function,
    warn_of_fractions,
)
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
    _row_arrays = (
        *("endog", "exog", "freq_weights", "groups"),
        *("var_weights", "n_trials", "_offset_exposure"),
    )
    _results_class = RRMGLMResults

    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        eps_bar_max: float = checks.EPS_BAR_MAX,
        family: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        freq_weights: ArrayLike | None = None,
        var_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        trials = {"n_trials": kwargs.pop("n_trials")} if "n_trials" in kwargs else {}
        family = check_family(family)
        given = {"endog": endog, "exog": exog, "freq_weights": freq_weights, "offset": offset}
        given |= {"exposure": exposure, "var_weights": var_weights}
        held, rows = self._checked(eps_bar, missing, persist, kwargs, **given)
        values: Any = checks.check_numbers("endog", rows.pop("endog"))
        if not isinstance(family, families.Binomial):
            checks.check_column("endog", values)
        else:
            check_columns(values)
        with checks.readable_errors():
            super().__init__(values, family=family, missing=missing, **rows, **trials, **kwargs)
        self._set_options(eps_bar, rows.pop("freq_weights"), eps_bar_max, groups)
        self._check_orders(**{key: rows[key] for key in ("offset", "exposure", "var_weights")})
        for key in ("endog", *(key for key, value in rows.items() if value is not None)):
            checks.check_finite(key, np.asarray(getattr(self, key), float))
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
        return {
            "var_weights": ones,
            "n_trials": trials,
            "_offset_exposure": offset * ones,
            **arrays,
        }

    def predicted(self, params: Array, rows: Array, offset: Array | float) -> Array:
        """Return the means of rows of the design in partitions."""
        return row_map(self.family.link.inverse, rows @ params + offset, tail=())

    @property
    def fitted_offset(self) -> Array | float:
        """What is added to the linear predictors of the rows of the fit."""
        return self._offset_exposure

    @property
    def incomparable(self) -> str:
        """Why fits with different bounds cannot be compared; empty where they can."""
        family = self.family
        if isinstance(family, families.Binomial) and type(family.link) is not links.Logit:
            labels = (self.endog == 0) | (self.endog == 1)
            if labels.all() and (self.row_sizes == 1).all():
                return (
                    "no single label of 0 or 1 is improbable enough to tell a wrong one from "
                    "chance; the logit link has a second step for labels"
                )
        return ""

    def problem(self) -> GeneralizedProblem:
        """Return half the unit deviances."""
        return self._problem_of(GeneralizedProblem)

    def _deviances(self) -> DevianceProblem:
        return self._problem_of(DevianceProblem)

    def _around(self, exog: Any, eta: Array | float = 0.0) -> RRMGLM:
        options: dict[str, Any] = {
            "eps_bar_max": self.eps_bar_max,
            "freq_weights": self.freq_weights,
        }
        options |= {
            "offset": self._offset_exposure + eta + np.zeros(len(self.endog)),
            "var_weights": self.row_sizes,
        }
        return RRMGLM(self.endog, exog, self.eps_bar, family=self.family, **options)

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

    def likelihood_params(self) -> Array:
        """Return the parameters of maximum likelihood, shape (k,).

        Examples
        --------
        >>> import pandas as pd, rrmstats
        >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
        >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
        >>> bool(res.model.likelihood_params()[0] > res.params["Intercept"])
        True
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            return np.asarray(self.with_eps_bar(0.0).fit(stability=False).params)

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
            remedy = (
                "logit bounds them"
                if isinstance(self.family, families.Binomial)
                else "drop the predictors that single such rows out"
            )
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

    _also_refused = ("loglikeobs",)

    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        **kwargs: Any,
    ) -> None:
        if "family" in kwargs:
            raise TypeError("RRMPoisson has no family=; use RRMGLM for another family or link")
        super().__init__(endog, exog, eps_bar, family=families.Poisson(), **kwargs)
        self._init_keys = [key for key in self._init_keys if key != "family"]


# What `help` shows: the arguments of `RRMGLM` without the family.
RRMPoisson.__init__.__signature__ = signature(RRMGLM.__init__).replace(  # type: ignore[attr-defined]
    parameters=[
        each for each in signature(RRMGLM.__init__).parameters.values() if each.name != "family"
    ]
)
