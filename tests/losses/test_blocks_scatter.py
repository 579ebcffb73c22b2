"""Covariances and components of rows in blocks are those of the same rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats import RRMPCA, RRMCov
from rrmstats.core.block_array import leaf_arrays
from rrmstats.core.blocks import ArrayBlocks
from rrmstats.core.setting import Setting
from rrmstats.core.steps import take_steps
from rrmstats.losses.components import ComponentsProblem
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.losses.matrices import weighted_median

pytestmark = pytest.mark.usefixtures("as_many_rows")
TOL = 1e-8


def in_blocks(parts, *arrays):
    """Return arrays in blocks of very different sizes, one of them empty."""
    n = len(arrays[0])
    cuts = np.sort((n * np.random.default_rng(parts).random(parts - 1) ** 2).astype(int))
    if parts > 2:
        cuts[1] = cuts[0]
    pieces = zip(*(np.split(array, cuts) for array in arrays), strict=True)
    return leaf_arrays(ArrayBlocks(list(pieces)))


def cloud(n, d, share, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3 * rng.standard_normal(d)
    bad = int(share * n)
    x[:bad] = 10 + 0.5 * rng.standard_normal((bad, d))
    return rng.permutation(x)


def strip(n, d, q, share, seed):
    """Return rows near a subspace, some of them far off it."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, q)) * np.arange(3, 3 + q)
    x = scores @ np.linalg.qr(rng.standard_normal((d, q)))[0].T
    x += 0.5 * rng.standard_normal((n, d)) + rng.standard_normal(d)
    bad = int(share * n)
    x[:bad] = 10 * rng.standard_normal(d) + 0.5 * rng.standard_normal((bad, d))
    return rng.permutation(x)


def both(make, x, parts, eps_bar, steps, counts=None):
    """Return the estimates in memory and in blocks, and the passes of the second."""
    memory = take_steps(make(x), Setting(eps_bar=eps_bar, freq_weights=counts), None, steps)
    arrays = in_blocks(parts, x) if counts is None else in_blocks(parts, x, counts)
    weights = None if counts is None else arrays[1]
    blocks = take_steps(
        make(arrays[0]), Setting(eps_bar=eps_bar, freq_weights=weights), None, steps
    )
    return memory, blocks, arrays[0].blocks.passes


def assert_same(one, two):
    error = np.sqrt(np.diag(one.covariance()))
    assert_allclose(two.params, one.params, rtol=TOL, atol=TOL * error.max())
    assert_allclose(np.sqrt(np.diag(two.covariance())), error, rtol=TOL)
    assert_allclose(two.raw_params, one.raw_params, rtol=TOL, atol=TOL * error.max())
    assert_allclose(two.eps_hat, one.eps_hat, rtol=TOL, atol=1e-12)
    assert_allclose(two.eps_hat_se, one.eps_hat_se, rtol=TOL)
    for name in ("lambda_", "risk", "n_eff"):
        assert_allclose(getattr(two.solution, name), getattr(one.solution, name), rtol=TOL)
    assert two.solution.converged
    assert_allclose(two.solution.weights[:50], one.solution.weights[:50], rtol=1e-6, atol=1e-12)
    if one.explained is not None:
        assert two.explained.chosen.name == one.explained.chosen.name


@pytest.mark.parametrize(
    ("n", "d", "share", "eps_bar", "steps", "parts"),
    [
        (300, 3, 0.2, 0.3, 1, 40),
        (300, 3, 0.2, 0.3, 2, 7),
        (300, 7, 0.1, 0.2, 1, 7),
        (300, 7, 0.1, 0.2, 2, 1),
        (3000, 2, 0.0, 0.2, 1, 1),
        (3000, 2, 0.0, 0.2, 2, 40),
        (300, 2, 0.2, 0.0, 1, 7),
    ],
)
def test_covariances_are_those_in_memory(n, d, share, eps_bar, steps, parts):
    memory, blocks, _ = both(CovarianceProblem, cloud(n, d, share, n + d), parts, eps_bar, steps)
    assert_same(memory, blocks)
    for level in (0.9, 0.975):
        assert_allclose(blocks.cutoff(level), memory.cutoff(level), rtol=TOL)


@pytest.mark.parametrize("d", [4, 8])
def test_covariances_of_many_rows(d):
    """Eight variables descend by extrapolated moments."""
    memory, blocks, _ = both(CovarianceProblem, cloud(21_000, d, 0.2, d), 7, 0.3, 2)
    assert_same(memory, blocks)
    assert_same(memory.first, blocks.first)


def test_extrapolated_descents_end_where_newton_stays():
    """In memory too; with seven variables they are not Newton's."""
    problem = CovarianceProblem(cloud(300, 7, 0.1, 307))
    found = take_steps(problem, Setting(eps_bar=0.2)).solution
    assert "extrapolated" in [step.kind for step in found.trace]
    gradient, hessian, _ = problem.concentrated(
        found.theta[None], found.losses[None], found.weights[None], np.array([found.lambda_])
    )
    assert np.abs(np.linalg.solve(hessian[0], gradient[0])).max() < 2e-9


def test_frequency_weights_of_rows_in_blocks():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, 600).astype(float)
    x = cloud(600, 3, 0.2, 4)
    assert_same(*both(CovarianceProblem, x, 7, 0.3, 2, counts)[:2])
    x = strip(600, 3, 1, 0.2, 4)
    memory, blocks, _ = both(components(1, 3), x, 3, 0.3, 2, counts)
    assert_same(memory, blocks)


