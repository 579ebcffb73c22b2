"""The second step of Gaussian rows: decided on a sample of many rows, polished on all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rrmstats.core.block_array import taken
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Explained
from rrmstats.core.problem import Problem
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian import Rows
from rrmstats.laws.gaussian_choice import explain
from rrmstats.laws.gaussian_equations import Equations


def in_memory(problem: Problem, setting: Setting, *arrays: Array) -> tuple[Array, ...]:
    """Return arrays of rows in memory, and how often each row counts."""
    counts = np.asarray(setting.counts(problem.n_obs), dtype=float)
    if problem.blocks is None:
        return *arrays, counts
    return taken(np.arange(problem.n_obs), *arrays, counts)


def decided(
    rows: Rows, candidates: Sequence[tuple[Array, Array]], setting: Setting
) -> tuple[Explained, Equations, bool]:
    """Return the explanations of the rows, the equations of the best, and whether it converged."""
    return explain(rows, candidates, setting.eps_bar)
