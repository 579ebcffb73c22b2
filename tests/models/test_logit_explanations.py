"""Logistic regression in two steps, against maximum likelihood and the first step."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from replication.samples import extreme_flips, logistic_labels, separated_strip
from rrmstats import RRMGLM, RRMLogit, robustify
from rrmstats.datasets import breast_cancer
from rrmstats.laws.labels import BY_CLASS, FlippedLabels
from rrmstats.laws.rows import PredictorRows
from rrmstats.losses import label_explanations

TRUTH = np.array([0.0, 1.0, -0.5])
FIVE = np.array([0.0, 1.3, -1.3, 1.3, -1.3, 1.3])


def errors(draw, eps_bar, samples, truth=TRUTH, n_starts=0):
    """Return mean squared errors of the slopes: maximum likelihood, one step, two steps.

    The second step does not follow the first, which needs no starts but where it is compared.
    """
    found = []
    for seed in range(samples):
        endog, exog = draw(np.random.default_rng([77, seed]))
        res = RRMLogit(endog, exog, eps_bar).fit(stability=False, n_starts=n_starts)
        fits = (sm.Logit(endog, exog).fit(disp=0), res.first_step, res)
        found.append([np.mean((fit.params - truth)[1:] ** 2) for fit in fits])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("eps_bar", [0.1, 0.2])
def test_wrong_labels_at_the_extremes_stay_out(eps_bar):
    """Maximum likelihood has 0.2; without the wrong labels it has 0.014."""
    classical, _, two = errors(lambda rng: extreme_flips(rng, 500, TRUTH, 0.05), eps_bar, 10)
    assert classical > 0.15
    assert two < 0.025


@pytest.mark.parametrize("eps_bar", [0.1, 0.2])
def test_clean_labels_have_the_errors_of_maximum_likelihood(eps_bar):
    classical, _, two = errors(lambda rng: logistic_labels(rng, 500, TRUTH), eps_bar, 10)
    assert two < 1.05 * classical


def test_the_second_step_does_not_lose_the_first_on_small_samples():
    _, one, two = errors(lambda rng: extreme_flips(rng, 200, TRUTH, 0.05), 0.1, 10, n_starts=None)
    assert two < min(one, 0.08)


def random_flips(rng):
    """Return labels of five slopes, 5 % of them flipped at random."""
    endog, exog = logistic_labels(rng, 1000, FIVE)
    endog[:50] = 1 - endog[:50]
    return endog, exog


def test_labels_flipped_at_random():
    """Half of the error that version 0.2 had."""
    classical, _, two = errors(random_flips, 0.1, 12, FIVE)
    assert classical > 0.1
    assert two < 0.054


def test_labels_of_tumors_flipped_at_random():
    """The paper's experiment, with flips at random: no worse than the first step."""
    data = breast_cancer.load_pandas()
    endog, exog = np.asarray(data.endog, float), sm.add_constant(np.asarray(data.exog, float))
    right = []
    for seed in range(10):
        rng = np.random.default_rng([77, seed])
        test, train = np.split(rng.permutation(len(endog)), [274])
        labels = endog[train]
        labels[rng.choice(np.flatnonzero(labels == 1), 40, replace=False)] = 0
        res = RRMLogit(labels, exog[train], 0.15).fit(stability=False)
        ones = endog[test] == 1
        for fit in (res.first_step, res):
            hits = (exog[test] @ fit.params > 0) == ones
            right.append((hits.mean(), hits[ones].mean()))
    one, two = np.reshape(right, (10, 2, 2)).mean(axis=0)
    assert (two >= one).all()
    assert two[0] > 0.95


