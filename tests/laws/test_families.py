"""Deviances, variances and expectations of the families, against statsmodels and integrals."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import integrate, stats

from rrmstats.laws.families import (
    Binomial,
    Gamma,
    Gaussian,
    InverseGaussian,
    NegativeBinomial,
    Poisson,
    Tweedie,
)

F = sm.families
# Ours, statsmodels', responses and means.
CASES = {
    "gaussian": (Gaussian(), F.Gaussian(), [-1.0, 0.0, 2.5], [0.5, -1.0, 2.5]),
    "gamma": (Gamma(), F.Gamma(), [0.01, 1.0, 40.0], [0.5, 1.0, 3.0]),
    "inverse gaussian": (InverseGaussian(), F.InverseGaussian(), [0.1, 1.0, 9.0], [0.5, 1.0, 3.0]),
    "poisson": (Poisson(), F.Poisson(), [0.0, 1.0, 30.0], [0.5, 1.0, 3.0]),
    "binomial": (Binomial(), F.Binomial(), [0.0, 0.25, 1.0], [0.2, 0.5, 0.9]),
    "negative binomial": (
        NegativeBinomial(0.7),
        F.NegativeBinomial(alpha=0.7),
        [0.0, 1.0, 30.0],
        [0.5, 1.0, 3.0],
    ),
    "tweedie": (Tweedie(1.4), F.Tweedie(var_power=1.4), [0.0, 1.0, 30.0], [0.5, 1.0, 3.0]),
}


@pytest.fixture(params=CASES)
def case(request):
    ours, theirs, y, mu = CASES[request.param]
    return ours, theirs, np.array(y), np.array(mu)


def test_deviances_and_variances_are_statsmodels(case):
    ours, theirs, y, mu = case
    assert_allclose(ours.deviance(y, mu), theirs.resid_dev(y, mu) ** 2, rtol=1e-8, atol=1e-12)
    assert_allclose(ours.variance(mu), theirs.variance(mu), rtol=1e-12)
    step = 1e-6
    numeric = (ours.variance(mu + step) - ours.variance(mu - step)) / (2 * step)
    assert_allclose(ours.variance_slope(mu), numeric, rtol=1e-6, atol=1e-9)


def test_without_weights_the_moments_are_those_of_the_family(case):
    ours, _, _, mu = case
    size = np.array([1.0, 4.0, 20.0])
    found = ours.moments(mu, size, 1.0)
    # long sums are integrals in part
    assert_allclose(found.mass, 1, rtol=1e-4)
    assert_allclose(found.first, 0, atol=1e-4)
    assert_allclose(found.second, ours.variance(mu) / size, rtol=1e-3)


@pytest.mark.parametrize("order", [1.3, 2.5, 6.0])
@pytest.mark.parametrize("size", [0.8, 5.0])
def test_continuous_families_are_integrals(order, size):
    mu = 1.7
    line, positive = np.linspace(-20, 20, 20_001), np.geomspace(1e-15, 1e3, 20_001)
    laws = {
        Gaussian(): (stats.norm(mu, size**-0.5), line),
        Gamma(): (stats.gamma(size, scale=mu / size), positive),
        InverseGaussian(): (stats.invgauss(mu / size, scale=size), positive),
    }
    for family, (law, y) in laws.items():
        scaled = size * family.deviance(y, mu)
        tilted = np.exp(-0.5 * (order - 1) * scaled) * law.pdf(y)
        found = family.moments(np.array([mu]), np.array([size]), order)
        for value, function in zip(found, (1.0, y - mu, (y - mu) ** 2, scaled), strict=True):
            expected = integrate.trapezoid(tilted * function, y)
            assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [1.3, 2.5])
@pytest.mark.parametrize("mean", [0.05, 3.0, 40.0, 400.0])
def test_counts_are_sums(mean, order):
    k = np.arange(20_000.0)
    laws = {
        Poisson(): (stats.poisson(mean).pmf(k), k, mean, 1.0),
        NegativeBinomial(0.5): (stats.nbinom(2, 2 / (2 + mean)).pmf(k), k, mean, 1.0),
        Binomial(): (stats.binom(500, mean / 500).pmf(k), k / 500, mean / 500, 500.0),
    }
    for family, (mass, y, mu, size) in laws.items():
        inside = mass > 0
        off, scaled = y[inside] - mu, size * family.deviance(y[inside], mu)
        tilted = mass[inside] * np.exp(-0.5 * (order - 1) * scaled)
        found = family.moments(np.array([mu]), np.array([size]), order)
        unit = np.sqrt(family.variance(mu) / size)
        assert_allclose(found.mass, tilted.sum(), rtol=1e-4)
        assert_allclose(found.first / unit, tilted @ off / unit, atol=1e-4)
        assert_allclose(found.second, tilted @ off**2, rtol=1e-3)
        assert_allclose(found.deviance, tilted @ scaled, rtol=1e-3)


def test_rows_in_blocks_are_rows_in_one(monkeypatch):
    mu, size = np.linspace(0.1, 50, 40), np.ones(40)
    whole = Poisson().moments(mu, size, 2.0)
    monkeypatch.setattr("rrmstats.laws.families.BLOCK_ENTRIES", 500)
    for one, other in zip(Poisson().moments(mu, size, 2.0), whole, strict=True):
        assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("family", [Poisson(), Binomial(), NegativeBinomial(0.5)])
@pytest.mark.parametrize("order", [1.2, 3.0])
def test_many_rows_are_interpolated(family, order):
    rng = np.random.default_rng(0)
    mu, size = np.exp(rng.uniform(-18, 8, 4000)), np.repeat([1.0, 20.0], 2000)
    if isinstance(family, Binomial):
        mu = np.clip(mu / (1 + mu), 1e-10, 1 - 1e-10)
    found = family.interpolated(mu, size, order)
    rows = np.arange(0, 4000, 50)
    exact = family.moments(mu[rows], size[rows], order)
    unit = np.sqrt(family.variance(mu[rows]) / size[rows])
    assert_allclose(found.mass[rows], exact.mass, rtol=1e-4)
    assert_allclose(found.first[rows] / unit, exact.first / unit, atol=2e-3 * exact.mass.max())
    assert_allclose(found.second[rows] / unit**2, exact.second / unit**2, rtol=5e-3, atol=1e-4)
    assert_allclose(found.deviance[rows], exact.deviance, rtol=1e-3, atol=1e-4)


def test_compound_sums_are_simulated_ones():
    power, mu, size, n = 1.6, 1.5, 2.0, 400_000
    family, rng = Tweedie(power), np.random.default_rng(0)
    jumps = rng.poisson(family.jumps(np.array([mu]), np.array([size]))[0], n)
    shape, scale = (2 - power) / (power - 1), (power - 1) * mu ** (power - 1) / size
    y = np.where(jumps > 0, rng.gamma(shape * np.maximum(jumps, 1), scale), 0.0)
    weight = np.exp(-0.5 * size * family.deviance(y, mu))
    found = family.moments(np.array([mu]), np.array([size]), 2.0)
    powers = (weight, weight * (y - mu), weight * (y - mu) ** 2)
    for value, draws in zip(found[:3], powers, strict=True):
        assert abs(value[0] - draws.mean()) < 5 * draws.std() / np.sqrt(n)


def test_tails_are_probabilities_of_larger_deviances():
    tail = Binomial().tail(np.array([0.0, 1.0]), np.array([0.02, 0.02]), np.ones(2))
    assert_allclose(tail, [1.0, 0.02], rtol=1e-9)
    y, mu = np.array([0.0, 12.0]), np.array([4.0, 4.0])
    k = np.arange(200)
    d = Poisson().deviance(k.astype(float), 4.0)
    expected = [stats.poisson(4).pmf(k)[d >= Poisson().deviance(v, 4.0)].sum() for v in y]
    assert_allclose(Poisson().tail(y, mu, np.ones(2)), expected, rtol=1e-9)
    rng = np.random.default_rng(0)
    for family, draw in (
        (Gamma(), rng.gamma(2.0, 0.5, 20_000)),
        (InverseGaussian(), rng.wald(1.0, 2.0, 20_000)),
    ):
        tail = family.tail(draw, np.ones(20_000), np.full(20_000, 2.0))
        assert 0.015 < np.mean(tail < 0.025) < 0.04


@pytest.mark.parametrize(
    ("family", "law", "size"),
    [
        (Poisson(), stats.poisson(3.0), 1.0),
        (Poisson(), stats.poisson(0.2), 1.0),
        (Binomial(), stats.binom(12, 0.3), 12.0),
        (Binomial(), stats.binom(1, 0.3), 1.0),
        (NegativeBinomial(0.5), stats.nbinom(2, 2 / (2 + 3.0)), 1.0),
        (Gamma(), stats.gamma(0.8, scale=1.5), 0.8),
        (InverseGaussian(), stats.invgauss(1.5 / 2, scale=2.0), 2.0),
    ],
)
def test_quantile_residuals_are_normal(family, law, size):
    rng = np.random.default_rng(0)
    counts = law.rvs(5000, random_state=rng)
    sizes, mu = np.full(5000, size), np.full(5000, law.mean())
    if isinstance(family, Binomial):
        counts, mu = counts / size, mu / size
    found = family.quantile_residuals(counts.astype(float), mu, sizes, rng.uniform(size=5000))
    assert stats.kstest(found, "norm").pvalue > 0.01


def test_quantile_residuals_of_impossible_responses_are_finite():
    y, mu = np.array([0.0, 5000.0]), np.array([2000.0, 2.0])
    found = Poisson().quantile_residuals(y, mu, np.ones(2), np.full(2, 0.5))
    assert_allclose(found, [-np.sqrt(4000.0), np.sqrt(Poisson().deviance(5000.0, 2.0))])
    far = Poisson().quantile_residuals(np.array([60.0]), np.array([10.0]), np.ones(1), np.ones(1))
    assert_allclose(far, stats.norm.isf(stats.poisson(10).sf(59)), rtol=1e-9)
