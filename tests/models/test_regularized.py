"""Fits with a penalty: ridge, lasso and elastic net."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from sklearn.linear_model import ElasticNet, Ridge

import rrmstats
from rrmstats import RRMGLM, RRMOLS, RRMLogit, RRMPoisson
from rrmstats.models import regularized

F = sm.families
BETA = np.array([0.3, 1.0, 0.0, -1.0, 0.0, 0.5])


def design(rng, n=120):
    return sm.add_constant(rng.standard_normal((n, len(BETA) - 1)))


def clean(seed=0, n=120):
    rng = np.random.default_rng(seed)
    exog = design(rng, n)
    return exog @ BETA + rng.standard_normal(n), exog


def dirty(seed=0, n=120):
    endog, exog = clean(seed, n)
    endog[: n // 8] += 8
    return endog, exog


def wide(seed=0, n=80, p=150):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    endog = x[:, :3] @ [2.0, -2.0, 2.0] + 0.5 * rng.standard_normal(n)
    x[:12] += 4
    endog[:12] = -8
    return endog, sm.add_constant(x)


@pytest.mark.parametrize("l1", [0, 0.5, 1])
def test_no_bad_rows_is_scikit_learn(l1):
    endog, exog = clean()
    own = RRMOLS(endog, exog, 0.0).fit_regularized(alpha=0.1, L1_wt=l1)
    if l1:
        fit = ElasticNet(alpha=0.1, l1_ratio=l1, tol=1e-14).fit(exog[:, 1:], endog)
    else:
        fit = Ridge(0.1 * len(endog)).fit(exog[:, 1:], endog)
    assert_allclose(own.params, np.r_[fit.intercept_, fit.coef_], atol=1e-8)


@pytest.mark.parametrize("l1", [0, 0.5, 1])
@pytest.mark.parametrize("kind", ["labels", "binomial", "poisson", "gamma"])
def test_no_bad_rows_is_at_the_minimum(kind, l1):
    """The conditions of the minimum hold; statsmodels' optimizers stop short of it."""
    rng = np.random.default_rng(1)
    exog, alpha = design(rng), 0.05
    eta = 0.5 * exog @ BETA
    if kind in ("labels", "binomial"):
        endog, family = (rng.random(120) < 1 / (1 + np.exp(-2 * eta))).astype(float), F.Binomial()
    elif kind == "poisson":
        endog, family = rng.poisson(np.exp(eta)).astype(float), F.Poisson()
    else:
        endog, family = np.exp(eta) * rng.gamma(4, 0.25, 120), F.Gamma(F.links.Log())
    model = RRMGLM(endog, exog, 0.0, family=family)
    if kind == "labels":
        model = RRMLogit(endog, exog, 0.0)
    params = np.asarray(model.fit_regularized(alpha=alpha, L1_wt=l1).params)
    pull = sm.GLM(endog, exog, family=family).score(params, scale=1.0) / len(endog)
    pull[1:] -= alpha * (1 - l1) * params[1:]
    at = params != 0
    at[0] = True
    signs = np.r_[0.0, np.sign(params[1:])]
    assert_allclose(pull[at], (alpha * l1 * signs)[at], atol=1e-6)
    assert (np.abs(pull[~at]) <= alpha * l1 + 1e-6).all()


def test_lasso_of_counts_is_that_of_statsmodels():
    rng = np.random.default_rng(2)
    exog = design(rng)
    endog = rng.poisson(np.exp(0.5 * exog @ BETA)).astype(float)
    alpha = np.r_[0.0, np.full(exog.shape[1] - 1, 0.05)]
    fit = sm.GLM(endog, exog, family=F.Poisson()).fit_regularized(alpha=alpha, maxiter=2000)
    own = RRMPoisson(endog, exog, 0.0).fit_regularized(alpha=0.05)
    assert_allclose(own.params, fit.params, atol=1e-6)


def test_without_penalty_it_is_the_fit():
    endog, exog = dirty()
    model = RRMOLS(endog, exog)
    assert_allclose(model.fit_regularized(alpha=0).params, model.fit().params)


