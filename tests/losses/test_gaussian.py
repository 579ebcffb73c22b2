"""Closed forms for Gaussian rows under tilted weights, against integrals and simulations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import chi2

from rrmstats.core.consistency import efficient_order
from rrmstats.losses.gaussian import Core, difference_variance, rung_covariance, tilted_moments


def expected(function, dim):
    """Return the mean of a function of the squared distance of a standard Gaussian row."""
    return quad(lambda s: function(s) * chi2.pdf(s, dim), 0, np.inf)[0]


@pytest.mark.parametrize("dim", [1, 2.5, 6])
def test_tilted_moments(dim):
    for k, found in enumerate(tilted_moments(Core(dim), 1.7, 0.3)):
        exact = expected(lambda s, k=k: s**k * np.exp(0.3 - 0.35 * s), dim)
        assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("orders", [(1.0, 1.0), (1.3, 1.3), (1.8, 1.1)])
def test_covariances_are_those_of_the_influence_functions(dim, orders):
    def influence(a, s):
        return a ** (dim / 2 + 1) * np.exp(-0.5 * (a - 1) * s)

    def both(s):
        return influence(orders[0], s) * influence(orders[1], s)

    a, b = orders
    size = expected(lambda s: both(s) * (a * s / dim - 1) * (b * s / dim - 1), dim)
    location = expected(lambda s: both(s) * s / dim, dim)
    shape = expected(lambda s: both(s) * a * b * s * s / (dim * (dim + 2)), dim)
    assert_allclose(rung_covariance(a, b, dim), [size, location, shape], rtol=1e-6)


def test_the_classical_estimates_are_order_one():
    assert_allclose(rung_covariance(1, 1, 4), [2 / 4, 1, 1])
    assert Core(4).bias(1.0) == pytest.approx(-1)
    assert Core(4, regressors=0).bias(1.0) == pytest.approx(0)
    assert Core(2.5, regressors=3, shaped=False).bias(1.0) == pytest.approx(-3)
    assert_allclose(difference_variance(1.4, 1.4, 3), 0, atol=1e-12)


def fixed_points(x, order, turns=40):
    """Return the fixed points S = a S_w of many samples, shape (r, n, d) to (r, d, d)."""
    dim = x.shape[2]
    scatter, location = np.tile(np.eye(dim), (len(x), 1, 1)), np.zeros((len(x), 1, dim))
    for _ in range(turns):
        centered = x - location
        turned = np.linalg.solve(scatter, np.swapaxes(centered, 1, 2))
        w = np.exp(-0.5 * (order - 1) * np.einsum("rdn,rnd->rn", turned, centered))[..., None]
        location = (w * x).sum(axis=1, keepdims=True) / w.sum(axis=1, keepdims=True)
        centered = x - location
        scatter = order * np.swapaxes(centered, 1, 2) @ (w * centered) / w.sum(axis=1)[..., None]
    return scatter


@pytest.mark.parametrize(("dim", "efficiency", "bias"), [(2, 0.7, -1.9), (3, 0.8, -1.2)])
def test_the_bias_of_the_size(dim, efficiency, bias):
    """What the influence functions explain is taken off, and with it most of the noise."""
    order, n, runs = efficient_order(efficiency, dim), 400, 300
    x = np.random.default_rng(1).standard_normal((runs, n, dim))
    square = (x**2).sum(axis=2)
    w = np.exp(-0.5 * (order - 1) * square)
    explained = order ** (dim / 2 + 1) * (w * (order * square / dim - 1)).mean(axis=1)
    sizes = np.trace(fixed_points(x, order), axis1=1, axis2=2) / dim
    found = n * (sizes - 1 - explained)
    error = found.std() / np.sqrt(runs)
    assert_allclose(Core(dim).bias(order), found.mean(), atol=4 * error + 0.05)
    assert_allclose(Core(dim).bias(order), bias, atol=0.15)
    assert error < 0.25
