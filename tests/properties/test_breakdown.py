"""Rows far off, up to a share of eps_bar, must not take the estimates with them."""

import sys
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from replication.samples import distant_regression, leverage_shift
from rrmstats import RRMOLS, RRMPCA, RRMCov
from rrmstats.core import minimize
from rrmstats.core.points import Budget

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import breakdown


@pytest.mark.slow
@pytest.mark.parametrize("kind", breakdown.KINDS)
@pytest.mark.parametrize("eps_bar", [0.4])
@pytest.mark.parametrize("name", breakdown.MODELS)
def test_half_of_eps_bar_changes_little(name, eps_bar, kind, request):
    """Two steps, the second of which stands on the first."""
    if kind == "good leverage" and name in ("RRMCov", "RRMPCA"):
        known = "of many points ten times as far within the axes some are followed"
        request.applymarker(pytest.mark.xfail(reason=known))
    found = breakdown.ratios(breakdown.Case(name, eps_bar, eps_bar / 2, kind), 3, seed=0)
    assert found[:, 1].max() <= breakdown.AT_MOST


@pytest.mark.slow
@pytest.mark.parametrize("kind", breakdown.KINDS)
@pytest.mark.parametrize("eps_bar", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("name", breakdown.MODELS)
def test_all_of_eps_bar_changes_little(name, eps_bar, kind, request):
    """Sizes as well: no factor that holds on clean data alone inflates them."""
    if kind == "good leverage" and (name, eps_bar) == ("RRMCov", 0.4):
        request.applymarker(pytest.mark.xfail(reason="the second step does not converge"))
    if kind == "tight cluster" and eps_bar == 0.4 and name != "RRMCov":
        pytest.skip("80 rows in one place and 40 others are fitted better than 120 clean ones")
    found = breakdown.ratios(breakdown.Case(name, eps_bar, eps_bar, kind), 1, seed=5)
    assert found[:, 1, 1:].max() <= breakdown.AT_MOST


def test_least_squares_does_break_down():
    """The errors that the bound is about are no small ones."""
    for kind in ("vertical", "bad leverage", "cluster"):
        endog, exog = distant_regression(np.random.default_rng(0), kind, share=0.1, distance=1e3)
        clean = breakdown.slope_error(sm.OLS(endog[20:], exog[20:]).fit())
        assert breakdown.slope_error(sm.OLS(endog, exog).fit()) > 10 * clean


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, 1000])
def test_the_search_sees_a_part_with_more_bad_rows_than_eps_bar(n):
    """Starts are screened on 300 rows, of which more may be bad than a share of eps_bar."""
    broken = 0
    for seed in range(12):
        rng = np.random.default_rng([n, seed])
        endog, exog = leverage_shift(rng, n, (0.0, 1.0, -0.5), share=0.1, sigma=1.0)
        good = sm.OLS(endog[n // 10 :], exog[n // 10 :]).fit().params
        broken += not np.allclose(RRMOLS(endog, exog, 0.1).fit(steps=1).params, good, atol=0.1)
    assert broken <= 1


def test_a_part_has_a_larger_budget():
    whole = Budget(0.2, None, 1000.0)
    error = np.sqrt(0.2 * 0.8 * (1 / 250 - 1 / 1000))
    assert_allclose(whole.take(np.arange(250)).eps_bar, 0.2 + 3 * error)
    assert whole.take(np.arange(1000)).eps_bar == 0.2
    assert Budget(0.9, None, 1000.0).take(np.arange(5)).eps_bar == 0.95


@pytest.mark.parametrize("model", ["cov", "pca"])
@pytest.mark.parametrize("distance", [10.0, 1e3])
def test_the_search_finds_what_a_start_at_the_clean_rows_finds(model, distance):
    """Also where eps_bar just suffices to leave out the bad rows."""
    for seed in range(4):
        (data,) = breakdown.cloud(np.random.default_rng(seed), "vertical", 0.2, distance)
        problem = (RRMCov(data, 0.2) if model == "cov" else RRMPCA(data, 2, 0.2)).problem()
        weights = np.r_[np.zeros(40), np.full(160, 1 / 160)]
        good = problem.weighted_fit(weights)
        found = minimize(problem, 0.2)
        known = minimize(problem, 0.2, n_starts=0, start_theta=good)
        assert found.risk <= known.risk + 1e-4 * abs(known.risk)


@pytest.mark.parametrize("kind", ["good leverage", "cluster"])
@pytest.mark.parametrize("seed", [1, 4, 5])
def test_risks_are_those_of_weights_however_far_out_the_rows(kind, seed):
    """A multiplier that hardly changes the divergence must not pass for a risk."""
    (data,) = breakdown.cloud(np.random.default_rng([0, seed]), kind, 0.4, 1e6)
    first = RRMCov(data, 0.4).fit(steps=1)
    # The risk is that of the exact divergence, which is known to its twelfth digit.
    known_to = 1e-12 * first.lambda_
    assert_allclose(first.risk, first.weights @ first.losses, rtol=1e-3, atol=known_to)
    assert first.weights[:80].sum() < 1e-3
    assert np.isfinite(first.params).all()
