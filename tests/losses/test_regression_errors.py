"""Standard errors of linear regression, where noise is constant and where it changes."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.stats.sandwich_covariance import S_hac_simple

from replication.samples import changing_noise, one_sided_outliers
from rrmstats import RRMOLS
from rrmstats.core.sandwich import lagged_square
from rrmstats.losses.regression import fitted_variances

TRUTH = np.array([0.0, 1.0, -0.5])


def covered(draw, n, eps_bar, runs, cov_type="sandwich"):
    """Return the shares of intervals that hold the slopes, of one step and of two."""
    hits = []
    for seed in range(runs):
        endog, exog = draw(np.random.default_rng([5, n, seed]), n, params=TRUTH)
        two = RRMOLS(endog, exog, eps_bar).fit(cov_type=cov_type)
        for res in (two.first_step, two):
            low, high = np.asarray(res.conf_int())[1:].T
            hits.append((low <= TRUTH[1:]) & (TRUTH[1:] <= high))
    return np.reshape(hits, (runs, 2, 2)).mean(axis=(0, 2))


def clean(rng, n, params):
    return one_sided_outliers(rng, n, params, share=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("eps_bar", [0.1, 0.4])
@pytest.mark.parametrize("draw", [clean, changing_noise])
def test_intervals_cover(draw, eps_bar):
    """With 50 samples of two slopes the coverage is known to about 0.02."""
    found = covered(draw, 100, eps_bar, 50)
    assert (found > 0.90).all() and (found < 0.995).all()


@pytest.mark.slow
def test_errors_for_constant_noise_are_too_small_where_it_changes():
    """In two steps rows are weighted by their noise, so that errors for constant noise hold."""
    robust = covered(changing_noise, 200, 0.2, 30)
    constant = covered(changing_noise, 200, 0.2, 30, "nonrobust")
    assert constant[0] < 0.85
    assert robust[0] > constant[0] + 0.08
    assert constant[1] > 0.9


def test_least_squares_has_the_usual_errors():
    endog, exog = changing_noise(np.random.default_rng(0), 80)
    plain = sm.OLS(endog, exog)
    for steps in (1, 2):
        model = RRMOLS(endog, exog, 0.0)
        sandwich = model.fit(steps=steps)
        assert_allclose(sandwich.cov_params(), plain.fit(cov_type="HC3").cov_params(), rtol=1e-9)
        nonrobust = model.fit(steps=steps, cov_type="nonrobust")
        assert_allclose(nonrobust.cov_params(), plain.fit().cov_params(), rtol=1e-9)
        assert_allclose(nonrobust.conf_int(), plain.fit().conf_int(), rtol=1e-9)


def test_errors_of_clean_noise_are_the_same_for_both_assumptions():
    endog, exog = clean(np.random.default_rng(0), 5000, TRUTH)
    model = RRMOLS(endog, exog, 0.2)
    for steps in (1, 2):
        ratio = model.fit(steps=steps).bse / model.fit(steps=steps, cov_type="nonrobust").bse
        assert_allclose(ratio, 1, atol=0.1)


def test_lags_are_those_of_statsmodels():
    rng = np.random.default_rng(0)
    moves = rng.standard_normal((50, 3)).cumsum(axis=0)
    for lags in (0, 1, 4):
        assert_allclose(lagged_square(moves, lags), S_hac_simple(moves, nlags=lags))


def test_noise_that_lasts_widens_the_errors_of_what_lasts():
    rng = np.random.default_rng(2)

    def lasting():
        found = rng.standard_normal(400)
        for i in range(1, 400):
            found[i] += 0.8 * found[i - 1]
        return found

    exog = np.c_[np.ones(400), lasting(), rng.standard_normal(400)]
    model = RRMOLS(exog.sum(axis=1) + lasting(), exog, 0.1)
    for steps in (1, 2):
        res = model.fit(steps=steps, cov_type="HAC", cov_kwds={"maxlags": 10})
        ratio = res.bse / model.fit(steps=steps).bse
        assert (ratio[:2] > 1.3).all()
        assert 0.7 < ratio[2] < 1.3
    assert "depend on each other up to 10 apart" in " ".join(str(res.summary()).split())


def test_lags_refuse_frequency_weights():
    endog, exog = clean(np.random.default_rng(0), 50, TRUTH)
    model = RRMOLS(endog, exog, 0.1, freq_weights=np.ones(50))
    with pytest.raises(ValueError, match="order of time, which frequency weights do not tell"):
        model.fit(cov_type="HAC", cov_kwds={"maxlags": 2})


@pytest.mark.parametrize("order", [1.0, 1.224])
def test_variances_under_weights_are_found(order):
    """Log variances linear in a feature, seen through weights that favor small residuals."""
    rng = np.random.default_rng(0)
    feature = rng.standard_normal(20_000)
    variances = np.exp(0.3 + 0.7 * feature)
    squares = variances * rng.standard_normal(20_000) ** 2
    mass = np.exp(-0.5 * (order - 1) * squares)
    features = np.c_[np.ones(20_000), feature]
    assert_allclose(fitted_variances(features, mass, squares, order), [0.3, 0.7], atol=0.05)


def test_errors_do_not_depend_on_units_and_coordinates():
    """Noise that changes does so with the columns of the second step, in any units of these."""
    endog, exog = changing_noise(np.random.default_rng(1), 100)
    turned = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, -2.0]])
    for steps, turn in ((1, turned), (2, np.diag([1.0, 3.0, -2.0]))):
        plain = RRMOLS(endog, exog, 0.2).fit(steps=steps)
        other = RRMOLS(1e3 * endog, exog @ turn, 0.2).fit(steps=steps)
        back = 1e-3 * turn
        assert_allclose(
            back @ other.cov_params() @ back.T, plain.cov_params(), rtol=1e-4, atol=1e-9
        )


@pytest.mark.filterwarnings("ignore:the second step did not converge")
def test_a_level_without_trusted_rows_has_finite_errors():
    """All rows of a level are corrupted in other ways: its coefficient is hardly known."""
    rng = np.random.default_rng(0)
    level = np.zeros(100)
    level[:3] = 1
    exog = np.c_[np.ones(100), rng.standard_normal(100), level]
    endog = exog[:, 1] + rng.standard_normal(100)
    endog[:3] = [1e3, -2e3, 4e3]
    for steps in (1, 2):
        res = RRMOLS(endog, exog, 0.2).fit(steps=steps)
        assert np.isfinite(res.bse).all()
