"""Statsmodels' likelihood models as the losses know them: functions of one flat vector.

Those whose likelihoods have closed forms, the largest log-likelihood that a response could have,
and the distributions of responses: `get_distribution`, or predicted classes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logit
from statsmodels.discrete.count_model import GenericZeroInflated
from statsmodels.discrete.discrete_model import (
    BinaryModel,
    CountModel,
    GeneralizedPoisson,
    Logit,
    MNLogit,
    NegativeBinomial,
    NegativeBinomialP,
    Poisson,
    Probit,
)
from statsmodels.genmod.families import links
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import MAX_STEPS, ROUNDING
from rrmstats.laws.families import NegativeBinomial as NegativeBinomialFamily
from rrmstats.laws.families import Poisson as PoissonFamily
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood_laws import (
    BetaKernel,
    CountKernel,
    GeneralizedPoissonKernel,
    Kernel,
    LabelKernel,
    Likelihood,
    NegativeBinomialKernel,
    PredictorLikelihood,
    RowLikelihood,
    ZeroInflatedKernel,
    counts_worth_a_term,
    log_mean_kernel,
    own_fit,
    probability_nodes,
)

#: Largest log-likelihoods of responses (..., n).
Largest = Callable[[Array], Array]

# Methods of fits that are tried until one converges; the best serves where none does.
OPTIMIZERS: tuple[dict[str, str], ...] = (
    *({}, {"method": "newton"}, {"method": "bfgs"}, {"method": "nm"}),
)
# What statsmodels' methods raise where a model does not have them.
MISSING = (NotImplementedError, AttributeError, TypeError, ValueError, IndexError)
# Overdispersion below which a negative binomial likelihood is that of counts, up to rounding.
LEAST_ALPHA = 1e-6
# Variances of statsmodels' negative binomial models: mu + alpha mu^power.
POWERS = {"nb2": 2.0, "nb1": 1.0, "geometric": 2.0}
# Models whose predictions are the probabilities of classes, numbered from zero.
CLASSES = (MNLogit, OrderedModel)


class ModelFunctions(RowLikelihood):
    """The likelihood of a statsmodels model as functions of a flat vector.

    With the distribution of its responses: classes with the probabilities that it predicts, or
    the frozen distributions of scipy that its `get_distribution` returns.

    Parameters
    ----------
    model : statsmodels model
        With `loglikeobs`.
    """

    def __init__(self, model: Any) -> None:
        if getattr(model, "_transparams", False):
            # A model of overdispersion that was not fitted yet takes its logarithm.
            model = copy.copy(model)
            model._transparams = False
        self.model, self.endog = model, np.asarray(model.endog, dtype=float)

    def shaped(self, theta: Array) -> Array:
        """Return parameters in the shape that the model takes."""
        if not isinstance(self.model, MNLogit) or theta.ndim == 2:
            return theta
        return theta.reshape(-1, int(self.model.J) - 1, order="F")

    def log_likelihood(self, theta: Array) -> Array:
        """Return the log-likelihoods of the rows, shape (n,)."""
        with quiet():
            found = np.asarray(self.model.loglikeobs(self.shaped(theta)), dtype=float)
        return found.sum(axis=1) if found.ndim == 2 else found

    def scores(self, theta: Array) -> Array:
        """Return the scores of the rows, shape (n, k)."""
        if isinstance(self.model, OrderedModel):
            return ordered_scores(self.model, theta)
        with quiet():
            return np.asarray(self.model.score_obs(self.shaped(theta)), dtype=float)

    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-densities or log-probabilities of responses, shape (m, n)."""
        with quiet():
            if isinstance(self.model, CLASSES):
                chances = np.asarray(self.model.predict(self.shaped(theta)), dtype=float)
                return np.log(chances[np.arange(len(chances)), np.asarray(y, dtype=int)])
            law = self.model.get_distribution(self.shaped(theta))
            return np.asarray(law.logpmf(y) if is_discrete(law) else law.logpdf(y), dtype=float)

    def slopes(self, theta: Array, y: Array, unit: Array) -> Array:
        """Return the derivatives of the log-densities, shape (k, m, n)."""
        return differences(lambda at: self.log_density(at, y), theta, unit)

    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return responses, and logarithms of what their densities count."""
        with quiet():
            if isinstance(self.model, CLASSES):
                n_classes = np.shape(self.model.predict(self.shaped(theta)))[1]
                return np.arange(float(n_classes))[:, None], np.zeros((n_classes, 1))
            law, rows = self.model.get_distribution(self.shaped(theta)), np.ones(len(self.endog))
            if is_discrete(law):
                return counts_worth_a_term(law.mean() * rows, law.var() * rows, law.logpmf)
            at, weight = probability_nodes()
            y = np.asarray(law.ppf(at[:, None] * rows), dtype=float)
            return y, np.log(weight)[:, None] - law.logpdf(y)


def quiet() -> Any:
    """Return a context without numpy's warnings: a search tries parameters at any distance."""
    return np.errstate(all="ignore")


