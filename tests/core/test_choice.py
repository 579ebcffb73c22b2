"""The automatic choice of eps_bar."""

from dataclasses import replace

import numpy as np
import pytest

from rrmstats import RRMOLS, RRMCov, RRMLogit
from rrmstats.core.choice import MARGIN, choose, rounded_up
from rrmstats.core.comparison import efficient_fit
from rrmstats.core.setting import Setting
from rrmstats.experiments.samples import (
    extreme_flips,
    leverage_shift,
    one_sided_outliers,
    shifted_cluster,
)


def chosen(model, bound=0.45):
    problem = model.problem()
    asked = []

    def fit(eps_bar):
        asked.append(eps_bar)
        return efficient_fit(problem, Setting(eps_bar, model.freq_weights))

    choice = choose(fit, bound)
    assert len(asked) == len(set(asked)), "a fit was made twice"
    return choice


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3])
def test_the_value_is_the_share_of_bad_rows_and_a_margin(share):
    sample = one_sided_outliers(np.random.default_rng(3), 400, np.ones(4), share, shift=10.0)
    choice = chosen(RRMOLS(*sample, 0.1))
    floor = max(share, 1 / 400)
    margin = MARGIN * np.sqrt(floor * (1 - floor) / 400)
    assert share + margin - 1e-9 <= choice.eps_bar <= share + margin + 0.03
    assert not choice.raised


def test_more_rows_need_a_smaller_margin():
    few, many = (
        chosen(RRMOLS(*leverage_shift(np.random.default_rng(0), n), 0.1)).margin
        for n in (100, 1600)
    )
    assert many == pytest.approx(few / 4, rel=0.1)


def test_labels_at_the_extremes_need_more_than_is_visible():
    """Most wrong labels are not improbable: the weights of the fit tell more than their count."""
    endog, exog = extreme_flips(np.random.default_rng(0), 500, [0.0, 1.0, -0.5], 0.05)
    choice = chosen(RRMLogit(endog, exog, 0.1))
    assert 0.07 <= choice.eps_bar <= 0.18


def test_a_value_in_a_wrong_minimum_is_raised():
    """Were the share of bad rows told too low, the fit there would follow them."""
    model = RRMOLS(*leverage_shift(np.random.default_rng(0)), 0.1)
    problem = model.problem()

    def fit(eps_bar):
        found = efficient_fit(problem, Setting(eps_bar))
        if eps_bar < 0.45:
            return found
        moved = replace(found.solution, n_eff=0.95 * found.wnobs)
        return replace(found, eps_hat=0.05, eps_hat_se=0.01, solution=moved)

    choice = choose(fit, 0.45)
    assert choice.raised
    assert choice.eps_bar >= 0.2
    assert "raised until the fit agrees with more robust ones" in choice.reason


def test_it_stays_within_its_bound():
    data = shifted_cluster(np.random.default_rng(0), 200, np.eye(3), share=0.3)
    choice = chosen(RRMCov(data, 0.1), bound=0.2)
    assert choice.eps_bar == choice.bound == 0.2
    assert "the largest value allowed" in choice.reason


def test_values_are_rounded_up():
    assert rounded_up(0.2, 0.45) == 0.2
    assert rounded_up(0.2000001, 0.45) == 0.21
    assert rounded_up(0.6, 0.45) == 0.45
