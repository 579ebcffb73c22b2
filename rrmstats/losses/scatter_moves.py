"""Influence functions of a consistent scatter: its location, shape and size, and the bad share.

Location and shape move with the search or with the fixed point of a rung. The size moves with the
rows and, through their distances, with both.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.sandwich import minimum_influence, tempered_influence
from rrmstats.core.search import Solution
from rrmstats.losses.moment_problem import first_sums, moment_sums
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_ground import lower_root, squared
from rrmstats.losses.scatter_rungs import ScatterRung
from rrmstats.losses.sizes import LEAST_SIZE, Sample, tilts

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
    mass, first, second = map(float, row_sums(power_sums, square, share * w))
    per = mass / max(first, LEAST_SIZE)
    scores = w * (per * square - 1)
    slopes = w * per - 0.5 * (order - 1) * scores
    bread = per * first - 0.5 * (order - 1) * (per * second - first)
    return scores, slopes, bounded(bread, order, dim, order ** (dim / 2) * mass)


def power_sums(square: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Return the sums of mass, and of mass times the first and second power of `square`."""
    weighted = mass * square
    return mass.sum(), weighted.sum(), weighted @ square


class Part(NamedTuple):
    """Squared distances of rows in units of their size, (n,), the order and the dimension."""

    square: Array
    order: float
    dim: float

    @property
    def weights(self) -> Array:
        """Weights whose mean over Gaussian rows is one, shape (n,)."""
        return np.exp(0.5 * self.dim * np.log(self.order) - 0.5 * (self.order - 1) * self.square)


def good_share(parts: Sequence[Part], sample: Sample) -> tuple[float, float]:
    """Return the share of rows that are good in all of some parts, and its standard error.

    The parts of a good row are independent. Sizes move with the rows; how they move with location
    and shape makes no difference for elliptical rows.
    """
    share = sample.share
    w = reduce(operator.mul, [part.weights for part in parts])
    good, *firsts = row_sums(first_sums, share * w, *(part.square for part in parts))
    moves = w - good
    for part, first in zip(parts, firsts, strict=True):
        scores, _, bread = size_scores(*part, share)
        moves = moves + 0.5 * (part.order - 1) * float(first) * scores / bread
    return float(good), float(np.sqrt(share @ moves**2 / sample.total))


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
    _, pull, twist = row_sums(moment_sums, z, sample.share * slopes)
    enlarged = enlargement(sample, problem.n_params)
    scatter = row_map(
        resized_moves,
        moves[1],
        scores - 2 * (location @ frame.T) @ pull,
        tail=(dim, dim),
        frame=frame * np.sqrt(rung.factor * rung.size),
        twist=twist,
        bread=bread,
        root=root * np.sqrt(enlarged),
    )
    return enlarged * location, scatter


def resized_moves(
    moves: Array, scores: Array, frame: Array, twist: Array, bread: float, root: Array
) -> Array:
    """Return moves of a scatter (n, d, d), its size moved along with the rows.

    Parameters
    ----------
    moves : ndarray, shape (n, d, d)
        Of the weighted covariance, which `frame` whitens.
    scores : ndarray, shape (n,)
        Of the size, at a fixed shape.
    frame, twist, root : ndarray, shape (d, d)
        `twist` is how the size moves with the shape, `root` takes it to where it is reported.
    bread : float
    """
    shape = frame @ moves @ frame.T
    size = scores - np.einsum("nij,ij->n", shape, twist)
    shape += (size / bread)[:, None, None] * np.eye(len(frame))
    return np.asarray(root @ shape @ root.T)


def enlargement(sample: Sample, spent: int) -> float:
    """Return by how much standard errors grow where a fit has used up so many rows."""
    return float(np.sqrt(sample.total / max(sample.total - spent, 1.0)))
