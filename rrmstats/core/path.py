"""The minimum of the risk along a grid of eps_bar, each solution a start for its neighbors.

The minimum moves smoothly with eps_bar, except where another local minimum becomes the lowest.
Local minima are therefore sought at some bounds and followed in both directions. Where the data
are large this happens on a part of the rows, and all rows are seen only by descents from where it
led.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.problem import Problem
from rrmstats.core.search import (
    COMPARE_ROWS,
    COMPARE_TOL,
    Solution,
    check_size,
    drawn_rows,
    followed,
    global_minima,
    global_minimum,
)
from rrmstats.core.setting import Setting
from rrmstats.core.starts import SAME_RISK, USUAL_STARTS
from rrmstats.core.tolerances import BLOCK_ENTRIES

# Local minima that are followed from each bound to the next.
MOST_BRANCHES = 4
# Rows on which minima of large data are followed, and by how much a bound may be off there at
# which another minimum becomes the lowest: three standard errors of a share of one half.
PART_ROWS, PART_ERROR = 4000, 0.024


class SolutionPath(NamedTuple):
    """Solutions at several bounds.

    Attributes
    ----------
    solutions : list of Solution
        One for each bound.
    switched : list of bool
        Whether a descent from the solution at the bound before, or from the fit under uniform
        weights for the first, ends higher: another local minimum has become the lowest.
    """

    solutions: list[Solution]
    switched: list[bool]


def solution_path(
    problem: Problem,
    setting: Setting,
    eps_bars: Iterable[float],
    shown: Callable[[list[int]], Iterable[int]] = iter,
) -> SolutionPath:
    """Return the solution of least risk at each of some bounds.

    Parameters
    ----------
    problem : Problem
        The losses, the same for all bounds.
    setting : Setting
        Options of the search; its own `eps_bar` plays no part.
    eps_bars : iterable of float
        Bounds on the share of bad rows, increasing, in [0, 1).
    shown : callable, optional
        Goes through the places of the global searches, for example with a progress bar.

    Returns
    -------
    SolutionPath

    Examples
    --------
    >>> import numpy as np
    >>> from rrmstats.core import FunctionProblem, Setting
    >>> from rrmstats.core.path import solution_path
    >>> z = np.array([1.9, 2.0, 2.1, 2.2, 1.8, 2.0, 90.0, 95.0])
    >>> problem = FunctionProblem(
    ...     losses=lambda theta: (z - theta[0]) ** 2,
    ...     weighted_fit=lambda weights: np.array([weights @ z]),
    ...     n_obs=8, n_params=1)
    >>> path = solution_path(problem, Setting(eps_bar=0.0), [0, 0.2, 0.4])
    >>> [float(found.theta[0].round(1)) for found in path.solutions]
    [24.6, 3.5, 2.0]
    """
    settings = [replace(setting, eps_bar=float(value)) for value in eps_bars]
    for each in settings:
        check_size(problem, each.budget(problem.n_obs))
    classical = [global_minimum(problem, each) for each in settings if each.eps_bar == 0]
    robust = [each for each in settings if each.eps_bar > 0]
    if not robust:
        return SolutionPath(classical, [False] * len(classical))
    if problem.n_obs > COMPARE_ROWS:
        candidates = minima_of_part(problem, robust, shown)
    else:
        candidates = minima_below(problem, robust, shown)
    found = upward(problem, robust, candidates)
    return SolutionPath(classical + found.solutions, [False] * len(classical) + found.switched)


def minima_below(
    problem: Problem, settings: Sequence[Setting], shown: Callable[[list[int]], Iterable[int]]
) -> list[Array]:
    """Return minima at each bound, or points near them: those of searches there, and from above.

    Those from above are followed to bounds at which there is no search.
    """
    n, last = problem.n_obs, len(settings) - 1
    settings = [replace(each, tol=max(each.tol, COMPARE_TOL)) for each in settings]
    # With few rows another minimum can be the lowest at a single bound.
    places = sorted({*range(last, -1, -1 if n <= 1000 else -24), 0})
    size = max(1, BLOCK_ENTRIES // (USUAL_STARTS * n))
    found: dict[int, Solution] = {}
    for i in shown(list(range(0, len(places), size))):
        some = places[i : i + size]
        found |= zip(some, global_minima(problem, [settings[j] for j in some]), strict=True)
    minima = [found[last].minima()[:MOST_BRANCHES]]
    for i in range(last - 1, -1, -1):
        own, above = found.get(i), minima[-1][:MOST_BRANCHES]
        if own is None:
            minima.append(followed(problem, settings[i], above).minima()[:MOST_BRANCHES])
        else:
            minima.append(np.vstack([own.minima()[:MOST_BRANCHES], above]))
    return minima[::-1]


def minima_of_part(
    problem: Problem, settings: Sequence[Setting], shown: Callable[[list[int]], Iterable[int]]
) -> list[Array]:
    """Return minima at the first bound, and at those near which another becomes the lowest.

    They are those of a part of the rows.
    """
    setting, n = settings[0], problem.n_obs
    size = max(PART_ROWS, 20 * problem.n_params)
    rows = drawn_rows(problem, setting.budget(n), setting.generator, size)
    counts = None if setting.freq_weights is None else setting.freq_weights[rows]
    tol = max(setting.tol, COMPARE_TOL)
    few = [replace(each, freq_weights=counts, tol=tol) for each in settings]
    part = problem.take(rows)
    path = upward(part, few, minima_below(part, few, shown))
    bounds, changed = np.array([each.eps_bar for each in settings]), np.flatnonzero(path.switched)
    candidates = []
    for i, found in enumerate(path.solutions):
        off = np.minimum(np.abs(bounds[changed] - bounds[i]) / PART_ERROR, np.abs(changed - i))
        near = i == 0 or off.min(initial=np.inf) <= 1
        candidates.append(found.rivals()[: MOST_BRANCHES if near else 0])
    return candidates


def upward(problem: Problem, settings: Sequence[Setting], candidates: list[Array]) -> SolutionPath:
    """Return where descents from candidates and the solution at the last bound end lowest."""
    theta = problem.weighted_fit(settings[0].budget(problem.n_obs).uniform(problem.n_obs))
    solutions, switched, lambda_ = [], [], None
    for setting, starts in zip(settings, candidates, strict=True):
        found = followed(problem, setting, np.vstack([theta, starts]), lambda_)
        same = SAME_RISK * (found.risk - found.losses.min())
        switched.append(bool(found.final_risks[0] > found.risk + same))
        solutions.append(found)
        theta, lambda_ = found.theta, found.lambda_
    return SolutionPath(solutions, switched)
