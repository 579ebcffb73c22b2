"""Solutions of second steps are coherent."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats import RRMPCA, RRMCov
from rrmstats.losses.rungs import tempered_weights


def test_weights_are_tilted_frequencies():
    spread = np.array([0.2, 0.3, 0.5, 0.0])
    weights = tempered_weights(np.array([1.0, 2.0, 1e300, -5.0]), 2.0, spread)
    assert_allclose(weights[:2], spread[:2] * np.exp([0, -0.5]) / (0.2 + 0.3 * np.exp(-0.5)))
    assert weights[2] == weights[3] == 0


@pytest.mark.parametrize("name", ["cov", "pca"])
def test_a_second_step_is_a_solution(name):
    x = np.random.default_rng(0).standard_normal((120, 4)) * [4, 2, 1, 1]
    x[:12] += 15
    model = RRMCov(x, 0.2) if name == "cov" else RRMPCA(x, 2, 0.2)
    res = model.fit(efficiency=0.95)
    found, problem = res._estimate.solution, res._estimate.problem
    assert found.converged
    assert_allclose(found.weights.sum(), 1)
    assert_allclose(found.losses, problem.losses(found.theta))
    tilt = np.exp(-(found.losses - found.losses.min()) / found.lambda_)
    assert_allclose(found.weights, tilt / tilt.sum(), atol=1e-12)
    assert_allclose(found.risk, found.weights @ found.losses)
    used = found.weights > 0
    entropy = -found.weights[used] @ np.log(found.weights[used])
    assert_allclose(found.n_eff, np.exp(entropy))
    again = problem.losses(problem.weighted_fit(found.weights))
    assert_allclose(again[12:], found.losses[12:], rtol=1e-5, atol=1e-6)
    first = res._estimate.first.solution
    assert found.trace[: len(first.trace)] == first.trace
    chosen = int(np.flatnonzero(res.ladder.chosen)[0])
    assert len(found.trace) == len(first.trace) + chosen
    assert found.trace[-1].n_eff == found.n_eff
