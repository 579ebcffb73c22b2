"""Agreement with robustbase and rrcov; see the scripts in reference/ that made the numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rrmstats
from rrmstats import RRMPCA, RRMCov, datasets
from rrmstats.core.consistency import gaussian_efficiency

FOLDER = Path(__file__).parent / "reference"
# The years 1963 to 1970 of phones, in which another recording system was used.
PARTLY_AFFECTED = list(range(13, 21))


def reference(method, data):
    """Return what R found on a data set: Series of numbers and the set of outliers."""
    table = pd.read_csv(FOLDER / f"{method}.csv", dtype={"name": str})
    parts = {what: part.set_index("name").value for what, part in table.groupby(["data", "what"])}
    found = {what: part for (name, what), part in parts.items() if name == data}
    return found, {int(row) for row in found["outlier"].index}


def load(name):
    return getattr(datasets, name).load_pandas().data


def difference(eps_bar, dim=1, efficiency=0.95):
    """Return two standard deviations of the difference of the estimates, in standard errors.

    An efficient estimate and one of efficiency e differ by a variance of 1/e less its own.
    """
    return 2 * np.sqrt(1 / gaussian_efficiency(eps_bar, dim) - 1 / efficiency)


@pytest.mark.parametrize(
    ("name", "formula", "eps_bar"),
    [
        ("hbk", "y ~ x1 + x2 + x3", 0.2),
        ("stars_cyg", "log_light ~ log_te", 0.2),
        ("phones", "calls ~ year", 0.4),
    ],
)
def test_regression(name, formula, eps_bar):
    expected, outliers = reference("lmrob", name)
    res = rrmstats.ols(formula, load(name), eps_bar).fit(steps=1)
    coefs = expected["coef"].rename({"(Intercept)": "Intercept"})[res.params.index]
    errors = np.abs(res.params.to_numpy() - coefs.to_numpy()) / expected["se"].to_numpy()
    assert (errors < difference(eps_bar)).all()
    # not lmrob's own scale, which its outliers inflate
    bad = PARTLY_AFFECTED if name == "phones" else list(outliers)
    clean = smf.ols(formula, load(name).drop(index=bad)).fit()
    assert_allclose(np.sqrt(res.scale), np.sqrt(clean.scale), rtol=0.25)
    assert outliers <= set(res.weights[res.weights * len(res.weights) < 0.01].index)


@pytest.mark.parametrize(
    ("name", "variables", "eps_bar"),
    [("hbk", ["x1", "x2", "x3"], 0.25), ("stars_cyg", ["log_te", "log_light"], 0.2)],
)
def test_covariance(name, variables, eps_bar):
    expected, outliers = reference("covMcd", name)
    data = load(name)[variables]
    res = RRMCov(data, eps_bar).fit(steps=1)
    cov = expected["cov"].to_numpy().reshape(len(variables), -1)
    spread = np.sqrt(np.diag(cov))
    errors = np.abs(res.mean - expected["mean"]) / (spread / np.sqrt(len(data)))
    assert (errors < difference(eps_bar, len(variables))).all()
    assert_allclose(res.cov / np.outer(spread, spread), cov / np.outer(spread, spread), atol=0.25)
    assert set(np.flatnonzero(res.outliers(0.999))) == outliers


@pytest.mark.parametrize(("name", "q"), [("stars_cyg", 1), ("hbk", 2)])
def test_components(name, q):
    expected, outliers = reference("PcaHubert", name)
    res = RRMPCA(load(name), q, 0.2 if q == 1 else 0.25).fit(steps=1)
    found = set(np.flatnonzero(res.outliers(0.975)))
    if name == "stars_cyg":
        assert_allclose(res.eigenvals, expected["eigenvalue"], rtol=0.25)
    else:  # PcaHubert's are 1.65 times those of the rows that it does not flag
        bulk = np.delete(load(name).to_numpy(), sorted(outliers), axis=0)
        # The first step has errors of 0.3 to 0.4 of them, the second of 0.15.
        values, second = np.linalg.eigvalsh(np.cov(bulk.T))[:-3:-1], RRMPCA(load(name), q, 0.25)
        assert_allclose(res.eigenvals, values, rtol=0.35)
        assert_allclose(second.fit().eigenvals, values, rtol=0.15)
    assert_allclose(res.mean, expected["center"], atol=0.2)
    assert len(found ^ outliers) <= 1  # one row is on the border of each
    if name == "stars_cyg":  # the bulk of hbk has no direction of its own
        aligned = np.abs(res.loadings["comp_1"] @ expected["loading"].to_numpy())
        assert_allclose(aligned, 1, atol=1e-3)


def as_in_r(term):
    """Return the name that R gives to a term of patsy's."""
    for ours, theirs in (
        ("C(eucalyptus, Treatment('regnans'))", "eucalyptus"),
        ("[T.", ""),
        ("]", ""),
        ("Intercept", "(Intercept)"),
    ):
        term = term.replace(ours, theirs)
    return term


POSSUMS = "Shrubs + Stumps + Stags + Bark + Habitat + BAcacia"


@pytest.mark.parametrize(
    ("name", "method", "formula", "eps_bar"),
    [
        ("epilepsy", "Mqle", "Ysum ~ Age10 + Base4 * Trt", 0.1),
        ("epilepsy", "MT", "Ysum ~ Age10 + Base4 * Trt", 0.2),
        (
            "possumDiv",
            "Mqle",
            f"Diversity ~ {POSSUMS} + C(eucalyptus, Treatment('regnans')) + aspect",
            0.1,
        ),
        ("carrots", "Mqle", "success + failure ~ logdose + block", 0.1),
    ],
)
def test_generalized_linear_models(name, method, formula, eps_bar):
    table = pd.read_csv(FOLDER / "glmrob.csv", dtype={"name": str})
    table = table[(table.data == name) & (table.method == method)]
    expected = {what: part.set_index("name").value for what, part in table.groupby("what")}
    data = pd.read_csv(FOLDER / f"{name}.csv")
    family = sm.families.Poisson()
    if name == "carrots":
        data["failure"], family = data.total - data.success, sm.families.Binomial()
    model = rrmstats.glm(formula, data, eps_bar, family=family)
    # R's fits stay with the family, as the first step does; the second tells of more variance.
    told = {"epilepsy": "overdispersed", "carrots": "overdispersed"}
    assert model.fit().explanation == told.get(name, "none")
    res = model.fit(steps=1)
    params, errors = (part.rename(as_in_r) for part in (res.params, res.bse))
    errors = expected.get("se", errors)
    assert set(params.index) == set(expected["coef"].index)
    off = np.abs(params - expected["coef"]) / errors
    assert off.max() < 1
    weights = expected["weight"].rename(int)
    bad = weights.index[weights < (0.01 if method == "MT" else 0.3)]
    assert res.outliers()[bad].all()
    assert len(bad) == {"MT": 12}.get(method, {"epilepsy": 8, "possumDiv": 0, "carrots": 1}[name])
