import numpy as np
import pytest

from replication.figure2 import LEVERAGE


def test_risk_of_figure_2_is_that_of_its_data():
    rng = np.random.default_rng(0)
    y, x = LEVERAGE.sample(rng, 3.0, n=200_000)
    for slope in (0.0, 1.0):
        expected = LEVERAGE.risk(slope, 3.0, LEVERAGE.share)
        assert np.mean((y - slope * x[:, 0]) ** 2) == pytest.approx(expected, rel=0.02)
