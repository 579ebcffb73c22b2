import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from replication.samples import one_sided_outliers
from rrmstats.core.descent import Descent, bounded_step, newton_steps
from rrmstats.core.linear import LinearProblem
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.problem import FunctionProblem, SmoothProblem
from rrmstats.losses.regression import SquaresProblem


class LogCosh(LinearProblem):
    """A loss whose curvature is not constant."""

    def link_losses(self, eta):
        return np.logaddexp(eta - self.endog, self.endog - eta)

    def link_slopes(self, eta):
        first = np.tanh(eta - self.endog)
        return first, 1 - first**2


PROBLEMS = [SquaresProblem, LogCosh]


def point(kind, eps_bar=0.3, weighted=False, seed=0):
    """Return a problem, its budget and the weights of least risk at two points."""
    rng = np.random.default_rng(seed)
    endog, exog = one_sided_outliers(rng, n=60)
    prior = rng.integers(1, 4, 60).astype(float) if weighted else None
    total = 60.0 if prior is None else prior.sum()
    budget = Budget(eps_bar, None if prior is None else prior / total, total)
    problem = kind(endog, exog)
    return problem, budget, evaluate(problem, rng.standard_normal((2, 3)), budget)


def central_difference(function, theta, step):
    """Return derivatives of an array-valued function, one row a coordinate."""
    moves = step * np.eye(len(theta))
    return np.array([(function(theta + m) - function(theta - m)) / (2 * step) for m in moves])


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("eps_bar", [0.0, 0.1, 0.3, 0.6])
def test_derivatives_match_differences(kind, weighted, eps_bar):
    problem, budget, points = point(kind, eps_bar, weighted)
    gradient, hessian, drift = problem.concentrated(
        points.theta, points.losses, points.weights, points.lambda_
    )

    def at(theta):
        return evaluate(problem, theta[None], budget)

    def slope(theta):
        p = at(theta)
        return problem.concentrated(p.theta, p.losses, p.weights, p.lambda_)[0][0]

    for i, theta in enumerate(points.theta):
        numeric = central_difference(lambda t: at(t).risk[0], theta, 1e-5)
        assert_allclose(gradient[i], numeric, rtol=1e-6, atol=1e-6)
        numeric = central_difference(slope, theta, 1e-5)
        assert_allclose(hessian[i], numeric, rtol=1e-5, atol=1e-5)
        if eps_bar:
            numeric = central_difference(lambda t: np.log(at(t).lambda_[0]), theta, 1e-5)
            assert_allclose(drift[i], numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("eps_bar", [0.0, 0.3])
def test_the_linear_kernel_equals_the_generic_one(kind, eps_bar):
    problem, _, points = point(kind, eps_bar)
    args = (points.theta, points.losses, points.weights, 1 / points.lambda_)
    fast, generic = problem.tilted_sums(*args), SmoothProblem.tilted_sums(problem, *args)
    for a, b in zip(fast, generic, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_risk_is_the_least_over_weights():
    problem, budget, points = point(SquaresProblem)
    losses = problem.losses(points.theta)
    assert_allclose(points.risk, (points.weights * losses).sum(axis=-1), rtol=1e-10)
    assert_allclose(points.excess, points.risk - losses.min(axis=-1), rtol=1e-10)
    uniform = np.full(60, 1 / 60)
    assert (points.risk < losses @ uniform).all()
    assert_allclose(np.exp(-points.divergence), 1 - budget.eps_bar)


def test_newton_steps_only_where_the_hessian_is_positive_definite():
    hessian = np.array([np.diag([2.0, 3.0]), np.diag([2.0, -3.0]), [[1e12, 1.0], [1.0, 1e-6]]])
    gradient = np.ones((3, 2))
    step, sound = newton_steps(gradient, hessian)
    assert sound.tolist() == [True, False, True]
    assert_allclose(step[0], [-1 / 2, -1 / 3])
    assert_allclose(hessian[2] @ step[2], [-1, -1], rtol=1e-6)


def test_bounded_step_descends_where_the_hessian_is_indefinite():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    majorant, gradient = root @ root.T + np.eye(4), rng.standard_normal(4)
    hessian = majorant - 3 * np.outer(root[0], root[0])
    step, sound = bounded_step(gradient, hessian, majorant)
    assert sound
    assert gradient @ step < 0
    whole, _ = bounded_step(gradient, majorant, majorant)
    assert_allclose(whole, -np.linalg.solve(majorant, gradient))
    assert not bounded_step(gradient, hessian, -majorant)[1]


def descend(problem, budget, theta, accelerate, maxiter=2000, tol=1e-10):
    return Descent(problem, evaluate(problem, theta, budget), budget).run(tol, maxiter, accelerate)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 80),
    k=st.integers(1, 4),
    eps_bar=st.floats(0.01, 0.6),
    share=st.floats(0, 0.45),
    log_shift=st.floats(-1, 8),
    accelerate=st.booleans(),
)
def test_the_risk_never_rises(seed, n, k, eps_bar, share, log_shift, accelerate):
    rng = np.random.default_rng(seed)
    endog, exog = one_sided_outliers(rng, n, np.ones(k), share, 10**log_shift)
    problem, budget = SquaresProblem(endog, exog), Budget(eps_bar, None, n)
    theta = np.array([problem.weighted_fit(budget.uniform(n)), rng.standard_normal(k)])
    first = evaluate(problem, theta, budget)
    descent = Descent(problem, first, budget).run(1e-10, 200, accelerate)
    for i in range(2):
        steps = descent.steps(i)
        risks = np.array([step.risk for step in steps])
        assert (np.diff(risks) <= 1e-9 * risks[:-1]).all()
        assert steps[0].kind == "start"
        assert {step.kind for step in steps[1:]} <= {"newton", "algorithm 1"}
        assert risks[-1] == descent.points.risk[i]


