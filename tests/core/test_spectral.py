import numpy as np
import pytest
from numpy.testing import assert_allclose

from replication.samples import (
    count_bad,
    gradient_attack,
    leverage_shift,
    other_subspace,
    shifted_cluster,
)
from rrmstats.core import minimize
from rrmstats.core.points import Budget
from rrmstats.core.spectral import PARTS, dropped, leading_projection, spectral_starts
from rrmstats.losses import SquaresProblem
from rrmstats.losses.components import SubspaceProblem
from rrmstats.losses.covariance import ScatterProblem


@pytest.mark.parametrize("columns", [5, 120])
def test_projections_are_on_the_leading_direction(columns):
    rng = np.random.default_rng(0)
    rows, weights = rng.standard_normal((400, columns)), rng.random(400)
    rows[:40, 0] += 10
    weights /= weights.sum()
    centered = rows - weights @ rows
    direction = np.linalg.svd(np.sqrt(weights)[:, None] * centered)[2][0]
    expected = np.abs(centered @ direction)
    assert_allclose(np.abs(leading_projection(rows, weights)), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("columns", [5, 120])
def test_rows_that_are_all_the_same_have_no_direction(columns):
    assert_allclose(leading_projection(np.ones((20, columns)), np.full(20, 0.05)), 0, atol=1e-14)


def test_rows_are_dropped_by_their_weight():
    kept = np.full(4, 0.25)
    assert dropped(kept, np.array([1.0, 4, 3, 2]), 0.5).tolist() == [0.25, 0, 0, 0.25]
    heavy = np.array([0.1, 0.6, 0.2, 0.1])
    assert dropped(heavy, np.array([1.0, 4, 3, 2]), 0.5).tolist() == [0.1, 0, 0.2, 0.1]
    once = dropped(kept, np.array([1.0, 4, 3, 2]), 0.25)
    assert dropped(once, np.array([1.0, 9, 3, 2]), 0.25).tolist() == [0.25, 0, 0, 0.25]


def attacked(kind, rng, d=30):
    """Return a problem in which hardly any subset is clean, and the share of its bad rows."""
    if kind == "shift":
        return SquaresProblem(*leverage_shift(rng, 500, np.ones(d), 0.15, 1.0)), 0.15
    if kind == "gradient":
        return SquaresProblem(*gradient_attack(rng, 500, d, 0.15)), 0.15
    if kind == "scatter":
        shift = np.r_[4.0, np.zeros(19)]
        return ScatterProblem(shifted_cluster(rng, 400, 0.1 * np.eye(20) + 0.9, 0.2, shift)), 0.2
    return SubspaceProblem(other_subspace(rng, 400, 20, 3, 0.2), 3), 0.2


def clean_descent(problem, share, eps_bar=0.3):
    clean = np.arange(problem.n_obs) >= count_bad(problem.n_obs, share)
    start = problem.weighted_fit(clean / clean.sum())
    return minimize(problem, eps_bar, n_starts=0, start_theta=start)


def missed(problem, share):
    found, known = minimize(problem, 0.3), clean_descent(problem, share)
    return found.risk > known.risk + 0.01 * (known.risk - known.losses.min())


@pytest.mark.parametrize("kind", ["shift", "gradient", "scatter", "subspace"])
@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_found_where_hardly_any_subset_is_clean(kind, seed):
    assert not missed(*attacked(kind, np.random.default_rng(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shift", "gradient"])
def test_random_subsets_alone_miss_it_in_40_dimensions(kind, monkeypatch):
    problem, share = attacked(kind, np.random.default_rng(0), d=40)
    assert not missed(problem, share)
    monkeypatch.setattr(
        "rrmstats.core.starts.spectral_starts",
        lambda problem, budget, theta: np.empty((0, len(theta))),
    )
    assert missed(problem, share)


def test_the_last_spectral_start_has_dropped_the_bad_rows():
    problem, share = attacked("shift", np.random.default_rng(0))
    budget = Budget(0.3, None, 500)
    starts = spectral_starts(problem, budget, problem.weighted_fit(budget.uniform(500)))
    assert starts.shape == (PARTS, 30)
    assert np.linalg.norm(starts[-1] - 1) < 0.5 * np.sqrt(30)
    bad = count_bad(500, share)
    assert problem.losses(starts[-1])[:bad].min() > 100


def test_covariances_and_components_also_start_from_robust_fits():
    for kind in ("scatter", "subspace"):
        problem, _ = attacked(kind, np.random.default_rng(0))
        budget = Budget(0.3, None, 400)
        uniform = problem.weighted_fit(budget.uniform(400))
        starts = spectral_starts(problem, budget, uniform)
        assert len(starts) == PARTS + 1
        assert_allclose(starts[0], problem.robust_starts()[0])


def test_rows_of_no_weight_change_no_spectral_start():
    endog, exog = leverage_shift(np.random.default_rng(0), 100, np.ones(4), 0.15)
    counts = np.r_[np.ones(60), np.zeros(40)]
    other = endog.copy()
    other[60:] = 1e6
    budget = Budget(0.3, counts / 60, 60)
    starts = [
        spectral_starts(problem, budget, problem.weighted_fit(budget.base))
        for problem in (SquaresProblem(endog, exog), SquaresProblem(other, exog))
    ]
    assert_allclose(*starts)
