"""Models of Dask collections: the numbers of the same data in memory, the labels of the input."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from samples import regression_frame

import rrmstats

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
callbacks = pytest.importorskip("dask.callbacks")

RTOL = 1e-8
FORMULA = "y ~ x1 + x2 + C(g)"


def squared(values):
    return values**2


@pytest.fixture(scope="module")
def frame():
    return regression_frame(1_000)


@cache
def in_memory(name, steps):
    return MODELS[name](regression_frame(1_000)).fit(steps=steps, stability=False)


@pytest.fixture(scope="module")
def parts(frame):
    return dd.from_pandas(frame, npartitions=7)


MODELS = {
    "ols": lambda data, **kw: rrmstats.ols(FORMULA, data, 0.2, **kw),
    "ols, weights": lambda data, **kw: rrmstats.ols(
        FORMULA, data, 0.2, freq_weights=data["w"], **kw
    ),
    "ols, transforms": lambda data, **kw: rrmstats.ols(
        "y ~ squared(x1) + center(x2) + np.sin(x1):g", data, 0.2, **kw
    ),
    "logit": lambda data, **kw: rrmstats.logit("label ~ x1 + x2", data, 0.05, **kw),
    "poisson": lambda data, **kw: rrmstats.poisson("count ~ x1 + x2", data, 0.1, **kw),
    "pca": lambda data, **kw: rrmstats.pca("~ x1 + x2 + y", data, 0.2, n_components=1, **kw),
    "cov": lambda data, **kw: rrmstats.cov("~ x1 + x2 + y", data, 0.2, **kw),
}


def assert_same_fit(found, expected):
    for name in ("params", "raw_params", "bse", "lambda_", "risk", "eps_hat", "n_kish", "nobs"):
        assert_allclose(getattr(found, name), getattr(expected, name), RTOL, 1e-10, err_msg=name)
    if hasattr(expected, "scale"):
        assert_allclose(found.scale, expected.scale, RTOL)
    if isinstance(expected.params, pd.Series):
        assert list(found.params.index) == list(expected.params.index)


@pytest.mark.parametrize("name", MODELS)
def test_fits_agree_on_the_threads_of_dask(frame, parts, name):
    found = MODELS[name](parts, persist=True).fit(steps=1)
    assert found.model.in_partitions
    assert_same_fit(found, in_memory(name, 1))
    assert "Smallest weights" in found.summary().as_text()


@pytest.mark.parametrize(
    ("name", "steps"),
    [*((name, 1) for name in MODELS), ("ols", 2), ("cov", 2), ("ols, weights", 2)],
)
def test_a_sample_decides_and_few_passes_make_it_exact(monkeypatch, name, steps):
    """Sums are those of a sample of 4,000 of 8,000 rows, corrected by passes over all rows."""
    monkeypatch.setattr("rrmstats.core.blocks.SAMPLE_ROWS", 4_000)
    monkeypatch.setattr("rrmstats.core.blocks.DECIDING_ROWS", 2_000)
    monkeypatch.setattr("rrmstats.core.steps.MOST_ROWS", 0)
    frame = regression_frame(8_000)
    model = MODELS[name](dd.from_pandas(frame, npartitions=5), persist=False)
    before = model.partitioned_rows.blocks.passes
    found = model.fit(steps=steps, stability=False)
    # The sample, and up to six rounds: with 100,000 rows they are four.
    assert model.partitioned_rows.blocks.passes - before <= 10
    expected = MODELS[name](frame).fit(steps=steps, stability=False)
    for value in ("params", "raw_params", "bse", "lambda_", "risk", "n_kish"):
        one, two = (np.asarray(getattr(fit, value)) for fit in (found, expected))
        assert_allclose(one, two, rtol=1e-7, atol=1e-7 * np.abs(two).max(), err_msg=value)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    ("name", "count"), [*((name, 7) for name in MODELS), ("ols", 1), ("ols", 40), ("cov", 40)]
)
def test_fits_agree_with_memory(frame, name, steps, count):
    parts = dd.from_pandas(frame, npartitions=count)
    expected = in_memory(name, steps)
    found = MODELS[name](parts, persist=True).fit(steps=steps)
    assert found.model.in_partitions
    assert_same_fit(found, expected)
    weights = found.weights.compute()
    assert list(weights.index) == list(expected.weights.index)
    assert_allclose(weights, expected.weights, 1e-6, 1e-12)
    flags = found.outliers().compute()
    assert (flags == expected.outliers()).all()
    table = found.weight_table(5)
    assert list(table.index) == list(expected.weight_table(5).index)


def test_rows_come_back_lazily_with_index_and_divisions(parts):
    found = rrmstats.ols(FORMULA, parts, 0.2).fit(steps=1)
    for values in (found.weights, found.losses, found.resid, found.fittedvalues):
        assert isinstance(values, dd.Series)
        assert values.divisions == parts.divisions


def test_arrays_without_labels(frame):
    whole = frame.dropna()
    exog, endog = (
        np.column_stack([np.ones(len(whole)), whole[["x1", "x2"]]]),
        whole["y"].to_numpy(),
    )
    expected = rrmstats.RRMOLS(endog, exog, 0.2).fit()
    given = da.from_array(endog, chunks=300), da.from_array(exog, chunks=(700, 2))
    found = rrmstats.RRMOLS(*given, 0.2).fit()
    assert_same_fit(found, expected)
    assert isinstance(found.weights, da.Array) and found.weights.chunks[0][0] == 300
    assert_allclose(found.resid.compute(), expected.resid, rtol=1e-6, atol=1e-9)


def test_frames_without_a_formula(frame):
    whole = frame.dropna()
    expected = rrmstats.RRMCov(whole[["x1", "x2", "y"]], 0.2).fit(steps=1)
    found = rrmstats.RRMCov(dd.from_pandas(whole[["x1", "x2", "y"]], npartitions=3), 0.2).fit(
        steps=1
    )
    assert_same_fit(found, expected)
    missing = rrmstats.RRMCov(
        dd.from_pandas(frame[["x1", "x2", "y"]], npartitions=3), 0.2, missing="drop"
    )
    assert_same_fit(missing.fit(steps=1), expected)


def test_predictions(frame, parts):
    expected, found = (rrmstats.ols(FORMULA, data, 0.2).fit(steps=1) for data in (frame, parts))
    new = frame.drop(columns="y")
    assert_allclose(found.predict().compute(), expected.predict(), rtol=1e-7)
    assert_allclose(found.predict(new.head(3)), expected.predict(new.head(3)), rtol=1e-7)
    of_parts = found.predict(dd.from_pandas(new.dropna(), npartitions=4))
    assert isinstance(of_parts, dd.Series)
    assert_allclose(of_parts.compute(), expected.predict(new.dropna()), rtol=1e-7)
    frames = (res.get_prediction(new.head(3)).summary_frame() for res in (found, expected))
    assert_allclose(*frames, rtol=1e-6)


def test_the_check_and_the_automatic_bound_see_a_sample(frame, parts):
    expected, found = (rrmstats.ols(FORMULA, data).fit() for data in (frame, parts))
    assert found.eps_bar == expected.eps_bar
    assert found.stability == expected.stability


def test_pictures_draw_a_sample_and_say_so(parts, tmp_path, monkeypatch):
    res = rrmstats.ols(FORMULA, parts, 0.2, persist=False).fit(steps=1)
    monkeypatch.setattr("rrmstats.core.blocks.DECIDING_ROWS", 500)
    figure = res.plot_weights()
    assert "500 of 998 rows" in figure.get_supxlabel()
    text = res.report(tmp_path / "fit.html").read_text()
    assert "500 of 998 rows, at random" in text and text.count("<svg") > 2
    flags = res.outliers().compute()
    assert set(res.outlier_table().index) == set(flags.index[flags])
    assert f"{flags.sum()} of 998 rows are flagged" in text
    assert res.seen_rows.weights.index.isin(res.weights.compute().index).all()
    relative = res.seen_rows.relative_weights
    assert_allclose(relative, 998 * res.weights.compute().loc[res.seen_rows.weights.index])


def test_the_explanation_of_a_sample_is_drawn(parts, monkeypatch):
    res = rrmstats.ols(FORMULA, parts, 0.2, persist=False).fit(stability=False)
    monkeypatch.setattr("rrmstats.core.blocks.DECIDING_ROWS", 500)
    ax = res.plot_explanation().axes[0]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    flags = np.asarray(res.seen_rows.outliers())
    assert f"flagged ({flags.sum()})" in names and "density of bad rows" in names
    said = res.plot_diagnostics().get_supxlabel()
    assert said.startswith(res.explanation.sentence[:20]) and "500 of 998 rows" in said


REFUSED = {
    "bootstrap": lambda data: rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(
        cov_type="bootstrap", steps=1
    ),
    "HAC": lambda data: rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(
        cov_type="HAC", cov_kwds={"maxlags": 2}, steps=1
    ),
    "prediction": lambda data: (
        rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(steps=1).get_prediction()
    ),
    "cluster": lambda data: rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(
        cov_type="cluster", cov_kwds={"groups": np.arange(5)}, steps=1
    ),
    "influence": lambda data: (
        rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(steps=1).get_influence()
    ),
    "path": lambda data: rrmstats.ols(FORMULA, data, 0.2, persist=False).path(steps=1),
    "groups": lambda data: rrmstats.ols(FORMULA, data, 0.2, groups="g"),
    "outlier test": lambda data: (
        rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(steps=1).outlier_test()
    ),
    "order": lambda data: (
        rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(steps=1).order_by_weight()
    ),
    "few_rows": lambda data: (
        rrmstats.ols(FORMULA, data, 0.2, persist=False).fit(steps=1).few_rows("x1")
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_memory_refuses_and_says_what_to_do(parts, name):
    with pytest.raises(NotImplementedError, match=r"in memory.*(;|use|fit|take|ask)"):
        REFUSED[name](parts)


def test_persist_keeps_partitions_or_reads_them_again(parts):
    fits = [
        rrmstats.ols("y ~ x1", parts, 0.2, persist=p).fit(steps=1) for p in ("auto", True, False)
    ]
    _, there, again = (fit.model.partitioned_rows.blocks for fit in fits)
    assert not fits[0].model.in_partitions and all(fit.model.in_partitions for fit in fits[1:])
    assert len(there.parts[0].dask) == 1
    assert len(again.parts[0].dask) > 1
    for fit in fits[1:]:
        assert_allclose(fit.params, fits[0].params, rtol=1e-12)
        assert_allclose(fit.bse, fits[0].bse, rtol=1e-12)
        assert_allclose(fit.weights.compute(), fits[0].weights.compute(), rtol=1e-10)


def test_small_data_come_to_memory_and_rows_come_back_as_dask(frame, parts):
    """Data of few bytes are fitted as those in memory are: all that these can do, they can."""
    model = rrmstats.ols(FORMULA, parts, 0.2)
    found, expected = (m.fit() for m in (model, rrmstats.ols(FORMULA, frame, 0.2)))
    assert model.partitioned_rows.blocks.passes == 2
    assert_allclose(found.params, expected.params, rtol=1e-12)
    assert_allclose(found.bse, expected.bse, rtol=1e-12)
    for name in ("weights", "prob_bad", "resid"):
        values = getattr(found, name)
        assert values.divisions == parts.divisions
        pd.testing.assert_series_equal(
            values.compute(), pd.Series(getattr(expected, name)), check_names=False
        )
    assert isinstance(found.outliers(), dd.Series)
    intervals = [res.get_prediction().summary_frame() for res in (found, expected)]
    assert_allclose(np.asarray(intervals[0]), intervals[1], rtol=1e-10)
    labels = frame.dropna()["g"].to_numpy()
    clustered = [
        m.fit(cov_type="cluster", cov_kwds={"groups": labels}, steps=1)
        for m in (model, rrmstats.ols(FORMULA, frame, 0.2))
    ]
    assert_allclose(clustered[0].bse, clustered[1].bse, rtol=1e-10)
    assert len(model.path([0.1, 0.2], steps=1)) == 2


def test_attributes_of_rows_are_lazy(parts):
    found, computed = MODELS["ols"](parts, persist=False).fit(steps=1, stability=False), []
    with callbacks.Callback(start=computed.append):
        _ = found.weights, found.resid
    assert computed == []
