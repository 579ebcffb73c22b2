"""Principal components by robust risk minimization."""

from __future__ import annotations

from copy import copy
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.entropy import Array
from rrmstats.losses.components import ComponentsProblem
from rrmstats.losses.matrices import MAD_UNIT, spanned, weighted_median
from rrmstats.models.base import RRMModel, counted, same_signature
from rrmstats.models.checks import EPS_BAR_MAX
from rrmstats.models.multivariate import RRMMultivariate
from rrmstats.results.components import RRMPCAResults, RRMPCAResultsWrapper, component_names


class RRMPCA(RRMMultivariate[ComponentsProblem, RRMPCAResults]):
    """Principal components when some of the rows may be bad.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Observations.
    n_components : int or float
        Number of components, less than d; or, in (0, 1), the fraction of the variance that they
        are to explain.
    eps_bar : float or "auto", optional
        Upper bound on the share of bad rows, in [0, 1). 0 is the classical analysis. By
        default it is
        chosen from the data: the share of bad rows that is found, and a margin.
    eps_bar_max : float, optional
        Largest value that "auto" may choose.
    demean : bool, optional
        False for components around the origin, the paper's case.
    standardize : bool, optional
        Divide each variable by a robust scale first.
    freq_weights : array_like, shape (n,), optional
        How often each row counts: a row of weight 2 counts as two rows.
    groups : array_like, shape (n,), optional
        Labels of clusters that may be bad as a whole: each group has one weight. In a formula
        also the name of a column.
    missing : {"none", "drop", "raise"}, optional
        What to do with missing values.
    persist : bool or "auto", optional
        For Dask collections: whether partitions are computed once and kept in the memory of the
        workers, or read again in each pass; by default kept where they fit, small data in this
        process.
    **kwargs
        What statsmodels' formula interface passes on, nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats import RRMPCA
    >>> rng = np.random.default_rng(0)
    >>> t = rng.standard_normal(100)
    >>> z = np.c_[t, 2 * t] + 0.1 * rng.standard_normal((100, 2))
    >>> z[:20] = [10, -10] + rng.standard_normal((20, 2))
    >>> RRMPCA(z, 1, eps_bar=0.3).fit().loadings.round(1).ravel()
    array([0.4, 0.9])
    """

    _results_class = RRMPCAResults
    _wrapper_class = RRMPCAResultsWrapper
    _no_predictions = "results have transform(new) for scores of new rows, and reconstruct()"

    def __init__(
        self,
        data: ArrayLike,
        n_components: float = 1,
        eps_bar: float | str = "auto",
        *,
        eps_bar_max: float = EPS_BAR_MAX,
        demean: bool = True,
        standardize: bool = False,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        missing: str = "none",
        persist: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            data,
            eps_bar,
            eps_bar_max=eps_bar_max,
            freq_weights=freq_weights,
            groups=groups,
            missing=missing,
            persist=persist,
            **kwargs,
        )
        d = self.endog.shape[1]
        if d < 2:
            raise ValueError("principal components need two or more variables, got one")
        whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
        number = isinstance(n_components, int | float | np.number)
        if not (number and (1 <= n_components < d if whole else 0 < n_components < 1)):
            raise ValueError(
                f"n_components must be a whole number from 1 to {d - 1}, fewer than the {d} "
                f"variables, or a fraction of the variance in (0, 1), got {n_components!r}"
            )
        self.n_components, self.demean, self.standardize = n_components, demean, standardize
        self._init_keys.extend(["n_components", "demean", "standardize"])
        if whole:
            self.data.param_names = component_names(int(n_components))

    def _traits(self) -> list[str]:
        if self.n_components >= 1:
            asked = counted(int(self.n_components), "component")
        else:
            asked = f"components for {self.n_components:.0%} of the variance"
        return [*super()._traits(), asked]

    def column_unit(self) -> Array:
        """Return what each variable is divided by, shape (d,)."""
        if not self.standardize:
            return np.ones(self.endog.shape[1])
        counts = self.freq_weights
        if counts is None:
            counts = np.broadcast_to(1.0, (len(self.endog),))
        center = weighted_median(self.endog, counts)
        unit = MAD_UNIT * weighted_median(np.abs(self.endog - center), counts)
        if not (unit > 0).all():
            names = [name for name, u in zip(self.variables, unit, strict=True) if not u > 0]
            raise ValueError(
                f"standardize=True needs variables that vary, but most values are the same in "
                f"{', '.join(names)}; drop them or use standardize=False"
            )
        return unit

    def problem(self) -> ComponentsProblem:
        """Return the squared distances to a subspace."""
        self._check_span()
        return ComponentsProblem(
            self.endog, int(self.n_components), self.demean, self.column_unit()
        )

    def _check_span(self) -> None:
        """Raise where the rows that count span fewer dimensions than there are components."""
        counts, q = self.freq_weights, int(self.n_components)
        used = np.broadcast_to(1.0, (len(self.endog),)) if counts is None else np.sign(counts)
        if used.sum() < q + self.demean:
            return  # which is told where rows are counted
        found = spanned(self.endog, used, self.demean, q)
        if found >= q:
            return
        rows = "the rows" if counts is None else "the rows of positive frequency weight"
        if found == 0:
            raise ValueError(f"{rows} are all the same, and have no components; add other rows")
        raise ValueError(
            f"n_components={q} is too large: {rows} span {counted(found, 'dimension')}; use "
            f"n_components={found} or fewer"
        )

    @same_signature(RRMModel.fit)
    def fit(self, **kwargs: Any) -> RRMPCAResults:
        """Minimize the robust risk over the subspace and the weights together.

        Where `n_components` is a fraction, components are added until they explain it.

        Parameters
        ----------
        steps, n_starts, rng, tol, maxiter, accelerate : optional
            As `RRMOLS.fit` takes them; `start_params` is refused.
        cov_type, cov_kwds, use_t, stability : optional
            As `RRMOLS.fit` takes them.

        Returns
        -------
        RRMPCAResults

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> len(rrmstats.RRMPCA(hbk, 0.6, eps_bar=0.2).fit().eigenvals)
        2
        """
        if self.n_components >= 1:
            return super().fit(**kwargs)
        most = min(self.endog.shape[1], len(self.endog)) - 1
        for q in range(1, most + 1):
            results = self._with_components(q).fit(**kwargs)
            if results.explained_variance_ratio.sum() >= self.n_components:
                break
        return results

    def _path_model(self) -> RRMPCA:
        """Return the model with the number of components that it has at its own `eps_bar`."""
        if self.n_components >= 1:
            return self
        return self._with_components(len(self.fit().eigenvals))

    def _with_components(self, q: int) -> RRMPCA:
        model = copy(self)
        model.data, model.n_components = copy(self.data), q
        model.data.param_names = component_names(q)
        return model

    def _start_theta(self, problem: ComponentsProblem, start_params: ArrayLike) -> NoReturn:
        raise ValueError("RRMPCA takes no start_params; use n_starts and rng")
