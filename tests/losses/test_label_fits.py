"""Fits of labels at a fixed gamma: closed forms, derivatives, and the contamination they show."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from rrmstats.core.setting import Setting
from rrmstats.experiments.samples import extreme_flips, logistic_labels
from rrmstats.losses.label_fits import contamination, label_fit, label_state, ray_start
from rrmstats.losses.logistic import LogisticProblem

TRUTH = (0.2, 1.0, -0.5)


def sample(n=200, seed=0, share=0.05):
    endog, exog = extreme_flips(np.random.default_rng(seed), n, TRUTH, share)
    return LogisticProblem(endog, exog), np.ones(n)


def fit(problem, mass, gamma, start=(0.0, 0.5, -0.2), **options):
    return label_fit(problem, gamma, np.array(start), Setting(0.1, **options), mass)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.5])
def test_a_fit_maximizes_its_criterion(gamma):
    problem, mass = sample()
    found = fit(problem, mass, gamma)
    theta = (1 + gamma) * found.beta
    value = label_state(problem, gamma, theta, mass).value
    assert found.converged
    best = minimize(lambda t: -label_state(problem, gamma, t, mass).value, theta, tol=1e-12)
    assert_allclose(-best.fun, value, atol=1e-8)
    assert_allclose(best.x, theta, atol=1e-4)


@pytest.mark.parametrize("gamma", [0.5, 1.5])
def test_weights_are_powers_of_probabilities(gamma):
    """With lambda = 1 + 1 / gamma they are exp(-loss / lambda) at (1 + gamma) beta."""
    problem, mass = sample()
    found = fit(problem, mass, gamma)
    losses = problem.losses((1 + gamma) * found.beta)
    assert_allclose(found.weights, np.exp(-losses / (1 + 1 / gamma)), rtol=1e-12)


def test_without_weights_it_is_firths_fit():
    """To the first order, maximum likelihood less its bias."""
    problem, mass = sample(5000, share=0.0)
    found = fit(problem, mass, 0.0)
    classical = sm.Logit(problem.endog, problem.exog).fit(disp=0)
    assert_allclose(found.beta - found.shift, classical.params, atol=1e-5)
    assert (np.abs(found.shift) < 0.1 * classical.bse).all()


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_a_row_of_mass_two_is_the_row_twice(gamma):
    problem, _ = sample()
    counts = 1.0 + np.arange(200) % 3
    rows = np.repeat(np.arange(200), counts.astype(int))
    twice = LogisticProblem(problem.endog[rows], problem.exog[rows])
    one, other = fit(problem, counts, gamma), fit(twice, np.ones(len(rows)), gamma)
    assert_allclose(one.beta, other.beta, rtol=1e-7)
    assert_allclose(one.shift, other.shift, rtol=1e-6)
    assert_allclose(one.influence[rows], other.influence, rtol=1e-6, atol=1e-12)
    for found, labels, mass in ((one, problem, counts), (other, twice, np.ones(len(rows)))):
        shares = contamination(labels, 1.0, found.beta, found.influence, mass)
        assert_allclose(shares, contamination(problem, 1.0, one.beta, one.influence, counts))


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_influence_functions_have_the_variance_of_the_fits(gamma):
    found = []
    for seed in range(150):
        problem, mass = sample(400, seed, share=0.0)
        one = fit(problem, mass, gamma)
        found.append((one.beta, np.diag(one.influence.T @ one.influence)))
    beta, variance = (np.array(part) for part in zip(*found, strict=True))
    # The variance of 150 fits is known to 12 percent.
    assert_allclose(beta.var(axis=0), variance.mean(axis=0), rtol=0.35)


def test_separated_labels_have_a_finite_fit():
    exog = sm.add_constant(np.linspace(-1, 1, 40))
    problem = LogisticProblem((exog[:, 1] > 0).astype(float), exog)
    for gamma in (0.0, 1.0, 2.5):
        found = fit(problem, np.ones(40), gamma, (0.0, 1.0))
        assert found.converged
        assert 1 < found.beta[1] < 100


def test_too_few_steps_are_reported():
    problem, mass = sample()
    assert not fit(problem, mass, 1.0, maxiter=1).converged


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_start_along_a_ray_forgets_the_size_of_the_direction(size):
    problem, mass = sample()
    start = ray_start(problem, 1.0, size * np.array(TRUTH), mass)
    assert_allclose(start / np.linalg.norm(start), np.array(TRUTH) / np.linalg.norm(TRUTH))
    assert 0.3 < start[1] < 3
    assert_allclose(ray_start(problem, 1.0, np.zeros(3), mass), 0)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
@pytest.mark.parametrize("eta", [0.3, -2.0, 7.0])
def test_right_labels_have_a_relative_weight_of_one_in_the_mean(gamma, eta):
    """Labels of 1 and 0 in their proportions; a share e of them less shows as e at most."""
    pair = LogisticProblem(np.array([1.0, 0.0]), np.full((2, 1), eta))
    right = np.array([expit(eta), expit(-eta)])
    shown = [
        contamination(pair, gamma, np.ones(1), np.zeros((2, 1)), (1 - e) * right + e * right[::-1])
        for e in (0.0, 0.1)
    ]
    assert_allclose(shown[0][0], 0, atol=1e-12)
    assert 0 < shown[1][0] <= 0.1


def test_wrong_labels_are_counted_where_the_model_is_sure():
    rng = np.random.default_rng(0)
    endog, exog = logistic_labels(rng, 4000, (0.0, 4.0))
    sure = np.flatnonzero(np.abs(exog[:, 1]) > 1)[:200]
    endog[sure] = exog[sure, 1] < 0
    problem, mass = LogisticProblem(endog, exog), np.ones(4000)
    found = label_fit(problem, 1.5, np.array([0.0, 4.0]), Setting(0.1), mass)
    eps_hat, error = contamination(problem, 1.5, found.beta, found.influence, mass)
    assert 0.001 < error < 0.02
    assert abs(eps_hat - 0.05) < 4 * error
