"""The samples of the figures are as the paper describes them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from replication import samples


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_wrong_end(rng):
    y, x = samples.wrong_end(rng, n=1000, n_bad=200)
    assert (np.diff(x[:, 1]) >= 0).all()
    assert np.std(y[:800] - x[:800].sum(axis=1)) == pytest.approx(0.5, rel=0.1)
    assert_allclose([y[800:].mean(), y[800:].std()], [-6, 1], atol=0.2)


def test_point_mass(rng):
    y, x = samples.point_mass(rng, 5.0, n=1000)
    assert_allclose(np.hypot(x[800:, 0], y[800:]), 5)
    assert_allclose(np.degrees(np.arctan2(y[800:], x[800:, 0])), -10)
    assert np.std(y[:800] - x[:800, 0]) == pytest.approx(0.25, rel=0.1)


def test_heavy_tailed_noise(rng):
    y, x = samples.heavy_tailed_noise(rng, share=0, n=4000)
    assert x.shape == (4000, 10)
    assert (x[:, 0] == 1).all()
    assert np.abs(x).max() <= 5
    assert np.std(y - x.sum(axis=1)) == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("rho", [0.99, 0.8])
def test_separated_strip(rng, rho):
    y, x = samples.separated_strip(rng, n=4000, rho=rho)
    assert ((x[:3800, 1:].sum(axis=1) >= 1) == y[:3800]).all()
    assert (y[3800:] == 0).all()
    assert_allclose(x[3800:, 1:].mean(axis=0), [0.5, 1.25], atol=0.03)
    assert np.corrcoef(x[:3800, 1:].T)[0, 1] == pytest.approx(-rho, abs=0.02)


def test_noisy_line(rng):
    z = samples.noisy_line(rng, n=4000, share=0)
    assert np.std(z[:, 1] - 2 * z[:, 0]) == pytest.approx(0.25, rel=0.05)


def test_correlated_points(rng):
    z = samples.correlated_points(rng, n=20000, share=0)
    assert_allclose(np.cov(z.T), samples.TRUE_COV, atol=0.05)


@pytest.mark.parametrize("draw", [samples.noisy_line, samples.correlated_points])
def test_points_with_heavy_tails_are_there(rng, draw):
    assert np.abs(draw(rng, n=4000)).max() > 20 > np.abs(draw(rng, n=4000, share=0)).max()
