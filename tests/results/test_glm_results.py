"""What results of generalized linear models offer, against statsmodels' where nothing is bad."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import rrmstats
from replication.samples import dirty_responses
from rrmstats import RRMGLM, RRMPoisson

F, L = sm.families, sm.families.links
FAMILIES = {"poisson": F.Poisson(), "gamma": F.Gamma(L.Log()), "binomial": F.Binomial()}


@pytest.fixture(params=FAMILIES, scope="module")
def both(request):
    """Return our fit and statsmodels' to clean data."""
    family = FAMILIES[request.param]
    endog, exog = dirty_responses(np.random.default_rng(0), request.param, "clean", 120)
    theirs = sm.GLM(endog, exog, family=family).fit(tol=1e-13, tol_criterion="params")
    return RRMGLM(endog, exog, 0.0, family=family).fit(steps=1), theirs


@pytest.mark.parametrize("name", ["response", "pearson", "deviance", "anscombe", "working"])
def test_residuals_are_statsmodels(both, name):
    ours, theirs = both
    found, expected = getattr(ours, f"resid_{name}"), getattr(theirs, f"resid_{name}")
    if name == "working":  # statsmodels' are in squares of the numbers of trials
        expected = expected / theirs.model.n_trials**2
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_standard_errors_are_those_of_hc3(both):
    ours, theirs = both
    model, problem = theirs.model, ours._estimate.problem
    u, expected, _ = problem.score_parts(problem.predictor(np.asarray(theirs.params)))
    inverse = np.linalg.inv(model.exog.T @ (expected[:, None] * model.exog))
    leverage = expected * np.einsum("ni,ij,nj->n", model.exog, inverse, model.exog)
    moved = (u / (1 - leverage))[:, None] * model.exog @ inverse
    # the gamma family's log link is not canonical: its observed derivative is not the expected
    tolerance = 0.2 if isinstance(model.family, F.Gamma) else 1e-5
    assert_allclose(ours.bse, np.sqrt(np.diag(moved.T @ moved)), rtol=tolerance)


def test_predictions_are_statsmodels_with_the_same_covariance(both):
    ours, theirs = both
    rows = theirs.model.exog[:5]
    theirs._results.cov_params_default = ours.cov_params()
    expected = theirs.get_prediction(rows).summary_frame()
    found = ours.get_prediction(rows).summary_frame()
    assert list(found.columns) == list(expected.columns)
    assert_allclose(found, expected, rtol=1e-6)


def test_marginal_effects_are_statsmodels(both):
    ours, theirs = both
    assert_allclose(ours.get_margeff().margeff, theirs.get_margeff().margeff, rtol=1e-6)
    assert np.isfinite(ours.get_margeff().margeff_se).all()


def test_marginal_effects_with_an_exposure_are_refused():
    endog, exog = dirty_responses(np.random.default_rng(0), "poisson", "clean", 60)
    res = RRMPoisson(endog, exog, 0.1, exposure=np.full(60, 2.0)).fit(steps=1)
    with pytest.raises(NotImplementedError, match="exposure"):
        res.get_margeff()


@pytest.mark.parametrize("family", FAMILIES)
def test_flags(family):
    endog, exog = dirty_responses(np.random.default_rng(1), family, "high", 400)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES[family]).fit()
    flags = res.outliers()
    assert flags[:40].mean() > 0.9
    assert flags[40:].mean() < 0.06
    assert_allclose(res.eps_hat, 0.1, atol=4 * res.eps_hat_se)
    assert 0.001 < res.eps_hat_se < 0.05
    table = res.weight_table(30)
    assert table.index.isin(range(40)).all()


def test_dispersion_of_good_rows_and_units_of_the_losses():
    endog, exog = dirty_responses(np.random.default_rng(2), "gamma", "high", 400)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES["gamma"]).fit()
    clean = sm.GLM(endog[40:], exog[40:], family=FAMILIES["gamma"]).fit()
    assert_allclose(res.scale, clean.scale, rtol=0.2)
    assert_allclose(2 * res.losses * res.scale, res.resid_deviance**2, rtol=1e-6, atol=1e-9)
    assert_allclose(res.risk, res.weights @ res.losses, rtol=1e-9)


def test_what_would_mislead_is_refused(both):
    for name in ("deviance", "pearson_chi2", "llr", "null_deviance"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(both[0], name)


def test_predictions_by_formula_and_their_intervals():
    endog, exog = dirty_responses(np.random.default_rng(3), "poisson", "high", 200)
    data = pd.DataFrame({"count": endog, "x": exog[:, 1], "t": 1.0 + np.arange(200) % 3})
    res = rrmstats.poisson("count ~ x", data, 0.2, exposure=data["t"]).fit(steps=1)
    frame = res.get_prediction(data[:4], exposure=data["t"][:4]).summary_frame()
    assert_allclose(frame["mean"], res.fittedvalues[:4])
    assert_allclose(frame["mean"], res.get_prediction().summary_frame()["mean"][:4])
    assert (frame["mean_ci_lower"] < frame["mean"]).all()
    assert_allclose(res.predict(data[:4]), frame["mean"] / data["t"][:4])


def test_what_comes_with_rows_to_predict_has_their_order():
    endog, exog = dirty_responses(np.random.default_rng(3), "poisson", "clean", 60)
    data = pd.DataFrame({"count": endog, "x": exog[:, 1], "t": 1.0 + np.arange(60) % 3})
    res = rrmstats.poisson("count ~ x", data, 0.1, exposure=data["t"]).fit(steps=1)
    for predict in (res.predict, res.get_prediction):
        with pytest.raises(ValueError, match="exposure has the labels"):
            predict(data[:5], exposure=data["t"][:5][::-1])
        with pytest.raises(ValueError, match=r"offset .* shape \(5,\), got \(4,\)"):
            predict(data[:5], offset=data["t"][:4])


def test_a_saved_fit_without_data(tmp_path):
    endog, exog = dirty_responses(np.random.default_rng(4), "poisson", "high", 100)
    res = RRMPoisson(endog, exog, 0.2).fit()
    params, errors = res.params.copy(), res.bse.copy()
    res.save(tmp_path / "fit.pickle", remove_data=True)
    again = sm.load(tmp_path / "fit.pickle")
    assert_allclose(again.params, params)
    assert_allclose(again.bse, errors)
    assert "Poisson" in str(again.summary()) or "Generalized" in str(again.summary())
