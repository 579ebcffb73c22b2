"""Models from a formula and a data frame: the functions that most users call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from statsmodels.tools.docstring import NumpyDocString

from rrmstats.models import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMModel, RRMPoisson
from rrmstats.models.checks import names_of_caller

__all__ = ["cov", "glm", "logit", "ols", "pca", "poisson", "wls"]

ModelT = TypeVar("ModelT", bound=RRMModel[Any, Any])


def of_formula(named: Callable[[], type[ModelT]]) -> Callable[..., ModelT]:
    """Return a function that makes the model that another names.

    Its options and their descriptions are those of `from_formula` and of the class.
    """
    kind = named()

    @wraps(named)
    def make(formula: str, data: Any, eps_bar: float | str = "auto", **options: Any) -> ModelT:
        # statsmodels keeps all that it is passed.
        known = {name: value for name, value in options.items() if value is not None}
        known["eval_env"] = names_of_caller(options.get("eval_env", 0), 1)
        return kind.from_formula(formula, data, eps_bar, **known)

    shared = signature(kind.from_formula)
    given = {**signature(kind).parameters, **shared.parameters}
    first = list(shared.parameters)[:3]
    options = [name for name in given if name not in (*first, "endog", "exog", "kwargs")]
    parameters = [given[name] for name in first]
    parameters += [given[name].replace(kind=Parameter.KEYWORD_ONLY) for name in options]
    shown = shared.replace(parameters=parameters, return_annotation=kind.__name__)
    make.__signature__ = shown  # type: ignore[attr-defined]  # what help reads
    make.__doc__ = _described(named, kind, [*first, *options])
    return make


def _described(named: Callable[..., Any], kind: type[Any], names: list[str]) -> str:
    """Return the docstring of a function, with the parameters that its class describes."""
    text = _parsed(named)
    described = {each.name: each for each in _parsed(kind)["Parameters"]}
    described |= {each.name: each for each in _parsed(kind.from_formula)["Parameters"]}
    text["Parameters"] = [described[name] for name in names if name in described]
    return str(text)


def _parsed(thing: Any) -> NumpyDocString:
    return NumpyDocString(cleandoc(thing.__doc__ or ""))


@of_formula
def ols() -> type[RRMOLS]:
    """Return a linear regression that gives bad rows little weight; call its `fit`.

    Returns
    -------
    RRMOLS

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3).fit()
    >>> bool(res.params["log_te"] > 2), res.steps
    (True, 2)
    """
    return RRMOLS


def wls(
    formula: str, data: Any, eps_bar: float | str = "auto", *, weights: ArrayLike, **options: Any
) -> RRMGLM:
    """Return a linear regression of rows with different noise; call its `fit`.

    It is `glm` of the Gaussian family with the weights as `var_weights`.

    Parameters
    ----------
    formula, data, eps_bar
        As `ols` takes them.
    weights : array_like, shape (n,), or str
        Positive, as statsmodels' `WLS` takes them: a row of weight 2 has half the variance. A
        text names a column of the data.
    **options
        What `glm` takes besides, but for `family` and `var_weights`.

    Returns
    -------
    RRMGLM

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> size = [1.0, 2.0, 3.0] * 25
    >>> res = rrmstats.wls("y ~ x1 + x2 + x3", hbk, weights=size).fit()
    >>> int(res.outliers()[:10].sum())
    10
    """
    names = names_of_caller(options.pop("eval_env", 0), 1)
    return glm(formula, data, eps_bar, var_weights=weights, eval_env=names, **options)


@of_formula
def logit() -> type[RRMLogit]:
    """Return a logistic regression that gives wrong labels little weight; call its `fit`.

    Returns
    -------
    RRMLogit

    Examples
    --------
    >>> import rrmstats
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> bool(res.params["clump_thickness"] > 0)
    True
    """
    return RRMLogit


@of_formula
def glm() -> type[RRMGLM]:
    """Return a generalized linear model that gives bad rows little weight; call its `fit`.

    Returns
    -------
    RRMGLM

    Examples
    --------
    >>> import rrmstats, statsmodels.api as sm
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> family = sm.families.Gamma(sm.families.links.Log())
    >>> res = rrmstats.glm("log_light ~ log_te", stars, eps_bar=0.2, family=family).fit()
    >>> res.explanation.name, bool(res.params["log_te"] > 0)
    ('cluster', True)
    """
    return RRMGLM


@of_formula
def poisson() -> type[RRMPoisson]:
    """Return a Poisson regression that gives bad counts little weight; call its `fit`.

    Returns
    -------
    RRMPoisson

    Examples
    --------
    >>> import pandas as pd, rrmstats
    >>> calls = pd.DataFrame({"hour": range(10), "calls": [1, 2, 1, 3, 4, 5, 99, 9, 12, 15]})
    >>> res = rrmstats.poisson("calls ~ hour", calls, eps_bar=0.2).fit()
    >>> res.outliers().to_numpy().nonzero()[0]
    array([6])
    """
    return RRMPoisson


@of_formula
def pca() -> type[RRMPCA]:
    """Return a principal component analysis that gives bad rows little weight; call its `fit`.

    Returns
    -------
    RRMPCA

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, eps_bar=0.25, n_components=2).fit()
    >>> res.loadings.shape
    (3, 2)
    """
    return RRMPCA


@of_formula
def cov() -> type[RRMCov]:
    """Return a mean and covariance that gives bad rows little weight; call its `fit`.

    Returns
    -------
    RRMCov

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
    >>> int(res.outliers()[:14].sum())
    14
    """
    return RRMCov
