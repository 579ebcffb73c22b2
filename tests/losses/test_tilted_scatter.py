"""What lambda knows of a scatter: its size and the share of bad rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import minimize
from rrmstats.core.consistency import second_moment_ratio
from rrmstats.losses import ScatterProblem
from rrmstats.losses.covariance import untilted


def first_step(share, n=40_000, d=3, eps_bar=0.3):
    x = np.random.default_rng(1).standard_normal((n, d))
    x[: int(share * n)] += 50
    problem = ScatterProblem(x)
    found = minimize(problem, eps_bar, n_starts=20)
    return problem, found, problem.tilt(found.lambda_, eps_bar)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
def test_size_and_share_whatever_the_bad_rows(share):
    problem, found, tilt = first_step(share)
    scatter = tilt.variances[0] * problem.split(found.theta)[1]
    assert_allclose(scatter, np.eye(3), atol=0.06)
    square, n = problem.distances(found.theta), problem.n_obs
    bad, error = tilt.share(square, np.full(n, 1 / n), n, sized=True)
    assert_allclose(bad, share, atol=5 * error + 1e-3)
    # Which rows are bad counts as random too.
    assert error >= np.sqrt(share * (1 - share) / n)
    assert error < 0.01


def test_order_is_at_most_that_of_clean_rows():
    clean, seen = 1 / second_moment_ratio(0.3, 3), np.ones(3)
    for lambda_ in (1.5, 2.1):
        assert_allclose(untilted(seen, lambda_, 0.3).variances, clean, rtol=1e-9)
    assert_allclose(untilted(seen, 8.0, 0.3).variances, 8 / 6)


@pytest.mark.parametrize("truth", [[2.0, 2.0], [9.0, 1.0, 0.1]])
def test_variances_off_a_plane(truth):
    truth, lambda_ = np.array(truth), 40.0
    seen = 1 / (1 / truth + 2 / lambda_)
    assert_allclose(untilted(seen, lambda_, 0.9).variances, truth)
    # With one variance, clean rows are those of the dimension.
    same = untilted(np.ones(4), 1e-9, 0.2).variances
    assert_allclose(same, 1 / second_moment_ratio(0.2, 4), rtol=1e-6)
