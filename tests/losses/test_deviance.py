"""Half the unit deviance as a problem: derivatives, and finite numbers at any parameters."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from rrmstats.losses.deviance import DevianceProblem
from rrmstats.models.generalized import loss_family, mean_function

F, L = sm.families, sm.families.links
CASES = [
    (F.Gaussian(), (0.5, 3.0)),
    (F.Gaussian(L.Log()), (0.5, 3.0)),
    (F.Gaussian(L.InversePower()), (0.5, 3.0)),
    (F.Gamma(L.Log()), (0.5, 3.0)),
    (F.Gamma(L.InversePower()), (0.5, 3.0)),
    (F.InverseGaussian(L.InverseSquared()), (0.5, 3.0)),
    (F.Poisson(), (0.5, 3.0)),
    (F.Poisson(L.Sqrt()), (0.5, 3.0)),
    (F.Poisson(L.Identity()), (0.5, 3.0)),
    (F.NegativeBinomial(alpha=0.5), (0.5, 3.0)),
    (F.Tweedie(var_power=1.5), (0.5, 3.0)),
    (F.Binomial(), (0.1, 0.9)),
    (F.Binomial(L.Probit()), (0.1, 0.9)),
    (F.Binomial(L.CLogLog()), (0.1, 0.9)),
    (F.Binomial(L.Cauchy()), (0.1, 0.9)),
    (F.Binomial(L.Log()), (0.1, 0.9)),
]


def problem_of(family, low, high, n=30):
    rng = np.random.default_rng(0)
    mean, ours = rng.uniform(low, high, n), loss_family(family)
    endog = np.round(10 * mean) / 10 if ours.positive else mean - 0.4
    if ours.zeros:
        endog[:3] = 0.0
    offset, weights = 0.1 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    exog = np.c_[np.ones(n), rng.standard_normal(n)]
    mean_of = mean_function(family.link, ours, endog)
    return DevianceProblem(endog, exog, offset, weights, family=ours, mean=mean_of), mean


@pytest.mark.parametrize(("family", "ends"), CASES)
def test_slopes_are_derivatives(family, ends):
    problem, mean = problem_of(family, *ends)
    eta, step = family.link(mean) - problem.offset, 1e-5
    first, second = problem.link_slopes(eta)
    above, below = eta + step, eta - step
    numeric = (problem.link_losses(above) - problem.link_losses(below)) / (2 * step)
    assert_allclose(first, numeric, rtol=1e-5, atol=1e-6)
    numeric = (problem.link_slopes(above)[0] - problem.link_slopes(below)[0]) / (2 * step)
    assert_allclose(second, numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("family", "ends"), CASES)
def test_losses_are_finite_at_any_linear_predictor(family, ends):
    problem, _ = problem_of(family, *ends)
    for eta in (-1e8, -30.0, 0.0, 30.0, 1e8):
        at = np.full((2, problem.n_obs), eta)
        assert np.isfinite(problem.link_losses(at)).all()
        assert all(np.isfinite(part).all() for part in problem.link_slopes(at))
        assert (problem.link_losses(at) >= 0).all()


def test_weights_that_leave_out_all_positive_counts_are_not_admitted():
    endog = np.r_[np.zeros(90), np.ones(10)]
    family = F.Poisson()
    ours = loss_family(family)
    mean = mean_function(family.link, ours, endog)
    problem = DevianceProblem(endog, np.ones((100, 1)), family=ours, mean=mean)
    even = np.full(100, 0.01)
    zeros_only = np.r_[np.full(90, 1 / 90), np.zeros(10)]
    weights = np.array([even, zeros_only])
    assert problem.admissible(weights, even).tolist() == [True, False]
    mostly_zeros = np.r_[np.full(90, 0.999 / 90), np.full(10, 1e-4)]
    assert problem.admissible(mostly_zeros[None], even).tolist() == [False]
    assert problem.admissible(mostly_zeros[None], mostly_zeros).tolist() == [True]
