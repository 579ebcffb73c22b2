"""Fits with a smaller and a larger eps_bar, compared in units of chance."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import norm, t

from replication.samples import leverage_shift
from rrmstats import RRMOLS
from rrmstats.core.comparison import beyond_chance, compare, largest_pvalue
from rrmstats.core.estimate import standardized_departures
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps


def fits(sample, *eps_bars):
    problem = RRMOLS(*sample, 0.1).problem()
    return [take_steps(problem, Setting(eps_bar=eps_bar)) for eps_bar in eps_bars]


def test_a_bound_that_is_too_small_disagrees_with_one_that_is_not():
    small, large, larger = fits(leverage_shift(np.random.default_rng(0)), 0.05, 0.25, 0.35)
    found = compare(small, large)
    assert not found.agrees
    assert found.pvalue < 1e-6
    assert set(found.moved) == {0, 1, 2, 3}
    assert abs(found.zscores[found.moved[0]]) == np.abs(found.zscores).max()
    assert compare(large, larger).agrees
    assert len(compare(large, larger).moved) == 0


def test_differences_are_in_errors_of_the_more_robust_fit():
    """Those of the other are inflated just where it is wrong."""
    small, large = fits(leverage_shift(np.random.default_rng(0)), 0.05, 0.25)
    expected = (small.params - large.params) / np.sqrt(np.diag(large.covariance()))
    assert_allclose(compare(small, large).zscores, expected)


def test_the_largest_is_corrected_for_the_number_of_terms():
    zscores = np.array([0.0, 2.0, -4.0])
    assert_allclose(largest_pvalue(zscores), 3 * 2 * norm.sf(4))
    assert_allclose(largest_pvalue(zscores, 5.0), 3 * 2 * t.sf(4, 5))
    assert list(beyond_chance(zscores, 0.2)) == [2, 1]
    assert list(beyond_chance(zscores, 0.01)) == [2]
    assert list(beyond_chance(zscores, 0.01, 5.0)) == []


def test_terms_without_errors_count_neither_as_differences_nor_as_tests():
    zscores = np.array([np.nan, 2.0])
    assert_allclose(largest_pvalue(zscores), 2 * norm.sf(2))
    assert list(beyond_chance(zscores, 0.05)) == [1]
    nothing = np.full(2, np.nan)
    assert largest_pvalue(nothing) == 1
    assert len(beyond_chance(nothing, 0.5)) == 0


def test_unknown_departures_count_for_nothing_and_rounding_is_no_difference():
    own, error = np.array([1.0, 2.0, 0.0]), np.array([0.0, np.nan, 0.0])
    z = standardized_departures(np.array([1.0 + 1e-12, 3.0, 1.0]), own, error)
    assert z[0] == 0 and np.isnan(z[1]) and z[2] == np.inf
