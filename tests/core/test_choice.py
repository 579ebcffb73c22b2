"""The automatic choice of eps_bar, and the bounds at which explanations are compared."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rrmstats.core.search
from replication.samples import (
    extreme_flips,
    leverage_shift,
    one_sided_outliers,
    shifted_cluster,
)
from rrmstats import RRMOLS, RRMCov, RRMLogit
from rrmstats.core import steps
from rrmstats.core.choice import MARGIN, chosen, rounded_up
from rrmstats.core.comparison import compare
from rrmstats.core.search import global_minima
from rrmstats.core.setting import Setting
from rrmstats.core.steps import largest_bound, robust_estimate, steps_beyond, take_steps


def choice_of(model, most=0.5):
    problem = model.problem()
    bound = largest_bound(problem, float(problem.n_obs))
    return chosen(
        robust_estimate(problem, Setting(eps_bar=bound, freq_weights=model.freq_weights)), most
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3])
def test_the_value_is_the_share_of_bad_rows_and_a_margin(share):
    sample = one_sided_outliers(np.random.default_rng(3), 400, np.ones(4), share, shift=10.0)
    choice = choice_of(RRMOLS(*sample, 0.1))
    floor = max(share, 1 / 400)
    margin = MARGIN * np.sqrt(floor * (1 - floor) / 400)
    assert share + margin - 1e-9 <= choice.eps_bar <= share + margin + 0.03


def test_more_rows_need_a_smaller_margin():
    few, many = (
        choice_of(RRMOLS(*leverage_shift(np.random.default_rng(0), n), 0.1)).margin
        for n in (100, 1600)
    )
    assert many == pytest.approx(few / 4, rel=0.1)


def test_labels_at_the_extremes_are_counted():
    endog, exog = extreme_flips(np.random.default_rng(0), 500, [0.0, 1.0, -0.5], 0.05)
    assert 0.05 <= choice_of(RRMLogit(endog, exog, 0.1)).eps_bar <= 0.18


def test_it_stays_within_its_bound():
    data = shifted_cluster(np.random.default_rng(0), 200, np.eye(3), share=0.3)
    choice = choice_of(RRMCov(data, 0.1), most=0.2)
    assert choice.eps_bar == choice.bound == 0.2
    assert "more than the largest bound" in choice.reason


def test_values_are_rounded_up():
    assert rounded_up(0.2, 0.45) == 0.2
    assert rounded_up(0.2000001, 0.45) == 0.21
    assert rounded_up(0.6, 0.45) == 0.45


def sample_problem():
    return RRMOLS(*leverage_shift(np.random.default_rng(0)), 0.1).problem()


def test_the_largest_bound():
    problem = RRMOLS(np.arange(20.0), np.c_[np.ones(20), np.arange(20) ** 2], 0.1).problem()
    assert largest_bound(problem, 20.0) == pytest.approx(0.45)


def test_a_bound_that_suffices_has_the_second_step_of_the_largest():
    problem = sample_problem()
    own = take_steps(problem, Setting(eps_bar=0.3))
    robust = robust_estimate(problem, Setting(eps_bar=own.largest))
    assert own.robust is None
    assert own.largest == largest_bound(problem, own.wnobs)
    assert_allclose(own.params, robust.params, rtol=1e-12)
    assert own.setting.eps_bar == own.first.setting.eps_bar == 0.3
    assert max(each.eps for each in own.explained.explanations) <= 0.3


def test_a_bound_that_is_too_small_has_one_of_its_own():
    own = take_steps(sample_problem(), Setting(eps_bar=0.05))
    assert own.eps_hat <= 0.05 < own.robust.eps_hat
    assert not compare(own, own.robust).agrees


def test_second_steps_beyond_a_bound_are_those_of_fits_there():
    own = take_steps(sample_problem(), Setting(eps_bar=0.04))
    found = list(steps_beyond(own))
    bounds = [bound for bound, _ in found]
    assert_allclose(bounds, 0.06 + 0.02 * np.arange(len(bounds)))
    assert bounds[-2] < own.robust.eps_hat <= bounds[-1]
    assert found[-1][1] is own.robust
    for bound, step in found:
        assert_allclose(
            step.params, take_steps(own.problem, Setting(eps_bar=bound)).params, rtol=1e-6
        )


def test_searches_are_few(monkeypatch):
    """One at all bounds; the risk rises from the minimum to the second step, which follows it."""
    asked, search = [], global_minima

    def counted(problem, settings, *start):
        asked.append([setting.eps_bar for setting in settings])
        return search(problem, settings, *start)

    for module in (steps, rrmstats.core.search):
        monkeypatch.setattr(module, "global_minima", counted)
    take_steps(sample_problem(), replace(Setting(eps_bar=0.3), n_starts=50))
    assert [len(each) for each in asked] == [4]
