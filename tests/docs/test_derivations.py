"""The formulas of the page of derivations, each against numbers that do not use it."""

import numpy as np
import pytest

import rrmstats
from rrmstats.core import entropy_weights, minimize
from rrmstats.core.consistency import gaussian_efficiency, kish_fraction, second_moment_ratio
from rrmstats.losses import RegressionProblem

EPS_BAR = 0.2


@pytest.fixture(scope="module")
def data():
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    y = stars["log_light"].to_numpy()
    return y, np.column_stack([np.ones(len(y)), stars["log_te"] - stars["log_te"].mean()])


def moments(theta, y, x):
    """Return losses, gradients, weights, lambda, Cov(l, grad l), Var(l) and the Hessian of F."""
    losses, gradients = (y - x @ theta) ** 2, -2 * (y - x @ theta)[:, None] * x
    tilt = entropy_weights(losses, EPS_BAR)
    pi, lambda_ = tilt.weights, tilt.lambda_
    centered, spread = gradients - pi @ gradients, losses - pi @ losses
    cross, variance = (pi * spread) @ centered, pi @ spread**2
    bracket = (centered.T * pi) @ centered - np.outer(cross, cross) / variance
    hessian = 2 * (x.T * pi) @ x - bracket / lambda_
    return losses, gradients, pi, lambda_, cross, variance, hessian


def test_the_hessian_is_the_difference_of_gradients(data):
    def gradient(theta):
        _, gradients, pi, *_ = moments(theta, *data)
        return pi @ gradients

    theta, step = np.array([4.5, 1.0]), 1e-5
    differences = [
        (gradient(theta + step * e) - gradient(theta - step * e)) / (2 * step) for e in np.eye(2)
    ]
    np.testing.assert_allclose(moments(theta, *data)[-1], differences, atol=1e-8)


def test_the_influence_of_a_row_is_that_of_a_fit_in_which_it_counts_more(data):
    y, x = data
    problem, n, more = RegressionProblem(y, x), len(y), 1e-3
    best = minimize(problem, EPS_BAR, tol=1e-14).theta
    losses, gradients, pi, lambda_, cross, variance, hessian = moments(best, y, x)
    omega = n * pi
    b = (lambda_ * omega * (losses - pi @ losses) + lambda_**2 * (omega - 1)) / variance
    bracket = omega[:, None] * gradients - np.outer(b, cross) / lambda_
    influence = -np.linalg.solve(hessian, bracket.T).T
    options = {"start_theta": best, "n_starts": 0, "tol": 1e-14}
    for row in (0, 6, 16):
        counts = np.ones(n)
        counts[row] += more
        change = minimize(problem, EPS_BAR, freq_weights=counts, **options).theta - best
        np.testing.assert_allclose(influence[row], change * (n + more) / more, rtol=2e-3)


@pytest.mark.parametrize("d", [1, 5])
def test_clean_gaussian_rows_have_the_moments_that_the_formulas_say(d):
    z = np.random.default_rng(d).standard_normal((10**6, d))
    w = rrmstats.robust_weights((z**2).sum(axis=1), EPS_BAR)
    first, n = z[:, 0] ** 2, len(z)
    found = [w @ first, 1 / (n * (w @ w)), (w @ first) ** 2 / (n * (w**2 @ first))]
    formulas = (second_moment_ratio, kish_fraction, gaussian_efficiency)
    np.testing.assert_allclose(found, [value(EPS_BAR, d) for value in formulas], rtol=0.01)
