"""Linear regression on rows in blocks is that on the same rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core.block_array import leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.losses.regression import RegressionProblem

# Agreement asked for between data in memory and in partitions.
pytestmark = pytest.mark.usefixtures("as_many_rows")
RTOL = 1e-8


def sample(n, k=4, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    exog = np.column_stack([np.ones(n), rng.standard_normal((n, k - 1))])
    endog = exog @ np.arange(1.0, k + 1) + rng.standard_normal(n)
    bad = rng.random(n) < share
    exog[bad, 1] += 5
    endog[bad] = -20 + rng.standard_normal(bad.sum())
    return endog, exog


def in_parts(count, *arrays):
    """Return arrays in blocks of very different sizes, one of them empty."""
    n = len(arrays[0])
    cuts = np.sort(np.random.default_rng(count).integers(0, n, count - 1))
    cuts = np.sort(np.r_[cuts, cuts[:1]]) if count > 1 else cuts
    parts = zip(*(np.split(array, cuts) for array in arrays), strict=True)
    return leaf_arrays(ArrayBlocks(list(parts)))


def assert_same(found, expected):
    for name in ("params", "raw_params", "scale", "eps_hat", "eps_hat_se"):
        assert_allclose(getattr(found, name), getattr(expected, name), RTOL, err_msg=name)
    for name in ("lambda_", "risk", "n_eff"):
        value = getattr(found.solution, name)
        assert_allclose(value, getattr(expected.solution, name), RTOL, err_msg=name)
    errors = np.sqrt(np.diag(found.covariance()))
    assert_allclose(errors, np.sqrt(np.diag(expected.covariance())), RTOL, err_msg="bse")


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize(("n", "share", "eps_bar"), [(300, 0.2, 0.3), (3000, 0.0, 0.2)])
def test_estimates_agree(n, share, eps_bar, count, steps):
    endog, exog = sample(n, share=share)
    setting = Setting(eps_bar=eps_bar)
    expected = take_steps(RegressionProblem(endog, exog), setting, None, steps)
    blocks = RegressionProblem(*in_parts(count, endog, exog))
    assert_same(take_steps(blocks, setting, None, steps), expected)


def test_large_data_agree_in_few_passes():
    endog, exog = sample(30_000)
    expected = take_steps(RegressionProblem(endog, exog), Setting(eps_bar=0.3))
    by, bx = in_parts(7, endog, exog)
    found = take_steps(RegressionProblem(by, bx), Setting(eps_bar=0.3))
    assert_same(found, expected)
    assert by.blocks.passes < 40


@pytest.mark.parametrize("eps_bar", [0.0, 0.3])
def test_frequency_weights_agree(eps_bar):
    endog, exog = sample(600)
    counts = np.random.default_rng(5).integers(1, 4, 600).astype(float)
    expected = take_steps(
        RegressionProblem(endog, exog), Setting(eps_bar=eps_bar, freq_weights=counts), None, 0.95
    )
    by, bx, bw = in_parts(7, endog, exog, counts)
    assert_same(
        take_steps(
            RegressionProblem(by, bx), Setting(eps_bar=eps_bar, freq_weights=bw), None, 0.95
        ),
        expected,
    )


def test_collinear_and_badly_scaled_columns_agree():
    endog, exog = sample(500)
    exog = np.column_stack([exog, exog[:, 1] + exog[:, 2], 1e9 * exog[:, 3] ** 2])
    expected = take_steps(RegressionProblem(endog, exog), Setting(eps_bar=0.3))
    found = take_steps(RegressionProblem(*in_parts(5, endog, exog)), Setting(eps_bar=0.3))
    fitted = exog @ found.params
    assert_allclose(fitted, exog @ expected.params, rtol=1e-7)
    assert_allclose(found.scale, expected.scale, RTOL)


def test_rare_dummies_are_among_the_rows_compared():
    endog, exog = sample(12_000, share=0.1)
    rare = np.zeros(12_000)
    rare[[17, 11_000, 11_900]] = 1
    exog = np.column_stack([exog, rare])
    expected = take_steps(RegressionProblem(endog, exog), Setting(eps_bar=0.2))
    found = take_steps(RegressionProblem(*in_parts(4, endog, exog)), Setting(eps_bar=0.2))
    assert_allclose(found.params, expected.params, RTOL)


def test_exact_fits_agree():
    rng = np.random.default_rng(2)
    exog = np.column_stack([np.ones(200), rng.standard_normal(200)])
    endog = exog @ np.array([1.0, 2.0])
    endog[:30] += 10
    found = take_steps(RegressionProblem(*in_parts(3, endog, exog)), Setting(eps_bar=0.25))
    assert_allclose(found.params, [1, 2], rtol=1e-12)
    assert found.solution.lambda_ == 0 and found.scale == 0
    assert found.solution.weights[np.arange(30)].sum() == 0


def test_algorithm_1_and_a_single_start_agree():
    endog, exog = sample(400)
    for accelerate in (True, False):
        setting = Setting(eps_bar=0.3, n_starts=0, accelerate=accelerate)
        expected = take_steps(RegressionProblem(endog, exog), setting)
        found = take_steps(RegressionProblem(*in_parts(3, endog, exog)), setting)
        assert_allclose(found.params, expected.params, rtol=1e-3)
        assert_allclose(found.solution.risk, expected.solution.risk, rtol=1e-6)
