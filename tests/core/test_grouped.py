"""Groups of rows as the observations of a problem."""

import numpy as np
import pytest

from rrmstats.core import GroupedProblem, Groups, entropy_weights, minimize
from rrmstats.core.grouped import design_effect
from rrmstats.core.setting import Setting
from rrmstats.losses.classification import ClassificationProblem
from rrmstats.losses.covariance import CovarianceProblem
from rrmstats.losses.regression import RegressionProblem


def regression(rng, codes, bad=0):
    x = np.c_[np.ones(len(codes)), rng.standard_normal(len(codes))]
    slope = np.where(codes < bad, -2.0, 2.0)
    return RegressionProblem(1 + slope * x[:, 1] + rng.standard_normal(len(codes)), x)


def labels(rng, codes):
    x = np.c_[np.ones(len(codes)), rng.standard_normal(len(codes))]
    y = (rng.random(len(codes)) < 1 / (1 + np.exp(-x[:, 1]))).astype(float)
    return ClassificationProblem(y, x, alpha=1e-5)


PROBLEMS = {
    "regression": regression,
    "labels": labels,
    "scatter": lambda rng, codes: CovarianceProblem(rng.standard_normal((len(codes), 2))),
}


@pytest.fixture
def uneven():
    return np.random.default_rng(3).permutation(np.repeat(np.arange(12), np.arange(2, 14)))


def test_means_and_weights_of_rows_with_frequency_weights():
    groups = Groups(np.array([0, 1, 0, 1]), 2, np.array([1.0, 3.0, 1.0, 0.0]))
    np.testing.assert_allclose(groups.sizes, [2, 3])
    np.testing.assert_allclose(groups.means(np.array([1.0, 5.0, 3.0, np.inf])), [2, 5])
    np.testing.assert_allclose(groups.rows(np.array([0.4, 0.6])), [0.2, 0.6, 0.2, 0.0])
    np.testing.assert_array_equal(groups.members(np.array([1, 0])), [1, 3, 0, 2])


