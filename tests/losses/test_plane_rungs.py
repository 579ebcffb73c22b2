"""The ladder of a subspace: distances between planes, and groups that turn a first step."""

from types import SimpleNamespace

import numpy as np
from numpy.testing import assert_allclose

from rrmstats import RRMPCA
from rrmstats.losses.plane_rungs import core_moments, plane_distance


def plane(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    return SimpleNamespace(point=rng.standard_normal(4), basis=basis)


def test_distances_between_planes_are_means_over_rows():
    rng = np.random.default_rng(0)
    data, weights = rng.standard_normal((50, 4)), rng.uniform(0, 1, 50)
    one, two = plane(1), plane(2)
    seen = one.point + (data - one.point) @ one.basis @ one.basis.T
    apart = seen - two.point
    apart = apart - apart @ two.basis @ two.basis.T
    expected = weights @ (apart**2).sum(axis=1) / weights.sum()
    assert_allclose(plane_distance(one, two, core_moments(data, weights)), expected)
    assert_allclose(plane_distance(one, one, core_moments(data, weights)), 0, atol=1e-20)


def error(loadings):
    return np.linalg.norm(loadings @ loadings.T - np.diag([1.0, 1, 0, 0]))


def test_a_group_that_turned_the_first_step_does_not_turn_the_second():
    """40 % of the rows at one far place, with eps_bar = 0.4: some first steps pass through it."""
    first, second = [], []
    for seed in range(12):
        x = np.random.default_rng(seed).standard_normal((200, 4)) * [3, 2, 0.5, 0.5]
        x[:80] += 1e3
        res = RRMPCA(x, 2, 0.4).fit(efficiency=0.95)
        first.append(error(res.first_step.loadings))
        second.append(error(res.loadings))
    assert max(first) > 0.4
    assert max(second) < 0.15


def test_rungs_show_the_eigenvalues_and_the_noise():
    x = np.random.default_rng(0).standard_normal((300, 5)) * [4, 3, 1, 1, 1]
    x[:30] += 15
    res = RRMPCA(x, 2, 0.2).fit(efficiency=0.95)
    ladder = res.ladder
    assert_allclose(ladder.loc[0, ["comp_1", "comp_2"]].astype(float), res.first_step.eigenvals)
    chosen = ladder[ladder.chosen].iloc[0]
    assert_allclose([chosen.comp_1, chosen.comp_2], res.eigenvals)
    assert_allclose(ladder["comp_1"], 16, rtol=0.35)
    assert_allclose(ladder["scale"], 1, rtol=0.25)
    assert (ladder["order"].diff().dropna() <= 0).all()
