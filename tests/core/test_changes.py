"""Rows that leave, and runs of states."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rrmstats.core.comparison import leaving_rows, left_for_good, steady_runs


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
