from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from replication.samples import leverage_shift, one_sided_outliers
from rrmstats.core import FunctionProblem, Problem, SmoothProblem, minimize
from rrmstats.core.search import COMPARE_ROWS, followed_minimum, global_minimum
from rrmstats.core.setting import Setting
from rrmstats.losses.regression import SquaresProblem


def sample(seed=0, **kwargs):
    return SquaresProblem(*one_sided_outliers(np.random.default_rng(seed), **kwargs))


def as_functions(endog, exog):
    """Return a regression that offers nothing but losses and a weighted fit."""

    def weighted_fit(weights):
        root = np.sqrt(weights)
        return np.linalg.lstsq(root[:, None] * exog, root * endog, rcond=None)[0]

    return FunctionProblem(lambda theta: (endog - exog @ theta) ** 2, weighted_fit, *exog.shape)


def test_functions_reach_the_global_minimum_and_uniform_weights_do_not():
    endog, exog = leverage_shift(np.random.default_rng(0))
    problem = as_functions(endog, exog)
    found, local = minimize(problem, 0.4), minimize(problem, 0.4, n_starts=0)
    smooth = minimize(SquaresProblem(endog, exog), 0.4)
    assert found.risk < 0.5 * local.risk
    assert_allclose(found.risk, smooth.risk, rtol=1e-6)
    assert_allclose(found.theta, np.ones(4), atol=0.3)
    assert np.abs(local.theta - 1).max() > 1
    assert {step.kind for step in found.trace[1:]} == {"algorithm 1", "extrapolated"}
    plain = minimize(problem, 0.4, accelerate=False)
    assert {step.kind for step in plain.trace[1:]} == {"algorithm 1"}
    assert_allclose(found.risk, plain.risk, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_newton_needs_few_iterations_and_ends_where_algorithm_1_does(seed):
    iterations = []
    for s in range(4 * seed, 4 * seed + 4):
        problem = sample(s, n=2000, params=np.ones(10), share=0.0)
        newton = minimize(problem, 0.4, n_starts=0)
        plain = minimize(problem, 0.4, n_starts=0, accelerate=False)
        assert newton.converged
        assert plain.converged
        assert_allclose(newton.risk, plain.risk, rtol=1e-6)
        assert plain.n_iter > 4 * newton.n_iter
        iterations.append(newton.n_iter)
    assert np.mean(iterations) <= 10


@pytest.mark.parametrize("n", [150, COMPARE_ROWS + 2000])
@pytest.mark.parametrize("weighted", [False, True])
def test_solution_is_consistent(n, weighted):
    problem = sample(n=n)
    prior = np.random.default_rng(1).integers(1, 4, n) if weighted else None
    found = minimize(problem, 0.3, freq_weights=prior)
    total = n if prior is None else prior.sum()
    assert found.converged
    assert_allclose(found.losses, problem.losses(found.theta))
    assert_allclose(found.risk, found.weights @ found.losses, rtol=1e-10)
    assert_allclose(found.n_eff, 0.7 * total, rtol=1e-9)
    assert_allclose(found.weights.sum(), 1)
    base = np.ones(n) if prior is None else prior
    tilted = base * np.exp(-found.losses / found.lambda_)
    assert_allclose(found.weights, tilted / tilted.sum(), atol=1e-12)
    assert_allclose(problem.weighted_fit(found.weights), found.theta, atol=1e-7)
    assert found.risk == found.final_risks.min() == found.trace[-1].risk
    lowest = found.final_risks <= found.risk + 1e-6 * (found.risk - found.losses.min())
    assert found.n_reached == lowest.sum()
    assert 1 <= found.n_best <= len(found.start_risks)
    assert len(found.start_risks) == len(found.start_kinds)
    assert found.start_kinds.count("subset") == problem.default_starts(0.3)
    assert found.n_iter == len(found.trace) - 1
    assert found.weights[: int(0.2 * n)].sum() < 1e-3


def test_starts_are_counted():
    problem = sample()
    found = minimize(problem, 0.3, n_starts=7, start_theta=np.zeros(3))
    assert found.start_kinds[:9] == ("given", *["subset"] * 7, "spectral")
    alone = minimize(problem, 0.3, n_starts=0)
    assert len(alone.start_risks) == len(alone.final_risks) == alone.n_best == 1
    assert alone.trace[0].risk == alone.start_risks[0]
    assert alone.start_kinds == ("uniform",)


def test_start_theta_is_where_the_descent_starts():
    endog, exog = leverage_shift(np.random.default_rng(0))
    problem = SquaresProblem(endog, exog)
    uniform = minimize(problem, 0.4, n_starts=0)
    given = minimize(problem, 0.4, n_starts=0, start_theta=np.ones(4))
    assert given.risk < 0.5 * uniform.risk
    again = minimize(problem, 0.4, n_starts=0, start_theta=given.theta)
    assert again.n_iter <= 1
    assert_allclose(again.risk, given.risk, rtol=1e-12)


def test_results_repeat_and_rng_overrides():
    problem = sample()
    first, second = minimize(problem, 0.3), minimize(problem, 0.3)
    assert_array_equal(first.start_risks, second.start_risks)
    assert_array_equal(first.theta, second.theta)
    seeded = minimize(problem, 0.3, rng=1)
    assert_array_equal(seeded.start_risks, minimize(problem, 0.3, rng=1).start_risks)
    generator = np.random.default_rng(1)
    assert_array_equal(seeded.start_risks, minimize(problem, 0.3, rng=generator).start_risks)
    assert (seeded.start_risks[1:] != first.start_risks[1:]).any()
    assert_allclose(seeded.risk, first.risk, rtol=1e-9)


@pytest.mark.parametrize("accelerate", [True, False])
def test_maxiter_ends_a_descent_unconverged(accelerate):
    found = minimize(sample(), 0.3, n_starts=0, maxiter=2, accelerate=accelerate)
    assert not found.converged
    assert found.n_iter == 2


@pytest.mark.parametrize("n_starts", [0, 50])
def test_no_contamination_is_the_plain_fit(n_starts):
    problem = sample(share=0.0)
    found = minimize(problem, 0.0, n_starts=n_starts)
    assert_allclose(found.theta, problem.weighted_fit(np.full(200, 1 / 200)), rtol=1e-14)
    assert found.converged
    assert found.lambda_ == np.inf
    assert found.n_iter == 0


def test_an_exact_fit_has_lambda_zero():
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(50), rng.standard_normal((50, 2))]
    endog = exog @ [1.0, 2.0, 3.0]
    endog[:15] += 10 + rng.standard_normal(15)
    found = minimize(SquaresProblem(endog, exog), 0.4)
    assert found.converged
    assert found.lambda_ == found.risk == 0
    assert_allclose(found.theta, [1, 2, 3], rtol=1e-12)
    assert_allclose(found.weights, np.r_[np.zeros(15), np.full(35, 1 / 35)], rtol=1e-12)


