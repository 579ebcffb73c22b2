"""Rungs of location and scatter: fixed points, frames, and what makes a ladder stop."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats import RRMCov
from rrmstats.core.search import global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.gaussian import Core
from rrmstats.losses.scatter import ScatterProblem
from rrmstats.losses.scatter_ground import squared, whiten
from rrmstats.losses.scatter_rungs import (
    collapsed,
    consistent_scatter,
    first_order,
    first_scatter,
    restarted,
    scatter_ladder,
)
from rrmstats.losses.sizes import Sample, budget_order, tilts


def rows(n=200, d=3, share=0.1, shift=10.0, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, d)) @ np.diag(1.0 + np.arange(d))
    x[: int(share * n)] += shift
    return x


def climbed(x, setting=None, efficiency=0.95, demean=True):
    setting = setting or Setting(0.3)
    problem = ScatterProblem(x, demean)
    solution = global_minimum(problem, setting)
    first = first_scatter(problem, solution, Sample.of(setting, len(x)))
    return problem, scatter_ladder(problem, first, setting, efficiency)


@pytest.mark.parametrize("demean", [True, False])
def test_a_rung_is_a_fixed_point(demean):
    x = rows()
    problem, ladder = climbed(x, demean=demean)
    sample = Sample.of(Setting(0.3), 200)
    for rung in ladder.rungs[1:]:
        assert rung.converged
        square = squared(whiten(x, rung.location, rung.scatter))
        w = tilts(square, rung.order)
        w /= w.sum()
        theta = problem.weighted_fit(w)
        factor = rung.order * Core(3, int(demean)).overfit(
            rung.order, sample.good(square, rung.order, 3)
        )
        assert_allclose(rung.location, problem.split(theta)[0], atol=1e-6)
        assert_allclose(rung.scatter, factor * problem.split(theta)[1], rtol=1e-6, atol=1e-6)
        assert_allclose(rung.weighted * rung.factor, rung.scatter)
        losses = problem.losses(theta)
        assert_allclose(np.log(w[50] / w[60]), (losses[60] - losses[50]) / rung.lambda_, rtol=1e-4)


def test_stretched_steps_end_where_plain_ones_do():
    x = rows()
    fast, plain = (climbed(x, Setting(0.3, accelerate=a))[1] for a in (True, False))
    for one, two in zip(fast.rungs[1:], plain.rungs[1:], strict=True):
        assert_allclose(one.scatter, two.scatter, rtol=1e-6, atol=1e-6)


def test_few_iterations_do_not_converge():
    ladder = climbed(rows(), Setting(0.3, maxiter=2))[1]
    assert not ladder.best.converged


def test_ladders_are_affine_equivariant():
    x, rng = rows(), np.random.default_rng(1)
    turn, shift = rng.standard_normal((3, 3)), rng.standard_normal(3)
    res, moved = (RRMCov(z, 0.3).fit(efficiency=0.95) for z in (x, x @ turn + shift))
    assert_allclose(moved.mean, res.mean @ turn + shift, rtol=1e-6)
    cov = turn.T @ res.cov @ turn
    assert_allclose(moved.cov, cov, rtol=1e-6, atol=1e-6 * np.abs(cov).max())
    assert_allclose(moved.weights, res.weights, atol=1e-9)
    assert_allclose(moved.eps_hat, res.eps_hat, atol=1e-7)
    ratio = np.exp(2 * np.linalg.slogdet(turn)[1] / 3)
    assert_allclose(moved.ladder["scale"], ratio * res.ladder["scale"], rtol=1e-6)


def test_a_ladder_stops_before_bad_rows_come_back():
    """A group three standard deviations off: the classical end would take it in."""
    x = np.random.default_rng(3).standard_normal((2000, 2))
    x[:300] = 0.3 * x[:300] + [4.5, 0.0]
    ladder = climbed(x, Setting(0.35), efficiency=0.99)[1]
    assert ladder.refused is not None
    assert ladder.refused.pvalue < 1e-4
    assert 0 < ladder.chosen < len(ladder.rungs) - 1
    clean = np.cov(x[300:].T)
    assert_allclose(ladder.best.reported, clean, atol=0.35)


def test_clean_rows_go_all_the_way():
    for seed in range(5):
        ladder = climbed(rows(share=0.0, seed=seed))[1]
        assert ladder.refused is None
        assert_allclose(ladder.best.efficiency, 0.95)


def test_no_rungs_where_the_first_step_is_efficient_enough():
    ladder = climbed(rows(), Setting(0.001), efficiency=0.8)[1]
    assert len(ladder.rungs) == 1
    assert ladder.best.efficiency > 0.8


def test_the_order_of_a_first_step():
    """Clean rows have that of the budget; uniform weights have order one."""
    most = budget_order(0.2, 3)
    assert_allclose(first_order(2 / (1 - 1 / most), 0.2, 3), most)
    assert first_order(1.0, 0.2, 3) == most
    assert_allclose(first_order(1e9, 0.2, 3), 1, atol=1e-8)


def test_no_contamination_keeps_the_size():
    x = rows()
    problem, setting = ScatterProblem(x), Setting(0.0)
    solution = global_minimum(problem, setting)
    found = consistent_scatter(problem, solution, Sample.of(setting, 200))
    assert_allclose(found, np.cov(x.T, bias=True))


def test_collapsed_fits_start_again():
    """Ten axes and forty rows: half of the rows lie near some hyperplane."""
    x = np.random.default_rng(0).standard_normal((40, 10))
    problem, setting = ScatterProblem(x), Setting(0.4)
    sample = Sample.of(setting, 40)
    first = first_scatter(problem, global_minimum(problem, setting), sample)
    assert np.linalg.eigvalsh(first.reported)[0] < 0.05
    assert collapsed(problem, first, sample)
    again = restarted(problem, setting, 0.95)
    assert np.linalg.eigvalsh(again.reported)[0] > 0.1
    wide = ScatterProblem(np.random.default_rng(0).standard_normal((400, 2)))
    sample = Sample.of(setting, 400)
    sound = first_scatter(wide, global_minimum(wide, setting), sample)
    assert not collapsed(wide, sound, sample)
    assert collapsed(wide, replace(sound, scatter=sound.scatter * np.diag([1, 1e-3])), sample)
