"""Every public attribute of statsmodels' twins works here, or is refused in words that help.

At eps_bar = 0 what works has statsmodels' values.
"""

import re
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import SingularMatrixWarning

import rrmstats
from rrmstats.results.base import Meaningless

from .fits import DATA

COUNTS = DATA.assign(hours=1.0 + np.arange(len(DATA)) % 3)
POISSON = {"family": sm.families.Poisson()}
TWINS = {
    "ols": ("y ~ x1 + C(g)", smf.ols, rrmstats.ols, {}),
    "logit": ("label ~ x1 + C(g)", smf.logit, rrmstats.logit, {}),
    "poisson": ("count ~ x1 + C(g)", smf.poisson, rrmstats.poisson, {}),
    "glm": ("count ~ x1 + C(g)", smf.glm, rrmstats.glm, POISSON),
}
# Arguments of methods; those that change, save or load results are called elsewhere.
ARGUMENTS = {
    **dict.fromkeys(("t_test", "wald_test", "f_test"), ("x1 = 0",)),
    **dict.fromkeys(("plot_partial_residuals", "plot_added_variable"), ("x1",)),
    "plot_ceres_residuals": ("x1",),
    "t_test_pairwise": ("C(g)",),
    "get_robustcov_results": ("HC1",),
    "info_criteria": ("bic",),
    "pseudo_rsquared": ("mcf",),
}
ELSEWHERE = {"save", "load", "remove_data", "append", "initialize", "set_null_options"}
ELSEWHERE |= {"compare_f_test", "compare_lm_test", "compare_lr_test", "el_test", "conf_int_el"}
# What is estimated in another way, or is another thing of the same name.
DIFFERENT = {"bse", "tvalues", "pvalues", "fvalue", "f_pvalue", "conf_int", "scale", "converged"}
DIFFERENT |= {"cov_params", "cov_params_default", "get_hat_matrix_diag", "nobs"}
DIFFERENT |= {"poisson fittedvalues"}  # means, as those of statsmodels' GLM


@cache
def fits(name):
    """Return statsmodels' fit, ours to the same, and ours that is robust in two steps."""
    formula, theirs, ours, kwargs = TWINS[name]
    quiet = {"disp": 0} if name in ("logit", "poisson") else {}
    return (
        theirs(formula, DATA, **kwargs).fit(**quiet),
        ours(formula, DATA, 0, **kwargs).fit(**quiet),
        ours(formula, DATA, 0.1, **kwargs).fit(**quiet),
    )


def read(res, name):
    """Return an attribute, or what a method returns."""
    value = getattr(res, name)
    return value(*ARGUMENTS.get(name, ())) if callable(value) else value


def works(res, name):
    try:
        read(res, name)
    except Exception:
        return False
    return True


def table():
    """Return model and attribute for all that works in statsmodels."""
    for name in TWINS:
        theirs = fits(name)[0]
        names = [each for each in dir(theirs) if not each.startswith("_")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plt, "figure", lambda *args, **kwargs: plt.Figure())
            yield from (
                (name, each) for each in names if each not in ELSEWHERE and works(theirs, each)
            )


TABLE = list(table())
PUBLIC = {name: {each for each in dir(fits(name)[2]) if each[0] != "_"} for name in TWINS}


@pytest.mark.parametrize(("name", "attribute"), TABLE)
def test_works_or_says_what_to_use(name, attribute):
    theirs, classical, robust = fits(name)
    for res in (classical, robust):
        try:
            found = read(res, attribute)
        except Meaningless as error:
            check_words(name, attribute, str(error))
            continue
        if res is classical and not {attribute, f"{name} {attribute}"} & DIFFERENT:
            expected = read(theirs, attribute)
            if isinstance(expected, float | np.ndarray | pd.Series | pd.DataFrame):
                if np.asarray(expected).dtype.kind == "f":
                    assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    plt.close("all")


def check_words(name, attribute, text):
    """Check that a refusal names what these results have, and nothing that only others have."""
    reason = text.removeprefix(f"{attribute} has no meaning here: ")
    assert reason != text
    words = set(re.findall(r"\w+", reason)) - {attribute, "llf", "weights", "risk", "model"}
    assert words & PUBLIC[name] or "fit" in words
    others = set().union(*PUBLIC.values()) - PUBLIC[name]
    assert not words & others


