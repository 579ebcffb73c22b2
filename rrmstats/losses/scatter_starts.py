"""Where the second step of points starts: minima of the risk, and scatters that need no search."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from rrmstats.core.block_array import aligned, row_map
from rrmstats.core.entropy import Array
from rrmstats.core.frames import median_of, sign_frame, typical_spread
from rrmstats.core.points import evaluate
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.laws.gaussian import Rows
from rrmstats.losses.matrices import FLAT, root_values, thinned
from rrmstats.losses.scatter import MomentProblem, ScatterProblem
from rrmstats.losses.tilted_scatter import tilted_order

#: A location (1, d), or none (0, d) where it is known to be zero, and a scatter (d, d).
Candidate = tuple[Array, Array]

# Entries of the scatters to start from in all: many variables have few starts.
MOST_ENTRIES = 5000


def scatter_candidates(
    problem: ScatterProblem, solution: Solution, setting: Setting
) -> list[Candidate]:
    """Return locations and scatters to start from, that of least risk first."""
    found, demean = [], int(problem.demean)
    for theta, lambda_ in distinct_ends(problem, solution, setting, problem.dim):
        location, scatter = problem.split(theta)
        order = tilted_order(lambda_, setting.eps_bar, problem.dim)
        found.append((location[None][:demean], scatter * order))
    return found + robust_starts(some_rows(problem, setting), setting.eps_bar)


def some_rows(problem: MomentProblem, setting: Setting) -> Rows:
    """Return rows in memory that tell the middle of all."""
    counts = aligned(setting.counts(problem.n_obs), problem.blocks)
    data, counts = thinned(problem.data, counts)
    return Rows(data, np.ones((len(data), int(problem.demean))), counts)


def ones_column(data: Array, count: int = 1) -> Array:
    """Return a column of ones for rows in memory or in blocks, shape (n, 1); none for no count."""
    return row_map(_ones, data, tail=(count,), count=count)


def _ones(data: Array, count: int) -> Array:
    return np.ones((len(data), count))


def distinct_ends(
    problem: MomentProblem, solution: Solution, setting: Setting, unit: float
) -> list[tuple[Array, float]]:
    """Return parameters and lambda of the minima that the search met, the lowest first.

    Parameters
    ----------
    problem : MomentProblem
    solution : Solution
        The first step.
    setting : Setting
    unit : float
        In which risks are compared.
    """
    found = [(solution.theta, solution.lambda_)]
    others = solution.other_minima(unit)[: MOST_ENTRIES // problem.dim**2]
    if problem.blocks is not None or not len(others):
        return found
    lambdas = evaluate(problem, others, setting.budget(problem.n_obs)).lambda_
    pairs = zip(others, lambdas, strict=True)
    return found + [(theta, float(each)) for theta, each in pairs if 0 < each < np.inf]


def robust_starts(rows: Rows, eps_bar: float) -> list[Candidate]:
    """Return scatters of rows that lie in the middle of the data, by four ways to tell them.

    They are the half of least distance along the axes of the spatial signs, in units of their
    median absolute deviations; those not far out along the first of these axes; and those not far
    out along the first or the last axis of the fourth-moment scatter, on which a cluster makes
    tails heavy or short. It does neither where it has about a fifth of the rows.
    """
    used, demean = rows.counts > 0, bool(rows.n_coef)
    data, counts = rows.data[used], rows.counts[used]
    center, axes = sign_frame(data, demean, counts)
    scores = (data - center) @ axes
    scores -= median_of(scores, counts) * demean
    variances = np.maximum(typical_spread(scores, counts) ** 2, FLAT)
    found = [middle(rows, data, counts, np.sum(scores**2 / variances, axis=1), 0.5)]
    if rows.total > 2 * rows.dim:
        found.append(middle(rows, data, counts, scores[:, 0] ** 2, 1 - eps_bar))
        along = fourth_moment_axes(data, counts, demean)
        for axis in (0, -1):
            score = along[:, axis] - median_of(along[:, axis], counts) * demean
            found.append(middle(rows, data, counts, score**2, 1 - eps_bar))
    return [each for each in found if each is not None]


def fourth_moment_axes(data: Array, counts: Array, demean: bool) -> Array:
    """Return coordinates along the axes of the fourth-moment scatter, the largest first, (n, d).

    Rows are whitened by their covariance, and weighted by their squared distances (FOBI).
    """
    share = counts / counts.sum()
    centered = data - share @ data * demean
    spread, vectors = root_values((share[:, None] * centered).T @ centered)
    z = centered @ (vectors / spread)
    fourth = z.T @ ((share * np.sum(z**2, axis=1))[:, None] * z)
    return np.asarray(z @ np.linalg.eigh(fourth)[1][:, ::-1])


def middle(
    rows: Rows, data: Array, counts: Array, distance: Array, share: float
) -> Candidate | None:
    """Return location and scatter of the rows of least distance; None where it is singular.

    The scatter has a size at which the median squared distance is that of Gaussian rows.
    """
    order = np.argsort(distance, kind="stable")
    reached = np.cumsum(counts[order])
    most = max(int(share * reached[-1] + 1e-9), data.shape[1] + 2)
    kept = np.zeros(len(data))
    kept[order] = np.clip(most - (reached - counts[order]), 0.0, counts[order])
    kept /= kept.sum()
    location = kept @ data * rows.n_coef
    scatter = (kept[:, None] * (data - location)).T @ (data - location)
    try:
        square = rows.squares((data - location)[None], scatter[None])[0]
    except np.linalg.LinAlgError:
        return None
    size = float(median_of(square[0], counts)) / float(chi2.ppf(0.5, rows.freedom))
    return location[None][: rows.n_coef], scatter * max(size, FLAT)
