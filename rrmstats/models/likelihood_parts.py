"""Statsmodels' likelihood models as the losses know them: functions of one flat vector."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
from statsmodels.discrete.count_model import (
    ZeroInflatedGeneralizedPoisson,
)
from statsmodels.discrete.discrete_model import (
    BinaryModel,
    GeneralizedPoisson,
    Logit,
    MNLogit,
    NegativeBinomial,
    Probit,
)
from statsmodels.miscmodels.ordinal_model import OrderedModel

from rrmstats.core.entropy import Array
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood_laws import ClosedLaw, Likelihood, own_fit
from rrmstats.models.closed_forms import (
    added_offset,
    closed_form,
    lower_bounds,
    ordered_scores,
    rough_start,
)
from rrmstats.models.response_laws import CLASSES, kinds_of, law_of
from rrmstats.models.saturation import largest_of

GENERALIZED = (GeneralizedPoisson, ZeroInflatedGeneralizedPoisson)
# Difference of a function from what it must equal, relative to its size, that is no rounding.
DIFFERENT = 1e-3
# Difference of two ways to compute a likelihood that rounding may make.
SAME = 1e-5
# Accuracy of the fit to start from: statsmodels' own tolerances are left as they are.
PILOT_STEPS = 500
# Fits that are tried until one converges; the best serves where none does.
OPTIMIZERS: tuple[dict[str, Any], ...] = (
    *({}, {"method": "newton"}, {"method": "bfgs"}, {"method": "nm"}),
)


class ModelFunctions:
    """The likelihood of a statsmodels model as functions of a flat vector.

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
        self.model = model
        self._columns = int(model.J) - 1 if isinstance(model, MNLogit) else None
        # Its scores are complex steps of its likelihood, ten times as slow as differences.
        self.slow_scores = isinstance(model, NegativeBinomial)

    def shaped(self, theta: Array) -> Array:
        """Return parameters in the shape that the model takes."""
        if self._columns is None or theta.ndim == 2:
            return theta
        return theta.reshape(-1, self._columns, order="F")

    def log_likelihood(self, theta: Array) -> Array:
        """Return the log-likelihoods of the rows, shape (n,)."""
        with quiet():
            found = np.asarray(self.model.loglikeobs(self.shaped(theta)), dtype=float)
            found = found.sum(axis=1) if found.ndim == 2 else found
            if isinstance(self.model, GENERALIZED):
                found = np.where(self._in_domain(theta), found, -np.inf)
        return found

    def _in_domain(self, theta: Array) -> np.ndarray:
        """Tell which counts a generalized Poisson distribution has; statsmodels clips others."""
        main = getattr(self.model, "model_main", self.model)
        options = {} if main is self.model else {"which": "mean-main"}
        mean = np.asarray(self.model.predict(theta, **options), dtype=float)
        spread = theta[-1] * mean ** float(main.parameterization)
        return (1.0 + spread > 0) & (mean + spread * self.model.endog > 0)

    def scores(self, theta: Array) -> Array:
        """Return the scores of the rows, shape (n, k)."""
        with quiet():
            return np.asarray(self.model.score_obs(self.shaped(theta)), dtype=float)

    def hessian(self, theta: Array, weights: Array) -> Array:
        """Return the weighted sum of the Hessians of the rows, shape (k, k)."""
        with quiet():
            factor = np.asarray(self.model.hessian_factor(theta), dtype=float)
        used, exog = weights > 0, np.asarray(self.model.exog, dtype=float)
        return exog[used].T @ ((weights * factor)[used, None] * exog[used])

    def predict(self, theta: Array) -> Array:
        """Return the predictions of the rows; probabilities of the classes where it has them."""
        with quiet():
            return np.asarray(self.model.predict(self.shaped(theta)), dtype=float)


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
    theta: Array = np.empty(0)
    best = -np.inf
    for found, converged in _own_fits(model, form):
        value = -np.inf
        if found.size:
            found = np.maximum(found, lower_bounds(model, len(found)))
            with quiet():
                value = float(np.sum(log_likelihood(found)))
        if value > best:
            theta, best = found, value
        if converged and np.isfinite(best):
            break
    if not theta.size:
        theta = np.atleast_1d(np.asarray(getattr(model, "start_params", np.nan), dtype=float))
        theta = theta.ravel(order="F")
    if not (theta.ndim == 1 and theta.size and np.isfinite(theta).all()):
        raise ValueError(
            f"{type(model).__name__}.fit() found no finite parameters to start from; set "
            "start_params on the model"
        )
    check_log_likelihood(type(model).__name__, log_likelihood(theta), len(model.endog))
    return theta


def _own_fits(model: Any, form: ClosedLaw | None) -> Iterator[tuple[Array, bool]]:
    """Yield fits, and whether each says that it converged: then no other is needed."""
    if form is not None:
        # At the end of its range, such as an overdispersion of zero, statsmodels may find nothing.
        start = rough_start(form)
        yield own_fit(form, start, lower_bounds(model, len(start))), False
    for options in OPTIMIZERS:
        yield _own_fit(model, options)


def _own_fit(model: Any, options: dict[str, Any]) -> tuple[Array, bool]:
    """Return the parameters of a fit, none where it failed, and whether it says it converged."""
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        try:
            found = detached(model).fit(disp=0, maxiter=PILOT_STEPS, **options)
            theta = np.asarray(found.params, dtype=float).ravel(order="F")
        except Exception:  # statsmodels raises many kinds of errors where a fit fails
            return np.empty(0), False
    kept = getattr(found, "mle_retvals", None) or {}
    return theta, bool(kept.get("converged", True))


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