@pytest.mark.parametrize("seed", range(10))
def test_newton_and_algorithm_1_end_at_the_same_risk(seed):
    problem, budget, points = point(SquaresProblem, seed=seed)
    start = problem.weighted_fit(points.weights)
    newton, plain = (descend(problem, budget, start, accelerate) for accelerate in (True, False))
    assert newton.converged.any()
    assert plain.converged.all()
    for i in np.flatnonzero(newton.converged):
        assert_allclose(newton.points.risk[i], plain.points.risk[i], rtol=1e-6)


def test_algorithm_1_is_the_papers_step_for_step():
    problem, budget, points = point(SquaresProblem)
    theta, expected = points.theta[:1], []
    for _ in range(6):
        here = evaluate(problem, theta, budget)
        expected.append(here.risk[0])
        theta = problem.weighted_fit(here.weights)
    found = descend(problem, budget, points.theta[:1], accelerate=False, maxiter=5).steps(0)
    assert_allclose([step.risk for step in found], expected, rtol=1e-12)
    assert {step.kind for step in found[1:]} == {"algorithm 1"}


def test_a_weighted_fit_that_misses_does_not_raise_the_risk():
    z = np.random.default_rng(0).standard_normal(50)
    problem = FunctionProblem(
        lambda theta: (z - theta[0]) ** 2, lambda weights: np.array([weights @ z + 3]), 50, 1
    )
    descent = descend(problem, Budget(0.2, None, 50), np.zeros((1, 1)), accelerate=False)
    assert descent.points.theta == 0
    assert descent.converged
    assert len(descent.steps(0)) == 1


def test_a_stationary_point_has_no_gradient():
    problem, budget, points = point(LogCosh)
    points = descend(problem, budget, points.theta, accelerate=True).points
    best = np.argmin(points.risk)
    gradient = problem.concentrated(points.theta, points.losses, points.weights, points.lambda_)[0]
    assert_allclose(gradient[best], 0, atol=1e-7)


def test_budget_of_some_rows():
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    part = Budget(0.2, prior, 20.0).take(np.array([1, 3]))
    assert_allclose(part.base, [1 / 3, 2 / 3])
    assert_allclose(part.wnobs, 12)
    assert Budget(0.2, None, 4.0).take(np.array([1, 3])).wnobs == 2


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_wide_designs_descend_by_gradients_to_the_same_end(kind, weighted, monkeypatch):
    rng = np.random.default_rng(5)
    exog = np.c_[np.ones(400), rng.standard_normal((400, 59))]
    endog = exog.sum(axis=1) + rng.standard_normal(400)
    endog[:20] += 30
    prior = 1.0 + np.arange(400) % 2 if weighted else np.ones(400)
    budget = Budget(0.1, prior / prior.sum() if weighted else None, prior.sum())
    ends = []
    for wide in (True, False):
        problem = kind(endog, exog)
        monkeypatch.setattr(kind, "gradients_pay", wide)
        start = evaluate(problem, problem.weighted_fit(np.full((1, 400), 1 / 400)), budget)
        descent = Descent(problem, start, budget).run(1e-10, 100, accelerate=True)
        steps = descent.steps(0)
        assert descent.converged.all()
        assert ("quasi-newton" in {step.kind for step in steps}) == wide
        assert (np.diff([step.risk for step in steps]) <= 1e-12 * steps[0].risk).all()
        ends.append(descent.points)
    assert_allclose(ends[0].risk, ends[1].risk, rtol=1e-10)
    assert_allclose(ends[0].theta, ends[1].theta, rtol=0, atol=1e-7)


def test_designs_are_wide_where_a_hessian_costs_more_than_all_gradients():
    rng = np.random.default_rng(0)
    few, many = (SquaresProblem(np.ones(9), rng.standard_normal((9, k))) for k in (4, 80))
    assert many.gradients_pay and not few.gradients_pay
