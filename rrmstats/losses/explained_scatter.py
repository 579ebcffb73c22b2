"""Location and scatter of an explanation: consistent, and how they move."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import taken
from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian_equations import Equations


def in_memory(problem: Problem, setting: Setting, *arrays: Array) -> tuple[Array, ...]:
    """Return arrays of rows in memory, and how often each row counts."""
    counts = np.asarray(setting.counts(problem.n_obs), dtype=float)
    if problem.blocks is None:
        return *arrays, counts
    return taken(np.arange(problem.n_obs), *arrays, counts)


def student_size(df: float, dim: int) -> float:
    """Return by how much the scatter of Student noise is smaller than that of its middle half.

    A Gaussian distribution of the larger scatter has the same median distance.
    """
    if np.isinf(df):
        return 1.0
    return float(dim * f_distribution.ppf(0.5, dim, df) / chi2.ppf(0.5, dim))


def consistent_scatter(equations: Equations) -> Array:
    """Return the scatter of the good rows, shape (d, d), their number its divisor.

    That of Student noise has the size of its middle half; see `student_size`.
    """
    mixture, rows = equations.mixture, equations.rows
    good = float(rows.counts @ equations.good)
    size = student_size(float(mixture.df[0]), rows.dim)
    return mixture.scatter[0] * (size * (good - rows.n_coef) / good)


def explained_moves(equations: Equations) -> Array:
    """Return the influence functions of `consistent_scatter`, shape (n, d, d)."""
    moves, root, dim = equations.influence, equations.root, equations.rows.dim
    rows, columns = np.triu_indices(dim)
    shape = np.zeros((len(moves), dim, dim))
    shape[:, rows, columns] = shape[:, columns, rows] = moves[:, equations.place("scatter")]
    df, tails = float(equations.mixture.df[0]), equations.place("df")
    if tails.stop > tails.start:
        up, down = (np.log(student_size(df * factor, dim)) for factor in (1.01, 1 / 1.01))
        shape += (up - down) / (2 * np.log(1.01)) * moves[:, tails, None] * np.eye(dim)
    return np.asarray(student_size(df, dim) * (root @ shape @ root.T))
