"""Corrections for fitted residuals, against simulated fits to clean noise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from rrmstats.core.consistency import (
    order_efficiency,
    residual_factor,
    scale_factor,
    scale_shortfall,
    scale_variance,
    share_excess,
    share_factor,
)

ORDERS = [1.0, 1.2, 1.6, 2.0]


def location_of_order(noise, order, scale):
    """Return the weighted mean of noise (m, n) at a known scale, shape (m,)."""
    at = np.zeros(len(noise))
    for _ in range(30):
        weights = np.exp(-0.5 * (order - 1) * (noise - at[:, None]) ** 2 / scale)
        at += order * ((weights * noise).sum(axis=1) / weights.sum(axis=1) - at)
    return at


@pytest.mark.parametrize("fitted", ORDERS)
@pytest.mark.parametrize("order", ORDERS)
def test_shortfall_and_excess_are_those_of_simulated_residuals(order, fitted):
    """A location is fitted to n rows: the mean score of the scale falls by the shortfall / n."""
    n, samples = 60, 6_000
    noise = np.random.default_rng(3).standard_normal((samples, n))
    resid = noise - location_of_order(noise, fitted, 1.0)[:, None]

    def score(values):
        return (np.exp(-0.5 * (order - 1) * values**2) * (order * values**2 - 1)).mean(axis=1)

    def share(values):
        return np.sqrt(order) * np.exp(-0.5 * (order - 1) * values**2).mean(axis=1)

    # The score has slope -order^-1.5 in the log scale.
    lost = (score(noise) - score(resid)) * order**1.5 * n
    error = 4 * lost.std() / np.sqrt(samples)
    assert_allclose(lost.mean(), scale_shortfall(order, fitted), atol=error + 0.06)
    gained = (share(resid) - share(noise)) * n
    # `share_excess` is at the right scale.
    assert_allclose(
        gained.mean(), share_excess(order, fitted), atol=4 * gained.std() / samples**0.5 + 0.06
    )


def test_least_squares_has_the_usual_corrections():
    assert_allclose(scale_factor(0.2, 1.0, 1.0), 1 / 0.8)
    assert_allclose(residual_factor(0.2, 1.0), 1 / 0.8)
    assert_allclose(share_factor(0.2, 1.0, 1.0), 1.0)
    assert_allclose(scale_variance(1.0), 2.0)


@pytest.mark.parametrize("order", ORDERS)
def test_variance_of_the_log_scale(order):
    """The influence function is w (a z^2 - 1) over the mean slope a^-1.5."""

    def squared(z):
        weight = np.exp(-0.5 * (order - 1) * z * z)
        return (weight * (order * z * z - 1) * order**1.5) ** 2 * norm.pdf(z)

    assert_allclose(scale_variance(order), quad(squared, -12, 12)[0], rtol=1e-8)


def test_more_parameters_than_rows_are_bounded():
    for factor in (scale_factor(3.0, 1.5, 1.5), share_factor(3.0, 1.5, 1.5)):
        assert 0 < factor < np.inf
    assert residual_factor(3.0, 2.0) == pytest.approx(0.25 ** (-1 / order_efficiency(2.0)))
