import numpy as np
from scipy.spatial.distance import mahalanobis
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from rrmstats.plotting.arrays import (
    classical_moments,
    classical_variances,
    distances_from,
    ellipse,
    normal_quantiles,
    reliability,
    wilson_interval,
)


def test_frequency_weights_repeat_rows():
    rng = np.random.default_rng(0)
    data, count = rng.standard_normal((20, 3)), rng.integers(1, 4, 20)
    rows = np.repeat(data, count, axis=0)
    mean, cov = classical_moments(data, count.astype(float))
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(cov, np.cov(rows, rowvar=False))


def test_variances_around_the_origin_include_the_mean():
    data = np.random.default_rng(0).normal([10.0, 0.0], 1.0, (5000, 2))
    np.testing.assert_allclose(classical_variances(data, False, None), [101, 1], rtol=0.05)
    np.testing.assert_allclose(classical_variances(data, True, None), [1, 1], rtol=0.1)


def test_distances_are_those_of_scipy_whatever_the_units():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 3))
    mean, cov = data.mean(axis=0), np.cov(data, rowvar=False)
    own = [mahalanobis(row, mean, np.linalg.inv(cov)) for row in data]
    for unit in (1.0, np.array([1e-9, 1.0, 1e9])):
        found = distances_from(mean * unit, cov * np.outer(unit, unit), data * unit)
        np.testing.assert_allclose(found, own)


def test_the_ellipse_lies_at_its_distance_and_surrounds_the_mean():
    mean, cov = np.array([1.0, -2.0]), np.array([[4.0, 1.5], [1.5, 1.0]])
    points = ellipse(mean, cov, 2.5)
    np.testing.assert_allclose(distances_from(mean, cov, points), 2.5)
    np.testing.assert_allclose(points[:-1].mean(axis=0), mean)


def test_quantiles_follow_the_ranks():
    found = normal_quantiles(np.array([3.0, -1.0, 7.0, 0.5]))
    np.testing.assert_allclose(found, norm.ppf([0.625, 0.125, 0.875, 0.375]))


def test_reliability_by_hand():
    probability = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.8])
    mean, share, count = reliability(probability, np.array([0, 0, 1, 0, 1, 1.0]), 3)
    np.testing.assert_allclose(mean, [0.1, 0.85])
    np.testing.assert_allclose(share, [0.25, 1.0])
    assert count.tolist() == [4, 2]
    low, high = wilson_interval(share, count)
    expected = proportion_confint([1, 2], [4, 2], method="wilson")
    np.testing.assert_allclose([low, high], expected)
