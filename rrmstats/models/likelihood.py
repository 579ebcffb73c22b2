"""Any statsmodels model with a likelihood per row, by robust risk minimization.

The losses know such a model as functions of one flat vector: in closed form where there is one,
with the largest log-likelihood that a response could have, and with the distribution of
responses: `get_distribution`, or predicted classes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from statsmodels.base.model import Results
from statsmodels.base.wrapper import ResultsWrapper
from statsmodels.discrete import discrete_model as discrete
from statsmodels.discrete.count_model import GenericZeroInflated
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.genmod.families import links
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel
from statsmodels.regression.linear_model import RegressionModel
from statsmodels.tsa.base.tsa_model import TimeSeriesModel

from rrmstats.core.entropy import Array
from rrmstats.core.newton import damped_newton
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.core.tolerances import MAX_STEPS
from rrmstats.interchange import as_values
from rrmstats.laws import families
from rrmstats.losses import likelihood_laws as laws
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.likelihood import LikelihoodProblem
from rrmstats.models import checks
from rrmstats.models.base import RRMModel, same_signature
from rrmstats.models.removal import rebuilt
from rrmstats.results.likelihood import RRMLikelihoodResults

if TYPE_CHECKING:
    from typing_extensions import Self

#: Largest log-likelihoods of responses (..., n).
Largest = Callable[[Array], Array]

# Methods of fits that are tried until one converges; the best serves where none does.
OPTIMIZERS = (None, "newton", "bfgs", "nm")
# What statsmodels' methods raise where a model does not have them.
MISSING = (NotImplementedError, AttributeError, TypeError, ValueError, IndexError)
# Overdispersion below which a negative binomial likelihood is that of counts, up to rounding.
LEAST_ALPHA = 1e-6
# Models whose predictions are the probabilities of classes, numbered from zero.
CLASSES = (discrete.MNLogit, OrderedModel)


class RRMLikelihood(RRMModel[LikelihoodProblem, RRMLikelihoodResults]):
    """A statsmodels model with a likelihood per row, when some of the rows may be bad.

    The loss of a row is minus its log-likelihood, above the largest that it could have where that
    is known. See `rrmstats.robustify` for the parameters.

    Attributes
    ----------
    model : statsmodels model
        The model that was given; nothing is written on it.
    start : ndarray, shape (k,)
        Its own fit.

    Examples
    --------
    >>> import numpy as np, rrmstats, statsmodels.api as sm
    >>> rng = np.random.default_rng(0)
    >>> exog = sm.add_constant(rng.standard_normal(100))
    >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
    >>> model = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1)
    >>> model
    <RRMLikelihood: 100 observations, model Poisson, 2 parameters, eps_bar=0.1>
    >>> model.fit().params.round(1)
    array([1. , 0.6])
    """

    _results_class = RRMLikelihoodResults
    _refusals: ClassVar[dict[str, str]] = {
        "from_formula": "make the model by its own from_formula, and give it to rrmstats.robustify"
    }
    _row_arrays = (*RRMModel._row_arrays, "saturated")

    def __init__(
        self,
        model: Any,
        eps_bar: float | str = "auto",
        *,
        freq_weights: ArrayLike | None = None,
        saturated: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        eps_bar_max: float = checks.EPS_BAR_MAX,
    ) -> None:
        checks.checked_bound(eps_bar)
        check_likelihood(model)
        self.model, self.endog = model, np.asarray(model.endog)
        self._init_keys, self._data_attr = ["saturated"], []
        given = {"freq_weights": freq_weights, "saturated": saturated}
        rows = {
            name: checks.per_row(name, as_values(values), len(self.endog))
            for name, values in given.items()
        }
        self.freq_weights, self.saturated = rows.values()
        self._set_options(eps_bar, eps_bar_max, groups, **rows)
        self.start = pilot(model)
        self.data = detached(model).data
        self.data.param_names = parameter_names(model, len(self.start))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.model, name)

    def _traits(self) -> list[str]:
        return [f"model {self.kind}", *super()._traits()]

    @property
    def kind(self) -> str:
        """Name of the class of the model that was given."""
        return type(self.model).__name__

    def predict(self, params: ArrayLike, *args: Any, **kwargs: Any) -> Any:
        """Return what the model predicts at parameters, flat as those of the results.

        Examples
        --------
        >>> import numpy as np, rrmstats, statsmodels.api as sm
        >>> rng = np.random.default_rng(0)
        >>> exog = sm.add_constant(rng.standard_normal(100))
        >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
        >>> model = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1)
        >>> model.predict([1.0, 0.5], exog[:1]).round(2)
        array([2.89])
        """
        return self.model.predict(self.shaped(params), *args, **kwargs)

    def shaped(self, params: ArrayLike) -> Array:
        """Return flat parameters in the shape that the model takes."""
        return ModelFunctions(self.model).shaped(np.asarray(params, dtype=float))

    def fitted_copy(self) -> Any:
        """Return a copy of the model that names its parameters as after a fit of its own."""
        own = ModelFunctions(detached(self.model)).model
        if isinstance(getattr(own.data, "xnames", None), list) and not isinstance(
            own, discrete.MNLogit
        ):
            own.data.xnames = self.exog_names
        return own

    def problem(self) -> LikelihoodProblem:
        """Return minus the log-likelihoods, above the largest that they could have."""
        first = self._problem_aside(self.start)
        bound = self.eps_bar_max if self.eps_bar == checks.AUTO else self._bound
        if bound == 0 or self.saturated is not None or not depends_on_dispersion(self.model):
            return first
        # The model's own dispersion is that of all rows: the largest log-likelihoods are to have
        # that of the good ones.
        rough: Any = {"n_starts": 20, "tol": 1e-4, "maxiter": 50}
        setting = Setting(eps_bar=bound, freq_weights=self.freq_weights, **rough)
        return self._problem_aside(take_steps(first, setting, steps=1).params)

    def _problem_aside(self, aside: Array) -> LikelihoodProblem:
        return LikelihoodProblem(likelihood_of(self.model, self.start, aside, self.saturated))

    @cached_property
    def incomparable(self) -> str:  # type: ignore[override]  # found when it is asked for
        """Why fits with different bounds cannot be compared; empty where they can."""
        likelihood = self._problem_aside(self.start).likelihood
        labels = likelihood.classes and not likelihood.logistic
        if likelihood.known and not labels:
            return ""
        return (
            f"it needs a second step, which {self.kind} does not have; that takes the "
            "distribution of a response that is not a label, get_distribution"
        )

    @same_signature(RRMModel.fit)
    def fit(self, **kwargs: Any) -> RRMLikelihoodResults:
        """Minimize the robust risk over parameters and weights together.

        Parameters
        ----------
        steps, n_starts, start_params, rng, tol, maxiter, accelerate : optional
            As `RRMOLS.fit` takes them.
        cov_type, cov_kwds, use_t, stability : optional
            As `RRMOLS.fit` takes them.

        Returns
        -------
        RRMLikelihoodResults

        Examples
        --------
        >>> import numpy as np, rrmstats, statsmodels.api as sm
        >>> rng = np.random.default_rng(0)
        >>> exog = sm.add_constant(rng.standard_normal(100))
        >>> count = rng.poisson(np.exp(exog @ [1.0, 0.5]))
        >>> res = rrmstats.robustify(sm.Poisson(count, exog), eps_bar=0.1).fit()
        >>> res.converged
        True
        """
        try:
            with np.errstate(over="ignore"):
                return super().fit(**kwargs)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"{self.kind} has no finite fit here: its parameters diverge, as they do where "
                "predictors separate the classes of the rows with weight; drop such predictors, "
                "merge classes or use a smaller eps_bar"
            ) from None

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model of some rows."""
        some = part_of(self.model, rows, self.start)
        if some is None:
            raise NotImplementedError(
                f"{self.kind} has {len(self.endog)} rows and cannot be built from a sample of "
                "them, which eps_bar='auto' and stability need; give eps_bar= and stability=False"
            )
        part = super()._part(rows)
        part.model = some
        return part


