"""Samples drawn with replacement, as counts of the rows."""

import numpy as np
from inference_cases import bootstrapped
from numpy.testing import assert_allclose, assert_array_equal

from rrmstats import RRMOLS
from rrmstats.models.bootstrap import draw_counts


def test_strata_keep_their_counts():
    strata = np.repeat([0, 1, 2], [10, 20, 30])
    counts = draw_counts(60, 40, np.random.default_rng(0), strata=strata)
    for stratum, size in enumerate((10, 20, 30)):
        assert_array_equal(counts[:, strata == stratum].sum(axis=1), size)
    assert (counts.max(axis=0) > 1).all()
    # Where rows of a stratum are alike, so are all samples.
    model = RRMOLS(strata.astype(float), np.ones(60), 0.0)
    assert_allclose(bootstrapped(model, strata=strata.astype(str)).bse, 0, atol=1e-12)
    assert bootstrapped(model).bse[0] > 0.05


def test_samples_of_weighted_rows_are_as_large_as_the_data():
    prior = np.array([1.0, 2.0, 3.0, 0.0])
    counts = draw_counts(4, 2000, np.random.default_rng(0), prior)
    assert_array_equal(counts.sum(axis=1), 6)
    assert_allclose(counts.mean(axis=0), prior, atol=0.15)
