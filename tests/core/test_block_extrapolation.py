"""Extrapolation of moments, on maps whose fixed points are known."""

import numpy as np
from numpy.testing import assert_allclose

from rrmstats.core.block_extrapolation import PATIENCE, MomentHistory


def steps_of(history, move, start, count, metric=lambda changes: changes):
    """Return where a history leads in so many steps of a map."""
    there = history.given = start
    for _ in range(count):
        there, _ = history.propose(move(there), metric)
        history.given = there
    return there


def test_a_linear_map_of_three_dimensions_ends_after_four_differences():
    matrix = np.diag([0.9, 0.5, -0.7]) + 0.1
    end = np.array([1.0, -2.0, 3.0])
    found = steps_of(MomentHistory(), lambda x: end + matrix @ (x - end), np.zeros(3), 5)
    assert_allclose(found, end, atol=1e-9)


def test_the_metric_decides_what_is_small():
    history = MomentHistory()
    steps_of(history, lambda x: x + 1.0, np.zeros(2), 1, lambda changes: 1e-3 * changes)
    assert_allclose(history.size, 1e-3)


def test_small_changes_that_no_longer_shrink_are_rounding():
    history = MomentHistory()
    history.given = np.zeros(1)
    for i in range(PATIENCE + 1):
        assert not history.stalled(1e-5)
        history.propose(history.given + 1e-7 * (1 + 0.1 * (-1) ** i), lambda changes: changes)
    assert history.stalled(1e-5)
    assert not history.stalled(1e-9)


def test_a_forgotten_history_takes_a_plain_step():
    history = MomentHistory()
    steps_of(history, lambda x: 0.5 * x, np.ones(1), 3)
    history.forget()
    history.given = np.array([8.0])
    there, extrapolated = history.propose(np.array([4.0]), lambda changes: changes)
    assert not extrapolated
    assert there == 4.0
