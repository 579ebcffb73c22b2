"""The noise of a first step: what its weights tell of the good rows.

Weights exp(-r^2 / lambda) narrow Gaussian noise of variance s to 1 / (1 / s + 2 / lambda),
whatever else is in the data, as long as bad rows have no weight. The weighted mean of squares is
therefore enough to know s, and the weights tell how many rows are good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rrmstats.core.consistency import second_moment_ratio
from rrmstats.core.entropy import Array
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.noise import residual_factor, share_factor
from rrmstats.losses.squares import SquaresProblem


class Noise(NamedTuple):
    """The noise of good rows, in the units of the problem.

    Attributes
    ----------
    params : ndarray, shape (k,)
        The fit whose residuals it is.
    order : float
        Variance of the noise over that of the weighted rows.
    scale : float
        Variance of the noise.
    eps_hat : float
        Share of bad rows.
    """

    params: Array
    order: float
    scale: float
    eps_hat: float


@dataclass(frozen=True, slots=True, eq=False)
class FittedRows:
    """Rows of a regression with their first step.

    Attributes
    ----------
    problem : SquaresProblem
    setting : Setting
    first : Solution
        The first step, of positive risk.
    share : ndarray, shape (n,)
        Weight of each row in the data; they sum to one.
    total : float
        Number of observations that they stand for.
    """

    problem: SquaresProblem
    setting: Setting
    first: Solution
    share: Array
    total: float

    @classmethod
    def of(cls, problem: SquaresProblem, first: Solution, setting: Setting) -> FittedRows:
        """Return the rows of a problem."""
        n = problem.n_obs
        return cls(problem, setting, first, setting.spread(n), setting.wnobs(n))

    @property
    def least_good(self) -> float:
        """Least share of good rows."""
        return 1 - self.setting.eps_bar

    def params_per_row(self, good: float) -> float:
        """Return parameters per good row, given their share."""
        return self.problem.n_params / (self.total * good)

    def good(self, found: Solution, order: float) -> float:
        """Return the share of good rows, given the order of the weights of a solution."""
        relative = float(self.share @ np.exp(-found.losses / found.lambda_))
        return float(np.clip(np.sqrt(order) * relative, self.least_good, 1.0))

    def gram(self, weights: Array) -> Array:
        """Return the Gram matrix of the design under weights (n,), shape (k, k)."""
        return self.problem.gram(weights, np.empty((0, len(weights))))[0]


def tilted(squares: Array | float, scale: float, order: float) -> Array:
    """Return the weights of an order, at most one, shape (n,)."""
    return np.exp(-0.5 * (order - 1) / scale * squares)


def first_noise(rows: FittedRows) -> Noise:
    """Return the noise that a first step tells; its variance is at most that of clean data."""
    first = rows.first
    clean = 1 / second_moment_ratio(rows.setting.eps_bar)
    left = 1 - 2 * first.risk / first.lambda_
    order = min(1 / left, clean) if left > 0 else clean
    taken = rows.params_per_row(rows.good(first, order))
    scale = residual_factor(taken, order) * order * first.risk
    total = float(rows.share @ tilted(first.losses, scale, order))
    good = float(np.sqrt(order)) * total / share_factor(taken, order, order)
    return Noise(first.theta, order, scale, 1 - float(np.clip(good, rows.least_good, 1.0)))


def eps_hat_error(rows: FittedRows, noise: Noise) -> float:
    """Return the standard error of the share of bad rows that a first step tells.

    From the influence function of ``sqrt(a) * mean(w)``, the scale estimated with it. Which rows
    are bad counts as random too.
    """
    order, good = noise.order, 1 - noise.eps_hat
    square = rows.first.losses / noise.scale
    tilt = tilted(square, 1.0, order)
    log_scale = tilt * (order * square - 1) / (good * order**-1.5)
    moves = np.sqrt(order) * tilt - good + good * (order - 1) / (2 * order) * log_scale
    return float(np.sqrt(rows.share @ moves**2 / rows.total))