@same_signature(RRMLikelihood)
def robustify(*args: Any, **kwargs: Any) -> RRMLikelihood:
    """Return a statsmodels model that gives bad rows little weight; call its `fit`.

    Parameters
    ----------
    model : statsmodels model
        An instance with `loglikeobs`: `Poisson`, `NegativeBinomial`, `GeneralizedPoisson`,
        `Probit`, `MNLogit`, `OrderedModel`, `BetaModel`, zero-inflated counts, a
        `GenericLikelihoodModel` of your own, and others.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is the model's own fit. By default it
        is chosen from the data: the share of bad rows that is found, and a margin.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    saturated : array_like, shape (n,), optional
        Largest log-likelihood that each row could have; known for statsmodels' models of counts,
        classes and shares.
    groups : array_like, shape (n,), optional
        Labels of groups of rows that are bad as a whole: each has one weight.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.

    Returns
    -------
    RRMLikelihood

    Examples
    --------
    >>> import numpy as np, rrmstats, statsmodels.api as sm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(200)
    >>> count = rng.poisson(rng.gamma(2.0, np.exp(1 + 0.5 * x) / 2.0))
    >>> count[:10] = 300
    >>> model = sm.NegativeBinomial(count, sm.add_constant(x))
    >>> res = rrmstats.robustify(model, eps_bar=0.1).fit()
    >>> int(res.outliers()[:10].sum()), len(res.params)
    (10, 3)
    """
    return RRMLikelihood(*args, **kwargs)


