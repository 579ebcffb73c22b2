import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.iolib.summary2 import summary_col

import rrmstats
from rrmstats.results.refusals import Meaningless

N = 120


def frame(seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "x1": rng.standard_normal(N),
            "x2": rng.standard_normal(N),
            "g": rng.choice(list("abc"), N),
        },
        index=[f"row{i}" for i in range(N)],
    )
    data["y"] = 1 + 2 * data.x1 - data.x2 + 0.5 * rng.standard_normal(N)
    data["label"] = (rng.random(N) < 1 / (1 + np.exp(-data.x1))).astype(float)
    return data


DATA = frame()
DIRTY = DATA.assign(y=DATA.y.where(np.arange(N) >= 10, 30.0))
FITS = {
    "ols": lambda: rrmstats.ols("y ~ x1 + C(g)", DIRTY, 0.2).fit(),
    "ols, two steps": lambda: rrmstats.ols("y ~ x1 + C(g)", DIRTY, 0.2).fit(efficiency=0.95),
    "logit": lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit(),
    "logit, two steps": lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit(efficiency=0.95),
    "cov": lambda: rrmstats.cov("~ x1 + x2 + y", DIRTY, 0.2).fit(),
    "pca": lambda: rrmstats.pca("~ x1 + x2 + y", DIRTY, 0.2, n_components=1).fit(),
}


@pytest.fixture(params=FITS, scope="module")
def res(request):
    return FITS[request.param]()


CLASSICAL = {
    "ols": (
        lambda: sm.OLS.from_formula("y ~ x1 + x2", DATA).fit(),
        lambda: rrmstats.ols("y ~ x1 + x2", DATA, 0).fit(),
    ),
    "rlm": (
        lambda: sm.RLM.from_formula("y ~ x1 + x2", DATA).fit(),
        lambda: rrmstats.ols("y ~ x1 + x2", DATA, 0).fit(),
    ),
    "logit": (
        lambda: sm.Logit.from_formula("label ~ x1 + x2", DATA).fit(disp=0),
        lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0).fit(),
    ),
}
# What is estimated in another way, or is another thing of the same name.
DIFFERENT = {
    "ols": {"bse", "tvalues", "pvalues", "fvalue", "f_pvalue", "cov_kwds", "cov_type"},
    "rlm": {"params", "bse", "tvalues", "pvalues", "scale", "resid", "sresid", "fittedvalues"}
    | {"weights", "cov_params_default", "normalized_cov_params", "use_t"},
    "logit": {"bse", "tvalues", "pvalues", "cov_kwds", "cov_type", "scale", "converged"},
}


@pytest.mark.parametrize("name", CLASSICAL)
def test_every_attribute_of_statsmodels_is_right_or_refused(name):
    """At eps_bar = 0 what has a meaning equals statsmodels'; the rest says why it has none."""
    theirs, ours = (make() for make in CLASSICAL[name])
    refused = set()
    for attribute in dir(theirs._results):
        if attribute.startswith("_") or attribute in DIFFERENT[name]:
            continue
        try:
            value = getattr(ours, attribute)
        except Meaningless as error:
            assert f"{attribute} has no meaning here: " in str(error)
            refused.add(attribute)
            continue
        expected = getattr(theirs, attribute)
        if isinstance(expected, float | int | np.ndarray | pd.Series) and attribute != "nobs":
            assert_allclose(value, expected, rtol=1e-6, atol=1e-8, err_msg=attribute)
    assert refused == set(type(ours._results)._meaningless) & set(dir(theirs._results))


def test_refusals_are_no_attributes():
    res = FITS["ols"]()
    assert not hasattr(res, "aic")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = res.nonsense


def test_tables_beside_statsmodels():
    least_squares = sm.OLS.from_formula("y ~ x1 + x2", DIRTY).fit()
    robust = rrmstats.ols("y ~ x1 + x2", DIRTY, 0.2).fit()
    logit = rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit()
    text = str(summary_col([least_squares, robust, logit]))
    for number in (least_squares.params["x1"], robust.params["x1"], logit.params["x1"]):
        assert f"{number:.4f}" in text
    assert "eps_bar" in text and "0.05" in text
    assert f"{robust.params['x1'] - robust.params['x2']:.4f}" in str(robust.t_test("x1 = x2"))


