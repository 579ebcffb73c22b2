"""Sizes of a Gaussian core from distances, and the share of bad rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest

from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.sizes import (
    Sample,
    Yardstick,
    budget_order,
    chance,
    fixed_size,
    ladder_orders,
    size_ladder,
    tilts,
)


def squares(n=400, dim=3, share=0.0, distance=1e3, seed=0):
    """Return squared distances of Gaussian rows, the first of which are far out."""
    x = np.random.default_rng(seed).standard_normal((n, dim))
    x[: int(share * n), 0] += distance
    return (x**2).sum(axis=1)


def sample(n=400, eps_bar=0.3, counts=None):
    return Sample.of(Setting(eps_bar, counts), n)


@pytest.mark.parametrize("order", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("start", [0.5, 1.0, 50.0])
def test_the_size_is_a_fixed_point(order, start):
    square, core = squares(), Core(3)
    size = fixed_size(square, order, core, sample(), start, order)
    w = tilts(square / size, order)
    good = min(order**1.5 * w.mean(), 1.0) * 400
    plain = core.overfit(order, good) * order * (w @ square) / (3 * w.sum())
    assert_allclose(size, plain, rtol=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("distance", [8.0, 1e6])
def test_sizes_and_shares_under_contamination(share, distance):
    """Four standard errors of a variance of 280 rows, and of a share."""
    square = 7.0 * squares(share=share, distance=distance)
    ladder = size_ladder(square, Core(3, 0, False), sample(), 100.0, 1.0)
    assert_allclose(ladder.best.scale, 7, rtol=4 * np.sqrt(2 / (3 * 280)))
    assert_allclose(ladder.best.eps_hat, share, atol=0.04)


def test_a_size_gives_up_no_more_than_eps_bar():
    """Half of the rows at zero would otherwise take the size with them."""
    square = squares(share=0.0)
    square[:200] *= 1e-8
    some = sample(eps_bar=0.2)
    size = fixed_size(square, 1.5, Core(3), some, 1e-6, 1.5)
    assert_allclose(some.good_share(square / size, 1.5, 3), 0.8, rtol=1e-8)
    exact = np.r_[np.zeros(300), np.ones(100)]
    assert np.isfinite(fixed_size(exact, 1.5, Core(3), some, 1.0, 1.5))


def test_the_budget_is_overspent_by_chance_as_seldom_as_it_should():
    """Rows of which a share of eps_bar is bad on average; the size may give up more."""
    found = []
    for seed in range(300):
        bad = np.random.default_rng(seed).binomial(400, 0.3) / 400
        square = squares(share=bad, seed=seed)
        size = fixed_size(square, 1.5, Core(3, 0, False), sample(eps_bar=0.6), 3.0, 1.5)
        found.append(sample(eps_bar=0.3).spent_pvalue(square / size, 1.5, Core(3, 0, False)))
    assert kstest(found, "uniform").pvalue > 0.001


@pytest.mark.parametrize("spread", [0.0, 1e-8])
def test_equal_rows_count_once(spread):
    """Half of the rows at one place count as 92 % by the mean of the weights."""
    square, some = squares(), sample(eps_bar=0.3)
    square[:200] *= spread
    size = fixed_size(square, 1.5, Core(3), some, 1e-6, 1.5)
    assert some.good_share(square / size, 1.5, 3) > 0.69
    assert some.spent_pvalue(square / size, 1.5, Core(3)) < 1e-6


def test_frequencies_are_repetitions():
    square, counts = squares(60), np.arange(60) % 4
    by_count = size_ladder(square, Core(3), sample(60, counts=counts.astype(float)), 20.0, 1.2)
    repeated = np.repeat(square, counts)
    by_rows = size_ladder(repeated, Core(3), sample(len(repeated)), 20.0, 1.2)
    for one, two in zip(by_count.rungs, by_rows.rungs, strict=True):
        assert_allclose([one.scale, one.eps_hat], [two.scale, two.eps_hat], rtol=1e-9, atol=1e-12)
        assert_allclose(one.pvalue, two.pvalue, rtol=1e-6)


def test_clean_rows_exceed_what_chance_allows_as_seldom_as_they_should():
    """Differences between sizes, over their yardstick, are standard normal or smaller."""
    found = []
    for seed in range(200):
        square = squares(200, 2, seed=seed)
        sizes = [fixed_size(square, a, Core(2), sample(200), 1.0, a) for a in (1.8, 1.2)]
        yardstick = Yardstick(square, 1.8, 2, sample(200))
        variance = yardstick.variances(1.8, 1.2).size
        found.append(np.log(sizes[1] / sizes[0]) / np.sqrt(variance))
    assert 0.5 < np.std(found) < 1.1


def test_orders_fall_to_the_efficient_end():
    orders = ladder_orders(2.0, 1.2)
    assert_allclose(orders[[0, -1]], [2.0, 1.2])
    assert (np.diff(orders) < 0).all()
    assert_allclose(ladder_orders(1.1, 1.2), [1.2])
    assert budget_order(0.0, 3) == 1


def test_several_statistics_share_the_level():
    assert_allclose(chance([(1.96, 0.0)]), 0.025, atol=1e-4)
    assert_allclose(chance([(1.96, 0.0), (0.1, 3.0)]), 0.05, atol=1e-4)
    assert chance([(-3.0, 0.0)]) > 0.99
