import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from replication.samples import other_subspace, shifted_cluster
from rrmstats.core.descent import Descent
from rrmstats.core.extrapolation import Anderson, change_size
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.problem import FunctionProblem
from rrmstats.losses.components import SubspaceProblem
from rrmstats.losses.covariance import ScatterProblem


def test_a_linear_iteration_is_solved_by_a_few_steps():
    rng = np.random.default_rng(0)
    root = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    contraction = root @ np.diag(np.r_[0.9, 0.7, np.zeros(18)]) @ root.T
    fixed, weights = rng.standard_normal(20), np.full(20, 0.05)
    history, given = Anderson(), np.zeros(20)
    for _ in range(4):  # one difference per eigenvalue
        found = fixed + contraction @ (given - fixed)
        history.record(given, found)
        proposed = history.propose(weights)
        given = found if proposed is None else proposed
    assert_allclose(given, fixed, atol=1e-9)


def test_nothing_is_proposed_without_a_history_or_from_infinite_losses():
    history, weights = Anderson(), np.full(3, 1 / 3)
    assert history.propose(weights) is None
    history.record(np.zeros(3), np.ones(3))
    assert history.propose(weights) is None
    history.record(np.ones(3), np.array([1.0, 2.0, np.inf]))
    assert history.propose(weights) is None
    history.forget()
    assert history.propose(weights) is None


def test_the_size_of_a_change_leaves_out_shifts_and_rows_of_no_weight():
    weights = np.array([0.5, 0.5, 0.0])
    assert change_size(np.zeros(3), np.array([2.0, 2.0, np.inf]), weights) == 0
    assert_allclose(change_size(np.zeros(3), np.array([1.0, 3.0, 9.0]), weights), 1)


def extrapolated_problem(kind, rng, d=8, n=120):
    """Return a problem whose steps are extrapolated, its Hessian being dear."""
    if kind == "scatter":
        shift = np.r_[6.0, np.zeros(d - 1)]
        return ScatterProblem(shifted_cluster(rng, n, np.eye(d), 0.1, shift))
    return SubspaceProblem(other_subspace(rng, n, 3 * d, 3, 0.1), 3)


def descend(problem, eps_bar, accelerate, tol=1e-12, maxiter=5000):
    n = problem.n_obs
    budget = Budget(eps_bar, None, n)
    start = problem.weighted_fit(budget.uniform(n))[None]
    points = evaluate(problem, start, budget)
    return Descent(problem, points, budget).run(tol, maxiter, accelerate)


def risks(descent):
    return np.array([step.risk for step in descent.steps(0)])


@pytest.mark.parametrize("kind", ["scatter", "subspace"])
@pytest.mark.parametrize("eps_bar", [0.1, 0.25])
def test_extrapolation_ends_where_algorithm_1_does(kind, eps_bar):
    problem = extrapolated_problem(kind, np.random.default_rng(0))
    assert not problem.newton_pays
    fast, plain = (descend(problem, eps_bar, accelerate) for accelerate in (True, False))
    assert fast.converged.all() and plain.converged.all()
    assert_allclose(fast.points.risk, plain.points.risk, rtol=1e-9)
    assert_allclose(fast.points.weights, plain.points.weights, atol=1e-6)
    again = evaluate(problem, problem.weighted_fit(fast.points.weights), fast.budget)
    assert_allclose(again.losses, fast.points.losses, rtol=1e-5, atol=1e-5)
    assert "extrapolated" in {step.kind for step in fast.steps(0)}


def test_extrapolation_takes_fewer_steps_where_algorithm_1_is_slow():
    problem = extrapolated_problem("scatter", np.random.default_rng(0))
    fast, plain = (descend(problem, 0.1, accelerate) for accelerate in (True, False))
    assert len(fast.steps(0)) < 0.7 * len(plain.steps(0))


@settings(max_examples=25)
@given(
    kind=st.sampled_from(["scatter", "subspace"]),
    seed=st.integers(0, 2**32 - 1),
    eps_bar=st.floats(0.01, 0.6),
)
def test_the_risk_never_rises(kind, seed, eps_bar):
    problem = extrapolated_problem(kind, np.random.default_rng(seed), d=6, n=60)
    found = risks(descend(problem, eps_bar, True, 1e-10, 60))
    assert len(found) > 1
    assert (np.diff(found) <= 1e-12 * np.abs(found[:-1])).all()


def test_problems_without_derivatives_are_extrapolated_too():
    rng = np.random.default_rng(0)
    data = shifted_cluster(rng, 80, np.eye(2), 0.1, 3.0)
    problem = FunctionProblem(
        lambda theta: ((data - theta) ** 2).sum(axis=1), lambda weights: weights @ data, 80, 2
    )
    fast, plain = (descend(problem, 0.2, accelerate) for accelerate in (True, False))
    assert_allclose(fast.points.theta, plain.points.theta, atol=1e-4)
    assert (np.diff(risks(fast)) <= 0).all()
