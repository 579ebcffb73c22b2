"""Influence functions: against derivatives in the weight of a row, and the stacked equations."""

import numpy as np
import pytest
from inference_cases import NUDGE, cloud, nudged, regression
from numpy.testing import assert_allclose

from replication.samples import (
    logistic_labels,
)
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit
from rrmstats.core import minimize
from rrmstats.core.sandwich import influence_covariance, minimum_influence, wald_pvalue


def vector(problem, theta):
    return theta


def scatter(problem, theta):
    return theta


def subspace(problem, theta):
    """Return what does not depend on the choice of a basis, nor of the point."""
    point, basis = problem.split(theta)
    projection = basis @ basis.T
    return np.r_[projection.ravel(), point - projection @ point]


# Problems, and what of their parameters is determined.
PROBLEMS = {
    "ols": (lambda rng: RRMOLS(*regression(rng), 0.2), vector),
    "logit": (lambda rng: RRMLogit(*logistic_labels(rng, 150, (0.2, 1.0, -0.5)), 0.1), vector),
    "ridge": (
        lambda rng: RRMLogit(
            *logistic_labels(rng, 150, (0.2, 1.0)), 0.1, penalty="l2", alpha=0.01
        ),
        vector,
    ),
    "scatter": (lambda rng: RRMCov(cloud(rng), 0.2), scatter),
    "subspace": (lambda rng: RRMPCA(cloud(rng), 2, 0.2), subspace),
    "origin": (lambda rng: RRMPCA(cloud(rng), 1, 0.2, demean=False), subspace),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_influence_is_the_derivative_in_the_weight_of_a_row(name):
    make, determined = PROBLEMS[name]
    model = make(np.random.default_rng(0))
    problem = model.problem()
    n, at = problem.n_obs, minimize(problem, model.eps_bar)
    found = minimum_influence(problem, at.theta, at.losses, at.weights, at.lambda_)

    def refit(row, by):
        prior = nudged(n, row, by)
        return minimize(
            problem, model.eps_bar, n_starts=0, start_theta=at.theta, freq_weights=prior
        )

    for row in (0, 20, 41):
        ends = [refit(row, by) for by in (NUDGE, -NUDGE)]
        assert all(end.converged for end in ends)
        change = np.subtract(*(determined(problem, end.theta) for end in ends))
        step = found.theta[row] * NUDGE / n
        steps = np.array([step, -step])
        there = problem.retract(np.array([at.theta, at.theta]), steps)
        expected = np.subtract(*(determined(problem, theta) for theta in there))
        assert_allclose(change, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
        log_lambda = np.log(ends[0].lambda_ / ends[1].lambda_) * n / (2 * NUDGE)
        assert_allclose(log_lambda, found.log_lambda[row], rtol=2e-3)


@pytest.mark.parametrize("name", ["ols", "logit"])
def test_the_covariance_is_that_of_the_stacked_equations(name):
    """Of theta, lambda and W = mean(w), with w = exp(-loss / lambda)."""
    model = PROBLEMS[name][0](np.random.default_rng(2))
    problem, eps_bar = model.problem(), model.eps_bar
    at = minimize(problem, eps_bar)
    k = problem.n_params

    def equations(point):
        theta, lambda_, mass = point[:k], point[k], point[k + 1]
        losses = problem.losses(theta)
        w = np.exp(-losses / lambda_)
        entropy = w * losses / (lambda_ * mass) + np.log(mass) - np.log1p(-eps_bar)
        return np.c_[w[:, None] * problem.gradients(theta), entropy, w - mass]

    point = np.r_[at.theta, at.lambda_, np.exp(-at.losses / at.lambda_).mean()]
    assert_allclose(equations(point).mean(axis=0), 0, atol=1e-7)
    h = 1e-5
    bread = np.array(
        [
            (equations(point + h * e).mean(axis=0) - equations(point - h * e).mean(axis=0)) / 2 / h
            for e in np.eye(k + 2)
        ]
    ).T
    g = equations(point)
    inverse = np.linalg.inv(bread)
    stacked = inverse @ (g.T @ g / len(g)) @ inverse.T / len(g)
    found = minimum_influence(problem, at.theta, at.losses, at.weights, at.lambda_)
    joint = np.c_[found.theta, found.log_lambda * at.lambda_]
    assert_allclose(
        influence_covariance(joint, None, len(g)), stacked[: k + 1, : k + 1], rtol=1e-4
    )


def test_a_difference_without_errors_has_no_p_value():
    variance = np.pad(np.eye(2), (0, 1), constant_values=np.nan)
    assert np.isnan(wald_pvalue(np.ones(3), variance))
