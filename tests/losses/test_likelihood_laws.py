"""Sums and integrals over the laws of responses, and the peaks of likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import beta, nbinom, norm, poisson

from rrmstats.losses.likelihood_laws import (
    NegativeBinomialKernel,
    counts_worth_a_term,
    probability_nodes,
)


def log_poisson(count, mean):
    """Return log-probabilities; nodes of a long range are no whole numbers."""
    return count * np.log(mean) - mean - gammaln(count + 1.0)


@pytest.mark.parametrize("mean", [0.01, 0.7, 12.0, 300.0, 1e5])
def test_counts_sum_a_poisson_law(mean):
    law = poisson(mean)
    counts, log_width = counts_worth_a_term(
        np.array([mean]), np.array([mean]), lambda y: log_poisson(y, mean)
    )
    mass = np.exp(log_width + log_poisson(counts, mean))[:, 0]
    assert_allclose(mass.sum(), 1.0, rtol=1e-8)
    assert_allclose(mass @ counts[:, 0], mean, rtol=1e-8)
    z = (counts[:, 0] - mean) / np.sqrt(mean)
    every = np.arange(0, mean + 20 * np.sqrt(mean) + 30)
    off = (every - mean) / np.sqrt(mean)
    wanted = law.pmf(every) @ (off * np.exp(-(off**2)))
    assert_allclose(mass @ (z * np.exp(-(z**2))), wanted, atol=1e-8)


def test_counts_sum_a_law_with_a_long_tail():
    law, kernel = nbinom(0.5, 0.01), NegativeBinomialKernel(2.0)
    at = np.log(law.mean()), np.array(2.0)
    counts, log_width = counts_worth_a_term(
        np.array([law.mean()]), np.array([law.var()]), lambda y: kernel.log_density(y, *at)
    )
    mass = np.exp(log_width + kernel.log_density(counts, *at))[:, 0]
    assert_allclose(mass.sum(), 1.0, rtol=1e-5)
    assert_allclose(mass @ counts[:, 0], law.mean(), rtol=1e-5)


def test_nodes_integrate_over_continuous_laws():
    at, weight = probability_nodes()
    z = norm.ppf(at)
    assert_allclose([weight @ z, weight @ z**2, weight @ z**4], [0.0, 1.0, 3.0], atol=1e-6)
    share = beta.ppf(at, 0.7, 2.0)
    assert_allclose(weight @ np.log(share), beta(0.7, 2.0).expect(np.log), rtol=1e-6)
