"""Losses of one's own, and weights alone."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rrmstats
from rrmstats import RRMOLS
from rrmstats.core import entropy_weights

rng = np.random.default_rng(5)
X = np.column_stack([np.ones(120), rng.standard_normal(120)])
Y = X @ [1.0, 2.0] + 0.5 * rng.standard_normal(120)
Y[:12] = 40.0


def squares(theta):
    return (Y - X @ theta) ** 2


def gradients(theta):
    return -2 * (Y - X @ theta)[:, None] * X


def hessian(theta, weights):
    return 2 * X.T @ (weights[:, None] * X)


def least_squares(weights):
    root = np.sqrt(weights)[:, None]
    return np.linalg.lstsq(root * X, root[:, 0] * Y, rcond=None)[0]


OPTIONS = [
    {},
    {"gradients": gradients},
    {"gradients": gradients, "hessian": hessian},
    {"weighted_fit": least_squares},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "losses")
def test_squares_are_linear_regression(options):
    res = rrmstats.custom(squares, [0.0, 0.0], 0.2, **options).fit(steps=1)
    known = RRMOLS(Y, X, 0.2).fit(steps=1)
    assert_allclose(res.params, known.raw_params, rtol=1e-6)
    assert_allclose(res.weights, known.weights, rtol=1e-4, atol=1e-12)
    assert_allclose(res.risk, known.risk, rtol=1e-8)
    assert res.converged and res.outliers()[:12].all()
    # Up to the finite-sample factors of the regression.
    assert_allclose(res.bse, known.bse, rtol=0.25)


def test_without_corruption_standard_errors_are_hc0():
    res = rrmstats.custom(squares, [0.0, 0.0], 0.0).fit(steps=1)
    gram = np.linalg.inv(X.T @ X)
    pull = X * (Y - X @ res.params)[:, None]
    assert_allclose(res.bse, np.sqrt(np.diag(gram @ pull.T @ pull @ gram)), rtol=1e-5)


def test_without_derivatives_there_is_a_fit_but_no_standard_error():
    res = rrmstats.custom(squares, [0.0, 0.0], 0.2, smooth=False).fit(steps=1)
    assert_allclose(res.params, RRMOLS(Y, X, 0.2).fit(steps=1).raw_params, atol=1e-3)
    assert np.isnan(res.bse).all()
    assert "bootstrap" in str(res.summary())
    drawn = rrmstats.custom(
        squares, [0.0, 0.0], 0.2, smooth=False, weighted_fit=least_squares
    ).fit(cov_type="bootstrap", cov_kwds={"n_boot": 20}, steps=1)
    assert np.isfinite(drawn.bse).all()


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_losses_with_kinks_are_told(level):
    def pinball(theta):
        resid = Y - X @ theta
        return np.maximum(level * resid, (level - 1) * resid)

    with pytest.warns(UserWarning, match="kinks.*smooth=False"):
        res = rrmstats.custom(pinball, [0.0, 0.0], 0.2).fit(n_starts=5, stability=False, steps=1)
    assert np.isnan(res.bse).all() and not res.smooth
    assert "bootstrap" in str(res.summary())


def test_smooth_losses_have_no_kinks():
    def huber(theta):
        size = np.abs(Y - X @ theta)
        return np.where(size < 1, 0.5 * size**2, size - 0.5)

    for losses in (huber, lambda theta: np.logaddexp(Y - X @ theta, X @ theta - Y)):
        res = rrmstats.custom(losses, [0.0, 0.0], 0.2).fit(n_starts=5, stability=False, steps=1)
        assert res.smooth and (np.asarray(res.bse) < 0.3).all()


def test_frequency_weights_repeat_rows():
    counts = 1 + np.arange(120) % 2
    often = np.repeat(np.arange(120), counts)
    weighted = rrmstats.custom(squares, [0.0, 0.0], 0.2, freq_weights=counts).fit(steps=1)
    repeated = rrmstats.custom(lambda t: squares(t)[often], [0.0, 0.0], 0.2).fit(steps=1)
    assert_allclose(weighted.params, repeated.params, rtol=1e-6)
    assert_allclose(weighted.bse, repeated.bse, rtol=1e-4)


def test_labels_and_names_survive():
    labels = [f"row {i}" for i in range(120)]
    start = pd.Series({"level": 0.0, "slope": 0.0})
    model = rrmstats.custom(lambda t: pd.Series(squares(t), index=labels), start, 0.2)
    res = model.fit(steps=1)
    assert list(res.params.index) == ["level", "slope"]
    assert list(res.weights.index) == labels
    assert set(res.weight_table(12).index) == set(labels[:12])
    assert "slope" in str(res.summary())


def test_large_data_are_searched_on_a_part():
    rows = np.tile(np.arange(120), 10)
    res = rrmstats.custom(lambda t: squares(t)[rows], [0.0, 0.0], 0.2).fit(
        stability=False, steps=1
    )
    assert_allclose(res.params, RRMOLS(Y[rows], X[rows], 0.2).fit(steps=1).raw_params, rtol=1e-5)


def test_a_row_outside_of_its_domain_has_no_weight():
    def losses(theta):
        found = squares(theta)
        found[0] = np.nan if theta[1] > 1.5 else found[0]
        return found

    res = rrmstats.custom(losses, [0.0, 0.0], 0.2).fit(steps=1)
    assert res.params[1] > 1.5 and res.weights[0] == 0 and res.losses[0] == np.inf


@pytest.mark.parametrize(
    "losses, theta0, message",
    [
        (lambda t: np.where(np.arange(120) == 7, np.nan, squares(t)), [0, 0], "NaN .* row 7"),
        (lambda t: np.where(np.arange(120) == 7, -np.inf, squares(t)), [0, 0], "-inf in row 7"),
        (lambda t: squares(t)[: 120 if t[0] == 0 else 119], [0, 0], r"120 numbers.*\(119,\)"),
        (lambda t: squares(t)[:, None], [0, 0], "one number per row"),
        (lambda t: squares(t).sum(), [0, 0], "one number per row"),
        (squares, [np.nan, 0], "theta0 must be a vector of finite"),
        (squares, [[0, 0]], "theta0 must be a vector"),
    ],
)
def test_errors_say_what_is_wrong(losses, theta0, message):
    with pytest.raises(ValueError, match=message):
        rrmstats.custom(losses, theta0, 0.2).fit(steps=1)


def test_a_loss_that_falls_without_bound_is_an_error():
    with pytest.raises(ValueError, match="bounded below"):
        rrmstats.custom(
            lambda t: np.where(t[0] > 0.5, -np.inf, -t[0] * np.ones(30)), [0.0], 0.2
        ).fit(steps=1)


def test_functions_of_the_wrong_shape_are_errors():
    with pytest.raises(ValueError, match=r"gradients must return shape \(120, 2\)"):
        rrmstats.custom(squares, [0, 0], 0.2, gradients=lambda t: gradients(t).T).fit(steps=1)
    with pytest.raises(ValueError, match="weighted_fit must return 2 parameters"):
        rrmstats.custom(squares, [0, 0], 0.2, weighted_fit=lambda w: np.zeros(3)).fit(steps=1)
    with pytest.raises(TypeError, match="losses must be a function"):
        rrmstats.custom(squares(np.zeros(2)), [0, 0], 0.2)
    with pytest.raises(ValueError, match="names must be 2"):
        rrmstats.custom(squares, [0, 0], 0.2, names=["a"])


def test_what_is_not_offered_is_refused():
    model = rrmstats.custom(squares, [0, 0], 0.2)
    assert model.fit().steps == 1
    with pytest.raises(NotImplementedError, match="auto"):
        rrmstats.custom(squares, [0, 0], "auto")
    with pytest.raises(NotImplementedError, match="predictions"):
        model.fit(steps=1).predict()


def test_robust_weights_are_those_of_the_core():
    losses = squares(np.array([1.0, 2.0]))
    counts = 1.0 + np.arange(120) % 3
    found = rrmstats.robust_weights(losses, 0.2, freq_weights=counts)
    assert_allclose(found, entropy_weights(losses, 0.2, freq_weights=counts).weights)
    labels = [f"row {i}" for i in range(120)]
    series = rrmstats.robust_weights(pd.Series(losses, index=labels), 0.2)
    assert list(series.index) == labels and series.iloc[:12].max() < 1e-12


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_robust_weights_refuse_losses_that_are_no_numbers(bad):
    with pytest.raises(ValueError, match="losses must be numbers"):
        rrmstats.robust_weights([1.0, 2.0, bad], 0.2)
    with pytest.raises(ValueError, match="one number per row"):
        rrmstats.robust_weights([[1.0, 2.0]], 0.2)
