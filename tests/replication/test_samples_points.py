import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from replication import samples


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_shifted_cluster(rng):
    cov = 0.5 + 0.5 * np.eye(3)
    data = samples.shifted_cluster(rng, 20_000, cov, 0.2, shift=[0, 0, 9], center=[1, 2, 3])
    bad, good = data[:4000], data[4000:]
    assert_allclose(good.mean(axis=0), [1, 2, 3], atol=0.05)
    assert_allclose(bad.mean(axis=0), [1, 2, 12], atol=0.1)
    assert_allclose(np.cov(good.T), cov, atol=0.05)


def test_other_subspace(rng):
    data = samples.other_subspace(rng, 2000, d=6, q=2, share=0.25, spread=4.0, noise=0.2)
    assert_allclose(data[:500].std(axis=0), [0.2, 0.2, 4, 4, 0.2, 0.2], rtol=0.1)
    assert_allclose(data[500:].std(axis=0), [1, 1, 0.2, 0.2, 0.2, 0.2], rtol=0.1)


def test_other_subspace_needs_room(rng):
    with pytest.raises(ValueError, match="q=3 need d >= 6, got d=5"):
        samples.other_subspace(rng, d=5, q=3)


def test_student_points(rng):
    data = samples.student_points(rng, 50_000, d=3, df=2.5)
    quartile = stats.t(2.5).ppf(0.75)
    assert_allclose(np.quantile(data, 0.75, axis=0), quartile, rtol=0.05)


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        ("vertical", [False, False, True]),
        ("good leverage", [True, False, False]),
        ("bad leverage", [False, True, True]),
        ("cluster", [True, True, True]),
    ],
)
def test_distant_points(rng, kind, far):
    data = samples.distant_points(rng, kind, 400, [3.0, 2.0, 1.0], 0.1, 1e3)
    assert (np.median(np.abs(data[:40]), axis=0) > 100).tolist() == far
    assert_allclose(data[40:].std(axis=0), [3, 2, 1], rtol=0.15)
