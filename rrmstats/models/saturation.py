"""The largest log-likelihood that a response could have, for the models where it is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import (
    betaln,
    digamma,
    expit,
    gammaln,
    logit,
    xlog1py,
    xlogy,
)
from statsmodels.discrete.count_model import (
    ZeroInflatedGeneralizedPoisson,
    ZeroInflatedNegativeBinomialP,
    ZeroInflatedPoisson,
)
from statsmodels.discrete.discrete_model import (
    BinaryModel,
    GeneralizedPoisson,
    MNLogit,
    NegativeBinomial,
    NegativeBinomialP,
    Poisson,
)
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

from rrmstats.core.entropy import Array
from rrmstats.losses.likelihood_laws import GeneralizedPoissonKernel, NegativeBinomialKernel
from rrmstats.models.closed_forms import has_alpha, variance_power

Largest = Callable[[Array], Array]

# Logarithms around that of a count within which the mean of largest likelihood lies.
AROUND = 6.0
# Logits of a mean where its search starts and ends; number of its steps, and size of the last.
START_LOGIT, FARTHEST_LOGIT = 5.0, 40.0
BETA_STEPS, BETA_TOL = 30, 1e-6
# Steps of a golden section, which shrink an interval by 0.618 each.
GOLDEN_STEPS = 45
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


def largest_of(model: Any, theta: Array) -> Largest | None:
    """Return the largest log-likelihoods of responses, over all means at a given dispersion.

    Parameters
    ----------
    model : statsmodels model
    theta : ndarray, shape (k,)
        Parameters; those of the dispersion are taken as given.

    Returns
    -------
    callable or None
        Takes responses of shape (..., n); None where the model is not known.
    """
    if isinstance(model, (BinaryModel, MNLogit, OrderedModel)):
        return zeros
    found = _counts(model, theta)
    if found is not None:
        return found
    if isinstance(model, BetaModel):
        precision = np.asarray(model.predict(theta, which="precision"), dtype=float)
        return partial(largest_beta, precision=precision)
    return None


def depends_on_dispersion(model: Any) -> bool:
    """Tell whether the largest log-likelihoods depend on parameters that are estimated."""
    if isinstance(model, (BinaryModel, MNLogit, OrderedModel, ZeroInflatedPoisson)):
        return False
    if getattr(model, "loglike_method", "") == "geometric":
        return False
    return not isinstance(model, Poisson)


def _counts(model: Any, theta: Array) -> Largest | None:
    """Return the largest log-likelihoods of counts; zeros alone have probability one."""
    if isinstance(model, (Poisson, ZeroInflatedPoisson)):
        return largest_poisson
    kinds = (NegativeBinomial, NegativeBinomialP, ZeroInflatedNegativeBinomialP)
    if isinstance(model, kinds):
        main = getattr(model, "model_main", model)
        alpha = float(theta[-1]) if has_alpha(main) else 1.0
        return partial(largest_negative_binomial, alpha=alpha, power=variance_power(main))
    if isinstance(model, (GeneralizedPoisson, ZeroInflatedGeneralizedPoisson)):
        main = getattr(model, "model_main", model)
        power = float(main.parameterization)
        return partial(largest_generalized_poisson, alpha=float(theta[-1]), power=power)
    return None


def zeros(y: Array) -> Array:
    """Return zeros: a class may have probability one."""
    return np.zeros(np.shape(y))


def largest_poisson(y: Array) -> Array:
    """Return the log-probabilities of counts whose means they are."""
    return xlogy(y, y) - y - gammaln(y + 1.0)


def largest_negative_binomial(y: Array, alpha: float, power: float) -> Array:
    """Return the largest log-probabilities of counts with variance mu + alpha mu^power."""
    return _over_means(y, NegativeBinomialKernel(power), alpha)


def largest_generalized_poisson(y: Array, alpha: float, power: float) -> Array:
    """Return the largest log-probabilities of counts of a generalized Poisson distribution."""
    return _over_means(y, GeneralizedPoissonKernel(power), alpha)


def _over_means(
    y: Array, kernel: NegativeBinomialKernel | GeneralizedPoissonKernel, alpha: float
) -> Array:
    """Return the largest values over the means, found once for each count that occurs."""
    counts, place = np.unique(y, return_inverse=True)
    found, given = np.zeros(len(counts)), np.array(alpha)
    some = counts > 0

    def value(log_mean: Array) -> Array:
        density = kernel.log_density(counts[some], log_mean, given)
        return np.nan_to_num(density, nan=-np.inf, neginf=-np.inf)

    middle = np.log(counts[some])
    with np.errstate(all="ignore"):
        found[some] = highest(value, middle - AROUND, middle + AROUND)
    return found[place].reshape(np.shape(y))


def largest_beta(y: Array, precision: Array) -> Array:
    """Return the largest log-densities of shares over the means of a beta distribution.

    Newton's method on the logit of the mean m, whose equation at precision p is
    ``digamma(m p) - digamma((1 - m) p) = logit(y)``.
    """
    with np.errstate(all="ignore"):
        target = logit(y)
        t = np.clip(target, -START_LOGIT, START_LOGIT)
        for _ in range(BETA_STEPS):
            mean, rest = expit(t), expit(-t)
            gap = digamma(mean * precision) - digamma(rest * precision) - target
            bend = _trigamma(mean * precision) + _trigamma(rest * precision)
            step = -gap / (bend * precision * mean * rest)
            t = np.clip(t + np.clip(step, -2.0, 2.0), -FARTHEST_LOGIT, FARTHEST_LOGIT)
            if np.nanmax(np.abs(step)) < BETA_TOL:
                break
        a, b = expit(t) * precision, expit(-t) * precision
        return np.asarray(xlogy(a - 1.0, y) + xlog1py(b - 1.0, -y) - betaln(a, b))


def _trigamma(x: Array) -> Array:
    """Return the slope of digamma by differences: scipy's polygamma takes five times as long."""
    return (digamma(1.0001 * x) - digamma(0.9999 * x)) / (0.0002 * x)


def highest(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the largest values of functions with one peak each, by golden sections.

    Parameters
    ----------
    function : callable
        Takes an array of the shape of `low` and returns one.
    low, high : ndarray
        Bounds within which the peaks lie.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.models.saturation import highest
    >>> peaks = np.array([1.0, 2.5])
    >>> highest(lambda t: peaks - (t - peaks) ** 2, np.zeros(2), np.full(2, 9.0)).round(6)
    array([1. , 2.5])
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(GOLDEN_STEPS):
        up = at_right > at_left
        low, high = np.where(up, left, low), np.where(up, high, right)
        new = np.where(up, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
        at_new = function(new)
        left, right = np.where(up, right, new), np.where(up, new, left)
        at_left, at_right = np.where(up, at_right, at_new), np.where(up, at_new, at_left)
    return np.maximum(at_left, at_right)
