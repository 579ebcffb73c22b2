"""Designs of any rank and scale."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core.design import Design, solve_gram
from rrmstats.core.linear import LinearProblem


def design(n=200, k=4):
    return np.random.default_rng(1).standard_normal((n, k))


def collinear():
    exog = design()
    return np.c_[exog, exog[:, 0] - 2 * exog[:, 1]]


DESIGNS = {
    "plain": design(),
    "collinear": collinear(),
    "zero column": np.c_[design(), np.zeros(200)],
    "near collinear": np.c_[design(), design()[:, 0] + 1e-6 * design(k=5)[:, 4]],
    "scales": design() * [1.0, 1e-12, 1e12, 1e3],
    "far from the origin": design() + np.array([0.0, 1e7, 0.0, 0.0]),
    "huge": design() * [1.0, 1e150, 1e-150, 1.0],
    "collinear and huge": collinear() * 1e150,
    "one column": np.full((5, 1), 3.0),
    "fewer rows than columns": design(3, 4),
}


@pytest.mark.parametrize("exog", DESIGNS.values(), ids=DESIGNS)
def test_design_keeps_the_fit_of_least_norm(exog):
    target = np.random.default_rng(2).standard_normal(len(exog))
    sound = Design(exog)
    basis = sound.exog
    uniform = np.full(len(exog), 1 / len(exog))
    theta = LinearProblem(target, basis).weighted_least_squares(uniform, target)
    params = sound.to_params(theta)
    assert_allclose(sound.from_params(params), theta, rtol=1e-6, atol=1e-12)
    unit = np.abs(exog).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    reference = np.linalg.lstsq(exog / unit, target, rcond=None)[0]
    assert_allclose(basis @ theta, (exog / unit) @ reference, atol=1e-8)
    if np.ptp(np.log10(unit)) < 1:  # pinv itself fails on columns of different scale
        expected = np.linalg.pinv(exog / unit.max()) @ target / unit.max()
        scale = np.abs(expected).max()
        assert_allclose(params / scale, expected / scale, atol=1e-8)
    else:
        assert_allclose(params * unit, reference, rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "changed"),
    [("plain", False), ("one column", False), ("collinear", True), ("near collinear", True)],
)
def test_a_good_design_is_left_alone(name, changed):
    sound = Design(DESIGNS[name])
    assert (sound.back is not None) == changed
    assert (sound.exog is DESIGNS[name]) != changed
    assert np.linalg.cond(sound.exog) < 1e4


@pytest.mark.parametrize("exog", [design(), design() * [1, 1e-9, 1e9, 1]], ids=["plain", "scales"])
def test_solve_gram(exog):
    right = np.arange(1.0, 5.0)
    solution, sound = solve_gram(exog.T @ exog, right)
    assert sound
    unit = np.abs(exog).max(axis=0)
    scaled = exog / unit
    assert_allclose(solution * unit, np.linalg.solve(scaled.T @ scaled, right / unit), rtol=1e-9)


def test_solve_gram_marks_singular_systems_of_a_batch():
    good, bad = design(), collinear()[:, [0, 1, 2, 4]]
    zero = good * [1, 1, 1, 0]
    grams = np.array([exog.T @ exog for exog in (good, bad, good, zero)])
    solution, sound = solve_gram(grams, np.ones((4, 4)))
    assert sound.tolist() == [True, False, True, False]
    assert_allclose(solution[0], np.linalg.solve(grams[0], np.ones(4)))
    assert_allclose(solution[2], solution[0])
