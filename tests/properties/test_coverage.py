"""Intervals cover as often as they say."""

import numpy as np
import pytest
import statsmodels.api as sm

from replication.samples import (
    correlated_points,
    logistic_labels,
    one_sided_outliers,
)
from rrmstats import RRMOLS, RRMCov, RRMLogit

pytestmark = pytest.mark.slow


def covered(low, high, truth):
    return (low <= truth) & (truth <= high)


@pytest.mark.parametrize(
    ("eps_bar", "share", "steps"),
    [(0.2, 0.1, 1), (0.4, 0.2, 2)],
)
def test_intervals_cover_and_those_of_fixed_weights_do_not(eps_bar, share, steps):
    found, naive = [], []
    for seed in range(100):
        endog, exog = one_sided_outliers(
            np.random.default_rng(seed), 200, np.ones(4), share=share, shift=10.0
        )
        res = RRMOLS(endog, exog, eps_bar).fit(steps=steps)
        found.append(covered(*res.conf_int()[1:].T, 1.0))
        fixed = sm.WLS(endog, exog, weights=res.weights).fit()
        naive.append(covered(*fixed.conf_int()[1:].T, 1.0))
    # 300 intervals: 0.95 is known to 0.013.
    assert 0.92 <= np.mean(found) <= 0.98
    if steps == 1:
        assert np.mean(naive) < 0.8


def test_intervals_of_the_logit_cover():
    found = []
    for seed in range(100):
        endog, exog = logistic_labels(np.random.default_rng(seed), 500, (0.0, 1.0, -0.5))
        res = RRMLogit(endog, exog, 0.1).fit(steps=1)
        found.append(covered(*res.conf_int()[1:].T, [1.0, -0.5]))
    assert 0.91 <= np.mean(found) <= 0.99


def test_intervals_of_mean_and_covariance_cover():
    found = []
    for seed in range(50):
        data = correlated_points(np.random.default_rng(seed), 300, share=0.0)
        res = RRMCov(data, 0.2).fit(steps=1)
        found.append(covered(*res.conf_int().T, [0, 0, 1, 0.8, 1]))
    assert 0.91 <= np.mean(found) <= 0.98
