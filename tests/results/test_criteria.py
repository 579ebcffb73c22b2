"""Log-likelihoods and information criteria: statsmodels' at eps_bar = 0, of the mixture else."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy.stats import norm

import rrmstats
from rrmstats.results.base import Meaningless

from .fits import DATA, DIRTY

GAMMA = sm.families.Gamma(sm.families.links.Log())
FRAME = DATA.assign(large=1e6 * DATA.y, positive=np.exp(0.3 * DATA.y))
MODELS = {
    "ols": ("y", smf.ols, rrmstats.ols, {}),
    "ols, large": ("large", smf.ols, rrmstats.ols, {}),
    "logit": ("label", smf.logit, rrmstats.logit, {}),
    "poisson": ("count", smf.poisson, rrmstats.poisson, {}),
    "gaussian": ("large", smf.glm, rrmstats.glm, {}),
    "gamma": ("positive", smf.glm, rrmstats.glm, {"family": GAMMA}),
    "binomial": ("label", smf.glm, rrmstats.glm, {"family": sm.families.Binomial()}),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [1, 2])
def test_classical_criteria_are_those_of_statsmodels(name, steps):
    response, theirs, ours, kwargs = MODELS[name]
    formula = f"{response} ~ x1 + x2"
    quiet = {"disp": 0} if theirs in (smf.logit, smf.poisson) else {}
    expected = theirs(formula, FRAME, **kwargs).fit(**quiet)
    res = ours(formula, FRAME, 0, **kwargs).fit(steps=steps)
    # The bic of a GLM was one of deviances before statsmodels 0.15.
    bic = "bic_llf" if theirs is smf.glm else "bic"
    for key, other in (("llf", "llf"), ("aic", "aic"), ("bic", bic)):
        assert_allclose(getattr(res, key), getattr(expected, other), rtol=1e-8, err_msg=key)
    assert_allclose(res.info_criteria("aic"), res.aic)
    assert_allclose(res.info_criteria("bic", dk_params=1), res.bic + np.log(len(FRAME)))


@pytest.mark.parametrize("crit", ["aicc", "hqic"])
def test_other_criteria(crit):
    expected = smf.ols("y ~ x1", DATA).fit().info_criteria(crit)
    assert_allclose(rrmstats.ols("y ~ x1", DATA, 0).fit().info_criteria(crit), expected)


def test_clean_rows_have_nearly_the_classical_likelihood():
    expected = smf.poisson("count ~ x1", DATA).fit(disp=0)
    res = rrmstats.poisson("count ~ x1", DATA, 0.1).fit()
    assert res.explanation.name == "none"
    assert_allclose([res.llf, res.aic, res.bic], [expected.llf, expected.aic, expected.bic])


def test_a_mixture_counts_its_parameters():
    """A cluster of bad rows: its place and its share, beside the coefficients."""
    res = rrmstats.ols("y ~ x1 + x2", DIRTY, 0.2).fit()
    own = res._estimate.explained.chosen
    assert res.eps_hat > 0 and own.n_params > 0
    assert_allclose(res.aic, -2 * res.llf + 2 * (3 + own.n_params))
    assert_allclose(res.bic, -2 * res.llf + np.log(len(DIRTY)) * (3 + own.n_params))
    classical = smf.ols("y ~ x1 + x2", DIRTY).fit()
    assert res.bic < classical.bic - 100


def test_likelihood_of_a_mixture_by_hand():
    """The density of each row is that of a good row, or of a wide bad one."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    y = 1 + 2 * x + 0.5 * rng.standard_normal(200)
    y[:20] += 20 * rng.standard_normal(20)
    data = pd.DataFrame({"x": x, "y": y})
    res = rrmstats.ols("y ~ x", data, 0.2).fit()
    distances = res.explained_distances()
    at = np.asarray(distances.values)
    found = distances.densities(at)
    total = np.log((found.good + found.bad) / np.sqrt(res.scale))
    assert_allclose(res.llf, total.sum(), rtol=1e-6)
    assert res.llf > norm.logpdf(y, 1 + 2 * x, 0.5).sum()


@pytest.mark.parametrize("make", [rrmstats.ols, rrmstats.glm])
@pytest.mark.parametrize("factor", [1e-3, 1e6, 1e100])
def test_units_change_likelihoods_by_what_they_must(factor, make):
    frame = DIRTY.assign(y=factor * DIRTY.y)
    before, after = (make("y ~ x1", each, 0.2).fit() for each in (DIRTY, frame))
    assert_allclose(after.llf, before.llf - len(DIRTY) * np.log(factor), rtol=1e-6)


def test_variance_weights_are_part_of_the_likelihood():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.standard_normal(200), "w": rng.choice([0.25, 1, 4.0], 200)})
    data["y"] = 1 + 2 * data.x + rng.standard_normal(200) / np.sqrt(data.w)
    expected = smf.wls("y ~ x", data, weights=data.w).fit()
    classical, robust = (
        rrmstats.glm("y ~ x", data, eps_bar, var_weights=data.w).fit() for eps_bar in (0, 0.1)
    )
    assert robust.explanation.name == "none"
    assert_allclose(classical.llf, expected.llf, rtol=1e-8)
    # the variance is per degree of freedom, and not that of maximum likelihood
    assert_allclose(robust.llf, expected.llf, atol=0.01)
    assert_allclose(robust.params, expected.params)


@pytest.mark.parametrize("name", MODELS)
def test_one_step_refuses_and_names_two(name):
    response, _, ours, kwargs = MODELS[name]
    res = ours(f"{response} ~ x1", FRAME, 0.1, **kwargs).fit(steps=1)
    for key in ("llf", "aic", "bic"):
        assert not hasattr(res, key)
        with pytest.raises(Meaningless, match=rf"{key} needs a model .* use fit\(steps=2\)"):
            getattr(res, key)
    with pytest.raises(Meaningless, match="wald_test"):
        res.info_criteria("aic")


def test_samples_have_no_likelihood():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(5_100)
    data = pd.DataFrame({"x": x, "y": x + rng.standard_normal(5_100)})
    res = rrmstats.ols("y ~ x", data, 0.1).fit(stability=False)
    with pytest.raises(Meaningless, match=r"more than 5,000 rows .* compare\(\)"):
        _ = res.bic
    assert rrmstats.ols("y ~ x", data, 0).fit().bic > 0


def test_what_is_no_criterion():
    res = rrmstats.ols("y ~ x1", DATA, 0).fit()
    with pytest.raises(ValueError, match="one of aic, bic, aicc, hqic, got 'tic'"):
        res.info_criteria("tic")


def test_removed_data_leave_the_criteria():
    res = rrmstats.ols("y ~ x1", DIRTY, 0.2).fit()
    expected = res.llf, res.aic, res.bic
    res.remove_data()
    assert (res.llf, res.aic, res.bic) == expected
