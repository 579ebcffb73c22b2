import numpy as np
import pytest

from replication.errors import angle_error, axis_error, cov_error, linear_error
from replication.samples import TRUE_COV


def test_errors_by_hand():
    assert linear_error(np.array([1.0, 1, 1, 3])) == pytest.approx(1)
    assert angle_error(np.array([-2.0, 2, 2])) == pytest.approx(0, abs=1e-5)
    assert angle_error(np.array([1.0, 1, 0])) == pytest.approx(90)
    assert axis_error(np.array([-1.0, -2])) == pytest.approx(0)
    assert cov_error(2 * TRUE_COV) == pytest.approx(1)
