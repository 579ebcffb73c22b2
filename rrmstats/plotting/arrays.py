"""Numbers that pictures show, as functions of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from rrmstats.plotting.offers import Array

Counts = npt.NDArray[np.integer[Any]]
# An axis is compressed where values are this many times as far out as those that it should show,
# which are taken to be this far out at least.
FAR_OUT, LEAST_WIDTH = 4.0, 3.0
# Least distance of its ticks, relative to its length.
LEAST_GAP = 0.08
# Bins of a histogram.
MOST_BINS = 200


def varying_columns(exog: Array) -> Counts:
    """Return the columns of a design that are not constant."""
    return np.flatnonzero(np.ptp(exog, axis=0) > 0)


def predictor_column(exog: Array, names: Sequence[str], exog_idx: int | str | None) -> int:
    """Return the column of a predictor that is given by name or position; None if it varies alone.

    Parameters
    ----------
    exog : ndarray, shape (n, k)
    names : sequence of str, length k
    exog_idx : int, str or None
    """
    varying = varying_columns(exog)
    found = ", ".join(names[j] for j in varying) or "none"
    if exog_idx is None:
        if len(varying) != 1:
            raise ValueError(
                f"plot_fit needs one predictor, got {found}; choose one by exog_idx=, or use "
                "plot_diagnostics"
            )
        return int(varying[0])
    chosen = [j for j in varying if exog_idx in (names[j], int(j))]
    if not chosen:
        raise ValueError(
            f"exog_idx must be one of the predictors {found}, or its position among "
            f"{', '.join(names)}; got {exog_idx!r}"
        )
    return int(chosen[0])


def typical_rows(exog: Array, weights: Array, column: int, values: Array) -> Array:
    """Return rows of a design with values of one column, the others at their weighted means."""
    rows = np.repeat((weights @ exog)[None], len(values), axis=0)
    rows[:, column] = values
    return rows


def plain(name: str) -> str:
    """Return a name from the data that matplotlib writes as it is: no `$` begins a formula."""
    return name.replace("$", r"\$")


def variable_positions(variables: Iterable[int | str], names: Sequence[str]) -> list[int]:
    """Return the positions of two different variables given by position or name."""
    given = list(variables)
    known = [v in names if isinstance(v, str) else 0 <= v < len(names) for v in given]
    numbers = [names.index(v) if isinstance(v, str) else int(v) for v in given if all(known)]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"variables must be two of {', '.join(names)}, got {given!r}")
    return numbers


def least_squares_params(exog: Array, endog: Array, freq_weights: Array | None) -> Array:
    """Return the least squares coefficients, shape (k,)."""
    root = np.ones(len(endog)) if freq_weights is None else np.sqrt(freq_weights)
    return np.linalg.lstsq(exog * root[:, None], endog * root, rcond=None)[0]


def classical_moments(data: Array, freq_weights: Array | None) -> tuple[Array, Array]:
    """Return the mean, shape (d,), and covariance, shape (d, d), of all rows."""
    count = np.ones(len(data)) if freq_weights is None else freq_weights
    total = count.sum()
    mean = count @ data / total
    centered = data - mean
    return mean, centered.T @ (count[:, None] * centered) / max(total - 1, 1)


def classical_variances(data: Array, demean: bool, freq_weights: Array | None) -> Array:
    """Return the variances along the classical components, largest first, shape (d,)."""
    mean, cov = classical_moments(data, freq_weights)
    values = np.linalg.eigvalsh(cov if demean else cov + np.outer(mean, mean))
    return np.maximum(values[::-1], 0.0)


def distances_from(mean: Array, cov: Array, data: Array) -> Array:
    """Return Mahalanobis distances of the rows of data, shape (n,); `cov` may be singular."""
    unit = np.sqrt(np.diag(cov))
    unit = np.where(unit > 0, unit, 1.0)
    u = (data - mean) / unit
    inverse = np.linalg.pinv(cov / np.outer(unit, unit), hermitian=True)
    return np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", u, inverse, u), 0.0))


def ellipse(mean: Array, cov: Array, radius: float, count: int = 200) -> Array:
    """Return points at a given Mahalanobis distance from a mean, shape (count, 2)."""
    values, vectors = np.linalg.eigh(cov)
    angle = np.linspace(0, 2 * np.pi, count)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    return mean + radius * (circle * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def normal_quantiles(values: Array) -> Array:
    """Return the standard normal quantile at the rank of each value, shape (n,)."""
    n = len(values)
    quantiles = np.empty(n)
    quantiles[np.argsort(values, kind="stable")] = norm.ppf((np.arange(n) + 0.5) / n)
    return quantiles


def reliability(probability: Array, labels: Array, bins: int) -> tuple[Array, Array, Counts]:
    """Return mean probabilities, shares of ones and sizes of groups of similar probability.

    Groups are of about equal size; rows of equal probability are in the same group.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, bins + 1)))
    group = np.searchsorted(edges[1:-1], probability, side="left")
    count = np.bincount(group)
    used = count > 0
    mean = np.bincount(group, probability)[used] / count[used]
    return mean, np.bincount(group, labels)[used] / count[used], count[used]


