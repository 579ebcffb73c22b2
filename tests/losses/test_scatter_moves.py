"""Influence functions of sizes and shares, against derivatives and simulations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats import RRMCov
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.scatter_moves import Part, bounded, enlargement, good_share, size_scores
from rrmstats.losses.sizes import Sample, fixed_size


def test_scores_are_the_derivative_of_the_size():
    """One row counts a little more; location and shape are known."""
    square, n, order, core = np.random.default_rng(0).chisquare(3, 80), 80, 1.4, Core(3, 0, False)
    size = fixed_size(square, order, core, Sample.of(Setting(0.4), n), 1.0, 1.0)
    scores, _, bread = size_scores(square / size, order, 3, np.full(n, 1 / n))
    for row in (0, 7, 33):
        sizes = []
        for by in (0.01, -0.01):
            counts = np.ones(n)
            counts[row] += by
            sample = Sample.of(Setting(0.4, counts), n)
            sizes.append(fixed_size(square, order, core, sample, 1.0, 1.0))
        moved = np.log(sizes[0] / sizes[1]) / 0.02
        # The correction for the number of good rows moves as well, by the order of 1 / n.
        assert_allclose(moved, scores[row] / bread / n, atol=0.02 / n)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_error_of_the_share_of_good_rows(share):
    """Over 300 samples a standard deviation is known to 4 %."""
    rng, found, errors = np.random.default_rng(1), [], []
    sample = Sample.of(Setting(0.4), 300)
    for _ in range(300):
        square = np.where(rng.random(300) < share, 1e6, rng.chisquare(3, 300))
        size = fixed_size(square, 1.4, Core(3, 0, False), sample, 2.0, 1.0)
        good, error = good_share([Part(square / size, 1.4, 3)], sample)
        found.append(good)
        errors.append(error)
    assert_allclose(np.mean(found), 1 - share, atol=0.01)
    assert_allclose(np.mean(errors), np.std(found), rtol=0.15)


def test_rows_bad_in_one_part_are_bad():
    rng = np.random.default_rng(0)
    off, within = rng.chisquare(4, 2000), rng.chisquare(2, 2000)
    off[:200] += 1e4
    within[100:400] += 1e4
    sample = Sample.of(Setting(0.4), 2000)
    share, error = good_share([Part(off, 1.2, 4), Part(within, 1.3, 2)], sample)
    assert_allclose(share, 0.8, atol=0.03)
    assert 0.005 < error < 0.02


def test_derivatives_are_bounded_and_errors_enlarged():
    assert bounded(100.0, 1.0, 3, 1.0) == 2
    assert bounded(-1.0, 1.0, 3, 1.0) == 0.5
    assert_allclose(enlargement(Sample.of(Setting(0.1), 60), 4), np.sqrt(60 / 56))


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_standard_errors_are_those_of_the_simulation(efficiency):
    """40 samples know a standard deviation to a tenth; nine parameters are pooled."""
    rng, params, errors = np.random.default_rng(0), [], []
    for _ in range(40):
        x = rng.standard_normal((150, 3))
        x[:15] += 8
        res = RRMCov(x, 0.2).fit(efficiency=efficiency)
        params.append(res.params)
        errors.append(res.bse)
    ratio = np.mean(errors, axis=0) / np.std(params, axis=0)
    assert_allclose(np.mean(np.log(ratio)), 0, atol=0.15)
