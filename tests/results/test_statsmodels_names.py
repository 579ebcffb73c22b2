"""What statsmodels' results offer is right here, or refused with a reason."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.stats.anova import anova_lm

import rrmstats
from rrmstats.results.base import Meaningless

from .fits import DATA, DIRTY, FITS

CLASSICAL = {
    "ols": (
        lambda: sm.OLS.from_formula("y ~ x1 + x2", DATA).fit(),
        lambda: rrmstats.ols("y ~ x1 + x2", DATA, 0).fit(steps=1),
    ),
    "rlm": (
        lambda: sm.RLM.from_formula("y ~ x1 + x2", DATA).fit(),
        lambda: rrmstats.ols("y ~ x1 + x2", DATA, 0).fit(steps=1),
    ),
    "logit": (
        lambda: sm.Logit.from_formula("label ~ x1 + x2", DATA).fit(disp=0),
        lambda: rrmstats.logit("label ~ x1 + x2", DATA, 0).fit(steps=1),
    ),
}

# What is estimated in another way, or is another thing of the same name.
DIFFERENT = {
    "ols": {"bse", "tvalues", "pvalues", "fvalue", "f_pvalue", "cov_kwds", "cov_type"},
    "rlm": {"params", "bse", "tvalues", "pvalues", "scale", "resid", "sresid", "fittedvalues"}
    | {"weights", "cov_params_default", "use_t", "llf"},
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


def test_robust_r_squared_is_that_of_the_clean_rows():
    clean = sm.OLS.from_formula("y ~ x1 + x2", DATA.iloc[10:]).fit().rsquared
    dirty = rrmstats.ols("y ~ x1 + x2", DIRTY, 0.2).fit(steps=1)
    assert abs(dirty.rsquared - clean) < 0.04
    assert sm.OLS.from_formula("y ~ x1 + x2", DIRTY).fit().rsquared < 0.5
    assert dirty.f_pvalue < 1e-10 and dirty.rsquared_adj < dirty.rsquared


@pytest.mark.parametrize("name", ["logit", "logit, two steps"])
def test_pseudo_r_squared_and_margins(name):
    res = FITS[name]()
    assert res.llnull < 0 and 0 < res.prsquared < 1
    effects = res.get_margeff()
    classical = sm.Logit.from_formula("label ~ x1 + x2", DATA).fit(disp=0).get_margeff()
    assert_allclose(effects.margeff, classical.margeff, atol=0.05)


def test_pairwise_comparisons():
    res = FITS["ols"]()
    assert len(res.t_test_pairwise("C(g)").result_frame) == 3


def test_anova_is_refused_with_what_to_use():
    res = rrmstats.ols("y ~ x1 + x2", DATA, 0.2).fit(steps=1)
    with pytest.raises(Meaningless, match=r"compare\(\) or wald_test_terms\(\)"):
        anova_lm(res)
    small = rrmstats.ols("y ~ x1", DATA, 0.2).fit(steps=1)
    with pytest.raises(Meaningless, match=r"compare\(\)"):
        anova_lm(small, res)
    for typ in (2, 3):
        with pytest.raises(Meaningless, match="wald_test_terms"):
            anova_lm(res, typ=typ)
