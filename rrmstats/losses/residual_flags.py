"""How far out the residuals of good rows lie, for samples of any size."""

from __future__ import annotations

import numpy as np
from scipy.stats import t

from rrmstats.core.consistency import order_efficiency
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.losses.noise import scale_variance
from rrmstats.losses.regression_ladder import CROWDED, EXHAUSTED, crowding
from rrmstats.losses.residuals import FittedRows, NoiseRung, clean_scale, tilted

# What the scale of clean data counts for where rows are very few, and less for efficient fits.
MOST_DOUBT, LESS_DOUBT = 0.7, 0.4


def residual_cutoffs(rows: FittedRows, rung: NoiseRung, level: float) -> Array:
    """Return the size of a residual that a good row exceeds with probability 1 - level.

    To first order in parameters per good row: the fit to the other rows misses by its own
    standard error, the row draws fit and scale to itself by its influence function, and the scale
    has the degrees of freedom of its variance.

    Parameters
    ----------
    rows : FittedRows
    rung : NoiseRung
        Parameters and scale; `fitted` is the order of the fit.
    level : float

    Returns
    -------
    ndarray, shape (n,)
    """
    good = rows.total * (1 - rung.eps_hat)
    leverage = design_leverage(rows) / good
    out = float(t.ppf((1 + level) / 2, scale_freedom(rows, rung)))
    drawn = leverage * rung.fitted**1.5 * tilted(out**2, 1.0, rung.fitted)
    grown = rung.order**1.5 * tilted(out**2, 1.0, rung.order) * (rung.order * out**2 - 1) / good
    variance = 1 + leverage / crowded_efficiency(
        rung.fitted, rows.params_per_row(good / rows.total)
    )
    doubt = fitted_noise(rows, rung.fitted)
    scale = rung.scale ** (1 - doubt) * max(clean_scale(rows), rung.scale) ** doubt
    return np.sqrt(scale * variance) * out * np.exp(-(1 - doubt) * (drawn + 0.5 * grown))


def scale_freedom(rows: FittedRows, rung: NoiseRung) -> float:
    """Return the degrees of freedom of the scale: those of a variance as precise as it is."""
    good = rows.total * (1 - rung.eps_hat)
    return max(2 * good / scale_variance(rung.order), 1.0)


def crowded_efficiency(order: float, params_per_row: float) -> float:
    """Return the efficiency of a fit of an order; all fits are one where rows are exhausted."""
    asymptotic = order_efficiency(order)
    return asymptotic + (1 - asymptotic) * min(params_per_row, 1.0)


def design_leverage(rows: FittedRows) -> Array:
    """Return squared lengths of predictors in the metric of all rows, shape (n,).

    Their mean is the number of parameters. Corrupted rows count as well: were they left out, the
    fit would be taken to know nothing where only they are, and none of them be flagged.
    """
    reach = rows.problem.exog @ inverse_root(rows.gram(rows.share)).T
    return np.einsum("ni,ni->n", reach, reach)


def fitted_noise(rows: FittedRows, order: float) -> float:
    """Return how far the scale may be that of noise that was fitted, from 0 to 1.

    With few rows per parameter a robust scale may be, and the scale of clean data, which
    corrupted rows inflate, takes its place by degrees. With very few rows the scale is that of an
    efficient fit, and the doubt is about the order of the fit whose residuals are judged.
    """
    found = crowding(rows)
    if found > EXHAUSTED:
        return MOST_DOUBT - LESS_DOUBT * order_efficiency(order)
    return float(np.clip(0.5 * (found / CROWDED - 1), 0.0, 1.0))