def pilot(model: Any) -> Array:
    """Return the model's own fit as a flat vector; its starting values where it has none.

    The fit is of a copy, so that nothing is written on the model.
    """
    functions = ModelFunctions(model)
    form = checked_form(functions)
    log_likelihood = functions.log_likelihood if form is None else form.log_likelihood
    theta, best = None, -np.inf
    for found, converged in _own_fits(model, form):
        found = np.maximum(found, lower_bounds(model, len(found)))
        value = float(np.sum(log_likelihood(found)))
        if value > best:
            theta, best = found, value
        if converged and np.isfinite(best):
            break
    if theta is None:
        theta = np.asarray(getattr(model, "start_params", np.nan), dtype=float).ravel(order="F")
    if not (theta.size and np.isfinite(theta).all()):
        raise ValueError(
            f"{type(model).__name__}.fit() found no finite parameters to start from; set "
            "start_params on the model"
        )
    check_log_likelihood(type(model).__name__, log_likelihood(theta), len(model.endog))
    return theta


def _own_fits(model: Any, form: PredictorLikelihood | None) -> Iterator[tuple[Array, bool]]:
    """Yield fits, and whether each says that it converged: then no other is needed."""
    if form is not None:
        # At the end of its range, such as an overdispersion of zero, statsmodels may find nothing.
        start = rough_start(form)
        yield own_fit(form, start, lower_bounds(model, len(start))), False
    for options in OPTIMIZERS:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")
            try:
                found = detached(model).fit(disp=0, maxiter=500, **options)
                theta = np.asarray(found.params, dtype=float).ravel(order="F")
            except Exception:  # statsmodels raises many kinds of errors where a fit fails
                continue
        kept = getattr(found, "mle_retvals", None) or {}
        yield theta, bool(kept.get("converged", True))


def detached(model: Any) -> Any:
    """Return a copy of a model whose fit leaves the names of the model's parameters alone."""
    own, data = copy.copy(model), object.__new__(type(model.data))
    vars(data).update(vars(model.data))
    if isinstance(getattr(data, "xnames", None), list):
        data.xnames = list(data.xnames)
    own.data = data
    return own


def check_log_likelihood(name: str, values: Array, n: int) -> None:
    """Raise where there is not one finite log-likelihood per row."""
    if values.shape != (n,):
        raise ValueError(
            f"{name}.loglikeobs must return one number for each of the {n} rows, got shape "
            f"{values.shape}"
        )
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(
            f"{name}.loglikeobs is NaN or infinite in {int(bad.sum())} rows at the model's own "
            f"fit, such as row {int(np.flatnonzero(bad)[0])}; fix or drop these rows"
        )


def parameter_names(model: Any, k: int) -> list[str]:
    """Return the names of k parameters, those that the model lacks numbered."""
    if isinstance(model, MNLogit):
        levels = [str(level) for level in list(model._ynames_map.values())[1:]]
        return [f"{level}: {name}" for level in levels for name in model.exog_names]
    names = [str(name) for name in (getattr(model.data, "param_names", None) or [])][:k]
    return names + [f"par{i}" for i in range(k - len(names))]


def likelihood_of(model: Any, theta: Array, aside: Array, saturated: Array | None) -> Likelihood:
    """Return the likelihood of a statsmodels model.

    Parameters
    ----------
    model : statsmodels model
    theta : ndarray, shape (k,)
        Parameters to start from.
    aside : ndarray, shape (k,)
        Parameters whose dispersion the largest log-likelihoods have.
    saturated : ndarray, shape (n,), or None
        Largest log-likelihoods that a user gave.
    """
    functions = ModelFunctions(model)
    closed = checked_form(functions)
    rows = functions if closed is None else closed
    given = None if saturated is None else partial(_repeated, saturated)
    return Likelihood(
        rows=rows,
        start=theta,
        largest=given or largest_of(model, aside),
        lower=lower_bounds(model, len(theta)),
        scored=closed is not None or has_scores(functions, theta),
        known=closed is not None or has_law(functions, theta),
        classes=isinstance(model, (*CLASSES, BinaryModel)),
        kinds=kinds_of(model, rows.endog),
        part=partial(_part_likelihood, model, theta, aside, saturated),
    )


