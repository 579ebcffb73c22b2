"""Any estimator made robust: `RRMWrapper`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_wine, make_friedman1
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from rrmstats.laws.classes import wrong_labels
from rrmstats.sklearn import RRMWrapper

FOREST = ExtraTreesRegressor(30, random_state=0)


def friedman(share, rng, n=400):
    """Return features, responses some of which are replaced by others near by, and which."""
    x, y = make_friedman1(n, noise=1.0, random_state=int(rng.integers(1000)))
    bad = rng.random(n) < share
    return x, np.where(bad, rng.normal(y.mean() + 12, 3, n), y), bad


def test_a_forest_is_as_good_as_one_of_the_good_rows():
    x, y, bad = friedman(0.2, np.random.default_rng(0))
    test, target = make_friedman1(1000, noise=1.0, random_state=5000)
    model = RRMWrapper(FOREST).fit(x, y)
    plain, good = clone(FOREST).fit(x, y), clone(FOREST).fit(x[~bad], y[~bad])
    ours, theirs, best = (
        np.sqrt(np.mean((each.predict(test) - target) ** 2)) for each in (model, plain, good)
    )
    assert ours < 1.15 * best
    assert theirs > 1.4 * best
    assert abs(model.eps_hat_ - bad.mean()) < 0.05
    assert model.weights_[bad].sum() < 0.1
    assert_allclose(model.weights_.sum(), 1.0)


def test_nothing_is_lost_where_all_rows_are_good():
    x, y, _ = friedman(0.0, np.random.default_rng(1))
    model = RRMWrapper(FOREST).fit(x, y)
    assert model.eps_hat_ == 0
    assert_allclose(model.predict(x), clone(FOREST).fit(x, y).predict(x), rtol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_flipped_labels_are_found(rate):
    x, y = load_wine(return_X_y=True)
    x, rng = StandardScaler().fit_transform(x), np.random.default_rng(0)
    flipped = rng.random(len(y)) < rate
    labels = np.where(flipped, (y + rng.integers(1, 3, len(y))) % 3, y)
    model = RRMWrapper(LogisticRegression()).fit(x, labels)
    assert (model.predict(x) == y).mean() > 0.97
    assert model.predict_proba(x).shape == (len(y), 3)
    assert abs(model.eps_hat_ - flipped.mean()) < 0.04
    if rate:
        flagged = model.prob_bad_ > 0.5
        assert flagged[flipped].mean() > 0.85 and flagged[~flipped].mean() < 0.04
    else:
        assert not model.prob_bad_.any()


def test_rates_of_pairs_of_classes():
    """Labels of one class that are often taken for one other are no noise of all classes."""
    rng = np.random.default_rng(0)
    right = rng.integers(0, 4, 2000)
    seen = np.where((right == 2) & (rng.random(2000) < 0.3), 3, right)
    sure = 0.9 * np.eye(4)[right] + 0.025
    found = wrong_labels(sure, seen, 0.4)
    assert found.n_params == 12
    assert_allclose(found.noise[2], [0, 0, 0.7, 0.3], atol=0.04)
    bounded = wrong_labels(sure, seen, 0.02)
    assert bounded.eps <= 0.02 < 0.07 < found.eps < 0.1
    off = bounded.noise * (1 - np.eye(4))
    assert right.size * 0.02 >= off.sum(axis=1) @ np.bincount(right) * 0.95
    assert wrong_labels(sure, seen, 0.0).eps == 0


def test_a_pipeline_a_bound_and_a_loss_of_ones_own():
    x, y, bad = friedman(0.1, np.random.default_rng(2))
    weighted = RRMWrapper(
        make_pipeline(StandardScaler(), Ridge()), eps_bar=0.2, loss=lambda y, fit: abs(y - fit)
    ).fit(x, y)
    assert np.isnan(weighted.eps_hat_) and not hasattr(weighted, "prob_bad_")
    assert weighted.outlier_scores_.shape == y.shape
    assert weighted.weights_[bad].mean() < 0.5 * weighted.weights_[~bad].mean()
    model = RRMWrapper(make_pipeline(StandardScaler(), Ridge()), eps_bar=0.05).fit(x, y)
    assert model.eps_hat_ <= 0.05 + 1e-9
    assert RRMWrapper(Ridge(), eps_bar=0).fit(x, y).predict(x) == pytest.approx(
        Ridge().fit(x, y).predict(x)
    )
    assert 0 < model.score(x, y) < 1


def test_weights_of_rows_reach_the_estimator():
    x, y, _ = friedman(0.0, np.random.default_rng(3), 200)
    weight = np.random.default_rng(3).integers(0, 3, 200).astype(float)
    found = RRMWrapper(LinearRegression()).fit(x, y, sample_weight=weight)
    assert_allclose(
        found.predict(x), LinearRegression().fit(x, y, sample_weight=weight).predict(x)
    )
    assert not found.weights_[weight == 0].any()


class Ignores(RegressorMixin, BaseEstimator):
    """Takes sample weights and ignores them."""

    def fit(self, X, y, sample_weight=None):
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (RRMWrapper(KNeighborsRegressor()), "takes no sample_weight in fit"),
        (RRMWrapper(Ignores()), "Ignores ignores sample_weight"),
        (RRMWrapper(LinearSVC()), "LinearSVC has no predict_proba"),
        (RRMWrapper(Ridge(), eps_bar=1.5), r"eps_bar must be in \[0, 1\)"),
        (RRMWrapper(Ridge(), loss="huber"), "loss must be a function"),
        (RRMWrapper(Ridge(), loss=lambda y, fit: 1.0), "one number per row"),
        (RRMWrapper(Ridge(), max_iter=0), "max_iter must be a whole number"),
    ],
)
def test_what_cannot_be_used_is_refused(wrapper, message):
    x, y, _ = friedman(0.1, np.random.default_rng(4), 100)
    labels = y > y.mean() if isinstance(wrapper.estimator, LinearSVC) else y
    with pytest.raises((TypeError, ValueError), match=message):
        wrapper.fit(x, labels)


@pytest.mark.parametrize("estimator", [DecisionTreeRegressor(), LogisticRegression()])
def test_one_value_is_refused(estimator):
    with pytest.raises(ValueError, match=r"y has one (value|class), 1.0"):
        RRMWrapper(estimator).fit(np.eye(10), np.ones(10))