def components(q, d, demean=True):
    return lambda x: ComponentsProblem(x, q, demean, np.ones(d))


@pytest.mark.parametrize(
    ("n", "d", "q", "demean", "eps_bar", "steps", "parts"),
    [
        (3000, 4, 2, True, 0.3, 1, 40),
        (300, 4, 2, True, 0.2, 2, 1),
        (1000, 3, 1, True, 0.2, 2, 7),
        (300, 12, 2, True, 0.2, 1, 3),
        (400, 3, 1, False, 0.2, 2, 3),
        (300, 4, 1, True, 0.0, 1, 40),
    ],
)
def test_components_are_those_in_memory(n, d, q, demean, eps_bar, steps, parts):
    x = strip(n, d, q, 0.15, n + d)
    memory, blocks, _ = both(components(q, d, demean), x, parts, eps_bar, steps)
    assert_same(memory, blocks)
    assert_allclose(blocks.loadings, memory.loadings, atol=TOL)
    assert_allclose(blocks.mean, memory.mean, atol=TOL)
    assert_allclose(blocks.rest, memory.rest, rtol=TOL)
    errors = [
        np.sqrt(np.diag(each.covariance_of(each.loadings_influence())))
        for each in (memory, blocks)
    ]
    assert_allclose(errors[1], errors[0], rtol=TOL, atol=TOL * errors[0].max())


def test_components_of_many_rows():
    memory, blocks, _ = both(components(1, 3), strip(20_000, 3, 1, 0.2, 0), 2, 0.3, 2)
    assert_same(memory, blocks)
    assert_allclose(blocks.loadings, memory.loadings, atol=TOL)


def test_a_hyperplane_is_found_in_blocks():
    x = cloud(300, 3, 0.0, 1)
    x[:250, 2] = x[:250, 0] + 2 * x[:250, 1]
    memory, blocks, _ = both(CovarianceProblem, x, 7, 0.3, 1)
    assert_allclose(blocks.plane.normal, memory.plane.normal, atol=1e-9)
    assert blocks.plane.count == memory.plane.count == 250
    assert_allclose(blocks.eps_hat, memory.eps_hat)


@pytest.mark.parametrize("same", [180, 300])
def test_most_rows_or_all_are_the_same(same):
    x = np.r_[np.zeros(same), np.random.default_rng(0).standard_normal(300 - same)][:, None]
    memory, blocks, _ = both(CovarianceProblem, x, 3, 0.45, 1)
    assert blocks.solution.lambda_ == memory.solution.lambda_
    assert blocks.plane.count == memory.plane.count == same
    assert_allclose(blocks.eps_hat, memory.eps_hat)


def test_starts_in_units_of_the_data():
    x = cloud(300, 3, 0.2, 1)
    (rows,) = in_blocks(7, x)
    params = np.r_[x.mean(axis=0), np.cov(x.T)[np.triu_indices(3)]]
    found = [
        CovarianceProblem(data).from_params(params, 0.3, np.broadcast_to(1.0, 300))
        for data in (x, rows)
    ]
    assert_allclose(found[1], found[0], rtol=1e-10)


def test_data_that_blocks_cannot_serve():
    (wide,) = in_blocks(2, np.random.default_rng(0).standard_normal((5, 9)))
    with pytest.raises(ValueError, match="more rows than columns"):
        ComponentsProblem(wide, 1, True, np.ones(9))
    x = cloud(300, 3, 0.0, 1)
    x[[17, 40]] = 1e80
    with pytest.raises(ValueError, match="2 rows, the first of them row 17"):
        CovarianceProblem(in_blocks(7, x)[0])


@pytest.mark.parametrize("n", [301, 50_000])
@pytest.mark.parametrize("counts", [False, True])
def test_medians_of_blocks_are_exact(n, counts):
    rng = np.random.default_rng(n)
    x = np.c_[rng.standard_cauchy(n), rng.integers(0, 3, n), 1e50 * rng.standard_normal(n) ** 9]
    weights = rng.integers(0, 3, n).astype(float) if counts else np.ones(n)
    rows, mass = in_blocks(7, x, weights)
    assert_array_equal(weighted_median(rows, mass), weighted_median(x, weights))
    assert weighted_median(rows[:, 0], mass) == weighted_median(x[:, 0], weights)


def some(values):
    """Return values at rows, whether they lie in blocks or in memory."""
    return values[np.arange(0, len(values), 3)]


@pytest.mark.parametrize("eps_bar", [0.0, 0.2])
@pytest.mark.parametrize("model", [RRMCov, RRMPCA])
def test_distances_and_flags_of_rows_in_blocks(model, eps_bar):
    """Results compute them from the data of the model."""
    x = strip(300, 4, 2, 0.1, 5)
    options = {} if model is RRMCov else {"n_components": 2, "standardize": True}
    res = model(x, eps_bar=eps_bar, **options).fit()._results
    distances, flags = some(res._distances()), some(res._flags(0.9))
    (res.model.endog,) = in_blocks(7, x)
    assert_allclose(some(res._distances()), distances, rtol=1e-12)
    assert_array_equal(some(res._flags(0.9)), flags)
    assert flags.any()
    assert not flags.all()
    if model is RRMPCA:
        assert_allclose(res.model.column_unit(), res.column_unit, rtol=1e-14)
