"""Subspaces at one order: distances, degrees of freedom and fixed points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core.search import global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.off_plane import degrees_of_freedom, off_distances
from rrmstats.losses.planes import (
    Site,
    first_plane,
    fixed_plane,
    resized_plane,
    reweighted,
    stable_order,
    turned,
)
from rrmstats.losses.sizes import Sample, tilts
from rrmstats.losses.subspace import SubspaceProblem


def rows(n=200, spread=(3, 2, 1, 1, 1), share=0.1, shift=10.0, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, len(spread))) * spread
    x[: int(share * n)] += shift
    return x


def first_of(x, setting, q=2):
    problem = SubspaceProblem(x, q)
    plane = first_plane(problem, global_minimum(problem, setting), setting, x.shape[1] - q)
    site = Site(problem, Sample.of(setting, len(x)), setting, plane.freedom)
    return site, plane


@pytest.mark.parametrize("demean", [True, False])
def test_leverages_are_those_of_a_regression(demean):
    """Coordinates off the subspace are regressed on the scores, under the weights."""
    x, tilt = rows(30), np.random.default_rng(1).uniform(0.2, 1, 30)
    problem, sample = SubspaceProblem(x, 2, demean), Sample.of(Setting(0.2), 30)
    point = tilt @ x / tilt.sum() * demean
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 2)))[0]
    square, free = off_distances(problem, point, basis, tilt, sample)
    design = (x - point) @ basis
    design = np.c_[np.ones(30), design] if demean else design
    hat = design @ np.linalg.solve(design.T @ (tilt[:, None] * design), design.T)
    assert_allclose(free, square / (1 - tilt * np.diag(hat)))
    assert_allclose(square, ((x - point) ** 2).sum(1) - (((x - point) @ basis) ** 2).sum(1))


def box(spread, n, tilt_order=None, d=None):
    """Return degrees of freedom found off the first axis."""
    d = d or len(spread)
    x = np.random.default_rng(0).standard_normal((n, d)) * spread
    problem, sample = SubspaceProblem(x, 1), Sample.of(Setting(0.2), n)
    basis = np.eye(d)[:, :1]
    square = (x[:, 1:] ** 2).sum(axis=1)
    tilt = np.ones(n) if tilt_order is None else tilts(square, tilt_order)
    precision = 0.0 if tilt_order is None else tilt_order - 1
    return degrees_of_freedom(problem, (np.zeros(d), basis), tilt, precision, sample, d - 1)


def test_degrees_of_freedom():
    assert_allclose(box([5, 1, 1, 1, 1], 4000), 4, rtol=0.02)
    assert_allclose(box([5, 2, 1, 1], 4000), 36 / 18, rtol=0.05)
    assert_allclose(box([5, 2, 1, 1], 8000, tilt_order=1.1), 36 / 18, rtol=0.1)
    assert box([5, *np.ones(199)], 40) > 100
    assert_allclose(box([5, 1, 1, 0, 0], 500), 2, rtol=0.05)


def test_rows_without_weight_take_no_degrees_of_freedom():
    """They take dimensions from the span of the others, which wide data do not show to be flat."""
    x = np.random.default_rng(0).standard_normal((60, 400)) * np.r_[30.0, np.ones(399)]
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    problem, tilt = SubspaceProblem(left * values, 1), np.r_[np.full(10, 1e-40), np.ones(50)]
    place, sample = (np.zeros(60), np.eye(60)[:, :1]), Sample.of(Setting(0.2), 60)
    assert degrees_of_freedom(problem, place, tilt, 0.0, sample, 399) > 150


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_first_step_knows_the_noise(share):
    """Four standard errors of the variance of 3 * 320 coordinates, of half their worth."""
    _, plane = first_of(rows(400, share=share), Setting(0.3))
    assert_allclose(plane.reported * plane.freedom, 3, rtol=4 * np.sqrt(2 / 480))
    assert_allclose(plane.freedom, 3, rtol=0.1)
    assert_allclose(plane.eps_hat, share, atol=0.06)


def test_a_rung_is_a_fixed_point():
    site, first = first_of(rows(), Setting(0.3))
    rung = fixed_plane(site, 1.4, first, None)
    assert rung.converged
    losses = site.problem.losses(site.problem.join(rung.point, rung.basis))
    w = np.exp(-losses / rung.lambda_)
    point, basis = site.problem.split(site.problem.weighted_fit(w / w.sum()))
    assert_allclose(basis @ basis.T, rung.basis @ rung.basis.T, atol=1e-6)
    off = point - rung.point
    assert_allclose(off - rung.basis @ (rung.basis.T @ off), 0, atol=1e-6)
    plain = fixed_plane(site._replace(setting=Setting(0.3, accelerate=False)), 1.4, first, None)
    assert_allclose(plain.noise, rung.noise, rtol=1e-6)
    shown = resized_plane(site, rung, 0.95, 1.6)
    assert_allclose(shown.reported, 1, rtol=0.25)
    assert shown.size_order > rung.order or shown.size == pytest.approx(1, rel=1e-6)


def test_turns_lead_from_one_span_to_another():
    rng = np.random.default_rng(0)
    one, two = (np.linalg.qr(rng.standard_normal((5, 2)))[0] for _ in range(2))
    turn = turned(one, two)
    assert_allclose(one.T @ turn, 0, atol=1e-12)
    there = np.linalg.qr(one + turn)[0]
    assert_allclose(there @ there.T, two @ two.T, atol=1e-12)


def test_rows_of_equal_weight_stand_for_themselves():
    sample = Sample.of(Setting(0.2), 10)
    half = reweighted(sample, np.r_[np.ones(5), np.zeros(5)])
    assert_allclose(half.total, 5)
    assert_allclose(half.share.sum(), 1)


def test_wide_data_bound_the_order():
    def order(n, freedom):
        problem = SubspaceProblem(rows(n), 2)
        return stable_order(Site(problem, Sample.of(Setting(0.2), n), Setting(0.2), freedom))

    assert order(40, 100.0) < 1.03
    assert order(4000, 3.0) > 1.5
