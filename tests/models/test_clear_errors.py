"""Data that used to end in an obscure error, or in none."""

import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from model_table import frame
from pandas.testing import assert_series_equal
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.tools.sm_exceptions import ModelWarning

import rrmstats
from rrmstats import RRMOLS, RRMCov, RRMLogit

N = 90
X = np.random.default_rng(0).standard_normal(N)
EXOG = np.c_[np.ones(N), X]
TEXT = np.where(X > 0, "yes", "no")
FRAME = dd.from_pandas(pd.DataFrame({"y": X, "a": X + 1, "s": TEXT}), npartitions=3)
CHUNKED = da.from_array(X, chunks=30)
DESIGN = da.from_array(EXOG, chunks=(30, 2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_separated_classes():
    model = OrderedModel(np.digitize(X, [-0.5, 0.5]), X[:, None], distr="logit")
    with pytest.raises(ValueError, match=r"OrderedModel has no finite fit .* separate"):
        rrmstats.robustify(model, 0.1).fit(steps=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rrmstats.custom(lambda theta: (CHUNKED - theta[0]) ** 2, [0.0], 0.1),
        lambda: rrmstats.custom(
            lambda theta: (X - theta[0]) ** 2, [0.0], 0.1, freq_weights=da.ones(N)
        ),
        lambda: rrmstats.robust_weights(CHUNKED**2, 0.1),
        lambda: rrmstats.robust_weights(X**2, 0.1, da.ones(N)),
    ],
)
def test_own_losses_are_in_memory(call):
    with pytest.raises(TypeError, match=r"must be in memory .* got a Dask Array; give .*compute"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RRMLogit(da.from_array(TEXT, chunks=30), DESIGN, 0.1, level="yes"), "endog must"),
        (lambda: RRMLogit(FRAME["s"], FRAME[["a"]], 0.1), r"endog must be numeric, got .*'yes'"),
        (lambda: RRMOLS(FRAME["y"], FRAME[["a", "s"]], 0.1), "exog has non-numeric columns: s; "),
        (lambda: RRMCov(da.from_array(np.c_[TEXT, TEXT], chunks=30), 0.1), "endog must be num"),
        (
            lambda: RRMOLS(CHUNKED, da.from_array(EXOG.astype("O").astype("U"), chunks=30), 0.1),
            "exog must be numeric",
        ),
        (
            lambda: RRMCov(da.from_array(np.c_[TEXT, TEXT].astype(object), chunks=30), 0.1),
            r"values that are not numbers \(could not convert .*; convert them, or use a formula",
        ),
        (
            lambda: RRMOLS(CHUNKED[:80], DESIGN, 0.1),
            "the same number of rows, but endog has 80, exog has 90",
        ),
    ],
)
def test_collections_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_subset_takes_what_is_given_for_all_rows():
    data = frame()
    data["time"] = 1.0 + np.arange(len(data)) % 3
    counts, sites = 1.0 + np.arange(len(data)) % 2, np.arange(len(data)) // 8
    mask = (np.arange(len(data)) % 5 > 0) & (data["x"] < 3.5).to_numpy()

    def fitted(data, rows, subset=None):
        return rrmstats.poisson(
            "count ~ x",
            data,
            0.2,
            exposure=data["time"],
            offset=data["time"].to_numpy() / 10,
            freq_weights=counts[rows],
            groups=sites[rows],
            subset=subset,
        ).fit(steps=1)

    expected = fitted(data[mask], mask)
    for subset in (mask, data.index[mask]):
        found = fitted(data, slice(None), subset)
        assert_series_equal(found.params, expected.params)
        assert_series_equal(found.weights, expected.weights)
    variables = rrmstats.cov("~ x + y", data, 0.2, freq_weights=counts, subset=mask).fit(steps=1)
    again = rrmstats.cov("~ x + y", data[mask], 0.2, freq_weights=counts[mask]).fit(steps=1)
    assert_series_equal(variables.params, again.params)


def test_an_automatic_bound_is_not_to_be_lowered():
    with pytest.warns(ModelWarning, match="chosen automatically, .*noise. Drop predictors or add"):
        RRMOLS(X[:5], EXOG[:5], "auto").fit(steps=1)
    with pytest.warns(ModelWarning, match=r"eps_bar=0.2 leaves .*noise. Lower eps_bar"):
        RRMOLS(X[:5], EXOG[:5], 0.2).fit(steps=1)
    message = "there are 3 observations for 4 parameters; drop predictors or add data"
    with pytest.raises(ValueError, match=message):
        RRMCov(np.random.default_rng(0).standard_normal((3, 3)), "auto").fit(steps=1)


def test_warnings_name_the_line_of_the_user():
    for make in (
        lambda: RRMOLS(X, EXOG, 0.6),
        lambda: rrmstats.robustify(sm.Poisson((X > 0).astype(int), EXOG), 0.6),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make().fit(stability=False, steps=1)
        files = {each.filename for each in caught if "majority" in str(each.message)}
        assert files == {__file__}