def check_likelihood(model: Any) -> None:
    """Raise where something is not an instance of a model with a likelihood per row."""
    name = type(model).__name__
    if isinstance(model, type):
        raise TypeError(
            f"robustify takes an instance of a model, got the class {model.__name__}; give "
            f"{model.__name__}(endog, exog)"
        )
    needed = (
        "robustify needs a model with loglikeobs(params), the log-likelihood of each row, and "
        f"{name} has none"
    )
    refused: dict[Any, str] = {
        Results: f"robustify takes a model, got the results {name}; give their .model",
        ResultsWrapper: f"robustify takes a model, got the results {name}; give their .model",
        RRMModel: f"{name} is robust already; call its fit()",
        PHReg: (
            "PHReg has a partial likelihood, in which each event is compared with all rows at "
            "risk: it is not a sum over rows, and a row cannot be weighted out of it"
        ),
        TimeSeriesModel: (
            f"the likelihood of {name} in each row is given all earlier rows: a bad row "
            "spoils those after it, and weights cannot leave it out"
        ),
        GLM: f"{needed}; use RRMGLM or rrmstats.glm",
        RegressionModel: f"{needed}; use RRMOLS or rrmstats.ols",
    }
    for kind, why in refused.items():
        if isinstance(model, kind):
            raise TypeError(why)
    if not (hasattr(model, "loglikeobs") and hasattr(model, "endog")):
        raise TypeError(needed)


class ModelFunctions(laws.RowLikelihood):
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
        if not isinstance(self.model, discrete.MNLogit) or theta.ndim == 2:
            return theta
        return theta.reshape(-1, int(self.model.J) - 1, order="F")

    @np.errstate(all="ignore")  # a search tries parameters at any distance
    def log_likelihood(self, theta: Array) -> Array:
        """Return the log-likelihoods of the rows, shape (n,)."""
        found = np.asarray(self.model.loglikeobs(self.shaped(theta)), dtype=float)
        return found.sum(axis=1) if found.ndim == 2 else found

    @np.errstate(all="ignore")
    def scores(self, theta: Array) -> Array:
        """Return the scores of the rows, shape (n, k)."""
        if isinstance(self.model, OrderedModel):
            return ordered_scores(self.model, theta)
        return np.asarray(self.model.score_obs(self.shaped(theta)), dtype=float)

    @np.errstate(all="ignore")
    def log_density(self, theta: Array, y: Array) -> Array:
        """Return the log-densities or log-probabilities of responses, shape (m, n)."""
        if isinstance(self.model, CLASSES):
            chances = np.asarray(self.model.predict(self.shaped(theta)), dtype=float)
            return np.log(chances[np.arange(len(chances)), np.asarray(y, dtype=int)])
        law = self.model.get_distribution(self.shaped(theta))
        return np.asarray(law.logpmf(y) if is_discrete(law) else law.logpdf(y), dtype=float)

    def slopes(self, theta: Array, y: Array, unit: Array) -> Array:
        """Return the derivatives of the log-densities, shape (k, m, n)."""
        return differences(lambda at: self.log_density(at, y), theta, unit)

    @np.errstate(all="ignore")
    def nodes(self, theta: Array) -> tuple[Array, Array]:
        """Return responses, and logarithms of what their densities count."""
        if isinstance(self.model, CLASSES):
            n_classes = np.shape(self.model.predict(self.shaped(theta)))[1]
            return np.arange(float(n_classes))[:, None], np.zeros((n_classes, 1))
        law, rows = self.model.get_distribution(self.shaped(theta)), np.ones(len(self.endog))
        if is_discrete(law):
            return laws.counts_worth_a_term(law.mean() * rows, law.var() * rows, law.logpmf)
        at, weight = laws.probability_nodes()
        y = np.asarray(law.ppf(at[:, None] * rows), dtype=float)
        return y, np.log(weight)[:, None] - law.logpdf(y)


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


