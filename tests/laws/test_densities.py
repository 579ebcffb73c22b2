"""Densities of residuals and distances: their mass is that of shares, and samples follow them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import chi, norm, t

from rrmstats.core.explanations import Bad, Good
from rrmstats.laws.densities import distance_densities, residual_densities
from rrmstats.laws.gaussian import HEAVY, PLAIN, SHORT, Kind, Rows, started

GRID = np.linspace(-60, 60, 6001)
DISTANCES = np.linspace(0, 80, 8001)


def line(n=40, seed=0):
    """Return rows of a regression, their slope 2 and their noise 1."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return Rows((2 * x + rng.standard_normal(n))[:, None], np.c_[np.ones(n), x], np.ones(n))


def of_line(kind, **changes):
    rows = line()
    mixture = started(rows, [(np.array([[0.0], [2.0]]), np.array([[4.0]]))], [kind], 0.4)
    return rows, replace(mixture, **changes)


def test_plain_noise_is_normal():
    rows, mixture = of_line(PLAIN)
    good, bad = residual_densities(rows, mixture, GRID)
    np.testing.assert_allclose(good, norm.pdf(GRID, scale=2))
    np.testing.assert_array_equal(bad, 0)


def test_heavy_tails_are_those_of_students_distribution():
    rows, mixture = of_line(HEAVY, df=np.array([3.0]))
    np.testing.assert_allclose(
        residual_densities(rows, mixture, GRID).good, t.pdf(GRID, 3, scale=2)
    )


def test_a_cluster_is_normal_around_its_shift():
    share = np.array([[[0.0, 0.0], [0.3, 0.3]]])
    center, size = np.array([[[0.0], [15.0]]]), np.array([[1.0, 2.25]])
    rows, mixture = of_line(Kind(Good.PLAIN, Bad.CLUSTER), share=share, center=center, size=size)
    good, bad = residual_densities(rows, mixture, GRID)
    np.testing.assert_allclose(good, 0.7 * norm.pdf(GRID, scale=2))
    np.testing.assert_allclose(bad, 0.3 * norm.pdf(GRID, 15, 3))


def test_another_line_has_a_density_at_each_row():
    share, shift = np.array([[[0.0, 0.0], [0.2, 0.2]]]), np.array([[[5.0], [1.0]]])
    rows, mixture = of_line(Kind(Good.PLAIN, Bad.OTHER_LINE), share=share, line=shift)
    bad = residual_densities(rows, mixture, GRID).bad
    expected = norm.pdf(GRID[:, None], 5 + rows.exog[:, 1], 2).mean(axis=1)
    np.testing.assert_allclose(bad, 0.2 * expected)


def test_short_tails_fit_uniform_noise():
    rng = np.random.default_rng(3)
    rows = Rows(rng.uniform(-3, 3, (4000, 1)), np.ones((4000, 1)), np.ones(4000))
    mixture = started(rows, [(np.zeros((1, 1)), np.array([[3.0]]))], [SHORT], 0.4)
    at = np.linspace(-5, 5, 401)
    good, bad = residual_densities(rows, mixture, at)
    np.testing.assert_allclose(trapezoid(good, at), 1, atol=1e-3)
    np.testing.assert_allclose(good[np.abs(at) < 2.5], 1 / 6, rtol=0.1)
    assert good[np.abs(at) > 3.5].max() < 0.02 and not bad.any()


def points(dim=3):
    return Rows(np.zeros((5, dim)), np.ones((5, 1)), np.ones(5))


def of_points(kind, **changes):
    rows = points()
    scatter = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 3.0]])
    mixture = started(rows, [(np.zeros((1, 3)), scatter)], [kind], 0.4)
    return rows, replace(mixture, **changes), scatter


def test_distances_of_good_points_follow_a_chi_distribution():
    rows, mixture, _ = of_points(PLAIN)
    good, bad = distance_densities(rows, mixture, DISTANCES)
    np.testing.assert_allclose(good, chi.pdf(DISTANCES, 3), atol=1e-12)
    np.testing.assert_array_equal(bad, 0)


@pytest.mark.parametrize("bad", [Bad.WIDE, Bad.CLUSTER, Bad.SCATTERED, Bad.TWO_CLUSTERS])
def test_samples_of_bad_points_follow_their_density(bad):
    first, second = np.array([6.0, 0.0, -4.0]), np.array([0.0, -9.0, 2.0])
    wide = bad in (Bad.WIDE, Bad.TWO_CLUSTERS)
    apart = bad is not Bad.WIDE
    share = np.array([[[0.1 * wide] * 2, [0.2 * apart] * 2]])
    center = np.array([[second, first]])
    center[0, 0] *= bad is Bad.TWO_CLUSTERS
    center[0, 1] *= bad is not Bad.SCATTERED
    size = np.array([[2.0, 2.0]])
    rows, mixture, scatter = of_points(
        Kind(Good.PLAIN, bad), share=share, center=center, size=size
    )
    good, density = distance_densities(rows, mixture, DISTANCES)
    total = float(share[0, :, 0].sum())
    np.testing.assert_allclose(trapezoid(good, DISTANCES), 1 - total, rtol=1e-4)
    rng, root = np.random.default_rng(7), np.linalg.cholesky(scatter)
    noise = rng.standard_normal((200_000, 3)) @ root.T * np.sqrt(2)
    if bad is Bad.WIDE:
        noise /= np.abs(rng.standard_normal((200_000, 1)))
    part = rng.random(200_000) < share[0, 0, 0] / total
    sample = noise + np.where(part[:, None], center[0, 0], center[0, 1])
    distance = np.sqrt(np.einsum("ni,ij,nj->n", sample, np.linalg.inv(scatter), sample))
    for limit in (1.0, 3.0, 6.0, 12.0, 30.0):
        below = DISTANCES <= limit
        found = trapezoid(density[below], DISTANCES[below]) / total
        assert found == pytest.approx((distance <= limit).mean(), abs=0.005)


def test_points_of_another_shape_have_that_of_all_rows():
    rows, mixture, scatter = of_points(
        Kind(Good.PLAIN, Bad.OTHER_SHAPE), share=np.full((1, 2, 2), [[0.0], [0.3]])
    )
    overall = scatter + 40 * np.outer([1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    rows = replace(rows, frame=rows.whole._replace(overall=overall))
    density = distance_densities(rows, mixture, DISTANCES).bad
    sample = np.random.default_rng(9).multivariate_normal(np.zeros(3), overall, 100_000)
    distance = np.sqrt(np.einsum("ni,ij,nj->n", sample, np.linalg.inv(scatter), sample))
    for limit in (3.0, 6.0, 12.0):
        below = DISTANCES <= limit
        found = trapezoid(density[below], DISTANCES[below]) / 0.3
        assert found == pytest.approx((distance <= limit).mean(), abs=0.08)
