"""Models from a formula and a data frame: the functions that most users call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

from numpy.typing import ArrayLike

from rrmstats.models import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMModel, RRMPoisson
from rrmstats.models.checks import names_of_caller

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["cov", "glm", "logit", "ols", "pca", "poisson", "wls"]

#: A DataFrame of pandas, polars or Dask, a Table of pyarrow, or a mapping of columns.
Frame = Any
ModelT = TypeVar("ModelT", bound=RRMModel[Any, Any], covariant=True)


class Options(TypedDict, total=False):
    """What editors and mypy know of the options; each class takes some of them."""

    eps_bar_max: float
    freq_weights: ArrayLike | None
    groups: str | ArrayLike | None
    subset: ArrayLike | None
    drop_cols: list[str] | None
    missing: str
    hasconst: bool | None
    alpha: float | None
    penalty: str | None
    level: object
    family: Any
    offset: str | ArrayLike | None
    exposure: str | ArrayLike | None
    var_weights: str | ArrayLike | None
    n_components: float
    demean: bool
    standardize: bool
    persist: bool | str
    eval_env: Any


class FormulaFunction(Protocol[ModelT]):
    """A function that makes a model from a formula."""

    def __call__(
        self, formula: str, data: Frame, eps_bar: float | str = "auto", **options: Unpack[Options]
    ) -> ModelT:
        """Return the model."""


def of_formula(named: Callable[[], type[ModelT]]) -> FormulaFunction[ModelT]:
    """Return a function that makes the model that another names, with the options of its class."""
    kind = named()

    def make(
        formula: str,
        data: Frame,
        eps_bar: float | str = "auto",
        *,
        subset: ArrayLike | None = None,
        drop_cols: list[str] | None = None,
        missing: str = "drop",
        eval_env: Any = 0,
        **options: Any,
    ) -> ModelT:
        # statsmodels keeps all that it is passed.
        known = {name: value for name, value in options.items() if value is not None}
        known |= {"missing": missing, "eval_env": names_of_caller(eval_env, 1)}
        return kind.from_formula(formula, data, eps_bar, subset, drop_cols, **known)

    given = signature(make)
    shared = list(given.parameters.values())[:-1]
    names = {"self", "endog", "exog", "kwargs", *(each.name for each in shared)}
    taken = signature(kind.__init__).parameters.values()
    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in taken if each.name not in names]
    parameters = [*shared[:3], *own, *shared[3:]]
    shown = given.replace(parameters=parameters, return_annotation=kind.__name__)
    make.__signature__ = shown  # type: ignore[attr-defined]  # what help reads
    return wraps(named)(make)


@of_formula
def ols() -> type[RRMOLS]:
    """Return a linear regression that gives bad rows little weight; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"y ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    absorb : array_like, shape (n,) or (n, f), or DataFrame, optional
        Factors whose effects are taken out of all variables; see `feols`.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    hasconst : bool, optional
        Whether the design holds a constant; by default it is looked for.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    weights: ArrayLike,
    **options: Unpack[Options],
) -> RRMGLM:
    """Return a linear regression of rows with different noise; call its `fit`.

    It is `glm` of the Gaussian family with the weights as `var_weights`.

    Parameters
    ----------
    formula : str
        Such as ``"y ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    weights : array_like, shape (n,)
        Positive, as statsmodels' `WLS` takes them: a row of weight 2 has half the variance.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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
    options["eval_env"] = names_of_caller(options.get("eval_env", 0), 1)
    options["var_weights"] = weights
    return glm(formula, data, eps_bar, **options)


@of_formula
def logit() -> type[RRMLogit]:
    """Return a logistic regression that gives wrong labels little weight; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"label ~ x1 + C(group)"``. For counts of successes use `glm`.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    alpha : float, optional
        Weight of the penalty. By default 1e-5, or 1e-3 with `penalty`; 0 where `eps_bar` is 0.
    penalty : {None, "l2"}, optional
        None for the default loss, "l2" for a ridge penalty; see `RRMLogit`.
    level : optional
        The level of the response that counts as 1, where it is not numeric.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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

    Parameters
    ----------
    formula : str
        Such as ``"count ~ x1 + C(group)"``; for binomial counts ``"success + failure ~ x"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    family : statsmodels family, optional
        Such as ``sm.families.Poisson()``; Gaussian by default. See `RRMGLM` for all of them.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    exposure : array_like, shape (n,), optional
        Positive; its logarithm is added to the linear predictor. For the log link only.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    var_weights : array_like, shape (n,), optional
        Positive; a response of weight 2 has half the variance, as a mean of two has. For shares
        of successes the numbers of trials.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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

    Parameters
    ----------
    formula : str
        Such as ``"count ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    exposure : array_like, shape (n,), optional
        Positive; its logarithm is added to the linear predictor.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    var_weights : array_like, shape (n,), optional
        Positive; a response of weight 2 has half the variance, as a mean of two has. For shares
        of successes the numbers of trials.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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

    Parameters
    ----------
    formula : str
        One-sided, such as ``"~ a + b + np.log(c)"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    n_components : int or float, optional
        Number of components; or, in (0, 1), the fraction of the variance that they are to explain.
    demean : bool, optional
        False for components around the origin, the paper's case.
    standardize : bool, optional
        Divide each variable by a robust scale first.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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

    Parameters
    ----------
    formula : str
        One-sided, such as ``"~ a + b + np.log(c)"``.
    data : DataFrame or mapping
        The variables of the formula: a frame of pandas, polars, pyarrow or Dask.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1); by default it is chosen from the data.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : str or array_like, shape (n,), optional
        Clusters that may be bad as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use, as labels or a mask.
    drop_cols : list of str, optional
        Columns to drop from the design.
    missing : {"drop", "raise"}, optional
        What to do with rows that have missing values.
    persist : bool or "auto", optional
        For Dask frames: whether partitions are computed once and kept in the memory of the
        workers; by default where they fit.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.

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
