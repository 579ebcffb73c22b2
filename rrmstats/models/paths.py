"""The path of a model: its fits along a grid of eps_bar."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rrmstats.core.entropy import Array, check_eps_bar
from rrmstats.core.estimate import Estimate
from rrmstats.core.path import solution_path
from rrmstats.core.setting import Setting
from rrmstats.core.steps import GRID, compared_beyond, largest_bound, second_step_of
from rrmstats.models.bootstrap import Bootstrap
from rrmstats.optional import with_progress
from rrmstats.results.inference import Inference
from rrmstats.results.path_results import RRMPath

# A bound above zero, whose losses are those at all such bounds.
LARGEST = 0.5


def check_grid(eps_bar: ArrayLike) -> Array:
    """Return the values of a grid in increasing order, or say what is wrong with them."""
    values = np.atleast_1d(np.asarray(eps_bar, dtype=object))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"eps_bar must be a list of numbers in [0, 1), got {eps_bar!r}")
    return np.unique([check_eps_bar(value) for value in values])


def default_grid(largest: float) -> Array:
    """Return 0, 0.02, ..., up to the largest bound that the rows allow."""
    grid = np.round(GRID * np.arange(int(np.ceil(1 / GRID))), 9)
    return grid[(grid == 0) | (grid <= largest + 1e-12)]


def fit_path(
    model: Any,
    eps_bar: ArrayLike | None,
    steps: int,
    setting: Setting,
    inference: Inference,
    bootstrap: Bootstrap | None,
    progress: bool | None,
) -> RRMPath:
    """Return the fits of a model at each bound of a grid; see `RRMModel.path`.

    The losses may differ between the classical fit and the others, but not among the others.
    """
    robust = model.with_eps_bar(LARGEST)._search_problem()
    if eps_bar is None:
        grid = default_grid(largest_bound(robust, setting.wnobs(robust.n_obs)))
    else:
        grid = check_grid(eps_bar)
    parts = [(robust, grid[grid > 0])]
    if grid[0] == 0:
        parts.insert(0, (model.with_eps_bar(0.0)._search_problem(), grid[:1]))
    found, switched = [], []
    for problem, values in parts:
        shown = partial(with_progress, progress=progress, name="path", unit="searches")
        path = solution_path(problem, setting, values, shown)
        found += [(problem, solution) for solution in path.solutions]
        switched += path.switched
    firsts = [
        problem.consistent(solution, replace(setting, eps_bar=float(value)))
        for value, (problem, solution) in zip(grid, found, strict=True)
    ]
    beyond = compared_beyond(firsts[-1]) if steps == 2 else None
    estimates, inferences = [], []
    for first in with_progress(firsts, progress, "path", "fits"):
        estimates.append(second_step_of(first, beyond) if steps == 2 else first)
        replicates = None if bootstrap is None else bootstrap.run(estimates[-1])
        inferences.append(replace(inference, replicates=replicates))
    warn_once(model, estimates)
    return RRMPath(model, grid, estimates, inferences, np.array(switched))


def warn_once(model: Any, estimates: Sequence[Estimate]) -> None:
    """Give each warning of the fits once, with the bounds that it concerns."""
    found: dict[tuple[type[Warning], str], list[float]] = {}
    for estimate in estimates:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model._warn(estimate)
        for each in caught:
            key = each.category, str(each.message)
            found.setdefault(key, []).append(estimate.setting.eps_bar)
    for (category, message), values in found.items():
        where = ", ".join(f"{value:g}" for value in values)
        warnings.warn(f"at eps_bar = {where}: {message}", category, stacklevel=4)
