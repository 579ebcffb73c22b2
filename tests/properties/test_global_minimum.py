"""The search reaches what a descent from the clean fit does: a part of benchmarks/minimum.py."""

import numpy as np
import pytest

from replication.samples import (
    count_bad,
    extreme_flips,
    gradient_attack,
    heavy_tailed_noise,
    leverage_shift,
    other_subspace,
    shifted_cluster,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.core import minimize

SEEDS = range(6100, 6102)
MARGIN = 0.01


def factor_leverage(rng, levels, n=900, share=0.15):
    """Return a regression on x and a factor of random levels, with leverage rows in x."""
    dummies = rng.integers(levels, size=n)[:, None] == np.arange(1, levels)
    endog, exog = leverage_shift(rng, n, (1.0, 1.0), share)
    good = np.arange(n) >= count_bad(n, share)
    endog += good * (dummies @ rng.standard_normal(levels - 1))
    return endog, np.column_stack([exog, dummies])


SLOPES = np.r_[0.0, np.full(29, 2 / np.sqrt(29))]
KINDS = {
    "shift": (lambda r: RRMOLS(*leverage_shift(r, 500, np.ones(30), 0.15, 1.0), 0.3), 0.15),
    "gradient": (lambda r: RRMOLS(*gradient_attack(r, 500, 30, 0.15), 0.3), 0.15),
    "factor 15": (lambda r: RRMOLS(*factor_leverage(r, 15), 0.3), 0.15),
    "factor 60": (lambda r: RRMOLS(*factor_leverage(r, 60), 0.3), 0.15),
    "labels": (lambda r: RRMLogit(*extreme_flips(r, 1000, SLOPES, 0.1), 0.2), 0.1),
    "subspace": (lambda r: RRMPCA(other_subspace(r, 600, 30, 3, 0.2), 3, 0.3), 0.2),
    "cluster": (lambda r: RRMCov(shifted_cluster(r, 600, np.eye(30), 0.2, 5.0), 0.3), 0.2),
}


def searched(kind, seed):
    """Return what the search and the descent from the clean fit find, and the problem."""
    make, share = KINDS[kind]
    model = make(np.random.default_rng(seed))
    problem = model.problem()
    clean = np.arange(problem.n_obs) >= count_bad(problem.n_obs, share)
    start = problem.weighted_fit(clean / clean.sum())
    known = minimize(problem, model.eps_bar, n_starts=0, start_theta=start)
    return minimize(problem, model.eps_bar), known, problem


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_lower_risk_is_missed(kind):
    for seed in SEEDS:
        found, known, _ = searched(kind, seed)
        assert found.risk <= known.risk + MARGIN * (known.risk - known.losses.min())
        assert np.isfinite(found.start_risks).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["factor 15", "factor 60"])
def test_the_slope_beside_a_factor_is_found(kind):
    for seed in SEEDS:
        found, _, problem = searched(kind, seed)
        assert abs(problem.to_params(found.theta)[1] - 1) < 0.15


@pytest.mark.slow
def test_the_minimum_is_missed_in_few_small_samples_with_dense_minima():
    missed = []
    for seed in range(6100, 6120):
        problem = RRMOLS(*heavy_tailed_noise(np.random.default_rng(seed)), 0.4).problem()
        least = minimize(problem, 0.4, n_starts=3000, rng=1).risk
        missed.append(minimize(problem, 0.4).risk > least * (1 + 1e-6))
    assert np.mean(missed) <= 0.1
