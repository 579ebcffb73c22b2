"""Steps to a root: which of them are halved."""

import numpy as np
import pytest

from rrmstats.core.newton import damped_root


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(0.06, id="one direction, shrinking slowly"),
        pytest.param(1.0, id="at once"),
        pytest.param(2.5, id="past the root and beyond"),
    ],
)
def test_steps_that_are_a_part_of_the_way_or_too_long_arrive(part):
    """Only steps that turn back are halved: those in one direction would hardly move."""

    def step(place):
        return -part * place, float(np.linalg.norm(place))

    start = np.array([3.0, -1.0])
    place, size = damped_root(start, step, lambda x, s: x + s, 1e-6, 260)
    assert size <= 1e-6
    assert np.abs(place).max() <= 1e-6
