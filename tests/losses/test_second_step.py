"""Second steps of the losses: exact fits, no contamination, and a group of outliers."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from replication.samples import (
    one_sided_outliers,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, datasets


def exact_data():
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal(40))
    endog = exog @ [1.0, 2.0]
    endog[:8] += 9
    return endog, exog


@pytest.mark.parametrize("steps", [1, 2])
def test_exact_fits_are_finite_and_quiet(steps):
    endog, exog = exact_data()
    points = np.c_[exog[:, 1], endog]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ols = RRMOLS(endog, exog, 0.3).fit(steps=steps)
        pca = RRMPCA(points, 1, 0.3).fit(steps=steps)
        cov = RRMCov(points, 0.3).fit(steps=steps)
        texts = [str(res.summary()) for res in (ols, pca, cov)]
        boot = RRMOLS(endog, exog, 0.3).fit(
            steps=steps, cov_type="bootstrap", cov_kwds={"n_boot": 20}
        )
    assert_allclose(ols.params, [1, 2], rtol=1e-12)
    assert_array_equal(np.flatnonzero(ols.outliers()), range(8))
    assert_array_equal(ols.resid_pearson, np.where(np.arange(40) < 8, np.inf, 0.0))
    assert_array_equal(ols.bse, 0)
    assert_allclose(ols.conf_int(), [[1, 1], [2, 2]], rtol=1e-12)
    assert_array_equal(ols.pvalues, 0)
    assert_allclose(boot.params, [1, 2], rtol=1e-12)
    assert np.isfinite(pca.bse).all()
    assert_allclose(np.abs(pca.loadings.ravel()), np.array([1, 2]) / np.sqrt(5), rtol=1e-7)
    assert cov.singular
    with pytest.raises(ValueError, match="singular, so it has no standard errors"):
        _ = cov.bse
    for text in texts:
        assert "nan" not in text


def test_where_no_row_can_be_corrupted_both_steps_are_least_squares():
    endog, exog = one_sided_outliers(np.random.default_rng(0), 200, share=0.05, shift=8.0)
    res = RRMOLS(endog, exog, 0.0).fit()
    expected = sm.OLS(endog, exog).fit()
    assert_allclose(res.params, expected.params, rtol=1e-9)
    assert_allclose(res.scale, expected.scale, rtol=1e-9)
    assert_allclose(res.weights, 1 / 200)
    assert (res.eps_hat, res.eps_hat_se, res.explanation) == (0, 0, "none")


def test_a_group_of_stars_does_not_turn_the_second_step():
    """Four giants draw weights that fall slowly to the line of least squares, slope -0.41."""
    stars = datasets.stars_cyg.load_pandas().data
    model = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.3)
    assert 2 < model.fit().params["log_te"] < 3.2


def measurements():
    """Return the nine measurements of breast cancer: integers, and a quarter of the rows equal."""
    return np.asarray(datasets.breast_cancer.load_pandas().data.iloc[:, :9].dropna())


def on_a_plane(share, d=10, n=300):
    """Return rows around a plane of two dimensions, some of which lie on it."""
    x = np.random.default_rng(1).standard_normal((n, d)) * np.r_[3.0, 3.0, np.ones(d - 2)]
    x[: int(share * n), 2:] = 0.0
    return x


def with_equal_rows(seed):
    x = np.random.default_rng(seed).standard_normal((400, 4))
    x[:120] = 0.0
    return x


TIES = {
    "breast cancer": RRMPCA(measurements(), 2, 0.4),
    "breast cancer, eps_bar = 0.1": RRMPCA(measurements(), 2, 0.1),
    "breast cancer, jittered": RRMPCA(
        measurements() + 1e-3 * np.random.default_rng(0).standard_normal((683, 9)), 2, 0.4
    ),
    "rows on the plane": RRMPCA(on_a_plane(0.3), 2, 0.2),
    "counts, covariance": RRMCov(np.random.default_rng(2).poisson(0.3, (400, 4)), 0.2),
    "equal rows, components": RRMPCA(with_equal_rows(0), 2, 0.2),
    "equal rows, covariance": RRMCov(with_equal_rows(0), 0.2),
    "equal rows, negative variances": RRMCov(with_equal_rows(7), 0.4),
}


@pytest.mark.parametrize("model", TIES.values(), ids=list(TIES))
def test_a_second_step_does_not_follow_a_minority(model):
    """A minority on a plane or in a point has a likelihood without bound."""
    res = model.fit(stability=False)
    n = len(res.weights)
    assert np.sum(1 - res.prob_bad) > 0.75 * (1 - model.eps_bar) * n
    assert res.eps_hat <= model.eps_bar
    if isinstance(model, RRMCov):
        typical = np.median(np.abs(model.endog - np.median(model.endog, axis=0)), axis=0)
        assert np.linalg.eigvalsh(res.cov)[0] > 1e-3 * typical.max() ** 2
    else:
        assert res.unexplained_variance > 0.05 * res.first_step.unexplained_variance


@pytest.mark.parametrize("share", [0.2, 0.3])
@pytest.mark.parametrize("eps_bar", [0.2, 0.4])
def test_a_second_regression_does_not_follow_a_minority(share, eps_bar):
    """Its weights leave out no more rows than those of clean data with so many bad ones, 0.9."""
    rng = np.random.default_rng(2)
    exog = sm.add_constant(rng.standard_normal((400, 2)))
    noise = rng.standard_normal(400) * (np.arange(400) >= share * 400)
    res = RRMOLS(exog @ [1.0, 2.0, 3.0] + noise, exog, eps_bar).fit()
    assert res.n_eff > 0.85 * (1 - eps_bar) * 400


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("columns", [4, 6])
def test_errors_are_unknown_without_degrees_of_freedom(columns, steps):
    rng = np.random.default_rng(1)
    exog = sm.add_constant(rng.standard_normal((4, columns - 1)) * 1e3)
    res = RRMOLS(np.round(exog.sum(axis=1)), exog).fit(steps=steps)
    assert np.isnan([*res.bse, *res.tvalues, res.scale]).all()
    assert "no more observations than parameters" in str(res.summary())


@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
@pytest.mark.parametrize(("n", "columns"), [(4, 3), (7, 6), (10, 9)])
def test_good_rows_outnumber_the_parameters(n, columns):
    """One bad row would leave an exact fit, with t values of 1e14."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        exog = np.c_[np.ones(n), rng.standard_normal((n, columns - 1))]
        endog = exog.sum(axis=1) + rng.standard_normal(n)
        res = RRMOLS(endog, exog).fit(stability=False)
        assert np.abs(res.tvalues).max() < 1e3
        assert n - res.prob_bad.sum() >= columns + 0.99
