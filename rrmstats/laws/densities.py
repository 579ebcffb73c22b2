"""How residuals or distances of good and bad rows are distributed, under a Gaussian mixture."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, gennorm, ncx2
from scipy.stats import f as f_distribution

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Good
from rrmstats.laws.gaussian import Mixtures, Part, Rows, seen
from rrmstats.laws.gaussian_choice import SHORT_SHAPES, generalized_normal


class Densities(NamedTuple):
    """Densities of good and of bad rows, each times its share.

    Attributes
    ----------
    good, bad : ndarray, shape (m,)
    """

    good: Array
    bad: Array

    def per(self, unit: float) -> Densities:
        """Return the densities of values that are divided by a unit."""
        return Densities(self.good * unit, self.bad * unit)


def residual_densities(rows: Rows, mixture: Mixtures, at: Array) -> Densities:
    """Return the densities of residuals of one dimension, the mean over those of all rows.

    Parameters
    ----------
    rows : Rows
    mixture : Mixtures
        A batch of one.
    at : ndarray, shape (m,)
        Residuals in the units of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.densities import residual_densities
    >>> from rrmstats.laws.gaussian import PLAIN, Rows, started
    >>> rows = Rows(np.zeros((9, 1)), np.ones((9, 1)), np.ones(9))
    >>> plain = started(rows, [(np.zeros((1, 1)), np.ones((1, 1)))], [PLAIN], 0.0)
    >>> found = residual_densities(rows, plain, np.array([0.0, 1.0]))
    >>> found.good.round(3), found.bad
    (array([0.399, 0.242]), array([0., 0.]))
    """
    fitted, counts = rows.fitted(mixture.coef)[0], rows.counts / rows.counts.sum()
    found = np.zeros((3, len(at)))
    for i, value in enumerate(at):
        view = seen(replace(rows, data=fitted + value, frame=rows.whole), mixture)
        found[:, i] = view.probabilities[:, 0] * np.exp(view.log_density[0]) @ counts
    if mixture.noise(Good.SHORT_TAILS)[0]:
        found[0] = short_tailed_density(rows.data[:, 0] - fitted[:, 0], counts, at)
    return Densities(found[0], found[1] + found[2])


def short_tailed_density(resid: Array, counts: Array, at: Array) -> Array:
    """Return the generalized normal density of best fit to residuals (n,), shape (m,).

    Its tails are no heavier than normal ones; `counts` sum to one.
    """
    unit = np.sqrt(counts @ resid**2)
    size = np.abs(resid) / unit

    shape, scale, _ = generalized_normal(size[None], counts, SHORT_SHAPES)
    return np.asarray(gennorm.pdf(at, shape, scale=scale * unit))


def distance_densities(rows: Rows, mixture: Mixtures, at: Array) -> Densities:
    """Return the densities of distances from the fit, in the metric of the scatter.

    Squared distances of good rows follow a chi-square distribution, or with heavy tails an F
    distribution; those of wide rows an F distribution, those of a cluster one that is not
    central, and those of rows whose scatter has another shape about a chi-square
    distribution with fewer degrees of freedom.

    Parameters
    ----------
    rows : Rows
        Of one dimension or more, whose shares of bad rows are the same everywhere.
    mixture : Mixtures
        A batch of one.
    at : ndarray, shape (m,)
        Distances, not their squares.
    """
    d, shares = rows.freedom, mixture.share[0, :, 0]

    def spread_out(df: float, size: float) -> Array:
        """Return the density of squared distances of rows around the fit."""
        if np.isinf(df):
            return np.asarray(chi2.pdf(at**2 / size, d)) / size
        return np.asarray(f_distribution.pdf(at**2 / (size * d), d, df)) / (size * d)

    def of_part(part: int) -> Array:
        """Return the density of squared distances of a part of the bad rows."""
        size, center = float(mixture.size[0, part]), mixture.center[0, part]
        if mixture.has(Part.WIDE)[0, part]:
            return spread_out(1.0, size)
        if mixture.has(Part.SHAPED)[0, part]:
            overall = rows.whole.overall
            assert overall is not None
            sizes = size * np.linalg.eigvals(np.linalg.solve(mixture.scatter[0], overall)).real
            unit = float((sizes**2).sum() / sizes.sum())  # (Box)
            return np.asarray(chi2.pdf(at**2 / unit, sizes.sum() / unit)) / unit
        away = float(rows.measured(center[None, None], mixture.scatter).square[0, 0]) / size
        return spread_out(np.inf, size) if away == 0 else ncx2.pdf(at**2 / size, d, away) / size

    with np.errstate(all="ignore"):  # far away densities are zero
        good = (1 - shares.sum()) * spread_out(float(mixture.df[0]), 1.0)
        parts = [share * of_part(part) for part, share in enumerate(shares) if share > 0]
        bad = np.sum([np.zeros_like(at), *parts], axis=0)
        good, bad = np.nan_to_num(2 * at * np.stack([good, bad]), nan=0.0, posinf=0.0)
    return Densities(good, bad)