def _own_fits(model: Any, form: laws.PredictorLikelihood | None) -> Iterator[tuple[Array, bool]]:
    """Yield fits, and whether each says that it converged: then no other is needed."""
    if form is not None:
        # At the end of its range, such as an overdispersion of zero, statsmodels may find nothing.
        start = rough_start(form)
        yield laws.own_fit(form, start, lower_bounds(model, len(start))), False
    for method in OPTIMIZERS:
        options = {"method": method} if method else {}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
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
    if isinstance(model, discrete.MNLogit):
        levels = [str(level) for level in list(model._ynames_map.values())[1:]]
        return [f"{level}: {name}" for level in levels for name in model.exog_names]
    names = [str(name) for name in (getattr(model.data, "param_names", None) or [])][:k]
    return names + [f"par{i}" for i in range(k - len(names))]


def likelihood_of(
    model: Any, theta: Array, aside: Array, saturated: Array | None
) -> laws.Likelihood:
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
    return laws.Likelihood(
        rows=rows,
        start=theta,
        largest=given or largest_of(model, aside),
        lower=lower_bounds(model, len(theta)),
        scored=closed is not None or has_scores(functions, theta),
        known=closed is not None or has_law(functions, theta),
        classes=isinstance(model, (*CLASSES, discrete.BinaryModel)),
        kinds=kinds_of(model, rows.endog),
        part=partial(_part_likelihood, model, theta, aside, saturated),
    )


def _repeated(values: Array, y: Array) -> Array:
    """Return values of the rows whatever their responses are."""
    return values


def _part_likelihood(
    model: Any, theta: Array, aside: Array, saturated: Array | None, rows: np.ndarray
) -> laws.Likelihood | None:
    """Return the likelihood of some rows; None where it cannot be built from arrays alone."""
    some = part_of(model, rows, theta)
    if some is None:
        return None
    return likelihood_of(some, theta, aside, None if saturated is None else saturated[rows])


def has_scores(functions: ModelFunctions, theta: Array) -> bool:
    """Tell whether a model has scores, and they are right."""
    unit = np.maximum(np.abs(theta), 0.1)
    at = theta + 1e-3 * unit
    wanted = differences(functions.log_likelihood, at, unit).T
    return computes(partial(functions.scores, at), wanted, 1e-3)


def has_law(functions: ModelFunctions, theta: Array) -> bool:
    """Tell whether a model has a distribution of the response of each row.

    It must give the responses of the data the likelihood that the model gives them.
    """
    found = partial(functions.log_density, theta, functions.endog[None])
    return computes(found, functions.log_likelihood(theta)[None], 1e-6)


def computes(find: Callable[[], Array], wanted: Array, tol: float) -> bool:
    """Tell whether a model has a function that returns the wanted numbers."""
    try:
        return agree(find(), wanted, tol)
    except MISSING:
        return False