def test_most_of_the_table_works():
    refused = [
        (name, each) for name, each in TABLE if each in type(fits(name)[2]._results)._meaningless
    ]
    assert len(TABLE) > 190 and len(refused) < 0.25 * len(TABLE)


@pytest.mark.parametrize("name", ["logit", "poisson", "glm"])
def test_influence_is_that_of_statsmodels(name):
    formula, _, ours, kwargs = TWINS[name]
    family = sm.families.Binomial() if name == "logit" else sm.families.Poisson()
    expected = smf.glm(formula, DATA, family=family).fit().get_influence().summary_frame()
    found = ours(formula, DATA, 0, **kwargs).fit().get_influence().summary_frame()
    assert_allclose(found[expected.columns], expected, rtol=1e-5, atol=1e-8)
    assert found.index.equals(DATA.index)


def test_bad_rows_have_residuals_but_no_influence():
    data = DATA.assign(count=DATA["count"].where(np.arange(len(DATA)) >= 5, 200.0))
    frame = rrmstats.poisson("count ~ x1", data, 0.2).fit().get_influence().summary_frame()
    assert (frame["standard_resid"][:5] > 20).all()
    assert (frame["cooks_d"][:5] < 1e-6).all() and (frame["hat_diag"][:5] < 1e-6).all()


def test_probabilities_of_counts():
    theirs = smf.poisson("count ~ x1", COUNTS, exposure=COUNTS.hours).fit(disp=0)
    res = rrmstats.poisson("count ~ x1", COUNTS, 0, exposure=COUNTS.hours).fit()
    assert_allclose(res.predict_prob(), theirs.predict_prob(), rtol=1e-6)
    assert_allclose(res.predict_prob([0, 3]), theirs.predict_prob()[:, [0, 3]], rtol=1e-6)
    assert_allclose(res.prsquared, theirs.prsquared, rtol=1e-6)
    new = COUNTS.iloc[:4]
    found = res.predict_prob([0], exog=new, exposure=new.hours)
    assert_allclose(found, theirs.predict_prob()[:4, :1], rtol=1e-6)
    gaussian = rrmstats.glm("y ~ x1", DATA, 0).fit()
    with pytest.raises(NotImplementedError, match=r"use get_distribution\(\).cdf"):
        gaussian.predict_prob()


@pytest.mark.parametrize("kind", ["cs", "mcf"])
@pytest.mark.parametrize("response", ["label", "y"])
def test_pseudo_r_squared_of_other_families(response, kind):
    family = sm.families.Binomial() if response == "label" else sm.families.Gaussian()
    expected = smf.glm(f"{response} ~ x1", DATA, family=family).fit().pseudo_rsquared(kind)
    res = rrmstats.glm(f"{response} ~ x1", DATA, 0, family=family).fit()
    assert_allclose(res.pseudo_rsquared(kind), expected, rtol=1e-6)


def test_pseudo_r_squared_is_that_of_the_good_rows():
    data = DATA.assign(count=DATA["count"].where(np.arange(len(DATA)) >= 5, 200.0))
    clean = smf.poisson("count ~ x1", DATA.iloc[5:]).fit(disp=0).prsquared
    assert abs(rrmstats.poisson("count ~ x1", data, 0.2).fit().prsquared - clean) < 0.02


@pytest.mark.parametrize("name", ["logit", "poisson"])
def test_linear_predictors_with_intervals(name):
    res = fits(name)[2]
    linear = res.get_prediction(DATA[:3], which="linear").summary_frame().to_numpy()
    mean = res.get_prediction(DATA[:3], which="mean").summary_frame().to_numpy()
    inverse = np.exp if name == "poisson" else lambda eta: 1 / (1 + np.exp(-eta))
    assert_allclose(inverse(linear[:, [0, 2, 3]]), mean[:, [0, 2, 3]])
    expected = fits(name)[0].get_prediction(DATA[:3], which="linear").predicted
    assert_allclose(fits(name)[1].get_prediction(DATA[:3], which="linear").predicted, expected)
    with pytest.raises(ValueError, match="'mean' or 'linear', got 'prob'"):
        res.get_prediction(which="prob")


