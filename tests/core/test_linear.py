"""Kernels of losses of a linear predictor."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import Setting
from rrmstats.core.design import orthogonal_fit, solve_gram
from rrmstats.core.linear import CHUNK, PAIRS_MAX, LinearProblem
from rrmstats.core.steps import take_steps
from rrmstats.losses import SquaresProblem

RNG = np.random.default_rng(0)


def design(n=200, k=4):
    return np.random.default_rng(1).standard_normal((n, k))


def collinear():
    exog = design()
    return np.c_[exog, exog[:, 0] - 2 * exog[:, 1]]


@pytest.mark.parametrize("n", [50, CHUNK + 77, 2 * CHUNK])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_gram_in_pairs_and_in_chunks(n, batch):
    exog = design(n, 3)
    if n > 50:
        exog = np.tile(exog, 5)  # too many entries for stored pairs
        assert exog.size * exog.shape[1] > PAIRS_MAX
    problem = LinearProblem(np.zeros(n), exog)
    weights, targets = RNG.random((*batch, n)), RNG.standard_normal((*batch, 2, n))
    gram, moments = problem.gram(weights, targets)
    assert_allclose(gram, np.einsum("...n,ni,nj->...ij", weights, exog, exog), atol=1e-9)
    assert_allclose(moments, targets @ exog, atol=1e-9)


DESIGNS = {
    "plain": design(),
    "collinear": collinear(),
    "near collinear": np.c_[design(), design()[:, 0] + 1e-6 * design(k=5)[:, 4]],
}


@pytest.mark.parametrize("exog", DESIGNS.values(), ids=DESIGNS)
def test_weighted_least_squares_switches_to_orthogonal_fits(exog):
    target = RNG.standard_normal(len(exog))
    weights = RNG.random((2, len(exog))) * (RNG.random(len(exog)) < 0.8)
    found = LinearProblem(target, exog).weighted_least_squares(weights, target)
    for theta, w in zip(found, weights, strict=True):
        root = np.sqrt(w)[:, None]
        expected = np.linalg.pinv(root * exog, rcond=1e-14) @ (root[:, 0] * target)
        assert_allclose(exog @ theta, exog @ expected, atol=1e-8)
        assert_allclose(exog @ orthogonal_fit(exog, target, w), exog @ expected, atol=1e-8)


def test_orthogonal_fits_do_not_depend_on_the_scale_of_columns():
    exog, target = design(20, 3), design(20, 4)[:, 3]
    weights = np.r_[np.ones(2), np.full(18, 1e-14)]  # the Gram matrix has lost its third column
    unit = np.array([1.0, 1e-9, 1e9])
    assert not solve_gram(exog.T @ (weights[:, None] * exog), target[:3])[1]
    plain, scaled = (
        LinearProblem(target, x).weighted_least_squares(weights, target)
        for x in (exog, exog * unit)
    )
    root = np.sqrt(weights)
    assert_allclose(
        plain, np.linalg.lstsq(root[:, None] * exog, root * target, None)[0], rtol=1e-6
    )
    assert_allclose(scaled * unit, plain, rtol=1e-6)


def test_slopes_that_cannot_be_written_are_left_alone():
    """A loss may return arrays that it keeps, such as constants spread over the rows."""

    class Kept(SquaresProblem):
        def link_slopes(self, eta):
            slopes = tuple(np.array(part) for part in super().link_slopes(eta))
            for part in slopes:
                part.flags.writeable = False
            return slopes

        def gradients(self, theta):
            found = super().gradients(theta)
            found.flags.writeable = False
            return found

    rng = np.random.default_rng(0)
    exog = rng.standard_normal((50, 2))
    endog = exog @ [1.0, 2.0] + rng.standard_normal(50)
    found, expected = (
        take_steps(kind(endog, exog), Setting(eps_bar=0.2)) for kind in (Kept, SquaresProblem)
    )
    assert_allclose(found.params, expected.params, rtol=1e-10)
    assert_allclose(found.covariance(), expected.covariance(), rtol=1e-10)
