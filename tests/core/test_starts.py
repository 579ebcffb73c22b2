import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from replication.samples import leverage_shift
from rrmstats import RRMOLS
from rrmstats.core import minimize
from rrmstats.core.descent import bounded_step, newton_steps
from rrmstats.core.points import Budget, evaluate
from rrmstats.core.problem import FunctionProblem
from rrmstats.core.spectral import PARTS
from rrmstats.core.starts import (
    FINALISTS,
    SPECTRAL_FINALISTS,
    Starts,
    canonical_order,
    promising,
    screened_starts,
)
from rrmstats.losses import SquaresProblem


def sample(seed=0):
    return leverage_shift(np.random.default_rng(seed))


def test_the_order_does_not_depend_on_how_the_data_are_sorted():
    endog, exog = sample()
    shuffle = np.random.default_rng(1).permutation(100)
    budget = Budget(0.4, None, 100)
    straight = canonical_order(SquaresProblem(endog, exog), budget)
    shuffled = canonical_order(SquaresProblem(3 * endog[shuffle], exog[shuffle]), budget)
    assert_array_equal(shuffle[shuffled], straight)


@pytest.mark.parametrize("n_starts", [1, 100])
def test_good_starts_survive_beside_the_first(n_starts):
    problem = SquaresProblem(*sample())
    budget, first = Budget(0.4, None, 100), np.full((1, 4), -5.0)
    order, rng = canonical_order(problem, budget), np.random.default_rng(2)
    (starts,) = screened_starts(problem, [budget], order, first, [n_starts], rng, "given")
    assert 2 <= len(starts.theta) <= 1 + FINALISTS + SPECTRAL_FINALISTS
    assert_allclose(starts.risks[0], evaluate(problem, first, budget).risk[0], rtol=3e-2)
    ends = evaluate(problem, starts.theta, budget).risk
    assert starts.origin[0] == 0
    assert ends[0] < starts.risks[0]
    assert ends[1:].min() < starts.risks[1:].min()


def test_searches_at_several_bounds_are_one_batch():
    problem, first = SquaresProblem(*sample()), np.full((1, 4), -5.0)
    budgets = [Budget(bound, None, 100) for bound in (0.4, 0.1)]
    order = canonical_order(problem, budgets[0])

    def found(which, n_starts):
        rng = np.random.default_rng(2)
        return screened_starts(problem, which, order, first, n_starts, rng)

    for one, budget, count in zip(found(budgets, [60, 20]), budgets, [60, 20], strict=True):
        (alone,) = found([budget], [count])
        assert one.kinds == alone.kinds
        assert_array_equal(one.origin, alone.origin)
        assert_allclose(one.risks, alone.risks, rtol=1e-2)
        assert_allclose(one.theta, alone.theta, rtol=1e-2)


def test_nothing_is_refined_twice_or_without_a_risk():
    risks = np.array([np.inf, 3.0, 1.0, np.inf, 2.0, 9.0])
    always = np.arange(6) == 5
    assert promising(risks, always, 2).tolist() == [0, 2, 4, 5]
    assert promising(risks, always, 30).tolist() == [0, 2, 4, 1, 5]


@pytest.mark.parametrize("given", [None, np.ones(4)])
def test_starts_name_their_kinds(given):
    res = RRMOLS(*sample(), 0.4).fit(n_starts=7, start_params=given, steps=1)
    first = "uniform" if given is None else "given"
    assert res.starts["start"].tolist() == [first, *["subset"] * 7, *["spectral"] * PARTS]


def test_a_descent_from_one_start_names_it():
    model = RRMOLS(*sample(), 0.4)
    assert model.fit(n_starts=0, steps=1).starts["start"].tolist() == ["uniform"]
    alone = model.fit(n_starts=0, start_params=np.ones(4), steps=1)
    assert alone.starts["start"].tolist() == ["given"]
    assert alone.n_best == 1


def test_problems_without_derivatives_have_no_spectral_starts():
    data = np.r_[np.linspace(-1, 1, 20), 50.0]
    problem = FunctionProblem(
        lambda theta: (data - theta[0]) ** 2, lambda weights: np.array([weights @ data]), 21, 1
    )
    found = minimize(problem, 0.2, n_starts=5)
    assert found.start_kinds == ("uniform", *["subset"] * 5)


