"""What happens to a fit when the data are moved, stretched or sorted otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from replication.samples import heavy_tailed_noise, leverage_shift, one_sided_outliers
from rrmstats import RRMOLS

# Forty rows and ten coefficients: the warning about few rows is right.
pytestmark = pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")

SAMPLES = {
    "contaminated": one_sided_outliers,
    "leverage": leverage_shift,
    "linreg": heavy_tailed_noise,
}
seeds = st.integers(0, 2**32 - 1)
samples = st.sampled_from(sorted(SAMPLES))


def draw(name, seed):
    rng = np.random.default_rng(seed)
    endog, exog = SAMPLES[name](rng)
    return rng, endog, exog, RRMOLS(endog, exog, 0.3).fit(steps=1)


def assert_same(found, expected, unit=1.0):
    """Two fits with the same weights; losses of the first are `unit` times the second's."""
    assert_allclose(found.weights, expected.weights, rtol=1e-7, atol=1e-10)
    assert_allclose(found.risk, unit * expected.risk, rtol=1e-8)
    assert_allclose(found.scale, unit * expected.scale, rtol=1e-8)
    assert_allclose(found.lambda_, unit * expected.lambda_, rtol=1e-8)
    assert_allclose(found.n_kish, expected.n_kish, rtol=1e-8)


def assert_close(found, expected):
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.slow
@given(name=samples, seed=seeds)
def test_regression(name, seed):
    rng, endog, exog, res = draw(name, seed)
    shift = rng.standard_normal(exog.shape[1])
    moved = RRMOLS(endog + exog @ shift, exog, 0.3).fit(steps=1)
    assert_same(moved, res)
    assert_close(moved.params, res.params + shift)


@pytest.mark.slow
@given(name=samples, seed=seeds, log_scale=st.floats(-6, 6), negative=st.booleans())
def test_scale(name, seed, log_scale, negative):
    _, endog, exog, res = draw(name, seed)
    unit = (-1 if negative else 1) * 10**log_scale
    stretched = RRMOLS(unit * endog, exog, 0.3).fit(steps=1)
    assert_same(stretched, res, unit**2)
    assert_close(stretched.params, unit * res.params)


@pytest.mark.slow
@given(name=samples, seed=seeds)
def test_affine(name, seed):
    rng, endog, exog, res = draw(name, seed)
    k = exog.shape[1]
    turn = np.linalg.qr(rng.standard_normal((k, k)))[0] * 10 ** rng.uniform(-1, 1, k)
    turned = RRMOLS(endog, exog @ turn, 0.3).fit(steps=1)
    assert_same(turned, res)
    assert_close(turn @ turned.params, res.params)


@pytest.mark.slow
@given(name=samples, seed=seeds)
def test_permutation(name, seed):
    rng, endog, exog, res = draw(name, seed)
    order = rng.permutation(len(endog))
    sorted_ = RRMOLS(endog[order], exog[order], 0.3).fit(steps=1)
    assert_close(sorted_.params, res.params)
    assert_allclose(sorted_.weights, res.weights[order], rtol=1e-7, atol=1e-10)
    assert_allclose(sorted_.risk, res.risk, rtol=1e-9)


@pytest.mark.slow
@given(name=samples, seed=seeds)
def test_a_row_of_weight_two_is_the_row_twice(name, seed):
    rng, endog, exog, _ = draw(name, seed)
    counts = rng.integers(1, 4, len(endog))
    weighted = RRMOLS(endog, exog, 0.3, freq_weights=counts).fit(n_starts=0, steps=1)
    repeated = RRMOLS(np.repeat(endog, counts), np.repeat(exog, counts, axis=0), 0.3).fit(
        n_starts=0, steps=1
    )
    assert_close(weighted.params, repeated.params)
    for name in ("n_eff", "n_kish", "scale", "risk", "lambda_", "entropy"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)
    assert_allclose(np.repeat(weighted.weights / counts, counts), repeated.weights, atol=1e-10)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("what", ["endog", "column", "exog", "both"])
def test_extreme_units(unit, what):
    _, endog, exog, res = draw("contaminated", 0)
    k = exog.shape[1]
    y_unit = unit if what in ("endog", "both") else 1.0
    x_unit = {"endog": np.ones(k), "column": np.r_[1, unit, np.ones(k - 2)]}.get(
        what, np.full(k, unit)
    )
    moved = RRMOLS(y_unit * endog, exog * x_unit, 0.3).fit(steps=1)
    assert_close(moved.params * x_unit / y_unit, res.params)
    assert_allclose(moved.weights, res.weights, rtol=1e-7, atol=1e-10)
    assert_allclose(np.sqrt(moved.scale) / y_unit, np.sqrt(res.scale), rtol=1e-7)
    assert_allclose(np.sqrt(moved.lambda_) / y_unit, np.sqrt(res.lambda_), rtol=1e-7)
    assert_allclose(moved.fittedvalues / y_unit, res.fittedvalues, rtol=1e-7)
