import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core.points import Budget, evaluate, has_weights
from rrmstats.core.problem import Problem

N = 10


class Given(Problem):
    """Losses that are given, one row per parameter."""

    n_obs, n_params = N, 1

    def __init__(self, *rows):
        self.rows = np.array(rows, dtype=float)

    def losses(self, theta):
        return self.rows[theta[:, 0].astype(int)]


def losses_with(value, count):
    return np.r_[np.full(count, value), np.arange(1.0, N - count + 1)]


def at(*rows, budget):
    return evaluate(Given(*rows), np.arange(len(rows))[:, None], budget)


@pytest.mark.parametrize("broken", [(np.nan, 1), (-np.inf, 1), (np.inf, 4)])
def test_losses_without_weights_have_infinite_risk_and_leave_others_alone(broken):
    good, budget = losses_with(0.5, 1), Budget(0.3, None, N)
    points = at(losses_with(*broken), good, budget=budget)
    alone = at(good, budget=budget)
    assert points.risk[0] == points.excess[0] == np.inf
    assert points.risk[1] == alone.risk[0]
    assert_allclose(points.weights[1], alone.weights[0])


def test_a_few_infinite_losses_are_left_out():
    points = at(losses_with(np.inf, 2), budget=Budget(0.3, None, N))
    assert np.isfinite(points.risk[0])
    assert not points.weights[0, :2].any()


def test_infinite_losses_count_by_their_frequency_weights():
    losses = losses_with(np.inf, 2)[None]
    light, heavy = np.ones(N), np.ones(N)
    light[:2], heavy[:2] = 0.5, 5.0
    assert has_weights(losses, Budget(0.2, light / light.sum(), N)).all()
    assert not has_weights(losses, Budget(0.2, heavy / heavy.sum(), N)).any()


def test_losses_that_are_all_broken_are_an_error():
    with pytest.raises(ValueError, match="loss"):
        at(losses_with(np.nan, 1), budget=Budget(0.3, None, N))


def test_losses_whose_sum_overflows_are_large_but_sound():
    points = at(1e308 * losses_with(0.9, N), losses_with(0.5, 1), budget=Budget(0.3, None, N))
    assert_allclose(points.risk[0], 0.9e308)


def test_a_part_of_the_rows_may_hold_more_bad_ones():
    budget = Budget(0.2, None, 1000)
    small, large = budget.take(np.arange(50)), budget.take(np.arange(900))
    assert 0.2 < large.eps_bar < small.eps_bar <= 0.6
    assert budget.take(np.arange(1000)).eps_bar == 0.2
