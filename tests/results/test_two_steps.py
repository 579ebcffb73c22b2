"""Results of two steps: what they keep of the first, and what they say."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from replication.samples import (
    extreme_flips,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit

MODELS = {
    "ols": lambda data: RRMOLS(data.y, sm.add_constant(data[["x", "z"]]), 0.2),
    "logit": lambda data: RRMLogit(data.label, sm.add_constant(data[["x", "z"]]), 0.1),
    "cov": lambda data: RRMCov(data[["x", "z", "y"]], 0.2),
    "pca": lambda data: RRMPCA(data[["x", "z", "y"]], 2, 0.2),
}


def frame(n=200):
    """Return a frame whose first rows are wrong."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.standard_normal((n, 2)), columns=["x", "z"])
    linear = data.x - 0.5 * data.z
    data["y"] = linear + 0.5 * rng.standard_normal(n)
    data["label"] = (rng.random(n) < 1 / (1 + np.exp(-3 * linear))).astype(float)
    data.loc[: n // 20, ["x", "y", "label"]] = [10.0, -20.0, 0.0]
    return data


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param](frame())


def test_the_first_step_is_that_of_a_fit_without_a_second(model):
    alone, both = model.fit(steps=1), model.fit()
    first = both.first_step
    assert alone.first_step is None and alone.steps == 1
    assert both.steps == 2
    assert first.steps == 1
    assert_allclose(first.params, alone.params, rtol=1e-9, atol=1e-12)
    assert_allclose(first.weights, alone.weights, rtol=1e-9, atol=1e-12)
    assert_allclose(first.bse, alone.bse, rtol=1e-9, atol=1e-12)
    assert_allclose(first.conf_int(), alone.conf_int(), rtol=1e-9)
    assert (np.asarray(both.params) != np.asarray(alone.params)).all()
    assert_allclose(both.weights.sum(), 1)
    assert both.weights.iloc[:8].max() < 1e-3 / 200


def test_the_second_step_wastes_fewer_rows(model):
    res = model.fit()
    assert res.n_eff > res.first_step.n_eff
    assert res.n_kish > res.first_step.n_kish
    assert_allclose(res.weights.iloc[50] / res.weights.iloc[60], 1, rtol=0.1)
    assert_allclose(res.risk, res.weights @ res.losses, rtol=1e-9)


def test_the_first_steps_errors_follow_cov_type():
    groups = {"groups": np.arange(200) // 4}
    model = MODELS["ols"](frame())
    res = model.fit(cov_type="cluster", cov_kwds=groups)
    alone = model.fit(cov_type="cluster", cov_kwds=groups, steps=1)
    assert_allclose(res.first_step.bse, alone.bse, rtol=1e-9)
    boot = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 20})
    assert_allclose(boot.first_step.bse, model.fit(steps=1).bse, rtol=1e-9)


def test_summaries_say_which_step_and_its_price(model):
    one, two = model.fit(steps=1), model.fit()
    first, second = str(one.summary()), str(two.summary())
    assert first.replace(" ", "").count("Steps:one") == 1
    assert second.replace(" ", "").count("Steps:two") == 1
    assert "These are the estimates of the second step; first_step holds" in second
    assert "first_step" not in first
    assert str(two.first_step.summary()).replace(" ", "").count("Steps:one") == 1
    assert "price" in first
    assert "(steps=2)" in first
    assert "price" not in second
    if not isinstance(model, RRMLogit):
        assert f"price of eps_bar={one.eps_bar:g}" in first


def test_the_price_is_the_gaussian_efficiency():
    text = " ".join(str(MODELS["ols"](frame()).fit(steps=1).summary()).split())
    assert "the variances are those of 40% of the rows" in text
    text = str(RRMOLS(frame().y, frame()[["x"]], 0.0).fit(stability=False, steps=1).summary())
    assert "price" not in text


@pytest.mark.parametrize("steps", [0, 3, 1.5, "2", True, None])
def test_steps_are_one_or_two(model, steps):
    with pytest.raises(ValueError, match=r"steps must be 2, the default, or 1, .* got"):
        model.fit(steps=steps)


@pytest.mark.parametrize("wrong", [0, 50])
def test_wrong_labels_at_the_extremes_do_not_shrink_the_coefficients(wrong):
    """Labels made the improbable one at extreme predictors are not improbable one by one."""
    rng = np.random.default_rng(3)
    endog, exog = extreme_flips(rng, 1000, (0.0, 1.0, -0.5), wrong / 1000)
    res = RRMLogit(endog, exog, 0.1).fit()
    assert np.abs(res.params - [0.0, 1.0, -0.5]).max() < 0.2
    assert res.first_step.steps_pvalue == 1
