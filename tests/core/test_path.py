"""Solutions along a grid of eps_bar: as low as cold searches, and where the minimum changes."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats.core import Setting
from rrmstats.core.path import solution_path
from rrmstats.core.points import evaluate
from rrmstats.core.search import global_minimum
from rrmstats.losses import ScatterProblem, SquaresProblem

GRID = np.arange(26) / 50


def leverage(n, seed, share=0.12):
    """Return a regression whose first rows are far out in x and on another line."""
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(n), rng.standard_normal((n, 2))]
    endog = exog @ [1.0, 2.0, -1.0] + 0.5 * rng.standard_normal(n)
    bad = int(share * n)
    exog[:bad, 1:] = 8 + rng.standard_normal((bad, 2))
    endog[:bad] = -20 + rng.standard_normal(bad)
    return SquaresProblem(endog, exog)


def heavy_tails(n, seed):
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(n), rng.uniform(-5, 5, (n, 5))]
    return SquaresProblem(exog.sum(axis=1) + rng.standard_t(1.5, n), exog)


def scatter(n, seed):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((n, 2)) @ [[1, 0.8], [0, 0.6]]
    data[: n // 6] += [6, -6]
    return ScatterProblem(data)


def excess(problem, grid, setting):
    """Return the risks along a path relative to those of cold searches, less one."""
    path = solution_path(problem, setting, grid)
    cold = [global_minimum(problem, replace(setting, eps_bar=e)).risk for e in grid]
    found = np.array([solution.risk for solution in path.solutions])
    return (found - cold) / np.abs(cold)


@pytest.mark.parametrize(
    "problem",
    [leverage(60, 1), leverage(1_500, 2), heavy_tails(40, 3), heavy_tails(40, 4), scatter(60, 5)],
    ids=["leverage", "more rows", "tails", "other tails", "scatter"],
)
def test_risks_are_those_of_cold_searches(problem):
    assert excess(problem, GRID[::3], Setting(eps_bar=0.0)).max() < 1e-6


@pytest.mark.parametrize("share", [0.05, 0.12, 0.3])
def test_large_data_are_followed_on_a_part_of_the_rows(share):
    problem = leverage(12_000, 6, share)
    assert excess(problem, GRID[1::2], Setting(eps_bar=0.0)).max() < 1e-6


def test_the_risk_falls_along_the_path():
    for problem in (leverage(60, 7), heavy_tails(40, 8)):
        risks = [s.risk for s in solution_path(problem, Setting(eps_bar=0.0), GRID).solutions]
        assert (np.diff(risks) < 0).all()


def test_solutions_are_consistent_with_themselves():
    problem = leverage(60, 9)
    for e, found in zip(
        GRID, solution_path(problem, Setting(eps_bar=0.0), GRID).solutions, strict=True
    ):
        assert found.converged
        again = evaluate(problem, found.theta[None], Setting(eps_bar=e).budget(60))
        assert_allclose(found.risk, again.risk[0], rtol=1e-12)
        assert_allclose(found.weights, again.weights[0], atol=1e-9)
        assert_allclose(found.n_eff, (1 - e) * 60)


@pytest.mark.parametrize("n", [100, 12_000])
def test_switched_where_another_minimum_becomes_the_lowest(n):
    problem = leverage(n, 10)
    path = solution_path(problem, Setting(eps_bar=0.0), GRID)
    bad = np.array([found.weights[: int(0.12 * n)].sum() for found in path.solutions])
    change = int(np.flatnonzero((bad[:-1] > 0.05) & (bad[1:] < 0.01))[0]) + 1
    assert GRID[change] <= 0.12
    assert path.switched[change]
    assert not any(path.switched[change + 1 : 20])


def test_a_smooth_path_never_switches():
    rng = np.random.default_rng(11)
    exog = np.c_[np.ones(400), rng.standard_normal(400)]
    problem = SquaresProblem(exog.sum(axis=1) + rng.standard_normal(400), exog)
    assert not any(solution_path(problem, Setting(eps_bar=0.0), GRID[:16]).switched)


def test_a_row_of_weight_two_is_the_row_twice():
    problem, counts = leverage(60, 12), 1.0 + np.arange(60) % 2
    twice = np.repeat(np.arange(60), counts.astype(int))
    weighted = solution_path(
        problem, Setting(eps_bar=0.0, freq_weights=counts), GRID[::5]
    ).solutions
    repeated = solution_path(problem.take(twice), Setting(eps_bar=0.0), GRID[::5]).solutions
    for one, two in zip(weighted, repeated, strict=True):
        assert_allclose(one.risk, two.risk, rtol=1e-8)
        assert_allclose(one.theta, two.theta, rtol=1e-5)


def test_options_reach_the_searches():
    problem = leverage(60, 13, share=0.3)
    alone = solution_path(problem, Setting(eps_bar=0.0, n_starts=0), [0.32])
    assert (
        alone.solutions[0].risk
        > 2 * solution_path(problem, Setting(eps_bar=0.0), [0.32])[0][0].risk
    )
    stopped = solution_path(problem, Setting(eps_bar=0.0, maxiter=0), [0.2]).solutions[0]
    assert not stopped.converged


def test_the_classical_fit_alone():
    problem = leverage(60, 14)
    found, switched = solution_path(problem, Setting(eps_bar=0.0), [0.0])
    assert_array_equal(found[0].weights, np.full(60, 1 / 60))
    assert switched == [False]


def test_a_bound_that_leaves_too_few_rows_is_refused():
    with pytest.raises(ValueError, match=r"eps_bar=0\.99 leaves"):
        solution_path(leverage(60, 15), Setting(eps_bar=0.0), [0.1, 0.99])
