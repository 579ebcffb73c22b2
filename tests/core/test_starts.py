import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats.core.descent import Budget, evaluate
from rrmstats.core.starts import FINALISTS, canonical_order, draw_subsets, screened_starts
from rrmstats.experiments.samples import leverage_shift
from rrmstats.losses.squares import SquaresProblem

RNG = np.random.default_rng(0)


def test_subsets_have_no_row_twice_and_every_row_sometimes():
    subsets = draw_subsets(np.arange(10)[::-1], 4, 500, np.random.default_rng(0), Budget(0.2))
    assert subsets.shape == (500, 4)
    assert all(len(set(rows)) == 4 for rows in subsets)
    assert_allclose(np.bincount(subsets.ravel()) / 500, 0.4, atol=0.1)


def test_rows_of_larger_prior_weight_come_up_more_often():
    prior = np.array([0.0, 1, 1, 1, 1, 6]) / 10
    budget = Budget(0.2, prior, 10)
    subsets = draw_subsets(np.arange(6), 1, 4000, np.random.default_rng(0), budget)
    assert_allclose(np.bincount(subsets.ravel(), minlength=6) / 4000, prior, atol=0.03)


def test_the_order_does_not_depend_on_how_the_data_are_sorted():
    endog, exog = leverage_shift(np.random.default_rng(0))
    shuffle = np.random.default_rng(1).permutation(100)
    budget = Budget(0.4, None, 100)
    straight = canonical_order(SquaresProblem(endog, exog), budget)
    shuffled = canonical_order(SquaresProblem(3 * endog[shuffle], exog[shuffle]), budget)
    assert_array_equal(shuffle[shuffled], straight)


def test_good_subsets_survive_beside_the_first_start():
    problem = SquaresProblem(*leverage_shift(np.random.default_rng(0)))
    budget, first = Budget(0.4, None, 100), np.full((1, 4), -5.0)
    order = canonical_order(problem, budget)
    for n_starts in (1, 100):
        rng = np.random.default_rng(2)
        theta, risks = screened_starts(problem, budget, order, first, n_starts, rng)
        assert 2 <= len(theta) <= 1 + FINALISTS
        assert len(risks) == 1 + n_starts
        assert_allclose(risks[0], evaluate(problem, first, budget).risk[0], rtol=3e-2)
        ends = evaluate(problem, theta, budget).risk
        assert ends[0] < risks[0]
        assert ends[1:].min() < np.min(risks[1:])


def test_subsets_without_a_fit_are_passed_over():
    exog = np.repeat(np.eye(2), [99, 1], axis=0)  # a pair of rows seldom determines both
    problem = SquaresProblem(RNG.standard_normal(100), exog)
    budget, first = Budget(0.1, None, 100), np.zeros((1, 2))
    theta, risks = screened_starts(
        problem, budget, np.arange(100), first, 60, np.random.default_rng(0)
    )
    assert np.isinf(risks).any()
    assert np.isfinite(risks[0])
    assert np.isfinite(theta).all()