def is_logistic(model: Any) -> bool:
    """Tell whether a model is statsmodels' logistic regression of labels 0 and 1."""
    return type(model) is Logit and bool(np.isin(model.endog, (0.0, 1.0)).all())


def likelihood_of(
    model: Any, theta: Array, aside: Array, saturated: Callable[[Array], Array] | None
) -> Likelihood:
    """Return the likelihood of a statsmodels model.

    Parameters
    ----------
    model : statsmodels model
    theta : ndarray, shape (k,)
        Parameters to start from.
    aside : ndarray, shape (k,)
        Parameters whose dispersion the largest log-likelihoods have.
    saturated : callable or None
        Largest log-likelihoods that a user gave.
    """
    functions = ModelFunctions(model)
    closed = checked_form(functions)
    own_scores = _checked_scores(functions, theta) if closed is None else closed.scores
    largest = saturated if saturated is not None else largest_of(model, aside)
    endog = np.asarray(model.endog, dtype=float)

    return Likelihood(
        n_obs=len(endog),
        start=theta,
        log_likelihood=functions.log_likelihood if closed is None else closed.log_likelihood,
        scores=own_scores,
        hessian=None if own_scores is None else _checked_hessian(functions, theta),
        largest=largest,
        lower=lower_bounds(model, len(theta)),
        endog=endog,
        law=law_of(model, functions, theta) if closed is None else closed,
        classes=isinstance(model, (*CLASSES, BinaryModel)),
        logit=np.asarray(model.exog, float) if is_logistic(model) else None,
        offset=added_offset(model),
        kinds=kinds_of(model, endog),
        closed=closed,
        part=None if saturated is not None else partial(_part_likelihood, functions, theta, aside),
    )


def _part_likelihood(
    functions: ModelFunctions, theta: Array, aside: Array, rows: np.ndarray
) -> Likelihood | None:
    """Return the likelihood of some rows; None where it cannot be built from arrays alone."""
    some = part_of(functions.model, rows, functions, theta)
    return None if some is None else likelihood_of(some, theta, aside, None)


def part_of(model: Any, rows: np.ndarray, functions: ModelFunctions, theta: Array) -> Any:
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
    same = values.shape == rows.shape and np.allclose(
        values, functions.log_likelihood(theta)[rows], rtol=1e-9
    )
    return some if same else None


def checked_form(functions: ModelFunctions) -> ClosedLaw | None:
    """Return the closed form of a likelihood where it is the model's."""
    found = closed_form(functions.model)
    if found is None:
        return None
    theta = rough_start(found)
    values, wanted = found.log_likelihood(theta), functions.log_likelihood(theta)
    same = values.shape == wanted.shape and np.allclose(values, wanted, rtol=SAME, atol=SAME)
    return found if same else None


def _checked_scores(functions: ModelFunctions, theta: Array) -> Callable[[Array], Array] | None:
    """Return the scores of a model where they are its own and right."""
    at = theta + 1e-3 * np.maximum(np.abs(theta), 0.1)
    if isinstance(functions.model, OrderedModel):
        ordered = partial(ordered_scores, functions.model)
        return ordered if _agree(functions, at, ordered) else None
    if functions.slow_scores or not hasattr(functions.model, "score_obs"):
        return None
    probe = copy.copy(functions.model)
    probe.loglikeobs = _differenced  # scores that are differences of it are better taken here
    try:
        ModelFunctions(probe).scores(at)
    except (NotImplementedError, AttributeError, TypeError, ValueError, IndexError):
        return None
    return functions.scores if _agree(functions, at, functions.scores) else None


def _differenced(*args: object, **kwargs: object) -> NoReturn:
    """Refuse to be differenced."""
    raise NotImplementedError


def _agree(functions: ModelFunctions, at: Array, scores: Callable[[Array], Array]) -> bool:
    """Tell whether scores are the derivatives of the log-likelihoods."""
    found = scores(at)
    wanted = differences(functions.log_likelihood, at, np.maximum(np.abs(at), 0.1)).T
    if found.shape != wanted.shape:
        return False
    return bool(np.allclose(found, wanted, rtol=DIFFERENT, atol=DIFFERENT * np.abs(wanted).max()))


def _checked_hessian(
    functions: ModelFunctions, theta: Array
) -> Callable[[Array, Array], Array] | None:
    """Return the Hessians of a model of one linear predictor, where its factors are right."""
    model = functions.model
    if isinstance(model, Probit):  # its factors are 0 / 0 at rows eight deviations away
        return None
    if not hasattr(model, "hessian_factor") or np.ndim(model.exog) != 2:
        return None
    if model.exog.shape[1] != len(theta):
        return None
    weights = np.linspace(0.5, 1.5, len(model.endog))
    try:
        found = functions.hessian(theta, weights)
    except (NotImplementedError, AttributeError, TypeError, ValueError, IndexError):
        return None
    unit = np.maximum(np.abs(theta), 0.1)
    wanted = differences(lambda t: weights @ functions.scores(t), theta, unit)
    near = np.allclose(found, wanted, rtol=DIFFERENT, atol=DIFFERENT * np.abs(wanted).max())
    return functions.hessian if near else None
