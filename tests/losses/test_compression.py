"""Many squared residuals as a few: the same sums, and the same estimates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rrmstats.core import Setting
from rrmstats.core.search import global_minimum
from rrmstats.losses import compression
from rrmstats.losses.compression import compressed
from rrmstats.losses.regression import RegressionProblem

N = 30_000


def values(kind):
    rng = np.random.default_rng(1)
    found = rng.chisquare(1, N)
    if kind == "far":
        found[: N // 3] = 1e12 * (1 + found[: N // 3])
    if kind == "ties":
        found[: N // 2] = np.repeat([0.0, 0.25, 1.0], N // 6)
    return found


@pytest.mark.parametrize("kind", ["plain", "far", "ties"])
@pytest.mark.parametrize("rate", [0.05, 0.5, 5.0])
def test_sums_of_weights_are_the_same(kind, rate):
    squares, mass = values(kind), 1.0 + np.arange(N) % 3
    points, masses = compressed(squares, mass, 0.3)
    assert len(points) < 5_000
    assert (masses >= 0).all()
    assert_allclose(masses.sum(), mass.sum(), rtol=1e-12)
    for power in (0, 1):
        expected = mass @ (squares**power * np.exp(-rate * squares))
        assert_allclose(masses @ (points**power * np.exp(-rate * points)), expected, rtol=1e-9)


def test_few_values_stay_as_they_are():
    squares, mass = values("plain")[:1000], np.ones(1000)
    points, masses = compressed(squares, mass, 1.0)
    assert points is squares
    assert masses is mass


@pytest.mark.parametrize("eps_bar", [0.04, 0.2, 0.45])
def test_the_estimate_of_the_noise_is_that_of_all_rows(monkeypatch, eps_bar):
    rng = np.random.default_rng(2)
    exog = np.c_[np.ones(N), rng.standard_normal((N, 2))]
    endog = exog.sum(axis=1) + rng.standard_normal(N)
    endog[: N // 10] += 8
    problem, setting = RegressionProblem(endog, exog), Setting(eps_bar)
    solution = global_minimum(problem, setting)
    few = problem.consistent(solution, setting)
    monkeypatch.setattr(compression, "LEAST_ROWS", N + 1)
    all_rows = problem.consistent(solution, setting)
    assert_allclose(few.scale, all_rows.scale, rtol=1e-8)
    assert_allclose(few.eps_hat, all_rows.eps_hat, atol=1e-8)
    assert few.rung.order == all_rows.rung.order
