"""Whole groups that are corrupt: errors and intervals of regressions, on a few seeded samples."""

import numpy as np
import pytest
import statsmodels.api as sm

from rrmstats import RRMOLS

GROUP = np.repeat(np.arange(50), 10)
N = len(GROUP)
TRUTH = np.array([1.0, 2.0, -1.0, 0.5])


def sample(seed, bad):
    rng = np.random.default_rng(seed)
    exog = sm.add_constant(rng.standard_normal((N, 3)))
    slopes = np.where((GROUP < bad)[:, None], TRUTH * [1, -1, -1, -1], TRUTH)
    return np.sum(exog * slopes, axis=1) + rng.standard_normal(N), exog


@pytest.fixture(scope="module", params=[0, 5], ids=["clean", "corrupt"])
def fits(request):
    found = []
    for seed in range(20):
        endog, exog = sample(seed, request.param)
        good = request.param <= GROUP
        clean = sm.OLS(endog[good], exog[good]).fit()
        by_row = RRMOLS(endog, exog, 0.2).fit(steps=2 if request.param else 1, stability=False)
        by_group = RRMOLS(endog, exog, 0.2, groups=GROUP).fit(stability=False)
        found.append((clean, by_row, by_group))
    return request.param, found


def error(results):
    return np.mean([np.linalg.norm(each.params - TRUTH) for each in results])


def test_errors_are_near_those_of_clean_rows_and_below_those_of_row_weights(fits):
    bad, found = fits
    clean, by_row, two = zip(*found, strict=True)
    one = [each.first_step for each in two]
    assert error(one) < 1.5 * error(clean)
    assert error(two) < 1.05 * error(clean)
    assert error(one) < error([each.first_step if bad else each for each in by_row])
    if bad:
        assert error(two) < error(by_row)
        assert all(each.group_weights[:bad].max() < 1e-3 for each in two)


def test_intervals_of_the_slopes_cover(fits):
    for step in ("one", "two"):
        chosen = [two.first_step if step == "one" else two for _, _, two in fits[1]]
        intervals = np.array([each.conf_int()[1:] for each in chosen])
        inside = (intervals[..., 0] < TRUTH[1:]) & (TRUTH[1:] < intervals[..., 1])
        assert 0.89 <= inside.mean() <= 0.995  # 60 intervals
    assert all(np.isfinite(two.bse).all() for _, _, two in fits[1])


def test_scale_is_consistent(fits):
    for scales in (
        [two.scale for *_, two in fits[1]],
        [two.first_step.scale for *_, two in fits[1]],
    ):
        assert np.mean(scales) == pytest.approx(1, abs=0.03)
