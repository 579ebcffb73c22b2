"""Log-densities in closed form against scipy, and their slopes against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, nbinom, norm, poisson
from statsmodels.distributions.discrete import genpoisson_p

from rrmstats.laws.families import NegativeBinomial, Poisson
from rrmstats.losses.likelihood_laws import (
    BetaKernel,
    GeneralizedPoissonKernel,
    LabelKernel,
    NegativeBinomialKernel,
    ZeroInflatedKernel,
    log_mean_kernel,
)

POISSON = log_mean_kernel(Poisson())
COUNTS, SHARES = np.arange(40.0), np.linspace(0.01, 0.99, 30)
CASES = [
    (POISSON, COUNTS, (1.2,)),
    *((NegativeBinomialKernel(p), COUNTS, (1.2, a)) for p in (1, 1.5, 2) for a in (0.01, 0.4)),
    (log_mean_kernel(NegativeBinomial(1.0)), COUNTS, (1.2,)),
    *((GeneralizedPoissonKernel(p), COUNTS, (1.2, 0.3)) for p in (0, 1)),
    *((ZeroInflatedKernel(POISSON, probit), COUNTS, (-1.0, 0.2)) for probit in (0, 1)),
    (ZeroInflatedKernel(NegativeBinomialKernel(2)), COUNTS, (-2.0, 0.2, 0.5)),
    (BetaKernel(), SHARES, (0.3, 2.0)),
    *(
        (LabelKernel(probit), np.arange(2.0), (at,))
        for at in (-0.7, 12.0)
        for probit in (True, False)
    ),
]


@pytest.mark.parametrize("kernel, y, at", CASES, ids=lambda value: type(value).__name__)
def test_slopes_are_derivatives(kernel, y, at):
    at = [np.array(value) for value in at]
    found = kernel.slopes(y, *at)
    assert len(found) == len(at)
    for j, step in enumerate(1e-5 * np.maximum(np.abs(at), 0.1)):
        up = [value + step * (i == j) for i, value in enumerate(at)]
        down = [value - step * (i == j) for i, value in enumerate(at)]
        wanted = (kernel.log_density(y, *up) - kernel.log_density(y, *down)) / (2 * step)
        assert_allclose(found[j], wanted, rtol=1e-5, atol=1e-6)


def test_densities_are_those_of_scipy():
    mean = np.exp(1.2)
    assert_allclose(POISSON.log_density(COUNTS, np.array(1.2)), poisson(mean).logpmf(COUNTS))
    for alpha in (0.019, 0.021, 0.4):  # sizes on both sides of where the series begins
        size = 1 / alpha
        wanted = nbinom(size, size / (size + mean)).logpmf(COUNTS)
        assert_allclose(NegativeBinomialKernel(2).log_density(COUNTS, 1.2, alpha), wanted)
    wanted = genpoisson_p.logpmf(COUNTS, mean, 0.3, 2)
    assert_allclose(GeneralizedPoissonKernel(1).log_density(COUNTS, 1.2, 0.3), wanted)
    for at in (-0.7, 12.0):
        wanted = norm.logcdf([-at, at])
        assert_allclose(LabelKernel(True).log_density(np.arange(2.0), at), wanted)
    law = beta(0.5 * np.exp(2.0), 0.5 * np.exp(2.0))
    assert_allclose(BetaKernel().log_density(SHARES, 0.0, 2.0), law.logpdf(SHARES), atol=1e-12)


def test_without_overdispersion_counts_are_poisson():
    kernel, mean = NegativeBinomialKernel(2), np.exp(1.2)
    found = kernel.log_density(COUNTS, 1.2, np.array(1e-9))
    assert_allclose(found, poisson(mean).logpmf(COUNTS), rtol=1e-6)
    slope = kernel.slopes(COUNTS, 1.2, np.array(1e-7))[1]
    assert_allclose(slope, 0.5 * ((COUNTS - mean) ** 2 - COUNTS), rtol=1e-3, atol=1e-3)


COUNT_KERNELS = [case for case in CASES if case[1] is COUNTS]


@pytest.mark.parametrize("kernel, y, at", COUNT_KERNELS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("log_mean", [-1e13, -1e3, -301.0, 301.0, 1e3, 1e13])
def test_no_count_has_a_probability_above_one(kernel, y, at, log_mean):
    mean_at = isinstance(kernel, ZeroInflatedKernel)
    given = [np.array(log_mean if j == mean_at else value) for j, value in enumerate(at)]
    assert kernel.log_density(y, *given).max() <= 1e-9
