"""How far out the residuals of good rows lie in a first step, for samples of any size."""

from __future__ import annotations

import numpy as np
from scipy.stats import t

from rrmstats.core.consistency import order_efficiency
from rrmstats.core.design import inverse_root
from rrmstats.core.entropy import Array
from rrmstats.losses.noise import scale_variance
from rrmstats.losses.residuals import FittedRows, Noise, tilted


def residual_cutoffs(rows: FittedRows, noise: Noise, order: float, level: float) -> Array:
    """Return the size of a residual that a good row exceeds with probability 1 - level, (n,).

    To first order in parameters per good row: the fit to the other rows misses by its own
    standard error, the row draws fit and scale to itself by its influence function, and the scale
    has the degrees of freedom of its variance.

    Parameters
    ----------
    rows : FittedRows
    noise : Noise
    order : float
        Order of the fit on clean data.
    level : float
    """
    good = rows.total * (1 - noise.eps_hat)
    leverage = design_leverage(rows) / good
    out = float(t.ppf((1 + level) / 2, scale_freedom(rows, noise)))
    drawn = leverage * order**1.5 * tilted(out**2, 1.0, order)
    own = noise.order
    grown = own**1.5 * tilted(out**2, 1.0, own) * (own * out**2 - 1) / good
    variance = 1 + leverage / crowded_efficiency(order, rows.params_per_row(good / rows.total))
    return np.sqrt(noise.scale * variance) * out * np.exp(-drawn - 0.5 * grown)


def scale_freedom(rows: FittedRows, noise: Noise) -> float:
    """Return the degrees of freedom of the scale: those of a variance as precise as it is."""
    good = rows.total * (1 - noise.eps_hat)
    return max(2 * good / scale_variance(noise.order), 1.0)


def crowded_efficiency(order: float, params_per_row: float) -> float:
    """Return the efficiency of a fit of an order; all fits are one where rows are exhausted."""
    asymptotic = order_efficiency(order)
    return asymptotic + (1 - asymptotic) * min(params_per_row, 1.0)


def design_leverage(rows: FittedRows) -> Array:
    """Return squared lengths of predictors in the metric of all rows, shape (n,).

    Their mean is the number of parameters. Bad rows count as well: were they left out, the fit
    would be taken to know nothing where only they are, and none of them be flagged.
    """
    reach = rows.problem.exog @ inverse_root(rows.gram(rows.share)).T
    return np.einsum("ni,ni->n", reach, reach)
