"""Standard errors: against the jackknife, other programs and each other."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from inference_cases import NUDGE, WEIGHTED, cloud, nudged, regression
from numpy.testing import assert_allclose, assert_array_equal
from undated import undated

import rrmstats
from replication.samples import (
    logistic_labels,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit, RRMPoisson

from .fits import DATA, FITS

# Models whose standard errors are those of exact influence functions, and how to refit them.
EXACT = {
    "logit": (RRMLogit, lambda rng: logistic_labels(rng, 150, (0.2, 1.0)), {"eps_bar": 0.1}, {}),
    "bounded logit": (
        RRMLogit,
        lambda rng: logistic_labels(rng, 150, (0.2, 1.0)),
        {"eps_bar": 0.1, "alpha": 1e-3},
        {},
    ),
    "cov": (RRMCov, lambda rng: (cloud(rng),), {"eps_bar": 0.2}, {}),
    "cov, two steps": (
        RRMCov,
        lambda rng: (cloud(rng),),
        {"eps_bar": 0.2},
        {"steps": 2},
    ),
    "pca": (RRMPCA, lambda rng: (cloud(rng),), {"eps_bar": 0.0, "n_components": 2}, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_standard_errors_are_the_infinitesimal_jackknife(name):
    """The variance is the mean of the squared derivatives in the rows' weights, over n."""
    cls, draw, kwargs, fit_kwargs = EXACT[name]
    data = draw(np.random.default_rng(0))
    n = len(data[0])
    moved = []
    for row in range(n):
        ends = [
            cls(*data, freq_weights=nudged(n, row, by), **kwargs).fit(
                n_starts=0, **{"steps": 1, **fit_kwargs}
            )
            for by in (NUDGE, -NUDGE)
        ]
        moved.append(np.subtract(*(np.asarray(end.params) for end in ends)) / (2 * NUDGE))
    res = cls(*data, **kwargs).fit(n_starts=0, **{"steps": 1, **fit_kwargs})
    expected = np.sqrt((np.array(moved) ** 2).sum(axis=0))
    if name == "cov, two steps":  # residuals of fits without the row, as in HC3
        expected *= n / (n - 1)
    elif cls is RRMCov:  # enlarged for the mean and the axes; the correction of the size moves too
        expected *= np.sqrt(n / (n - 4))
    assert_allclose(expected, res.bse, rtol=1e-2 if cls is RRMCov else 2e-3)


def test_least_squares_has_the_errors_of_hc3():
    endog, exog = regression(np.random.default_rng(0))
    res, reference = RRMOLS(endog, exog, 0.0).fit(steps=1), sm.OLS(endog, exog).fit(cov_type="HC3")
    assert_allclose(res.cov_params(), reference.cov_params(), rtol=1e-9)


@pytest.mark.parametrize("cov_type", ["HC0", "HC1", "HC2", "HC3", "robust"])
def test_names_of_statsmodels_are_the_sandwich(cov_type):
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    res = model.fit(steps=1, cov_type=cov_type)
    assert res.cov_type == "sandwich"
    assert_array_equal(res.bse, model.fit(steps=1).bse)


def test_counts_have_the_errors_of_hc3():
    rng = np.random.default_rng(0)
    exog = sm.add_constant(rng.standard_normal((40, 2)))
    count = rng.poisson(np.exp(exog @ [0.5, 0.4, -0.2]))
    res = RRMPoisson(count, exog, 0.0).fit(steps=1, cov_type="HC3")
    mu = res.fittedvalues
    bread = np.linalg.inv(exog.T @ (mu[:, None] * exog))
    hat = mu * np.einsum("ni,ij,nj->n", exog, bread, exog)
    scores = exog * ((count - mu) / (1 - hat))[:, None]
    assert_allclose(res.cov_params(), bread @ scores.T @ scores @ bread, rtol=1e-8)


@pytest.mark.parametrize("steps", [1, 2])
def test_clusters_by_a_column_of_the_formula(steps):
    data = DATA.assign(town=np.arange(len(DATA)) % 7)
    data.loc[data.index[[3, 50]], "x1"] = np.nan
    model = rrmstats.ols("y ~ x1", data, 0.1)
    res = model.fit(steps=steps, cov_type="cluster", cov_kwds={"groups": "town"})
    labels = np.delete(data.town.to_numpy(), [3, 50])
    expected = model.fit(steps=steps, cov_type="cluster", cov_kwds={"groups": labels})
    assert_array_equal(res.bse, expected.bse)
    assert_array_equal(
        model.fit(steps=steps).get_robustcov_results("cluster", groups="town").bse, res.bse
    )
    with pytest.raises(ValueError, match="'tawn' is not a column of the data; did you mean"):
        model.fit(steps=steps, cov_kwds={"groups": "tawn"})


