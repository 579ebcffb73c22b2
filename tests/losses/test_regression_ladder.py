"""Linear regression on dirty data: scale, contamination and the second step."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from rrmstats import RRMOLS
from rrmstats.core.consistency import order_efficiency
from rrmstats.experiments.samples import distant_regression, one_sided_outliers
from rrmstats.losses.regression_ladder import joint_orders, robust_order, scale_orders

ONES = np.ones(4)
# Share, and kind and distance of bad rows, at eps_bar = 0.4.
CELLS = [
    (0.0, "vertical", 10.0),
    *((share, "vertical", distance) for share in (0.1, 0.2, 0.4) for distance in (5.0, 10.0)),
    *((share, "cluster", 10.0) for share in (0.1, 0.4)),
]


def fits(share, kind, distance, n=400, runs=10, eps_bar=0.4, k=4):
    """Return fits of two steps, and least squares on the good rows of the same samples."""
    both = []
    for seed in range(runs):
        rng = np.random.default_rng([77, seed])
        endog, exog = distant_regression(rng, kind, n, np.ones(k), share, distance)
        good = slice(round(share * n), None)
        res = RRMOLS(endog, exog, eps_bar).fit(efficiency=0.95)
        both.append((res, sm.OLS(endog[good], exog[good]).fit().params))
    return both


@pytest.mark.slow
@pytest.mark.parametrize(("share", "kind", "distance"), CELLS)
def test_every_cell_is_near_least_squares_on_the_good_rows(share, kind, distance):
    found = fits(share, kind, distance, runs=20)
    two = np.mean([((res.params - 1) ** 2).sum() for res, _ in found])
    clean = np.mean([((params - 1) ** 2).sum() for _, params in found])
    assert two < 1.6 * clean
    assert abs(np.mean([res.scale for res, _ in found]) - 1) < 0.15
    assert abs(np.mean([res.eps_hat for res, _ in found]) - share) < 0.02


def test_the_scale_is_that_of_the_good_rows_in_both_steps():
    (res, _), *_ = fits(0.4, "vertical", 10.0, runs=1)
    for step in (res, res.first_step):
        assert 0.8 < step.scale < 1.25
        assert abs(step.eps_hat - 0.4) < 0.02
        assert 0.005 < step.eps_hat_se < 0.05


def test_near_outliers_stop_the_ladder_before_they_come_back():
    (res, _), *_ = fits(0.4, "vertical", 5.0, runs=1)
    assert res.efficiency == 0.95
    assert 0.6 < res.efficiency_reached < 0.9
    rungs = res.ladder
    assert rungs["chosen"].sum() == 1
    assert rungs["pvalue"].iloc[-1] < 1e-4
    chosen = rungs[rungs["chosen"]]
    assert_allclose(chosen[["const", "x1", "x2", "x3"]].to_numpy()[0], res.params)
    assert_allclose(chosen["scale"].item(), res.scale)
    assert_allclose(chosen["eps_hat"].item(), res.eps_hat)
    text = " ".join(str(res.summary()).split())
    assert f"stopped at rung {chosen.index[0]} of {len(rungs) - 1}" in text
    assert "Efficiency, clean data:" in text and "(asked 0.95)" in text


def test_far_outliers_do_not_stop_it():
    (res, _), *_ = fits(0.2, "vertical", 10.0, runs=1)
    assert res.efficiency_reached == pytest.approx(0.95)
    assert "its 7 rungs agree" in " ".join(str(res.summary()).split())
    assert np.isnan(res.ladder["pvalue"].iloc[0])
    assert res.ladder["order"].is_monotonic_decreasing


def test_the_first_step_is_kept_where_it_is_as_efficient():
    """Corrupted rows use up the budget: the good ones have nearly equal weights."""
    (res, clean), *_ = fits(0.4, "cluster", 10.0, runs=1)
    assert_allclose(res.params, res.first_step.params)
    assert res.efficiency_reached > 0.9
    assert "about as efficient as asked" in " ".join(str(res.summary()).split())
    assert_allclose(res.params, clean, atol=0.05)
    assert res.steps_pvalue == 1


def test_two_groups_of_rows_do_not_pass_for_wide_noise():
    """60 and 40 rows 5 apart: to efficient weights they look like one group without tails."""
    endog, exog = distant_regression(
        np.random.default_rng([112, 100, 4]), "vertical", 100, ONES, 0.4, 5.0
    )
    res = RRMOLS(endog, exog, 0.4).fit(efficiency=0.95)
    assert ((res.params - 1) ** 2).sum() < 0.1
    assert res.scale < 2
    assert "shorter tails than Gaussian noise" in " ".join(str(res.summary()).split())


def test_steps_that_agree_have_a_large_pvalue():
    pvalues = [fit.steps_pvalue for fit, _ in fits(0.1, "vertical", 10.0, n=100, runs=12)]
    assert np.mean(np.array(pvalues) < 0.05) <= 0.25
    assert min(pvalues) > 1e-4


@pytest.mark.parametrize("efficiency", [0.7, 0.8, 0.9, 0.99])
def test_other_efficiencies(efficiency):
    endog, exog = one_sided_outliers(np.random.default_rng(0), 200, ONES, 0.1, 30.0)
    res = RRMOLS(endog, exog, 0.3).fit(efficiency=efficiency)
    assert res.efficiency_reached == pytest.approx(efficiency)
    assert_allclose(res.params, 1, atol=0.4)
    assert res.weights[:20].max() < 1e-4


def test_frequency_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    endog, exog = one_sided_outliers(rng, 80, ONES, 0.2, 6.0)
    counts = rng.integers(0, 4, 80)
    many = np.repeat(np.arange(80), counts)
    for efficiency in (None, 0.95):
        weighted = RRMOLS(endog, exog, 0.3, freq_weights=counts).fit(efficiency=efficiency)
        repeated = RRMOLS(endog[many], exog[many], 0.3).fit(efficiency=efficiency)
        for name in ("params", "bse", "scale", "eps_hat", "eps_hat_se", "df_resid_inference"):
            assert_allclose(
                getattr(weighted, name), getattr(repeated, name), rtol=1e-6, err_msg=name
            )
        assert (weighted.outliers()[many] == repeated.outliers()).all()


def test_orders_are_those_of_the_bias_that_is_allowed():
    assert robust_order(0.0) == 1.0
    assert_allclose(robust_order(0.4), 2.0)
    eps_bar = 0.2
    bias = eps_bar / (1 - eps_bar) * 5 * np.exp(-12.5 * (1 - 1 / robust_order(eps_bar)))
    assert_allclose(bias, 0.0064, atol=1e-4)
    orders = joint_orders(0.3, 0.95)
    assert (np.diff(orders) < 0).all()
    assert_allclose(order_efficiency(orders[-1]), 0.95)
    assert_allclose(scale_orders(2.0, 0.5), [2.0])
    assert scale_orders(2.0, 0.0)[0] == pytest.approx(3.0)
