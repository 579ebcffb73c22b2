import pickle
import warnings

import experiments
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.iolib.summary2 import summary_col
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

import rrmstats
from rrmstats.rivals import (
    SeverCov,
    SeverLogit,
    SeverOLS,
    SeverPCA,
    filter_round,
    huber,
    sever,
)

FRAME = pd.DataFrame(
    {"x": [0.0, 1, 2, 3, 4, 5, 6, 7], "y": [0.1, 0.9, 2.1, 2.9, 4.1, 4.9, 6.1, 27.0]},
    index=list("abcdefgh"),
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def left(n, eps_bar, rounds=4):
    """Return how many rows are left when each round removes a whole number of them."""
    for _ in range(rounds):
        n -= int(np.floor(round(eps_bar / 2 * n, 6)))
    return n


def test_filter_by_hand():
    # Centred second column: -2, 0, 4, -2; the first column is the constant 7.
    gradients = np.c_[np.full(4, 7.0), [1.0, 3, 7, 1]]
    assert filter_round(gradients, 0.25).tolist() == [True, True, False, True]
    # Of two equal scores the earlier row goes first.
    assert filter_round(gradients, 0.5).tolist() == [False, True, False, True]
    assert filter_round(gradients, 0.24).all()


def test_filter_centres_and_takes_the_widest_direction():
    # Uncentred, the common 100 would be the direction, and row 1 the farthest along it.
    gradients = np.array([[100.0, 0], [101, 0], [100, 5], [100, -4], [99, 0], [100, -1]])
    assert filter_round(gradients, 1 / 6).tolist() == [True, True, False, True, True, True]


def test_rounds_refit_to_the_rows_left():
    z = np.array([0.0, 1, -1, 2, -2, 50, -1000, 1000])
    asked = []

    def gradients(rows):
        asked.append(list(rows))
        return (z[rows] - z[rows].mean())[:, None]

    assert sever(gradients, 8, 0.26, rounds=3).tolist() == [True] * 6 + [False, True]
    assert sever(gradients, 8, 0.5, rounds=2).tolist() == [True] * 5 + [False, False, False]
    assert asked[3:] == [[*range(8)], [*range(6)]]


MODELS = {
    "ols": lambda rng, e: SeverOLS(*experiments.linreg(rng, n=60), eps_bar=e),
    "logit": lambda rng, e: SeverLogit(*experiments.logistic(rng, 200), eps_bar=e),
    "pca": lambda rng, e: SeverPCA(experiments.line(rng), 1, eps_bar=e),
    "cov": lambda rng, e: SeverCov(experiments.ellipse(rng), eps_bar=e),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("eps_bar", [0.0, 0.05, 0.1])
def test_number_of_rows_removed(name, eps_bar, rng):
    model = MODELS[name](rng, eps_bar)
    for rounds in (0, 1, 4):
        res = model.fit(rounds=rounds)
        assert res.kept.sum() == res.nobs == left(len(model.endog), eps_bar, rounds)
        assert (res.eps_bar, res.rounds) == (eps_bar, rounds)
    assert "SEVER" in str(res.summary())


def test_linear_regression_against_the_definition(rng):
    y, x = experiments.linreg(rng)
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


@pytest.mark.parametrize(
    ("name", "losses"),
    [
        ("ols", lambda m, t: (m.endog - m.exog @ t) ** 2),
        ("logit", lambda m, t: np.logaddexp(0, -(2 * m.endog - 1) * (m.exog @ t))),
    ],
)
def test_gradients_of_regressions(name, losses, rng):
    model = MODELS[name](rng, 0.2)
    theta = np.asarray(model.fit(rounds=0).params)
    found = model._gradients(np.arange(len(model.endog)))
    for j, unit in enumerate(np.eye(len(theta))):
        slope = (losses(model, theta + 1e-5 * unit) - losses(model, theta - 1e-5 * unit)) / 2e-5
        np.testing.assert_allclose(found[:, j], slope, rtol=1e-4, atol=1e-5)


def test_gradients_of_the_covariance(rng):
    model = MODELS["cov"](rng, 0.2)
    res = model.fit(rounds=0)
    found = model._gradients(np.arange(len(model.endog)))

    def losses(theta):
        centred, cov = model.endog - theta[:2], theta[2:].reshape(2, 2)
        mahalanobis = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(cov), centred)
        return mahalanobis + np.log(np.linalg.det(cov))

    theta = np.r_[res.mean, res.cov.ravel()]
    slopes = [(losses(theta + 1e-6 * u) - losses(theta - 1e-6 * u)) / 2e-6 for u in np.eye(6)]
    np.testing.assert_allclose(found, np.transpose(slopes), rtol=1e-5, atol=1e-4)


def test_gradients_of_principal_components(rng):
    data = experiments.line(rng)
    model = SeverPCA(data, 1, 0.2, demean=False)
    theta = model.fit(rounds=0).loadings.ravel()

    def losses(v):
        return ((data - np.outer(data @ v, v)) ** 2).sum(axis=1)

    slopes = [(losses(theta + 1e-6 * u) - losses(theta - 1e-6 * u)) / 2e-6 for u in np.eye(2)]
    found = model._gradients(np.arange(len(data)))
    np.testing.assert_allclose(found, np.transpose(slopes), rtol=1e-4, atol=1e-4)


def test_without_corruption_they_are_statsmodels(rng):
    y, x = experiments.linreg(rng)
    np.testing.assert_allclose(SeverOLS(y, x, 0).fit().params, sm.OLS(y, x).fit().params)
    y, x = experiments.logistic(rng, 300)
    fit = sm.Logit(y, x).fit(disp=0)
    res = SeverLogit(y, x, 0).fit()
    np.testing.assert_allclose(res.params, fit.params, rtol=1e-6)
    np.testing.assert_allclose(res.bse, fit.bse, rtol=1e-6)
    z = experiments.ellipse(rng)
    np.testing.assert_allclose(SeverCov(z, 0).fit().cov, np.cov(z.T, bias=True))
    pca = sm.multivariate.PCA(z, ncomp=1, standardize=False, normalize=False)
    res = SeverPCA(z, 1, 0).fit()
    np.testing.assert_allclose(np.abs(res.loadings), np.abs(pca.loadings), rtol=1e-6)
    np.testing.assert_allclose(res.eigenvals * len(z), pca.eigenvals[:1])


def test_formula_labels_and_side_by_side():
    def twice(v):
        return 2 * v

    res = SeverOLS.from_formula("y ~ twice(x)", FRAME, 0.3).fit(rounds=1)
    assert res.kept.index.tolist() == FRAME.index.tolist()
    assert res.kept[~res.kept].index.tolist() == ["h"]
    assert res.params.index.tolist() == ["Intercept", "twice(x)"]
    assert res.fittedvalues.index.tolist() == list("abcdefg")
    np.testing.assert_allclose(res.predict(pd.DataFrame({"x": [10.0]})), 10, atol=0.2)
    others = [
        sm.OLS.from_formula("y ~ twice(x)", FRAME).fit(),
        rrmstats.ols("y ~ twice(x)", FRAME, 0.3).fit(),
    ]
    text = str(summary_col([*others, res], model_names=["ERM", "RRM", "SEVER"]))
    row = next(line for line in text.splitlines() if line.startswith("twice(x)"))
    slopes = [float(cell.strip("*")) for cell in row.split()[1:]]
    assert len(slopes) == 3
    np.testing.assert_allclose(slopes[1:], 0.5, atol=0.05)
    assert slopes[0] > 0.9


def test_logit_formula_beside_the_others(rng):
    y, x = experiments.logistic(rng, 300)
    frame = pd.DataFrame({"y": y, "x": x[:, 1]})
    res = SeverLogit.from_formula("y ~ x", frame, eps_bar=0.04).fit()
    erm = sm.Logit.from_formula("y ~ x", frame).fit(disp=0)
    rrm = rrmstats.logit("y ~ x", frame, eps_bar=0.04).fit()
    text = str(summary_col([erm, rrm, res], model_names=["ERM", "RRM", "SEVER"]))
    assert len(next(line for line in text.splitlines() if line.startswith("x ")).split()) == 4
    assert "ignore the removal" in str(res.summary())
    assert res.pred_table().sum() == res.nobs


def test_multivariate_formula_and_labels():
    frame = FRAME.assign(z=[1.0, 0, 2, 1, 0, 3, 1, 0])
    res = SeverCov.from_formula("~ x + z", frame, 0.26).fit(rounds=1)
    assert res.cov.loc["x", "z"] == res.params["cov[x, z]"]
    assert res.mean.index.tolist() == ["x", "z"]
    assert res.kept.index.tolist() == frame.index.tolist()
    res = SeverPCA.from_formula("~ x + y + z", frame, 0.26, n_components=2).fit(rounds=1)
    assert res.loadings.shape == (3, 2)
    np.testing.assert_allclose(res.loadings.T @ res.loadings, np.eye(2), atol=1e-12)
    assert res.params.is_monotonic_decreasing
    text = str(res.summary())
    assert "Loadings" in text
    assert f"{res.loadings.iloc[0, 0]:.4g}" in text


def test_separated_rows_give_a_direction_and_a_warning(rng):
    y, x = experiments.labelled_plane(rng)
    with pytest.warns(PerfectSeparationWarning, match="SEVER kept"):
        res = SeverLogit(y[:-5], x[:-5], 0.2).fit()
    assert np.isfinite(res.params).all()
    assert ((x[:-5] @ res.params > 0) == y[:-5])[res.kept].all()
    assert not res.converged


def test_results_pickle(rng):
    y, x = experiments.linreg(rng)
    res = SeverOLS(y, x, 0.2).fit()
    again = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(again.kept, res.kept)


def test_huber_is_rlm(rng):
    y, x = experiments.linreg(rng)
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
        (
            lambda: SeverOLS(FRAME["y"], FRAME[["x"]].assign(c=1, d=1, e=1), 0.5).fit(),
            ValueError,
            "leaves 3 of 8 rows after 4 rounds, but at least 4",
        ),
        (lambda: SeverOLS(FRAME["y"], FRAME["x"], 0.1).fit(rounds=-1), ValueError, "rounds must"),
        (lambda: SeverLogit(np.arange(9.0), np.ones(9), 0.1), ValueError, "unit interval"),
        (lambda: SeverLogit(np.full(9, 0.5), np.ones(9), 0.1), ValueError, "0"),
        (lambda: SeverLogit(np.zeros(9), np.ones(9), 0.1), ValueError, "one class only"),
        (lambda: SeverPCA(FRAME, 2, 0.1), ValueError, "n_components must be a whole number"),
        (lambda: SeverPCA(FRAME, 0.5, 0.1), ValueError, "n_components must be a whole number"),
        (lambda: SeverCov(FRAME * np.nan, 0.1), ValueError, "NaN"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_every_label_removed():
    y = np.r_[np.zeros(30), 1.0]
    with pytest.raises(ValueError, match="has the label 0; lower eps_bar"):
        SeverLogit(y, np.c_[np.ones(31), np.arange(31) % 7], 0.1).fit()


def test_missing_rows_are_dropped():
    frame = FRAME.copy()
    frame.loc["b", "x"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = SeverOLS.from_formula("y ~ x", frame, 0.3).fit(rounds=1)
    assert res.kept.index.tolist() == list("acdefgh")
