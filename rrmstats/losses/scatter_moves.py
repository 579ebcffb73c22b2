"""Influence functions of a consistent scatter: its location, shape and size, and the bad share.

Location and shape move with the search or with the fixed point of a rung. The size moves with the
rows and, through their distances, with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import minimum_influence, tempered_influence
from rrmstats.core.search import Solution
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_rungs import ScatterRung, lower_root, squared
from rrmstats.losses.sizes import Sample, tilts

# Observed derivatives are kept within this factor of those of Gaussian rows.
BREAD = 2.0


def bounded(bread: float, order: float, dim: float, good: float) -> float:
    """Return an observed derivative within a factor of the Gaussian one.

    `good` is the share of good rows.
    """
    gaussian = good * np.exp(-(dim / 2 + 1) * np.log(order))
    return float(np.clip(bread, gaussian / BREAD, gaussian * BREAD))


def size_scores(
    square: Array, order: float, dim: float, share: Array
) -> tuple[Array, Array, float]:
    """Return the scores g(s) of the size, their slopes g'(s), and the derivative in ln size.

    ``g(s) = w (c a s / d - 1)`` with c such that the scores sum to zero.

    Parameters
    ----------
    square : ndarray, shape (n,)
        Squared distances s in units of the size.
    order, dim : float
    share : ndarray, shape (n,)
        Frequency weights, summing to one.
    """
    w = tilts(square, order)
    mass = share * w
    per = float(mass.sum() / (mass @ square))
    scores = w * (per * square - 1)
    slopes = w * per - 0.5 * (order - 1) * scores
    good = order ** (dim / 2) * float(mass.sum())
    return scores, slopes, bounded(float((share * slopes) @ square), order, dim, good)


class Part(NamedTuple):
    """Squared distances of rows in units of their size, (n,), the order and the dimension."""

    square: Array
    order: float
    dim: float

    @property
    def weights(self) -> Array:
        """Weights whose mean over Gaussian rows is one, shape (n,)."""
        return np.asarray(
            np.exp(0.5 * self.dim * np.log(self.order) - 0.5 * (self.order - 1) * self.square)
        )


def good_share(parts: Sequence[Part], sample: Sample) -> tuple[float, float]:
    """Return the share of rows that are good in all of some parts, and its standard error.

    The parts of a good row are independent. Sizes move with the rows; how they move with location
    and shape makes no difference for elliptical rows.
    """
    share = sample.share
    w = np.prod([part.weights for part in parts], axis=0)
    good = float(share @ w)
    moves = w - good
    for part in parts:
        scores, _, bread = size_scores(*part, share)
        by_size = 0.5 * (part.order - 1) * float((share * w) @ part.square)
        moves = moves + by_size * scores / bread
    return good, float(np.sqrt(share @ moves**2 / sample.total))


def search_moves(
    problem: ScatterProblem, solution: Solution, base: Array | None
) -> tuple[Array, Array]:
    """Return how location (n, d) and weighted covariance (n, d, d) of least risk move."""
    steps = minimum_influence(
        problem, solution.theta, solution.losses, solution.weights, solution.lambda_, base
    ).theta
    return problem.directions(solution.theta, steps)


def rung_moves(
    problem: ScatterProblem, rung: ScatterRung, weights: Array, base: Array | None
) -> tuple[Array, Array]:
    """Return how location (n, d) and weighted covariance (n, d, d) of a rung move."""
    theta = problem.join(rung.location, rung.weighted)
    steps = tempered_influence(problem, theta, weights, rung.lambda_, base)
    return problem.directions(theta, steps)


def scatter_influence(
    problem: ScatterProblem, rung: ScatterRung, moves: tuple[Array, Array], sample: Sample
) -> tuple[Array, Array]:
    """Return the influence functions of location (n, d) and reported scatter (n, d, d).

    They are larger than the derivatives by what a fit to few rows takes from the residuals.

    Parameters
    ----------
    problem : ScatterProblem
    rung : ScatterRung
    moves : tuple of ndarray, shapes (n, d) and (n, d, d)
        Those of location and weighted covariance.
    sample : Sample
    """
    dim, location = problem.dim, moves[0]
    root = lower_root(rung.reported)
    frame = np.linalg.inv(root)
    z = (problem.data - rung.location) @ frame.T
    scores, slopes, bread = size_scores(squared(z), rung.size_order, dim, sample.share)
    mass = sample.share * slopes
    shape = frame @ (moves[1] * (rung.factor * rung.size)) @ frame.T
    size = scores - 2 * (location @ frame.T) @ (mass @ z)
    size -= np.einsum("nij,ij->n", shape, z.T @ (mass[:, None] * z))
    shape += (size / bread)[:, None, None] * np.eye(dim)
    enlarged = enlargement(sample, problem.n_params)
    return enlarged * location, enlarged * (root @ shape @ root.T)


def enlargement(sample: Sample, spent: int) -> float:
    """Return by how much standard errors grow where a fit has used up so many rows."""
    return float(np.sqrt(sample.total / max(sample.total - spent, 1.0)))
