"""The two steps of a fit: the lowest minimum of the risk, and the best explanation of the rows.

Explanations are compared at the largest bound that the rows allow, from the minima of the risk at
several bounds. Where the best one has no more bad rows than a smaller bound allows, it is the best
one there too: one comparison serves the fit, the automatic choice of its bound, and the question
whether a larger one would change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.entropy import Array
from rrmstats.core.estimate import EstimableProblem, Estimate
from rrmstats.core.explanations import Bad, Explained
from rrmstats.core.linear import LinearProblem
from rrmstats.core.points import evaluate
from rrmstats.core.problem import Problem
from rrmstats.core.search import (
    SAME_END,
    Solution,
    followed_minimum,
    global_minima,
    global_minimum,
)
from rrmstats.core.setting import Setting

#: Smaller bounds, relative to the largest, at which minima are sought too. Derived: 2^-1, 2^-2.
FRACTIONS = (0.5, 0.25)
#: Distance of the bounds of a path. Derived: 25 bounds up to one half.
GRID = 0.02
# Rows beyond which bounds are compared on a sample of them.
MOST_ROWS = 20_000


def take_steps(
    problem: EstimableProblem,
    setting: Setting,
    start_theta: ArrayLike | None = None,
    steps: int = 2,
    robust: Estimate | None = None,
    stability: bool = True,
    decided: Estimate | None = None,
) -> Estimate:
    """Return the estimate of one step or of two.

    Parameters
    ----------
    problem : EstimableProblem
    setting : Setting
    start_theta : array_like, shape (k,), optional
        Parameters to start from.
    steps : {2, 1}, optional
    robust : Estimate, optional
        The second step at the largest bound, where it is known.
    stability : bool, optional
        Whether larger bounds are to be compared with that of the fit.
    decided : Estimate, optional
        The second step of a sample of many rows, whose explanation all rows have.
    """
    alone = steps == 2 and robust is None and start_theta is None
    if alone and compares(problem, setting) and problem.seeks_minima:
        at = beyond(problem, setting)
        found, *others = global_minima(problem, [setting, *bounds_below(problem, at)])
        first, robust = problem.consistent(found, setting), joined_second(problem, at, others)
    else:
        if decided is not None and not problem.shares_coordinates(decided.problem):
            decided = None
        if decided is not None and start_theta is None and problem.blocks is None:
            found = followed_minimum(problem, setting, (decided.first or decided).solution)
        else:
            found = global_minimum(problem, setting, start_theta)
        first = problem.consistent(found, setting)
        if steps == 1:
            return first
        if decided is not None:
            first = replace(first, decided=decided)
        elif robust is None:
            robust = compared_beyond(first, stability)
    return second_step_of(first, robust)


def second_step_of(first: Estimate, robust: Estimate | None) -> Estimate:
    """Return the second step of a first, given that at the largest bound, where there is one."""
    if robust is None or robust.first is None or first.setting.eps_bar == 0:
        own = first.problem.second_step(first)
    else:
        own = bounded(first, robust)
    told = own.explained
    if told is None or told.chosen.bad is Bad.NONE or first.problem.blocks is not None:
        return own
    if first.decided is not None and first.decided.explained is not None:
        follows = first.decided.explained.other_minimum
    else:
        follows = follows_another(first, own.solution.theta)
    return replace(own, explained=replace(told, other_minimum=follows))


def second_steps(firsts: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """Return the second steps of first steps at increasing bounds."""
    robust = compared_beyond(firsts[-1])
    return tuple(second_step_of(first, robust) for first in firsts)


def compared_beyond(first: Estimate, stability: bool = True) -> Estimate | None:
    """Return the second step at the largest bound; None where bounds are not compared."""
    problem, setting = first.problem, first.setting
    if not compares(problem, setting):
        return None
    problem = problem.searched
    at = beyond(problem, setting)
    if problem.seeks_minima:
        return robust_estimate(problem, at)
    if not stability:  # it would serve the check alone
        return None
    return problem.second_step(replace(first, setting=at))


def beyond(problem: Problem, setting: Setting) -> Setting:
    """Return a setting at the largest bound."""
    bound = largest_bound(problem, setting.wnobs(problem.n_obs))
    return replace(setting, eps_bar=max(bound, setting.eps_bar))


def bounds_below(problem: Problem, setting: Setting) -> list[Setting]:
    """Return a setting at the largest bound, and at smaller ones, where fewer subsets suffice."""
    found, most = [setting], problem.default_starts(setting.eps_bar)
    for part in FRACTIONS:
        bound, n_starts = part * setting.eps_bar, setting.n_starts
        if n_starts is None:
            n_starts = min(problem.default_starts(bound), max(1, int(part * most)))
        found.append(replace(setting, eps_bar=bound, n_starts=n_starts))
    return found


def compares(problem: EstimableProblem, setting: Setting) -> bool:
    """Tell whether explanations are compared at several bounds."""
    few = problem.blocks is None and problem.n_obs <= MOST_ROWS
    return few and setting.eps_bar > 0 and isinstance(problem, EstimableProblem)


def robust_estimate(problem: EstimableProblem, setting: Setting) -> Estimate:
    """Return the second step at a large bound, from minima of the risk there and below.

    Problems without a second step return their first.
    """
    if problem.seeks_minima:
        return joined_second(
            problem, setting, global_minima(problem, bounds_below(problem, setting))
        )
    if not problem.follows_first:
        setting = replace(setting, n_starts=0)
    return problem.second_step(problem.consistent(global_minimum(problem, setting), setting))


def joined_second(
    problem: EstimableProblem, setting: Setting, found: Sequence[Solution]
) -> Estimate:
    """Return the second step at a large bound, from the solutions there and below."""
    others = np.vstack([each.minima() for each in found[1:]])
    # Where a search at that bound does not end, its last point is a start like others.
    lowest = replace(found[0], elsewhere=others, converged=True)
    return problem.second_step(problem.consistent(lowest, setting))


def bounded(first: Estimate, robust: Estimate) -> Estimate:
    """Return the second step at the bound of a first step, given that at the largest bound."""
    # The share is not known where all rows lie on a hyperplane.
    bound, beyond = robust.setting.eps_bar, not robust.eps_hat <= first.setting.eps_bar
    nested = first.problem.seeks_minima or first.problem.nested
    if nested and not beyond:
        own = seen_from(first, robust)
    else:
        found = replace(first.solution, elsewhere=robust.solution.minima())
        own = first.problem.second_step(replace(first, solution=found, robust=robust))
    own = replace(own, first=first, largest=bound, robust=robust if beyond else None)
    return own


def follows_another(first: Estimate, theta: Array) -> bool:
    """Tell whether a descent from parameters ends in another minimum than that of a first step.

    It does not where the risk rises all the way from there to these parameters.
    """
    problem, lowest = first.problem, first.solution
    if theta.shape != lowest.theta.shape:  # other parameters are held at a bound
        return False
    if isinstance(problem, LinearProblem) and problem.n_obs <= MOST_ROWS:
        way = lowest.theta + np.linspace(0, 1, 9)[:, None] * (theta - lowest.theta)
        if (np.diff(evaluate(problem, way, first.setting.budget(problem.n_obs)).risk) > 0).all():
            return False
    end = global_minimum(problem, replace(first.setting, n_starts=0), theta)
    return bool(end.risk > lowest.risk + SAME_END * (lowest.risk - lowest.losses.min()))


def steps_beyond(own: Estimate) -> Iterator[tuple[float, Estimate]]:
    """Return the bounds of a path above that of a second step, and the second steps there.

    They end where all larger bounds have the second step of the largest one, `own.robust`; there
    are none where `own` is that one. The candidates are those of `own` and of `own.robust`.
    """
    if own.robust is None or own.first is None:
        return
    found = replace(own.first.solution, elsewhere=own.robust.solution.minima())
    share = np.nan_to_num(own.robust.eps_hat, nan=own.largest)
    place = int(np.floor(own.setting.eps_bar / GRID + 1e-9)) + 1
    while GRID * place < share - 1e-9:
        bound = round(GRID * place, 9)
        at = replace(own.first, solution=found, setting=replace(own.setting, eps_bar=bound))
        yield bound, own.problem.second_step(at)
        place += 1
    yield round(GRID * place, 9), own.robust


def seen_from(first: Estimate, second: Estimate) -> Estimate:
    """Return a second step at a larger bound as that of a first step whose bound it keeps."""
    setting, there = first.setting, second.solution
    solution = first.solution.continued(
        there.theta, there.losses, there.weights, first.solution.lambda_, setting,
        (there.divergence, there.risk),
    )  # fmt: skip
    sound = first.solution.converged or not first.problem.follows_first
    paper = second.first is not None and second.raw_params is second.first.raw_params
    return replace(
        second,
        setting=setting,
        raw_params=first.raw_params if paper else second.raw_params,
        first=first,
        solution=replace(solution, converged=sound and there.converged),
        explained=allowed(second.explained, setting.eps_bar),
    )


def allowed(explained: Explained | None, bound: float) -> Explained | None:
    """Return explanations without those that have more bad rows than a bound allows."""
    if explained is None:
        return None
    chosen = explained.chosen  # its share is the bound where that binds, but for rounding
    kept = tuple(each for each in explained.explanations if each is chosen or not each.eps > bound)
    return replace(explained, explanations=kept)


def largest_bound(problem: Problem, wnobs: float) -> float:
    """Return the largest share of bad rows that an equivariant fit can resist.

    With p rows that determine a fit it is ``(n - p) / (2 n)``: beyond, bad rows and p good
    ones may be the majority. Absorbed effects count among them.
    """
    absorbed = getattr(problem, "absorbed", 0.0)
    return max(0.5 * (1 - problem.subset_size / problem.units(wnobs) - absorbed), 0.0)