@pytest.mark.slow
@pytest.mark.parametrize("l1", [0, 1])
def test_equivariance(l1):
    endog, exog = dirty()
    fit = RRMOLS(endog, exog, 0.3).fit_regularized(alpha=0.1, L1_wt=l1)
    unit = 10.0 if l1 else 1.0  # the lasso's alpha is in units of the response
    other = RRMOLS(10 * endog + 5, exog, 0.3).fit_regularized(alpha=0.1 * unit, L1_wt=l1)
    assert_allclose(other.params, 10 * fit.params + np.r_[5, np.zeros(5)], atol=1e-3)
    order = np.random.default_rng(0).permutation(len(endog))
    moved = RRMOLS(endog[order], exog[order], 0.3).fit_regularized(alpha=0.1, L1_wt=l1)
    assert_allclose(moved.params, fit.params, atol=1e-3)
    assert_allclose(moved.prob_bad, fit.prob_bad[order], atol=1e-3)


@pytest.mark.slow
def test_weights_are_counts():
    endog, exog = dirty(n=80)
    counts = np.ones(80)
    counts[::5] = 2
    rows = np.repeat(np.arange(80), counts.astype(int))
    one = RRMOLS(endog, exog, 0.3, freq_weights=counts).fit_regularized(alpha=0.1)
    two = RRMOLS(endog[rows], exog[rows], 0.3).fit_regularized(alpha=0.1)
    assert_allclose(one.params, two.params, atol=0.02)  # fits without a row are without its copies


@pytest.mark.parametrize("l1", [0.5, 1])
def test_more_columns_than_rows(l1):
    endog, exog = wide()
    res = RRMOLS(endog, exog, 0.3).fit_regularized(alpha=0.1, L1_wt=l1)
    assert (np.asarray(res.prob_bad)[:12] > 0.99).all()
    assert res.outliers().sum() == 12
    good = ElasticNet(0.1, l1_ratio=l1).fit(exog[12:, 1:], endog[12:])
    assert_allclose(res.params[1:], good.coef_, atol=0.05)


def test_fits_without_a_row():
    """Exact for ridge regression, in both of the systems that are solved."""
    for n, p in ((30, 5), (20, 40)):
        rng = np.random.default_rng(n)
        endog, exog = rng.standard_normal(n), sm.add_constant(rng.standard_normal((n, p)))
        problem = regularized.Penalized(RRMOLS(endog, exog)._deviances(), 0, 0.3, 0.0)
        weights = np.full(n, 1.0 / n)
        theta = problem.fit(weights, np.zeros(p + 1))
        eta, freedom = problem.held_out(theta, weights)
        without = weights.copy()
        without[4] = 0.0
        assert_allclose(eta[4], exog[4] @ problem.fit(without, theta), rtol=1e-8)
        assert 1 < freedom < min(n, p + 1)


@pytest.mark.slow
def test_automatic_alpha_and_its_path():
    endog, exog = dirty()
    res = RRMOLS(endog, exog).fit_regularized()
    assert res.alpha == res.path.alpha[res.path.bic.idxmin()]
    assert set(res.selected) >= {"x1", "x3", "x5"}
    assert_allclose(res.params, [*BETA], atol=0.35)
    given = RRMOLS(endog, exog).fit_regularized(alphas=[0.1, 0.2])
    assert given.path.alpha.tolist() == [0.2, 0.1] and given.alpha == 0.1


@pytest.mark.parametrize("good", ["uniform", "standard_normal"])
def test_good_rows_are_not_divided(good):
    """Short tails, or a gap by chance, look like a second cluster of bad rows."""
    rng = np.random.default_rng(0)
    rows = getattr(rng, good)(size=65)
    endog = np.r_[rows, 10 + 0.4 * rng.standard_normal(10)]
    fit = regularized.explained_rows(RRMOLS(endog, np.ones((75, 1))))
    assert np.flatnonzero(fit.prob_bad > 0.5).tolist() == list(range(65, 75))
    apart = np.r_[rows, 14 + 0.1 * rows[:10], -14 + 0.1 * rows[:15]]
    fit = regularized.explained_rows(RRMOLS(apart, np.ones((90, 1))))
    assert fit.prob_bad.sum() == pytest.approx(25, abs=0.1)


