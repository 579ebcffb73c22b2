import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.iolib.summary2 import summary_col

import rrmstats
from replication.rivals import SeverOLS, huber
from replication.samples import heavy_tailed_noise


def test_linear_regression_against_the_definition(rng):
    y, x = heavy_tailed_noise(rng)
    rows = np.arange(len(y))
    for _ in range(4):
        theta = np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]
        gradients = -2 * (y[rows] - x[rows] @ theta)[:, None] * x[rows]
        gradients -= gradients.mean(axis=0)
        scores = (gradients @ np.linalg.svd(gradients)[2][0]) ** 2
        rows = np.sort(rows[np.argsort(-scores)[int(0.2 * len(rows)) :]])
    res = SeverOLS(y, x, 0.4).fit()
    np.testing.assert_array_equal(np.flatnonzero(res.kept), rows)
    expected = sm.OLS(y[rows], x[rows]).fit()
    np.testing.assert_allclose(res.params, expected.params)
    np.testing.assert_allclose(res.bse, expected.bse)
    np.testing.assert_allclose(res.rsquared, expected.rsquared)


def test_gradients_are_the_slopes_of_the_losses(rng):
    endog, exog = heavy_tailed_noise(rng, n=60)
    model = SeverOLS(endog, exog, 0.2)
    theta, found = model.fit(rounds=0).params, model._gradients(np.arange(60))

    def losses(theta):
        return (endog - exog @ theta) ** 2

    for j, step in enumerate(1e-5 * np.eye(len(theta))):
        slope = (losses(theta + step) - losses(theta - step)) / 2e-5
        np.testing.assert_allclose(found[:, j], slope, rtol=1e-4, atol=1e-5)


def test_without_corruption_it_is_least_squares(rng):
    y, x = heavy_tailed_noise(rng)
    np.testing.assert_allclose(SeverOLS(y, x, 0).fit().params, sm.OLS(y, x).fit().params)


@pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")
def test_formula_labels_and_side_by_side(frame):
    def twice(v):
        return 2 * v

    res = SeverOLS.from_formula("y ~ twice(x)", frame, 0.3).fit(rounds=1)
    assert res.kept.index.tolist() == frame.index.tolist()
    assert res.kept[~res.kept].index.tolist() == ["h"]
    assert res.params.index.tolist() == ["Intercept", "twice(x)"]
    assert res.fittedvalues.index.tolist() == list("abcdefg")
    np.testing.assert_allclose(res.predict(pd.DataFrame({"x": [10.0]})), 10, atol=0.2)
    others = [
        sm.OLS.from_formula("y ~ twice(x)", frame).fit(),
        rrmstats.ols("y ~ twice(x)", frame, 0.3).fit(),
    ]
    text = str(summary_col([*others, res], model_names=["ERM", "RRM", "SEVER"]))
    row = next(line for line in text.splitlines() if line.startswith("twice(x)"))
    slopes = [float(cell.strip("*")) for cell in row.split()[1:]]
    assert len(slopes) == 3
    np.testing.assert_allclose(slopes[1:], 0.5, atol=0.05)
    assert slopes[0] > 0.9


def test_results_pickle(rng):
    y, x = heavy_tailed_noise(rng)
    res = SeverOLS(y, x, 0.2).fit()
    again = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(again.kept, res.kept)


def test_huber_is_rlm(rng):
    y, x = heavy_tailed_noise(rng)
    res = huber(y, x).fit()
    np.testing.assert_allclose(res.params, sm.RLM(y, x).fit().params)
    assert (res.weights < 1).any()
    assert "HuberT" in str(res.summary())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SeverOLS(np.ones(9), np.ones(9)), TypeError, "eps_bar is required"),
        (lambda: SeverOLS(np.ones(9), np.ones(9), 1.2), ValueError, r"eps_bar must be in \[0, 1"),
        (lambda: SeverOLS(np.ones(9), None, 0.2), ValueError, "exog is required"),
        (lambda: SeverOLS(np.ones(9), np.ones(9), 0.2, bad=1), TypeError, "unknown keywords: bad"),
    ],
)
def test_errors_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_too_few_rows_left(frame):
    exog = frame[["x"]].assign(c=1, d=1, e=1)
    with pytest.raises(ValueError, match="leaves 3 of 8 rows after 4 rounds, but at least 4"):
        SeverOLS(frame["y"], exog, 0.5).fit()


def test_missing_rows_are_dropped(frame):
    frame.loc["b", "x"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = SeverOLS.from_formula("y ~ x", frame, 0.3).fit(rounds=1)
    assert res.kept.index.tolist() == list("acdefgh")
