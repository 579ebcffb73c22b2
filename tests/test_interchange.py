"""Frames and columns of polars and pyarrow do what those of pandas do."""

import datetime
import decimal
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from model_table import MODELS, VARIABLES, N, frame
from pandas.testing import assert_frame_equal, assert_series_equal

import rrmstats
from rrmstats.interchange import as_pandas, as_values

LEVELS = ["low", "middle", "high"]

KINDS = {
    "whole": [1, 2, 3, 4],
    "whole, missing": [1, None, 3, 4],
    "number": [1.5, None, 2.5, 3.5],
    "text": ["b", "a", "b", "c"],
    "text, missing": ["b", None, "b", "c"],
    "truth": [True, False, True, True],
    "truth, missing": [True, None, False, True],
    "nothing": [None, None, None, None],
    "price": [decimal.Decimal("1.25"), decimal.Decimal("2.5"), None, decimal.Decimal("1")],
    "time": [datetime.datetime(2020, 1, day) for day in (1, 2, 3, 4)],
}


def table():
    """Return a table with labels 0, 1, ...; its first rows are wrong in every response."""
    data = frame().reset_index(drop=True)
    data["size"] = np.array(["low", "middle", "high", "low"] * (N // 4))
    data["site"] = np.arange(N) // 8
    data["time"] = 1.0 + np.arange(N) % 3
    data.loc[11, "x"] = np.nan
    return data


def polars_frame(data):
    return pl.DataFrame({name: pl.Series(data[name].tolist(), nan_to_null=True) for name in data})


def arrow_table(data):
    """Return a table in two chunks, the second of which may be empty."""
    whole = pa.Table.from_pandas(data, preserve_index=False)
    return pa.concat_tables([whole.slice(0, 30), whole.slice(30)])


def arrow_column(values):
    whole = pa.array(values.tolist())
    return pa.chunked_array([whole[:30], whole[30:]])


MAKERS = {
    "polars": (polars_frame, lambda values: pl.Series("given", np.asarray(values).tolist())),
    "pyarrow": (arrow_table, arrow_column),
}


@pytest.fixture(params=MAKERS)
def made(request):
    """Return a function that makes a frame of another package, and one that makes a column."""
    return MAKERS[request.param]


def assert_same_fits(found, expected):
    for name in ("params", "weights", "losses"):
        assert_series_equal(getattr(found, name), getattr(expected, name))
    assert_series_equal(found.outliers(), expected.outliers())
    assert found.params.index.tolist() == expected.params.index.tolist()


def test_formulas(entry, made):
    found = entry.formula(made[0](table()), eps_bar=0.3).fit(n_starts=5, steps=1)
    assert_same_fits(found, entry.formula(table(), eps_bar=0.3).fit(n_starts=5, steps=1))


def test_arrays(entry, made):
    whole = table().dropna()
    expected = entry.array(whole.reset_index(drop=True), eps_bar=0.3).fit(n_starts=5, steps=1)
    model, others = expected.model, {}
    if "family" in model._get_init_kwds():
        others["family"] = model.family
    if hasattr(model, "n_components"):
        others["n_components"] = model.n_components
    if model.exog is None:
        given = [made[0](whole[VARIABLES])]
    else:
        given = [
            made[1](whole[model.endog_names].to_numpy()),
            made[0](sm.add_constant(whole[["x", "z"]])),
        ]
    found = type(model)(*given, eps_bar=0.3, **others).fit(n_starts=5, steps=1)
    assert_same_fits(found, expected)


def test_new_rows(entry, made):
    res = entry.formula(table(), eps_bar=0.3).fit(n_starts=5, steps=1)
    new = table()[12:20].reset_index(drop=True)
    if hasattr(res, "transform"):
        assert_frame_equal(res.transform(made[0](new)), res.transform(new))
    elif hasattr(res, "mahalanobis"):
        assert_series_equal(res.mahalanobis(made[0](new)), res.mahalanobis(new))
    else:
        assert_series_equal(res.predict(made[0](new)), res.predict(new))
        ours, theirs = (res.get_prediction(x).summary_frame() for x in (made[0](new), new))
        assert_frame_equal(ours, theirs)


def test_what_is_given_beside_the_rows(made):
    data, (framed, column) = table(), made
    times, counts = data["time"].to_numpy(), (1 + np.arange(N) % 2).astype(float)
    mask = np.arange(N) != 40

    def fitted(data, make):
        return rrmstats.poisson(
            "count ~ x + z",
            data,
            0.2,
            exposure=make(times),
            offset=make(times / 10),
            freq_weights=make(counts),
            subset=make(mask),
        ).fit(n_starts=5, steps=1)

    found, expected = fitted(framed(data), column), fitted(data, np.asarray)
    assert_same_fits(found, expected)
    new = data[:5]
    ours = found.get_prediction(framed(new), exposure=column(times[:5])).summary_frame()
    assert_frame_equal(ours, expected.get_prediction(new, exposure=times[:5]).summary_frame())


@pytest.mark.parametrize("by_name", [False, True])
def test_groups(made, by_name):
    data, (framed, column) = table(), made
    groups = "site" if by_name else column(data["site"].to_numpy())
    found = rrmstats.ols("y ~ x + C(size)", framed(data), 0.2, groups=groups).fit(
        n_starts=5, steps=1
    )
    expected = rrmstats.ols("y ~ x + C(size)", data, 0.2, groups="site").fit(n_starts=5, steps=1)
    assert_same_fits(found, expected)
    assert_series_equal(found.group_weights, expected.group_weights)


def test_labels_of_pandas_are_not_compared_with_the_numbers_of_other_columns():
    data = table().dropna().sample(frac=1, random_state=1)
    counts = 1 + np.arange(len(data)) % 3
    found = rrmstats.ols("y ~ x", data, 0.2, freq_weights=pl.Series(counts)).fit(
        n_starts=5, steps=1
    )
    expected = rrmstats.ols("y ~ x", data, 0.2, freq_weights=counts).fit(n_starts=5, steps=1)
    assert_series_equal(found.params, expected.params)


def test_functions_of_a_loss(made):
    z, column = table()["y"].to_numpy(), made[1]
    counts = 1.0 + np.arange(N) % 3
    expected = rrmstats.custom(lambda t: (z - t[0]) ** 2, [0.0], 0.2, freq_weights=counts).fit(
        n_starts=5, steps=1
    )
    model = rrmstats.custom(
        lambda t: column((z - t[0]) ** 2), [0.0], 0.2, freq_weights=column(counts)
    )
    res = model.fit(n_starts=5, steps=1)
    np.testing.assert_array_equal(res.params, expected.params)
    assert isinstance(res.weights.index, pd.RangeIndex)
    ours = rrmstats.robust_weights(column(z**2), 0.2, column(counts))
    np.testing.assert_array_equal(ours, rrmstats.robust_weights(z**2, 0.2, counts))


def test_robustify(made):
    data = table().dropna()
    counts, exog = 1.0 + np.arange(len(data)) % 3, sm.add_constant(data[["x"]])
    found = rrmstats.robustify(
        sm.Poisson(data["count"], exog), 0.2, freq_weights=made[1](counts)
    ).fit(n_starts=5, steps=1)
    expected = rrmstats.robustify(sm.Poisson(data["count"], exog), 0.2, freq_weights=counts).fit(
        n_starts=5, steps=1
    )
    assert_series_equal(found.params, expected.params)
    new = exog[:4].reset_index(drop=True)
    np.testing.assert_array_equal(found.predict(made[0](new)), found.predict(new))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [pl.Series, pa.array])
def test_kinds_of_columns(kind, make):
    values = KINDS[kind]
    given = make(kind, values) if make is pl.Series else make(values)
    found = as_pandas(given)
    expected = pd.Series([float(v) if isinstance(v, decimal.Decimal) else v for v in values])
    if kind == "nothing":
        assert found.isna().all()
        return
    assert isinstance(found.index, pd.RangeIndex)
    assert_series_equal(found, expected, check_names=False, check_dtype=kind != "time")
    assert_series_equal(pd.Series(as_values(given)).isna(), expected.isna())


def test_categories_keep_their_levels():
    values = ["high", None, "low", "high"]
    enum = as_pandas(pl.Series("e", values, dtype=pl.Enum(LEVELS)))
    assert enum.cat.categories.tolist() == LEVELS and enum.isna().tolist() == [0, 1, 0, 0]
    other = as_pandas(pl.Series("c", ["zebra", "high"], dtype=pl.Categorical))
    assert other.cat.categories.tolist() == ["high", "zebra"]
    again = as_pandas(pl.Series("c", values, dtype=pl.Categorical))
    assert again.cat.categories.tolist() == ["high", "low"]
    coded = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2]), pa.array(LEVELS))
    assert as_pandas(pa.table({"e": coded}))["e"].cat.categories.tolist() == LEVELS