def test_infinite_losses_are_left_out():
    z = np.random.default_rng(0).exponential(size=40)

    def losses(theta):
        with np.errstate(over="ignore"):
            return np.where(np.arange(40) < 4, np.inf, (z - theta[0]) ** 2)

    def weighted_fit(weights):
        return np.array([weights @ z])

    found = minimize(FunctionProblem(losses, weighted_fit, 40, 1), 0.3)
    assert (found.weights[:4] == 0).all()
    assert np.isfinite(found.risk)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"eps_bar": 1.2}, r"eps_bar must be in \[0, 1\), got 1.2"),
        ({"eps_bar": 0.99}, r"eps_bar=0.99 leaves .* = 2 observations for 3 parameters; lower"),
        ({"n_starts": -1}, "n_starts=-1"),
        ({"maxiter": -1}, "maxiter=-1"),
        ({"tol": 0}, "tol=0"),
        ({"tol": np.nan}, "tol=nan"),
        ({"start_theta": [np.nan, 0, 0]}, "start_theta must be a vector of finite numbers"),
        ({"start_theta": 1.0}, "start_theta must be a vector"),
        ({"freq_weights": np.zeros(200)}, "not all zero"),
        ({"freq_weights": -np.ones(200)}, "nonnegative"),
        ({"freq_weights": np.ones(3)}, r"shape \(200,\)"),
    ],
)
def test_errors_say_what_is_wrong(kwargs, message):
    with pytest.raises(ValueError, match=message):
        minimize(sample(), **{"eps_bar": 0.3, **kwargs})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Problem().losses(np.zeros(1)), "losses"),
        (lambda: Problem().weighted_fit(np.zeros(1)), "weighted_fit"),
        (lambda: SmoothProblem().gradients(np.zeros(1)), "gradients"),
        (lambda: SmoothProblem().hessian(np.zeros(1), np.zeros(1)), "hessian"),
    ],
)
def test_a_problem_says_what_it_lacks(call, name):
    with pytest.raises(NotImplementedError, match=rf"Problem must define {name}\("):
        call()


def test_all_rows_have_the_minimum_near_that_of_some():
    """Also where the rows that were searched prefer another of two minima."""
    endog, exog = leverage_shift(np.random.default_rng(0), 600)
    whole, setting = SquaresProblem(endog, exog), Setting(eps_bar=0.3)
    few = global_minimum(whole.take(np.arange(0, 600, 2)), setting)
    wanted, found = global_minimum(whole, setting), followed_minimum(whole, setting, few)
    assert_allclose(found.theta, wanted.theta, rtol=1e-6)
    assert found.converged and found.n_best == few.n_best
    other = whole.weighted_fit(np.full(600, 1 / 600))
    misled = replace(few, theta=other, ends=np.vstack([other, few.theta]))
    misled = replace(misled, final_risks=few.risk * np.array([1.0, 1.01]))
    assert_allclose(followed_minimum(whole, setting, misled).theta, wanted.theta, rtol=1e-6)
