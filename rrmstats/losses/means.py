"""Means as functions of a linear predictor: links, kept within the domain of a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array


@dataclass(frozen=True, slots=True)
class Link:
    """A link function and its inverse.

    Attributes
    ----------
    forward : callable
        Linear predictor of a mean.
    inverse, slope, curvature : callable
        Mean of a linear predictor, and its first and second derivative.
    """

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]

    @classmethod
    def identity(cls) -> Link:
        """Return the link whose mean is the linear predictor."""
        return cls(np.positive, np.positive, np.ones_like, np.zeros_like)

    @classmethod
    def log(cls) -> Link:
        """Return the link whose mean is the exponential of the linear predictor."""
        return cls(np.log, np.exp, np.exp, np.exp)


@dataclass(frozen=True, slots=True)
class MeanFunction:
    """The mean of a linear predictor, constant beyond some bounds.

    A search tries fits to very few rows, at which others may have any linear predictor. Beyond the
    bounds a mean is not defined, or too large or too small to compute with.

    Attributes
    ----------
    link : Link
    low, high : float
        Bounds of the linear predictor.
    """

    link: Link
    low: float = -np.inf
    high: float = np.inf

    @classmethod
    def between(cls, link: Link, least: float, most: float) -> MeanFunction:
        """Return the mean function of a link with bounds of the mean."""
        with np.errstate(all="ignore"):
            ends = link.forward(np.array([least, most]))
        return cls(link, float(ends.min()), float(ends.max()))

    def bounds(self) -> tuple[float, float]:
        """Return the least and the largest mean."""
        ends = self.link.inverse(np.array([self.low, self.high]))
        return float(ends.min()), float(ends.max())

    def mean(self, eta: Array) -> Array:
        """Return the means at linear predictors of any shape."""
        return row_map(_at_kept, eta, self.link.inverse, self.low, self.high, tail=())

    def mean_and_slope(self, eta: Array) -> tuple[Array, Array]:
        """Return the means at linear predictors in memory, and their first derivatives."""
        kept = np.clip(eta, self.low, self.high)
        return self.link.inverse(kept), np.where(kept == eta, self.link.slope(kept), 0.0)

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the mean; zero beyond the bounds."""
        found = [
            row_map(_at_inside, eta, function, self.low, self.high, tail=())
            for function in (self.link.slope, self.link.curvature)
        ]
        return found[0], found[1]


def _at_kept(eta: Array, function: Callable[[Array], Array], low: float, high: float) -> Array:
    return function(np.clip(eta, low, high))


def _at_inside(eta: Array, function: Callable[[Array], Array], low: float, high: float) -> Array:
    inside = (eta >= low) & (eta <= high)
    return np.where(inside, _at_kept(eta, function, low, high), 0.0)
