import numpy as np
import pytest
import statsmodels.api as sm

from replication.rivals import (
    filter_round,
    huber,
    sever,
    sever_axis,
    sever_cov,
    sever_logit,
    sever_ols,
)
from replication.samples import (
    correlated_points,
    heavy_tailed_noise,
    logistic_labels,
    noisy_line,
    separated_strip,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_definition(fit, losses, n, eps_bar):
    """Return SEVER's fit, with the gradients of the losses from finite differences."""
    rows = np.arange(n)
    for _ in range(4):
        theta = fit(rows)
        gradients = np.transpose(
            [
                (losses(theta + step, rows) - losses(theta - step, rows)) / 2e-6
                for step in 1e-6 * np.eye(len(theta))
            ]
        )
        gradients -= gradients.mean(axis=0)
        scores = (gradients @ np.linalg.svd(gradients)[2][0]) ** 2
        rows = np.delete(rows, np.argsort(-scores)[: int(eps_bar / 2 * len(rows) + 1e-9)])
    return fit(rows)


def test_filter_by_hand():
    # Centered second column: -2, 0, 4, -2; the first column is the constant 7.
    gradients = np.c_[np.full(4, 7.0), [1.0, 3, 7, 1]]
    assert filter_round(gradients, 0.25).tolist() == [True, True, False, True]
    # Of two equal scores the earlier row goes first.
    assert filter_round(gradients, 0.5).tolist() == [False, True, False, True]
    assert filter_round(gradients, 0.24).all()


def test_filter_centers_and_takes_the_widest_direction():
    # Uncentered, the common 100 would be the direction, and row 1 the farthest along it.
    gradients = np.array([[100.0, 0], [101, 0], [100, 5], [100, -4], [99, 0], [100, -1]])
    assert filter_round(gradients, 1 / 6).tolist() == [True, True, False, True, True, True]


def test_rounds_refit_to_the_rows_left():
    z = np.array([0.0, 1, -1, 2, -2, 50, -1000, 1000])
    asked = []

    def gradients(rows):
        asked.append(list(rows))
        return (z[rows] - z[rows].mean())[:, None]

    assert sever(gradients, 8, 0.26, rounds=3).tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert sever(gradients, 8, 0.5, rounds=2).tolist() == [0, 1, 2, 3, 4]
    assert asked[3:] == [[*range(8)], [*range(6)]]


@pytest.mark.parametrize(
    ("n", "eps_bar", "rounds", "left"),
    # 0.29 * 100 is below 29 in floating point.
    [(100, 0.2, 4, 100 - 10 - 9 - 8 - 7), (60, 0.1, 2, 60 - 3 - 2), (100, 0.58, 1, 71)],
)
def test_number_of_rows_removed(n, eps_bar, rounds, left, rng):
    z = rng.standard_normal((n, 1))
    assert len(sever(lambda rows: z[rows], n, eps_bar, rounds)) == left


def test_linear_regression_against_the_definition(rng):
    y, x = heavy_tailed_noise(rng)

    def fit(rows):
        return sm.OLS(y[rows], x[rows]).fit().params

    def losses(theta, rows):
        return (y[rows] - x[rows] @ theta) ** 2

    expected = by_definition(fit, losses, len(y), 0.4)
    np.testing.assert_allclose(sever_ols(y, x, 0.4), expected, rtol=1e-9)
    np.testing.assert_allclose(sever_ols(y, x, 0), sm.OLS(y, x).fit().params, rtol=1e-9)


def test_logistic_regression_against_the_definition(rng):
    y, x = logistic_labels(rng, 300)

    def fit(rows):
        return sm.Logit(y[rows], x[rows]).fit(disp=0).params

    def losses(theta, rows):
        return np.logaddexp(0, -(2 * y[rows] - 1) * (x[rows] @ theta))

    expected = by_definition(fit, losses, len(y), 0.04)
    np.testing.assert_allclose(sever_logit(y, x, 0.04), expected, rtol=1e-6)
    np.testing.assert_allclose(sever_logit(y, x, 0), fit(np.arange(300)), rtol=1e-6)


def test_separated_rows_give_a_direction(rng):
    y, x = separated_strip(rng)
    theta = sever_logit(y[:-5], x[:-5], 0.0)
    assert np.isfinite(theta).all()
    assert ((x[:-5] @ theta > 0) == y[:-5]).all()


def test_an_axis_against_the_definition(rng):
    data = noisy_line(rng)

    def fit(rows):
        return np.linalg.svd(data[rows])[2][0]

    def losses(axis, rows):
        return ((data[rows] - np.outer(data[rows] @ axis, axis)) ** 2).sum(axis=1)

    found, expected = sever_axis(data, 0.4), by_definition(fit, losses, len(data), 0.4)
    assert abs(found @ expected) == pytest.approx(1, abs=1e-12)
    assert abs(sever_axis(data, 0) @ fit(np.arange(len(data)))) == pytest.approx(1, abs=1e-12)


def test_a_covariance_against_the_definition(rng):
    data = correlated_points(rng)

    def fit(rows):
        return np.r_[data[rows].mean(axis=0), np.cov(data[rows].T, bias=True).ravel()]

    def losses(theta, rows):
        centered, cov = data[rows] - theta[:2], theta[2:].reshape(2, 2)
        mahalanobis = np.einsum("ni,ij,nj->n", centered, np.linalg.inv(cov), centered)
        return mahalanobis + np.log(np.linalg.det(cov))

    expected = by_definition(fit, losses, len(data), 0.3)[2:].reshape(2, 2)
    np.testing.assert_allclose(sever_cov(data, 0.3), expected)
    np.testing.assert_allclose(sever_cov(data, 0), np.cov(data.T, bias=True))


def test_huber_is_rlm(rng):
    y, x = heavy_tailed_noise(rng)
    np.testing.assert_allclose(huber(y, x), sm.RLM(y, x).fit().params)
