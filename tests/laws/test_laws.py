"""Densities of good and bad rows: they sum to one, and their slopes are their derivatives."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import betabinom, nbinom

from rrmstats.laws.families import (
    Binomial,
    Gamma,
    Gaussian,
    InverseGaussian,
    Link,
    MeanFunction,
    NegativeBinomial,
    Poisson,
)
from rrmstats.laws.mixture import GoodRows, newton_step
from rrmstats.laws.responses import (
    AnyShare,
    Cluster,
    CountCluster,
    Dispersed,
    KernelRows,
    OverdispersedCounts,
    OverdispersedShares,
    PlainCounts,
    WideAround,
    WideCounts,
    unpredicted,
)
from rrmstats.laws.rows import Responses
from rrmstats.losses.likelihood_laws import NegativeBinomialKernel

LOG = MeanFunction(Link.log())
LOGIT = MeanFunction(
    Link(
        lambda p: np.log(p / (1 - p)),
        lambda e: 1 / (1 + np.exp(-e)),
        lambda e: np.exp(-e) / (1 + np.exp(-e)) ** 2,
        np.zeros_like,
    )
)
COUNTS = {
    "poisson": (PlainCounts(Poisson(), LOG), []),
    "given alpha": (PlainCounts(NegativeBinomial(0.5), LOG), []),
    "binomial": (PlainCounts(Binomial(), LOGIT), []),
    "negative binomial": (OverdispersedCounts(LOG), [0.4]),
    "wider": (OverdispersedCounts(LOG, 0.5), [0.2]),
    "beta-binomial": (OverdispersedShares(LOGIT), [0.2]),
}
DISPERSED = {
    "gamma": Dispersed(Gamma(), LOG, 2, 100.0),
    "inverse gaussian": Dispersed(InverseGaussian(), LOG, 2, 100.0),
    "gaussian": Dispersed(Gaussian(), LOG, 2, 100.0),
}


def seen(endog, size=None):
    """Return responses of rows that are not far from the others in X."""
    endog = np.asarray(endog, float)
    return Responses(endog, np.ones(len(endog)) if size is None else size, np.zeros(len(endog)))


def responses(law):
    """Return all counts that have a probability, as shares of 12 trials where there are trials."""
    if isinstance(law, OverdispersedShares) or isinstance(getattr(law, "family", None), Binomial):
        return np.arange(13.0) / 12.0, np.full(13, 12.0)
    return np.arange(3000.0), np.ones(3000)


@pytest.mark.parametrize("name", COUNTS)
def test_probabilities_of_counts_sum_to_one_at_their_mean(name):
    law, own = COUNTS[name]
    y, size = responses(law)
    rows = law.rows(seen(y, size), np.full((1, len(y)), 0.7), np.array(own))
    chance = np.exp(rows.log_density)
    assert_allclose(chance.sum(), 1.0, rtol=1e-9)
    assert_allclose(chance @ (size * y), rows.center[0], rtol=1e-8)
    assert_allclose(chance @ (size * y - rows.center) ** 2, rows.spread[0] ** 2, rtol=1e-7)
    # The expected square of the slope is the information, nearly where trials are correlated.
    accuracy = 0.2 if name == "beta-binomial" else 1e-6
    assert_allclose(chance @ rows.slopes[0] ** 2, rows.information[0, 0, 0], rtol=accuracy)


@pytest.mark.parametrize("name", COUNTS)
def test_slopes_of_counts_are_derivatives(name):
    law, own = COUNTS[name]
    y, size = (part[:13] for part in responses(law))
    eta, own = np.full((1, 13), 0.7), np.array(own)

    def density(at, others):
        return law.rows(seen(y, size), at, others).log_density

    found = law.rows(seen(y, size), eta, own)
    wanted = (density(eta + 1e-5, own) - density(eta - 1e-5, own)) / 2e-5
    assert_allclose(found.slopes[0], wanted, atol=1e-6)
    if len(own):
        wanted = (density(eta, own + 1e-6) - density(eta, own - 1e-6)) / 2e-6
        assert_allclose(found.own[0], wanted, atol=1e-5)


def test_overdispersed_counts_are_scipys():
    y = np.arange(30.0)
    eta = np.full((1, 30), 0.7)
    rows = OverdispersedCounts(LOG).rows(seen(y), eta, np.array([0.4]))
    m = np.exp(0.7)
    assert_allclose(rows.log_density, nbinom(2.5, 2.5 / (2.5 + m)).logpmf(y), rtol=1e-9)
    p = 1 / (1 + np.exp(-0.7))
    rows = OverdispersedShares(LOGIT).rows(
        seen(np.arange(13) / 12, np.full(13, 12.0)), eta[:, :13], np.array([0.2])
    )
    assert_allclose(
        rows.log_density, betabinom(12, 4 * p, 4 * (1 - p)).logpmf(np.arange(13)), rtol=1e-9
    )


@pytest.mark.parametrize("name", DISPERSED)
def test_densities_with_a_dispersion_integrate_to_one(name):
    law, phi = DISPERSED[name], np.array([0.3])

    def density(y):
        rows = law.rows(seen([y]), np.full((1, 1), 0.4), phi)
        return float(np.exp(rows.log_density[0]))

    low = -10 if name == "gaussian" else 1e-9
    assert_allclose(quad(density, low, 40, limit=200)[0], 1.0, rtol=1e-4)
    # Pearson's equation has expectation zero.
    pearson = quad(
        lambda y: density(y) * law.rows(seen([y]), np.full((1, 1), 0.4), phi).own[0, 0],
        low,
        200,
        limit=400,
        points=[1.0, 5.0],
    )[0]
    assert abs(pearson) < 1e-3


BAD = {
    "wide": (WideAround(True), [2.5]),
    "cluster": (Cluster(True), [1.5, 2.0]),
    "wide on the line": (WideAround(False), [2.5]),
    "cluster on the line": (Cluster(False), [1.5, 2.0]),
    "unpredicted": (unpredicted(np.linspace(-3, 5, 50), np.ones(50)), [0.5, 2.0]),
    "unpredicted shares": (unpredicted(np.linspace(0.1, 0.8, 50), np.ones(50)), [0.5, 2.0]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_responses_have_densities(name):
    law, own = BAD[name]
    own, one = np.array(own), np.ones(1)
    rows = GoodRows(*[one] * 3, 2.0 * one, 0.5 * one, one, one)

    def density(y, others=own):
        return float(np.exp(law.log_density(seen([y]), rows, others)[0]))

    # Cauchy distributions have far tails: a change of variables brings them near.
    if name == "unpredicted shares":
        total = quad(
            lambda t: density(1 / (1 + np.exp(-t))) / (2 + 2 * np.cosh(t)),
            -30,
            30,
            points=[0.5],
            limit=500,
        )
        total = (total[0] + 2 * 2 / np.pi / 30,)  # a tail of scale 2 on either side
    elif name in ("wide", "cluster"):
        total = quad(lambda t: density(np.exp(t)) * np.exp(t), -600, 600, points=[0.7], limit=2000)
    else:
        total = quad(density, -np.inf, np.inf, limit=2000)
    assert_allclose(total[0], 1.0, rtol=5e-3)
    for y in (0.3, 0.7):
        slopes = [
            np.log(density(y, own + step) / density(y, own - step)) / 2e-6
            for step in 1e-6 * np.eye(len(own))
        ]
        assert_allclose(law.scores(seen([y]), rows, own)[:, 0], slopes, rtol=1e-4)


@pytest.mark.parametrize(
    ("law", "own", "n"),
    [
        (WideCounts(), [4.0], 10**6),
        (CountCluster(), [9.5, 0.3], 2000),
        (AnyShare(), [0.5, 2.0], 13),
    ],
)
def test_bad_counts_have_probabilities_and_scores(law, own, n):
    shares = isinstance(law, AnyShare)
    y, size = (np.arange(n) / 12, np.full(n, 12.0)) if shares else (np.arange(1.0 * n), np.ones(n))
    rows, own = GoodRows(*[np.ones(n)] * 7), np.array(own)
    assert_allclose(np.exp(law.log_density(seen(y, size), rows, own)).sum(), 1.0, rtol=1e-5)
    some = seen(y[:10], size[:10])
    found = law.scores(some, rows, own)
    for j, step in enumerate(1e-6 * np.eye(len(own))):
        high = law.log_density(some, rows, own + step)
        slope = (high - law.log_density(some, rows, own - step)) / 2e-6
        assert_allclose(found[j], slope, rtol=1e-3, atol=1e-6)


def test_steps_end_at_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    count, one = rng.negative_binomial(3, 0.1, 200).astype(float), np.ones(200)
    rows = GoodRows(*[one] * 7)
    for law, y, size in (
        (WideCounts(), count, one),
        (CountCluster(), count, one),
        (AnyShare(), np.minimum(count, 40) / 40, 40 * one),
    ):
        some = seen(y, size)
        own = law.start(some, rows)
        for _ in range(400):
            own = newton_step(partial(law.scores, some, rows), own, one, law.bounds)
        assert np.abs(law.scores(some, rows, own).sum(axis=1)).max() < 1e-3


def test_information_of_kernels_is_minus_the_second_derivative():
    kernel = NegativeBinomialKernel(2.0)
    law = KernelRows(kernel.log_density, kernel.slopes, kernel.moments)
    y, at = np.array([0.0, 3.0]), np.array([[0.5, 1.0], [0.3, 0.3]])
    found = law.rows(seen(y), at, np.zeros(0)).information
    step = np.array([[1e-5], [0.0]])
    slope = kernel.slopes(y, *(at + step)) - kernel.slopes(y, *(at - step))
    assert_allclose(found[:, 0], -slope / 2e-5, rtol=1e-4)


@pytest.mark.parametrize("law", [WideCounts(), CountCluster()])
def test_counts_that_are_given_as_rates_start_where_counts_do(law):
    counts, size = np.r_[np.full(8, 20.0), 400.0, 500.0], np.full(10, 10.0)
    mean = np.full((1, 10), np.log(2.0))
    good = PlainCounts(Poisson(), LOG)
    rates = seen(counts / size, size)
    plain = seen(counts)
    found = law.start(rates, good.rows(rates, mean, np.zeros(0)))
    wanted = law.start(plain, good.rows(plain, mean + np.log(10.0), np.zeros(0)))
    assert_allclose(found, wanted)
    assert found[0] == 450.0
