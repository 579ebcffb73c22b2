"""Maximum likelihood with Firth's penalty."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from rrmstats.core.setting import Setting
from rrmstats.experiments.samples import logistic_labels
from rrmstats.losses.firth import firth_fit
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
    theta, converged = firth_fit(LogisticProblem(endog, exog), setting.spread(60), setting)
    mass = np.ones(60) if counts is None else counts
    expected = minimize(penalized, np.zeros(2), (endog, exog, mass), tol=1e-12).x
    assert converged
    assert_allclose(theta, expected, atol=1e-5)


def test_separated_data_have_a_finite_fit():
    exog = sm.add_constant(np.linspace(-1, 1, 40))
    endog = (exog[:, 1] > 0).astype(float)
    theta, converged = firth_fit(LogisticProblem(endog, exog), np.full(40, 1 / 40), Setting(0.1))
    assert converged
    assert 1 < theta[1] < 100


def test_too_few_steps_are_reported():
    endog, exog = logistic_labels(np.random.default_rng(0), 60, (0.2, 1.0))
    setting = Setting(0.1, maxiter=1)
    assert not firth_fit(LogisticProblem(endog, exog), setting.spread(60), setting)[1]