def test_levels_in_a_formula():
    data = table()
    ordered = data.assign(size=pd.Categorical(data["size"], LEVELS))
    framed = polars_frame(data).with_columns(pl.col("size").cast(pl.Enum(LEVELS)))
    found = rrmstats.ols("y ~ x + size", framed, 0.2).fit(n_starts=5, steps=1)
    assert_same_fits(found, rrmstats.ols("y ~ x + size", ordered, 0.2).fit(n_starts=5, steps=1))
    assert found.params.index[1] == "size[T.middle]"


def test_polars_does_not_need_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    framed = polars_frame(table()).with_columns(pl.col("size").cast(pl.Categorical))
    assert as_pandas(framed)["size"].tolist() == table()["size"].tolist()


def test_an_index_that_arrow_keeps_comes_back():
    res = rrmstats.ols("y ~ x + z", pa.Table.from_pandas(frame()), 0.2).fit(n_starts=5, steps=1)
    assert res.weights.index.tolist() == frame().index.tolist()


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (polars_frame(table()).lazy(), r"polars LazyFrame; give data.collect\(\)"),
        (pa.table({"x": [1.0]}).to_reader(), r"RecordBatchReader; give data.read_all\(\)"),
    ],
)
def test_data_that_are_not_read_yet(data, advice):
    for call in (
        lambda: rrmstats.ols("y ~ x", data, 0.2),
        lambda: rrmstats.RRMCov(data, 0.2),
        lambda: MODELS["ols"].formula(table(), eps_bar=0.2).fit(n_starts=5, steps=1).predict(data),
        lambda: (
            MODELS["pca"].formula(table(), eps_bar=0.2).fit(n_starts=5, steps=1).transform(data)
        ),
    ):
        with pytest.raises(TypeError, match=advice):
            call()
