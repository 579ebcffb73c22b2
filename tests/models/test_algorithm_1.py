"""fit(n_starts=0, accelerate=False): the paper's Algorithm 1, as statsmodels' fits have it."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from replication.samples import logistic_labels, one_sided_outliers
from rrmstats import RRMOLS, RRMLogit
from rrmstats.core.entropy import entropy_weights

COUNTS = 1.0 + np.arange(150) % 3


def regression(**kwargs):
    sample = one_sided_outliers(np.random.default_rng(0), 150, np.ones(3))
    return RRMOLS(*sample, 0.3, **kwargs)


def classification(**kwargs):
    sample = logistic_labels(np.random.default_rng(0), 150, (0.3, 1.0, -0.5))
    return RRMLogit(*sample, 0.05, alpha=0.0, **kwargs)


def least_squares(model, weights):
    return sm.WLS(model.endog, model.exog, weights=weights).fit().params


def squares(model, params):
    return (model.endog - model.exog @ params) ** 2


def logistic(model, weights):
    used = weights > 0
    scaled = weights[used] / weights[used].mean()
    glm = sm.GLM(
        model.endog[used], model.exog[used], family=sm.families.Binomial(), var_weights=scaled
    )
    return glm.fit(tol=1e-14, tol_criterion="params").params


def cross_entropies(model, params):
    return np.logaddexp(0.0, (1 - 2 * model.endog) * (model.exog @ params))


MODELS = {
    "ols": (regression, least_squares, squares),
    "logit": (classification, logistic, cross_entropies),
}


@pytest.mark.parametrize("counts", [None, COUNTS])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_every_step_is_a_weighted_fit_of_statsmodels(name, steps, counts):
    make, refit, losses = MODELS[name]
    model = make(freq_weights=counts)
    res = model.fit(n_starts=0, accelerate=False, steps=steps, stability=False)
    first = res if steps == 1 else res.first_step
    assert first.n_iter > 3
    assert set(first.trace.step[1:]) == {"algorithm 1"}
    weights = np.ones(150) / 150 if counts is None else counts / counts.sum()
    for each in first.trace.itertuples():
        params = refit(model, weights)
        found = entropy_weights(losses(model, params), model.eps_bar, freq_weights=counts)
        weights = found.weights
        risk = weights @ losses(model, params)
        assert_allclose((each.risk, each.lambda_), (risk, found.lambda_), rtol=1e-8)
    assert_allclose(first.raw_params, params, rtol=1e-6)
