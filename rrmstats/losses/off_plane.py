"""Distances of rows from a subspace, free of their part in it, and their degrees of freedom."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.frames import different_rows
from rrmstats.losses.moment_problem import moment_sums
from rrmstats.losses.sizes import Sample
from rrmstats.losses.subspace import SubspaceProblem

# Leverages are not taken to be larger.
MOST_LEVERAGE = 0.9
# Variances off the subspace below this part of the largest are zero.
NO_VARIANCE = 1e-12
# Rows of less weight than this need not show in the variances: bad ones have none.
NO_WEIGHT = 1e-6
# Digits that repeated rows share, in units of the middle distance of rows.
SAME_DIGITS = 9
# Least part of a variance that the tilt is taken to have left of it.
LEAST_LEFT = 0.2


class Moments(NamedTuple):
    """Sums over rows z of weights w, w z and w z z'; see `moment_sums`."""

    mass: float
    first: Array
    second: Array

    def about(self, point: Array) -> Moments:
        """Return the moments of the rows less a point, shape (d,)."""
        cross = np.outer(self.first, point)
        second = self.second - cross - cross.T + self.mass * np.outer(point, point)
        return Moments(self.mass, self.first - self.mass * point, second)

    def gram(self, basis: Array, constant: bool) -> Array:
        """Return the weighted second moments of a constant, if any, and scores on a basis."""
        mean, inner = self.first @ basis / self.mass, basis.T @ self.second @ basis / self.mass
        if not constant:
            return inner
        return np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], inner]])


def off_distances(
    problem: SubspaceProblem,
    point: Array,
    basis: Array,
    tilt: Array,
    sample: Sample,
    moments: Moments | None = None,
) -> tuple[Array, Array]:
    """Return squared distances from a subspace, and those free of their part in the fit, (n,).

    The second are divided by one minus the leverage of the row, as in a regression on its scores
    and a constant. `tilt` are weights of which the subspace is the fit, one per observation, and
    `moments` those of the rows under them, where they are known.
    """
    if moments is None:
        moments = Moments(*row_sums(moment_sums, problem.data - point, sample.share * tilt))
    else:
        moments = moments.about(point)
    square = problem.losses(problem.join(point, basis))
    x = (problem.data - point) @ basis
    gram = moments.gram(basis, problem.demean)
    unit = np.sqrt(np.diag(gram))
    unit = np.where(unit > 0, unit, 1.0)
    inverse = np.linalg.pinv(gram / np.outer(unit, unit), hermitian=True)
    inner = row_map(leverages, x, inverse=inverse / np.outer(unit, unit))
    leverage = tilt * inner / (sample.total * moments.mass)
    return square, square / (1 - np.clip(leverage, 0.0, MOST_LEVERAGE))


def leverages(x: Array, inverse: Array) -> Array:
    """Return x' G^-1 x of rows, shape (n,), with a constant before them where G has one."""
    if len(inverse) > x.shape[1]:
        x = np.c_[np.ones(len(x)), x]
    return np.einsum("ni,ni->n", x @ inverse, x)


def degrees_of_freedom(
    problem: SubspaceProblem,
    place: tuple[Array, Array],
    tilt: Array,
    precision: float,
    sample: Sample,
    codim: int,
) -> float:
    """Return Box's degrees of freedom (tr V)^2 / tr V^2 of the noise off a subspace.

    The variances are freed of the tilt, whose precision adds to theirs, and the trace of their
    squares of what a sample adds to it (Bai and Saranadasa).

    Parameters
    ----------
    problem : SubspaceProblem
    place : tuple of ndarray, shapes (d,) and (d, q)
        Point and basis of the subspace.
    tilt : ndarray, shape (n,)
        Weights, one per observation, and near one for typical rows.
    precision : float
        They fall with exp(-precision * r^2 / 2).
    sample : Sample
    codim : int
        Variables less the dimension of the subspace: the most there can be.
    """
    sums = row_sums(partial(off_sums, *place), problem.data, sample.share, tilt)
    mass, used, square, moment = sums
    values = np.linalg.eigvalsh(moment / mass)
    values = values[values > NO_VARIANCE * values[-1]]
    spanned = len(values) + problem.q
    if spanned < min(int(used) - 1, problem.dim) and _are_many(problem, tilt, spanned + 2):
        codim = max(len(values), 1)
    count = max(float(sample.total * mass**2 / square) - problem.n_params, 2.0)
    values = values / np.maximum(1 - precision * values, LEAST_LEFT)
    total, square = float(values.sum()), float((values**2).sum())
    square = (square - total**2 / count) * count**2 / ((count - 1) * (count + 2))
    return float(np.clip(total**2 / max(square, total**2 / codim), 1.0, codim))


def _are_many(problem: SubspaceProblem, tilt: Array, enough: int) -> bool:
    """Tell whether enough of the rows that count are different; those in blocks are.

    Rows that are repeated span no more dimensions than they do once.
    """
    if problem.blocks is not None:
        return True
    used = np.round(problem.data[tilt > NO_WEIGHT], SAME_DIGITS)
    return different_rows(used, enough) >= enough


def off_sums(
    point: Array, basis: Array, data: Array, share: Array, tilt: Array
) -> tuple[Array, Array, Array, Array]:
    """Return sums over rows of their weights, their number if used, their squares over `share`.

    And, last, of the squares of what is off a subspace, shape (d, d).
    """
    w = share * tilt
    centered = data - point
    rest = (centered - (centered @ basis) @ basis.T) * np.sqrt(w)[:, None]
    return w.sum(), (tilt > NO_WEIGHT).sum(), w @ tilt, rest.T @ rest
