"""Sums and integrals over the laws of responses, and the peaks of likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, nbinom, norm, poisson

from rrmstats.losses.likelihood_laws import count_cells, probability_nodes


@pytest.mark.parametrize("mean", [0.01, 0.7, 12.0, 300.0, 1e5])
def test_cells_sum_a_poisson_law(mean):
    law = poisson(mean)
    counts, widths = count_cells(np.array([mean]), np.sqrt([mean]))
    mass = (widths * law.pmf(counts))[:, 0]
    exact = mean < 50  # all counts are taken one by one
    assert_allclose(mass.sum(), 1.0, rtol=1e-12 if exact else 5e-4)
    assert_allclose(mass @ counts[:, 0], mean, rtol=1e-12 if exact else 5e-4)
    z = (counts[:, 0] - mean) / np.sqrt(mean)
    every = np.arange(0, mean + 20 * np.sqrt(mean) + 30)
    off = (every - mean) / np.sqrt(mean)
    wanted = law.pmf(every) @ (off * np.exp(-(off**2)))
    assert_allclose(mass @ (z * np.exp(-(z**2))), wanted, atol=1e-12 if exact else 5e-4)


def test_cells_sum_a_law_with_a_long_tail():
    law = nbinom(0.5, 0.01)
    counts, widths = count_cells(np.array([law.mean()]), 2 * np.array([law.std()]))
    mass = (widths * law.pmf(counts))[:, 0]
    assert_allclose(mass.sum(), 1.0, rtol=5e-4)
    assert_allclose(mass @ counts[:, 0], law.mean(), rtol=1e-3)


def test_nodes_integrate_over_continuous_laws():
    at, weight = probability_nodes()
    z = norm.ppf(at)
    assert_allclose([weight @ z, weight @ z**2, weight @ z**4], [0.0, 1.0, 3.0], atol=1e-6)
    share = beta.ppf(at, 0.7, 2.0)
    assert_allclose(weight @ np.log(share), beta(0.7, 2.0).expect(np.log), rtol=1e-6)
