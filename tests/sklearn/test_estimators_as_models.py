"""Attributes of the estimators are the numbers of the models."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.preprocessing import StandardScaler
from statsmodels.tools.sm_exceptions import ModelWarning

from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.sklearn import (
    RRMClassifier,
    RRMCovariance,
    RRMDecomposition,
    RRMOutlierDetector,
    RRMRegressor,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((120, 3)) @ np.diag([2.0, 1.0, 0.3])
    table = pd.DataFrame(x, columns=["a", "b", "c"], index=[f"row{i}" for i in range(120)])
    table["y"] = 1 + x @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(120)
    table["z"] = np.where(rng.random(120) < expit(2 * x[:, 0]), "yes", "no")
    table.loc[table.index[:12], ["a", "y"]] = [9.0, -9.0]
    return table


@pytest.fixture(scope="module")
def x(frame):
    return frame[["a", "b", "c"]]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("eps_bar", "steps"), [(0.0, 1), (0.2, 1), (0.2, 2), ("auto", 2)])
def test_regressor(frame, x, fit_intercept, eps_bar, steps):
    exog = sm.add_constant(x) if fit_intercept else x
    res = RRMOLS(frame["y"], exog, eps_bar).fit(steps=steps)
    model = RRMRegressor(eps_bar, steps=steps, fit_intercept=fit_intercept)
    model.fit(x, frame["y"])
    params = np.asarray(res.params)
    np.testing.assert_allclose(model.coef_, params[-3:], **EXACT)
    np.testing.assert_allclose(model.intercept_, params[0] if fit_intercept else 0.0, **EXACT)
    np.testing.assert_allclose(model.scale_**2, res.scale, **EXACT)
    np.testing.assert_allclose(model.weights_, res.weights, **EXACT)
    np.testing.assert_allclose(model.predict(x), res.fittedvalues, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(model.outliers_, res.outliers())
    np.testing.assert_allclose(
        [model.eps_hat_, model.eps_bar_], [res.eps_hat, res.eps_bar], **EXACT
    )
    assert model.n_iter_ == max(res.n_iter, 1)


@pytest.mark.parametrize("penalty", [None, "l2"])
@pytest.mark.parametrize("steps", [1, 2])
def test_classifier(frame, x, penalty, steps):
    model = RRMClassifier(0.1, steps=steps, penalty=penalty).fit(x, frame["z"])
    labels = (frame["z"] == "yes").astype(float)
    res = RRMLogit(labels, sm.add_constant(x), 0.1, penalty=penalty).fit(steps=steps)
    params = np.asarray(res.params)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_[0]], params, **EXACT)
    proba = model.predict_proba(x)
    np.testing.assert_allclose(proba[:, 1], res.predict(), **EXACT)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), proba, **EXACT)
    np.testing.assert_allclose(model.decision_function(x), res.fittedvalues, **EXACT)
    np.testing.assert_array_equal(model.predict(x), np.where(proba[:, 1] > 0.5, "yes", "no"))
    np.testing.assert_array_equal(model.outliers_, res.outliers())


def test_log_probabilities_stay_finite(frame, x):
    model = RRMClassifier(0.1).fit(x, frame["z"])
    logs = model.predict_log_proba(x * 1e6)
    assert np.isfinite(logs).all() and logs.min() < -1e4


@pytest.mark.parametrize("eps_bar", [0.0, 0.2, "auto"])
def test_covariance(x, eps_bar):
    model, res = RRMCovariance(eps_bar).fit(x), RRMCov(x, eps_bar).fit()
    np.testing.assert_allclose(model.location_, res.mean, **EXACT)
    np.testing.assert_allclose(model.covariance_, res.cov, **EXACT)
    np.testing.assert_allclose(model.get_precision(), res.precision, rtol=1e-10)
    np.testing.assert_allclose(model.dist_, res.mahalanobis() ** 2, **EXACT)
    np.testing.assert_allclose(model.mahalanobis(x[5:9]), model.dist_[5:9], rtol=1e-10)
    np.testing.assert_array_equal(model.support_, ~res.outliers())
    assert model.error_norm(np.asarray(res.cov)) < 1e-20


def test_score_of_a_covariance_is_the_gaussian_likelihood(x):
    from scipy.stats import multivariate_normal

    model = RRMCovariance(0.2).fit(x)
    logs = multivariate_normal(model.location_, model.covariance_).logpdf(x)
    weights = np.arange(120) % 3
    assert model.score(x) == pytest.approx(logs.mean())
    assert model.score(x, sample_weight=weights) == pytest.approx(
        np.average(logs, weights=weights)
    )


@pytest.mark.parametrize("n_components", [1, 2, 0.9])
def test_decomposition(x, n_components):
    model = RRMDecomposition(n_components, eps_bar=0.2).fit(x)
    res = RRMPCA(x, n_components, eps_bar=0.2).fit()
    np.testing.assert_allclose(model.components_, np.asarray(res.loadings).T, **EXACT)
    np.testing.assert_allclose(model.explained_variance_, res.eigenvals, **EXACT)
    ratio = res.explained_variance_ratio
    np.testing.assert_allclose(model.explained_variance_ratio_, ratio, **EXACT)
    np.testing.assert_allclose(model.transform(x), res.scores, **EXACT)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(x)), res.reconstruct(), **EXACT
    )
    np.testing.assert_array_equal(model.outliers_, res.outliers())
    left = 3 - model.n_components_
    whole = model.explained_variance_.sum() + left * model.noise_variance_
    np.testing.assert_allclose(model.explained_variance_ / whole, ratio)


def test_without_contamination_components_are_those_of_scikit_learn():
    from sklearn.decomposition import PCA

    x = np.random.default_rng(3).standard_normal((80, 4)) @ np.diag([4.0, 3.0, 2.0, 1.0])
    model, classical = RRMDecomposition(2, eps_bar=0.0).fit(x), PCA(2).fit(x)
    np.testing.assert_allclose(model.components_, classical.components_, atol=1e-8)
    np.testing.assert_allclose(model.mean_, classical.mean_, atol=1e-10)
    np.testing.assert_allclose(model.transform(x), classical.transform(x), atol=1e-7)
    unit = (len(x) - 1) / len(x)
    for name in ("explained_variance_", "noise_variance_"):
        ratio = getattr(model, name) / getattr(classical, name)
        assert np.all((np.abs(ratio - 1) < 1e-8) | (np.abs(ratio - unit) < 1e-8))


def test_a_column_named_name_is_no_name(frame, x):
    y = frame[["y"]].rename(columns={"y": "name"})
    with pytest.warns(DataConversionWarning):
        model = RRMRegressor(0.2).fit(x, y)
    np.testing.assert_array_equal(model.coef_, RRMRegressor(0.2).fit(x, frame["y"]).coef_)


def test_results_have_the_names_of_the_data(frame, x):
    model = RRMRegressor(0.2).fit(x, frame["y"])
    assert list(model.results_.params.index) == ["const", "a", "b", "c"]
    assert list(model.results_.weights.index) == list(frame.index)
    assert "Dep. Variable:                      y" in model.results_.summary().as_text()
    other = x.rename(columns={"a": "const"})
    assert list(RRMRegressor(0.2).fit(other, frame["y"]).results_.params.index)[:2] == [
        "const_",
        "const",
    ]


@pytest.mark.parametrize(
    "model",
    [RRMRegressor(0.2), RRMCovariance(0.2), RRMDecomposition(eps_bar=0.2), RRMOutlierDetector()],
    ids=lambda model: type(model).__name__,
)
def test_polars_frames_are_like_pandas_ones(frame, x, model):
    other = pl.DataFrame(x.to_dict("list"))
    y = pl.Series("y", frame["y"].to_numpy())
    method = "transform" if hasattr(model, "transform") else "predict"
    if not hasattr(model, method):
        method = "mahalanobis"
    expected = np.asarray(getattr(model.fit(x, frame["y"]), method)(x))
    found = getattr(model.fit(other, y), method)(other)
    np.testing.assert_allclose(found, expected, **EXACT)
    # Old versions of scikit-learn do not read the names of new polars frames.
    names = getattr(StandardScaler().fit(other), "feature_names_in_", None)
    np.testing.assert_array_equal(getattr(model, "feature_names_in_", None), names)


def test_random_states(frame, x):
    fits = [
        RRMRegressor(0.2, random_state=state, n_starts=5).fit(x, frame["y"]).results_
        for state in (7, np.random.default_rng(7), np.random.RandomState(0), None, 7)
    ]
    starts = [np.asarray(fit.starts["risk"]) for fit in fits]
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[4])
    assert (starts[0] != starts[2]).any() and (starts[0] != starts[3]).any()


def test_what_is_refused(frame, x):
    with pytest.raises(TypeError, match="parse data was passed"):
        RRMRegressor().fit(sparse.csr_array(x.to_numpy()), frame["y"])
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        RRMClassifier().fit(x, np.arange(120) % 3)
    with pytest.raises(ValueError, match="one class only, yes"):
        RRMClassifier().fit(x, frame["z"], sample_weight=frame["z"] == "yes")
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1"):
        RRMRegressor().fit(x, frame["y"], sample_weight=np.full(120, -1.0))
    with pytest.raises(ValueError, match=r"zero in all rows|non-zero"):
        RRMCovariance().fit(x, sample_weight=np.zeros(120))
    with pytest.raises(ValueError, match=r"contamination must be 'auto' or .* got 0.7"):
        RRMOutlierDetector(contamination=0.7).fit(x)
    with pytest.raises(ValueError, match="from 1 to 2, fewer than the 3 variables"):
        RRMDecomposition(3).fit(x)
    with pytest.raises(ValueError, match="X has 3 columns, but there are 2 components"):
        RRMDecomposition(2).fit(x).inverse_transform(x)
    with pytest.raises(ValueError, match=r"leaves .* = 1.8 observations for"):
        RRMRegressor(0.1).fit(x[:2], frame["y"][:2])
    with pytest.raises(TypeError, match="eps_bar must be a number"):
        RRMRegressor("0.2").fit(x, frame["y"])


def test_classes_may_be_of_any_kind(x):
    positive = (x["a"] > 0).to_numpy()
    for labels in ([False, True], [-1, 1], ["b", "a"], [3.0, 1.0]):
        y = np.where(positive, labels[1], labels[0])
        model = RRMClassifier(0.1).fit(x, y)
        assert model.classes_.tolist() == sorted(labels)
        assert model.score(x, y) > 0.95


def test_scikit_learn_is_imported_only_when_asked_for():
    code = """
