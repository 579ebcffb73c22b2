"""What the weights of a first step tell of the noise, and of the share of good rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import minimize
from rrmstats.core.setting import Setting
from rrmstats.losses import RegressionProblem


def estimate_of(n=4000, share=0.2, shift=10.0, eps_bar=0.3, seed=0, freq_weights=None):
    """Return the first step of a regression with two coefficients of 1 and noise of variance 1."""
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(n), rng.standard_normal(n)]
    endog = exog.sum(axis=1) + rng.standard_normal(n)
    endog[: round(share * n)] += shift
    problem = RegressionProblem(endog, exog)
    setting = Setting(eps_bar=eps_bar, freq_weights=freq_weights)
    return problem.consistent(minimize(problem, eps_bar, freq_weights=freq_weights), setting)


@pytest.mark.parametrize("eps_bar", [0.3, 0.4])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
def test_scale_and_share_are_those_of_the_good_rows(share, eps_bar):
    noise = estimate_of(n=40_000, share=share, eps_bar=eps_bar)
    assert_allclose(noise.scale, 1, atol=0.1)
    assert_allclose(noise.eps_hat, share, atol=0.04)


def test_the_scale_of_few_rows_is_made_up_for_the_fit():
    """Residuals of a robust fit to 60 rows are far too small; what is left of it is chance."""
    scales = [estimate_of(n=60, share=0.0, eps_bar=0.1, seed=seed).scale for seed in range(40)]
    assert 0.85 < np.mean(scales) < 1.15


def test_the_share_is_never_above_the_bound():
    noise = estimate_of(share=0.2, eps_bar=0.1)
    assert noise.eps_hat <= 0.1 + 1e-12


def test_the_error_of_the_share_is_its_spread():
    """Which rows are bad is fixed here, so that the error counts more than the spread."""
    found = [estimate_of(n=1000, share=0.1, seed=seed) for seed in range(30)]
    spread = np.std([each.eps_hat for each in found])
    error = np.mean([each.eps_hat_se for each in found])
    assert 0.6 * spread < error < 2 * spread


def test_frequency_weights_repeat_rows():
    rows = estimate_of(n=300, freq_weights=np.full(300, 2.0))
    plain = estimate_of(n=300)
    assert_allclose(rows.noise.order, plain.noise.order, rtol=1e-8)