def _repeated(values: Array, y: Array) -> Array:
    """Return values of the rows whatever their responses are."""
    return values


def _part_likelihood(
    model: Any, theta: Array, aside: Array, saturated: Array | None, rows: np.ndarray
) -> Likelihood | None:
    """Return the likelihood of some rows; None where it cannot be built from arrays alone."""
    some = part_of(model, rows, theta)
    if some is None:
        return None
    return likelihood_of(some, theta, aside, None if saturated is None else saturated[rows])


def part_of(model: Any, rows: np.ndarray, theta: Array) -> Any:
    """Return the model of some rows; None where it cannot be built from arrays alone."""
    n = len(model.endog)

    def taken(value: Any) -> Any:
        whole = isinstance(value, np.ndarray) and value.ndim and len(value) == n
        return value[rows] if whole else value

    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        try:
            options = {key: taken(value) for key, value in model._get_init_kwds().items()}
            some = type(model)(taken(model.endog), taken(model.exog), **options)
            values = ModelFunctions(some).log_likelihood(theta)
        except Exception:  # a constructor of anyone's: the whole serves where it fails
            return None
    return some if agree(values, ModelFunctions(model).log_likelihood(theta)[rows], 1e-9) else None


def agree(found: Array, wanted: Array, tol: float) -> bool:
    """Tell whether two computations of the same numbers agree."""
    least = tol * min(1.0, float(np.abs(wanted).max(initial=0.0)))
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=tol, atol=least)


def checked_form(functions: ModelFunctions) -> PredictorLikelihood | None:
    """Return the closed form of a likelihood where it is the model's."""
    found = closed_form(functions.model)
    if found is None:
        return None
    theta = rough_start(found)
    same = agree(found.log_likelihood(theta), functions.log_likelihood(theta), 1e-5)
    return found if same else None


def has_scores(functions: ModelFunctions, theta: Array) -> bool:
    """Tell whether a model has scores, and they are right."""
    unit = np.maximum(np.abs(theta), 0.1)
    at = theta + 1e-3 * unit
    try:
        found = functions.scores(at)
    except MISSING:
        return False
    return agree(found, differences(functions.log_likelihood, at, unit).T, 1e-3)


def has_law(functions: ModelFunctions, theta: Array) -> bool:
    """Tell whether a model has a distribution of the response of each row.

    It must give the responses of the data the likelihood that the model gives them.
    """
    try:
        found = functions.log_density(theta, functions.endog[None])
    except MISSING:
        return False
    return agree(found, functions.log_likelihood(theta)[None], 1e-6)


def closed_form(model: Any) -> PredictorLikelihood | None:
    """Return the likelihood of a model in closed form; None where there is none."""
    endog = np.asarray(model.endog, dtype=float)
    zero = np.zeros(len(endog))
    if isinstance(model, BetaModel):
        if type(model.link) is not links.Logit or type(model.link_precision) is not links.Log:
            return None
        both = (np.asarray(model.exog, float), np.asarray(model.exog_precision, float))
        return PredictorLikelihood(BetaKernel(), endog, both, (zero, zero))
    if isinstance(model, (Logit, Probit)):
        if not np.isin(endog, (0.0, 1.0)).all():
            return None
        kernel, exog = LabelKernel(isinstance(model, Probit)), np.asarray(model.exog, float)
        return PredictorLikelihood(kernel, endog, (exog,), (zero + added_offset(model),))
    main = main_of(model)
    counted = _count_kernel(main)
    if counted is None:
        return None
    designs: list[Array] = [np.asarray(main.exog, dtype=float)]
    offsets = [zero + added_offset(main)]
    if has_alpha(main):
        designs.append(np.ones((len(endog), 1)))
        offsets.append(zero)
    if main is not model:
        counted = ZeroInflatedKernel(counted, model.inflation == "probit")
        designs.insert(0, np.asarray(model.exog_infl, dtype=float))
        offsets.insert(0, zero)
    return PredictorLikelihood(counted, endog, tuple(designs), tuple(offsets))


def rough_start(form: PredictorLikelihood) -> Array:
    """Return parameters whose predictors are about those of the responses, shape (k,)."""
    y, kernel, alpha = form.endog, form.kernel, 0.1
    wanted: list[Any] = [np.log(y + 0.5), alpha]
    if isinstance(kernel, BetaKernel):
        wanted = [logit(np.clip(y, alpha, 1.0 - alpha)), 2.0]
    elif isinstance(kernel, LabelKernel):
        wanted = [2.0 * y - 1.0]
    elif isinstance(kernel, ZeroInflatedKernel):
        wanted.insert(0, -1.0)
    parts = [
        np.linalg.lstsq(design, aim - offset, rcond=None)[0]
        for design, offset, aim in zip(form.designs, form.offsets, wanted, strict=False)
    ]
    start = np.concatenate(parts)
    if isinstance(kernel, LabelKernel):
        # Short enough that statsmodels' probabilities of labels are all above its least one.
        start = start / max(1.0, float(np.abs(form.predictors(start)[0]).max()))
    return start


