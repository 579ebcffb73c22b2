"""The second step: what it is worth on clean data, what it keeps, and what it says."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, datasets
from rrmstats.experiments.samples import (
    correlated_points,
    extreme_flips,
    leverage_shift,
    logistic_labels,
    noisy_line,
    one_sided_outliers,
)

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


@pytest.mark.parametrize("eps_bar", [0.1, 0.2, 0.4])
def test_efficiency_of_the_slopes(eps_bar):
    """Least squares is best, so that what a fit differs by from it is independent of it."""
    excess = [[], []]
    for seed in range(60):
        endog, exog = one_sided_outliers(np.random.default_rng(seed), 500, np.ones(6), share=0.0)
        best = sm.OLS(endog, exog).fit()
        errors = np.sqrt(np.diag(best.normalized_cov_params))
        res = RRMOLS(endog, exog, eps_bar).fit(efficiency=0.95)
        for kept, fit in zip(excess, (res.first_step, res), strict=True):
            kept.append(((fit.params - best.params) / errors)[1:])
    first, second = (1 / (1 + np.mean(np.square(kept))) for kept in excess)
    assert 0.93 <= second <= 0.97
    # The asymptotic values are 0.63, 0.40 and 0.15; samples of 500 fall a little short of them.
    assert_allclose(first, {0.1: 0.63, 0.2: 0.40, 0.4: 0.15}[eps_bar], rtol=0.2)


@pytest.mark.parametrize("efficiency", [0.8, 0.99])
def test_efficiency_is_what_was_asked_for(efficiency):
    excess = []
    for seed in range(40):
        endog, exog = one_sided_outliers(np.random.default_rng(seed), 500, np.ones(6), share=0.0)
        best = sm.OLS(endog, exog).fit()
        res = RRMOLS(endog, exog, 0.2).fit(efficiency=efficiency)
        errors = np.sqrt(np.diag(best.normalized_cov_params))
        excess.append((res.params - best.params) / errors)
    assert_allclose(1 / (1 + np.mean(np.square(excess))), efficiency, atol=0.25 * (1 - efficiency))


@pytest.mark.slow
def test_efficiency_of_a_mean_and_its_covariance():
    first, second, best = [], [], []
    for seed in range(80):
        data = correlated_points(np.random.default_rng(seed), 300, share=0.0)
        res = RRMCov(data, 0.2).fit(efficiency=0.95)
        first.append(res.first_step.params - [0, 0, 1, 0.8, 1])
        second.append(res.params - [0, 0, 1, 0.8, 1])
        best.append(data.mean(axis=0))
    excess = np.mean(np.square(np.array(second)[:, :2] - best)) / np.mean(np.square(best))
    assert_allclose(1 / (1 + excess), 0.95, atol=0.02)
    assert np.mean(np.square(second)) < 0.8 * np.mean(np.square(first))


@pytest.mark.slow
def test_the_logit_is_worth_maximum_likelihood():
    truth = np.array([0.0, 1.0, -0.5])
    best, found = [], []
    for seed in range(120):
        endog, exog = logistic_labels(np.random.default_rng(seed), 500, truth)
        best.append(sm.Logit(endog, exog).fit(disp=0).params - truth)
        found.append(RRMLogit(endog, exog, 0.1).fit(efficiency=0.95).params - truth)
    best, found = np.array(best)[:, 1:], np.array(found)[:, 1:]
    assert np.sum(best**2) / np.sum(found**2) >= 0.95
    bias = found.mean(axis=0) @ truth[1:] / (truth @ truth)
    assert abs(bias) < 0.03


def test_robustness_stays():
    errors = []
    for seed in range(20):
        endog, exog = leverage_shift(np.random.default_rng(seed))
        res = RRMOLS(endog, exog, 0.4).fit(efficiency=0.95)
        clean = sm.OLS(endog[20:], exog[20:]).fit()
        errors.append([np.linalg.norm(fit.params - 1) for fit in (res, res.first_step, clean)])
    second, first, clean = np.mean(errors, axis=0)
    assert second < 0.7 * first
    assert second < 1.1 * clean


def test_the_first_step_is_that_of_a_fit_without_a_second(model):
    alone, both = model.fit(), model.fit(efficiency=0.95)
    first = both.first_step
    assert alone.first_step is None and alone.efficiency is None
    assert both.efficiency == 0.95
    assert first.efficiency is None
    assert_array_equal(first.params, alone.params)
    assert_array_equal(first.weights, alone.weights)
    assert_array_equal(first.bse, alone.bse)
    assert_array_equal(first.conf_int(), alone.conf_int())
    assert (np.asarray(both.params) != np.asarray(alone.params)).all()
    assert_allclose(both.weights.sum(), 1)
    assert both.weights.iloc[:8].max() < 1e-3 / 200


def test_the_second_step_wastes_fewer_rows(model):
    res = model.fit(efficiency=0.95)
    assert res.n_eff > res.first_step.n_eff
    assert res.n_kish > res.first_step.n_kish
    if not isinstance(model, RRMLogit):
        assert_allclose(
            res.weights.iloc[50] / res.weights.iloc[60],
            np.exp((res.losses.iloc[60] - res.losses.iloc[50]) / res.lambda_),
            rtol=1e-8,
        )
    assert_allclose(res.risk, res.weights @ res.losses, rtol=1e-9)


def test_the_first_steps_errors_follow_cov_type():
    groups = {"groups": np.arange(200) // 4}
    model = MODELS["ols"](frame())
    res = model.fit(efficiency=0.95, cov_type="cluster", cov_kwds=groups)
    alone = model.fit(cov_type="cluster", cov_kwds=groups)
    assert_array_equal(res.first_step.bse, alone.bse)
    boot = model.fit(efficiency=0.95, cov_type="bootstrap", cov_kwds={"n_boot": 20})
    assert_array_equal(boot.first_step.bse, model.fit().bse)


def test_summaries_say_which_step_and_its_price(model):
    one, two = model.fit(), model.fit(efficiency=0.9)
    first, second = str(one.summary()), str(two.summary())
    assert first.replace(" ", "").count("Steps:one") == 1
    assert second.replace(" ", "").count("Steps:two") == 1
    assert "These are the estimates of the second step; first_step holds" in second
    assert "first_step" not in first
    assert str(two.first_step.summary()).replace(" ", "").count("Steps:one") == 1
    assert "price" in first
    assert "fit(efficiency=0.95)" in first
    assert "price" not in second
    if not isinstance(model, RRMLogit):
        assert f"price of eps_bar={one.eps_bar:g}" in first
        assert "Efficiency,cleandata:0.90" in second.replace(" ", "")


def test_the_price_is_the_gaussian_efficiency():
    text = str(MODELS["ols"](frame()).fit().summary())
    assert "Efficiency,cleandata:0.40" in text.replace(" ", "")
    assert "the variances are those of 40% of the rows" in text
    text = str(RRMOLS(frame().y, frame()[["x"]], 0.0).fit().summary())
    assert "price" not in text
    assert "Efficiency,cleandata:1.00" in text.replace(" ", "")


@pytest.mark.parametrize("efficiency", [0, 1, 1.2, -0.5, np.nan])
def test_bad_efficiencies(model, efficiency):
    with pytest.raises(ValueError, match=r"efficiency must be in \(0, 1\), got"):
        model.fit(efficiency=efficiency)


def exact_data():
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal(40))
    endog = exog @ [1.0, 2.0]
    endog[:8] += 9
    return endog, exog


@pytest.mark.parametrize("efficiency", [None, 0.95])
def test_exact_fits_are_finite_and_quiet(efficiency):
    endog, exog = exact_data()
    points = np.c_[exog[:, 1], endog]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ols = RRMOLS(endog, exog, 0.3).fit(efficiency=efficiency)
        pca = RRMPCA(points, 1, 0.3).fit(efficiency=efficiency)
        cov = RRMCov(points, 0.3).fit(efficiency=efficiency)
        texts = [str(res.summary()) for res in (ols, pca, cov)]
        boot = RRMOLS(endog, exog, 0.3).fit(
            efficiency=efficiency, cov_type="bootstrap", cov_kwds={"n_boot": 20}
        )
    assert_allclose(ols.params, [1, 2], rtol=1e-12)
    assert_array_equal(ols.bse, 0)
    assert_allclose(ols.conf_int(), [[1, 1], [2, 2]], rtol=1e-12)
    assert_array_equal(ols.pvalues, 0)
    assert_allclose(boot.params, [1, 2], rtol=1e-12)
    assert np.isfinite(pca.bse).all()
    assert_allclose(np.abs(pca.loadings.ravel()), np.array([1, 2]) / np.sqrt(5), rtol=1e-7)
    assert cov.singular
    with pytest.raises(ValueError, match="singular, so it has no standard errors"):
        _ = cov.bse
    for text in texts:
        assert "nan" not in text
        assert ("second step" in text) == (efficiency is not None)


def test_no_contamination_keeps_the_second_step():
    """At eps_bar = 0 the first step is least squares, the second still robust to a degree."""
    endog, exog = one_sided_outliers(np.random.default_rng(0), 200, share=0.05, shift=8.0)
    res = RRMOLS(endog, exog, 0.0).fit(efficiency=0.95)
    assert_allclose(res.first_step.params, sm.OLS(endog, exog).fit().params, rtol=1e-9)
    assert res.weights[:10].max() < 0.5 * res.weights[10:].max()


@pytest.mark.slow
def test_the_subspace_gains():
    first, second = [], []
    for seed in range(40):
        res = RRMPCA(noisy_line(np.random.default_rng(seed)), 1, 0.4).fit(efficiency=0.95)
        for kept, fit in ((first, res.first_step), (second, res)):
            kept.append(1 - abs(fit.loadings[:, 0] @ [1, 2]) / np.sqrt(5))
    assert np.mean(second) < 0.7 * np.mean(first)


def test_a_group_of_stars_does_not_turn_the_second_step():
    """Four giants draw weights that fall slowly to the line of least squares, slope -0.41."""
    stars = datasets.stars_cyg.load_pandas().data
    model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3)
    assert 2 < model.fit(efficiency=0.95).params["log_te"] < 3.2


@pytest.mark.parametrize("wrong", [0, 50])
def test_logit_says_when_the_first_step_is_to_be_preferred(wrong):
    """Labels made the improbable one at extreme predictors are not improbable one by one."""
    rng = np.random.default_rng(3)
    endog, exog = extreme_flips(rng, 1000, (0.0, 1.0, -0.5), wrong / 1000)
    res = RRMLogit(endog, exog, 0.1).fit(efficiency=0.95)
    assert (res.steps_pvalue < 1e-3) == (wrong > 0)
    assert ("Prefer first_step" in str(res.summary())) == (wrong > 0)
    assert res.first_step.steps_pvalue == 1