def test_descents_from_the_same_weights_count_once():
    weights = np.array([[0.5, 0.5, 0.0], [0.45, 0.5, 0.05], [0.0, 0.5, 0.5]])
    each = list(weights[:, None])
    starts = Starts(np.ones(3), ("subset",) * 3, np.zeros((3, 1)), np.arange(3), each)
    assert starts.count_apart(np.arange(3), 0.4) == 2
    assert starts.count_apart(np.array([1]), 0.4) == 1
    assert starts.count_apart(np.array([0, 1]), 0.4) == 1
    merged = starts.take(np.zeros((2, 1)), [[1], [0, 2]])
    assert merged.origin.tolist() == [1, 0]
    assert merged.count_apart(np.array([1]), 0.4) == 2


def test_small_budgets_leave_less_room_between_starts():
    weights = np.array([[0.5, 0.5, 0.0], [0.45, 0.5, 0.05]])
    starts = Starts(np.ones(2), ("subset",) * 2, np.zeros((2, 1)), np.arange(2), [weights])
    assert [starts.count_apart(np.array([0]), eps_bar) for eps_bar in (0.4, 0.02)] == [1, 2]


def test_subsets_that_fit_as_uniform_weights_do_are_no_agreement(monkeypatch):
    class NearUniform(SquaresProblem):
        """Subsets whose fits are close to each other and to the uniform one."""

        def subset_fits(self, subsets):
            steps = 1e-4 * np.arange(1, len(subsets) + 1)[:, None]
            return self.weighted_fit(np.full(self.n_obs, 1 / self.n_obs)) + steps

        def take(self, rows):
            return NearUniform(self.endog[rows], self.exog[rows])

    monkeypatch.setattr(
        "rrmstats.core.starts.spectral_starts",
        lambda problem, budget, theta: np.empty((0, len(theta))),
    )
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(100), rng.standard_normal(100)]
    endog = exog.sum(axis=1) + rng.standard_normal(100)
    found = minimize(NearUniform(endog, exog), 0.2, n_starts=10)
    assert len(found.final_risks) > 1
    assert np.ptp(found.final_risks) < 1e-6 * found.risk
    assert found.n_best == 1
    assert minimize(SquaresProblem(endog, exog), 0.2, n_starts=100).n_best > 1


class Overflowing(SquaresProblem):
    """Subsets that fit to infinity, and to nothing at all."""

    def subset_fits(self, subsets):
        theta = super().subset_fits(subsets)
        theta[0], theta[1] = 1e200, np.nan
        return theta

    def determined_fit(self, drawn):
        return np.full(self.n_params, np.nan)


def test_a_start_whose_losses_overflow_is_not_the_end():
    found = minimize(Overflowing(*sample()), 0.4)
    assert np.isinf(found.start_risks[1:3]).all()
    assert np.isfinite(np.delete(found.start_risks, [1, 2])).all()
    assert_allclose(found.risk, minimize(SquaresProblem(*sample()), 0.4).risk, rtol=1e-9)


def test_overflow_is_no_exact_fit():
    problem = SquaresProblem(*sample())
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isinf(problem.losses(np.full(4, 1e200))).all()


class Undefined(SquaresProblem):
    """A Hessian that is not finite at every other point of a batch."""

    def concentrated(self, theta, losses, weights, lambda_):
        gradient, hessian, drift = super().concentrated(theta, losses, weights, lambda_)
        hessian[1::2] = np.nan
        return gradient, hessian, drift


def test_a_hessian_that_is_not_finite_is_not_the_end():
    found = minimize(Undefined(*sample()), 0.4)
    assert found.converged
    assert_allclose(found.risk, minimize(SquaresProblem(*sample()), 0.4).risk, rtol=1e-9)


def test_no_step_is_taken_by_a_hessian_that_is_not_finite():
    gradient, hessian = np.ones((2, 2)), np.array([np.eye(2), np.full((2, 2), np.inf)])
    step, sound = newton_steps(gradient, hessian)
    assert sound.tolist() == [True, False]
    assert_allclose(step[0], -1)
    assert not bounded_step(gradient[1], hessian[1], np.eye(2))[1]
    assert not bounded_step(gradient[0], np.eye(2), hessian[1])[1]
