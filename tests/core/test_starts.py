import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats.core import minimize
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.spectral import PARTS
from rrmstats.core.starts import (
    FINALISTS,
    SPECTRAL_FINALISTS,
    Starts,
    canonical_order,
    promising,
    screened_starts,
)
from rrmstats.experiments.samples import leverage_shift
from rrmstats.losses.squares import SquaresProblem


def test_the_order_does_not_depend_on_how_the_data_are_sorted():
    endog, exog = leverage_shift(np.random.default_rng(0))
    shuffle = np.random.default_rng(1).permutation(100)
    budget = Budget(0.4, None, 100)
    straight = canonical_order(SquaresProblem(endog, exog), budget)
    shuffled = canonical_order(SquaresProblem(3 * endog[shuffle], exog[shuffle]), budget)
    assert_array_equal(shuffle[shuffled], straight)


@pytest.mark.parametrize("n_starts", [1, 100])
def test_good_starts_survive_beside_the_first(n_starts):
    problem = SquaresProblem(*leverage_shift(np.random.default_rng(0)))
    budget, first = Budget(0.4, None, 100), np.full((1, 4), -5.0)
    order = canonical_order(problem, budget)
    rng = np.random.default_rng(2)
    starts = screened_starts(problem, budget, order, first, n_starts, rng, "given")
    assert 2 <= len(starts.theta) <= 1 + FINALISTS + SPECTRAL_FINALISTS
    assert starts.kinds == ("given", *["subset"] * n_starts, *["spectral"] * PARTS)
    assert_allclose(starts.risks[0], evaluate(problem, first, budget).risk[0], rtol=3e-2)
    ends = evaluate(problem, starts.theta, budget).risk
    assert starts.origin[0] == 0
    assert ends[0] < starts.risks[0]
    assert ends[1:].min() < starts.risks[1:].min()


def test_nothing_is_refined_twice_or_without_a_risk():
    risks = np.array([np.inf, 3.0, 1.0, np.inf, 2.0, 9.0])
    always = np.array([False, False, False, False, False, True])
    assert promising(risks, always, 2).tolist() == [0, 2, 4, 5]
    assert promising(risks, always, 30).tolist() == [0, 2, 4, 1, 5]


def test_descents_from_the_same_weights_count_once():
    weights = np.array([[0.5, 0.5, 0.0], [0.45, 0.5, 0.05], [0.0, 0.5, 0.5]])
    starts = Starts(np.ones(3), ("subset",) * 3, np.zeros((3, 1)), np.arange(3), weights)
    assert starts.count_apart(np.arange(3)) == 2
    assert starts.count_apart(np.array([1])) == 1


def test_a_start_whose_losses_overflow_is_not_the_end():
    endog, exog = leverage_shift(np.random.default_rng(0))

    class Overflowing(SquaresProblem):
        """Subsets that fit to infinity, and to nothing at all."""

        def subset_fits(self, subsets):
            theta = super().subset_fits(subsets)
            theta[0], theta[1] = 1e200, np.nan
            return theta

        def determined_fit(self, drawn):
            return np.full(4, np.nan)

        def losses(self, theta):
            with np.errstate(over="ignore", invalid="ignore"):
                return super().losses(theta)

    found = minimize(Overflowing(endog, exog), 0.4)
    assert np.isinf(found.start_risks[1:3]).all()
    assert_allclose(found.risk, minimize(SquaresProblem(endog, exog), 0.4).risk, rtol=1e-9)
