"""Rows in the order in which they are best removed."""

import numpy as np
import pytest

from rrmstats.models.removal import most_influential


def test_a_sign_changes_with_the_rows_whose_moves_add_up():
    found = most_influential(np.array([-0.5, 0.2, -0.3, -0.4]), 0.8, 1.0)
    assert found.rows.tolist() == [0, 3, 2]
    assert found.needed == 2


def test_a_negative_estimate_mirrors_a_positive_one():
    moves = np.random.default_rng(0).standard_normal(50)
    for critical in (None, 0.5, 3.0):
        one, other = (most_influential(s * moves, s * 2.0, 1.0, critical) for s in (1, -1))
        assert one.needed == other.needed
        np.testing.assert_array_equal(one.rows, other.rows)


def test_no_count_where_all_rows_do_not_suffice():
    found = most_influential(np.array([-0.1, -0.1, 0.3]), 0.5, 1.0)
    assert found.needed is None
    assert found.rows.tolist() == [0, 1]


def test_rows_that_are_out_are_not_ranked():
    assert 1 not in most_influential(np.array([-0.5, 0.0, -0.3]), 0.6, 1.0).rows


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_the_margin_moves_as_that_of_a_mean(scale):
    """The change of a mean in standard errors, to first order, is that of the formula."""
    z = scale * (0.1 + np.random.default_rng(1).standard_normal(9_000))
    n, mean = len(z), z.mean()
    moves = (mean - z) / n
    error = np.sqrt(moves @ moves)
    found = most_influential(moves, mean, error, 1.96)
    kept = np.delete(z, found.rows[: found.needed])
    left = np.sqrt(np.sum((kept - kept.mean()) ** 2)) / len(kept)
    # A first-order count is near the change; that of the sign would be far beyond.
    assert kept.mean() / left == pytest.approx(1.96, abs=1)
    assert mean / error > 8


def test_significance_comes_from_the_side_that_takes_fewer_rows():
    moves = np.array([-0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2])
    found = most_influential(moves, 0.1, 0.4, 1.96)
    assert found.rows[0] == 0
