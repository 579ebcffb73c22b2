"""Data that are odd or extreme: the right answer."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from rrmstats import RRMOLS

from .small_fit import ENDOG, EXOG, N, fit, replaced


def assert_sound(res):
    """Every number of a fit is one, and the summary prints."""
    assert res.converged
    for name in ("params", "weights", "losses", "risk", "scale", "resid", "n_kish", "entropy"):
        assert np.isfinite(getattr(res, name)).all(), name
    assert not np.isnan(res.lambda_)
    assert "nan" not in str(res.summary())


def test_collinear_columns_share_the_effect():
    full = fit()
    twice = fit(exog=np.c_[EXOG, EXOG[:, 1] - EXOG[:, 2]])
    assert_sound(twice)
    assert_allclose(twice.fittedvalues, full.fittedvalues, atol=1e-9)
    assert_allclose(twice.scale, full.scale)
    root = np.sqrt(twice.weights)[:, None]
    expected = np.linalg.pinv(root * twice.model.exog) @ (root[:, 0] * ENDOG)
    assert_allclose(twice.params, expected, atol=1e-8)
    assert "rank 3 but 4 columns" in " ".join(str(twice.summary()).split())


@pytest.mark.parametrize("level", [0.0, 5.0, 1e150])
def test_constant_endog(level):
    res = fit(endog=np.full(N, level))
    assert_sound(res)
    assert_allclose(res.params, [level, 0, 0], atol=1e-12 * max(level, 1))
    assert_allclose(res.weights, 1 / N)
    assert res.scale <= 1e-25 * max(level, 1) ** 2


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_exact_fit_of_most_rows(unit, offset):
    exog = EXOG + np.r_[0, offset, 0]
    truth = unit * np.array([1.0, -2.0, 0.3])
    bad = np.arange(N) < 12
    endog = exog @ truth + unit * np.where(bad, 7 + ENDOG, 0)
    res = fit(endog, exog, 0.4)
    assert_sound(res)
    assert_allclose(res.params, truth, rtol=1e-8)
    assert res.lambda_ == res.risk == res.scale == 0
    assert_allclose(res.weights, np.where(bad, 0, 1 / 38), rtol=1e-12)
    assert_allclose(res.n_eff, 38)


@pytest.mark.parametrize("k", [1, 3])
def test_a_single_row(k):
    res = fit(ENDOG[:1], EXOG[:1, :k], 0.0)
    assert res.converged
    assert_allclose(res.fittedvalues, ENDOG[:1])
    assert res.weights.tolist() == [1.0]
    assert np.isnan(res.scale) and np.isnan(res.bse).all()
    assert "errors are unknown (nan)" in " ".join(str(res.summary()).split())


def test_duplicated_rows():
    once, thrice = fit(), fit(np.tile(ENDOG, 3), np.tile(EXOG, (3, 1)))
    assert_allclose(thrice.params, once.params, rtol=1e-8)
    assert_allclose(thrice.n_kish, 3 * once.n_kish, rtol=1e-8)


@pytest.mark.parametrize("value", [1e8, 1e30, 1e100, 1e150, -1e150])
def test_one_enormous_response(value):
    res = fit(replaced(ENDOG, 0, value))
    assert_sound(res)
    assert_allclose(res.params, fit(replaced(ENDOG, 0, 1e4)).params, rtol=1e-6)
    assert res.weights[0] == 0


@pytest.mark.parametrize("value", [1e8, 1e30])
def test_one_enormous_leverage_point(value):
    res = fit(exog=replaced(EXOG, (0, 1), value))
    assert_sound(res)
    assert_allclose(res.params, fit(exog=replaced(EXOG, (0, 1), 1e5)).params, rtol=1e-6)


@pytest.mark.parametrize("row", [3, 30])
def test_a_dummy_with_a_single_one(row):
    dummy = np.eye(N)[row]
    res = fit(exog=np.c_[EXOG, dummy])
    assert_sound(res)
    assert_allclose(res.resid[row], 0, atol=1e-8)
    without = fit(np.delete(ENDOG, row), np.delete(EXOG, row, axis=0))
    assert_allclose(res.params[:3], without.params, atol=0.1)


def test_a_dummy_whose_only_row_has_no_prior_weight():
    weights = np.where(np.arange(N) == 30, 0.0, 1.0)
    res = fit(exog=np.c_[EXOG, np.eye(N)[30]], freq_weights=weights)
    assert_sound(res)
    assert_allclose(res.fittedvalues[:30], fit(freq_weights=weights).fittedvalues[:30], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "bool"])
def test_types_of_numbers(dtype):
    whole = np.round(4 * np.c_[ENDOG, EXOG]) % 2 if dtype == "bool" else np.round(4 * EXOG)
    endog = np.round(ENDOG) > 2 if dtype == "bool" else np.round(ENDOG)
    exog = np.c_[np.ones(N), whole[:, 1:3]]
    expected = fit(endog.astype(float), exog)
    typed = fit(pd.Series(endog).astype(dtype), pd.DataFrame(exog).astype(dtype))
    assert_allclose(typed.params, expected.params, rtol=1e-9, atol=1e-12)
    plain = fit(endog.astype(dtype), exog.astype(dtype))
    assert_allclose(plain.params, expected.params, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(N, 1), (N,)])
def test_lists_and_columns(shape):
    res = fit(np.reshape(ENDOG, shape).tolist(), EXOG.tolist())
    assert_allclose(res.params, fit().params, rtol=1e-12)
    single = fit(ENDOG, EXOG[:, 0])
    assert_allclose(single.params, fit(ENDOG, sm.add_constant(ENDOG)[:, :1]).params)


def test_objects_that_are_numbers():
    assert_allclose(fit(ENDOG.astype(object)).params, fit().params)


@pytest.mark.parametrize("eps_bar", [0.3, "auto"])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.ModelWarning")
def test_responses_most_of_which_are_equal(eps_bar, steps):
    endog = np.array([2.0, 1, 1, 0, 0, 0, 0, 0, 0, 2])  # six of ten rows fit exactly
    exog = sm.add_constant(np.arange(10.0))
    res = RRMOLS(endog, exog, eps_bar).fit(steps=steps)
    assert np.isfinite(res.params).all() and res.scale >= 0
    assert res.eps_hat <= res.eps_bar + 1e-12


@pytest.mark.parametrize("eps_bar", [0.7, 0.8, 0.9])
@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.ModelWarning")
def test_bounds_that_leave_hardly_more_rows_than_parameters(eps_bar):
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal(60))
    res = RRMOLS(exog.sum(axis=1) + rng.standard_normal(60), exog, eps_bar).fit(steps=1)
    assert np.isfinite(res.params).all() and res.scale > 0
