"""Weights, distances and flags of the rows."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import rrmstats

from .fits import DATA, FITS, N


def test_weight_table(res):
    table = res.weight_table(7)
    assert len(table) == 7 and len(res.weight_table(None)) == N
    told = ["prob_bad"] if res.steps == 2 else []
    assert list(table.columns) == ["loss", "relative_weight", "distance", *told, "outlier"]
    assert table.relative_weight.is_monotonic_increasing
    assert_allclose(res.weight_table(None).relative_weight.mean(), 1)
    assert table.outlier.equals(res.outliers()[table.index])
    assert_allclose(table.loss, res.losses[table.index])
    assert f"(+{N - 30} more)" in res.weight_table(None)._repr_latex_()
    assert "tabular" in res.trace._repr_latex_() and "start" in res.trace._repr_latex_()
    assert_allclose(res.lambda_trace.iloc[-1], res.trace.lambda_.iloc[-1])
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        res.outliers(1.5)


def test_wrong_rows_are_flagged_and_few_others():
    res = FITS["ols"]()
    assert res.outliers().iloc[:10].all() and res.outliers().iloc[10:].mean() < 0.08
    test = res.outlier_test()
    assert (test["bonf(p)"].iloc[:10] < 1e-6).all() and (test["bonf(p)"].iloc[10:] > 0.01).all()


MODELS = {
    "ols": lambda z, eps_bar: rrmstats.RRMOLS(z[:, 0], sm.add_constant(z[:, 1:]), eps_bar),
    "cov": lambda z, eps_bar: rrmstats.RRMCov(z, eps_bar),
    "pca": lambda z, eps_bar: rrmstats.RRMPCA(z, 1, eps_bar),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_false_alarms_and_a_cluster(model):
    """Of clean data 1 to 5 % are flagged, of a cluster six standard deviations away nearly all."""
    clean, cluster = [], []
    for seed in range(6):
        z = np.random.default_rng(seed).standard_normal((500, 3)) * [1.0, 1.5, 1.0]
        clean.append(MODELS[model](z, 0.2).fit(n_starts=30, steps=1).outliers().mean())
        z[:50] += [6.0, 0.0, 0.0] if model == "ols" else [6.0, 9.0, 6.0]
        cluster.append(MODELS[model](z, 0.2).fit(n_starts=30, steps=1).outliers()[:50].mean())
    assert 0.01 < np.mean(clean) < 0.05
    assert np.mean(cluster) > 0.95


def test_labels_that_are_improbable_are_flagged():
    data = DATA.assign(x1=5 * DATA.x1, label=(DATA.x1 > 0).astype(float))
    data.iloc[data.x1.argmax(), data.columns.get_loc("label")] = 0.0
    res = rrmstats.logit("label ~ x1", data, 0.05).fit()
    assert list(res.outliers()[res.outliers()].index) == [data.x1.idxmax()]


@pytest.mark.parametrize("model", ["ols", "cov"])
@pytest.mark.parametrize("eps_bar", [0.1, 0.4])
def test_kishs_size_of_clean_data_is_what_clean_data_have(model, eps_bar):
    z = np.random.default_rng(0).standard_normal((20_000, 3))
    res = MODELS[model](z, eps_bar).fit(n_starts=0, steps=1)
    assert_allclose(res.n_kish, res.n_kish_clean, rtol=0.02)
    few = MODELS[model](z[:500], eps_bar).fit(n_starts=0, steps=1)
    assert_allclose(few.n_kish_clean, res.n_kish_clean / 40, rtol=1e-12)


def test_kishs_size_of_clean_data_counts_the_rows():
    counts = 1 + np.arange(N) % 3
    res = rrmstats.ols("y ~ x1", DATA, 0.2, freq_weights=counts).fit(steps=1)
    single = rrmstats.ols("y ~ x1", DATA, 0.2).fit(steps=1)
    assert_allclose(res.n_kish_clean, single.n_kish_clean * counts.sum() / N)
    assert f"(clean {single.n_kish_clean:.1f})" in str(single.summary())
    assert rrmstats.logit("label ~ x1", DATA, 0.05).fit(steps=1).n_kish_clean is None


@pytest.mark.parametrize("model", ["ols", "cov", "pca"])
@pytest.mark.parametrize("level", [0.8, 0.975])
def test_the_table_of_outliers_has_all_flagged_rows_by_weight(model, level):
    z = np.random.default_rng(0).standard_normal((100, 3))
    z[:7] += 8
    res = MODELS[model](z, 0.2).fit(n_starts=5, steps=1)
    flags, table = np.asarray(res.outliers(level)), res.outlier_table(level=level)
    assert sorted(table.index) == list(np.flatnonzero(flags)) and table["outlier"].all()
    assert (np.diff(table["relative_weight"]) >= 0).all() and len(table) >= 7
    pd.testing.assert_frame_equal(res.outlier_table(4, level), table.head(4))
    pd.testing.assert_frame_equal(table, res.weight_table(None, level).query("outlier"))


@pytest.mark.parametrize("method", ["outliers", "weight_table", "outlier_table"])
def test_a_level_is_a_share(method):
    data = rrmstats.datasets.stars_cyg.load_pandas()
    res = rrmstats.RRMOLS(data.endog, data.exog, 0.2).fit(steps=1)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 97.5"):
        getattr(res, method)(level=97.5)
