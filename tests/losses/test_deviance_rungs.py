"""The ladder of generalized linear models: it stops where bad rows come back, and only there."""

import numpy as np
import pytest
import statsmodels.api as sm

from rrmstats import RRMGLM
from rrmstats.experiments.samples import RESPONSE_PARAMS, dirty_responses
from rrmstats.losses.deviance_fits import tilted_fit
from rrmstats.losses.regression_ladder import AS_EFFICIENT

FAMILIES = {
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "binomial": sm.families.Binomial(),
}


def fitted(name, kind, seed, n=300):
    endog, exog = dirty_responses(np.random.default_rng(seed), name, kind, n)
    return RRMGLM(endog, exog, 0.2, family=FAMILIES[name]).fit(efficiency=0.95)


@pytest.mark.parametrize("name", FAMILIES)
def test_clean_data_go_all_the_way(name):
    res = fitted(name, "clean", 1)
    assert res.efficiency_reached == pytest.approx(0.95)
    assert (res.ladder.order.diff().dropna() < 0).all()
    assert res.ladder.chosen.iloc[-1]


def test_zeros_at_the_top_stop_it():
    truth = np.array(RESPONSE_PARAMS["poisson"])
    for seed in range(3):
        res = fitted("poisson", "low at the top", seed)
        assert res.efficiency_reached < 0.93
        rows = res._estimate.fit.rows
        all_the_way = tilted_fit(rows.sample, rows.theta, 1.0, 1.2245, dispersed=False).rows.theta
        assert np.linalg.norm(res.params - truth) < 0.7 * np.linalg.norm(all_the_way - truth)
        assert "The second step stopped at rung" in " ".join(str(res.summary()).split())


def test_a_first_step_that_is_efficient_is_kept():
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(100), rng.standard_normal(100)]
    endog = rng.poisson(np.exp(2 + 0.3 * exog[:, 1])).astype(float)
    endog[:10] = 400
    res = RRMGLM(endog, exog, 0.1, family=FAMILIES["poisson"]).fit(efficiency=0.95)
    assert AS_EFFICIENT in res._notes()
    np.testing.assert_array_equal(res.params, res.first_step.params)
    assert np.abs(res.params - [2, 0.3]).max() < 0.15


def test_an_equation_that_is_flat_on_the_way_is_solved():
    endog, exog = dirty_responses(np.random.default_rng(4), "binomial", "low at the top", 150, 0.1)
    res = RRMGLM(endog, exog, 0.4, family=sm.families.Binomial()).fit()
    assert res.converged
    rows = res._estimate.fit.rows
    assert rows.step()[1] < 1e-6
