"""Models from a formula and a data frame: the functions that most users call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import pandas as pd

from rrmstats.models import RRMGLM, RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

__all__ = ["cov", "glm", "logit", "ols", "pca", "poisson"]

Frame = pd.DataFrame | Mapping[str, Any]


def ols(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    freq_weights: npt.ArrayLike | None = None,
    groups: str | npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMOLS:
    """Return a linear regression that bad rows cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"y ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.
    groups : str or array_like, shape (n,), optional
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMOLS`.

    Returns
    -------
    RRMOLS

    Examples
    --------
    >>> import rrmstats
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3).fit()
    >>> print(f"{res.params['log_te']:.2f}")
    3.63
    """
    return RRMOLS.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        eval_env=caller(eval_env),
        groups=groups,
        **counted(freq_weights),
        **kwargs,
    )


def logit(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    alpha: float | None = None,
    penalty: str | None = None,
    level: object = None,
    freq_weights: npt.ArrayLike | None = None,
    groups: str | npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMLogit:
    """Return a logistic regression that wrong labels cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"label ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    alpha, penalty, level
        See `RRMLogit`.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.
    groups : str or array_like, shape (n,), optional
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMLogit`.

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
    return RRMLogit.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        alpha=alpha,
        penalty=penalty,
        level=level,
        eval_env=caller(eval_env),
        groups=groups,
        **counted(freq_weights),
        **kwargs,
    )


def glm(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    family: Any = None,
    offset: npt.ArrayLike | None = None,
    exposure: npt.ArrayLike | None = None,
    freq_weights: npt.ArrayLike | None = None,
    var_weights: npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMGLM:
    """Return a generalized linear model that bad rows cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"count ~ x1 + C(group)"``; for binomial counts ``"success + failure ~ x"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    family : statsmodels family, optional
        Such as ``sm.families.Poisson()``; Gaussian by default.
    offset, exposure, freq_weights, var_weights : array_like, shape (n,), optional
        See `RRMGLM`.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMGLM`.

    Returns
    -------
    RRMGLM

    Examples
    --------
    >>> import rrmstats, statsmodels.api as sm
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> family = sm.families.Gamma(sm.families.links.Log())
    >>> res = rrmstats.glm("log_light ~ log_te", stars, eps_bar=0.2, family=family).fit()
    >>> bool(res.params["log_te"] > 0)
    True
    """
    given: dict[str, Any] = {
        "offset": offset,
        "exposure": exposure,
        "var_weights": var_weights,
        "freq_weights": freq_weights,
    }
    return RRMGLM.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        family=family,
        eval_env=caller(eval_env),
        **{name: values for name, values in given.items() if values is not None},
        **kwargs,
    )


def poisson(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    offset: npt.ArrayLike | None = None,
    exposure: npt.ArrayLike | None = None,
    freq_weights: npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMPoisson:
    """Return a Poisson regression that bad counts cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        Such as ``"count ~ x1 + C(group)"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    offset, exposure, freq_weights : array_like, shape (n,), optional
        See `RRMGLM`.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMPoisson`.

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
    given: dict[str, Any] = {
        "offset": offset,
        "exposure": exposure,
        "freq_weights": freq_weights,
    }
    return RRMPoisson.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        eval_env=caller(eval_env),
        **{name: values for name, values in given.items() if values is not None},
        **kwargs,
    )


def pca(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    n_components: float = 1,
    demean: bool = True,
    standardize: bool = False,
    freq_weights: npt.ArrayLike | None = None,
    groups: str | npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMPCA:
    """Return a principal component analysis that bad rows cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        One-sided, such as ``"~ a + b + np.log(c)"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    n_components, demean, standardize
        See `RRMPCA`.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.
    groups : str or array_like, shape (n,), optional
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMPCA`.

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
    return RRMPCA.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        n_components=n_components,
        demean=demean,
        standardize=standardize,
        eval_env=caller(eval_env),
        groups=groups,
        **counted(freq_weights),
        **kwargs,
    )


def cov(
    formula: str,
    data: Frame,
    eps_bar: float | str | None = None,
    *,
    freq_weights: npt.ArrayLike | None = None,
    groups: str | npt.ArrayLike | None = None,
    subset: npt.ArrayLike | None = None,
    eval_env: Any = 0,
    **kwargs: Any,
) -> RRMCov:
    """Return a mean and covariance that bad rows cannot spoil; call its `fit`.

    Parameters
    ----------
    formula : str
        One-sided, such as ``"~ a + b + np.log(c)"``.
    data : DataFrame or mapping
        The variables of the formula. Rows with missing values are dropped.
    eps_bar : float or "auto"
        Upper bound on the fraction of corrupted rows, in [0, 1); "auto" chooses it from the data.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.
    groups : str or array_like, shape (n,), optional
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
    subset : array_like, optional
        Rows of `data` to use.
    eval_env : int or patsy.EvalEnvironment, optional
        Where functions in the formula are looked up, as in statsmodels.
    **kwargs
        Passed on to `RRMCov`.

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
    return RRMCov.from_formula(
        formula,
        data,
        eps_bar,
        subset,
        eval_env=caller(eval_env),
        groups=groups,
        **counted(freq_weights),
        **kwargs,
    )


def caller(eval_env: Any) -> Any:
    """Return where to look functions up, counted from the caller of this module's function."""
    return eval_env + 1 if isinstance(eval_env, int) and eval_env != -1 else eval_env


def counted(freq_weights: npt.ArrayLike | None) -> dict[str, Any]:
    """Return frequency weights as a keyword, or none where there are none."""
    return {} if freq_weights is None else {"freq_weights": freq_weights}
