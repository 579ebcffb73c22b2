"""Lepski's rule on rungs whose agreement is known, and its tests on simulated moves."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest

from rrmstats.core.ladder import (
    GIVES_UP,
    Rung,
    climb,
    degrees_of_freedom,
    equal_pvalue,
    growth_pvalue,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Marked(Rung):
    mark: str = ""


def rung(order):
    return Marked(
        order=order,
        efficiency=1 / order,
        params=np.array([order]),
        scale=1.0,
        eps_hat=0.0,
        mark=f"at {order}",
    )


def climbed(pvalues, level=1e-4):
    """Climb five rungs; `pvalues` maps pairs of orders (new, earlier) to their p-value."""
    started = []

    def fit(order, last):
        started.append(last.order)
        return rung(order)

    ladder = climb(
        rung(5.0),
        [4.0, 3.0, 2.0, 1.0],
        fit,
        lambda a, b: pvalues.get((a.order, b.order), 1.0),
        level,
    )
    return ladder, started


def test_all_agree():
    ladder, started = climbed({(3.0, 4.0): 0.01})
    assert ladder.best.order == 1.0 and ladder.refused is None
    assert started == [5.0, 4.0, 3.0, 2.0]
    assert np.isnan(ladder.rungs[0].pvalue)
    assert ladder.rungs[2].pvalue == 0.01
    assert ladder.best.mark == "at 1.0"


def test_stops_below_a_rung_that_disagrees_with_any_earlier_one():
    ladder, started = climbed({(2.0, 5.0): 1e-5})
    assert ladder.best.order == 3.0 and ladder.refused.order == 2.0
    assert ladder.refused.pvalue == 1e-5
    assert len(started) == 3, "nothing is fitted after a rung that was refused"


@pytest.mark.parametrize("bad", [0.0, np.nan])
def test_keeps_the_first_step_where_the_next_disagrees_or_fails(bad):
    ladder, _ = climbed({(4.0, 5.0): bad})
    assert ladder.chosen == 0 and ladder.best.order == 5.0


@pytest.mark.parametrize("pvalue", [1.0, 0.0])
def test_refuses_a_rung_that_gives_up_too_many_rows(pvalue):
    """It says so where that is the only reason."""
    ladder = climb(
        rung(5.0),
        [4.0, 3.0],
        lambda order, last: replace(rung(order), spent=1e-5 if order == 3.0 else 1e-3),
        lambda a, b: pvalue if a.order == 3.0 else 1.0,
    )
    assert ladder.best.order == 4.0 and ladder.refused.order == 3.0
    assert ladder.reason == (GIVES_UP if pvalue else "")


def test_pvalues_of_chance_are_uniform():
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0.0, 0.0], [2.0, 0.5, 0.0], [-1.0, 0.3, 3.0]])
    found = []
    for _ in range(300):
        moves = rng.standard_normal((200, 3)) @ root.T / 200
        found.append(equal_pvalue(moves.sum(axis=0), moves, None, 200.0))
    assert kstest(found, "uniform").pvalue > 0.01


def test_growth_is_one_sided_and_allows_for_more_variance():
    moves = np.full(100, 0.1)
    assert_allclose(growth_pvalue(0.0, moves, None, 1e9), 0.5)
    assert_allclose(growth_pvalue(1.959964, moves, None, 1e9), 0.025, rtol=1e-4)
    assert growth_pvalue(-3.0, moves, None, 1e9) > 0.99
    assert_allclose(growth_pvalue(2 * 1.959964, moves, None, 1e9, more=3.0), 0.025, rtol=1e-4)
    assert growth_pvalue(1.0, np.zeros(3), None, 10.0) == 1.0


def test_counts_stand_for_repeated_rows():
    rng = np.random.default_rng(2)
    moves, counts = rng.standard_normal((30, 2)), rng.integers(1, 4, 30).astype(float)
    repeated = np.repeat(moves, counts.astype(int), axis=0)
    difference = np.array([3.0, -5.0])
    assert_allclose(
        equal_pvalue(difference, moves, counts, 9.0), equal_pvalue(difference, repeated, None, 9.0)
    )
    one, many = moves[:, 0], repeated[:, 0]
    assert_allclose(growth_pvalue(4.0, one, counts, 9.0), growth_pvalue(4.0, many, None, 9.0))
    assert_allclose(degrees_of_freedom(one, counts), degrees_of_freedom(many, None))


def test_a_difference_without_variance_in_some_coordinate():
    moves = np.c_[np.linspace(-1, 1, 50), np.zeros(50)]
    assert 0 < equal_pvalue(np.array([1.0, 0.0]), moves, None, 50.0) < 1


def test_degrees_of_freedom_are_those_of_gaussian_and_of_few_large_moves():
    rng = np.random.default_rng(3)
    assert_allclose(degrees_of_freedom(rng.standard_normal(20_000), None), 20_000, rtol=0.05)
    few = np.r_[np.full(5, 10.0), np.zeros(995)]
    assert degrees_of_freedom(few, None) < 12