def test_displays(res):
    html, latex = res._repr_html_(), res._repr_latex_()
    assert "<table" in html and "eps_bar" in html and "tabular" in latex
    assert "\n" not in repr(res) and f"eps_bar={res.eps_bar:g}" in repr(res)
    assert "eps_bar" in res.summary().as_csv() and "eps_bar" in str(res.summary2())


def test_pickles_and_files(res, tmp_path):
    copy = pickle.loads(pickle.dumps(res))
    assert_allclose(copy.params, res.params)
    res.save(tmp_path / "fit.pickle")
    loaded = sm.load(tmp_path / "fit.pickle")
    assert_allclose(loaded.bse, res.bse)
    assert str(loaded.summary()).splitlines()[5:] == str(res.summary()).splitlines()[5:]


@pytest.mark.parametrize("name", ["ols", "ols, two steps", "logit", "cov", "pca"])
def test_without_data(name):
    res = FITS[name]()
    errors = np.asarray(res.bse)
    res.remove_data()
    assert_allclose(res.bse, errors)
    assert "eps_bar" in str(res.summary())
    if name.startswith("ols"):
        assert len(res.predict(DIRTY.iloc[:2])) == 2


def test_weight_table(res):
    table = res.weight_table(7)
    assert len(table) == 7 and len(res.weight_table(None)) == N
    assert list(table.columns) == ["loss", "relative_weight", "distance", "outlier"]
    assert table.relative_weight.is_monotonic_increasing
    assert_allclose(res.weight_table(None).relative_weight.mean(), 1)
    assert table.outlier.equals(res.outliers()[table.index])
    assert_allclose(table.loss, res.losses[table.index])
    assert f"(+{N - 30} more)" in res.weight_table(None)._repr_latex_()
    assert "tabular" in res.trace._repr_latex_() and "start" in res.trace._repr_latex_()
    assert_allclose(res.lambda_trace.iloc[-1], res.trace.lambda_.iloc[-1])
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        res.outliers(1.5)


def test_wrong_rows_are_flagged_and_few_others():
    res = FITS["ols"]()
    assert res.outliers().iloc[:10].all() and res.outliers().iloc[10:].mean() < 0.08
    test = res.outlier_test()
    assert (test["bonf(p)"].iloc[:10] < 1e-6).all() and (test["bonf(p)"].iloc[10:] > 0.01).all()


MODELS = {
    "ols": lambda z, eps_bar: rrmstats.RRMOLS(z[:, 0], sm.add_constant(z[:, 1:]), eps_bar),
    "cov": lambda z, eps_bar: rrmstats.RRMCov(z, eps_bar),
    "pca": lambda z, eps_bar: rrmstats.RRMPCA(z, 1, eps_bar),
}


@pytest.mark.parametrize("model", MODELS)
def test_false_alarms_and_a_cluster(model):
    """Of clean data 1 to 5 % are flagged, of a cluster six standard deviations away nearly all."""
    clean, cluster = [], []
    for seed in range(6):
        z = np.random.default_rng(seed).standard_normal((500, 3)) * [1.0, 1.5, 1.0]
        clean.append(MODELS[model](z, 0.2).fit(n_starts=30).outliers().mean())
        z[:50] += [6.0, 0.0, 0.0] if model == "ols" else [6.0, 9.0, 6.0]
        cluster.append(MODELS[model](z, 0.2).fit(n_starts=30).outliers()[:50].mean())
    assert 0.01 < np.mean(clean) < 0.05
    assert np.mean(cluster) > 0.95


def test_labels_that_are_improbable_are_flagged():
    data = DATA.assign(x1=5 * DATA.x1, label=(DATA.x1 > 0).astype(float))
    data.iloc[data.x1.argmax(), data.columns.get_loc("label")] = 0.0
    res = rrmstats.logit("label ~ x1", data, 0.05).fit(efficiency=0.95)
    assert list(res.outliers()[res.outliers()].index) == [data.x1.idxmax()]


