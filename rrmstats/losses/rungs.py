"""Solutions of second steps: the weights exp(-loss / lambda) of the rungs of a ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rrmstats.core.block_array import aligned, in_blocks, row_map, row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.problem import SmoothProblem
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting


class Place(NamedTuple):
    """Parameters of a rung and what its weights are made of.

    Attributes
    ----------
    theta : ndarray, shape (k,)
    lambda_ : float
        Temperature of the weights.
    kept : ndarray, shape (n,), or None
        What is left of the rows for other reasons than their losses; None for all.
    """

    theta: Array
    lambda_: float
    kept: Array | None = None


def tempered_weights(losses: Array, lambda_: float, spread: Array) -> Array:
    """Return probability weights proportional to ``spread * exp(-losses / lambda_)``."""
    blocks = in_blocks(losses)
    if blocks is not None:
        spread = aligned(spread, blocks)
        excess = losses - np.where(spread > 0, losses, np.inf).min()
        weights = row_map(faded, excess, lambda_, spread, None)
        return weights / weights.sum()
    used = spread > 0
    excess = losses - losses[used].min()
    weights = np.zeros_like(spread)
    weights[used] = spread[used] * np.exp(-excess[used] / lambda_)
    return weights / weights.sum()


def rung_solution(
    problem: SmoothProblem,
    first: Solution,
    places: Sequence[Place],
    setting: Setting,
    converged: bool,
) -> Solution:
    """Return the solution of a second step, which follows its rungs to the last one.

    Parameters
    ----------
    problem : SmoothProblem
    first : Solution
        That of the first step, whose trace is continued.
    places : sequence of Place
        The rungs from the robust end to the chosen one.
    setting : Setting
    converged : bool
        Whether they converged.
    """
    spread, found = setting.spread(problem.n_obs), first
    if problem.blocks is not None:
        return _solution_in_blocks(problem, first, places, setting, converged)
    for theta, lambda_, kept in places:
        losses = problem.losses(theta)
        start = spread if kept is None else spread * kept
        weights = tempered_weights(losses, lambda_, start)
        found = found.continued(theta, losses, weights, lambda_, setting)
    return replace(found, converged=first.converged and converged)


def _solution_in_blocks(
    problem: SmoothProblem,
    first: Solution,
    places: Sequence[Place],
    setting: Setting,
    converged: bool,
) -> Solution:
    """Return what `rung_solution` does, in one pass over the rows."""
    spread, found = setting.spread(problem.n_obs), first
    losses = [problem.losses(place.theta) for place in places]
    least = [problem.least_loss(place.theta) for place in places]
    lambdas = [place.lambda_ for place in places]
    kept = [place.kept for place in places]
    sums = row_sums(partial(_faded_sums, least, lambdas), spread, *losses, *kept)
    parts = zip(places, losses, least, sums, strict=True)
    for (theta, lambda_, some), each, low, (mass, excess, logs) in parts:
        weights = row_map(faded, each - low, lambda_, spread, some) / mass
        divergence = (logs - excess / lambda_) / mass - np.log(mass)
        known = divergence, low + excess / mass
        found = found.continued(theta, each, weights, lambda_, setting, known)
    return replace(found, converged=first.converged and converged)


def faded(excess: Array, lambda_: float, spread: Array, kept: Array | None) -> Array:
    """Return ``spread * kept * exp(-excess / lambda_)``, shape (n,)."""
    start = spread if kept is None else spread * kept
    return np.where(start > 0, start * np.exp(-np.maximum(excess, 0.0) / lambda_), 0.0)


def _faded_sums(
    least: list[float], lambdas: list[float], spread: Array, *arrays: Array
) -> tuple[tuple[Array, Array, Array], ...]:
    """Return sums of weights w, of w times losses above the least, and of w ln(kept)."""
    count, found = len(least), []
    for i, (low, lambda_) in enumerate(zip(least, lambdas, strict=True)):
        excess, kept = arrays[i] - low, arrays[count + i]
        weights = faded(excess, lambda_, spread, kept)
        logs = 0.0 * weights if kept is None else np.log(np.where(weights > 0, kept, 1.0))
        found.append((weights.sum(), weights @ excess, weights @ logs))
    return tuple(found)
