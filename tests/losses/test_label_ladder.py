"""The ladder of logistic regression: variances under the model, and where it stops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from rrmstats import RRMLogit
from rrmstats.core.setting import Setting
from rrmstats.experiments.samples import extreme_flips, logistic_labels
from rrmstats.losses.label_fits import label_fit
from rrmstats.losses.label_ladder import LabelLaw, score_weights
from rrmstats.losses.logistic import LogisticProblem

TRUTH = np.array([0.0, 1.0, -0.5])


@pytest.mark.parametrize("gamma", [0.0, 0.25, 1.0, 2.5])
def test_the_weights_of_the_scores_are_their_moments(gamma):
    """Scores have mean 0, slope -a and variance a^2 / (p q), by sums over the labels."""
    power = 1 + gamma

    def scores(eta):
        theta = power * eta
        return (
            expit(theta) ** (gamma / power) * expit(-theta),
            -(expit(-theta) ** (gamma / power)) * expit(theta),
        )

    eta, step = np.linspace(-6, 6, 25), 1e-5
    p, q, a = expit(eta), expit(-eta), score_weights(eta, gamma)
    one, zero = scores(eta)
    assert_allclose(p * one + q * zero, 0, atol=1e-15)
    assert_allclose(p * one**2 + q * zero**2, a**2 / (p * q), rtol=1e-9)
    higher, lower = scores(eta + step), scores(eta - step)
    slope = (p * (higher[0] - lower[0]) + q * (higher[1] - lower[1])) / (2 * step)
    assert_allclose(-slope, a, atol=1e-9)


def test_covariances_of_rungs_are_those_of_simulated_fits():
    rng = np.random.default_rng(0)
    _, exog = logistic_labels(rng, 1000, TRUTH)
    fits = []
    for _ in range(200):
        labels = (rng.random(1000) < expit(exog @ TRUTH)).astype(float)
        problem = LogisticProblem(labels, exog)
        fits.append(
            [label_fit(problem, g, TRUTH, Setting(0.1), np.ones(1000)).beta for g in (1.0, 0.0)]
        )
    robust, efficient = np.array(fits).swapaxes(0, 1)
    law = LabelLaw(problem, TRUTH, 1.0, np.ones(1000))
    assert_allclose(robust.var(axis=0), np.diag(law.covariance(1.0, 1.0)), rtol=0.3)
    moved = (robust - efficient).var(axis=0)
    assert_allclose(moved, np.diag(law.difference(1.0, 0.0)), rtol=0.3)
    known = np.linalg.det(np.cov(efficient.T)) / np.linalg.det(np.cov(robust.T))
    assert_allclose(law.efficiency(1.0), known ** (1 / 3), rtol=0.1)
    assert law.efficiency(0.0) == 1


def test_pvalues_do_not_depend_on_the_basis_of_the_design():
    rng = np.random.default_rng(0)
    endog, exog = logistic_labels(rng, 300, TRUTH)
    turn = rng.standard_normal((3, 3))
    move, found = np.array([0.1, -0.2, 0.1]), []
    for basis in (np.eye(3), turn):
        back = np.linalg.inv(basis)
        law = LabelLaw(LogisticProblem(endog, exog @ basis), back @ TRUTH, 1.0, np.ones(300))
        covariance = law.difference(1.0, 0.0)
        found.append(
            [test(back @ move, covariance) for test in (law.size_pvalue, law.equal_pvalue)]
        )
    assert_allclose(found[0], found[1], rtol=1e-6)
    assert 0 < found[0][0] < 0.5


def test_only_shrinkage_counts_as_evidence_of_size():
    endog, exog = logistic_labels(np.random.default_rng(0), 300, TRUTH)
    law = LabelLaw(LogisticProblem(endog, exog), TRUTH, 1.0, np.ones(300))
    covariance = law.difference(1.0, 0.0)
    assert law.size_pvalue(-0.5 * TRUTH, covariance) < 1e-3
    assert law.size_pvalue(0.5 * TRUTH, covariance) > 0.999
    assert_allclose(law.equal_pvalue(0 * TRUTH, covariance), 1)


def ladder(share, eps_bar=0.1, seed=3):
    endog, exog = extreme_flips(np.random.default_rng(seed), 1000, TRUTH, share)
    return RRMLogit(endog, exog, eps_bar).fit(efficiency=0.95)


def test_clean_labels_climb_to_maximum_likelihood():
    res = ladder(0.0)
    assert res.ladder["chosen"].iloc[-1]
    assert res.lambda_ == np.inf
    assert res.efficiency_reached == 1
    assert (res.ladder["order"].diff().dropna() <= 0).all()
    assert (res.ladder["efficiency"].diff().dropna() >= 0).all()
    assert "scale" not in res.ladder
    assert res.eps_hat < 2 * res.eps_hat_se


def test_wrong_labels_stop_the_climb():
    res = ladder(0.05)
    chosen = res.ladder[res.ladder["chosen"]].iloc[0]
    assert chosen["order"] > 0.3
    assert res.ladder["pvalue"].iloc[-1] < 0.02
    assert_allclose(res.efficiency_reached, chosen["efficiency"])
    assert 0.3 < res.efficiency_reached < 0.98
    assert "The second step stopped at" in " ".join(str(res.summary()).split())
    assert 0.02 < res.eps_hat < 0.06
    assert_allclose(res.params, chosen[["const", "x1", "x2"]].astype(float))


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_solution_is_that_of_the_rung(share):
    res = ladder(share)
    assert_allclose(res.weights.sum(), 1)
    assert_allclose(res.risk, res.weights @ res.losses, rtol=1e-9)
    # exact but for the small term in the losses of the first step, where that is kept
    assert_allclose(res.params, (1 - 1 / res.lambda_) * res.raw_params, rtol=0.01)
    tilt = np.exp(-res.losses / res.lambda_)
    assert_allclose(res.weights, tilt / tilt.sum(), rtol=1e-6)
    assert_allclose(res.n_eff, np.exp(-res.weights @ np.log(res.weights)), rtol=1e-9)
    kept_first = res.ladder["chosen"].iloc[0]
    assert (res.trace["step"].iloc[-1] == "second step") != kept_first
    assert_allclose(res.trace["risk"].iloc[-1], res.risk)


def test_no_contamination_has_no_ladder_to_climb():
    endog, exog = logistic_labels(np.random.default_rng(0), 300, TRUTH)
    res = RRMLogit(endog, exog, 0.0).fit(efficiency=0.95)
    assert_allclose(res.params, res.first_step.params)
    assert_allclose(res.bse, res.first_step.bse)
    assert (res.eps_hat, res.eps_hat_se) == (0, 0)
    assert (res.first_step.eps_hat, res.first_step.eps_hat_se) == (0, 0)
    assert res.efficiency_reached == 1
    assert res.steps_pvalue == 1


@pytest.mark.parametrize("deficient", [False, True])
def test_rows_of_weight_two_are_rows_twice_in_both_steps(deficient):
    endog, exog = extreme_flips(np.random.default_rng(0), 300, TRUTH, 0.05)
    if deficient:
        exog = np.c_[exog, exog[:, 1] - exog[:, 2]]
    counts = 1 + np.arange(300) % 3
    rows = np.repeat(np.arange(300), counts)
    one = RRMLogit(endog, exog, 0.1, freq_weights=counts).fit(efficiency=0.95)
    other = RRMLogit(endog[rows], exog[rows], 0.1).fit(efficiency=0.95)
    for name in ("params", "bse", "eps_hat", "eps_hat_se", "n_eff", "lambda_", "steps_pvalue"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-9)
        first, second = one.first_step, other.first_step
        assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-5, atol=1e-9)
    assert_allclose(one.params, other.params, rtol=1e-6)
    assert_allclose(one.ladder["pvalue"], other.ladder["pvalue"], rtol=1e-4)


def test_a_penalty_changes_the_first_step_and_not_what_the_ladder_ends_in():
    endog, exog = logistic_labels(np.random.default_rng(0), 500, TRUTH)
    ends = [
        RRMLogit(endog, exog, 0.1, **options).fit(efficiency=0.95).params
        for options in ({}, {"alpha": 1e-3}, {"penalty": "l2"})
    ]
    assert_allclose(ends[1], ends[0], rtol=1e-6)
    assert_allclose(ends[2], ends[0], rtol=1e-6)
