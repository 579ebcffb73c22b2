"""Scores within a subspace: rows off it do not count in the second step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats import RRMPCA


def test_rows_off_the_subspace_do_not_widen_the_scores():
    """Their scores are two standard deviations off: no fit to the scores alone tells them."""
    x = np.random.default_rng(0).standard_normal((20_000, 4)) * [4, 3, 1, 1]
    x[:2000] += [8, 6, 30, 30]
    res = RRMPCA(x, 2, 0.2).fit()
    assert_allclose(res.eigenvals, [16, 9], rtol=0.04)
    assert_allclose(res.mean[:2], 0, atol=0.1)
    assert res.first_step.eigenvals[0] > 17
    assert_allclose(res.eps_hat, 0.1, atol=4 * res.eps_hat_se)


@pytest.mark.parametrize("shift", [(300, 300, 0, 0), (0, 0, 300, 0), (300, 0, 300, 0)])
def test_contamination_within_and_off_the_subspace(shift):
    x = np.random.default_rng(1).standard_normal((500, 4)) * [4, 3, 1, 1]
    x[:75] += np.array(shift) * np.random.default_rng(2).uniform(1, 2, (75, 1))
    res = RRMPCA(x, 2, 0.3).fit()
    for step in (res, res.first_step):
        assert_allclose(step.eps_hat, 0.15, atol=0.04)
        assert 0.01 < step.eps_hat_se < 0.03
    assert_allclose(res.eigenvals, [16, 9], rtol=0.3)


@pytest.mark.parametrize("eps_bar", [0.1, 0.4])
@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
def test_few_rows_for_many_axes_do_not_collapse(eps_bar):
    spread = np.r_[np.arange(10, 0, -1), np.ones(50)]
    x = np.random.default_rng(0).standard_normal((40, 60)) * spread
    res = RRMPCA(x, 10, eps_bar).fit()
    assert res.eigenvals[-1] > 1.5
    assert np.isfinite(res.bse).all()
