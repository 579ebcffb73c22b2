"""Clean rows are flagged as often as promised, in small samples too."""

import numpy as np
import pytest

from replication.samples import one_sided_outliers
from rrmstats import RRMOLS


def alarms(n, k, eps_bar, runs, level=0.975):
    """Return the shares of clean rows that are flagged, by one step and by two."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng([31, n, seed])
        endog, exog = one_sided_outliers(rng, n, np.ones(k), share=0.0)
        res = RRMOLS(endog, exog, eps_bar).fit()
        found.append([step.outliers(level).mean() for step in (res.first_step, res)])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("eps_bar", [0.1, 0.25, 0.4])
@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
@pytest.mark.filterwarnings("ignore:Another explanation is about as good")
def test_few_rows_per_parameter(eps_bar):
    assert 0.01 < alarms(30, 7, eps_bar, 40)[1] < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
@pytest.mark.xfail(
    reason="the scale of a first step comes from its weights alone, and is too small in samples"
)
def test_few_rows_per_parameter_in_one_step():
    assert 0.01 < alarms(30, 7, 0.25, 40)[0] < 0.05


def test_many_rows_have_the_level():
    found = alarms(1000, 3, 0.2, 8, level=0.9)
    assert (np.abs(found - 0.1) < 0.015).all()


def test_far_rows_are_flagged_and_good_ones_are_not():
    endog, exog = one_sided_outliers(np.random.default_rng(0), 60, np.ones(3), 0.2, 8.0)
    res = RRMOLS(endog, exog, 0.3).fit()
    for step in (res, res.first_step):
        assert step.outliers(0.999)[:12].all()
        assert step.outliers(0.999)[12:].mean() < 0.05
        frame = step.outlier_test()
        assert (frame["bonf(p)"][:12] < 0.05).all() and (frame["bonf(p)"][12:] > 0.01).all()
