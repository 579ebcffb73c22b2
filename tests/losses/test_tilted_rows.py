"""Rows under weights: the equation's derivative, its consistency and its influence functions."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from replication.samples import RESPONSE_PARAMS, dirty_responses
from rrmstats import RRMGLM
from rrmstats.core.setting import Setting
from rrmstats.losses.tilted_rows import FamilyRows, Sample, dispersion_fit, tilted_fit

F, L = sm.families, sm.families.links
FAMILIES = {
    "poisson": F.Poisson(),
    "gamma": F.Gamma(L.Log()),
    "binomial": F.Binomial(L.Probit()),
}


def sample_of(name, kind="clean", n=150, eps_bar=0.2, counts=None):
    endog, exog = dirty_responses(np.random.default_rng(0), name, kind, n)
    problem = RRMGLM(endog, exog, eps_bar, family=FAMILIES[name]).problem()
    return Sample(problem, Setting(eps_bar=eps_bar, freq_weights=counts))


def equation(sample, theta, dispersion, order):
    rows = FamilyRows(sample, theta, dispersion, order)
    return (sample.mass * rows.scores[0]) @ sample.problem.exog


@pytest.mark.parametrize("name", FAMILIES)
def test_the_observed_bread_is_minus_the_derivative(name):
    sample, step = sample_of(name), 1e-5
    theta = np.array(RESPONSE_PARAMS[name]) + 0.1
    dispersion = 0.3 if name == "gamma" else 1.0
    numeric = np.array(
        [
            equation(sample, theta - move, dispersion, 1.8)
            - equation(sample, theta + move, dispersion, 1.8)
            for move in step * np.eye(4)
        ]
    ) / (2 * step)
    found = FamilyRows(sample, theta, dispersion, 1.8).observed_bread
    assert_allclose(found, numeric.T, rtol=1e-4, atol=1e-4 * np.abs(numeric).max())


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("order", [1.3, 2.5])
def test_the_true_parameters_solve_the_equation(name, order):
    endog, exog = dirty_responses(np.random.default_rng(5), name, "clean", 40_000)
    family = FAMILIES[name] if name != "binomial" else F.Binomial()
    problem = RRMGLM(endog, exog, 0.2, family=family).problem()
    sample = Sample(problem, Setting(eps_bar=0.2))
    dispersion = 0.25 if name == "gamma" else 1.0
    rows = FamilyRows(sample, np.array(RESPONSE_PARAMS[name]), dispersion, order)
    terms = rows.scores[0][:, None] * problem.exog
    standard = terms.mean(axis=0) / (terms.std(axis=0) / 200)
    assert (np.abs(standard) < 4).all()
    assert abs(rows.ratio.mean() - 1) < 4 * rows.ratio.std() / 200
    assert_allclose(
        rows.bread,
        rows.observed_bread,
        atol=0.05 * np.abs(rows.bread).max(),
    )


def test_small_counts_need_the_correction():
    rng = np.random.default_rng(0)
    exog, truth = np.c_[np.ones(20_000), rng.standard_normal(20_000)], np.array([-0.5, 0.5])
    endog = rng.poisson(np.exp(exog @ truth)).astype(float)
    sample = Sample(RRMGLM(endog, exog, 0.2, family=F.Poisson()).problem(), Setting(eps_bar=0.2))
    rows = FamilyRows(sample, truth, 1.0, 1.8)
    for scores, consistent in (
        (rows.scores[0], True),
        (rows.scores[0] + rows.weights * rows.center[0], False),
    ):
        mean = scores.mean() / (scores.std() / np.sqrt(20_000))
        assert (abs(mean) < 4) == consistent


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_influence_functions_are_derivatives_in_the_rows_weights(name):
    sample = sample_of(name, "high")
    start = np.array(RESPONSE_PARAMS[name])
    dispersion = 0.25 if name == "gamma" else 1.0
    rows, root = tilted_fit(FamilyRows(sample, start, dispersion, 1.5))
    assert root
    moved = sample.problem.exog @ np.linalg.inv(rows.observed_bread) * rows.scores[0][:, None]
    for row in (20, 40, 149):
        ends = []
        for by in (0.01, -0.01):
            counts = np.ones(150)
            counts[row] += by
            nudged = Sample(sample.problem, replace(sample.setting, freq_weights=counts))
            ends.append(tilted_fit(FamilyRows(nudged, rows.theta, dispersion, 1.5))[0].theta)
        assert_allclose((ends[0] - ends[1]) / 0.02, moved[row], rtol=1e-2, atol=1e-6)
    # those for standard errors are longer, as in HC3, by at most a few leverages
    ratio = np.linalg.norm(rows.influence, axis=1) / np.maximum(
        np.linalg.norm(moved, axis=1), 1e-12
    )
    kept = rows.weights > 0.01
    assert (ratio[kept] > 0.95).all() and np.median(ratio[kept]) < 1.2


@pytest.mark.parametrize("kind", ["clean", "low at the top", "high", "leverage"])
def test_the_dispersion_of_good_rows(kind):
    endog, exog = dirty_responses(np.random.default_rng(2), "gamma", kind, 2000)
    problem = RRMGLM(endog, exog, 0.2, family=FAMILIES["gamma"]).problem()
    sample = Sample(problem, Setting(eps_bar=0.2))
    found, settled = dispersion_fit(sample, np.array(RESPONSE_PARAMS["gamma"]), 1.7, 0.1, 0.2)
    assert settled
    assert_allclose(found, 0.25, rtol=0.1)
    rows = FamilyRows(sample, np.array(RESPONSE_PARAMS["gamma"]), found, 1.7)
    assert_allclose(1 - rows.mean_ratio, 0.0 if kind == "clean" else 0.1, atol=0.03)
