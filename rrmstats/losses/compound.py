"""Tweedie distributions: sums of a Poisson number of gamma variables, with an atom at zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from rrmstats.core.entropy import Array
from rrmstats.losses.counts import FAINT, REACH
from rrmstats.losses.families import Family, Moments
from rrmstats.losses.lattices import joined, map_moments, sum_moments

# Nodes of the integral over positive responses.
N_NODES = 48
# Entries of the arrays that a block of rows works on.
BLOCK = 400_000
# Jumps expected from which weights merely change the size, as they do for a gamma law.
MANY_JUMPS = 50.0
# Standard deviations, and jumps more, within which a sum over jumps runs.
JUMP_REACH, MORE_JUMPS = 6.0, 10.0


@dataclass(frozen=True)
class Tweedie(Family):
    """Compound Poisson distributions with variance mu^p, 1 < p < 2.

    Parameters
    ----------
    power : float
        The power p of the variance.
    """

    power: float = 1.5
    zeros = True

    def variance(self, mu: Array) -> Array:
        """Return V(mu)."""
        return mu**self.power

    def variance_slope(self, mu: Array) -> Array:
        """Return the derivative of V."""
        return self.power * mu ** (self.power - 1.0)

    def deviance(self, y: Array, mu: Array) -> Array:
        """Return the unit deviance of each response."""
        one, two = 1.0 - self.power, 2.0 - self.power
        found = y**two / (one * two) - y * mu**one / one + mu**two / two
        return np.maximum(2.0 * found, 0.0)

    def near_means(self, y: Array, size: Array) -> Array:
        """Return means near the responses at which every link is finite."""
        return y + (y == 0) * 0.1 * max(float(y.mean()), np.finfo(float).tiny)

    def kept_kinds(self, y: Array) -> list[np.ndarray]:
        """Return the rows that are not zero."""
        return [y > 0]

    def moments(self, mu: Array, size: Array, order: float, n_sizes: int | None = None) -> Moments:
        """Return expectations under weights of an order: the atom, and an integral."""
        return map_moments(self._moments, mu, size, order)

    def _moments(self, mu: Array, size: Array, order: float) -> Moments:
        jumps = self.jumps(mu, size)
        found = super().moments(mu, size, order)
        few = np.flatnonzero(jumps < MANY_JUMPS)
        if len(few):
            top = float(jumps[few].max())
            most = int(top + JUMP_REACH * np.sqrt(top) + MORE_JUMPS)
            step = max(1, BLOCK // (N_NODES * most))
            blocks = [few[i : i + step] for i in range(0, len(few), step)]
            parts = joined([self._integrals(mu[b], size[b], order, most) for b in blocks])
            for column, part in zip(found, parts, strict=True):
                column[few] = part
        return found

    def jumps(self, mu: Array, size: Array) -> Array:
        """Return the expected number of gamma variables in a sum, shape (n,)."""
        two = 2.0 - self.power
        return size * mu**two / two

    def _integrals(self, mu: Array, size: Array, order: float, most: int) -> Moments:
        """Return the expectations of a block of rows, with sums of up to `most` jumps."""
        shape = (2.0 - self.power) / (self.power - 1.0)
        jumps = self.jumps(mu, size)[:, None]
        scale = ((self.power - 1.0) * mu ** (self.power - 1.0) / size)[:, None]
        spread = np.sqrt(self.variance(mu) / size)[:, None]
        top = mu[:, None] + REACH * spread + FAINT * scale
        # The density of one jump has a pole at zero where its shape is below one.
        bend = max(1.0, 2.0 / shape)
        unit, rule = np.polynomial.legendre.leggauss(N_NODES)
        t = 0.5 * (unit + 1.0)
        y = top * t**bend
        steps = top * bend * t ** (bend - 1.0) * 0.5 * rule
        count = np.arange(1.0, most + 1.0)
        ways = -jumps + xlogy(count, jumps) - gammaln(count + 1.0) - gammaln(shape * count)
        ratio = y / scale
        log_terms = shape * count * np.log(ratio)[:, :, None] - ratio[:, :, None]
        density = np.exp(ways[:, None, :] + log_terms).sum(axis=-1) / y
        values = np.concatenate([np.zeros_like(jumps), y], axis=1)
        mass = np.concatenate([np.exp(-jumps), steps * density], axis=1)
        return sum_moments(self, values, mass, mu[:, None], size[:, None], order)
