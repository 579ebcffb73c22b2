"""Poisson regression by robust risk minimization."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from statsmodels.genmod import families

from rrmstats.models.checks import EPS_BAR_MAX
from rrmstats.models.generalized import RRMGLM


class RRMPoisson(RRMGLM):
    """Poisson regression when some of the rows may be wrong: `RRMGLM` with a log link.

    Parameters
    ----------
    endog : array_like, shape (n,)
        Counts.
    exog : array_like, shape (n, k)
        Design. An intercept is not added; see ``statsmodels.api.add_constant``.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is maximum likelihood. By default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    offset : array_like, shape (n,), optional
        Added to the linear predictor.
    exposure : array_like, shape (n,), optional
        Positive; its logarithm is added to the linear predictor.
    freq_weights, var_weights, groups : array_like, shape (n,), optional
        See `RRMGLM`.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections; see `RRMGLM`.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np, statsmodels.api as sm
    >>> from rrmstats import RRMPoisson
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(300)
    >>> y = rng.poisson(np.exp(1 + 0.5 * x))
    >>> y[:20] = 100
    >>> RRMPoisson(y, sm.add_constant(x), eps_bar=0.1).fit().params.round(1)
    array([1. , 0.5])
    """

    def __init__(
        self,
        endog: ArrayLike,
        exog: ArrayLike | None = None,
        eps_bar: float | str = "auto",
        *,
        eps_bar_max: float = EPS_BAR_MAX,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        freq_weights: ArrayLike | None = None,
        var_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        if "family" in kwargs:
            raise TypeError("RRMPoisson has no family=; use RRMGLM for another family or link")
        super().__init__(
            endog,
            exog,
            eps_bar,
            eps_bar_max=eps_bar_max,
            family=families.Poisson(),
            offset=offset,
            exposure=exposure,
            freq_weights=freq_weights,
            var_weights=var_weights,
            groups=groups,
            missing=missing,
            persist=persist,
            **kwargs,
        )
        self._init_keys = [key for key in self._init_keys if key != "family"]
