"""Generalized linear models on dirty data: errors and coverage, in small versions.

`benchmarks/glm.py` has the large ones.
"""

import numpy as np
import pytest
import statsmodels.api as sm

from replication.samples import DIRT, RESPONSE_PARAMS, dirty_responses
from rrmstats import RRMGLM

pytestmark = pytest.mark.slow

FAMILIES = {
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "binomial": sm.families.Binomial(),
}


def error(params, name):
    return np.linalg.norm(params - np.array(RESPONSE_PARAMS[name]))


def likelihood(name, endog, exog):
    return sm.GLM(endog, exog, family=FAMILIES[name]).fit().params


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", DIRT)
def test_errors_are_near_those_of_the_good_rows(name, kind):
    found = []
    for seed in range(6):
        endog, exog = dirty_responses(np.random.default_rng([61, seed]), name, kind)
        good = slice(0 if kind == "clean" else 30, None)
        res = RRMGLM(endog, exog, 0.2, family=FAMILIES[name]).fit()
        fits = (
            likelihood(name, endog[good], exog[good]),
            likelihood(name, endog, exog),
            res.first_step.params,
            res.params,
        )
        found.append([error(params, name) for params in fits])
    good, everything, one, two = np.mean(found, axis=0)
    assert two < 1.05 * good
    assert one < 2.2 * good
    assert kind == "clean" or everything > 3 * good


def test_errors_with_many_false_zeros():
    """A third of the counts is zero, those of the largest means; the first step is lost there."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng([64, seed])
        endog, exog = dirty_responses(rng, "poisson", "low at the top", 300, 0.3)
        res = RRMGLM(endog, exog, 0.4, family=FAMILIES["poisson"]).fit()
        good = likelihood("poisson", endog[90:], exog[90:])
        found.append(
            [error(params, "poisson") for params in (good, res.first_step.params, res.params)]
        )
    good, one, two = np.mean(found, axis=0)
    assert one > 5 * good
    assert two <= 1.5 * good


@pytest.mark.parametrize("eps_bar", [0.1, 0.2, 0.4])
def test_negative_binomial_counts_are_told(eps_bar):
    truth, found, told = np.array(RESPONSE_PARAMS["poisson"]), [], []
    for seed in range(10):
        rng = np.random.default_rng([65, seed])
        exog = np.c_[np.ones(300), rng.standard_normal((300, 3))]
        endog = rng.poisson(rng.exponential(np.exp(exog @ truth))).astype(float)
        res = RRMGLM(endog, exog, eps_bar, family=FAMILIES["poisson"]).fit()
        told.append("overdispersed" in res.explanation.name)
        fits = (likelihood("poisson", endog, exog), res.params)
        found.append([error(params, "poisson") for params in fits])
    most_likely, two = np.mean(found, axis=0)
    assert two <= 1.2 * most_likely
    assert np.mean(told) >= 0.9


@pytest.mark.parametrize(
    ("name", "kind"), [("poisson", "leverage"), ("gamma", "clean"), ("binomial", "leverage")]
)
def test_intervals_cover(name, kind):
    truth, covered = np.array(RESPONSE_PARAMS[name])[1:], []
    for seed in range(40):
        endog, exog = dirty_responses(np.random.default_rng([62, seed]), name, kind, 500, 0.05)
        res = RRMGLM(endog, exog, 0.1, family=FAMILIES[name]).fit()
        low, high = res.conf_int()[1:].T
        covered.append((low <= truth) & (truth <= high))
    # 120 intervals: 0.95 is known to 0.02.
    assert 0.89 <= np.mean(covered) <= 0.995


@pytest.mark.parametrize("name", FAMILIES)
def test_consistent_parameters_come_to_the_true_ones(name):
    endog, exog = dirty_responses(np.random.default_rng([63]), name, "clean", 20_000)
    res = RRMGLM(endog, exog, 0.2, family=FAMILIES[name]).fit(steps=1)
    assert (np.abs(res.params - np.array(RESPONSE_PARAMS[name])) < 4 * res.bse).all()
