"""Statsmodels' models whose likelihoods have closed forms here, with their slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit
from statsmodels.discrete.count_model import GenericZeroInflated
from statsmodels.discrete.discrete_model import (
    GeneralizedPoisson,
    NegativeBinomial,
    NegativeBinomialP,
    Poisson,
    Probit,
)
from statsmodels.genmod.families.links import Log, Logit
from statsmodels.othermod.betareg import BetaModel

from rrmstats.core.entropy import Array
from rrmstats.losses.likelihood_laws import (
    BetaKernel,
    ClosedLaw,
    CountKernel,
    CountLaw,
    GeneralizedPoissonKernel,
    LabelLaw,
    NegativeBinomialKernel,
    PoissonKernel,
    ProbitKernel,
    ShareLaw,
    ZeroInflatedKernel,
)

# Overdispersion below which a negative binomial likelihood is that of counts, up to rounding.
LEAST_ALPHA = 1e-6
# Predictors of a share of added zeros of about 1e-9, which is none.
LEAST_LOGIT, LEAST_PROBIT = -20.0, -6.0
# Dispersion and predictor of a share of zeros from which a fit starts where statsmodels fails.
START_ALPHA, START_INFLATION = 0.1, -1.0
# Variances of statsmodels' negative binomial models: mu + alpha mu^power.
POWERS = {"nb2": 2.0, "nb1": 1.0, "geometric": 2.0}


def closed_form(model: Any) -> ClosedLaw | None:
    """Return the likelihood of a model in closed form; None where there is none."""
    endog = np.asarray(model.endog, dtype=float)
    if isinstance(model, BetaModel):
        if type(model.link) is not Logit or type(model.link_precision) is not Log:
            return None
        both = (np.asarray(model.exog, float), np.asarray(model.exog_precision, float))
        return ShareLaw(BetaKernel(), endog, both, (0.0, 0.0))
    if isinstance(model, Probit):
        if not np.isin(endog, (0.0, 1.0)).all():
            return None
        return LabelLaw(
            ProbitKernel(), endog, (np.asarray(model.exog, float),), (added_offset(model),)
        )
    main = model.model_main if isinstance(model, GenericZeroInflated) else model
    kernel = _count_kernel(main)
    if kernel is None:
        return None
    designs: list[Array] = [np.asarray(main.exog, dtype=float)]
    offsets: list[Array | float] = [added_offset(main)]
    if has_alpha(main):
        designs.append(np.ones((len(endog), 1)))
        offsets.append(0.0)
    if main is not model:
        kernel = ZeroInflatedKernel(kernel, model.inflation == "probit")
        designs.insert(0, np.asarray(model.exog_infl, dtype=float))
        offsets.insert(0, 0.0)
    return CountLaw(kernel, endog, tuple(designs), tuple(offsets))


def rough_start(form: ClosedLaw) -> Array:
    """Return parameters whose predictors are about those of the responses, shape (k,)."""
    y = form.endog
    if isinstance(form, ShareLaw):
        wanted = [logit(np.clip(y, START_ALPHA, 1.0 - START_ALPHA)), np.full(len(y), 2.0)]
    elif isinstance(form, LabelLaw):
        wanted = [2.0 * y - 1.0]
    else:
        inflated = isinstance(form.kernel, ZeroInflatedKernel)
        wanted = [np.full(len(y), START_INFLATION)] if inflated else []
        wanted += [np.log(y + 0.5), np.full(len(y), START_ALPHA)]
    parts = [
        np.linalg.lstsq(design, aim - offset, rcond=None)[0]
        for design, offset, aim in zip(form.designs, form.offsets, wanted, strict=False)
    ]
    start = np.concatenate(parts)
    if isinstance(form, LabelLaw):
        # Short enough that statsmodels' probabilities of labels are all above its least one.
        start = start / max(1.0, float(np.abs(form.predictors(start)[0]).max()))
    return start


def lower_bounds(model: Any, k: int) -> Array:
    """Return the least values of k parameters."""
    least = np.full(k, -np.inf)
    inflated = isinstance(model, GenericZeroInflated)
    main = model.model_main if inflated else model
    if isinstance(main, (NegativeBinomial, NegativeBinomialP)) and has_alpha(main):
        least[-1] = LEAST_ALPHA
    if inflated and model.exog_infl.shape[1] == 1 and (model.exog_infl == 1).all():
        least[0] = LEAST_PROBIT if model.inflation == "probit" else LEAST_LOGIT
    return least


def has_alpha(main: Any) -> bool:
    """Tell whether the last parameter of a model of counts is a dispersion."""
    return isinstance(main, (NegativeBinomial, NegativeBinomialP, GeneralizedPoisson)) and (
        getattr(main, "loglike_method", "") != "geometric"
    )


def variance_power(main: Any) -> float:
    """Return the power of the mean in the variance of a negative binomial model."""
    named = POWERS.get(getattr(main, "loglike_method", ""))
    return float(getattr(main, "parameterization", 2)) if named is None else named


def _count_kernel(main: Any) -> CountKernel | None:
    if isinstance(main, Poisson):
        return PoissonKernel()
    if isinstance(main, (NegativeBinomial, NegativeBinomialP)):
        return NegativeBinomialKernel(variance_power(main), None if has_alpha(main) else 1.0)
    if isinstance(main, GeneralizedPoisson):
        return GeneralizedPoissonKernel(float(main.parameterization))
    return None


def added_offset(main: Any) -> Array | float:
    """Return what is added to the linear predictor of a model of counts or labels."""
    given = [getattr(main, name, None) for name in ("offset", "exposure")]
    return sum((np.asarray(value, float) for value in given if value is not None), 0.0)


def ordered_scores(model: Any, theta: Array) -> Array:
    """Return the scores of an `OrderedModel`, thresholds among them, shape (n, k)."""
    with np.errstate(all="ignore"):
        thresholds = model.transform_threshold_params(theta)
        linear, level = model._linpred(theta), np.asarray(model.endog, dtype=int)
        low, high = thresholds[level] - linear, thresholds[level + 1] - linear
        bells = np.stack([model.pdf(high), -model.pdf(low)]) / model.prob(low, high)
    levels = len(thresholds) - 2
    # Slopes in the thresholds, of which parameters after the first are logarithms of increments.
    above = np.arange(levels) == level[:, None]
    below = np.arange(levels) == level[:, None] - 1
    by_threshold = above * bells[0][:, None] + below * bells[1][:, None]
    increments = np.r_[1.0, np.exp(theta[len(theta) - levels + 1 :])]
    by_rest = np.cumsum(by_threshold[:, ::-1], axis=1)[:, ::-1] * increments
    if model.exog is None:
        return by_rest
    return np.hstack([-bells.sum(axis=0)[:, None] * np.asarray(model.exog, float), by_rest])
