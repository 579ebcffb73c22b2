"""What every problem promises the engine, over one table of problems."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from replication.samples import logistic_labels, one_sided_outliers, shifted_cluster
from rrmstats.core import minimize
from rrmstats.core.descent import Descent
from rrmstats.core.points import Budget, evaluate
from rrmstats.laws.families import Gamma, Link, MeanFunction, Poisson
from rrmstats.losses.components import SubspaceProblem
from rrmstats.losses.covariance import ScatterProblem
from rrmstats.losses.deviance import DevianceProblem
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.regression import SquaresProblem

N = 60
BATCH = 3


def regression(kind, sample, rng, n, **kwargs):
    return kind(*sample(rng, n), **kwargs)


def generalized(family, rng, n):
    exog = np.c_[np.ones(n), rng.standard_normal((n, 2))]
    mean = np.exp(exog @ [2.5, 0.4, -0.4])
    endog = rng.poisson(mean) + 1.0 if isinstance(family, Poisson) else rng.gamma(5, mean / 5)
    endog[: n // 20] *= 3
    mean_of = MeanFunction.between(Link.log(), *family.mean_bounds(endog))
    rows = endog, exog, 0.1 * exog[:, 1], 1.0 + exog[:, 2] ** 2
    return DevianceProblem(*rows, family=family, mean=mean_of)


def multivariate(kind, rng, n, d=4, **kwargs):
    cov = np.diag([9.0, 4.0, 1.0, 0.25][:d])
    return kind(shifted_cluster(rng, n, cov, center=1.0), **kwargs)


RIDGE = np.diag([0.0, 0.02, 0.05])
labels = partial(logistic_labels, params=(0.5, 1.0, -1.0))
PROBLEMS = {
    "ols": partial(regression, SquaresProblem, one_sided_outliers),
    "logit": partial(regression, LogisticProblem, labels),
    "logit alpha": partial(regression, LogisticProblem, labels, alpha=0.05),
    "logit ridge": partial(regression, LogisticProblem, labels, ridge=RIDGE),
    "poisson": partial(generalized, Poisson()),
    "gamma": partial(generalized, Gamma()),
    "subspace": partial(multivariate, SubspaceProblem, q=2),
    "subspace origin": partial(multivariate, SubspaceProblem, q=2, demean=False),
    "scatter": partial(multivariate, ScatterProblem, d=3),
    "scatter origin": partial(multivariate, ScatterProblem, d=3, demean=False),
}


@pytest.fixture(params=PROBLEMS)
def build(request):
    """Return a function of a generator and a number of rows that makes a problem."""
    return PROBLEMS[request.param]


@pytest.fixture
def case(build):
    """Return a generator, a problem, random weights (b, n) and parameters near their fits."""
    rng = np.random.default_rng(1)
    problem = build(rng, N)
    weights = rng.dirichlet(np.ones(N), BATCH)
    theta = problem.weighted_fit(weights)
    return rng, problem, weights, problem.retract(theta, 0.1 * steps(rng, problem))


def steps(rng, problem, size=BATCH):
    k = getattr(problem, "n_coordinates", problem.n_params)
    return rng.standard_normal((size, k))


def differences(problem, function, theta, step=1e-5):
    """Return derivatives in the local coordinates at theta, one row a coordinate."""
    k = steps(np.random.default_rng(0), problem).shape[1]
    moves = step * np.eye(k)
    ahead, behind = (
        np.array([function(problem.retract(theta, sign * move)) for move in moves])
        for sign in (1, -1)
    )
    return (ahead - behind) / (2 * step)


def second_differences(problem, function, theta, step=1e-4):
    """Return second derivatives in the local coordinates at theta, shape (k, k)."""
    k = steps(np.random.default_rng(0), problem).shape[1]
    moves = step * np.eye(k)
    return np.array(
        [
            [
                sum(
                    s * t * function(problem.retract(theta, s * a + t * b))
                    for s in (1, -1)
                    for t in (1, -1)
                )
                for b in moves
            ]
            for a in moves
        ]
    ) / (4 * step**2)


def test_gradients(case):
    _, problem, _, theta = case
    numeric = differences(problem, problem.losses, theta[0]).T
    found = problem.gradients(theta[0])
    assert_allclose(found, numeric, rtol=1e-6, atol=1e-7 * np.abs(found).max())


def test_the_gradient_of_the_weighted_loss(case):
    _, problem, weights, theta = case
    expected = weights[0] @ problem.gradients(theta[0])
    found = problem.weighted_gradient(theta[0], weights[0])
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_hessian(case):
    _, problem, weights, theta = case
    numeric = second_differences(problem, lambda t: weights[0] @ problem.losses(t), theta[0])
    found = problem.hessian(theta[0], weights[0])
    assert_allclose(found, numeric, rtol=1e-5, atol=1e-5 * np.abs(found).max())


@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_concentrated(case, eps_bar, weighted):
    rng, problem, _, theta = case
    prior = rng.dirichlet(np.ones(N)) if weighted else None
    budget = Budget(eps_bar, prior, float(N))
    points = evaluate(problem, theta, budget)
    gradient, hessian, drift = problem.concentrated(
        theta, points.losses, points.weights, points.lambda_
    )
    for i in range(2):
        risk = second_differences(
            problem, lambda t: evaluate(problem, t[None], budget).risk[0], theta[i]
        )
        assert_allclose(hessian[i], risk, rtol=1e-4, atol=1e-4 * np.abs(risk).max())
        both = differences(problem, lambda t: risk_and_lambda(problem, t, budget), theta[i])
        assert_allclose(gradient[i], both[:, 0], rtol=1e-6, atol=1e-7 * np.abs(both[:, 0]).max())
        if eps_bar:
            assert_allclose(drift[i], both[:, 1], rtol=1e-5, atol=1e-6)


def risk_and_lambda(problem, theta, budget):
    point = evaluate(problem, theta[None], budget)
    return np.array([point.risk[0], np.log(point.lambda_[0]) if budget.eps_bar else 0.0])


def test_the_weighted_fit_has_the_least_weighted_risk(case):
    rng, problem, weights, _ = case
    for w, theta in zip(weights, problem.weighted_fit(weights), strict=True):
        gradients = problem.gradients(theta)
        assert_allclose(w @ gradients, 0, atol=1e-8 * np.abs(gradients).max())
        least = w @ problem.losses(theta)
        for size in (1e-2, 1.0):
            away = problem.retract(np.tile(theta, (200, 1)), size * steps(rng, problem, 200))
            assert (problem.losses(away) @ w >= least - 1e-12).all()


def test_improved_lowers_the_weighted_risk(case):
    _, problem, weights, theta = case
    after = problem.losses(problem.improved(weights, theta))
    before = problem.losses(theta)
    assert (((before - after) * weights).sum(axis=-1) > 0).all()


def test_a_batch_is_a_loop(case):
    rng, problem, weights, theta = case
    step = 0.1 * steps(rng, problem)
    for function, args in (
        (problem.losses, (theta,)),
        (problem.weighted_fit, (weights,)),
        (problem.weighted_fit, (weights, theta)),
        (problem.improved, (weights, theta)),
        (problem.retract, (theta, step)),
    ):
        loop = [function(*(a[i : i + 1] for a in args))[0] for i in range(BATCH)]
        assert_allclose(function(*args), loop, rtol=1e-9, atol=1e-9)
    for function, args in ((problem.losses, (theta,)), (problem.weighted_fit, (weights,))):
        assert_allclose(function(args[0][0]), function(*args)[0], rtol=1e-9, atol=1e-9)


def test_a_zero_step_stays(case):
    _, problem, _, theta = case
    stayed = problem.retract(theta, np.zeros_like(steps(np.random.default_rng(0), problem)))
    assert_allclose(problem.losses(stayed), problem.losses(theta), rtol=1e-9, atol=1e-12)


def test_take_restricts_to_rows(case):
    rng, problem, weights, theta = case
    rows = rng.choice(N, N // 2, replace=False)
    part = problem.take(rows)
    assert (part.n_obs, part.n_params) == (len(rows), problem.n_params)
    assert_allclose(part.losses(theta), problem.losses(theta)[:, rows], rtol=1e-12)
    inside = np.zeros_like(weights)
    inside[:, rows] = weights[:, rows]
    whole = problem.weighted_fit(inside / inside.sum(axis=-1, keepdims=True))
    fitted = part.weighted_fit(inside[:, rows] / inside.sum(axis=-1, keepdims=True))
    assert_allclose(part.losses(fitted), part.losses(whole), rtol=1e-6, atol=1e-9)


def test_subset_fits_are_the_fits_to_the_subsets(case):
    rng, problem, _, _ = case
    subsets = np.array([rng.choice(N, problem.subset_size, replace=False) for _ in range(20)])
    fits = problem.subset_fits(subsets)
    usable = np.isfinite(fits).all(axis=-1)
    assert usable.sum() > 5
    if isinstance(problem, LogisticProblem):  # small subsets are separated: only signs are fitted
        assert (usable == [0 < problem.endog[rows].mean() < 1 for rows in subsets]).all()
        inside = [problem.take(rows).predictor(t) for rows, t in zip(subsets, fits, strict=True)]
        right = np.mean(problem.signs[subsets[usable]] * np.array(inside)[usable] > 0)
        assert right > 0.8
        return
    for rows, theta in zip(subsets[usable], fits[usable], strict=True):
        part = problem.take(rows)
        fitted = part.weighted_fit(np.full(len(rows), 1 / len(rows)))
        assert_allclose(part.losses(theta), part.losses(fitted), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("eps_bar", [0.05, 0.3])
def test_the_risk_never_rises(build, eps_bar, accelerate):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        problem, budget = build(rng, N), Budget(eps_bar, None, N)
        theta = problem.weighted_fit(rng.dirichlet(np.full(N, 0.3), 4))
        points = evaluate(problem, theta, budget)
        descent = Descent(problem, points, budget).run(1e-10, 60, accelerate)
        for i in range(4):
            risks = np.array([step.risk for step in descent.steps(i)])
            assert (np.diff(risks) <= 1e-10 * np.abs(risks[:-1]) + 1e-13).all()
            # a step that would leave a class out is not taken
            assert len(risks) > 1 or isinstance(problem, LogisticProblem)


@pytest.mark.parametrize("seed", range(3))
def test_newton_and_algorithm_1_end_at_the_same_risk(build, seed):
    problem = build(np.random.default_rng(seed), 200)
    newton, plain = (
        minimize(problem, 0.1, n_starts=0, accelerate=accelerate, tol=1e-12, maxiter=5000)
        for accelerate in (True, False)
    )
    assert newton.converged
    assert newton.n_iter < plain.n_iter
    assert_allclose(newton.risk, plain.risk, rtol=1e-6, atol=1e-7)
    assert_allclose(problem.losses(newton.theta), newton.losses, rtol=1e-9, atol=1e-12)


def test_permuting_the_rows_permutes_the_answer(build):
    problem = build(np.random.default_rng(3), N)
    order = np.random.default_rng(4).permutation(N)
    found, moved = minimize(problem, 0.2), minimize(problem.take(order), 0.2)
    assert_allclose(moved.risk, found.risk, rtol=1e-8)
    assert_allclose(moved.lambda_, found.lambda_, rtol=1e-7)
    assert_allclose(moved.weights, found.weights[order], rtol=1e-6, atol=1e-9)


def test_a_row_of_weight_two_is_the_row_twice(build):
    rng = np.random.default_rng(5)
    problem = build(rng, N)
    counts = rng.integers(1, 4, N)
    rows = np.repeat(np.arange(N), counts)
    weighted = minimize(problem, 0.2, freq_weights=counts, n_starts=0)
    repeated = minimize(problem.take(rows), 0.2, n_starts=0)
    assert_allclose(weighted.risk, repeated.risk, rtol=1e-9, atol=1e-12)
    assert_allclose(weighted.lambda_, repeated.lambda_, rtol=1e-7)
    assert_allclose((weighted.weights / counts)[rows], repeated.weights, rtol=1e-6, atol=1e-10)
