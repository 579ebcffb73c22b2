"""Flags by losses alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.results.own_loss import loss_cutoff, loss_distances


@pytest.mark.parametrize("unit, shift", [(1.0, 0.0), (1e-6, 3.0), (1e4, -70.0)])
def test_clean_squares_are_flagged_at_the_level(unit, shift):
    losses = unit * np.random.default_rng(0).standard_normal(40_000) ** 2 + shift
    assert abs((losses > loss_cutoff(losses, 0.99)).mean() - 0.01) < 0.003


def test_forty_percent_of_outliers_do_not_hide_each_other():
    losses = np.random.default_rng(1).standard_normal(500) ** 2
    losses[:200] = 100.0
    assert (losses > loss_cutoff(losses, 0.975))[:200].all()


def test_a_row_of_weight_two_is_the_row_twice():
    losses = np.random.default_rng(2).standard_normal(60) ** 2
    counts = 1 + np.arange(60) % 3
    twice = np.repeat(losses, counts)
    ones = np.full(len(twice), 1 / len(twice))
    base = counts / counts.sum()
    assert_allclose(loss_cutoff(losses, 0.9, base), loss_cutoff(twice, 0.9, ones))


def test_losses_that_are_all_equal_are_no_outliers():
    assert_allclose(loss_distances(np.ones(9)), 0.0)
