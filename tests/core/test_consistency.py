import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq

from rrmstats.core.consistency import gaussian_efficiency, kish_fraction, second_moment_ratio


def radial_mean(function, dim):
    """Return the mean of a function of r = |x| for standard Gaussian x, up to a constant."""

    def integrand(r):
        return function(r) * r ** (dim - 1) * np.exp(-r * r / 2)

    return quad(integrand, 0, 40, epsabs=1e-14, epsrel=1e-12, limit=400, points=[1.0])[0]


def integrated(eps_bar, dim):
    """Return ratio, efficiency and Kish fraction of the tilted Gaussian by integration alone."""
    norm = radial_mean(lambda r: 1.0, dim)

    def moments(beta):
        mass = radial_mean(lambda r: np.exp(-beta * r * r), dim) / norm
        second = radial_mean(lambda r: r * r * np.exp(-beta * r * r), dim) / norm / mass
        return mass, second

    def gap(log_beta):
        mass, second = moments(np.exp(log_beta))
        return -np.log(mass) - np.exp(log_beta) * second + np.log1p(-eps_bar)

    beta = np.exp(brentq(gap, -15, 10, xtol=1e-13))
    mass, second = moments(beta)
    squared = radial_mean(lambda r: np.exp(-2 * beta * r * r), dim) / norm
    # psi(x) = x exp(-beta |x|^2): variance E psi_1^2 / (E d psi_1 / d x_1)^2.
    meat = radial_mean(lambda r: r * r * np.exp(-2 * beta * r * r), dim) / norm / dim
    bread = mass * (1 - 2 * beta * second / dim)
    return second / dim, bread**2 / meat, mass**2 / squared


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("eps_bar", [0.01, 0.1, 0.2, 0.4, 0.8])
def test_closed_forms_match_integration(eps_bar, dim):
    found = [f(eps_bar, dim) for f in (second_moment_ratio, gaussian_efficiency, kish_fraction)]
    assert_allclose(found, integrated(eps_bar, dim), rtol=1e-8)


def test_known_values():
    assert_allclose(second_moment_ratio(0.4), 0.154575, atol=1e-6)
    efficiencies = [gaussian_efficiency(eps_bar) for eps_bar in (0.1, 0.2, 0.4)]
    assert_allclose(efficiencies, [0.6272, 0.4036, 0.1524], atol=5e-5)


@pytest.mark.parametrize("f", [second_moment_ratio, gaussian_efficiency, kish_fraction])
def test_nothing_is_lost_without_contamination(f):
    assert f(0.0) == 1
    assert_allclose(f(1e-12), 1, atol=1e-5)
    assert f(0.999) > 0