def test_other_errors_of_the_same_fit():
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    res = model.fit()
    for cov_type, kwds in (("HAC", {"maxlags": 2}), ("bootstrap", {"n_boot": 20})):
        found = res.get_robustcov_results(cov_type, **kwds)
        expected = model.fit(cov_type=cov_type, cov_kwds=kwds)
        assert_array_equal(found.cov_params(), expected.cov_params())
        assert undated(found.summary()) == undated(expected.summary())


@pytest.mark.parametrize("name", FITS)
def test_options_of_statsmodels_optimizers_change_nothing(name):
    res = FITS[name]()
    same = res.model.fit(
        steps=res.steps, method="newton", disp=0, full_output=1, callback=None, maxiter=300
    )
    assert_array_equal(same.params, res.params)


def test_maximum_likelihood_has_the_errors_of_hc0():
    endog, exog = logistic_labels(np.random.default_rng(0), 200, (0.2, 1.0, -0.5))
    res = RRMLogit(endog, exog, 0.0).fit(steps=1)
    reference = sm.Logit(endog, exog).fit(disp=0, cov_type="HC0")
    assert_allclose(res.cov_params(), reference.cov_params(), rtol=1e-6)


def test_moments_have_the_errors_of_moments():
    data = cloud(np.random.default_rng(0))
    n = len(data)
    centred = data - data.mean(axis=0)
    i, j = np.triu_indices(3)
    terms = np.c_[centred, centred[:, i] * centred[:, j] - (centred.T @ centred / n)[i, j]]
    assert_allclose(RRMCov(data, 0.0).fit(steps=1).cov_params(), terms.T @ terms / n**2, rtol=1e-8)
    res = RRMPCA(data, 2, 0.0).fit(steps=1)
    terms = res.scores**2 - res.eigenvals
    assert_allclose(res.cov_params(), terms.T @ terms / n**2, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::rrmstats.UnstableWarning")  # copies may look like clusters
@pytest.mark.parametrize("steps", [1, 2])
def test_a_row_of_weight_two_is_the_row_twice(weighted, steps):
    counts = 1 + np.arange(weighted.n) % 3
    by_weight = weighted.model(*weighted.data, freq_weights=counts).fit(steps=steps)
    rows = np.repeat(np.arange(weighted.n), counts)
    by_rows = weighted.model(*(part[rows] for part in weighted.data)).fit(steps=steps)
    assert_allclose(by_weight.params, by_rows.params, rtol=1e-6)
    assert_allclose(by_weight.cov_params(), by_rows.cov_params(), rtol=1e-5, atol=1e-12)
    assert_allclose(by_weight.conf_int(), by_rows.conf_int(), rtol=1e-5)
    found, expected = by_weight.stability, by_rows.stability
    assert (found.short, found.terms) == (expected.short, expected.terms)


@pytest.mark.parametrize("steps", [1, 2])
def test_clusters_of_one_row(weighted, steps):
    fit = partial(weighted.model(*weighted.data).fit, steps=steps)
    res = fit(cov_type="cluster", cov_kwds={"groups": np.arange(weighted.n)})
    expected = fit().cov_params() * weighted.n / (weighted.n - 1)
    assert_allclose(res.cov_params(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["logit", "cov", "pca"])
def test_copies_in_one_cluster_add_nothing(name):
    model, data = WEIGHTED[name](np.random.default_rng(1))
    n = len(data[0])
    single = model(*data).fit(steps=1)
    twice = model(*(np.concatenate([part, part]) for part in data)).fit(
        cov_type="cluster", cov_kwds={"groups": pd.Series(np.tile(np.arange(n), 2))}, steps=1
    )
    # Those of moments have corrections for the number of rows, of the order of 1 / n.
    tolerance = 1e-6 if name == "logit" else 6 / n
    expected = single.cov_params() * n / (n - 1)
    assert_allclose(twice.cov_params(), expected, rtol=tolerance, atol=1e-12)


def test_clusters_widen_the_errors_of_what_they_share():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 8)
    exog = np.c_[np.ones(400), rng.standard_normal(50)[groups], rng.standard_normal(400)]
    endog = exog.sum(axis=1) + 2 * rng.standard_normal(50)[groups] + rng.standard_normal(400)
    model = RRMOLS(endog, exog, 0.1)
    cluster = model.fit(cov_type="cluster", cov_kwds={"groups": groups.astype(str)}, steps=1)
    ratio = cluster.bse / model.fit(steps=1).bse
    assert (ratio[:2] > 1.8).all()
    assert 0.7 < ratio[2] < 1.3


@pytest.mark.parametrize(
    ("cov_type", "kwds", "error", "message"),
    [
        ("HC4", {}, ValueError, "one of sandwich, nonrobust, cluster, HAC, bootstrap, got 'HC4'"),
        ("hac-panel", {}, ValueError, "weights as known is not offered"),
        ("HC1", {"maxlags": 1}, TypeError, "takes no cov_kwds, got .'maxlags'."),
        ("cluster", {"groups": "town"}, TypeError, "names a column, but arrays have none"),
        ("nonrobust", {"maxlags": 1}, TypeError, "takes no cov_kwds, got .'maxlags'."),
        ("HAC", {}, TypeError, "'HAC' takes cov_kwds={'maxlags': number}, got"),
        ("HAC", {"maxlags": 1.5}, ValueError, "whole number from 0 to .*, got 1.5"),
        ("HAC", {"maxlags": -1}, ValueError, "whole number from 0 to .*, got -1"),
        ("sandwich", {"groups": [1]}, TypeError, "takes no cov_kwds"),
        ("cluster", {}, TypeError, "groups"),
        ("cluster", {"groups": np.arange(60), "df": 1}, TypeError, "df"),
        ("cluster", {"groups": np.arange(5)}, ValueError, "each of the 60 rows, got 5"),
        ("cluster", {"groups": [None, *range(59)]}, ValueError, "missing"),
        ("cluster", {"groups": np.zeros(60)}, ValueError, "at least two"),
        ("bootstrap", {"n_boot": 1}, ValueError, "2 or more, got 1"),
        ("bootstrap", {"n_boot": 99.5}, ValueError, "got 99.5"),
        ("bootstrap", {"interval": "basic"}, ValueError, "'bca' or 'percentile', got 'basic'"),
        ("bootstrap", {"strata": [1, 2]}, ValueError, "each of the 60 rows"),
        ("bootstrap", {"seed": 1}, TypeError, "seed"),
    ],
)
@pytest.mark.parametrize("steps", [1, 2])
def test_errors_say_what_is_wrong(cov_type, kwds, error, message, steps):
    model = RRMOLS(*regression(np.random.default_rng(0)), 0.2)
    with pytest.raises(error, match=message):
        model.fit(steps=steps, cov_type=cov_type, cov_kwds=kwds)


@pytest.mark.parametrize("steps", [1, 2])
def test_removed_data_leave_the_inference(weighted, steps):
    def labels(part):
        columns = [f"v{i}" for i in range(part.shape[1])] if part.ndim == 2 else None
        return pd.Series(part, name="y") if columns is None else pd.DataFrame(part, None, columns)

    counts = 1 + np.arange(weighted.n) % 3
    model = weighted.model(*map(labels, weighted.data), freq_weights=counts)
    res = model.fit(steps=steps, stability=False)
    bse, interval = res.bse.copy(), res.conf_int()
    size = len(pickle.dumps(res))
    res.remove_data()
    assert len(pickle.dumps(res)) < size
    assert_array_equal(res.bse, bse)
    assert_array_equal(res.conf_int(), interval)
    text = " ".join(str(res.summary()).split())
    assert "v0" in text
    assert "Smallest weights" not in text and "Most likely bad" not in text
    assert res._results.weights is None


@pytest.mark.slow
@pytest.mark.parametrize(("eps_bar", "tolerance"), [(0.0, 5e-3), (0.2, 0.1)])
def test_errors_of_the_loadings_are_the_infinitesimal_jackknife(eps_bar, tolerance):
    """For eps_bar > 0 but for how the axes within a subspace turn with the subspace."""
    data = cloud(np.random.default_rng(0))
    n = len(data)

    def loadings(row):
        model = RRMPCA(data, 2, eps_bar, freq_weights=nudged(n, row, NUDGE))
        return model.fit(n_starts=0, steps=1).loadings

    res = RRMPCA(data, 2, eps_bar).fit(n_starts=0, steps=1)
    moved = [(loadings(row) - res.loadings) / NUDGE for row in range(n)]
    expected = np.sqrt(np.square(moved).sum(axis=0))
    assert_allclose(res.loadings_bse, expected, rtol=tolerance, atol=0.01 * expected.max())
