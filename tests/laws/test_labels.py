"""Laws of flipped labels: derivatives, closed forms, weights, influence functions."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from replication.samples import extreme_flips, logistic_labels
from rrmstats.core.block_array import leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.laws.labels import (
    BOTH_ENDS,
    BY_CLASS,
    NO_FLIPS,
    ONE_RATE,
    ONES,
    ZEROS,
    FlippedLabels,
    Flips,
    label_rows,
)
from rrmstats.laws.rows import PredictorRows

TRUTH = (0.2, 1.0, -0.5)
KINDS = [NO_FLIPS, ONE_RATE, BY_CLASS, Flips(BOTH_ENDS, 4.0), Flips(ONES, 2.0), Flips(ZEROS, 3.0)]
RATES = {0.0: (-3.0, -2.5), 2.0: (-6.0,), 3.0: (-7.0,), 4.0: (-14.0,)}


UNITS = np.diag([0.0, 1.0, 1.0])


def law_of(endog, exog, counts, flips, units=UNITS, eps_bar=0.3, offset=None):
    rows = PredictorRows.plain(counts, float(counts.sum()), endog, (exog,), offset)
    return FlippedLabels(rows, units, eps_bar, flips)


def labels(flips, n=200, counts=None, eps_bar=0.3, seed=0):
    endog, exog = extreme_flips(np.random.default_rng(seed), n, TRUTH, 0.05)
    counts = np.ones(n) if counts is None else counts
    return law_of(endog, exog, counts, flips, eps_bar=eps_bar)


def arrays_of(law):
    return law.rows.seen.endog, law.rows.designs[0], law.rows.mass


def parameters(flips):
    return np.r_[0.1, 0.9, -0.4, RATES[flips.steepness][: flips.n_rates]]


def derivative(function, z, step=1e-5):
    """Return a Jacobian by central differences, the parameters first."""
    pairs = [(function(z + h), function(z - h)) for h in step * np.eye(len(z))]
    return np.array([(np.asarray(up) - np.asarray(down)) / (2 * step) for up, down in pairs])


def value(law, z, fixed=False):
    return law.values(z, fixed)


def end(law):
    return law.fit(parameters(law.flips))


@pytest.mark.parametrize("flips", KINDS)
def test_derivatives_are_those_of_the_penalized_likelihood(flips):
    law, z = labels(flips, counts=1.0 + np.arange(200) % 3), parameters(flips)
    at = value(law, z)
    assert_allclose(at.gradient, derivative(lambda z: value(law, z).penalized, z), rtol=1e-6)
    numbers = derivative(lambda z: value(law, z).gradient, z)
    assert_allclose(at.hessian, numbers, rtol=1e-6, atol=1e-8 * np.abs(numbers).max())
    slopes = derivative(lambda z: value(law, z).shares, z).T
    assert_allclose(at.share_slopes, slopes, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("flips", KINDS)
def test_an_offset_is_a_column_whose_coefficient_is_one(flips):
    law, z = labels(flips), parameters(flips)
    endog, exog, counts = arrays_of(law)
    part = law_of(endog, exog[:, :2], counts, flips, UNITS[:, :2], offset=exog[:, 2])
    z[2] = 1.0
    assert_allclose(
        value(part, np.delete(z, 2)).log_likelihood, value(law, z).log_likelihood, rtol=1e-12
    )
    fit = part.fit(np.delete(z, 2))
    assert_allclose(derivative(lambda z: value(part, z).penalized, fit.z), 0, atol=1e-5)


@pytest.mark.parametrize("flips", KINDS)
def test_derivatives_are_finite_where_a_label_is_all_but_impossible(flips):
    """Cancellation between terms of P(label) must not be divided by it."""
    eta = np.array([-800.0, -300.0, -40.0, 0.0, 40.0, 300.0, 800.0])
    for label in (0.0, 1.0):
        law = law_of(np.full(7, label), eta[:, None], np.ones(7), flips, np.eye(1))
        for rate in (-30.0, -3.0, 30.0):
            z = np.r_[1.0, np.full(flips.n_rates, rate)]
            at = label_rows(law.rows, z, flips, False)
            assert np.abs(at.first).max() <= 1.0 + flips.steepness
            assert np.abs(at.second).max() <= 2.0 * (1.0 + flips.steepness) ** 2


@pytest.mark.parametrize("flips", KINDS[3:])
def test_fixed_flips_do_not_move_with_the_coefficients(flips):
    """With so many observations the priors play no part."""
    law, z = labels(flips, counts=np.full(200, 1e7)), parameters(flips)
    endog, exog, _ = arrays_of(law)
    log_odds = np.where(flips.chain.any(axis=1), flips.chain @ z[3:], -np.inf)
    of_one, of_zero = expit(log_odds[:, None] + flips.steepness * np.outer([1, -1], exog @ z[:3]))

    def log_likelihood(theta):
        p = expit(exog @ theta)
        one = (1 - of_one) * p + of_zero * (1 - p)
        return 1e7 * np.log(np.where(endog == 1, one, 1 - one)).sum()

    fixed, moving = value(law, z, fixed=True).gradient[:3], value(law, z).gradient[:3]
    assert_allclose(fixed, derivative(log_likelihood, z[:3]), rtol=1e-5)
    assert np.abs(fixed - moving).max() > 0.1 * np.abs(moving).max()


@pytest.mark.parametrize("flips", KINDS)
def test_probabilities_of_both_labels_add_up_to_one(flips):
    eta = np.array([-30.0, -2.0, 0.0, 0.7, 40.0])
    z = np.r_[1.0, parameters(flips)[3:]]
    laws = [law_of(np.full(5, y), eta[:, None], np.ones(5), flips) for y in (0.0, 1.0)]
    rows = [label_rows(law.rows, z, flips, False) for law in laws]
    chances = [np.exp(at.value[0]) for at in rows]
    assert_allclose(sum(chances), 1.0)
    slopes = [p * at.first[0] for p, at in zip(chances, rows, strict=True)]
    assert_allclose(sum(slopes), 0.0, atol=1e-14)


@pytest.mark.parametrize("flips", KINDS)
def test_a_fit_is_a_maximum(flips):
    law = labels(flips)
    found = end(law)
    assert found.converged
    best = minimize(lambda z: -value(law, z).penalized, found.z, method="Nelder-Mead")
    assert_allclose(-best.fun, found.penalized, atol=1e-6)
    assert found.eps < law.eps_bar


def test_without_flips_a_constant_has_the_observed_log_odds():
    endog = np.r_[np.ones(7), np.zeros(3)]
    law = law_of(endog, np.ones((10, 1)), np.ones(10), NO_FLIPS, np.zeros((1, 1)), 0.1)
    assert_allclose(law.fit(np.zeros(1)).theta, np.log(7 / 3))


def test_without_flips_it_is_maximum_likelihood_with_a_prior():
    endog, exog = logistic_labels(np.random.default_rng(0), 5000, TRUTH)
    found = law_of(endog, exog, np.ones(5000), NO_FLIPS, eps_bar=0.1).fit(np.zeros(3))
    moves, _, shift = found.influence()
    classical = sm.Logit(endog, exog).fit(disp=0, cov_type="HC3")
    assert_allclose(found.theta - shift, classical.params, atol=1e-5)
    assert_allclose(np.sqrt((moves**2).sum(axis=0)) / 5000, classical.bse, rtol=2e-3)


def test_separated_labels_have_a_finite_fit():
    exog = sm.add_constant(np.linspace(-1, 1, 40))
    for flips in (NO_FLIPS, ONE_RATE):
        endog, units = (exog[:, 1] > 0).astype(float), np.diag([0.0, 1.0])
        law = law_of(endog, exog, np.ones(40), flips, units, 0.1)
        found = law.fit(np.r_[0.0, 1.0, -3.0][: 2 + flips.n_rates])
        assert found.converged
        assert 1 < found.theta[1] < 100


def test_too_few_steps_are_reported():
    law = labels(ONE_RATE)
    assert not law.fit(parameters(ONE_RATE), 1).converged


@pytest.mark.parametrize("flips", KINDS[1:])
def test_a_start_beyond_the_bound_stays_there(flips):
    law = labels(flips, eps_bar=0.01)
    found = law.fit(parameters(flips) * 0.0, 50)
    assert found.penalized == -np.inf
    assert not found.converged


@pytest.mark.parametrize("flips", KINDS)
def test_a_row_of_weight_two_is_the_row_twice(flips):
    law = labels(flips, counts=1.0 + np.arange(200) % 3)
    endog, exog, counts = arrays_of(law)
    rows = np.repeat(np.arange(200), counts.astype(int))
    twice = law_of(endog[rows], exog[rows], np.ones(len(rows)), flips)
    one, other = end(law), end(twice)
    assert_allclose(one.z, other.z, rtol=1e-6)
    assert_allclose(one.penalized, other.penalized)
    for mine, theirs in zip(one.influence()[:2], other.influence()[:2], strict=True):
        assert_allclose(mine[rows], theirs, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("flips", [NO_FLIPS, ONE_RATE, BY_CLASS])
def test_influence_functions_tell_how_a_fit_moves(flips):
    law = labels(flips, 1000)
    found = end(law)
    moves, share_moves, _ = found.influence()
    row, much = 3, 1e-3
    more = labels(flips, 1000, counts=np.ones(1000) + much * (np.arange(1000) == row))
    moved = end(more)
    change = (moved.theta - found.theta) / much
    assert_allclose(moves[row] / 1000, change, rtol=0.05, atol=0.02 * np.abs(change).max())
    if flips.n_rates:
        assert_allclose(share_moves[row] / 1000, (moved.eps - found.eps) / much, rtol=0.1)


@pytest.mark.parametrize("flips", KINDS[1:])
def test_probabilities_of_rows_have_the_mean_of_the_share(flips):
    law = labels(flips, 1000)
    found = end(law)
    bad = found.prob_bad()
    assert_allclose(bad.mean(), found.eps, atol=0.01)


def test_flipped_labels_at_the_ends_are_found():
    law = labels(Flips(BOTH_ENDS, 4.0), 1000)
    found = end(law)
    size = np.abs(arrays_of(law)[1] @ TRUTH)
    assert_allclose(np.flatnonzero(found.prob_bad() > 0.5).size, 50, atol=10)
    assert found.prob_bad()[np.argsort(-size)[:30]].min() > 0.9


@pytest.mark.parametrize("flips", [NO_FLIPS, BY_CLASS])
def test_rows_in_blocks_have_the_same_fit(flips):
    law = labels(flips)
    arrays = arrays_of(law)
    blocks = ArrayBlocks(list(zip(*(np.split(a, [20, 90]) for a in arrays), strict=True)))
    lazy = law_of(*leaf_arrays(blocks, ((), (3,), ())), flips)
    one, other = end(law), end(lazy)
    assert_allclose(other.z, one.z, rtol=1e-9)
    for mine, theirs in zip(other.influence()[:2], one.influence(), strict=False):
        assert_allclose(mine[:200], theirs, rtol=1e-6, atol=1e-12)