def test_prediction_intervals_hold_for_clean_rows():
    covered = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        exog = sm.add_constant(rng.standard_normal((600, 2)))
        endog = exog @ [1, 2, 3] + rng.standard_normal(600)
        train = endog[:200].copy()
        train[:20] += 10
        res = rrmstats.RRMOLS(train, exog[:200], 0.2).fit(n_starts=30)
        table = res.get_prediction(exog[200:]).summary_frame()
        covered.append(
            endog[200:].__ge__(table.obs_ci_lower) & (endog[200:] <= table.obs_ci_upper)
        )
    assert 0.93 < np.mean(covered) < 0.97


def test_predictions_follow_the_formula():
    res = FITS["ols"]()
    table = res.get_prediction(DIRTY.iloc[:3]).summary_frame(alpha=0.1)
    assert_allclose(table["mean"], res.predict(DIRTY.iloc[:3]))
    assert list(table.index) == list(DIRTY.index[:3])
    assert_allclose(res.get_prediction().summary_frame()["mean"], res.fittedvalues)
    logit = FITS["logit"]()
    table = logit.get_prediction(DATA.iloc[:3]).summary_frame()
    assert_allclose(table.predicted, logit.predict(DATA.iloc[:3]))
    assert ((table.ci_lower > 0) & (table.ci_lower < table.predicted)).all()
    assert ((table.ci_upper < 1) & (table.ci_upper > table.predicted)).all()


def test_intervals_at_eps_bar_0_are_those_of_least_squares():
    exog, endog = sm.add_constant(DATA[["x1", "x2"]]), DATA.y
    ours = rrmstats.RRMOLS(endog, exog, 0).fit().get_prediction().summary_frame()
    theirs = sm.OLS(endog, exog).fit(cov_type="HC1", use_t=True).get_prediction().summary_frame()
    assert_allclose(ours["mean_se"], theirs["mean_se"], rtol=1e-8)
    width = (ours.obs_ci_upper - ours.obs_ci_lower) / (theirs.obs_ci_upper - theirs.obs_ci_lower)
    assert_allclose(width, 1, atol=0.05)


def test_influence():
    res = FITS["ols"]()
    influence = res.get_influence()
    assert_allclose(influence.hat_matrix_diag.sum(), res.rank)
    assert (influence.hat_matrix_diag[:10] < 1e-8).all()
    classical = sm.OLS.from_formula("y ~ x1 + x2", DATA).fit().get_influence()
    plain = rrmstats.ols("y ~ x1 + x2", DATA, 0).fit().get_influence()
    assert_allclose(plain.hat_matrix_diag, classical.hat_matrix_diag, rtol=1e-10)
    both = np.corrcoef(plain.cooks_distance[0], classical.cooks_distance[0])
    assert both[0, 1] > 0.95
    assert plain.summary_frame().shape == (N, 7)


def test_robust_r_squared_is_that_of_the_clean_rows():
    clean = sm.OLS.from_formula("y ~ x1 + x2", DATA.iloc[10:]).fit().rsquared
    dirty = rrmstats.ols("y ~ x1 + x2", DIRTY, 0.2).fit()
    assert abs(dirty.rsquared - clean) < 0.04
    assert sm.OLS.from_formula("y ~ x1 + x2", DIRTY).fit().rsquared < 0.5
    assert dirty.f_pvalue < 1e-10 and dirty.rsquared_adj < dirty.rsquared


def test_pseudo_likelihood_and_margins():
    res = FITS["logit"]()
    assert res.llnull < res.llf < 0 and 0 < res.prsquared < 1
    effects = res.get_margeff()
    classical = sm.Logit.from_formula("label ~ x1 + x2", DATA).fit(disp=0).get_margeff()
    assert_allclose(effects.margeff, classical.margeff, atol=0.05)


def test_pairwise_comparisons():
    res = FITS["ols"]()
    assert len(res.t_test_pairwise("C(g)").result_frame) == 3


def test_bootstrap_intervals_without_data():
    res = rrmstats.ols("y ~ x1", DIRTY, 0.2).fit(cov_type="bootstrap", cov_kwds={"n_boot": 50})
    bounds = res.conf_int()
    res.remove_data()
    assert_allclose(res.conf_int(), bounds)


def test_long_tables_are_cut_with_a_count():
    z = np.random.default_rng(0).standard_normal((400, 40))
    text = str(rrmstats.RRMCov(z, 0.1).fit(n_starts=5).summary())
    assert "(+34 more)" in text and "(+10 more)" in text
