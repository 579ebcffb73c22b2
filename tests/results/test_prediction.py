"""Predictions and their intervals."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

import rrmstats

from .fits import DATA, DIRTY, FITS


@pytest.mark.slow
def test_prediction_intervals_hold_for_clean_rows():
    covered = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        exog = sm.add_constant(rng.standard_normal((600, 2)))
        endog = exog @ [1, 2, 3] + rng.standard_normal(600)
        train = endog[:200].copy()
        train[:20] += 10
        res = rrmstats.RRMOLS(train, exog[:200], 0.2).fit(n_starts=30, steps=1)
        table = res.get_prediction(exog[200:]).summary_frame()
        covered.append(
            endog[200:].__ge__(table.obs_ci_lower) & (endog[200:] <= table.obs_ci_upper)
        )
    assert 0.93 < np.mean(covered) < 0.97


def test_predictions_follow_the_formula():
    res = FITS["ols"]()
    table = res.get_prediction(DIRTY.iloc[:3]).summary_frame(alpha=0.1)
    assert_allclose(table["mean"], res.predict(DIRTY.iloc[:3]))
    assert list(table.index) == list(DIRTY.index[:3])
    assert_allclose(res.get_prediction().summary_frame()["mean"], res.fittedvalues)
    logit = FITS["logit"]()
    table = logit.get_prediction(DATA.iloc[:3]).summary_frame()
    assert_allclose(table.predicted, logit.predict(DATA.iloc[:3]))
    assert ((table.ci_lower > 0) & (table.ci_lower < table.predicted)).all()
    assert ((table.ci_upper < 1) & (table.ci_upper > table.predicted)).all()


def test_intervals_at_eps_bar_0_are_those_of_least_squares():
    exog, endog = sm.add_constant(DATA[["x1", "x2"]]), DATA.y
    ours = rrmstats.RRMOLS(endog, exog, 0).fit(steps=1).get_prediction().summary_frame()
    theirs = sm.OLS(endog, exog).fit(cov_type="HC3", use_t=True).get_prediction().summary_frame()
    assert_allclose(ours["mean_se"], theirs["mean_se"], rtol=1e-8)
    width = (ours.obs_ci_upper - ours.obs_ci_lower) / (theirs.obs_ci_upper - theirs.obs_ci_lower)
    assert_allclose(width, 1, atol=0.05)


def test_probabilities_at_eps_bar_0_have_the_errors_of_maximum_likelihood():
    ours = rrmstats.logit("label ~ x1 + x2", DATA, 0).fit(steps=1).get_prediction()
    model = sm.Logit.from_formula("label ~ x1 + x2", DATA)
    theirs = model.fit(disp=0, tol=1e-14, cov_type="HC0").get_prediction()
    assert_allclose(ours.predicted, theirs.predicted, rtol=1e-8)
    assert_allclose(ours.se, theirs.se, rtol=1e-6)


@pytest.mark.parametrize("name", ["logit", "logit, two steps"])
def test_errors_of_probabilities_are_those_of_the_delta_method(name):
    res, rows, step = FITS[name](), np.array([[1.0, 0.5, -1.0], [1.0, 3.0, 1.0]]), 1e-6
    prediction = res.get_prediction(rows, transform=False)
    params = np.asarray(res.params)
    slopes = [
        (res.model.predict(params + e, rows) - res.model.predict(params - e, rows)) / (2 * step)
        for e in step * np.eye(3)
    ]
    variance = np.einsum("in,ij,jn->n", slopes, res.cov_params(), slopes)
    assert_allclose(prediction.se, np.sqrt(variance), rtol=1e-6)
    linear, error = rows @ params, np.sqrt(np.einsum("ni,ij,nj->n", rows, res.cov_params(), rows))
    reach = stats.norm.ppf(0.95) * error
    bounds = 1 / (1 + np.exp(-np.c_[linear - reach, linear + reach]))
    assert_allclose(prediction.conf_int(0.1), bounds, rtol=1e-10)