def test_refit_of_the_selected_columns():
    endog, exog = dirty()
    data = pd.DataFrame(exog[:, 1:], columns=list("abcde"), index=np.arange(120) + 7)
    data["y"] = endog
    res = rrmstats.ols("y ~ a + b + c + d + e", data).fit_regularized(alpha=0.2, refit=True)
    assert res.selected == ["a", "c", "e"]
    fit = rrmstats.ols("y ~ a + c + e", data).fit()
    assert_allclose(res.refit.params, fit.params)
    assert_allclose(res.refit.bse, fit.bse)
    assert "take the selected columns as given" in " ".join(str(res.summary()).split())
    assert res.prob_bad.index[0] == 7
    assert list(res.params.index) == ["Intercept", *"abcde"]
    assert_allclose(res.predict(data.head(3)), res.fittedvalues.head(3))


@pytest.mark.slow
def test_labels_and_counts_with_bad_rows():
    rng = np.random.default_rng(3)
    exog = design(rng, 400)
    eta = 2 * exog @ BETA
    labels = (rng.random(400) < 1 / (1 + np.exp(-eta))).astype(float)
    labels[np.argsort(eta)[-25:]] = 0
    res = RRMLogit(labels, exog).fit_regularized(alpha=0.01)
    classical = RRMLogit(labels, exog, 0.0).fit_regularized(alpha=0.01)
    assert np.abs(res.params - 2 * BETA).max() < 0.7 * np.abs(classical.params - 2 * BETA).max()
    counts = rng.poisson(np.exp(0.5 * exog @ BETA + 1)).astype(float)
    counts[:40] = 60
    res = RRMPoisson(counts, exog).fit_regularized(alpha=0.01, L1_wt=0)
    assert (res.prob_bad[:40] > 0.99).all()
    assert_allclose(res.params, 0.5 * BETA + np.r_[1, np.zeros(5)], atol=0.15)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": -1}, "at least 0"),
        ({"alpha": np.nan}, "at least 0"),
        ({"alpha": "much"}, "at least 0"),
        ({"alpha": [0.1, 0.2]}, "one number"),
        ({"alpha": 1, "L1_wt": 1.5}, r"L1_wt must be in \[0, 1\]"),
        ({"alpha": 1, "L1_wt": None}, r"L1_wt must be in \[0, 1\]"),
        ({"method": "sqrt_lasso"}, "method must be"),
        ({"alphas": [0.1, -1]}, "positive numbers"),
        ({"alpha": 1, "alphas": [0.1]}, "positive numbers"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(ValueError, match=said):
        RRMOLS(*clean()).fit_regularized(**options)


def test_what_cannot_be_penalized():
    endog, exog = clean()
    with pytest.raises(ValueError, match="no column but the constant"):
        RRMOLS(endog, exog[:, :1]).fit_regularized(alpha=0.1)
    with pytest.raises(NotImplementedError, match="groups"):
        RRMOLS(endog, exog, groups=np.arange(120) // 4).fit_regularized(alpha=0.1)


def test_scikit_learn_is_asked_for(monkeypatch):
    def missing(module, extra):
        raise ImportError(f"pip install 'rrmstats[{extra}]'")

    monkeypatch.setattr(regularized, "require", missing)
    endog, exog = clean()
    with pytest.raises(ImportError, match=r"rrmstats\[sklearn\]"):
        RRMOLS(endog, exog).fit_regularized(alpha=0.1)
    RRMOLS(endog, exog).fit_regularized(alpha=0.1, L1_wt=0)


def test_absorbed_effects_are_refused():
    rng = np.random.default_rng(0)
    model = RRMOLS(rng.standard_normal(60), rng.standard_normal((60, 2)), absorb=np.arange(60) % 6)
    with pytest.raises(NotImplementedError, match="dummy variables"):
        model.fit_regularized(alpha=1.0)
