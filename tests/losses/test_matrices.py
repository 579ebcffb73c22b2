"""Weighted medians count rows as often as their weights say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.losses.matrices import weighted_median


@pytest.mark.parametrize("n", [7, 8, 31])
def test_medians_of_repeated_rows(n):
    rng = np.random.default_rng(n)
    values, counts = rng.standard_normal((n, 3)), rng.integers(0, 4, n)
    repeated = np.median(np.repeat(values, counts, axis=0), axis=0)
    assert_allclose(weighted_median(values, counts.astype(float)), repeated)
    assert_allclose(weighted_median(values[:, 0], counts / counts.sum()), repeated[0])
    assert_allclose(weighted_median(values, np.full(n, 0.3)), np.median(values, axis=0))
