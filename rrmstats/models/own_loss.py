"""A user's own loss by robust risk minimization, and the weights alone for one's own loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.base.data import handle_data

from rrmstats.core.entropy import Array, check_eps_bar, entropy_weights
from rrmstats.core.estimate import Estimate
from rrmstats.interchange import as_pandas, as_values, is_dask
from rrmstats.losses.numerical import FunctionLoss, NumericalProblem, RoughEstimate
from rrmstats.models.base import RRMModel, same_signature
from rrmstats.models.checks import AUTO, EPS_BAR_MAX, per_row, warn
from rrmstats.results.labels import Labeled, labeled
from rrmstats.results.own_loss import RRMCustomResults

if TYPE_CHECKING:
    from typing_extensions import Self


def robust_weights(
    losses: ArrayLike, eps_bar: float, freq_weights: ArrayLike | None = None
) -> Labeled:
    """Return the weights of least risk of given losses, for a training loop of your own.

    Parameters
    ----------
    losses : array_like, shape (n,)
        Losses of the rows; +inf has weight zero.
    eps_bar : float
        Upper bound on the share of bad rows, in [0, 1).
    freq_weights : array_like, shape (n,), optional
        How often each row counts.

    Returns
    -------
    ndarray or Series, shape (n,)
        Weights that sum to one, with the index of the losses where they are a Series.

    Examples
    --------
    >>> import rrmstats
    >>> rrmstats.robust_weights([0.1, 0.2, 0.3, 50.0], eps_bar=0.25).round(2)
    array([0.34, 0.33, 0.33, 0.  ])
    """
    check_in_memory(losses=losses, freq_weights=freq_weights)
    losses, freq_weights = as_pandas(losses), as_values(freq_weights)
    values = np.asarray(losses, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"losses must be one number per row, shape (n,), got {values.shape}")
    found = entropy_weights(values, eps_bar, freq_weights=freq_weights)
    return labeled(found.weights, losses.index if isinstance(losses, pd.Series) else None)


class RRMCustom(RRMModel[NumericalProblem, RRMCustomResults]):
    """A loss of your own, when some of the rows may be bad.

    See `rrmstats.custom` for the parameters.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> z = np.r_[np.random.default_rng(0).standard_normal(90), np.full(10, 50.0)]
    >>> model = rrmstats.RRMCustom(lambda theta: np.cosh(z / 50 - theta[0]), [0.0], eps_bar=0.2)
    >>> bool(abs(model.fit().params[0]) < 0.01)
    True
    """

    _results_class = RRMCustomResults
    _refusals: ClassVar[dict[str, str]] = {
        "from_formula": "a loss of your own takes no formula; use rrmstats.custom",
        "predict": "a loss of your own has no predictions; use params",
    }
    #: The loss has no design.
    exog = None
    #: Name of what is minimized.
    endog_names = "loss"
    #: Why fits with different bounds cannot be compared.
    incomparable = "it needs a second step, which a loss of your own does not have"

    def __init__(
        self,
        losses: Callable[[Array], ArrayLike],
        theta0: ArrayLike,
        eps_bar: float | str | None = None,
        *,
        gradients: Callable[[Array], ArrayLike] | None = None,
        hessian: Callable[[Array, Array], ArrayLike] | None = None,
        weighted_fit: Callable[[Array], ArrayLike] | None = None,
        smooth: bool = True,
        names: Sequence[str] | None = None,
        freq_weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        if isinstance(eps_bar, str) and eps_bar == AUTO:
            raise NotImplementedError(
                f"eps_bar='auto' does not work here: {self.incomparable}. Give a number, and try "
                "others"
            )
        check_eps_bar(eps_bar)
        for name, given in (("losses", losses), ("gradients", gradients), ("hessian", hessian)):
            if not (callable(given) or (given is None and name != "losses")):
                raise TypeError(f"{name} must be a function of theta, got {type(given).__name__}")
        self.start = np.array(theta0, dtype=float)
        if self.start.ndim != 1 or not self.start.size or not np.isfinite(self.start).all():
            raise ValueError(
                f"theta0 must be a vector of finite numbers, got shape {self.start.shape}"
            )
        at_start = losses(self.start.copy())
        check_in_memory(losses=at_start, freq_weights=freq_weights, groups=groups)
        at_start = as_pandas(at_start)
        labels = at_start.index if isinstance(at_start, pd.Series) else None
        values = np.asarray(at_start, dtype=float)
        check_losses(values, None, self.start)
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values))
            raise ValueError(
                f"losses(theta0) is NaN or infinite in {len(bad)} rows, such as row {bad[0]}; "
                "start from a theta0 where all are finite, and fix or drop bad rows"
            )
        self._functions = (losses, gradients, hessian, weighted_fit)
        self.smooth, self.endog = bool(smooth), values
        self._init_keys, self._data_attr = [], ["endog"]
        counts = per_row("freq_weights", as_values(freq_weights), len(values))
        if groups is not None and not smooth:
            raise NotImplementedError(
                "groups= needs losses with two derivatives; smooth ones that are close, such as "
                "Huber's for absolute values, have them"
            )
        named = labels is not None or names is not None or isinstance(theta0, pd.Series)
        self.data = handle_data(pd.Series(values, index=labels) if named else values, None)
        self.freq_weights = counts
        self._set_options(eps_bar, EPS_BAR_MAX, groups, freq_weights=counts)
        self.data.param_names = _names(names, theta0, len(self.start))

    def problem(self) -> NumericalProblem:
        """Return the losses, with what is missing found numerically."""
        losses, gradients, hessian, weighted_fit = self._functions
        n, k = len(self.endog), len(self.start)

        def checked(theta: Array) -> Array:
            values = np.asarray(as_values(losses(theta)), dtype=float)
            check_losses(values, n, theta)
            return values

        kind = NumericalProblem if self.smooth else FunctionLoss
        return kind(  # type: ignore[return-value]  # those with kinks have no derivatives
            checked,
            self.start,
            n,
            weighted_fit,  # type: ignore[arg-type]  # its answer is checked
            gradients=_shaped("gradients", gradients, (n, k)),
            hessian=_shaped("hessian", hessian, (k, k)),
        )

    def _warn(self, estimate: Estimate) -> None:
        super()._warn(estimate)
        if self.smooth and isinstance(estimate, RoughEstimate):
            warn(
                "the losses have kinks, so that they have no second derivatives: Newton's method "
                "may stop short of the minimum, and there are no standard errors. Use "
                "smooth=False, and cov_type='bootstrap' for standard errors",
                UserWarning,
            )

    def _part(self, rows: np.ndarray) -> Self:
        """Return the model in which the other rows do not count: losses are those of all rows."""
        part = copy(self)
        part.freq_weights = np.zeros(len(self.endog))
        part.freq_weights[rows] = self.row_counts[rows]
        return part


@same_signature(RRMCustom)
def custom(*args: Any, **kwargs: Any) -> RRMCustom:
    """Return a loss of your own as a model that gives bad rows little weight; call its `fit`.

    Parameters
    ----------
    losses : callable
        ``losses(theta)`` returns the loss of each of the n rows at parameters of shape (k,). NaN
        and +inf mean that theta is outside of the domain of a row. A Series labels the rows.
    theta0 : array_like, shape (k,)
        Parameters to start from, with finite losses. A Series names them.
    eps_bar : float
        Upper bound on the share of bad rows, in [0, 1).
    gradients : callable, optional
        ``gradients(theta)`` returns the gradient of each loss, shape (n, k); by default central
        differences.
    hessian : callable, optional
        ``hessian(theta, weights)`` returns the weighted sum of the Hessians, shape (k, k); by
        default differences.
    weighted_fit : callable, optional
        ``weighted_fit(weights)`` returns the theta of least weighted loss; by default Newton's
        method, or scipy's Nelder-Mead where the losses are not smooth.
    smooth : bool, optional
        Whether the losses have two derivatives. Without them there are no standard errors; a fit
        that finds kinks warns.
    names : sequence of str, optional
        Names of the parameters.
    freq_weights : array_like, shape (n,), optional
        How often each row counts.
    groups : array_like, shape (n,), optional
        Labels of groups of rows that are bad as a whole: each has one weight. They take
        smooth losses.

    Returns
    -------
    RRMCustom

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> z = np.r_[np.random.default_rng(0).standard_normal(90), np.full(10, 50.0)]
    >>> res = rrmstats.custom(lambda theta: (z - theta[0]) ** 2, [z.mean()], eps_bar=0.2).fit()
    >>> bool(abs(res.params[0]) < 0.3), int(res.outliers()[90:].sum())
    (True, 10)
    """
    return RRMCustom(*args, **kwargs)


def check_in_memory(**given: Any) -> None:
    """Raise on Dask collections, whose partitions a function of all rows cannot use."""
    for name, values in given.items():
        if is_dask(values):
            raise TypeError(
                f"{name} must be in memory for a loss of your own, got a Dask "
                f"{type(values).__name__}; give {name}.compute(), or use a model of rrmstats, "
                "which reads partitions one at a time"
            )


def check_losses(values: Array, n: int | None, theta: Array) -> None:
    """Raise where losses are not one number per row, or one is minus infinity."""
    if values.ndim != 1 or (n is not None and len(values) != n) or not len(values):
        wanted = "one number per row, shape (n,)" if n is None else f"{n} numbers, one per row"
        raise ValueError(f"losses(theta) must return {wanted}, got shape {values.shape}")
    if (values == -np.inf).any():
        raise ValueError(
            f"losses(theta) is -inf in row {int(np.argmin(values))} at theta = {theta}; a loss "
            "must be bounded below, or the risk has no minimum"
        )


def _names(names: Sequence[str] | None, theta0: Any, k: int) -> list[str]:
    """Return the names of the parameters: those given, of a Series, or numbers."""
    if names is None:
        named = isinstance(theta0, pd.Series)
        names = theta0.index if named else [f"theta_{i}" for i in range(k)]
    if len(names) != k:
        raise ValueError(f"names must be {k}, one per parameter, got {len(names)}")
    return [str(name) for name in names]


def _shaped(name: str, function: Any, shape: tuple[int, int]) -> Any:
    """Return a function whose answers have a shape, or None."""
    if function is None:
        return None

    def checked(*args: Array) -> Array:
        found = np.asarray(function(*args), dtype=float)
        if found.shape != shape:
            raise ValueError(f"{name} must return shape {shape}, got {found.shape}")
        return found

    return checked