def part_of(model: Any, rows: np.ndarray, theta: Array) -> Any:
    """Return the model of some rows; None where it cannot be built from arrays alone."""
    whole = ModelFunctions(model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            some = ModelFunctions(rebuilt(model, rows))
            same = agree(some.log_likelihood(theta), whole.log_likelihood(theta)[rows], 1e-9)
        except Exception:  # a constructor of anyone's: the whole serves where it fails
            return None
    return some.model if same else None


def agree(found: Array, wanted: Array, tol: float) -> bool:
    """Tell whether two computations of the same numbers agree."""
    least = tol * min(1.0, float(np.abs(wanted).max(initial=0.0)))
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=tol, atol=least)


def checked_form(functions: ModelFunctions) -> laws.PredictorLikelihood | None:
    """Return the closed form of a likelihood where it is the model's."""
    found = closed_form(functions.model)
    if found is None:
        return None
    theta = rough_start(found)
    same = agree(found.log_likelihood(theta), functions.log_likelihood(theta), 1e-5)
    return found if same else None


def closed_form(model: Any) -> laws.PredictorLikelihood | None:
    """Return the likelihood of a model in closed form; None where there is none."""
    endog, main = np.asarray(model.endog, dtype=float), main_of(model)
    kernel: laws.Kernel | None = count_kernel(main)
    designs = [main.exog, np.ones((len(endog), 1))][: 2 if has_alpha(main) else 1]
    at_links = [type(getattr(model, name, None)) for name in ("link", "link_precision")]
    if isinstance(model, BetaModel) and at_links == [links.Logit, links.Log]:
        kernel, designs = laws.BetaKernel(), [model.exog, model.exog_precision]
    elif isinstance(model, (discrete.Logit, discrete.Probit)) and np.isin(endog, (0.0, 1.0)).all():
        kernel = laws.LabelKernel(isinstance(model, discrete.Probit))
    if kernel is None:
        return None
    offsets = [added_offset(main), *np.zeros(len(designs) - 1)]
    if isinstance(kernel, laws.CountKernel) and main is not model:
        kernel = laws.ZeroInflatedKernel(kernel, model.inflation == "probit")
        designs, offsets = [model.exog_infl, *designs], [0.0, *offsets]
    exogs = tuple(np.asarray(design, dtype=float) for design in designs)
    added = tuple(np.zeros(len(endog)) + offset for offset in offsets)
    return laws.PredictorLikelihood(kernel, endog, exogs, added)


def rough_start(form: laws.PredictorLikelihood) -> Array:
    """Return parameters whose predictors are about those of the responses, shape (k,)."""
    y, kernel, alpha = form.endog, form.kernel, 0.1
    wanted: list[Any] = [np.log(y + 0.5), alpha]
    if isinstance(kernel, laws.BetaKernel):
        wanted = [logit(np.clip(y, alpha, 1.0 - alpha)), 2.0]
    elif isinstance(kernel, laws.LabelKernel):
        wanted = [2.0 * y - 1.0]
    elif isinstance(kernel, laws.ZeroInflatedKernel):
        wanted.insert(0, -1.0)
    parts = [
        np.linalg.lstsq(design, aim - offset, rcond=None)[0]
        for design, offset, aim in zip(form.designs, form.offsets, wanted, strict=False)
    ]
    start = np.concatenate(parts)
    if isinstance(kernel, laws.LabelKernel):
        # Short enough that statsmodels' probabilities of labels are all above its least one.
        start = start / max(1.0, float(np.abs(form.predictors(start)[0]).max()))
    return start


def lower_bounds(model: Any, k: int) -> Array:
    """Return the least values of k parameters."""
    least = np.full(k, -np.inf)
    main = main_of(model)
    if isinstance(main, (discrete.NegativeBinomial, discrete.NegativeBinomialP)) and has_alpha(
        main
    ):
        least[-1] = LEAST_ALPHA
    if main is not model and model.exog_infl.shape[1] == 1 and (model.exog_infl == 1).all():
        # A share of added zeros of about 1e-9, which is none.
        least[0] = -6.0 if model.inflation == "probit" else -20.0
    return least


