"""The estimators among those of scikit-learn: pipelines, searches, clones, pickles, routing."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rrmstats
from rrmstats.sklearn import RRMClassifier, RRMDecomposition, RRMOutlierDetector, RRMRegressor


@pytest.fixture(scope="module")
def cancer():
    data = rrmstats.datasets.breast_cancer.load_pandas()
    labels = data.data.loc[data.exog.index, "diagnosis"]
    return train_test_split(data.exog, labels, test_size=0.4, random_state=1, stratify=labels)


def search(eps_bars):
    pipe = make_pipeline(StandardScaler(), RRMClassifier(steps=1))
    return GridSearchCV(pipe, {"rrmclassifier__eps_bar": eps_bars}, cv=3)


def test_grid_search_over_eps_bar_on_breast_cancer(cancer):
    x, x_test, y, y_test = cancer
    found = search([0.0, 0.02, 0.2]).fit(x, y)
    assert found.best_params_["rrmclassifier__eps_bar"] < 0.2
    assert found.best_score_ > 0.95 and found.score(x_test, y_test) > 0.95
    assert found.predict_proba(x_test).shape == (len(x_test), 2)


def test_grid_search_finds_that_labels_are_wrong(cancer):
    """The tenth of the patients with the largest values are called healthy."""
    x, x_test, y, y_test = cancer
    worst = x.sum(axis=1).nlargest(len(x) // 10).index
    wrong = y.mask(y.index.isin(worst), "benign")
    found = search([0.0, 0.15]).fit(x, wrong)
    classical = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, wrong)
    assert found.best_params_["rrmclassifier__eps_bar"] == 0.15
    assert found.score(x_test, y_test) > 0.94 > classical.score(x_test, y_test) + 0.02


def dirty(seed, n=150):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2))
    y = x @ [1.0, 2.0] + 0.5 * rng.standard_normal(n)
    bad = rng.random(n) < 0.15
    x[bad, 0], y[bad] = 5.0, -10.0
    return x, y


def test_scores_that_dirty_rows_cannot_buy():
    chosen = {"r2": [], "neg_median_absolute_error": []}
    for seed in range(6000, 6003):
        for scoring, values in chosen.items():
            grid = {"eps_bar": [0.0, 0.25]}
            model = GridSearchCV(RRMRegressor(), grid, scoring=scoring, cv=3).fit(*dirty(seed))
            values.append(model.best_params_["eps_bar"])
    assert chosen == {"r2": [0.0] * 3, "neg_median_absolute_error": [0.25] * 3}


def test_clones_and_pickles():
    x, y = dirty(1)
    model = RRMRegressor(0.2, random_state=3).fit(x, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "coef_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.results_.bse, model.results_.bse)
    detector = pickle.loads(pickle.dumps(RRMOutlierDetector().fit(x)))
    np.testing.assert_array_equal(detector.predict(x), RRMOutlierDetector().fit_predict(x))


def test_an_estimator_forgets_its_last_fit():
    x, y = dirty(1)
    model = RRMRegressor(0.2).fit(np.c_[x, x[:, :1] ** 2], y).fit(x, y)
    np.testing.assert_array_equal(model.coef_, RRMRegressor(0.2).fit(x, y).coef_)


def test_pandas_output():
    hbk = rrmstats.datasets.hbk.load_pandas().exog.add_prefix("v_")
    hbk.index = hbk.index + 100
    pipe = make_pipeline(StandardScaler(), RRMDecomposition(2, eps_bar=0.25))
    scores = pipe.set_output(transform="pandas").fit_transform(hbk)
    assert scores.columns.tolist() == ["rrmdecomposition0", "rrmdecomposition1"]
    assert scores.index.equals(hbk.index)
    np.testing.assert_array_equal(pipe.get_feature_names_out(), scores.columns)
    with pytest.raises(ValueError, match="feature names"):
        pipe[-1].transform(hbk.rename(columns={"v_x1": "other"}))


def test_more_than_two_classes_one_against_the_rest():
    rng = np.random.default_rng(4)
    y = np.arange(150) % 3
    x = rng.standard_normal((150, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    assert OneVsRestClassifier(RRMClassifier(0.05)).fit(x, y).score(x, y) > 0.9


def test_sample_weight_is_routed():
    x, y = dirty(2)
    weights = np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = RRMRegressor(0.25).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        plain = cross_val_score(model, x, y, cv=3, params={})
        weighted = cross_val_score(model, x, y, cv=3, params={"sample_weight": weights})
        half = cross_val_score(model, x, y, cv=3, params={"sample_weight": weights * (y > -8)})
    np.testing.assert_allclose(weighted, plain)
    assert (half > plain + 0.2).all()
