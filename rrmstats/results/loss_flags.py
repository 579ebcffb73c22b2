"""Flags of rows by their losses alone, where no distribution of them is known."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from rrmstats.core.entropy import Array

# Quantiles of the losses from which their middle and spread are taken: up to half of the rows may
# be corrupted.
LOWER, MIDDLE = 0.25, 0.5


def loss_scale(losses: Array, base: Array | None = None) -> tuple[float, float]:
    """Return the median of losses, and a spread that is 1 for halves of chi-square(1) variables.

    Parameters
    ----------
    losses : ndarray, shape (n,)
    base : ndarray, shape (n,), optional
        Frequency weights that sum to one.
    """
    low, middle = (_quantile(losses, level, base) for level in (LOWER, MIDDLE))
    unit = 0.5 * float(chi2.ppf(MIDDLE, 1) - chi2.ppf(LOWER, 1))
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
    >>> from rrmstats.results.loss_flags import loss_cutoff
    >>> losses = np.random.default_rng(0).standard_normal(10_000) ** 2
    >>> bool(abs(np.mean(losses > loss_cutoff(losses, 0.975)) - 0.025) < 0.005)
    True
    """
    middle, spread = loss_scale(losses, base)
    return middle + spread * 0.5 * float(chi2.ppf(level, 1) - chi2.ppf(MIDDLE, 1))


def _quantile(values: Array, level: float, base: Array | None) -> float:
    """Return a quantile of values; a row of frequency weight 2 counts as two rows."""
    if base is None:
        return float(np.quantile(values, level))
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(np.cumsum(base[order]), level * (1 - 1e-12))])
