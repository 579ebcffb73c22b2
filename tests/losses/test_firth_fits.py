"""Maximum likelihood with Firth's penalty."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from rrmstats.core.setting import Setting
from rrmstats.experiments.samples import logistic_labels
from rrmstats.losses.label_fits import label_fit
from rrmstats.losses.logistic import LogisticProblem


def penalized(theta, endog, exog, mass):
    p = expit(exog @ theta)
    information = exog.T @ ((mass * p * (1 - p))[:, None] * exog)
    losses = np.logaddexp(0, -(2 * endog - 1) * (exog @ theta))
    return mass @ losses - 0.5 * np.linalg.slogdet(information)[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_it_minimizes_the_penalized_likelihood(weighted):
    endog, exog = logistic_labels(np.random.default_rng(0), 60, (0.2, 1.0))
    counts = 1.0 + np.arange(60) % 3 if weighted else None
    setting = Setting(0.1, counts)
    mass = np.ones(60) if counts is None else counts
    fit = label_fit(LogisticProblem(endog, exog), 0.0, np.zeros(2), setting, mass)
    expected = minimize(penalized, np.zeros(2), (endog, exog, mass), tol=1e-12).x
    assert fit.converged
    assert_allclose(fit.beta, expected, atol=1e-5)


def test_separated_data_have_a_finite_fit():
    exog = sm.add_constant(np.linspace(-1, 1, 40))
    endog = (exog[:, 1] > 0).astype(float)
    problem = LogisticProblem(endog, exog)
    fit = label_fit(problem, 0.0, np.zeros(2), Setting(0.1), np.ones(40))
    assert fit.converged
    assert 1 < fit.beta[1] < 100


def test_too_few_steps_are_reported():
    endog, exog = logistic_labels(np.random.default_rng(0), 60, (0.2, 1.0))
    setting = Setting(0.1, maxiter=1)
    problem = LogisticProblem(endog, exog)
    assert not label_fit(problem, 0.0, np.zeros(2), setting, np.ones(60)).converged