import sys, rrmstats
assert "sklearn" not in sys.modules
sys.modules["sklearn"] = None
import rrmstats.sklearn
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = done.stderr.strip().splitlines()[-1]
    assert told.endswith("install it with: pip install 'rrmstats[sklearn]'")
    assert told.startswith("ImportError: sklearn is not installed")


def test_the_intercept_is_there_or_not(frame, x):
    for model in (RRMRegressor(fit_intercept="no"), RRMClassifier(fit_intercept="no")):
        with pytest.raises(TypeError, match="fit_intercept must be True or False, got 'no'"):
            model.fit(x, frame["z"] if isinstance(model, RRMClassifier) else frame["y"])
    assert RRMRegressor(fit_intercept=np.False_).fit(x, frame["y"]).intercept_ == 0


def test_the_name_of_the_response_is_kept(frame, x):
    wanted = pa.table({"height": frame["y"].to_numpy()})["height"]
    for y in (wanted, pl.Series("height", frame["y"]), frame["y"].rename("height")):
        assert RRMRegressor(0.2).fit(x, y).results_.model.endog_names == "height"


def test_warnings_are_those_of_scikit_learn(frame, x):
    with pytest.warns(ConvergenceWarning, match="within max_iter=1 iterations; raise max_iter"):
        RRMRegressor(0.3, max_iter=1).fit(x, frame["y"])
    with pytest.warns(ModelWarning, match="rows per parameter") as found:
        RRMRegressor(0.1).fit(x[:9], frame["y"][:9] + np.arange(9) % 4)
    assert found[0].filename == __file__


def test_steps_must_be_one_or_two(frame, x):
    with pytest.raises(ValueError, match="steps must be 2"):
        RRMRegressor(0.2, steps=3).fit(x, frame["y"])


@pytest.mark.parametrize(("penalty", "part"), [("l2", 0), ("l1", 1), ("elasticnet", 0.5)])
def test_penalties_are_those_of_the_model(penalty, part):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3))
    y = 3 * x[:, 0] + rng.standard_normal(50)
    own = RRMRegressor(0.0, penalty=penalty, alpha=0.5).fit(x, y)
    res = RRMOLS(y, np.column_stack([np.ones(50), x]), 0.0).fit_regularized(alpha=0.5, L1_wt=part)
    np.testing.assert_allclose(np.r_[own.intercept_, own.coef_], res.params)
    with pytest.raises(ValueError, match="penalty must be"):
        RRMRegressor(penalty="ridge").fit(x, y)
