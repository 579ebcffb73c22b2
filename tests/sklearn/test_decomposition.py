"""Principal components have the interface of scikit-learn's PCA."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from rrmstats.sklearn import RRMDecomposition


@pytest.fixture(scope="module")
def clean():
    return np.random.default_rng(3).standard_normal((80, 5)) @ np.diag([5.0, 4.0, 2.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def dirty(clean):
    x = clean.copy()
    x[:8] += [0.0, 0.0, 0.0, 30.0, 0.0]
    return x


@pytest.mark.parametrize("n_components", [1, 3, None])
@pytest.mark.parametrize("whiten", [False, True])
def test_without_contamination_it_is_the_classical_analysis(clean, n_components, whiten):
    n, d = clean.shape
    model = RRMDecomposition(n_components, eps_bar=0, whiten=whiten).fit(clean)
    q = model.n_components_
    classical = PCA(q).fit(clean)
    unit = (n - 1) / n
    for name, factor in {
        "explained_variance_": unit,
        "explained_variance_ratio_": 1,
        "noise_variance_": unit,
        "singular_values_": 1,
        "mean_": 1,
    }.items():
        expected = factor * getattr(classical, name)
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        model.get_covariance(), unit * classical.get_covariance(), rtol=1e-7, atol=1e-8
    )
    np.testing.assert_allclose(
        model.get_precision(), classical.get_precision() / unit, rtol=1e-7, atol=1e-8
    )
    # Of a covariance c times as large, squares are 1 / c times as large, and the density c^-d/2.
    constant = -0.5 * (d * np.log(2 * np.pi) + np.linalg.slogdet(classical.get_covariance())[1])
    squares = constant - classical.score_samples(clean)
    expected = constant - 0.5 * d * np.log(unit) - squares / unit
    np.testing.assert_allclose(model.score_samples(clean), expected, rtol=1e-7)
    np.testing.assert_allclose(model.score(clean), expected.mean(), rtol=1e-8)
    scores = PCA(q, whiten=whiten).fit(clean).transform(clean) / (unit**0.5 if whiten else 1)
    np.testing.assert_allclose(np.abs(model.transform(clean)), np.abs(scores), atol=1e-6)


def test_the_likelihood_is_that_of_the_covariance(dirty):
    model = RRMDecomposition(2, eps_bar=0.2).fit(dirty)
    law = multivariate_normal(model.mean_, model.get_covariance())
    np.testing.assert_allclose(model.score_samples(dirty), law.logpdf(dirty))
    np.testing.assert_allclose(
        model.get_precision(), np.linalg.inv(model.get_covariance()), atol=1e-12
    )
    assert np.trace(model.get_covariance()) == pytest.approx(
        model.explained_variance_.sum() / model.explained_variance_ratio_.sum()
    )


def test_bad_rows_change_neither_covariance_nor_singular_values(clean, dirty):
    good = PCA(2).fit(clean[8:])
    model = RRMDecomposition(2, eps_bar=0.2).fit(dirty)
    np.testing.assert_allclose(model.get_covariance(), good.get_covariance(), atol=3)
    np.testing.assert_allclose(model.singular_values_, good.singular_values_, rtol=0.1)
    assert PCA(2).fit(dirty).singular_values_[0] > 1.5 * good.singular_values_[0]
    assert model.score(dirty[8:]) > good.score(clean[8:]) - 0.1


def test_singular_values_count_rows(dirty):
    weights = np.arange(80) % 3
    model = RRMDecomposition(2, eps_bar=0.2).fit(dirty, sample_weight=weights)
    good = weights.sum() * (1 - model.eps_hat_)
    np.testing.assert_allclose(model.singular_values_**2, model.explained_variance_ * good)


def test_whitening(dirty):
    plain = RRMDecomposition(2, eps_bar=0.2).fit(dirty)
    model = RRMDecomposition(2, eps_bar=0.2, whiten=True).fit(dirty)
    scores = plain.transform(dirty)
    np.testing.assert_allclose(
        model.transform(dirty), scores / np.sqrt(plain.explained_variance_), rtol=1e-10
    )
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(dirty)), plain.inverse_transform(scores)
    )
    np.testing.assert_array_equal(model.get_covariance(), plain.get_covariance())
    np.testing.assert_allclose(model.transform(dirty)[8:].std(axis=0), 1, atol=0.25)


def test_whitening_where_good_rows_lie_on_a_line():
    rng = np.random.default_rng(0)
    x = np.outer(rng.standard_normal(40), [1.0, 2.0, 2.0])
    x[:4] += rng.standard_normal((4, 3))
    model = RRMDecomposition(2, eps_bar=0.2, whiten=True).fit(x)
    assert np.isfinite(model.transform(x)).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(x))[4:], x[4:], atol=1e-10)


def test_all_components_leave_one_dimension(clean):
    assert RRMDecomposition(None).fit(clean).n_components_ == 4
    flat = np.c_[clean[:, :3], clean[:, :1] - clean[:, 1:2], np.ones(80)]
    assert RRMDecomposition(None).fit(flat).n_components_ == 2
    wide = clean[:8].T  # five rows
    assert RRMDecomposition(None, eps_bar=0).fit(wide).n_components_ == 3
    assert RRMDecomposition(None, eps_bar=0).fit(np.repeat(wide, 3, axis=0)).n_components_ == 3
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        RRMDecomposition(None).fit(clean[:, :1])


def test_an_exact_fit_has_no_likelihood(clean):
    flat = np.c_[clean[:, :2], clean[:, 0] - clean[:, 1]]
    model = RRMDecomposition(2).fit(flat)
    assert model.noise_variance_ < 1e-25
    np.testing.assert_allclose(model.inverse_transform(model.transform(flat)), flat, atol=1e-10)
    exact = RRMDecomposition(2).fit(np.c_[clean[:, :2], np.zeros(80)])
    for use in (exact.get_precision, lambda: exact.score(flat)):
        with pytest.raises(ValueError, match=r"noise_variance_ is 0: .* use fewer components"):
            use()


def test_small_noise_is_not_lost(clean):
    x = clean[:, :3] * [1.0, 1.0, 1e-10]
    model = RRMDecomposition(2, eps_bar=0).fit(x)
    assert model.noise_variance_ == pytest.approx(x[:, 2].var(), rel=0.1)


@pytest.mark.parametrize("whiten", ["no", None, 1])
def test_whiten_is_true_or_false(clean, whiten):
    with pytest.raises(TypeError, match=r"whiten must be True or False, got"):
        RRMDecomposition(whiten=whiten).fit(clean)
