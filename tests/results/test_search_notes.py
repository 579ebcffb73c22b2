"""What results say of the search, and numbers that large or wide data take another way to."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from replication.samples import leverage_shift, one_sided_outliers, other_subspace
from rrmstats import RRMOLS, RRMPCA
from rrmstats.core.sandwich import influence_covariance
from rrmstats.losses import SquaresProblem

ALONE = "No two starts that are far apart lead to this minimum"
NONE_USABLE = "No start besides the first gave a fit"


def notes(res):
    return " ".join(str(res.summary()).split())


def test_a_minimum_that_one_descent_found_has_a_note():
    endog, exog = leverage_shift(np.random.default_rng(0), 500, np.ones(40), 0.15, 1.0)
    res = RRMOLS(endog, exog, 0.3).fit(steps=1)
    higher = int((res.final_risks > res.risk * (1 + 1e-6)).sum())
    assert res.n_best == 1
    assert higher > 0
    assert f"{ALONE}: {higher} of {len(res.final_risks)} descents ended higher" in notes(res)
    assert "n_starts=" in notes(res)


def test_descents_that_agree_need_no_note():
    res = RRMOLS(*one_sided_outliers(np.random.default_rng(0)), 0.3).fit(steps=1)
    assert res.n_best > 1
    assert "n_starts=" not in notes(res)


@pytest.fixture
def no_other_starts(monkeypatch):
    """Subsets that give no fit, and no spectral starts."""

    def nothing(self, rows):
        return np.full((*rows.shape[:-1], self.n_params), np.nan)

    monkeypatch.setattr(SquaresProblem, "subset_fits", nothing)
    monkeypatch.setattr(SquaresProblem, "determined_fit", nothing)
    monkeypatch.setattr(
        "rrmstats.core.starts.spectral_starts",
        lambda problem, budget, theta: np.empty((0, len(theta))),
    )


def test_a_search_without_usable_starts_has_a_note(no_other_starts):
    res = RRMOLS(*one_sided_outliers(np.random.default_rng(0)), 0.3).fit(n_starts=7, steps=1)
    assert np.isfinite(res.starts["risk"]).tolist() == [True, *[False] * 7]
    assert NONE_USABLE in notes(res)
    assert "try a larger n_starts=" in notes(res)
    assert ALONE not in notes(res)


@pytest.mark.parametrize("eps_bar, n_starts", [(0.3, 0), (0.0, None)])
def test_no_note_where_no_search_was_asked_for(eps_bar, n_starts):
    endog, exog = one_sided_outliers(np.random.default_rng(0))
    res = RRMOLS(endog, exog, eps_bar).fit(n_starts=n_starts, stability=False, steps=1)
    assert "n_starts=" not in notes(res)


@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_the_covariance_in_blocks_is_that_of_the_influence(
    steps, weighted, deficient, monkeypatch
):
    rng = np.random.default_rng(0)
    endog, exog = one_sided_outliers(rng, 101)
    if deficient:
        exog = np.c_[exog, exog[:, 1] - exog[:, 2]]
    counts = rng.integers(1, 4, 101) if weighted else None
    res = RRMOLS(endog, exog, 0.3, freq_weights=counts).fit(steps=steps)
    estimate = res._results._estimate
    whole = influence_covariance(estimate.influence(), estimate.base, estimate.wnobs)
    for rows in (7, 4096):
        monkeypatch.setattr("rrmstats.core.linear.CHUNK", rows)
        assert_allclose(estimate.covariance(), whole, rtol=1e-10, atol=1e-10 * whole.max())
    assert_allclose(res.cov_params(), whole, rtol=1e-10, atol=1e-10 * whole.max())


@pytest.mark.parametrize("n, d", [(39, 226), (30, 50), (40, 200)])
def test_two_steps_on_wide_data_are_finite(n, d):
    data = other_subspace(np.random.default_rng(0), n, d, 3, 0.1)
    res = RRMPCA(data, 3, 0.2).fit()
    assert res.converged
    for numbers in (res.eigenvals, res.loadings, res.mean, res.weights, res.bse):
        assert np.isfinite(numbers).all()
    assert (res.eigenvals > 0).all()
    assert_allclose(res.loadings.T @ res.loadings, np.eye(3), atol=1e-10)
