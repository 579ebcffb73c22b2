"""Linear and logistic regression from a formula."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rrmstats.formula.options import Frame, caller, only_given
from rrmstats.models import RRMOLS, RRMLogit
from rrmstats.models.bounds import EPS_BAR_MAX


def ols(
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    eps_bar_max: float = EPS_BAR_MAX,
    freq_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    subset: ArrayLike | None = None,
    drop_cols: list[str] | None = None,
    missing: str = "drop",
    hasconst: bool | None = None,
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMOLS:
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
        Clusters that may be corrupt as a whole, a column of `data` or labels: each has one weight.
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
    given = only_given(
        eps_bar_max=eps_bar_max,
        freq_weights=freq_weights,
        groups=groups,
        missing=missing,
        hasconst=hasconst,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMOLS.from_formula(formula, data, eps_bar, subset, drop_cols, **given)


def logit(
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    eps_bar_max: float = EPS_BAR_MAX,
    alpha: float | None = None,
    penalty: str | None = None,
    level: object = None,
    freq_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    subset: ArrayLike | None = None,
    drop_cols: list[str] | None = None,
    missing: str = "drop",
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMLogit:
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
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
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
    RRMLogit

    Examples
    --------
    >>> import rrmstats
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> bool(res.params["clump_thickness"] > 0)
    True
    """
    given = only_given(
        eps_bar_max=eps_bar_max,
        alpha=alpha,
        penalty=penalty,
        level=level,
        freq_weights=freq_weights,
        groups=groups,
        missing=missing,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMLogit.from_formula(formula, data, eps_bar, subset, drop_cols, **given)
