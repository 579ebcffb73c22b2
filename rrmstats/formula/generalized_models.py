"""Generalized linear models from a formula."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rrmstats.formula.options import Frame, caller, only_given
from rrmstats.models import RRMGLM, RRMPoisson
from rrmstats.models.bounds import EPS_BAR_MAX


def glm(
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    eps_bar_max: float = EPS_BAR_MAX,
    family: Any = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    freq_weights: ArrayLike | None = None,
    var_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    subset: ArrayLike | None = None,
    drop_cols: list[str] | None = None,
    missing: str = "drop",
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMGLM:
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
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
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
    given = only_given(
        eps_bar_max=eps_bar_max,
        family=family,
        offset=offset,
        exposure=exposure,
        freq_weights=freq_weights,
        var_weights=var_weights,
        groups=groups,
        missing=missing,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMGLM.from_formula(formula, data, eps_bar, subset, drop_cols, **given)


def poisson(
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    eps_bar_max: float = EPS_BAR_MAX,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    freq_weights: ArrayLike | None = None,
    var_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    subset: ArrayLike | None = None,
    drop_cols: list[str] | None = None,
    missing: str = "drop",
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMPoisson:
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
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
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
    given = only_given(
        eps_bar_max=eps_bar_max,
        offset=offset,
        exposure=exposure,
        freq_weights=freq_weights,
        var_weights=var_weights,
        groups=groups,
        missing=missing,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMPoisson.from_formula(formula, data, eps_bar, subset, drop_cols, **given)
