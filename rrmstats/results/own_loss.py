"""Results of a user's own loss."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.stats import chi2

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.losses.numerical import RoughEstimate
from rrmstats.results.base import RRMResults, refused

NO_ERRORS = (
    "The losses are not smooth, so that there are no standard errors by the sandwich; "
    "cov_type='bootstrap' has some."
)
NOT_CORRECTED = (
    "The parameters are those of least risk. On clean data the weights prefer rows of small loss, "
    "so that parameters of scale come out too small."
)


class RRMCustomResults(RRMResults):
    """Results of a loss of your own; see `RRMResults` for what all models share.

    Attributes
    ----------
    params : Series or ndarray, shape (k,)
        Parameters of least risk.
    bse : Series or ndarray, shape (k,)
        Standard errors by the sandwich; NaN where the losses are not smooth.
    smooth : bool
        Whether the losses have two derivatives; False where they were found to have kinks.

    Examples
    --------
    >>> import numpy as np, rrmstats
    >>> z = np.r_[np.random.default_rng(0).standard_normal(90), np.full(10, 50.0)]
    >>> res = rrmstats.custom(lambda theta: (z - theta[0]) ** 2, [z.mean()], eps_bar=0.2).fit()
    >>> res.smooth, int(res.outliers()[90:].sum())
    (True, 10)
    """

    _title = "Robust Risk Minimization: Loss of Your Own"
    _meaningless: ClassVar[dict[str, str]] = {
        **refused(likelihood="llf aic bic info_criteria"),
        "fittedvalues": "losses tell nothing about responses; see params and losses",
    }

    def __init__(self, model: Any, estimate: Estimate, *args: Any) -> None:
        super().__init__(model, estimate, *args)
        self.smooth = not isinstance(estimate, RoughEstimate)

    def _distances(self) -> Array:
        return loss_distances(np.asarray(self.losses), self._base)

    def _flags(self, level: float) -> np.ndarray:
        losses = np.asarray(self.losses)
        return losses > loss_cutoff(losses, level, self._base)

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self.eps_bar > 0:
            notes.append(NOT_CORRECTED)
        if not self.smooth and self.bootstrap is None:
            notes.append(NO_ERRORS)
        return notes


def loss_scale(losses: Array, base: Array | None = None) -> tuple[float, float]:
    """Return the median of losses, and a spread that is 1 for halves of chi-square(1) variables.

    Parameters
    ----------
    losses : ndarray, shape (n,)
    base : ndarray, shape (n,), optional
        Frequency weights that sum to one.
    """
    # Up to half of the rows may be bad, so that only the lower half tells.
    low, middle = (_quantile(losses, level, base) for level in (0.25, 0.5))
    unit = 0.5 * float(chi2.ppf(0.5, 1) - chi2.ppf(0.25, 1))
    return middle, (middle - low) / unit


def loss_distances(losses: Array, base: Array | None = None) -> Array:
    """Return losses above their median in units of their spread, shape (n,)."""
    middle, spread = loss_scale(losses, base)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(losses == middle, 0.0, (losses - middle) / spread)


def loss_cutoff(losses: Array, level: float, base: Array | None = None) -> float:
    """Return the loss beyond which a row is an outlier.

    The quantile of losses that are a shift of halves of chi-square(1) variables in any unit, as
    squared residuals and deviances are. Other losses have other tails: of exponential ones fewer
    are flagged.

    Parameters
    ----------
    losses : ndarray, shape (n,)
    level : float
    base : ndarray, shape (n,), optional
        Frequency weights that sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.results.own_loss import loss_cutoff
    >>> losses = np.random.default_rng(0).standard_normal(10_000) ** 2
    >>> bool(abs(np.mean(losses > loss_cutoff(losses, 0.975)) - 0.025) < 0.005)
    True
    """
    middle, spread = loss_scale(losses, base)
    return middle + spread * 0.5 * float(chi2.ppf(level, 1) - chi2.ppf(0.5, 1))


def _quantile(values: Array, level: float, base: Array | None) -> float:
    """Return a quantile of values; a row of frequency weight 2 counts as two rows."""
    if base is None:
        return float(np.quantile(values, level))
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(np.cumsum(base[order]), level * (1 - 1e-12))])
