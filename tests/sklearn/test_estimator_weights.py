"""A row of sample weight 2 is the row twice, and one of weight 0 is absent."""

import numpy as np
import pytest
from scipy.special import expit

from rrmstats.sklearn import (
    RRMClassifier,
    RRMCovariance,
    RRMDecomposition,
    RRMOutlierDetector,
    RRMRegressor,
)

MODELS = [
    RRMRegressor(0.15),
    RRMClassifier(0.1),
    RRMCovariance(0.15),
    RRMDecomposition(2, eps_bar=0.15),
    RRMOutlierDetector(),
    RRMOutlierDetector(0.1, eps_bar=0.15),
]
METHODS = ("predict", "predict_proba", "decision_function", "mahalanobis", "transform")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((90, 3)) * [3.0, 1.5, 0.5]
    x[:8] = rng.normal([0.0, 8.0, 8.0], size=(8, 3))
    return x, x @ [1.0, 1.0, -1.0] + rng.standard_normal(90), rng.integers(0, 4, 90)


@pytest.mark.filterwarnings("ignore:Another explanation is about as good")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_weights_count_rows(data, model):
    x, y, weights = data
    if isinstance(model, RRMClassifier):
        y = np.random.default_rng(6).random(90) < expit(y)
    again = np.repeat(np.arange(90), weights)
    model.fit(x[again], y[again])
    expected = {name: getattr(model, name)(x) for name in METHODS if hasattr(model, name)}
    eps_hat, total = model.eps_hat_, model.weights_.copy()
    model.fit(x, y, sample_weight=weights)
    assert expected
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(model, name)(x), values, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.eps_hat_, eps_hat, atol=1e-8)
    summed = np.bincount(again, total, minlength=90)
    np.testing.assert_allclose(model.weights_, summed, atol=1e-8)


def test_weights_count_rows_of_wide_data():
    """The data of `check_estimator`, which allows 1e-9: second steps end within tol ** 0.8."""
    rng = np.random.RandomState(42)
    x, weights = rng.rand(15, 30), rng.randint(0, 5, 15)
    model = RRMDecomposition(eps_bar=0.2, tol=1e-13)
    expected = model.fit(np.repeat(x, weights, axis=0)).transform(x)
    found = model.fit(x, sample_weight=weights).transform(x)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_scores_take_weights(data):
    x, y, weights = data
    again = np.repeat(np.arange(90), weights)
    model = RRMRegressor(0.15).fit(x, y)
    assert model.score(x, y, weights) == pytest.approx(model.score(x[again], y[again]))
    flags = np.where(np.arange(90) < 8, -1, 1)
    detector = RRMOutlierDetector().fit(x)
    assert detector.score(x, flags, weights) == pytest.approx(
        detector.score(x[again], flags[again])
    )
    cov = RRMCovariance(0.15).fit(x)
    assert cov.score(x, sample_weight=weights) == pytest.approx(cov.score(x[again]))
    pca = RRMDecomposition(eps_bar=0.15).fit(x)
    assert pca.score(x, sample_weight=weights) == pytest.approx(pca.score(x[again]))