def wilson_interval(share: Array, count: Counts, level: float = 0.95) -> tuple[Array, Array]:
    """Return the lower and upper confidence limits of shares by Wilson's method."""
    z = norm.ppf((1 + level) / 2)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)


def axis_width(good: Array, values: Array) -> float:
    """Return the width within which an axis is linear; infinite where it is so everywhere.

    Parameters
    ----------
    good : ndarray, shape (p,)
        Values that the axis should show well.
    values : ndarray, shape (n,)
        All values.
    """
    width = max(float(np.abs(good).max()), LEAST_WIDTH)
    return width if np.abs(values).max() > FAR_OUT * width else np.inf


def axis_places(values: Array, width: float, inverse: bool = False) -> Array:
    """Return where values are on an axis that is logarithmic beyond a width; or values there."""
    if np.isinf(width):
        return values
    return width * np.sinh(values / width) if inverse else width * np.arcsinh(values / width)


def compressed_ticks(low: float, high: float, width: float) -> Array:
    """Return round numbers for an axis that is logarithmic beyond a width, well apart on it.

    Examples
    --------
    >>> from rrmstats.plotting.arrays import compressed_ticks
    >>> compressed_ticks(-3.0, 60.0, 3.0)
    array([-2.,  0.,  2.,  5., 10., 20., 50.])
    """
    ends = axis_places(np.array([low, high]), width)
    gap = LEAST_GAP * float(ends[1] - ends[0])
    powers = 10.0 ** np.arange(np.ceil(np.log10(max(-low, high, 10.0))) + 1)
    round_numbers = np.sort(np.outer(powers, (1.0, 2.0, 5.0)).ravel())
    kept = [0.0]
    for side in (-1, 1):
        last = 0.0
        for value in side * round_numbers:
            place = float(axis_places(np.array(value), width))
            if low <= value <= high and abs(place - last) >= gap:
                kept.append(value)
                last = place
    return np.sort([value for value in kept if low <= value <= high])


def bin_edges(values: Array, flagged: npt.NDArray[np.bool_]) -> Array:
    """Return the edges of bins of one width for all values, by Scott's rule for those not flagged.

    Parameters
    ----------
    values : ndarray, shape (n,)
    flagged : ndarray of bool, shape (n,)
    """
    good = values if flagged.all() else values[~flagged]
    low, high = float(values.min()), float(values.max())
    width = 3.49 * float(good.std()) * len(values) ** (-1 / 3)
    if not width > 0:
        return np.linspace(low - 0.5, high + 0.5, 11)
    count = min(int(np.ceil((high - low) / width)) + 1, MOST_BINS)
    first = low - width / 2
    if low >= 0:  # distances
        first = max(first, 0.0)
    return first + np.arange(count + 1) * max(width, (high - low) / (count - 1))


def golden_jitter(count: int) -> Array:
    """Return numbers between -0.5 and 0.5 that spread neighbors apart, shape (count,)."""
    return np.arange(count) * ((np.sqrt(5) - 1) / 2) % 1 - 0.5
