"""Jumps of estimates, rows that leave, and runs of states."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rrmstats.core.changes import leaving_rows, left_for_good, move, steady_runs


def test_a_move_is_in_units_of_errors_and_corrected_for_the_number_of_terms():
    found = move(np.array([0.0, 1.0, 5.0]), np.array([0.0, 2.0, 1.0]), np.array([1.0, 0.5, 1.0]))
    assert_allclose(found.zscores, [0, 2, -4])
    assert_allclose(found.pvalue, 3 * 2 * norm.sf(4))
    assert_array_equal(found.beyond(0.2), [2, 1])
    assert_array_equal(found.beyond(0.01), [2])


def test_terms_without_errors_count_neither_as_moves_nor_as_tests():
    found = move(np.array([0.0, 1.0]), np.array([9.0, 3.0]), np.array([np.nan, 1.0]))
    assert np.isnan(found.zscores[0])
    assert_allclose(found.pvalue, 2 * norm.sf(2))
    assert_array_equal(found.beyond(0.05), [1])
    nothing = move(np.zeros(2), np.ones(2), np.full(2, np.nan))
    assert nothing.pvalue == 1
    assert len(nothing.beyond(0.5)) == 0


def test_exact_fits_move_beyond_chance_or_not_at_all():
    found = move(np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.zeros(2))
    assert_array_equal(found.zscores, [0, np.inf])
    assert found.pvalue == 0
    assert move(np.ones(2), np.ones(2), np.zeros(2)).pvalue == 1


def test_rows_leave_from_above_half_to_below_a_tenth():
    before, after = np.array([1.0, 0.4, 1.0, 0.05]), np.array([0.09, 0.05, 0.11, 1.2])
    assert_array_equal(leaving_rows(before, after), [0])
    assert_array_equal(leaving_rows(after, before), [3])


def test_left_for_good_is_the_last_departure():
    relative = np.array(
        [[0.4, 0.3, 0.2], [1.0, 0.2, 1.0], [1.0, 0.2, 0.1], [0.1, 1.0, 0.1], [1.0, 1.0, 1.0]]
    )
    assert_array_equal(left_for_good(relative, 0.5), [0, 3, 1, 2, 3])


@pytest.mark.parametrize(
    ("states", "runs"),
    [
        ([1, 1, 1], [(0, 3)]),
        ([1, 0, 0, 0], [(0, 1), (1, 4)]),
        ([0, 0, 0, 1], [(0, 3), (3, 4)]),
        ([0, 0, 1, 0, 0], [(0, 5)]),
        ([0, 0, 1, 1, 0, 0], [(0, 2), (2, 4), (4, 6)]),
        ([0, 0, 1, 0, 1, 0, 0], [(0, 7)]),
        ([0, 0, 1, 0, 1, 1], [(0, 4), (4, 6)]),
        ([1], [(0, 1)]),
    ],
)
def test_runs_leave_out_what_comes_back_at_once(states, runs):
    assert steady_runs(np.array(states)) == runs
