import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from rrmstats.core.frames import (
    clipped_spread,
    column_frame,
    independent_rows,
    positive_median,
    sign_frame,
    typical_spread,
)


def sparse_design(rng, n=300, levels=15):
    """Return a constant, a factor, a column with three ones and a number of large scale."""
    rare = np.zeros(n)
    rare[rng.choice(n, 3, replace=False)] = 1
    dummies = rng.integers(levels, size=n)[:, None] == np.arange(1, levels)
    return np.column_stack([np.ones(n), dummies, rare, 1e6 * rng.standard_normal(n)])


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    k=st.integers(1, 8),
    rank=st.integers(1, 8),
    log_scale=st.floats(-8, 8),
)
def test_independent_rows_are_as_many_as_the_rank(seed, n, k, rank, log_scale):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (n, min(rank, k))) @ rng.standard_normal((min(rank, k), k))
    rows[:, 0] *= 10**log_scale
    unit = np.abs(rows).max(axis=0)
    scaled = rows / np.where(unit > 0, unit, 1.0)
    chosen = independent_rows(rows)
    assert len(chosen) == len(set(chosen.tolist())) == np.linalg.matrix_rank(scaled, tol=1e-9)
    assert np.linalg.matrix_rank(scaled[chosen], tol=1e-9) == len(chosen)


def test_independent_rows_of_a_sparse_design_are_the_first():
    exog = sparse_design(np.random.default_rng(0))
    rows = independent_rows(exog)
    assert len(rows) == np.linalg.matrix_rank(exog[rows]) == exog.shape[1]
    assert np.linalg.matrix_rank(exog[: max(rows)]) < exog.shape[1]


def test_rows_in_general_position_are_taken_as_they_come():
    rows = np.random.default_rng(0).standard_normal((30, 5))
    assert independent_rows(rows).tolist() == [0, 1, 2, 3, 4]


def test_the_one_row_that_is_needed_is_found_in_any_block():
    rows = np.column_stack([np.ones(5 * 256), np.zeros(5 * 256)])
    rows[4 * 256 + 3, 1] = 1.0
    assert independent_rows(rows).tolist() == [0, 4 * 256 + 3]


def test_a_dependent_column_adds_no_row():
    exog = sparse_design(np.random.default_rng(0))
    assert len(independent_rows(np.c_[exog, exog[:, 1] + exog[:, 2]])) == exog.shape[1]


@pytest.mark.parametrize("zeros", [0, 3, 4, 9])
def test_the_median_of_positive_entries(zeros):
    values = np.random.default_rng(0).random((9, 2)) + 0.1
    values[:zeros, 0] = 0.0
    expected = np.median(values[zeros:, 0]) if zeros < 9 else 0.0
    assert_allclose(positive_median(values), [expected, np.median(values[:, 1])])


def test_bad_rows_do_not_stretch_a_column():
    column = np.random.default_rng(0).standard_normal((1000, 1))
    bad = column.copy()
    bad[:300] += 1e6
    assert_allclose(clipped_spread(column), 1, rtol=0.1)
    assert clipped_spread(bad) < 10
    assert typical_spread(bad) < 10


def test_a_mostly_constant_column_keeps_its_spread():
    column = np.r_[np.zeros(900), np.ones(100)][:, None]
    assert_allclose(clipped_spread(column), 0.3)
    assert_allclose(typical_spread(column), 1.4826, rtol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_of_weight_two_is_the_row_twice(seed):
    rng = np.random.default_rng(seed)
    columns = np.c_[rng.standard_normal((30, 2)), rng.integers(0, 3, 30), np.ones(30)]
    counts = rng.integers(0, 4, 30)
    expected = clipped_spread(np.repeat(columns, counts, axis=0))
    assert_allclose(clipped_spread(columns, counts.astype(float)), expected, atol=1e-15)


def test_frames_do_not_depend_on_units_and_take_constants():
    rng = np.random.default_rng(0)
    columns = np.c_[np.full(200, 7.0), np.zeros(200), rng.standard_normal((200, 3))]
    frame = column_frame(columns)
    assert_allclose(frame[:, 0], 1)
    assert_allclose(frame[:, 1], 0)
    assert_allclose(column_frame(columns * [3, 1, 1e9, 1e-9, -2]), frame * [1, 1, 1, 1, -1])


def test_columns_far_from_zero_are_centered_and_others_are_not():
    column = np.random.default_rng(0).standard_normal((999, 1))
    assert abs(np.median(column_frame(column + 50))) < 1e-12
    near = column - np.median(column) + 0.1
    assert_allclose(np.median(column_frame(near)), 0.1 / clipped_spread(near)[0])


def test_signs_do_not_see_how_far_out_rows_are():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((400, 4)) * [5, 1, 1, 1]
    data[:60, 1] = 1e8 * rng.choice([-1, 1], 60)
    center, axes = sign_frame(data, True)
    assert_allclose(axes.T @ axes, np.eye(4), atol=1e-12)
    assert abs(axes[0, 0]) > 0.99
    assert np.abs(center).max() < 0.5
    assert not sign_frame(data, False)[0].any()
