"""Laws of flipped labels: derivatives, closed forms, weights, influence functions."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from rrmstats.core.block_array import leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.experiments.samples import extreme_flips, logistic_labels
from rrmstats.laws.labels import (
    BOTH_ENDS,
    BY_CLASS,
    NO_FLIPS,
    ONE_RATE,
    ONES,
    ZEROS,
    FlippedLabels,
    Flips,
    flipped,
)

TRUTH = (0.2, 1.0, -0.5)
KINDS = [NO_FLIPS, ONE_RATE, BY_CLASS, Flips(BOTH_ENDS, 4.0), Flips(ONES, 2.0), Flips(ZEROS, 3.0)]
RATES = {0.0: (-3.0, -2.5), 2.0: (-6.0,), 3.0: (-7.0,), 4.0: (-14.0,)}


def labels(flips, n=200, counts=None, eps_bar=0.3, seed=0):
    endog, exog = extreme_flips(np.random.default_rng(seed), n, TRUTH, 0.05)
    return FlippedLabels(endog, exog, np.ones(n) if counts is None else counts, eps_bar, flips)


def parameters(flips):
    return np.r_[0.1, 0.9, -0.4, RATES[flips.steepness][: flips.n_rates]]


def derivative(function, z, step=1e-5):
    """Return a Jacobian by central differences, the parameters first."""
    pairs = [(function(z + h), function(z - h)) for h in step * np.eye(len(z))]
    return np.array([(np.asarray(up) - np.asarray(down)) / (2 * step) for up, down in pairs])


def end(law, steps=100):
    return law.fit(parameters(law.flips), steps)


@pytest.mark.parametrize("flips", KINDS)
def test_the_gradient_is_that_of_the_penalized_likelihood(flips):
    law, z = labels(flips, counts=1.0 + np.arange(200) % 3), parameters(flips)
    gradient, _ = law.slopes(law.value(z))
    assert_allclose(gradient, derivative(lambda at: law.value(at).penalized, z), rtol=1e-6)


@pytest.mark.parametrize("flips", KINDS)
def test_the_hessian_is_that_of_the_likelihood(flips):
    """With so many observations the prior, whose curvature is approximate, plays no part."""
    law, z = labels(flips, counts=np.full(200, 1e7)), parameters(flips)
    numbers = derivative(lambda at: law.slopes(law.value(at))[0], z)
    hessian = law.slopes(law.value(z))[1]
    assert_allclose(hessian, -numbers, rtol=1e-5, atol=1e-6 * np.abs(numbers).max())


@pytest.mark.parametrize("flips", KINDS)
def test_the_expected_hessian_is_the_mean_of_the_observed_one(flips):
    """Over labels in the proportions of the law."""
    z, _, exog = parameters(flips), *extreme_flips(np.random.default_rng(0), 100, TRUTH, 0.05)
    one = FlippedLabels(np.ones(100), exog, np.ones(100), 0.3, flips)
    chance = flipped(one.endog, exog @ z[:3], *one.offsets(z), flips.steepness)
    counts = 1e7 * np.r_[chance.label, chance.other]
    endog = np.repeat([1.0, 0.0], 100)
    law = FlippedLabels(endog, np.vstack([exog, exog]), counts, 0.3, flips)
    at = law.value(z)
    observed, expected = law.slopes(at)[1], law.slopes(at, expected=True)[1]
    assert_allclose(expected, observed, rtol=1e-5, atol=1e-6 * np.abs(observed).max())


@pytest.mark.parametrize("flips", KINDS)
def test_probabilities_of_both_labels_add_up_to_one(flips):
    eta = np.array([-30.0, -2.0, 0.0, 0.7, 40.0])
    law = FlippedLabels(np.ones(5), eta[:, None], np.ones(5), 0.3, flips)
    chance = flipped(law.endog, eta, *law.offsets(parameters(flips)[2:]), flips.steepness)
    assert_allclose(chance.label + chance.other, 1.0)
    assert_allclose(chance.p, expit(eta))


@pytest.mark.parametrize("flips", KINDS)
def test_a_fit_is_a_maximum(flips):
    law = labels(flips)
    found = end(law)
    assert found.converged
    best = minimize(lambda z: -law.value(z).penalized, found.value.z, method="Nelder-Mead")
    assert_allclose(-best.fun, found.value.penalized, atol=1e-6)
    assert found.eps < law.eps_bar


def test_without_flips_a_constant_has_firths_estimate():
    endog = np.r_[np.ones(7), np.zeros(3)]
    law = FlippedLabels(endog, np.ones((10, 1)), np.ones(10), 0.1, NO_FLIPS)
    assert_allclose(law.fit(np.zeros(1)).theta, np.log(7.5 / 3.5))


def test_without_flips_it_is_maximum_likelihood_less_its_bias():
    endog, exog = logistic_labels(np.random.default_rng(0), 5000, TRUTH)
    law = FlippedLabels(endog, exog, np.ones(5000), 0.1, NO_FLIPS)
    found = law.fit(np.zeros(3))
    moves, _, shift = law.influence(found.value)
    classical = sm.Logit(endog, exog).fit(disp=0, cov_type="HC3")
    assert_allclose(found.theta - shift, classical.params, atol=1e-5)
    assert_allclose(np.sqrt((moves**2).sum(axis=0)), classical.bse, rtol=2e-3)


def test_separated_labels_have_a_finite_fit():
    exog = sm.add_constant(np.linspace(-1, 1, 40))
    for flips in (NO_FLIPS, ONE_RATE):
        law = FlippedLabels((exog[:, 1] > 0).astype(float), exog, np.ones(40), 0.1, flips)
        found = law.fit(np.r_[0.0, 1.0, -3.0][: 2 + flips.n_rates])
        assert found.converged
        assert 1 < found.theta[1] < 100


def test_too_few_steps_are_reported():
    assert not end(labels(ONE_RATE), steps=1).converged


@pytest.mark.parametrize("flips", KINDS)
def test_a_row_of_weight_two_is_the_row_twice(flips):
    law = labels(flips, counts=1.0 + np.arange(200) % 3)
    rows = np.repeat(np.arange(200), law.counts.astype(int))
    twice = FlippedLabels(law.endog[rows], law.exog[rows], np.ones(len(rows)), 0.3, flips)
    one, other = end(law), end(twice)
    assert_allclose(one.value.z, other.value.z, rtol=1e-6)
    assert_allclose(one.value.penalized, other.value.penalized)
    for mine, theirs in zip(
        law.influence(one.value)[:2], twice.influence(other.value)[:2], strict=True
    ):
        assert_allclose(mine[rows], theirs, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("flips", [NO_FLIPS, ONE_RATE])
def test_influence_functions_tell_how_a_fit_moves(flips):
    law = labels(flips, 1000)
    found = end(law)
    moves, share_moves, _ = law.influence(found.value)
    row, much = 3, 1e-3
    more = labels(flips, 1000, counts=np.ones(1000) + much * (np.arange(1000) == row))
    moved = end(more)
    change = (moved.theta - found.theta) / much
    assert_allclose(moves[row], change, rtol=0.05, atol=0.02 * np.abs(change).max())
    if flips.n_rates:
        assert_allclose(share_moves[row], (moved.eps - found.eps) / much, rtol=0.1)


@pytest.mark.parametrize("flips", KINDS[1:])
def test_probabilities_of_rows_have_the_mean_of_the_share(flips):
    law = labels(flips, 1000)
    found = end(law)
    bad = law.prob_bad(found.value)
    assert_allclose(bad.mean(), found.eps, atol=0.01)


def test_flipped_labels_at_the_ends_are_found():
    law = labels(Flips(BOTH_ENDS, 4.0), 1000)
    found = end(law)
    size = np.abs(law.exog @ TRUTH)
    assert_allclose(np.flatnonzero(law.prob_bad(found.value) > 0.5).size, 50, atol=10)
    assert law.prob_bad(found.value)[np.argsort(-size)[:30]].min() > 0.9


@pytest.mark.parametrize("flips", [NO_FLIPS, BY_CLASS])
def test_rows_in_blocks_have_the_same_fit(flips):
    law = labels(flips)
    arrays = law.endog, law.exog, law.counts
    blocks = ArrayBlocks(list(zip(*(np.split(a, [20, 90]) for a in arrays), strict=True)))
    lazy = FlippedLabels(*leaf_arrays(blocks, ((), (3,), ())), 0.3, flips)
    one, other = end(law), end(lazy)
    assert_allclose(other.value.z, one.value.z, rtol=1e-9)
    expected = law.influence(one.value)
    for mine, theirs in zip(lazy.influence(other.value)[:2], expected, strict=False):
        assert_allclose(mine[:200], theirs, rtol=1e-6, atol=1e-12)
