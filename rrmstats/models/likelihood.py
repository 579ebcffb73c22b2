"""Any statsmodels model with a likelihood per row, by robust risk minimization."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.base.model import Results
from statsmodels.base.wrapper import ResultsWrapper
from statsmodels.discrete.discrete_model import MNLogit
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.regression.linear_model import RegressionModel
from statsmodels.tsa.base.tsa_model import TimeSeriesModel

from rrmstats.core.entropy import Array
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.interchange import as_values
from rrmstats.losses.likelihood import LikelihoodProblem
from rrmstats.models.base import RRMModel, same_signature
from rrmstats.models.checks import AUTO, EPS_BAR_MAX, checked_bound, checked_start, per_row
from rrmstats.models.likelihood_parts import (
    ModelFunctions,
    depends_on_dispersion,
    detached,
    likelihood_of,
    parameter_names,
    part_of,
    pilot,
)
from rrmstats.results.likelihood import RRMLikelihoodResults

if TYPE_CHECKING:
    from typing_extensions import Self


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

    def __init__(
        self,
        model: Any,
        eps_bar: float | str = "auto",
        *,
        freq_weights: ArrayLike | None = None,
        saturated: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        eps_bar_max: float = EPS_BAR_MAX,
    ) -> None:
        checked_bound(eps_bar)
        check_likelihood(model)
        self.model, self.endog = model, np.asarray(model.endog)
        nobs = len(self.endog)
        self._init_keys, self._data_attr = ["saturated"], []
        saturated = as_values(saturated)
        self.freq_weights = freq_weights = per_row("freq_weights", as_values(freq_weights), nobs)
        self._set_options(eps_bar, freq_weights, eps_bar_max, groups)
        self.saturated = _checked_saturated(saturated, nobs)
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
    def exog_names(self) -> list[str]:
        """Names of all parameters."""
        return list(self.data.param_names)

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
        if isinstance(getattr(own.data, "xnames", None), list) and not isinstance(own, MNLogit):
            own.data.xnames = self.exog_names
        return own

    def problem(self) -> LikelihoodProblem:
        """Return minus the log-likelihoods, above the largest that they could have."""
        first = self._problem_aside(self.start)
        bound = self.eps_bar_max if self.eps_bar == AUTO else self._bound
        if bound == 0 or self.saturated is not None or not depends_on_dispersion(self.model):
            return first
        # The model's own dispersion is that of all rows: the largest log-likelihoods are to have
        # that of the good ones.
        setting = Setting(
            eps_bar=bound,
            freq_weights=self.freq_weights,
            n_starts=20,
            tol=1e-4,
            maxiter=50,
        )
        return self._problem_aside(take_steps(first, setting, steps=1).params)

    def _problem_aside(self, aside: Array) -> LikelihoodProblem:
        return LikelihoodProblem(likelihood_of(self.model, self.start, aside, self.saturated))

    def _start_theta(self, problem: LikelihoodProblem, start_params: ArrayLike) -> Array:
        return checked_start(start_params, self.exog_names)

    @cached_property
    def incomparable(self) -> str:
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
        if self.saturated is not None:
            part.saturated = self.saturated[rows]
        return part

    @classmethod
    def from_formula(cls, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: the statsmodels model has its own."""
        raise NotImplementedError(
            "make the model by its own from_formula, and give it to rrmstats.robustify"
        )


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
    refused: tuple[tuple[Any, str], ...] = (
        (
            (Results, ResultsWrapper),
            f"robustify takes a model, got the results {name}; give their .model",
        ),
        (RRMModel, f"{name} is robust already; call its fit()"),
        (
            PHReg,
            "PHReg has a partial likelihood, in which each event is compared with all rows at "
            "risk: it is not a sum over rows, and a row cannot be weighted out of it",
        ),
        (
            TimeSeriesModel,
            f"the likelihood of {name} in each row is given all earlier rows: a bad row "
            "spoils those after it, and weights cannot leave it out",
        ),
    )
    for kinds, why in refused:
        if isinstance(model, kinds):
            raise TypeError(why)
    if not (hasattr(model, "loglikeobs") and hasattr(model, "endog")):
        instead = ""
        if isinstance(model, GLM):
            instead = "; use RRMGLM or rrmstats.glm"
        elif isinstance(model, RegressionModel):
            instead = "; use RRMOLS or rrmstats.ols"
        raise TypeError(
            f"robustify needs a model with loglikeobs(params), the log-likelihood of each row, "
            f"and {name} has none{instead}"
        )


def _checked_saturated(saturated: ArrayLike | None, nobs: int) -> Array | None:
    """Return largest log-likelihoods, one per row, or None."""
    if saturated is None:
        return None
    values = np.asarray(saturated, dtype=float)
    if values.shape != (nobs,) or not np.isfinite(values).all():
        raise ValueError(
            f"saturated must be {nobs} finite numbers, one per row, got shape {values.shape}"
        )
    return values
