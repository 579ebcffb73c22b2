"""The concentrated risk at a batch of parameters, and the budget of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rrmstats.core.entropy import DIVERGENCE_RTOL, Array, tilt
from rrmstats.core.problem import Problem
from rrmstats.core.tolerances import SUM_ROUNDING


@dataclass(frozen=True, slots=True)
class Budget:
    """The constraint on the weights: its eps_bar, and the weights of largest entropy.

    `base` holds those weights, shape (n,), None where they are equal; with shape (b, n) each
    point of a batch has its own, and so it has with bounds of shape (b,). `wnobs` is the number of
    observations that they stand for.
    """

    eps_bar: float | Array
    base: Array | None = None
    wnobs: float = 0.0

    def uniform(self, n: int) -> Array:
        """Return the weights of largest entropy, shape (n,)."""
        return np.broadcast_to(1.0 / n, (n,)) if self.base is None else self.base

    def of(self, points: np.ndarray) -> Budget:
        """Return the budget of some points of a batch."""
        eps_bar, base = self.eps_bar, self.base
        if isinstance(eps_bar, np.ndarray):
            eps_bar = eps_bar[points]
        if base is not None and base.ndim > 1:
            base = base[points]
        return Budget(eps_bar, base, self.wnobs)

    @staticmethod
    def each(budgets: Sequence[Budget], sizes: Sequence[int]) -> Budget:
        """Return the budget of several batches of points as one, given how many these are."""
        bounds = np.repeat([each.eps_bar for each in budgets], sizes)
        return replace(budgets[0], eps_bar=bounds)

    def take(self, rows: np.ndarray) -> Budget:
        """Return the budget of some rows, drawn at random.

        It is larger by what chance may add to the share of bad ones, three standard errors;
        otherwise a good fit could look worse on these rows than a bad one.
        """
        n = self.wnobs if self.base is None else len(self.base)
        bound = float(self.eps_bar)
        variance = bound * (1 - bound) * (1 / len(rows) - 1 / n)
        most = bound + 3 * float(np.sqrt(max(variance, 0.0)))
        eps_bar = min(most, 0.5 * (1 + bound))
        if self.base is None:
            return Budget(eps_bar, None, len(rows))
        part = self.base[rows]
        return Budget(eps_bar, part / part.sum(), self.wnobs * float(part.sum()))


@dataclass(slots=True)
class Points:
    """A batch of points with the weights of least risk at each: b points, n observations."""

    theta: Array
    losses: Array
    weights: Array
    lambda_: Array
    divergence: Array
    risk: Array
    excess: Array

    def __getitem__(self, rows: np.ndarray) -> Points:
        return Points(*(getattr(self, name)[rows] for name in self.__slots__))

    def put(self, rows: np.ndarray, new: Points) -> None:
        """Overwrite some points of the batch."""
        if len(rows) == len(self.risk):
            for name in self.__slots__:
                setattr(self, name, getattr(new, name))
            return
        for name in self.__slots__:
            getattr(self, name)[rows] = getattr(new, name)


def evaluate(
    problem: Problem,
    theta: Array,
    budget: Budget,
    lambda_start: Array | None = None,
    rtol: float = DIVERGENCE_RTOL,
) -> Points:
    """Return the concentrated risk at a batch of parameters, shape (b, k), with its weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        losses = problem.losses(theta)
    broken = ~has_weights(losses, budget)
    if broken.any() and not broken.all():
        losses[broken] = 0.0
    weights, lambda_, divergence = tilt(losses, budget.eps_bar, budget.base, lambda_start, rtol)
    risk = np.einsum("bn,bn->b", weights, losses)
    if not np.isfinite(risk).all():  # an infinite loss has weight zero
        risk = np.einsum("bn,bn->b", weights, np.where(weights > 0, losses, 0.0))
    excess = risk - losses.min(axis=-1)
    # The Lagrangian: an error in the divergence changes it to second order only.
    gap = divergence + np.log1p(-budget.eps_bar)
    tilted = (lambda_ > 0) & (lambda_ < np.inf)
    error = np.multiply(lambda_, gap, out=np.zeros_like(risk), where=tilted)
    # Past `excess` it is not small: lambda hardly changes the divergence, and is far off.
    risk += np.where(np.abs(error) <= excess, error, 0.0)
    admissible = problem.admissible(weights, budget.uniform(problem.n_obs))
    if admissible is not None:
        risk = np.where(admissible, risk, np.inf)
    if broken.any():
        losses[broken] = risk[broken] = excess[broken] = np.inf
    return Points(theta, losses, weights, lambda_, divergence, risk, excess)


def has_weights(losses: Array, budget: Budget) -> np.ndarray:
    """Tell which rows of losses, shape (b, n), have weights of finite risk."""
    with np.errstate(over="ignore", invalid="ignore"):
        sound = np.isfinite(losses.sum(axis=-1))
    for i in np.flatnonzero(~sound):
        finite = np.isfinite(losses[i])
        base = budget.of(np.array([i])).uniform(len(finite)).reshape(-1)
        bound = np.broadcast_to(budget.eps_bar, len(sound))[i]
        room = base[finite].sum() >= (1 - bound) * (1 - SUM_ROUNDING)
        sound[i] = room and not np.isnan(losses[i]).any() and losses[i].min() > -np.inf
    return sound