def has_alpha(main: Any) -> bool:
    """Tell whether the last parameter of a model of counts is a dispersion."""
    return isinstance(
        count_kernel(main), (laws.NegativeBinomialKernel, laws.GeneralizedPoissonKernel)
    )


def count_kernel(main: Any) -> laws.CountKernel | None:
    """Return the log-probability of counts of a model; None where it is of other responses."""
    if isinstance(main, discrete.Poisson):
        return laws.log_mean_kernel(families.Poisson())
    if isinstance(main, discrete.GeneralizedPoisson):
        return laws.GeneralizedPoissonKernel(float(main.parameterization))
    if not isinstance(main, (discrete.NegativeBinomial, discrete.NegativeBinomialP)):
        return None
    # Variances are mu + alpha mu^power.
    power, method = getattr(main, "parameterization", 2), getattr(main, "loglike_method", "")
    if method == "geometric":
        return laws.log_mean_kernel(families.NegativeBinomial(1.0))
    return laws.NegativeBinomialKernel({"nb2": 2.0, "nb1": 1.0}.get(method, float(power)))


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
    if isinstance(model, (discrete.BinaryModel, *CLASSES)):
        return np.zeros_like  # a class may have probability one
    if isinstance(model, BetaModel):
        precision = np.asarray(model.predict(theta, which="precision"), dtype=float)
        return partial(largest_share, log_precision=np.log(precision))
    kernel = count_kernel(main_of(model))
    alpha = (np.asarray(theta[-1]),) if has_alpha(main_of(model)) else ()
    return None if kernel is None else partial(largest_count, kernel=kernel, alpha=alpha)


def depends_on_dispersion(model: Any) -> bool:
    """Tell whether the largest log-likelihoods depend on parameters that are estimated."""
    return isinstance(model, BetaModel) or has_alpha(main_of(model))


def main_of(model: Any) -> Any:
    """Return the model of the counts that are no added zeros."""
    return model.model_main if isinstance(model, GenericZeroInflated) else model


def largest_count(y: Array, kernel: laws.CountKernel, alpha: tuple[Array, ...]) -> Array:
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
    return highest(laws.BetaKernel(), y, start, log_precision)


def highest(kernel: laws.Kernel, y: Array, start: Array, *rest: Array) -> Array:
    """Return the largest log-densities of responses over the first predictor.

    By Newton's method, from a start near them.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.families import Poisson
    >>> from rrmstats.losses.likelihood_laws import log_mean_kernel
    >>> from rrmstats.models.likelihood import highest
    >>> np.exp(highest(log_mean_kernel(Poisson()), np.array([1.0, 2.0]), np.zeros(2))).round(6)
    array([0.367879, 0.270671])
    """
    shape = np.shape(y)
    y, at, *others = (part.ravel() for part in np.broadcast_arrays(y, start, *rest))

    def value(at: Array, places: np.ndarray) -> Array:
        return -kernel.log_density(y[places], at[:, 0], *(other[places] for other in others))

    def slopes(at: Array, places: np.ndarray) -> tuple[Array, Array]:
        some = [other[places] for other in others]
        low, here, high = (
            -kernel.slopes(y[places], at[:, 0] + step, *some)[0] for step in (-1e-4, 0.0, 1e-4)
        )
        return here[:, None], np.abs(high - low)[:, None, None] / 2e-4

    with np.errstate(all="ignore"):
        ends = damped_newton(value, slopes, np.add, at[:, None], MAX_STEPS)
        return -value(ends, np.arange(len(y))).reshape(shape)


def is_discrete(law: Any) -> bool:
    """Tell whether a frozen distribution is one of whole numbers."""
    return hasattr(law, "logpmf") and not hasattr(getattr(law, "dist", law), "logpdf")


def kinds_of(model: Any, endog: Array) -> tuple[np.ndarray, ...]:
    """Return the kinds of rows of which a fit must keep some: classes, and counts above zero."""
    if isinstance(model, discrete.CountModel):
        return (endog > 0,) if (endog > 0).any() else ()
    if isinstance(model, (*CLASSES, discrete.BinaryModel)):
        levels = np.unique(endog)
        return tuple(endog == level for level in levels) if len(levels) <= 20 else ()
    return ()
