"""Tables, displays and files."""

import pickle

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from statsmodels.iolib.summary2 import summary_col
from undated import undated

import rrmstats

from .fits import DATA, DIRTY, FITS


def test_tables_beside_statsmodels():
    least_squares = sm.OLS.from_formula("y ~ x1 + x2", DIRTY).fit()
    robust = rrmstats.ols("y ~ x1 + x2", DIRTY, 0.2).fit(steps=1)
    logit = rrmstats.logit("label ~ x1 + x2", DATA, 0.05).fit(steps=1)
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
    assert undated(loaded.summary()) == undated(res.summary())


@pytest.mark.parametrize("name", ["ols", "ols, two steps", "logit", "cov", "pca"])
def test_without_data(name):
    res = FITS[name]()
    errors = np.asarray(res.bse)
    res.remove_data()
    assert_allclose(res.bse, errors)
    assert "eps_bar" in str(res.summary())
    if name.startswith("ols"):
        assert len(res.predict(DIRTY.iloc[:2])) == 2


def test_bootstrap_intervals_without_data():
    res = rrmstats.ols("y ~ x1", DIRTY, 0.2).fit(
        cov_type="bootstrap", cov_kwds={"n_boot": 50}, steps=1
    )
    bounds = res.conf_int()
    res.remove_data()
    assert_allclose(res.conf_int(), bounds)


@pytest.mark.slow
def test_long_tables_are_cut_with_a_count():
    z = np.random.default_rng(0).standard_normal((400, 40))
    text = str(rrmstats.RRMCov(z, 0.1).fit(n_starts=5, steps=1).summary())
    assert "(+34 more)" in text and "(+10 more)" in text


def test_summaries_take_the_arguments_of_statsmodels(res):
    kind = type(res.model).__name__
    names = res.model.variables if kind in ("RRMPCA", "RRMCov") else list(res.params.index)
    given = [f"name {i}" for i in range(len(names))]
    text = undated(res.summary(xname=given, title="A title of its own"))
    lines = text.splitlines()
    assert "A title of its own" in lines[0] and res._title not in text
    stubs = [line.split("  ")[0].strip() for line in lines]
    assert all(name in stubs for name in given)
    assert not any(name in stubs for name in names)
    own = undated(res.summary()).splitlines()
    renamed = [line.removeprefix("name 0").split() for line in lines if line[:6] == "name 0"]
    assert renamed == [line.split()[1:] for line in own if line.split()[:1] == names[:1]]
    if kind in ("RRMOLS", "RRMLogit"):
        assert "the response" in str(res.summary(yname="the response"))


def test_slim_summaries_leave_out_the_search(res):
    whole, slim = str(res.summary()), str(res.summary(slim=True))
    for label in ("Starts:", "Descents to the minimum", "Date:", "Iterations:"):
        assert label in whole and label not in slim
    rows = "Smallest weights" if res.steps == 1 else "Most likely bad rows"
    assert (rows in whole) == (res.steps == 1 or res.prob_bad.max() >= 0.01)
    assert rows not in slim
    for label in ("eps_bar:", "Risk:", "No. Observations:", "Converged:"):
        assert label in slim
    assert len(slim.splitlines()) < len(whole.splitlines())


def test_summaries_follow_alpha():
    res = FITS["ols"]()
    row = next(line for line in str(res.summary(alpha=0.2)).splitlines() if line[:3] == "x1 ")
    for bound in res.conf_int(0.2).loc["x1"]:
        assert f"{bound:.3f}" in row
    assert "[0.1" in str(res.summary(alpha=0.2))


def test_what_maketables_reads(res):
    table = res.__maketables_coef_table__
    assert table.index.tolist() == list(res.params.index)
    np.testing.assert_array_equal(table[["b", "se"]], np.c_[res.params, res.bse])
    np.testing.assert_array_equal(table[["ci95l", "ci95u"]], res.conf_int())
    told = {key: res.__maketables_stat__(key) for key in res.__maketables_default_stat_keys__}
    assert (told["N"], told["bad_rows"]) == (120, res.default_model_infos["Bad rows"](res))
    assert told["explanation"] == (str(res.explanation) if res.steps == 2 else None)
    assert res.__maketables_stat_labels__.keys() == told.keys()
    assert res.__maketables_stat__("eps_bar") == res.eps_bar
    assert res.__maketables_stat__("r2") == getattr(res, "rsquared", None)
    assert res.__maketables_stat__("no such thing") is None
    assert res.__maketables_vcov_info__ == {"se_type": res.cov_type}
    assert res.__maketables_depvar__ == str(res.model.endog_names)
