"""Derivatives by differences, and units of parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.losses.finite_differences import (
    KINK_STEP,
    differences,
    has_kinks,
    parameter_units,
    second_differences,
)


def curve(theta):
    return np.array([np.exp(theta[0]) * theta[1], theta[1] ** 3])


def test_slopes_are_those_of_calculus():
    at = np.array([0.3, -1.2])
    wanted = [[np.exp(0.3) * -1.2, 0.0], [np.exp(0.3), 3 * 1.44]]
    assert_allclose(differences(curve, at, np.ones(2)), wanted, rtol=1e-9, atol=1e-10)


def test_at_the_edge_of_a_domain_slopes_are_one_sided():
    found = differences(lambda t: np.array([t[0] ** 1.5, 2 * t[0]]), np.zeros(1), np.ones(1))
    assert_allclose(found, [[0.0, 2.0]], atol=1e-2)
    below = differences(lambda t: np.sqrt(-t), np.zeros(1) - 1e-8, np.ones(1))
    assert np.isfinite(below).all()


def test_second_differences_are_the_hessian():
    found = second_differences(
        lambda t: float(np.exp(t[0]) * t[1] ** 2), np.array([0.5, 2.0]), np.ones(2)
    )
    wanted = np.exp(0.5) * np.array([[4.0, 4.0], [4.0, 2.0]])
    assert_allclose(found, wanted, rtol=1e-5)


def test_units_undo_the_scale_of_a_parameter():
    scales = np.array([1e-6, 1.0, 1e6])

    def curvature(theta, unit):
        return scales**-2.0

    assert_allclose(parameter_units(curvature, np.zeros(3)), scales)


@pytest.mark.parametrize("distance", np.linspace(0, 0.9, 10))
def test_a_single_kink_is_found_wherever_it_is(distance):
    place = distance * KINK_STEP

    def losses(theta):
        return np.abs(np.array([place, 50.0]) - theta[0])

    assert has_kinks(losses, np.zeros(1), np.ones(1), np.full(2, 0.5))
    assert not has_kinks(lambda t: np.cosh(losses(t)), np.zeros(1), np.ones(1), np.array([1, 0]))
