"""Flags of the detector: planted rows, few others, and as many as were asked for."""

import numpy as np
import pytest

import rrmstats
from rrmstats.sklearn import RRMCovariance, RRMOutlierDetector

SEEDS = range(5000, 5010)


def planted(seed, share, n=200):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3)) @ [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]]
    bad = np.arange(n) < share * n
    x[bad] += [10.0, -10.0, 10.0]
    return x, bad


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_planted_outliers_are_flagged_and_few_others(share):
    missed, wrong, flagged = 0, 0, 0
    for seed in SEEDS:
        x, bad = planted(seed, share)
        flags = RRMOutlierDetector().fit_predict(x) == -1
        missed += (bad & ~flags).sum()
        wrong, flagged = wrong + (flags & ~bad).sum(), flagged + flags.sum()
    assert missed == 0
    # Rows more likely bad than good are this far apart from the others.
    assert wrong <= 0.1 * flagged


def test_of_clean_rows_the_farthest_is_flagged():
    flagged = [
        np.sum(RRMOutlierDetector().fit_predict(planted(seed, 0.0)[0]) == -1) for seed in SEEDS
    ]
    assert min(flagged) == 1
    # A clean sample has now and then a row that is more likely bad than good.
    assert sum(count > 1 for count in flagged) <= 3


def test_heavy_tails_are_not_outliers():
    """As many are flagged as the fit calls bad, and the farthest row in any case."""
    x = np.random.default_rng(0).standard_t(3, (500, 3))
    model = RRMOutlierDetector().fit(x)
    assert model.results_.explanation == "heavy tails"
    assert np.sum(model.predict(x) == -1) == max(1, np.sum(~model.support_)) < 5


@pytest.mark.parametrize("contamination", [0.05, 0.1, 0.37, 0.5])
def test_contamination_is_the_share_that_is_flagged(contamination):
    x, _ = planted(5000, 0.1)
    model = RRMOutlierDetector(contamination).fit(x)
    assert np.sum(model.predict(x) == -1) == round(contamination * 200)


def test_scores_follow_the_conventions(share=0.1):
    x, bad = planted(5001, share)
    model, covariance = RRMOutlierDetector(eps_bar=0.2).fit(x), RRMCovariance(0.2).fit(x)
    np.testing.assert_array_equal(model.score_samples(x), -covariance.mahalanobis(x))
    decision = model.decision_function(x)
    np.testing.assert_allclose(decision, model.score_samples(x) - model.offset_)
    np.testing.assert_array_equal(model.predict(x) == -1, decision < 0)
    assert model.score(x, np.where(bad, -1, 1)) > 0.97


def test_rows_off_the_plane_of_the_others_are_infinitely_far():
    x = np.random.default_rng(2).standard_normal((60, 3))
    x[:, 2] = x[:, 0] + x[:, 1]
    x[:5, 2] += 3.0
    model = RRMOutlierDetector().fit(x)
    assert np.isneginf(model.decision_function(x)[:5]).all()
    assert (model.predict(x)[:5] == -1).all() and (model.predict(x)[5:] == -1).sum() <= 3


def test_classic_outliers():
    hbk = rrmstats.datasets.hbk.load_pandas()
    flags = RRMOutlierDetector().fit_predict(hbk.exog)
    assert np.flatnonzero(flags == -1).tolist() == list(range(14))


def test_rows_too_few_for_a_robust_covariance_are_told():
    x = np.random.default_rng(0).standard_normal((12, 10))
    with pytest.warns(UserWarning, match="12 different rows for 10 features, too few"):
        model = RRMCovariance(0.2).fit(x)
    assert model.results_ is None
    np.testing.assert_allclose(model.covariance_, np.cov(x.T, bias=True))
    with pytest.warns(UserWarning, match="too few"):
        repeated = RRMCovariance(0.2).fit(np.repeat(x, 20, axis=0))
    np.testing.assert_allclose(repeated.covariance_, model.covariance_)
    enough = np.random.default_rng(1).standard_normal((45, 10))
    assert RRMCovariance(0.2).fit(enough).results_ is not None