def test_tests_and_intervals_of_labels_agree():
    """Where flips may not show, intervals of contrasts reach as far as those of parameters."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 2))
    data = pd.DataFrame(x, columns=["a", "b"])
    data["label"] = (rng.random(400) < 1 / (1 + np.exp(-2 * x.sum(axis=1)))).astype(float)
    res = rrmstats.logit("label ~ a + b", data, 0.1).fit()
    assert res._estimate.alternatives
    interval = res.conf_int().loc[["a"]]
    assert_allclose(res.t_test("a = 0").conf_int(), interval)
    assert_allclose(res.t_test([0, 1, 0]).summary_frame().iloc[:, -2:], interval)
    assert_allclose(res.t_test("2 * a = 0").conf_int(), 2 * interval)
    low, high = res.t_test("a + b = 0").conf_int()[0]
    contrast = res.t_test("a + b = 0")
    assert high - contrast.effect[0] > 1.0001 * (contrast.effect[0] - low) > 0


@pytest.mark.parametrize("name", TWINS)
def test_rows_keep_their_labels(name):
    res = fits(name)[2]
    for key in ("prob_bad", "relative_weights", "weights", "resid", "fittedvalues"):
        assert getattr(res, key).index.equals(DATA.index)


def test_predictions_of_labels_have_the_offset():
    offset = np.linspace(-1, 1, len(DATA))
    theirs = smf.logit("label ~ x1", DATA, offset=offset).fit(disp=0)
    res = rrmstats.logit("label ~ x1", DATA, 0, offset=offset).fit()
    expected = theirs.predict()
    assert_allclose(res.get_prediction().predicted, expected, rtol=1e-6)
    assert_allclose(res.get_distribution().mean(), expected, rtol=1e-6)
    some = res.get_prediction(DATA[:3], offset=offset[:3], row_labels=list("abc")).summary_frame()
    assert_allclose(some["predicted"], expected[:3], rtol=1e-6)
    assert some.index.tolist() == list("abc")
    with pytest.raises(NotImplementedError, match="use get_margeff"):
        res.get_prediction(average=True)


def test_weighted_regressions_have_the_numbers_of_wls():
    weights = 1.0 + np.arange(len(DATA)) % 2
    theirs = smf.wls("y ~ x1 + C(g)", DATA, weights=weights).fit(cov_type="HC3", use_t=True)
    res = rrmstats.wls("y ~ x1 + C(g)", DATA, 0, weights=weights).fit(use_t=True)
    for name in ("rsquared", "rsquared_adj", "mse_resid", "fvalue"):
        assert_allclose(getattr(res, name), getattr(theirs, name), rtol=1e-6)
    expected = theirs.get_prediction(DATA[:3]).summary_frame()
    assert_allclose(res.get_prediction(DATA[:3]).summary_frame()[expected.columns], expected)
    with pytest.raises(Meaningless, match=r"see pseudo_rsquared\(\)"):
        _ = fits("poisson")[2].rsquared


@pytest.mark.filterwarnings("ignore:The share of bad rows is at the largest bound")
def test_an_explanation_at_its_bound_is_told():
    explanations = rrmstats.glm("y ~ x1 - 1", DATA).fit().explanations
    assert explanations["chosen"].sum() == 1


def test_dependent_columns_warn():
    data = DATA.assign(x3=DATA.x1 + DATA.x2)
    with pytest.warns(SingularMatrixWarning, match="rank 3 but 4 columns"):
        rrmstats.ols("y ~ x1 + x2 + x3", data, 0.1).fit()


def test_refused_options_of_fit_and_of_models():
    with pytest.raises(NotImplementedError, match="see scale of the results"):
        rrmstats.ols("y ~ x1", DATA).fit(scale=1.0)
    with pytest.raises(TypeError, match="subtract an offset from the response"):
        rrmstats.ols("y ~ x1", DATA, offset=1.0)


def test_outlier_test_takes_the_arguments_of_statsmodels():
    theirs, res = fits("ols")[:2]
    for options in ({"order": True}, {"cutoff": 0.99}, {"labels": range(len(DATA))}):
        assert_allclose(res.outlier_test(**options), theirs.outlier_test(**options), rtol=1e-6)


@pytest.mark.slow
def test_labels_with_splines():
    """Flat likelihoods on the way, where steps once were halved for ever."""
    res = rrmstats.logit("label ~ x1 + bs(x2, 4)", DATA).fit(stability=False)
    assert res.converged and res.params["x1"] > 1
