"""Cut-offs of distances: their limits, and false alarms on small clean samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, chi2

from rrmstats import RRMPCA, RRMCov
from rrmstats.core.consistency import second_moment_ratio
from rrmstats.losses.covariance import precision_order, scatter_cutoff, subspace_cutoff


@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("order", [1.0, 1.3])
def test_many_rows_have_the_chi_square_quantile(dim, order):
    assert_allclose(scatter_cutoff(0.975, dim, 1e7, order), chi2.ppf(0.975, dim), rtol=1e-4)
    found = subspace_cutoff(0.975, dim, 3, 1e7, order)
    assert_allclose(found, chi2.ppf(0.975, dim), rtol=1e-4)


@pytest.mark.parametrize(("dim", "n"), [(2, 50), (5, 100)])
def test_classical_distances_follow_a_beta_distribution(dim, n):
    """Distances from the classical estimates of the same rows are known exactly."""
    exact = (n - 1) ** 2 / n * beta.ppf(0.975, dim / 2, (n - dim - 1) / 2)
    assert_allclose(scatter_cutoff(0.975, dim, n), exact, rtol=0.04)


def test_contamination_tells_overfit_from_a_used_up_budget():
    most = 1 / second_moment_ratio(0.3, 3)
    assert_allclose(precision_order(1.05, 0.3, 0.0, 3), most)
    assert precision_order(1.05, 0.3, 0.3, 3) == 1.05
    assert 1.05 < precision_order(1.05, 0.3, 0.15, 3) < most
    assert precision_order(1.0, 0.0, 0.0, 3) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "eps_bar", "most"), [("cov", 0.4, 0.16), ("pca", 0.25, 0.05)])
def test_false_alarms_on_small_samples(name, eps_bar, most):
    """A share of 0.025 is promised; 30 samples of 50 rows know it to 0.005 or so.

    The first step of covariances has fewer than four rows per parameter and is too small.
    """
    alarms = []
    for seed in range(30):
        x = np.random.default_rng([3, seed]).standard_normal((50, 6))
        if name == "cov":
            model = RRMCov(x[:, 1:], eps_bar)
        else:
            model = RRMPCA(x * [4, 3, 1, 1, 1, 1], 2, eps_bar)
        res = model.fit(stability=False)
        alarms.append([step.outliers(0.975).mean() for step in (res.first_step, res)])
    one, two = np.mean(alarms, axis=0)
    assert 0.01 <= one <= most
    assert 0.01 <= two <= 0.05
