"""Where the second step of points starts: minima of the risk, and scatters that need no search."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from rrmstats.core.entropy import Array
from rrmstats.core.frames import sign_frame, typical_spread
from rrmstats.core.points import evaluate
from rrmstats.core.search import Solution
from rrmstats.core.setting import Setting
from rrmstats.losses.matrices import FLAT, root_values
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.tilted_scatter import tilted_order

#: A location (1, d) and a scatter (d, d).
Candidate = tuple[Array, Array]

# Difference of two risks, in units of the dimension, that are one minimum.
SAME_END = 1e-4
# Minima to start from, and their entries in all: many variables have few of them.
MOST_ENDS, MOST_ENTRIES = 6, 5000


def candidates(
    problem: ScatterProblem, solution: Solution, setting: Setting, data: Array, counts: Array
) -> list[Candidate]:
    """Return locations and scatters to start from, that of least risk first.

    Parameters
    ----------
    problem : ScatterProblem
    solution : Solution
        The first step.
    setting : Setting
    data : ndarray, shape (n, d)
        The rows, in memory.
    counts : ndarray, shape (n,)
        How often each counts.
    """
    place = problem.split(solution.theta)
    found = [(place[0][None], _untilted(problem, place[1], solution.lambda_, setting))]
    if problem.blocks is None:
        found += other_ends(problem, solution, setting)
    used = data[counts > 0]
    return found + robust_starts(used, setting.eps_bar, problem.demean)


def other_ends(
    problem: ScatterProblem, solution: Solution, setting: Setting
) -> list[Candidate]:
    """Return the other minima of the risk that the search met, the lowest first."""
    most = min(MOST_ENDS, MOST_ENTRIES // problem.dim**2)
    ends = evaluate(problem, solution.ends, setting.budget(problem.n_obs))
    seen, found = [solution.risk], []
    for i in np.argsort(ends.risk, kind="stable"):
        risk, lambda_ = float(ends.risk[i]), float(ends.lambda_[i])
        same = any(abs(risk - other) <= SAME_END * problem.dim for other in seen)
        if len(found) >= most or same or not (np.isfinite(risk) and lambda_ > 0):
            continue
        seen.append(risk)
        location, scatter = problem.split(ends.theta[i])
        found.append((location[None], _untilted(problem, scatter, lambda_, setting)))
    return found


def _untilted(
    problem: ScatterProblem, scatter: Array, lambda_: float, setting: Setting
) -> Array:
    return scatter * tilted_order(lambda_, setting.eps_bar, problem.dim)


def robust_starts(data: Array, eps_bar: float, demean: bool = True) -> list[Candidate]:
    """Return scatters of rows that lie in the middle of the data, by three ways to tell them.

    They are the half of least distance along the axes of the spatial signs, in units of their
    median absolute deviations; and those not far out along the first or the last axis of the
    fourth-moment scatter, on which a cluster makes tails heavy or short.
    """
    center, axes = sign_frame(data, demean)
    scores = (data - center) @ axes
    scores -= np.median(scores, axis=0) * demean
    distance = np.sum((scores / np.sqrt(_variances(scores))) ** 2, axis=1)
    found = [middle(data, distance, 0.5, demean)]
    along = fourth_moment_axes(data, demean)
    for axis in (0, -1):
        score = along[:, axis] - np.median(along[:, axis]) * demean
        found.append(middle(data, score**2, 1 - eps_bar, demean))
    return [each for each in found if each is not None]


def _variances(scores: Array) -> Array:
    return np.maximum(typical_spread(scores) ** 2, FLAT)


def fourth_moment_axes(data: Array, demean: bool) -> Array:
    """Return coordinates along the axes of the fourth-moment scatter, the largest first, (n, d).

    Rows are whitened by their covariance, and weighted by their squared distances (FOBI).
    """
    centered = data - data.mean(axis=0) * demean
    spread, vectors = root_values(centered.T @ centered / len(data))
    z = centered @ (vectors / spread)
    fourth = z.T @ (np.sum(z**2, axis=1)[:, None] * z)
    return np.asarray(z @ np.linalg.eigh(fourth)[1][:, ::-1])


def middle(data: Array, distance: Array, share: float, demean: bool) -> Candidate | None:
    """Return location and scatter of the rows of least distance; None where it is singular.

    The scatter has a size at which the median squared distance is that of Gaussian rows.
    """
    n, d = data.shape
    kept = data[np.argsort(distance, kind="stable")[: max(int(share * n), d + 2)]]
    location = kept.mean(axis=0) * demean
    scatter = (kept - location).T @ (kept - location) / len(kept)
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(scatter))
    except np.linalg.LinAlgError:
        return None
    square = np.sum(((data - location) @ inverse.T) ** 2, axis=1)
    size = max(float(np.median(square)) / float(chi2.ppf(0.5, d)), FLAT)
    return location[None], scatter * size
