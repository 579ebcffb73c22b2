"""How far out the mean losses of good groups lie, read off the weighted ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rrmstats.core.consistency import untilted_variance
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import MAX_STEPS, ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class GroupLaw:
    r"""The distribution of the mean losses of good groups: a gamma distribution.

    For Gaussian rows and squared losses it is exact, a chi-square distribution over its degrees of
    freedom. Weights ``exp(-loss / lambda)`` turn a gamma distribution of rate :math:`b` into one
    of rate :math:`b + 1/\lambda`; so the weighted moments tell those of the good groups, whatever
    the others are, as long as these have no weight. Where good groups differ by more than chance
    among their rows, the shape is smaller.

    Attributes
    ----------
    mean : float
        Mean loss of good rows, above `floor`.
    shapes : ndarray, shape (g,)
        Shape of each group, proportional to its size; half the rows for Gaussian ones.
    floor : float
        Least loss that a row can have.
    """

    mean: float
    shapes: Array
    floor: float

    @classmethod
    def of(
        cls, losses: Array, weights: Array, lambda_: float, sizes: Array, floor: float = 0.0
    ) -> GroupLaw:
        """Find the distribution from losses of groups under their weights.

        Parameters
        ----------
        losses, weights, sizes : ndarray, shape (g,)
        lambda_ : float
            Temperature of the weights.
        floor : float, optional
            Least loss that a row can have.

        Examples
        --------
        >>> import numpy as np
        >>> from rrmstats.core import entropy_weights
        >>> from rrmstats.core.group_law import GroupLaw
        >>> losses = np.random.default_rng(0).chisquare(20, 4000) / 20
        >>> weights, lambda_, _ = entropy_weights(losses, 0.2)
        >>> law = GroupLaw.of(losses, weights, float(lambda_), np.full(4000, 20.0))
        >>> bool(abs(law.mean - 1) < 0.02), bool(abs(law.shapes[0] - 10) < 1)
        (True, True)
        """
        floor = min(floor, float(losses.min()))
        used = weights > 0
        w, above, m = weights[used], losses[used] - floor, sizes[used]
        mean = float(w @ above)
        if not mean > 0 or lambda_ == 0:
            return cls(0.0, np.zeros(len(losses)), floor)
        beta = 0.0 if lambda_ == np.inf else mean / lambda_
        above = above / mean
        level, spread = 1.0, 0.0  # the mean before the tilt, and size / shape
        for _ in range(MAX_STEPS):
            tilted = level / (1 + level * beta * spread / m)
            last, spread = spread, float(w @ (m * (above / tilted - 1) ** 2))
            if ROUNDING * spread > 1:
                # Groups that are wrong keep weight: the moments fit no gamma distribution, and no
                # group is told from the others.
                return cls(mean, np.zeros(len(sizes)), floor)
            level = untilted_variance(1.0, w, 0.5 * beta * spread / m)
            if abs(spread - last) <= ROUNDING * spread:
                break
        shapes = sizes / spread if spread > 0 else np.full(len(sizes), np.inf)
        return cls(level * mean, shapes, floor)

    def scores(self, losses: Array) -> Array:
        """Return losses of groups as standard normal scores, shape (g,).

        Wilson and Hilferty's: the cube root of a gamma variable is nearly normal.
        """
        if self.mean == 0:
            return np.where(losses > self.floor, np.inf, 0.0)
        root = np.cbrt(np.maximum(losses - self.floor, 0.0) / self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = 1 / (9 * self.shapes)
            scores = (root - 1 + variance) / np.sqrt(variance)
        return np.where(np.isnan(scores), 0.0, scores)
