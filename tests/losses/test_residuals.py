"""The scale of residuals, and the share of good rows, at the fixed points of all orders."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import minimize
from rrmstats.core.setting import Setting
from rrmstats.losses import SquaresProblem
from rrmstats.losses.residuals import (
    FittedRows,
    budget_scale,
    clean_scale,
    eps_hat_error,
    fitted_rung,
    least_scale,
    scale_rung,
    tilted,
)


def rows_of(n=4000, share=0.2, shift=10.0, eps_bar=0.3, seed=0, freq_weights=None):
    """Return rows of a regression with two coefficients of 1 and noise of variance 1."""
    rng = np.random.default_rng(seed)
    exog = np.c_[np.ones(n), rng.standard_normal(n)]
    endog = exog.sum(axis=1) + rng.standard_normal(n)
    endog[: round(share * n)] += shift
    problem = SquaresProblem(endog, exog)
    setting = Setting(eps_bar, freq_weights)
    return FittedRows.of(problem, minimize(problem, eps_bar, freq_weights=freq_weights), setting)


@pytest.mark.parametrize("order", [1.3, 2.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.3])
def test_scale_and_share_are_those_of_the_good_rows_at_every_order(share, order):
    rows = rows_of(share=share)
    for rung in (
        scale_rung(rows, order, 2.0),
        fitted_rung(rows, order, rows.first.theta, 2.0),
    ):
        assert rung.converged
        assert_allclose(rung.scale, 1, atol=0.12)
        assert_allclose(rung.eps_hat, share, atol=0.02)
    assert_allclose(rung.params, 1, atol=0.1)


def test_a_joint_rung_solves_its_equations():
    rows, order = rows_of(n=300), 1.6
    rung = fitted_rung(rows, order, rows.first.theta, 1.0)
    weights = tilted(rows.problem.losses(rung.params), rung.scale, order)
    assert_allclose(rows.problem.weighted_fit(weights), rung.params, atol=1e-7)
    moment = weights @ rows.problem.losses(rung.params) / weights.sum()
    # but for the degrees of freedom that two parameters take of 240 good rows
    assert_allclose(order * moment, rung.scale, rtol=0.02)
    assert order * moment < rung.scale


def test_the_scale_never_gives_up_more_rows_than_the_budget():
    """Half of the rows are bad, eps_bar allows a fifth: the scale covers some of the bad ones."""
    rows = rows_of(share=0.5, shift=6.0, eps_bar=0.2)
    rung = scale_rung(rows, 2.0, 0.01)
    assert rung.scale > 2
    assert rung.eps_hat <= 0.2 + 1e-9
    assert rung.scale >= least_scale(rows, 2.0) * (1 - 1e-6)


@pytest.mark.parametrize("start", [1e-6, 1.0, 1e6])
def test_the_budgets_scale_is_a_root_from_any_start(start):
    rng = np.random.default_rng(1)
    squares, share = rng.standard_normal(200) ** 2, np.full(200, 1 / 200)
    found = budget_scale(squares, share, 2.0, 0.7, start)
    assert_allclose(np.sqrt(2) * np.exp(-0.5 * squares / found).mean(), 0.7, rtol=1e-8)


def test_the_scale_of_clean_data_is_the_largest():
    rows = rows_of(share=0.0, eps_bar=0.4)
    assert_allclose(clean_scale(rows), 1, atol=0.1)
    dirty = rows_of(share=0.3, eps_bar=0.4)
    assert clean_scale(dirty) > 2 * scale_rung(dirty, 2.0, 1.0).scale


def test_error_of_eps_hat_is_that_of_samples_with_random_bad_rows():
    found = []
    for seed in range(60):
        share = np.random.default_rng([9, seed]).binomial(300, 0.2) / 300
        rows = rows_of(n=300, share=share, eps_bar=0.4, seed=seed)
        rung = fitted_rung(rows, 1.5, rows.first.theta, 1.0)
        found.append((rung.eps_hat, eps_hat_error(rows, rung)))
    estimates, errors = np.array(found).T
    assert_allclose(errors.mean(), estimates.std(), rtol=0.25)


def test_counts_stand_for_repeated_rows():
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 4, 150).astype(float)
    weighted = rows_of(n=150, freq_weights=counts)
    many = np.repeat(np.arange(150), counts.astype(int))
    problem = SquaresProblem(weighted.problem.endog[many], weighted.problem.exog[many])
    repeated = FittedRows.of(problem, minimize(problem, 0.3), Setting(0.3))
    one, two = (fitted_rung(rows, 1.6, rows.first.theta, 1.0) for rows in (weighted, repeated))
    assert_allclose(one.params, two.params, rtol=1e-6)
    assert_allclose([one.scale, one.eps_hat], [two.scale, two.eps_hat], rtol=1e-6)
    assert_allclose(eps_hat_error(weighted, one), eps_hat_error(repeated, two), rtol=1e-6)
