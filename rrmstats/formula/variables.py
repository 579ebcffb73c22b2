"""Principal components, means and covariances from a one-sided formula."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rrmstats.formula.options import Frame, caller, only_given
from rrmstats.models import RRMPCA, RRMCov
from rrmstats.models.bounds import EPS_BAR_MAX


def pca(
    formula: str,
    data: Frame,
    eps_bar: float | str = "auto",
    *,
    eps_bar_max: float = EPS_BAR_MAX,
    n_components: float = 1,
    demean: bool = True,
    standardize: bool = False,
    freq_weights: ArrayLike | None = None,
    groups: str | ArrayLike | None = None,
    subset: ArrayLike | None = None,
    drop_cols: list[str] | None = None,
    missing: str = "drop",
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMPCA:
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
    RRMPCA

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.pca("~ x1 + x2 + x3", hbk, eps_bar=0.25, n_components=2).fit()
    >>> res.loadings.shape
    (3, 2)
    """
    given = only_given(
        eps_bar_max=eps_bar_max,
        n_components=n_components,
        demean=demean,
        standardize=standardize,
        freq_weights=freq_weights,
        groups=groups,
        missing=missing,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMPCA.from_formula(formula, data, eps_bar, subset, drop_cols, **given)


def cov(
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
    persist: bool | str = "auto",
    eval_env: Any = 0,
) -> RRMCov:
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
    RRMCov

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.cov("~ x1 + x2 + x3", hbk, eps_bar=0.25).fit()
    >>> int(res.outliers()[:14].sum())
    14
    """
    given = only_given(
        eps_bar_max=eps_bar_max,
        freq_weights=freq_weights,
        groups=groups,
        missing=missing,
        persist=persist,
    )
    given["eval_env"] = caller(eval_env)
    return RRMCov.from_formula(formula, data, eps_bar, subset, drop_cols, **given)
