"""Solutions of second steps: the weights exp(-loss / lambda) of the rungs of a ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem
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
    used = spread > 0
    excess = losses - losses[used].min()
    weights = np.zeros_like(spread)
    weights[used] = spread[used] * np.exp(-excess[used] / lambda_)
    return weights / weights.sum()


def rung_solution(
    problem: Problem, first: Solution, places: Sequence[Place], setting: Setting, converged: bool
) -> Solution:
    """Return the solution of a second step, which follows its rungs to the last one.

    Parameters
    ----------
    problem : Problem
    first : Solution
        That of the first step, whose trace is continued.
    places : sequence of Place
        The rungs from the robust end to the chosen one.
    setting : Setting
    converged : bool
        Whether they converged.
    """
    spread, found = setting.spread(problem.n_obs), first
    for theta, lambda_, kept in places:
        losses = problem.losses(theta)
        start = spread if kept is None else spread * kept
        weights = tempered_weights(losses, lambda_, start)
        found = found.continued(theta, losses, weights, lambda_, setting)
    return replace(found, converged=first.converged and converged)
