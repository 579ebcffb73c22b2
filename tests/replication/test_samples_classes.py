import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal

from replication.samples import extreme_flips, logistic_labels, random_flips

PARAMS = np.array([0.3, 1.0, -0.5])


def test_clean_labels_follow_the_model():
    endog, exog = logistic_labels(np.random.default_rng(0), 20_000, PARAMS)
    assert_allclose(sm.Logit(endog, exog).fit(disp=0).params, PARAMS, atol=0.06)


def test_random_flips_are_the_first_rows():
    clean, _ = logistic_labels(np.random.default_rng(0), 200, PARAMS)
    endog, _ = random_flips(np.random.default_rng(0), 200, PARAMS, 0.1)
    assert_array_equal(endog[:20], 1 - clean[:20])
    assert_array_equal(endog[20:], clean[20:])


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_extreme_flips_are_improbable_labels_of_the_most_extreme_rows(share):
    clean, design = logistic_labels(np.random.default_rng(0), 1000, PARAMS)
    endog, exog = extreme_flips(np.random.default_rng(0), 1000, PARAMS, share)
    bad, linear = int(share * 1000), exog @ PARAMS
    assert (np.diff(np.abs(linear)) <= 0).all()
    assert_array_equal(endog[:bad], linear[:bad] < 0)
    order = np.argsort(-np.abs(design @ PARAMS))
    assert_array_equal(endog[bad:], clean[order][bad:])
    assert_array_equal(exog, design[order])
