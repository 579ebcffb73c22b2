"""Mixtures of distances off a subspace: densities, axes, and how probabilities change."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from rrmstats.core.blocks import CHUNK
from rrmstats.laws.gaussian import CONTAMINATED, Rows, em_step, seen, started
from rrmstats.losses.components import (
    PlaneRows,
    SubspaceProblem,
    distinct_axes,
    probabilities_at,
    radial_slopes,
    settled,
)

SPREAD = np.array([5.0, 4.0, 2.0, 1.0, 1.0])


def rows_of(data, own, codim=3):
    n = len(data)
    return PlaneRows(
        data, np.ones((n, 1)), np.ones(n), q=2, codim=codim, own=own,
        risk=lambda point, basis: 0.0, most_risk=1.0,
    )  # fmt: skip


def sample(n=400, bad=60, seed=0, shift=6.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 5)) * SPREAD
    x[:bad, 3:] += shift
    return x


def fitted(own=1, shift=6.0):
    rows = rows_of(sample(shift=shift), own)
    good = rows.data[60:]
    start = good.mean(axis=0)[None], np.cov(good.T)
    return rows, settled(rows, started(rows, [start], [CONTAMINATED[1]], 0.3), 0.3)[0]


@pytest.mark.parametrize("own", [0, 1])
def test_distances_are_those_of_a_normal_distribution_off_the_plane(own):
    rows = rows_of(sample(), own)
    scatter = np.diag(SPREAD**2)
    off = np.array([4.0, 1.0, 1.0]) if own else np.full(3, 2.0)
    off = off * 400 / 398
    here = rows.measured(rows.data[None], scatter[None])
    density = -0.5 * (here.square[0] + here.metric.log_det[0] + 3 * np.log(2 * np.pi))
    assert_allclose(
        density, multivariate_normal(np.zeros(3), np.diag(off)).logpdf(rows.data[:, 2:])
    )


def test_a_basis_costs_what_regressions_on_scores_cost():
    rows, rng = rows_of(sample(), 0), np.random.default_rng(1)
    scores = np.linalg.qr(np.c_[np.ones(400), rng.standard_normal((400, 2))])[0] * 20
    regression, weights = Rows(rows.data[:, 2:], scores, np.ones(400)), np.full((1, 400), 0.7)
    scatter = np.diag([50.0, 40.0, 2.0, 1.0, 1.0])
    here, classical = (rows.metric(s[None]).log_det[0] for s in (scatter, rows.classical[1]))
    smaller = np.exp((here - classical) / 3) * regression.classical[1]
    assert_allclose(
        rows.coefficient_costs(weights, scatter[None]),
        regression.coefficient_costs(weights, smaller[None]),
    )


def test_axes_of_their_own_are_those_that_differ():
    assert distinct_axes(np.array([1.05, 1.0, 0.95]), 3, 500.0) == 0
    assert distinct_axes(np.array([4.0, 1.0, 0.95]), 3, 500.0) == 1
    assert distinct_axes(np.array([4.0, 2.0, 1.0]), 3, 500.0) == 2
    assert distinct_axes(np.array([4.0, 1.0, 0.0]), 3, 8.0) == 0


def test_a_cluster_off_the_plane_is_found():
    rows, mixture = fitted()
    good, pull = probabilities_at(rows, mixture)
    assert good[:60].max() < 0.01
    assert good[60:].min() > 0.5
    assert_allclose(pull, good)
    assert_allclose(mixture.share[0, 1, 0], 0.15, atol=1e-3)
    basis = np.linalg.eigh(mixture.scatter[0])[1][:, ::-1][:, :2]
    assert_allclose(np.linalg.norm(basis[:2]) ** 2, 2, atol=0.02)


def test_em_rests_where_it_has_settled():
    rows, mixture = fitted()
    again = em_step(rows, mixture, 0.3)
    assert_allclose(again.scatter, mixture.scatter, rtol=1e-7, atol=1e-8)


def test_slopes_are_those_of_rows_moved_away():
    rows, mixture = fitted(shift=2.5)
    slopes, axes = radial_slopes(rows, mixture), rows.off_axes(mixture.scatter)[1][0]
    off = (rows.data - mixture.coef[0]) @ axes @ axes.T
    ends = [seen(rows_of(rows.data + by * off, 1), mixture).square[0] for by in (0, 1e-3)]
    assert_allclose(ends[1] / ends[0], 1.001**2, rtol=1e-9)
    near = [probabilities_at(rows_of(rows.data + by * off, 1), mixture)[0] for by in (0, 1e-3)]
    assert_allclose(1e-3 * slopes, near[1] - near[0], atol=1e-5)
    assert np.abs(slopes).max() > 0.1


@pytest.mark.parametrize("demean", [True, False])
def test_sums_of_many_rows_are_those_of_all_at_once(demean):
    rng = np.random.default_rng(3)
    problem = SubspaceProblem(rng.standard_normal((CHUNK + 100, 4)), 2, demean)
    theta = problem.weighted_fit(np.full((2, problem.n_obs), 1 / problem.n_obs))
    weights = rng.random((2, problem.n_obs))
    weights[:, ::7] = 0.0
    losses = problem.losses(theta)
    beta = np.array([0.3, 0.0])
    found = problem.tilted_sums(theta, losses, weights, beta)
    gradients = np.array([problem.gradients(each) for each in theta])
    outer = np.einsum("bn,bnk,bnl->bkl", weights, gradients, gradients)
    hessians = np.array([problem.hessian(*each) for each in zip(theta, weights, strict=True)])
    expected = (
        np.einsum("bn,bnk->bk", weights, gradients),
        np.einsum("bn,bnk->bk", weights * losses, gradients),
        hessians - beta[:, None, None] * outer,
    )
    for sums, same in zip(found, expected, strict=True):
        assert_allclose(sums, same, rtol=1e-9, atol=1e-9 * problem.n_obs)
