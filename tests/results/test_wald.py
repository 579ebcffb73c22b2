"""Tests and intervals that follow from the covariance of the parameters."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rrmstats
from replication.samples import (
    one_sided_outliers,
)
from rrmstats import RRMOLS


def frame(n=120):
    rng = np.random.default_rng(7)
    data = pd.DataFrame(
        {"x": rng.standard_normal(n), "z": rng.standard_normal(n), "g": list("abc") * (n // 3)}
    )
    linear = 0.5 + data.x - 0.3 * data.z + data.g.map({"a": 0.0, "b": 0.4, "c": -0.4})
    data["y"] = linear + rng.standard_normal(n)
    data["label"] = (rng.random(n) < 1 / (1 + np.exp(-linear))).astype(float)
    data.loc[:5, "y"] += 15
    return data


FORMULAS = {
    "ols": partial(rrmstats.ols, "y ~ x + z + C(g)", eps_bar=0.1),
    "logit": partial(rrmstats.logit, "label ~ x + z + C(g)", eps_bar=0.05),
}


@pytest.fixture(params=FORMULAS)
def formula(request):
    return FORMULAS[request.param]


@pytest.mark.parametrize("use_t", [None, True, False])
@pytest.mark.parametrize("steps", [1, 2])
def test_tests_and_intervals_follow_from_the_covariance(formula, steps, use_t):
    res = formula(frame()).fit(steps=steps, use_t=use_t)
    assert res.use_t is (isinstance(res.model, RRMOLS) if use_t is None else use_t)
    law = stats.norm
    if res.use_t:
        law = stats.t(getattr(res, "df_resid_inference", 115))
    errors = np.sqrt(np.diag(res.cov_params()))
    assert_allclose(res.bse, errors)
    assert_allclose(res.tvalues, res.params / errors)
    assert_allclose(res.pvalues, 2 * law.sf(np.abs(res.tvalues)), rtol=1e-8)
    for alpha in (0.05, 0.2):
        half = law.ppf(1 - alpha / 2) * errors
        near, far = (
            res.params - half * np.sign(res.params),
            res.params + half * np.sign(res.params),
        )
        ends = np.sort(res.conf_int(alpha) * np.sign(res.params).to_numpy()[:, None], axis=1)
        assert_allclose(ends[:, 0], near * np.sign(res.params))
        if isinstance(res.model, RRMOLS) or steps == 1:
            assert_allclose(ends[:, 1], far * np.sign(res.params))
        else:  # labels allow for flips that do not show
            assert (ends[:, 1] >= far * np.sign(res.params) - 1e-12).all()
    assert list(res.conf_int().index) == list(res.params.index)
    test = res.t_test("x - z = 1")
    contrast = np.array([name == "x" for name in res.params.index], float) - [
        name == "z" for name in res.params.index
    ]
    error = np.sqrt(contrast @ res.cov_params() @ contrast)
    assert_allclose(test.effect, contrast @ res.params)
    assert_allclose(test.sd.squeeze(), error)
    assert_allclose(test.statistic.squeeze(), (contrast @ res.params - 1) / error)


def test_degrees_of_freedom_are_those_that_the_estimate_is_worth():
    endog, exog = one_sided_outliers(np.random.default_rng(0), 4000, share=0.0)
    res = RRMOLS(endog, exog, 0.2).fit(steps=1)
    worth = 0.4036  # (2 a - 1) ** 1.5 / a ** 3 at eps_bar = 0.2
    assert_allclose(res.df_resid_inference, 4000 * worth - 3, rtol=0.1)
    assert_allclose(RRMOLS(endog, exog, 0.2).fit().df_resid_inference, 3997, rtol=0.01)
    assert_allclose(RRMOLS(endog, exog, 0.0).fit(steps=1).df_resid_inference, 3997)


def test_wald_tests(formula):
    res = formula(frame()).fit(steps=1)
    names = list(res.params.index)
    levels = [name for name in names if name.startswith("C(g)")]
    picked = np.eye(len(names))[[names.index(name) for name in levels]]
    effect = picked @ res.params
    statistic = effect @ np.linalg.solve(picked @ res.cov_params() @ picked.T, effect)
    chi2 = res.wald_test(picked, use_f=False, scalar=True)
    assert_allclose(chi2.statistic, statistic)
    assert_allclose(chi2.pvalue, stats.chi2.sf(statistic, 2))
    assert_allclose(res.f_test(picked).statistic, statistic / 2)
    terms = res.wald_test_terms(scalar=True).table
    assert_allclose(terms.loc["C(g)", "statistic"], statistic / (2 if res.use_t else 1))
    assert set(terms.index) >= {"x", "z", "C(g)"}


def test_compare_is_the_wald_test_of_what_the_smaller_model_lacks():
    data = frame()
    large, small = (
        rrmstats.ols(f, data, 0.1).fit(steps=1) for f in ("y ~ x + z + C(g)", "y ~ x + C(g)")
    )
    found = large.compare(small)
    assert_allclose(found.statistic, large.tvalues["z"] ** 2)
    assert_allclose(found.pvalue, large.pvalues["z"])
    # the shape of statsmodels' anova_lm, without sums of squares
    assert found.table.columns.tolist() == ["df_resid", "df_diff", "F", "Pr(>F)"]
    expected = [large.df_resid, 1, found.statistic, found.pvalue]
    assert_allclose(found.table.iloc[1].astype(float), np.ravel(expected))
    other = rrmstats.ols("y ~ I(x**2)", data, 0.1).fit(steps=1)
    for wrong in (other, large):
        with pytest.raises(ValueError, match="smaller, nested model"):
            large.compare(wrong)
    with pytest.raises(ValueError, match="smaller, nested model"):
        small.compare(large)
    with pytest.raises(ValueError, match="120 and 60 rows"):
        large.compare(rrmstats.ols("y ~ x", data.iloc[:60], 0.1).fit(steps=1))


@pytest.mark.slow
def test_compare_has_its_level():
    """At a nominal 10 %, and more often where the models differ."""
    rejected = []
    for seed in range(120):
        endog, exog = one_sided_outliers(np.random.default_rng(seed), 150, np.ones(4), share=0.1)
        endog -= exog[:, 3]
        exog = pd.DataFrame(exog, columns=["const", "a", "b", "c"])
        large = RRMOLS(endog, exog, 0.2).fit(n_starts=20, steps=1)
        for names in (["const", "a", "b"], ["const", "a", "c"]):
            small = RRMOLS(endog, exog[names], 0.2).fit(n_starts=0, steps=1)  # its design counts
            rejected.append(float(large.compare(small).pvalue) < 0.1)
    null, alternative = np.reshape(rejected, (-1, 2)).mean(axis=0)
    assert 0.04 < null < 0.17
    assert alternative > 0.95


@pytest.mark.parametrize("cov_type", ["sandwich", "cluster", "bootstrap"])
@pytest.mark.parametrize("steps", [1, 2])
def test_pickles_keep_the_inference(formula, steps, cov_type):
    kwds = {
        "sandwich": {},
        "cluster": {"groups": np.arange(120) // 4},
        "bootstrap": {"n_boot": 20},
    }[cov_type]
    res = formula(frame()).fit(steps=steps, cov_type=cov_type, cov_kwds=kwds)
    again = pickle.loads(pickle.dumps(res))
    assert_array_equal(again.bse, res.bse)
    assert_array_equal(again.conf_int(), res.conf_int())
    assert_array_equal(again.pvalues, res.pvalues)


def test_summaries_name_the_standard_errors():
    model = FORMULAS["ols"](frame())
    groups = {"groups": np.arange(120) // 4}
    for kwargs, text in (
        ({}, "Standard errors: sandwich; the weights are estimated"),
        ({"cov_type": "cluster", "cov_kwds": groups}, "clustered by groups"),
        (
            {"cov_type": "bootstrap", "cov_kwds": {"n_boot": 20}},
            "pairs bootstrap, 20 samples, BCa intervals",
        ),
        (
            {
                "cov_type": "bootstrap",
                "cov_kwds": {"n_boot": 20, "strata": frame().g, "interval": "percentile"},
            },
            "stratified bootstrap, 20 samples, percentile intervals",
        ),
    ):
        res = model.fit(**kwargs, steps=1)
        summary = str(res.summary())
        assert text in " ".join(summary.split())
        line = next(line for line in summary.splitlines() if line.startswith("x "))
        assert f"{res.params['x']:.4f}" in line
        for value in (res.bse["x"], *res.conf_int().loc["x"]):
            assert f"{value:.3f}" in line