def lower_bounds(model: Any, k: int) -> Array:
    """Return the least values of k parameters."""
    least = np.full(k, -np.inf)
    main = main_of(model)
    if isinstance(main, (NegativeBinomial, NegativeBinomialP)) and has_alpha(main):
        least[-1] = LEAST_ALPHA
    if main is not model and model.exog_infl.shape[1] == 1 and (model.exog_infl == 1).all():
        # A share of added zeros of about 1e-9, which is none.
        least[0] = -6.0 if model.inflation == "probit" else -20.0
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
        return log_mean_kernel(PoissonFamily())
    if isinstance(main, (NegativeBinomial, NegativeBinomialP)):
        if not has_alpha(main):
            return log_mean_kernel(NegativeBinomialFamily(1.0))
        return NegativeBinomialKernel(variance_power(main))
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
    if isinstance(model, (BinaryModel, *CLASSES)):
        return np.zeros_like  # a class may have probability one
    if isinstance(model, BetaModel):
        precision = np.asarray(model.predict(theta, which="precision"), dtype=float)
        return partial(largest_share, log_precision=np.log(precision))
    kernel = _count_kernel(main_of(model))
    alpha = (np.asarray(theta[-1]),) if has_alpha(main_of(model)) else ()
    return None if kernel is None else partial(largest_count, kernel=kernel, alpha=alpha)


def depends_on_dispersion(model: Any) -> bool:
    """Tell whether the largest log-likelihoods depend on parameters that are estimated."""
    return isinstance(model, BetaModel) or has_alpha(main_of(model))


def main_of(model: Any) -> Any:
    """Return the model of the counts that are no added zeros."""
    return model.model_main if isinstance(model, GenericZeroInflated) else model


def largest_count(y: Array, kernel: CountKernel, alpha: tuple[Array, ...]) -> Array:
    """Return the largest log-probabilities over the means, found once for each count.

    Zeros alone may have probability one.
    """
    counts, place = np.unique(y, return_inverse=True)
    found, some = np.zeros(len(counts)), counts > 0
    found[some] = highest(kernel, counts[some], np.log(counts[some]), *alpha)
    return found[place].reshape(np.shape(y))


def largest_share(y: Array, log_precision: Array) -> Array:
    """Return the largest log-densities of shares over the means of a beta distribution."""
    with np.errstate(all="ignore"):
        start = np.clip(logit(y), -5.0, 5.0)  # shares at the ends have means that are not
    return highest(BetaKernel(), y, start, log_precision)


def highest(kernel: Kernel, y: Array, start: Array, *rest: Array) -> Array:
    """Return the largest log-densities of responses over the first predictor.

    By Newton's method, from a start near them.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.families import Poisson
    >>> from rrmstats.losses.likelihood_laws import log_mean_kernel
    >>> from rrmstats.models.likelihood_parts import highest
    >>> np.exp(highest(log_mean_kernel(Poisson()), np.array([1.0, 2.0]), np.zeros(2))).round(6)
    array([0.367879, 0.270671])
    """
    at = start

    def slope(at: Array) -> Array:
        return kernel.slopes(y, at, *rest)[0]

    with np.errstate(all="ignore"):
        for _ in range(MAX_STEPS):
            bend = (slope(at + 1e-4) - slope(at - 1e-4)) / 2e-4
            step = np.clip(slope(at) / np.abs(bend), -1.0, 1.0)
            step = np.where(np.isfinite(step), step, 0.0)
            at = at + step
            if np.abs(step).max(initial=0.0) < ROUNDING:
                break
        return kernel.log_density(y, at, *rest)


def is_discrete(law: Any) -> bool:
    """Tell whether a frozen distribution is one of whole numbers."""
    return hasattr(law, "logpmf") and not hasattr(getattr(law, "dist", law), "logpdf")


def kinds_of(model: Any, endog: Array) -> tuple[np.ndarray, ...]:
    """Return the kinds of rows of which a fit must keep some: classes, and counts above zero."""
    if isinstance(model, CountModel):
        return (endog > 0,) if (endog > 0).any() else ()
    if isinstance(model, (*CLASSES, BinaryModel)):
        levels = np.unique(endog)
        return tuple(endog == level for level in levels) if len(levels) <= 20 else ()
    return ()
