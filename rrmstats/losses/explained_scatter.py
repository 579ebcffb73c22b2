"""The scatter of the good rows of an explanation, and how it moves."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from rrmstats.core.block_array import row_map
from rrmstats.core.entropy import Array
from rrmstats.losses.gaussian_rows import ExplainedRows


def student_size(df: float, dim: int) -> float:
    """Return by how much the scatter of Student noise is smaller than that of its middle half.

    A Gaussian distribution of the larger scatter has the same median distance.
    """
    if np.isinf(df):
        return 1.0
    return float(dim * f_distribution.ppf(0.5, dim, df) / chi2.ppf(0.5, dim))


def consistent_scatter(rows: ExplainedRows) -> Array:
    """Return the scatter of the good rows, shape (d, d), their number its divisor.

    That of Student noise has the size of its middle half; see `student_size`.
    """
    mixture, (dim, free) = rows.fitted.mixture, (rows.data.shape[1], rows.exog.shape[1])
    good = rows.n_good
    return mixture.scatter[0] * (student_size(float(mixture.df[0]), dim) * (good - free) / good)


def explained_moves(rows: ExplainedRows) -> tuple[Array, Array]:
    """Return the influence functions of location (n, d) and `consistent_scatter` (n, d, d)."""
    decided, mixture = rows.fitted.decided, rows.fitted.mixture
    dim = rows.data.shape[1]
    root = np.linalg.cholesky(mixture.scatter[0])
    df, tails = float(mixture.df[0]), decided.place("df")
    slope = np.zeros(tails.stop - tails.start)
    if len(slope):
        up, down = (np.log(student_size(df * factor, dim)) for factor in (1.01, 1 / 1.01))
        slope[:] = (up - down) / (2 * np.log(1.01))
    moves, shape, size = rows.influence(), decided.place("scatter"), student_size(df, dim)
    scatter = row_map(
        _scatter_moves, moves[:, shape], moves[:, tails], tail=(dim, dim),
        slope=slope, root=np.sqrt(size) * root,
    )  # fmt: skip
    place = decided.place("coef")
    known = place.stop == place.start
    return moves[:, :1] * np.zeros(dim) if known else moves[:, place] @ root.T, scatter


def _scatter_moves(upper: Array, tails: Array, slope: Array, root: Array) -> Array:
    dim = len(root)
    rows, columns = np.triu_indices(dim)
    shape = np.zeros((len(upper), dim, dim))
    shape[:, rows, columns] = shape[:, columns, rows] = upper
    shape += (tails @ slope)[:, None, None] * np.eye(dim)
    return np.asarray(root @ shape @ root.T)
