"""Covariances and components when a share of up to eps_bar of the rows is bad."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from replication.samples import correlated_points
from rrmstats import RRMPCA, RRMCov

MODELS = {
    "cov": RRMCov,
    "pca": lambda data, eps_bar, **kwargs: RRMPCA(data, 2, eps_bar, **kwargs),
}
OPTIONS = {
    "pca": [{}, {"demean": False}, {"standardize": True}],
    "cov": [{}],
}


def cloud(n=90, share=0.1, seed=1):
    x = np.random.default_rng(seed).standard_normal((n, 4)) * [3, 2, 0.5, 0.5]
    x[: int(share * n)] += 12
    return x


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_the_contamination_is_estimated(name, share):
    """In both steps, and one row in 400 is a fifth of a standard error.

    A second step that finds no bad rows explains all rows without them: a share of zero that is
    no estimate, and has no error.
    """
    x = cloud(400, share)
    res = MODELS[name](x, 0.4).fit()
    for step in (res, res.first_step):
        assert abs(step.eps_hat - share) < 4 * step.eps_hat_se + 1 / 400
        if share == 0 and step is res:
            assert (step.eps_hat, step.eps_hat_se) == (0.0, 0.0)
        else:
            # That of a first step counts the error of the size of the scatter too.
            assert 0.002 < step.eps_hat_se < (0.04 if step is res else 0.06)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [1, 2])
def test_rows_count_as_often_as_they_say(name, steps):
    """Rows of frequency zero do not count, wherever they are."""
    counts = np.random.default_rng(0).integers(0, 4, 90)
    x = cloud()
    x[counts == 0] = np.random.default_rng(1).uniform(-1e3, 1e3, ((counts == 0).sum(), 4))
    for options in OPTIONS[name]:
        weighted = MODELS[name](x, 0.3, freq_weights=counts, **options).fit(steps=steps)
        repeated = MODELS[name](np.repeat(x, counts, axis=0), 0.3, **options).fit(steps=steps)
        for value in ("params", "bse", "eps_hat", "eps_hat_se", "n_eff", "lambda_"):
            found, expected = getattr(weighted, value), getattr(repeated, value)
            assert_allclose(found, expected, rtol=1e-6, err_msg=value)
        flags = np.asarray(weighted.outliers())
        assert_array_equal(np.repeat(flags, counts), repeated.outliers())
        if name == "pca":
            assert_allclose(weighted.loadings_bse, repeated.loadings_bse, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_no_contamination_leaves_nothing_to_explain(name):
    res = MODELS[name](cloud(), 0.0).fit(stability=False)
    first = res.first_step
    assert_array_equal(res.params, first.params)
    assert_array_equal(res.weights, first.weights)
    assert_allclose(res.bse, first.bse)
    assert (res.eps_hat, res.eps_hat_se) == (0.0, 0.0)


@pytest.mark.parametrize("steps", [1, 2])
def test_exact_fits_tell_what_they_can(steps):
    rng = np.random.default_rng(0)
    line = np.outer(rng.standard_normal(60), [1.0, 2.0, -1.0])
    line[:15] = 5 + rng.standard_normal((15, 3))
    res = RRMPCA(line, 1, 0.4).fit(steps=steps)
    assert_allclose(res.eps_hat, 0.25)
    plane = rng.standard_normal((60, 3))
    plane[12:, 2] = plane[12:, 0] - plane[12:, 1]
    res = RRMCov(plane, 0.4).fit(steps=steps)
    assert res.singular
    assert_allclose(res.eps_hat, 0.2)
    plane[:, 2] = 1.0
    share = RRMCov(plane, 0.4).fit(steps=steps).eps_hat
    # one step cannot tell; two go by the other variables, in which all rows are good
    assert np.isnan(share) if steps == 1 else share == 0


def octane(rng):
    """Return spectra of 39 samples at 226 wavelengths, six of which have a bump."""
    t = np.linspace(0, 1, 226)
    axes = np.array([np.sin(2 * np.pi * t), np.cos(3 * np.pi * t)])
    x = rng.standard_normal((39, 2)) * [3, 1.5] @ axes
    x += 0.006 * rng.standard_normal((39, 226)).cumsum(axis=1)
    x += 0.02 * rng.standard_normal((39, 226))
    x[-6:] += 8 * np.exp(-(((t - 0.8) / 0.08) ** 2))
    return x


@pytest.mark.parametrize(
    ("shape", "q", "eps_bar"),
    [
        *(((40, 200), q, eps_bar) for q in (2, 10) for eps_bar in (0.1, 0.4)),
        *(((40, 60), q, 0.25) for q in (2, 3, 10)),
    ],
)
def test_wide_noise(shape, q, eps_bar):
    """The noise has variance one; ten components of 40 rows are known worse than that."""
    x = np.random.default_rng([q, 4]).standard_normal(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "eps_bar=.* rows per parameter")
        res = RRMPCA(x, q, eps_bar).fit()
        str(res.summary())
    assert res.converged
    assert 0.6 < res._estimate.rest / (shape[1] - q) < 1.15
    assert res.eigenvals[-1] > (0.25 if q == 10 else 0.5)
    assert np.isfinite(res.bse).all()
    assert np.isfinite(res.loadings_bse).all()


@pytest.mark.parametrize("eps_bar", [0.25, 0.4])
def test_wide_spectra(eps_bar):
    x = octane(np.random.default_rng(0))
    res = RRMPCA(x, 2, eps_bar).fit()
    assert res.outliers()[-6:].all()
    clean = np.linalg.svd(x[:-6] - x[:-6].mean(axis=0), compute_uv=False)[:2] ** 2 / 32
    assert_allclose(res.eigenvals, clean, rtol=0.35)


@pytest.mark.parametrize("name", MODELS)
def test_bootstrap_samples_climb_as_well(name):
    model = MODELS[name](cloud(120), 0.2)
    boot = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 15})
    assert_allclose(np.log(boot.bse / model.fit().bse), 0, atol=0.8)


def test_large_samples_lose_little_to_bad_rows():
    """10 % shifted by 5 in each of ten variables; the clean rows alone set the bound."""
    x = np.random.default_rng(2).standard_normal((20_000, 10))
    x[:2000] += 5
    res = RRMCov(x, 0.3).fit()

    def error(cov):
        return np.linalg.norm(cov - np.eye(10)) / np.sqrt(10)

    assert error(res.cov) < 1.15 * error(np.cov(x[2000:].T))
    assert_allclose(res.eps_hat, 0.1, atol=4 * res.eps_hat_se)
    assert_allclose(res.first_step.eps_hat, 0.1, atol=0.01)


@pytest.mark.slow
def test_heavy_tails_in_two_steps():
    """CovMMest of rrcov has 0.22 in the mean over nine sets of 100 samples, this 0.22 as well."""
    truth = np.array([[1, 0.8], [0.8, 1]])
    errors = []
    for seed in range(60):
        data = correlated_points(np.random.default_rng([7, seed]))
        cov = RRMCov(data, 0.2).fit().cov
        errors.append(np.linalg.norm(cov - truth) / np.linalg.norm(truth))
    assert np.mean(errors) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "eps_bar", "share"), [(60, 0.1, 0.0), (60, 0.4, 0.1), (200, 0.2, 0.1)]
)
def test_intervals_cover(n, eps_bar, share):
    """Nine parameters of 40 samples in each step: 0.95 is known to about 0.02."""
    truth = np.array([[2, 0.9, 0.3], [0.9, 1.5, -0.2], [0.3, -0.2, 1.0]])
    params = np.r_[0, 0, 0, truth[np.triu_indices(3)]]
    found = []
    for seed in range(40):
        rng = np.random.default_rng([11, n, seed])
        x = rng.standard_normal((n, 3)) @ np.linalg.cholesky(truth).T
        x[: int(share * n)] += 10
        res = RRMCov(x, eps_bar).fit()
        intervals = [np.asarray(step.conf_int()) for step in (res.first_step, res)]
        found.append([((c[:, 0] <= params) & (params <= c[:, 1])).mean() for c in intervals])
    for coverage in np.mean(found, axis=0):
        assert 0.9 <= coverage <= 0.99