def test_probabilities_of_rows_agree_with_the_share():
    endog, exog = extreme_flips(np.random.default_rng(3), 500, TRUTH, 0.05)
    res = RRMLogit(endog, exog, 0.2).fit(stability=False)
    chosen = res._estimate.explained.chosen
    assert chosen.name == "unlikely labels"
    assert chosen.eps == res.eps_hat < 0.2
    assert abs((chosen.prob_bad > 0.5).mean() - res.eps_hat) < 0.01
    assert_allclose(res.weights, (1 - chosen.prob_bad) / (1 - chosen.prob_bad).sum())


def test_weights_are_repeated_rows():
    endog, exog = extreme_flips(np.random.default_rng(0), 200, TRUTH, 0.05)
    counts = 1.0 + np.arange(200) % 2
    rows = np.repeat(np.arange(200), counts.astype(int))
    one = RRMLogit(endog, exog, 0.1, freq_weights=counts).fit(stability=False)
    other = RRMLogit(endog[rows], exog[rows], 0.1).fit(stability=False)
    assert_allclose(one.params, other.params, rtol=1e-5)
    assert_allclose(one.eps_hat_se, other.eps_hat_se, rtol=1e-4)
    found, expected = (fit._estimate.explained for fit in (one, other))
    assert_allclose(found.bics, expected.bics, rtol=1e-6)


def test_no_room_for_flips_is_maximum_likelihood():
    endog, exog = logistic_labels(np.random.default_rng(0), 200, TRUTH)
    res = RRMLogit(endog, exog, 0.0).fit(stability=False)
    assert_allclose(res.params, sm.Logit(endog, exog).fit(disp=0).params, rtol=1e-7)
    assert res._estimate.explained.chosen.name == "none"
    assert res.eps_hat == 0


def test_slopes_do_not_explode_on_small_samples():
    for seed in range(10):
        for share in (0.0, 0.05):
            rng = np.random.default_rng([79, seed])
            res = RRMLogit(*extreme_flips(rng, 200, TRUTH, share), 0.2).fit(
                stability=False, n_starts=0
            )
            assert (np.abs(res.params[1:]) < 3 * np.abs(TRUTH[1:])).all()


@pytest.mark.filterwarnings("ignore:from every start the weights leave out")
def test_a_rare_class():
    truth = np.array([-3.75, 1.0, -0.5])
    classical, _, two = errors(lambda rng: logistic_labels(rng, 1000, truth), 0.02, 12, truth)
    assert two < 1.2 * classical


def test_a_class_that_every_start_leaves_out_has_a_warning_that_says_so():
    rng = np.random.default_rng([77, 2])
    model = RRMLogit(*logistic_labels(rng, 1000, (-3.75, 1.0, -0.5)), 0.02)
    with pytest.warns(ConvergenceWarning, match="nearly all rows of one class.*lower eps_bar"):
        res = model.fit(stability=False)
    assert not res.first_step.converged
    assert not res.first_step.identified
    assert np.isinf(res.first_step.risk)
    assert np.isfinite(res.bse).all()


def many_slopes(rng):
    """Return labels, design and five slopes; the surest rows are labeled 0."""
    truth = np.r_[0, 1.3 * rng.choice([-1, 1], 5) * rng.uniform(0.5, 1.5, 5)]
    endog, exog = logistic_labels(rng, 1000, truth)
    endog[np.argsort(-exog @ truth)[:50]] = 0
    return endog, exog, truth


def test_five_slopes_where_the_first_step_has_only_a_direction():
    relative = []
    for seed in range(6):
        endog, exog, truth = many_slopes(np.random.default_rng([77, seed]))
        res = RRMLogit(endog, exog, 0.3).fit(stability=False)
        assert not res.first_step.identified
        relative.append(np.linalg.norm(res.params - truth) / np.linalg.norm(truth))
        assert abs(res.eps_hat - 0.05) < 4 * res.eps_hat_se
    assert np.mean(relative) < 0.2


