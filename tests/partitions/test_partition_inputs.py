"""What users give to models in partitions, and what they ask of them afterwards."""

import threading

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import rrmstats

dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 400
    data = pd.DataFrame({"x": rng.standard_normal(n), "z": rng.uniform(0, 4, n)})
    data["g"] = rng.choice(list("abc"), n)
    data["time"] = rng.uniform(1, 3, n)
    data["y"] = data.x + rng.standard_normal(n)
    data["count"] = rng.poisson(data.time * np.exp(0.5 * data.x))
    data["hits"] = rng.binomial(10, 1 / (1 + np.exp(-data.x)))
    data["misses"] = 10 - data.hits
    return data


def split(data):
    return dd.from_pandas(data, npartitions=3)


def test_predictions_have_the_exposure_of_the_rows(frame):
    parts = split(frame)
    found = rrmstats.poisson("count ~ x", parts, 0.1, exposure=parts["time"]).fit(steps=1)
    expected = rrmstats.poisson("count ~ x", frame, 0.1, exposure=frame["time"]).fit(steps=1)
    assert_allclose(found.predict().compute(), expected.predict(), rtol=1e-7)
    new = frame[:5]
    for kwargs in ({}, {"exposure": new["time"]}, {"which": "linear"}):
        assert_allclose(found.predict(new, **kwargs), expected.predict(new, **kwargs), rtol=1e-7)
    with pytest.raises(NotImplementedError, match="takes no exposure"):
        found.predict(parts, exposure=parts["time"])


def test_predictions_of_transforms_know_all_the_data(frame):
    found, expected = (
        rrmstats.ols("y ~ center(x) + bs(z, df=4)", data, 0.1).fit(steps=1)
        for data in (split(frame), frame)
    )
    assert_allclose(found.predict(frame[:5]), expected.predict(frame[:5]), rtol=1e-7)


@pytest.mark.parametrize(
    ("function", "formula", "predict"),
    [
        (rrmstats.ols, "y ~ np.exp(x) * g + C(hits)", "predict"),
        (rrmstats.cov, "~ x + np.sqrt(z) + x:z", "mahalanobis"),
        (rrmstats.pca, "~ x + local(z) + y", "transform"),
    ],
)
def test_both_engines_of_statsmodels(frame, engine, function, formula, predict):
    def local(values):
        return values**2

    data = frame.copy()
    data.loc[7, ["x", "z"]] = np.nan
    found = function(formula, split(data), 0.1).fit(steps=1)
    expected = function(formula, data, 0.1).fit(steps=1)
    assert_allclose(found.params, expected.params, rtol=1e-8)
    assert type(found.model._formula_design.designs[-1]).__module__.startswith(engine)
    new = data[:9]
    for fit in (found, expected):
        if fit is found or predict != "predict":  # least squares in memory takes no parts
            lazy = getattr(fit, predict)(split(new)).compute()
            assert_allclose(lazy.drop(index=7), getattr(fit, predict)(new.drop(index=7)))


def test_formulaic_learns_nothing_over_partitions(frame, engine):
    if engine == "formulaic":
        with pytest.raises(ValueError, match="formulaic cannot do for rows in partitions"):
            rrmstats.ols("y ~ center(x)", split(frame), 0.1)
    else:
        assert rrmstats.ols("y ~ center(x)", split(frame), 0.1).nobs == len(frame)


def test_predictions_of_missing_values_are_missing(frame):
    new = frame[:6].copy()
    new.loc[2, "x"] = np.nan
    found = rrmstats.ols("y ~ x", split(frame), 0.1).fit(steps=1).predict(split(new)).compute()
    assert list(np.flatnonzero(found.isna())) == [2] and len(found) == 6


def test_new_rows_go_by_name(frame):
    formula = "~ x + z + y"
    turned = split(frame[["y", "g", "z", "x"]])
    parts, memory = (
        rrmstats.pca(formula, data, 0.1, n_components=1).fit(steps=1)
        for data in (split(frame), frame)
    )
    found, expected = parts.transform(turned).compute(), memory.transform(frame)
    assert list(found.columns) == list(expected.columns)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    parts, memory = (
        rrmstats.cov(formula, data, 0.1).fit(steps=1) for data in (split(frame), frame)
    )
    assert_allclose(parts.mahalanobis(turned).compute(), memory.mahalanobis(frame), rtol=1e-6)


@pytest.mark.parametrize("term", ["x.rank()", "I(x - x.mean())"])
def test_functions_of_whole_columns_are_refused(frame, term):
    with pytest.raises(ValueError, match="whole column"):
        rrmstats.ols(f"y ~ {term}", split(frame), 0.1)


def test_successes_and_failures(frame):
    found, expected = (
        rrmstats.glm("hits + misses ~ x", data, 0.1, family=sm.families.Binomial()).fit(steps=1)
        for data in (split(frame), frame)
    )
    assert_allclose(found.params, expected.params, rtol=1e-8)
    assert_allclose(found.bse, expected.bse, rtol=1e-8)


def test_missing_strings_and_nullable_columns(frame):
    data = frame.assign(k=pd.array(np.arange(400) % 5, dtype="Int64"))
    data["b"] = pd.array(np.arange(400) % 3 == 0, dtype="boolean")
    data.loc[5:9, "g"] = None
    data.loc[20:22, "k"] = pd.NA
    found, expected = (
        rrmstats.ols("y ~ g + k + b", d, 0.1).fit(steps=1) for d in (split(data), data)
    )
    assert found.nobs == expected.nobs == 392
    assert_allclose(found.params, expected.params, rtol=1e-8)


def test_names_of_columns_are_not_looked_up_elsewhere(frame):
    x = threading.Lock()  # what cannot be sent to a worker
    model = rrmstats.ols("y ~ np.sin(x)", split(frame), 0.1)
    assert set(model._formula_design.namespace) == {"np"}
    assert not x.locked()


def test_exact_fits_have_errors_and_a_summary(frame):
    res = rrmstats.ols("y ~ x", split(frame.assign(y=2 * frame.x + 1)), 0.1).fit(steps=1)
    assert_allclose(res.bse, 0)
    assert res.risk == 0 and "Smallest weights" in res.summary().as_text()


def test_missing_weights_leave_rows_out(frame):
    parts = split(frame.assign(w=np.where(frame.index < 10, np.nan, 2.0)))
    assert rrmstats.ols("y ~ x", parts, 0.1, freq_weights=parts["w"]).fit(steps=1).nobs == 390


def test_what_has_rows_is_lazy_and_saving_is_refused(frame, tmp_path):
    res = rrmstats.ols("y ~ x", split(frame), 0.1, persist=False).fit(steps=1)
    assert isinstance(res.relative_weights, dd.Series)
    with pytest.raises(NotImplementedError, match="save needs all rows in memory"):
        res.save(tmp_path / "res.pkl")


def test_persist_and_partitions_beside_are_checked(frame):
    parts = split(frame)
    with pytest.raises(ValueError, match="persist must be True, False or 'auto', got 'yes'"):
        rrmstats.ols("y ~ x", parts, 0.1, persist="yes")
    with pytest.raises(ValueError, match="exposure must have the partitions of the data"):
        rrmstats.poisson("count ~ x", parts, 0.1, exposure=parts["time"].clear_divisions())