@pytest.mark.parametrize("name", PROBLEMS)
def test_derivatives_of_the_concentrated_risk(name, uneven):
    grouped = GroupedProblem(PROBLEMS[name](np.random.default_rng(0), uneven), Groups(uneven, 12))
    sizes = grouped.groups.sizes
    theta = grouped.weighted_fit(sizes * np.linspace(1, 2, 12) / (sizes @ np.linspace(1, 2, 12)))

    def risk(step):
        moved = grouped.retract(theta, np.asarray(step))
        weights = np.asarray(sizes / sizes.sum())
        losses = grouped.losses(moved)
        found = entropy_weights(losses, 0.2, freq_weights=weights)
        return found.weights @ losses, found, losses

    k = grouped.gradients(theta).shape[1]
    _, found, losses = risk(np.zeros(k))
    gradient, hessian, _ = (
        part[0]
        for part in grouped.concentrated(
            theta[None], losses[None], found.weights[None], np.array([found.lambda_])
        )
    )
    h, eye = 1e-4, np.eye(k)
    for i in range(k):
        up, down = risk(h * eye[i])[0], risk(-h * eye[i])[0]
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], abs=1e-6)
        second = (up - 2 * risk(np.zeros(k))[0] + down) / h**2
        assert second == pytest.approx(hessian[i, i], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", PROBLEMS)
def test_groups_of_one_row_have_the_minimum_of_the_rows(name):
    codes = np.arange(60)
    problem = PROBLEMS[name](np.random.default_rng(1), codes)
    rows = minimize(problem, 0.15)
    groups = minimize(GroupedProblem(problem, Groups(codes, 60)), 0.15)
    assert groups.risk == pytest.approx(rows.risk, rel=1e-8)
    np.testing.assert_allclose(groups.weights, rows.weights, atol=1e-6)


def test_search_finds_the_minimum_behind_bad_groups():
    codes = np.repeat(np.arange(30), 8)
    problem = GroupedProblem(regression(np.random.default_rng(2), codes, 10), Groups(codes, 30))
    good = np.r_[np.zeros(10), np.ones(20)] / 20
    inside = minimize(problem, 0.4, start_theta=problem.weighted_fit(good), n_starts=0)
    found = minimize(problem, 0.4)
    assert found.risk <= inside.risk * (1 + 1e-9)
    assert found.weights[:10].sum() < 1e-3


def test_as_many_groups_determine_a_fit_as_their_predictors_need():
    codes = np.repeat(np.arange(10), 6)
    rng = np.random.default_rng(0)
    level = rng.standard_normal(10)[codes]  # constant within groups
    exog = np.c_[np.ones(60), level, rng.standard_normal(60)]
    by_group = GroupedProblem(RegressionProblem(level, exog), Groups(codes, 10))
    assert by_group.subset_size == 2
    within = GroupedProblem(RegressionProblem(level, exog[:, [0, 2]]), Groups(codes, 10))
    assert within.subset_size == 1


def test_a_part_of_the_groups_has_their_losses(uneven):
    counts = np.random.default_rng(0).integers(1, 4, len(uneven)).astype(float)
    problem = regression(np.random.default_rng(0), uneven)
    grouped = GroupedProblem(problem, Groups(uneven, 12, counts))
    theta, some = np.array([[0.5, 1.0], [1.0, 2.0]]), np.array([7, 2, 9])
    np.testing.assert_allclose(
        grouped.take(some).losses(theta), grouped.losses(theta)[:, some], rtol=1e-12
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_that_are_repeated_tell_no_more_than_one(name):
    codes, rng = np.repeat(np.arange(150), 4), np.random.default_rng(6)
    if name == "labels":
        one = labels(rng, np.arange(150))
        repeated = ClassificationProblem(one.endog[codes], one.exog[codes], alpha=1e-5)
    elif name == "scatter":
        repeated = CovarianceProblem(rng.standard_normal((150, 2))[codes])
    else:
        one = regression(rng, np.arange(150))
        repeated = RegressionProblem(one.endog[codes], one.exog[codes])
    for problem, least, most in ((repeated, 3.8, 6.0), (PROBLEMS[name](rng, codes), 1.0, 1.6)):
        grouped = GroupedProblem(problem, Groups(codes, 150))
        found = minimize(grouped, 0.0, freq_weights=grouped.groups.sizes)
        assert least <= design_effect(grouped, found) <= most


@pytest.mark.parametrize("name", ["regression", "scatter", "labels"])
def test_influence_functions_are_those_of_a_refit(name):
    """The mass of one group is enlarged a little, and the consistent estimate made again."""
    codes = np.random.default_rng(5).permutation(np.repeat(np.arange(40), [4, 12] * 20))
    problem = PROBLEMS[name](np.random.default_rng(4), codes)
    if name == "labels":
        problem = ClassificationProblem(problem.endog, problem.exog, alpha=0.0)
    grouped = GroupedProblem(problem, Groups(codes, 40))
    setting = Setting(eps_bar=0.15, freq_weights=grouped.groups.sizes, tol=1e-12)
    fit = minimize(grouped, 0.15, freq_weights=setting.freq_weights, tol=1e-12)
    estimate = grouped.consistent(fit, setting)
    influence, total = estimate.influence(), setting.freq_weights.sum()
    order = np.argsort(fit.weights / setting.freq_weights)
    for g in order[[0, 20, 39]]:
        ends = []
        for sign in (1, -1):
            masses = setting.freq_weights.copy()
            masses[g] += sign * 1e-4 * total
            moved = minimize(
                grouped, 0.15, freq_weights=masses, start_theta=fit.theta, n_starts=0, tol=1e-12
            )
            again = Setting(eps_bar=0.15, freq_weights=masses, tol=1e-12)
            ends.append(grouped.consistent(moved, again).params)
        slope = (ends[0] - ends[1]) / 2e-4
        scale = np.abs(influence).max(axis=0)
        np.testing.assert_allclose(slope / scale, influence[g] / scale, atol=0.03)
