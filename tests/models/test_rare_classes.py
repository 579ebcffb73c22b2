"""Classes that are rare by their frequency weights: a row of weight 30 is 30 rows."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import rrmstats

N = 240
RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"x": RNG.standard_normal(N)})
DATA["y"] = (RNG.random(N) < expit(DATA["x"])).astype(float)
DATA["w"] = np.where(DATA["y"] > 0, 1.0, 30.0)
EPS_BAR = 0.005


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_weights_count_rows(penalty):
    again = DATA.loc[DATA.index.repeat(DATA["w"].astype(int))]
    expected = rrmstats.logit("y ~ x", again, EPS_BAR, penalty=penalty).fit(
        stability=False, steps=1
    )
    model = rrmstats.logit("y ~ x", DATA, EPS_BAR, penalty=penalty, freq_weights=DATA["w"])
    assert_allclose(model.fit(stability=False, steps=1).params, expected.params, rtol=1e-6)


def test_weights_count_rows_in_partitions():
    parts = dd.from_pandas(DATA, npartitions=3)
    model = rrmstats.logit("y ~ x", DATA, EPS_BAR, freq_weights=DATA["w"])
    res = rrmstats.logit("y ~ x", parts, EPS_BAR, freq_weights=parts["w"]).fit(
        stability=False, steps=1
    )
    assert_allclose(res.params, model.fit(stability=False, steps=1).params, rtol=1e-6)
