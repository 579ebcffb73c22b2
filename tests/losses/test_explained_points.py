"""Second steps of covariances and components: what they find, and their influence functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats import RRMOLS, RRMPCA, RRMCov
from rrmstats.laws.gaussian import em_step
from rrmstats.losses.covariance import student_size


def cloud(n, d, bad, shift, spread=1.0, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, d))
    x[:bad] = spread * x[:bad] + shift / np.sqrt(d)
    return x


def test_clean_rows_have_the_classical_covariance():
    x = cloud(100, 3, 0, 0.0)
    res, classical = RRMCov(x, 0.3).fit(), RRMCov(x, 0.0).fit()
    assert res.explanation == "none"
    assert_allclose(res.cov, classical.cov, rtol=1e-6)
    assert_allclose(res.mean, classical.mean, rtol=1e-6)
    assert res.eps_hat == 0


@pytest.mark.parametrize(
    ("n", "d", "bad", "shift", "spread"),
    [(100, 5, 20, 10.0, 0.01), (300, 10, 30, 8.0, 0.5), (300, 20, 60, 7.0, 1.0)],
)
def test_tight_groups_do_not_win(n, d, bad, shift, spread):
    """The lowest minimum of the risk is that of the group."""
    x = cloud(n, d, bad, shift, spread)
    res = RRMCov(x, 0.3).fit()
    assert res.explanation == "cluster"
    assert_array_equal(np.flatnonzero(res.outliers()), range(bad))
    assert_allclose(res.cov, np.cov(x[bad:].T, bias=True), atol=0.02)


def test_rows_with_more_variance():
    x = np.random.default_rng(3).standard_normal((400, 8))
    x[:80] *= 3
    res = RRMCov(x, 0.3).fit()
    assert res.explanation == "scattered"
    assert_allclose(res.eps_hat, 0.2, atol=0.03)
    assert "scattered more widely" in res.explanation.sentence


def test_clusters_on_two_sides():
    """One of them alone would leave the other among the good rows."""
    x = cloud(150, 4, 15, 8.0)
    x[15:30] -= 3
    res = RRMCov(x, 0.3).fit()
    assert res.explanation == "two clusters"
    assert res.converged
    assert np.mean(res.outliers()[:30]) > 0.9
    assert np.mean(res.outliers()[30:]) < 0.02
    assert_allclose(res.cov, np.cov(x[30:].T, bias=True), atol=0.15)
    assert_allclose(res.eps_hat, 0.2, atol=0.02)


def test_one_row_is_no_cluster():
    """Far tails are no cluster of one row, which any row apart would be."""
    told = []
    for seed in range(20):
        x = np.random.default_rng([11, seed]).standard_normal((50, 2))
        x[0] += 8
        told.append(str(RRMCov(x, 0.3).fit().explanation))
    assert not any("cluster" in each for each in told)


def one_variable():
    rng = np.random.default_rng(0)
    bad, noise = np.arange(150) < 20, rng.standard_normal(150)
    return {
        "none": noise,
        "cluster": noise + 6 * bad,
        "scattered": np.random.default_rng(2).standard_normal(150) * np.where(bad, 12, 1),
        "heavy tails": rng.standard_t(2, 200),
        "short tails": rng.uniform(size=200),
    }


@pytest.mark.parametrize(("told", "x"), one_variable().items(), ids=list(one_variable()))
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_a_covariance_of_one_variable_is_a_regression_on_a_constant(told, x, unit):
    x = unit * (x + 3)
    cov, ols = RRMCov(x[:, None], 0.3).fit(), RRMOLS(x, np.ones(len(x)), 0.3).fit()
    assert cov.explanation == ols.explanation == told
    assert_allclose(cov.mean, ols.params, rtol=1e-6)
    assert_allclose(cov.bse[:1], ols.bse, rtol=1e-6)
    assert_allclose([cov.eps_hat, cov.eps_hat_se], [ols.eps_hat, ols.eps_hat_se], atol=1e-6)
    assert_allclose(cov.prob_bad, ols.prob_bad, atol=1e-6)
    assert_array_equal(cov.outliers(), ols.outliers())
    if told != "heavy tails":  # their covariance has the size of their middle half
        good = len(x) - np.sum(cov.prob_bad)
        assert_allclose(np.asarray(cov.cov)[0, 0], ols.scale * (good - 1) / good, rtol=1e-4)


def test_student_noise_has_the_size_of_its_middle():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 3)) / np.sqrt(rng.chisquare(3, 20_000) / 3)[:, None]
    res = RRMCov(x, 0.2).fit()
    assert res.explanation == "heavy tails"
    assert_allclose(res.cov, student_size(3, 3) * np.eye(3), atol=0.06)
    assert_allclose(np.mean(res.mahalanobis() < np.sqrt(2.366)), 0.5, atol=0.01)


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_influence_is_the_derivative_in_the_weight_of_a_row(shift):
    x = cloud(150, 2, 30 if shift else 0, shift)
    counts, by = np.ones(150), 0.05
    base = RRMCov(x, 0.3, freq_weights=counts).fit()
    estimate = getattr(base, "_results", base)._estimate
    place = estimate.rows.decided.place("scatter")
    influence = estimate.rows.influence(corrected=False)[:, place]
    assert influence.shape == (150, 3)
    for row in (1, 40, 149):
        ends = []
        for sign in (1, -1):
            moved = counts.copy()
            moved[row] += sign * by
            ends.append(RRMCov(x, 0.3, freq_weights=moved).fit().params)
        slope = (ends[0] - ends[1]) / (2 * by) * 150
        found = estimate.influence()[row]
        assert_allclose(found, slope, atol=0.05 * np.abs(slope).max() + 0.02)


def test_bad_rows_within_the_plane_and_off_it_are_both_found():
    x = np.random.default_rng(5).standard_normal((400, 5)) * [4, 3, 1, 1, 1]
    x[:30, 3] += 12
    x[30:60, :2] += 40
    res = RRMPCA(x, 2, 0.3).fit()
    assert_array_equal(np.flatnonzero(res.outliers()), range(60))
    assert_allclose(res.eps_hat, 0.15, atol=0.01)
    assert_allclose(res.eigenvals, [16, 9], rtol=0.3)
    assert res.relative_weights[:60].max() < 0.01
    assert "Of the bad rows 30 lie near the subspace" in str(res.summary())


def test_a_plane_through_far_rows_is_refused():
    """Distances off it are small, and its likelihood would be the larger."""
    x = np.random.default_rng(1).standard_normal((500, 4)) * [4, 3, 1, 1]
    x[:75] += np.array([300, 0, 300, 0]) * np.random.default_rng(2).uniform(1, 2, (75, 1))
    res = RRMPCA(x, 2, 0.3).fit()
    assert np.linalg.norm(res.loadings[2:]) < 0.1


@pytest.mark.slow
def test_coverage_of_loadings():
    """Angles of 40 samples, two of them each, in 95 % intervals."""
    inside = []
    for seed in range(40):
        x = np.random.default_rng([7, seed]).standard_normal((200, 4)) * [4, 2, 1, 1]
        x[:30, 2:] += 5
        res = RRMPCA(x, 1, 0.3).fit()
        error = np.asarray(res.loadings_bse)[1:, 0]
        inside.append(np.abs(np.asarray(res.loadings)[1:, 0]) < 1.96 * error)
    assert 0.88 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize(
    "fit", [lambda x: RRMCov(x, 0.0).fit(), lambda x: RRMPCA(x, 1, 0.0).fit()]
)
def test_no_row_may_be_bad_where_the_bound_is_zero(fit):
    res = fit(cloud(40, 3, 5, 9.0))
    assert res.explanation == "none"
    assert "eps_bar is 0" in res.explanation.sentence
    assert not res.prob_bad.any()
    assert list(res.explanations.explanation) == ["none"]


def test_rows_off_a_hyperplane_are_bad():
    x = cloud(60, 3, 0, 0.0)
    x[:, 2] = x[:, 0] + x[:, 1]
    x[:8, 2] += 3
    res = RRMCov(x, 0.3).fit()
    assert res.singular
    assert_array_equal(np.flatnonzero(res.outliers()), range(8))
    assert_array_equal(np.flatnonzero(np.asarray(res.prob_bad) > 0.5), range(8))


def test_many_rows_are_explained_by_some_and_fitted_by_all():
    rng = np.random.default_rng(6)
    data = rng.standard_normal((8000, 4)) * [3, 2, 1, 1]
    data[:800, 2:] += 4
    off = RRMPCA(data, 2, 0.2).fit(stability=False)._estimate.off
    assert off.settled and len(off.told.chosen.prob_bad) == 8000
    again = em_step(off.rows, off.mixture, 0.2)
    assert_allclose(again.scatter, off.mixture.scatter, atol=1e-7)


@pytest.mark.parametrize("distance", [10.0, 1e3])
def test_many_rows_far_out_along_one_axis_are_bad(distance):
    rng = np.random.default_rng(8)
    data = rng.standard_normal((200, 4)) * [3, 2, 0.5, 0.5]
    data[:80, 0] *= distance
    res = RRMCov(data, 0.4).fit()
    assert res.explanation == "other shape"
    bad = np.abs(data[:80, 0]) > 15
    assert np.asarray(res.outliers())[:80][bad].all()
    assert np.asarray(res.outliers())[80:].mean() < 0.05
    assert_allclose(res.cov, np.cov(data[80:].T), atol=0.25 * 9)


def test_a_third_of_clean_values_is_no_cluster():
    """By chance two normal distributions fit these values better than one, but not by much."""
    rng = np.random.default_rng([5001, 49])
    data = rng.normal(size=(200, 4)) * [2.0, 1.0, 1.0, 1.0]
    res = RRMPCA(data, 1).fit()
    assert res.eps_hat < 0.05
    assert_allclose(res.eigenvals, np.linalg.eigvalsh(np.cov(data.T))[-1:], rtol=0.02)
