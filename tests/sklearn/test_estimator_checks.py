"""What scikit-learn asks of every estimator."""

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from rrmstats.sklearn import (
    RRMClassifier,
    RRMCovariance,
    RRMDecomposition,
    RRMOutlierDetector,
    RRMRegressor,
    RRMWrapper,
)

ESTIMATORS = [
    RRMRegressor(),
    RRMClassifier(),
    RRMCovariance(),
    RRMDecomposition(),
    RRMOutlierDetector(),
    RRMWrapper(Ridge(), cv=3, max_iter=4),
    RRMWrapper(LogisticRegression(max_iter=1000), cv=3, max_iter=4),
]
OPTIONS = [
    RRMRegressor(0),
    RRMClassifier(penalty="l2"),
    RRMDecomposition(eps_bar=0),
    RRMDecomposition(None, eps_bar=0.1, whiten=True),
]


# `test_estimator_weights.py` checks the same with the labels in place.
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
SWAPPED = "before 1.7 the check swaps the labels of one of the two fits it compares"
MINIMA = (
    "fifteen points in thirty dimensions have many minima at large bounds, and weights and copies "
    "of rows have other random starts"
)
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)


PARTS = "rows and copies of them are in other parts of the cross-validation"


def expected_failures(estimator):
    if isinstance(estimator, RRMWrapper) and isinstance(estimator.estimator, Ridge):
        return dict.fromkeys((WEIGHTS, WEIGHTS.replace("dense", "sparse")), PARTS)
    if isinstance(estimator, RRMDecomposition) and estimator.n_components is None:
        return {WEIGHTS: MINIMA}
    return {WEIGHTS: SWAPPED} if OLD and isinstance(estimator, RRMClassifier) else {}


# The checks fit as many parameters as rows, lines to the same two points, and rare labels.
pytestmark = [
    pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter"),
    pytest.mark.filterwarnings("ignore:The fit changes with eps_bar"),
    pytest.mark.filterwarnings("ignore:The share of bad rows is at the largest bound"),
    pytest.mark.filterwarnings("ignore:X has .* too few for a robust covariance:UserWarning"),
    pytest.mark.filterwarnings("ignore:the first step did not converge"),
    pytest.mark.filterwarnings("ignore:from every start the weights leave out nearly all rows"),
    pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix for nan or inf:UserWarning"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS, expected_failed_checks=expected_failures)
def test_estimator_with_options(estimator, check):
    check(estimator)
