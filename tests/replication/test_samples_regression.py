import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

from replication import samples

PARAMS = np.array([0.5, 1.0, -2.0])
N = 20_000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def residuals(endog, exog, params=PARAMS):
    return endog - exog @ params


def test_shares_are_rounded_down_to_whole_rows():
    assert [samples.count_bad(100, share) for share in (0, 0.29, 0.58, 0.999, 1)] == [
        0,
        29,
        58,
        99,
        100,
    ]


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_one_sided_outliers(rng, share):
    bad = int(share * N)
    noise = residuals(*samples.one_sided_outliers(rng, N, PARAMS, share, shift=10.0))
    assert_allclose([noise[bad:].mean(), noise[bad:].std()], [0, 1], atol=0.02)
    assert bad == 0 or noise[:bad].mean() == pytest.approx(10, abs=0.1)


def test_heavy_tailed_rows(rng):
    noise = residuals(*samples.heavy_tailed_rows(rng, N, PARAMS, share=0.5))
    quartile = stats.t(1.5).ppf(0.75)
    assert np.quantile(noise[: N // 2], 0.75) == pytest.approx(3 * quartile, rel=0.05)
    assert np.abs(noise[N // 2 :]).max() < 5


def test_changing_noise(rng):
    endog, exog = samples.changing_noise(rng, N, PARAMS)
    standardized = residuals(endog, exog) / (0.3 + np.abs(exog[:, 1]))
    for half in (np.abs(exog[:, 1]) < 0.7, np.abs(exog[:, 1]) >= 0.7):
        assert standardized[half].std() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("shape", [1.0, 4.0])
def test_skewed_noise(rng, shape):
    noise = residuals(*samples.skewed_noise(rng, 10 * N, PARAMS, shape))
    assert_allclose([noise.mean(), noise.std()], [0, 1], atol=0.02)
    assert stats.skew(noise) == pytest.approx(2 / np.sqrt(shape), rel=0.05)


def test_leverage_shift(rng):
    endog, exog = samples.leverage_shift(rng, N, PARAMS, share=0.1)
    assert (exog[:, 0] == 1).all()
    assert_allclose(exog[: N // 10, 1:].mean(axis=0), 10, atol=0.1)
    assert_allclose([endog[: N // 10].mean(), endog[: N // 10].std()], [-20, 1], atol=0.1)
    assert residuals(endog, exog)[N // 10 :].std() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("d", [3, 50])
def test_gradient_attack_moves_least_squares_to_zero(rng, d):
    endog, exog = samples.gradient_attack(rng, 500, d, 0.15)
    assert (endog[:75] == -1).all()
    assert_allclose(exog.T @ endog, 0, atol=1e-9 * np.abs(exog.T @ np.abs(endog)).max())
    good = sm.OLS(endog[75:], exog[75:]).fit().params
    assert_allclose(good, 1, atol=0.25)


def test_gradient_attack_without_bad_rows_is_clean(rng):
    endog, exog = samples.gradient_attack(rng, 500, 3, 0.0)
    assert_allclose(sm.OLS(endog, exog).fit().params, 1, atol=0.2)


def test_factor_leverage(rng):
    data = samples.factor_leverage(rng, 400, n_levels=3, share=0.1)
    assert isinstance(data, pd.DataFrame)
    assert sorted(data["g"].unique()) == ["a", "b", "c"]
    good = smf.ols("y ~ x + C(g)", data[40:]).fit()
    assert_allclose(good.params, [0, 1, 2, 1], atol=0.2)
    assert data["x"][:40].min() > data["x"][40:].max()
    assert smf.ols("y ~ x + C(g)", data).fit().params["x"] < 0


@pytest.mark.parametrize("kind", samples.KINDS)
def test_distant_regression(rng, kind):
    endog, exog = samples.distant_regression(rng, kind, 400, PARAMS, 0.1, 1e3)
    noise = residuals(endog, exog)
    assert np.abs(noise[40:]).max() < 5
    assert (np.median(np.abs(noise[:40])) > 100) == (kind != "good leverage")
    assert (np.abs(exog[:40, 1:]).max() > 100) == (kind != "vertical")
    assert (exog[:40, 1:].std() < 2) == (kind in ("vertical", "cluster", "tight cluster"))
