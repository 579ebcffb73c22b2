"""Rows near a subspace, some of them bad: Gaussian mixtures of their distances off it.

The subspace is that of the leading axes of the scatter of the good rows. Where rows lie within it
has no part in the densities. Off it the noise has one variance, but for leading axes that differ
from the others by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import chdtr, pdtrc
from scipy.stats import chi2

from rrmstats.core.conventions import FAR
from rrmstats.core.entropy import Array
from rrmstats.core.frames import median_of
from rrmstats.laws.gaussian import (
    COLLAPSED,
    RIDGE,
    Mixtures,
    Rows,
    em_step,
    is_singular,
    seen,
)
from rrmstats.laws.gaussian_equations import relative_change

# Steps of EM at the end, and the change of probabilities and variances at which they stop.
MAXITER, TOL = 1000, 1e-9
# Rows per axis that can tell its variance from others.
# Convention: five rows per parameter.
ROWS_PER_AXIS = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaneRows(Rows):
    """Rows around a q-dimensional subspace.

    Attributes
    ----------
    q : int
        Dimension of the subspace.
    codim : int
        Dimensions off it; more than those of the data where these are the span of few rows.
    own : int
        Leading axes off the subspace that have variances of their own.
    risk : callable
        That of a point (d,) and a basis (d, q). Likelihoods of distances off different subspaces
        do not compare: one through far bad rows has no large distances. The risk does.
    most_risk : float
        Largest risk of a subspace that may explain the rows.
    """

    q: int
    codim: int
    own: int
    risk: Callable[[Array, Array], float]
    most_risk: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the squared distances of good rows."""
        return self.codim

    @property
    def _overall(self) -> None:
        """Noise off a subspace has one shape, that of good rows."""
        return None

    def squares(self, resid: Array, scatter: Array) -> tuple[Array, Array]:
        """Return squared distances off the subspaces (b, n), and ln det of the noise (b,)."""
        variances, axes = self.off_axes(scatter)
        y = resid @ axes
        left = self.codim - variances.shape[1]
        log_det = np.log(variances).sum(axis=1) + left * np.log(variances[:, -1])
        return np.einsum("bnd,bd->bn", y**2, 1 / variances), log_det

    def off_axes(self, scatter: Array) -> tuple[Array, Array]:
        """Return the variances (b, m) and axes (b, d, m) off the subspaces, the largest first.

        The regression on q scores takes as many rows from the variances.
        """
        values, vectors = np.linalg.eigh(scatter)
        least = RIDGE * values[:, -1:] + np.finfo(float).tiny
        values, vectors = values[:, ::-1][:, self.q :], vectors[:, :, ::-1][:, :, self.q :]
        found = np.maximum(values, least)
        rest = values[:, self.own :].sum(axis=1, keepdims=True) / (self.codim - self.own)
        found[:, self.own :] = np.maximum(rest, least)
        return found * self.total / max(self.total - self.q, 1.0), vectors

    def coefficient_costs(self, weights: Array, scatter: Array) -> Array:
        """Return what the point and the basis of a subspace cost on the scale of BIC, shape (b,).

        As in `Rows`, each axis off the subspace being a regression on q scores and a constant.
        """
        log_det = self.squares(np.zeros((len(weights), 1, self.dim)), scatter)[1]
        relative = np.exp((log_det - self._unit[1]) / self.freedom)
        columns = self.n_coef + self.q
        return columns * self.freedom * np.log1p(weights.sum(axis=1) / relative)

    def variances(self, scatter: Array) -> Array:
        """Return the variances off the subspace of a scatter (d, d), in all dimensions."""
        found = self.off_axes(scatter[None])[0][0]
        return np.r_[found, np.full(self.codim - len(found), found[-1])]

    def refuses(self, coef: Array, scatter: Array) -> bool:
        """Tell whether a subspace is not near enough to most rows, or its noise is of few rows.

        Nor is one that passes through q rows or more, and more than can be expected so near to it:
        tails have a likelihood without bound there.
        """
        values, axes = np.linalg.eigh(scatter)
        point = coef.sum(axis=0)
        square = self.squares((self.data - point)[None], scatter[None])[0][0]
        typical = float(median_of(square, self.counts))
        if is_singular(values[-self.q - 1 :], scatter) or COLLAPSED * typical > self.freedom:
            return True
        near = least_ratio(self.freedom) * typical
        expected = self.total * chdtr(self.freedom, near)
        through = np.floor(self.counts @ (square < near))
        if through >= self.q and pdtrc(through, expected) <= FAR:
            return True
        return self.risk(point, axes[:, ::-1][:, : self.q]) > self.most_risk


@cache
def least_ratio(freedom: int) -> float:
    """Return squared distances, over their median, below which good rows are with chance FAR."""
    return min(COLLAPSED, float(chi2.ppf(FAR, freedom) / chi2.ppf(0.5, freedom)))


def distinct_axes(values: Array, codim: int, wnobs: float) -> int:
    """Return how many leading variances (m,) differ from the rest by more than chance, by BIC.

    An axis of its own has a variance, and a direction among those that follow.

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.laws.planes import distinct_axes
    >>> distinct_axes(np.array([9.0, 1.1, 1.0, 0.9]), 4, 200.0)
    1
    """
    best, found = -np.inf, 0
    for r in range(max(min(len(values), int(wnobs / ROWS_PER_AXIS)), 1)):
        rest = float(values[r:].sum()) / (codim - r)
        if not rest > 0:
            break
        fit = np.log(values[:r]).sum() + (codim - r) * np.log(rest)
        value = -0.5 * wnobs * fit - 0.5 * np.log(wnobs) * sum(codim - j for j in range(r))
        if value > best:
            best, found = value, r
    return found


def settled(rows: PlaneRows, mixture: Mixtures, eps_bar: float) -> tuple[Mixtures, bool]:
    """Return a mixture, a batch of one, after EM has come to rest, and whether it has."""
    for _ in range(MAXITER):
        new = em_step(rows, mixture, eps_bar)
        if relative_change(mixture, new) < TOL:
            return new, True
        mixture = new
    return mixture, False


def seen_by(mixture: Mixtures, n: int) -> Mixtures:
    """Return a mixture, a batch of one, for n other rows."""
    return replace(mixture, far=np.zeros((1, n), bool), good=np.ones((1, n)))


def probabilities_at(rows: PlaneRows, mixture: Mixtures) -> tuple[Array, Array]:
    """Return the probability of each row to be good, and its pull on the subspace, (n,) each."""
    view = seen(rows, seen_by(mixture, len(rows.data)))
    good = view.probabilities[0, 0]
    return good, good * mixture.pulls(view.square, rows.freedom)[0]


def radial_slopes(rows: PlaneRows, mixture: Mixtures, step: float = 1e-4) -> Array:
    """Return the derivatives of the pulls of the rows in the log distance off, shape (n,)."""
    axes = rows.off_axes(mixture.scatter)[1][0]
    off = (rows.data - rows.fitted(mixture.coef)[0]) @ axes @ axes.T
    ends = [
        probabilities_at(replace(rows, data=rows.data + by * off), mixture)[1]
        for by in (step, -step)
    ]
    return (ends[0] - ends[1]) / (2 * step)
