import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import minimize
from rrmstats.core.points import Budget
from rrmstats.core.starts import affordable_starts, draw_keys, draw_subsets, random_fits
from rrmstats.losses import LogisticProblem, SquaresProblem


def drawn(order, size, count, budget):
    return draw_subsets(draw_keys(count, order, np.random.default_rng(0), budget), order, size)


def factor_design(rng, n, levels):
    """Return a constant, a number and a factor."""
    dummies = rng.integers(levels, size=n)[:, None] == np.arange(1, levels)
    return np.column_stack([np.ones(n), rng.standard_normal(n), dummies])


def fits(problem, count, budget=None):
    n = problem.n_obs
    budget = Budget(0.2, None, n) if budget is None else budget
    return random_fits(problem, np.arange(n), count, np.random.default_rng(0), budget)


def test_subsets_have_no_row_twice_and_every_row_sometimes():
    subsets = drawn(np.arange(10)[::-1], 4, 500, Budget(0.2))
    assert subsets.shape == (500, 4)
    assert all(len(set(rows)) == 4 for rows in subsets)
    assert_allclose(np.bincount(subsets.ravel()) / 500, 0.4, atol=0.1)


def test_rows_of_larger_frequency_weight_come_up_more_often():
    base = np.array([0.0, 1, 1, 1, 1, 6]) / 10
    subsets = drawn(np.arange(6), 1, 4000, Budget(0.2, base, 10))
    assert_allclose(np.bincount(subsets.ravel(), minlength=6) / 4000, base, atol=0.03)


@pytest.mark.parametrize("levels", [15, 60])
@pytest.mark.parametrize("kind", [SquaresProblem, LogisticProblem])
def test_every_subset_of_a_factor_gives_a_fit_of_its_own(kind, levels):
    rng = np.random.default_rng(levels)
    problem = kind((rng.random(900) < 0.5).astype(float), factor_design(rng, 900, levels))
    theta = fits(problem, 40)
    assert np.isfinite(theta).all()
    assert len(np.unique(theta.round(9), axis=0)) == 40


def test_subsets_of_a_factor_fit_as_many_rows_as_there_are_parameters():
    rng = np.random.default_rng(0)
    problem = SquaresProblem(rng.standard_normal(900), factor_design(rng, 900, 60))
    exact = (problem.losses(fits(problem, 20)) < 1e-18).sum(axis=1)
    assert exact.min() >= problem.n_params


def test_every_start_of_a_search_is_usable_with_a_factor():
    rng = np.random.default_rng(0)
    exog = factor_design(rng, 900, 60)
    problem = SquaresProblem(exog.sum(axis=1) + rng.standard_normal(900), exog)
    found = minimize(problem, 0.3, n_starts=40)
    assert np.isfinite(found.start_risks).all()


def test_rows_of_no_weight_complete_no_subset():
    rng = np.random.default_rng(0)
    rare = np.r_[1.0, 1.0, np.zeros(98)]
    endog = rng.standard_normal(100)
    endog[0] = 1e9
    counts = np.r_[0.0, np.ones(99)]
    problem = SquaresProblem(endog, np.c_[np.ones(100), rare])
    theta = fits(problem, 50, Budget(0.2, counts / 99, 99))
    assert np.isfinite(theta).all()
    assert np.abs(theta).max() < 1e3


def test_labels_of_a_completed_subset_have_both_classes():
    rng = np.random.default_rng(0)
    exog = factor_design(rng, 300, 3)
    labels = np.r_[np.ones(3), np.zeros(297)]
    assert np.isfinite(fits(LogisticProblem(labels, exog), 40)).all()


def test_no_subsets_are_no_fits():
    rng = np.random.default_rng(0)
    problem = SquaresProblem(rng.standard_normal(30), factor_design(rng, 30, 3))
    assert fits(problem, 0).shape == (0, 4)


def test_part_of_the_rows_is_completed():
    exog = np.c_[np.ones(50), np.r_[np.zeros(49), 1.0]]
    problem = SquaresProblem(np.arange(50.0), exog)
    assert problem.completed(np.arange(10), np.arange(10, 50)).tolist() == [*range(10), 49]
    assert problem.completed(np.arange(40, 50), np.arange(40)).tolist() == [*range(40, 50)]


def test_more_subsets_where_fewer_are_clean_and_fewer_where_they_cost_more():
    assert affordable_starts(5, 0.1) == affordable_starts(3, 0.1) == 200
    assert affordable_starts(10, 0.4) > affordable_starts(10, 0.3) > 200
    assert affordable_starts(500, 0.3) == 5
