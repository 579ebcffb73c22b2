"""The distribution of the mean losses of good groups."""

import numpy as np
import pytest

from rrmstats.core import entropy_weights
from rrmstats.core.grouped import GroupLaw


def law_of(losses, sizes, eps_bar, floor=0.0):
    weights, lambda_, _ = entropy_weights(losses, eps_bar, freq_weights=sizes)
    return GroupLaw.of(losses, weights, float(lambda_), sizes, floor)


@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("bad", [0, 300])
def test_mean_and_shape_of_chi_square_losses_of_unequal_groups(eps_bar, bad):
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 30, 4000).astype(float)
    losses = 3.0 * rng.chisquare(sizes) / sizes
    losses[:bad] += 500 * (eps_bar > 0)
    law = law_of(losses, sizes, eps_bar)
    assert law.mean == pytest.approx(3.0, rel=0.02)
    np.testing.assert_allclose(law.shapes, sizes / 2, rtol=0.1)


def test_scores_of_good_groups_are_normal_and_those_of_bad_ones_large():
    rng = np.random.default_rng(1)
    losses, sizes = rng.chisquare(10, 5000) / 10, np.full(5000, 10.0)
    losses[:500] += 20
    scores = law_of(losses, sizes, 0.2).scores(losses)
    assert (scores[:500] > 8).all()
    assert scores[500:].mean() == pytest.approx(0, abs=0.06)
    assert scores[500:].std() == pytest.approx(1, abs=0.06)
    assert (scores[500:] > 1.96).mean() == pytest.approx(0.025, abs=0.01)


def test_good_groups_that_differ_have_wider_limits():
    rng = np.random.default_rng(2)
    losses = rng.gamma(5, 1 / 5, 3000) * rng.chisquare(40, 3000) / 40
    law = law_of(losses, np.full(3000, 40.0), 0.1)
    assert law.shapes[0] < 6
    assert (law.scores(losses) > 2.33).mean() < 0.02


def test_losses_count_from_their_floor():
    rng = np.random.default_rng(3)
    losses = rng.chisquare(12, 2000) / 12 - 7
    law = law_of(losses, np.full(2000, 12.0), 0.2, floor=-7.0)
    assert law.mean == pytest.approx(1, rel=0.03)


def test_an_exact_fit_flags_what_is_not_on_it():
    losses = np.r_[np.zeros(8), 1e-3, 5.0]
    law = law_of(losses, np.ones(10), 0.2)
    assert list(law.scores(losses) > 3) == [False] * 8 + [True] * 2


def test_wrong_groups_that_keep_weight_leave_none_to_be_told():
    losses = np.r_[1500.0, 500.0, np.full(18, 0.1) + np.arange(18) / 100]
    weights, lambda_, _ = entropy_weights(losses, 0.05)
    law = GroupLaw.of(losses, weights, float(lambda_), np.full(20, 3.0))
    np.testing.assert_array_equal(law.scores(losses), 0)