@pytest.mark.slow
def test_two_steps_turn_the_direction_less_than_one():
    degrees = []
    for seed in range(8):
        endog, exog = separated_strip(np.random.default_rng([77, seed]))
        res = RRMLogit(endog, exog, 0.3).fit(stability=False)
        degrees.append(
            [
                np.degrees(np.arccos(p @ [-1, 1, 1] / np.linalg.norm(p) / np.sqrt(3)))
                for p in (res.first_step.params, res.params)
            ]
        )
    one, two = np.mean(degrees, axis=0)
    assert two < 0.11 < one


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_intervals_of_two_steps_cover(share):
    """On clean labels like those of maximum likelihood."""
    covered = []
    for seed in range(100):
        endog, exog = extreme_flips(np.random.default_rng([78, seed]), 500, TRUTH, share)
        fits = sm.Logit(endog, exog).fit(disp=0), RRMLogit(endog, exog, 0.1).fit(stability=False)
        ends = [fit.conf_int()[1:].T for fit in fits]
        covered.append([(low <= TRUTH[1:]) & (TRUTH[1:] <= high) for low, high in ends])
    classical, two = np.mean(covered, axis=(0, 2))
    if share == 0:
        assert two > classical - 0.02
    else:
        assert two > 0.9
        assert classical < 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("n", "eps_bar"), [(500, 0.1), (2000, 0.05)])
def test_intervals_know_of_flips_that_are_not_noticed(n, eps_bar):
    """Labels flipped at random look clean, and slopes shrink by a seventh."""
    covered = []
    for seed in range(100):
        endog, exog = logistic_labels(np.random.default_rng([78, seed]), n, TRUTH)
        share = n // 20
        endog[:share] = 1 - endog[:share]
        res = RRMLogit(endog, exog, eps_bar).fit(stability=False)
        error = np.diag(res._estimate.covariance_of(res._estimate.influence())) ** 0.5
        around = np.column_stack([res.params - 1.96 * error, res.params + 1.96 * error])
        ends = around[1:].T, res.conf_int()[1:].T
        covered.append([(low <= TRUTH[1:]) & (TRUTH[1:] <= high) for low, high in ends])
    without, known = np.mean(covered, axis=(0, 2))
    assert without < 0.9
    assert known > 0.92


def test_intervals_without_flips_reach_as_far_as_those_with_flips_by_class():
    endog, exog = logistic_labels(np.random.default_rng(0), 500, TRUTH)
    res = RRMLogit(endog, exog, 0.1).fit(stability=False)
    assert res.explanation.name == "none"
    assert_allclose(res.bse, sm.Logit(endog, exog).fit(disp=0).bse, rtol=0.1)
    rows = PredictorRows.plain(np.ones(500), 500.0, endog, (exog,))
    law = FlippedLabels(rows, np.diag(np.r_[0, exog[:, 1:].std(axis=0)]), 0.1, BY_CLASS)
    noise = law.fit(np.r_[res.params, -3, -3])
    far = np.abs(noise.theta) + 1.96 * np.sqrt(np.diag(noise.variance)[:3])
    assert_allclose(np.abs(res.conf_int())[1:].max(axis=1), far[1:], rtol=0.05)


def test_intervals_and_tests_agree_where_flips_may_not_show():
    """An interval that ends at zero has the p-value of its level, and others reach further."""
    endog, exog = logistic_labels(np.random.default_rng(3), 300, (0.0, 0.6, 0.1))
    res = RRMLogit(endog, exog, 0.1).fit(stability=False)
    assert res.explanation == "none"
    for i, pvalue in enumerate(res.pvalues):
        assert np.abs(res.conf_int(pvalue)[i]).min() < 1e-9
    assert (np.diff(res.conf_int())[1:, 0] > 2.1 * 1.96 * res.bse[1:]).all()


@pytest.mark.parametrize(
    "model",
    [
        RRMLogit,
        lambda y, x, bound: RRMGLM(y, x, bound, family=sm.families.Binomial()),
        lambda y, x, bound: robustify(sm.Logit(y, x), bound),
    ],
)
def test_an_explanation_that_is_as_good_is_named(model):
    endog, exog = extreme_flips(np.random.default_rng(6), 120, np.array([0.0, 1.0, 0.25]), 0.04)
    with pytest.warns(UserWarning, match="unlikely labels.* tells another story of x2"):
        res = model(endog, exog, 0.1).fit(stability=False)
    assert res.explanation == "none"
    assert 0 < res.rival.bic - res._estimate.explained.chosen.bic < 2
    assert "another story of x2" in " ".join(str(res.summary()).split())


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_bootstrap_explains_each_sample(share):
    endog, exog = extreme_flips(np.random.default_rng(0), 300, TRUTH, share)
    model = RRMLogit(endog, exog, 0.1)
    res = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 60})
    estimate = model.fit(stability=False)._estimate
    conditional = np.diag(estimate.covariance_of(estimate.influence())) ** 0.5
    assert_allclose(res.bse[1:], conditional[1:], rtol=0.5)


def test_the_bootstrap_has_no_errors_where_there_is_no_size():
    model = RRMLogit(*separated_strip(np.random.default_rng(0)), 0.3)
    res = model.fit(cov_type="bootstrap", cov_kwds={"n_boot": 10})
    assert np.isnan(res.bse).all()
    assert np.isnan(res.conf_int()).all()


@pytest.mark.parametrize("steps", [1, 2])
def test_tests_and_predictions_without_a_size_are_nan(steps):
    """Labels that are separated but for wrong ones have a direction only."""
    res = RRMLogit(*separated_strip(np.random.default_rng(0)), 0.3).fit(steps=steps)
    assert not res.identified
    assert np.isnan(res.t_test(np.eye(3)).pvalue).all()
    frame = res.get_prediction().summary_frame()
    assert np.isfinite(frame["predicted"]).all()
    assert np.isnan(frame["se"]).all()
    assert ("n/a" in str(res.summary())) == (steps == 1)


def test_an_estimate_of_contamination_is_a_lower_bound():
    """Labels flipped at random are wrong where the model is in doubt, too."""
    endog, exog = logistic_labels(np.random.default_rng(0), 4000, (0.0, 2.0))
    endog[:200] = 1 - endog[:200]
    res = RRMLogit(endog, exog, 0.1).fit(steps=1)
    assert 0 < res.eps_hat < 0.05
    assert 0 < res.eps_hat_se < 0.02


@pytest.mark.parametrize("share", [0.0, 0.002, 0.05])
def test_starts_tried_on_some_rows_lead_to_the_same_fits(share, monkeypatch):
    endog, exog = extreme_flips(np.random.default_rng(6), 6000, TRUTH, share)
    few = RRMLogit(endog, exog, 0.1).fit(stability=False)
    monkeypatch.setattr(label_explanations, "TRIAL_ROWS", len(endog))
    every = RRMLogit(endog, exog, 0.1).fit(stability=False)
    assert few.explanation == every.explanation
    assert_allclose(few.params, every.params, rtol=1e-6)
    assert_allclose(few.eps_hat, every.eps_hat, rtol=1e-6)


@pytest.mark.parametrize("seed", [10, 31])
def test_classes_do_not_change_places(seed):
    """With most labels of a class wrong, the opposite coefficients fit these as well."""
    rng = np.random.default_rng([10, seed])
    strip = rng.multivariate_normal([0.5, 0.5], 0.25 * np.array([[1, -0.99], [-0.99, 1]]), 95)
    spot = 0.1 * rng.standard_normal((5, 2)) + [0.5, 1.25]
    endog = np.r_[strip.sum(axis=1) >= 1, np.zeros(5, bool)].astype(float)
    exog = np.c_[np.ones(100), np.r_[strip, spot]]
    res = RRMLogit(endog, exog, "auto").fit(stability=False)
    assert set(np.flatnonzero(res.outliers())) == set(range(95, 100))
    assert res.params[1] > 0 and res.params[2] > 0
