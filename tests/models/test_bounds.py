"""eps_bar of the models: "auto", the check against a larger value, and warnings."""

import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from model_table import BAD, MODELS, clone, frame
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import ConvergenceWarning, ModelWarning

import rrmstats
from replication.samples import leverage_shift, logistic_labels, one_sided_outliers
from rrmstats import RRMGLM, RRMOLS, RRMLogit, RRMPoisson, UnstableWarning, datasets
from rrmstats.core import steps

HBK = datasets.hbk.load_pandas().data


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [1, 2])
def test_auto_is_a_fit_at_the_value_that_it_reports(name, steps):
    res = MODELS[name].array(frame(), eps_bar="auto").fit(steps=steps)
    assert 0 < res.eps_bar <= 0.5
    assert res.choice.eps_bar == res.eps_bar == res.model.eps_bar
    same = MODELS[name].array(frame(), eps_bar=res.eps_bar).fit(steps=steps)
    assert_allclose(res.params, same.params, rtol=1e-12)
    assert_allclose(res.weights, same.weights, rtol=1e-9, atol=1e-15)
    assert same.choice is None
    text = " ".join(str(res.summary()).split())
    assert "Choice of eps_bar: automatic" in text
    assert res.choice.reason in text
    assert steps == 1 or "eps_bar; see explanations" in text


@pytest.mark.parametrize("name", ["ols", "pca", "cov"])
def test_auto_gives_up_the_bad_rows(name):
    res = MODELS[name].array(frame(), eps_bar="auto").fit()
    assert 0.1 < res.eps_bar < 0.25
    assert set(BAD) <= set(res.outliers().index[res.outliers()])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_auto_writes_nothing_on_the_model_and_survives_a_clone(name):
    model = MODELS[name].formula(frame(), "auto", eps_bar_max=0.4)
    first = model.fit(steps=1)
    assert (model.eps_bar, model.choice) == ("auto", None)
    again = clone(model)
    assert (again.eps_bar, again.eps_bar_max) == ("auto", 0.4)
    assert again.fit(steps=1).eps_bar == first.eps_bar


def test_auto_has_its_largest_value():
    sample = one_sided_outliers(np.random.default_rng(0), 100, share=0.2)
    res = RRMOLS(*sample, "auto", eps_bar_max=0.1).fit(steps=1)
    assert res.eps_bar == 0.1
    with pytest.raises(ValueError, match=r"eps_bar_max must be a number in \(0, 1\), got 1.5"):
        RRMOLS([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], "auto", eps_bar_max=1.5)


def test_auto_has_no_value_before_the_fit():
    model = rrmstats.ols("y ~ x1 + x2 + x3", HBK, "auto")
    with pytest.raises(ValueError, match=r"has no value before fit\(\); use .* res.model"):
        model.design_distances()
    assert model.fit(steps=1).model.design_distances() is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_frequencies_are_repeated_rows_to_auto(name):
    data = frame()
    twice = pd.concat([data, data])
    weighted = MODELS[name].array(data, eps_bar="auto", freq_weights=np.full(len(data), 2.0))
    repeated = MODELS[name].array(twice, eps_bar="auto").fit(steps=1).eps_bar
    assert abs(weighted.fit(steps=1).eps_bar - repeated) <= 0.011


def test_too_small_a_bound_warns_in_fit_and_names_terms_and_rows():
    with pytest.warns(UnstableWarning, match="changes with eps_bar = 0.08 by more than chance"):
        res = rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.05).fit()
    found = res.stability
    assert not found.stable
    assert "x3" in found.terms
    assert set(found.gained) == set(range(10))
    assert set(found.lost) == {10, 11, 12, 13}
    assert "see the path" in found.message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = " ".join(str(res.summary()).split())
    assert "Stable up to eps_bar: NO, differs at 0.08" in text
    assert "Bad only then: rows 0, 1, 2" in text


def test_the_warning_points_to_the_code_of_the_user():
    with pytest.warns(UnstableWarning) as caught:
        rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.05).fit()
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("name", MODELS)
def test_a_sufficient_bound_is_stable_up_to_the_largest(name):
    res = MODELS[name].array(frame(), eps_bar=0.2).fit()
    assert res.stability.stable
    assert 0.4 < res.stability.largest <= 0.5
    text = " ".join(str(res.summary()).split())
    assert f"Stable up to eps_bar: {res.stability.short}" in text


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_in_one_step_is_not_checked_and_says_so(name):
    res = MODELS[name].array(frame(), eps_bar=0.2).fit(steps=1)
    text = " ".join(str(res.summary()).split())
    assert "Stable up to eps_bar: not checked" in text
    assert "the fit has one step, and second steps are compared" in text


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("eps_bar", [0.05, 0.2, "auto"])
def test_reading_results_searches_nothing(name, eps_bar, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        res = MODELS[name].array(frame(), eps_bar=eps_bar).fit()

    def refuse(*args, **kwargs):
        raise AssertionError("a search was made")

    for module in ("rrmstats.core.search", "rrmstats.core.steps"):
        for name in ("global_minimum", "global_minima"):
            monkeypatch.setattr(f"{module}.{name}", refuse)
    assert str(res.summary()) and res.summary2() and res._repr_html_()
    assert res.stability is not None


def test_many_labels_can_be_checked():
    endog, exog = logistic_labels(np.random.default_rng(0), 1000, [0.0, 1.0])
    found = RRMLogit(endog, exog, 0.02).fit().stability
    assert found.stable
    assert found.largest > 0.4


@pytest.mark.parametrize("name", MODELS)
def test_the_check_can_be_left_out(name):
    res = MODELS[name].array(frame(), eps_bar=0.2).fit(stability=False)
    assert res.stability.largest is None
    assert "Stable up to eps_bar: not checked" in " ".join(str(res.summary()).split())


def test_results_without_data_keep_the_check():
    res = rrmstats.ols("y ~ x1 + x2 + x3", HBK, 0.2).fit()
    res.remove_data()
    assert res.stability.stable


def test_too_few_rows_for_a_larger_bound():
    rng = np.random.default_rng(0)
    with pytest.warns(ModelWarning, match="rows per parameter"):
        res = RRMOLS(rng.standard_normal(8), rng.standard_normal((8, 4)), 0.25).fit()
    assert res.stability.largest is None
    assert res.stability.short == "not checked"
    assert "too few rows" in res.stability.message


def labels():
    rng = np.random.default_rng(0)
    exog = np.c_[np.ones(200), rng.standard_normal(200)]
    return (rng.random(200) < 1 / (1 + np.exp(-1.5 * exog[:, 1]))).astype(float), exog


@pytest.mark.parametrize(
    "make",
    [
        lambda eps_bar: RRMGLM(
            *labels(), eps_bar, family=sm.families.Binomial(sm.families.links.Probit())
        ),
        lambda eps_bar: rrmstats.robustify(sm.Probit(*labels()), eps_bar),
        lambda eps_bar: rrmstats.custom(
            lambda theta: (labels()[0] - theta[0]) ** 2, [0.5], eps_bar
        ),
    ],
    ids=["glm", "robustify", "custom"],
)
def test_models_without_a_second_step_have_neither_auto_nor_the_check(make):
    with pytest.raises(NotImplementedError, match=r"eps_bar='auto' does not work here: .*"):
        make("auto").fit(steps=1)
    res = make(0.05).fit(steps=1)
    assert res.stability.short == "not checked"
    assert "were not compared" in res.stability.message
    assert "steps=2" not in str(res.summary())
    assert make(0.05).path([0.0, 0.05], steps=1).choice is None


@pytest.mark.parametrize("name", ["freq_weights", "groups"])
def test_a_series_in_another_order_is_refused(name):
    data = frame()
    values = pd.Series(np.arange(len(data)) % 8 + 1.0, index=data.index)
    with pytest.raises(ValueError, match=f"{name} has the labels of the data in another order"):
        MODELS["ols"].array(data, eps_bar=0.2, **{name: values[::-1]})


def test_a_fit_that_did_not_converge_is_not_called_stable():
    endog, exog = leverage_shift(np.random.default_rng(0))
    with pytest.warns(ConvergenceWarning):
        res = RRMOLS(endog, exog, 0.3).fit(maxiter=1)
    assert res.stability.short == "not checked"
    assert "did not converge" in res.stability.message


def test_large_data_are_sampled(monkeypatch):
    endog, exog = leverage_shift(np.random.default_rng(0), 1000, share=0.2)
    data = pd.DataFrame(exog, columns=list("abcd"), index=[f"r{i}" for i in range(1000)])
    data["y"] = endog
    monkeypatch.setattr(steps, "MOST_ROWS", 400)
    monkeypatch.setattr("rrmstats.core.blocks.DECIDING_ROWS", 400)
    with pytest.warns(UnstableWarning):
        found = rrmstats.ols("y ~ b + c + d", data, 0.05).fit().stability
    bad = {f"r{i}" for i in range(200)}
    assert len(bad & set(found.gained)) / len(found.gained) > 0.9
    assert 60 < len(found.gained) < 110
    chosen = rrmstats.ols("y ~ b + c + d", data, "auto").fit()
    assert 0.2 < chosen.eps_bar < 0.3
    assert chosen.nobs == 1000


@pytest.mark.parametrize(
    ("what", "eps_bar"), [("gaussian", 0.3), ("gaussian", "auto"), ("counts", 0.3)]
)
def test_many_rows_are_explained_once(monkeypatch, what, eps_bar):
    monkeypatch.setattr(steps, "MOST_ROWS", 400)
    monkeypatch.setattr("rrmstats.core.blocks.DECIDING_ROWS", 400)
    rng = np.random.default_rng(0)
    if what == "gaussian":
        name, model, data = (
            "losses.gaussian_rows.best_explanation",
            RRMOLS,
            leverage_shift(rng, 900, share=0.1),
        )
    else:
        name, model = "laws.explain.all_fits", RRMPoisson
        exog = sm.add_constant(rng.standard_normal(900))
        endog = rng.poisson(np.exp(exog @ [1.0, 0.3])).astype(float)
        endog[:90] += 40.0
        data = endog, exog
    module, function = f"rrmstats.{name}".rsplit(".", 1)
    explain, asked = getattr(import_module(module), function), []

    def counted(rows, *args, **options):
        asked.append(len(rows.counts if what == "gaussian" else rows.mass))
        return explain(rows, *args, **options)

    monkeypatch.setattr(f"{module}.{function}", counted)
    res = model(*data, eps_bar).fit()
    assert asked == [400]
    assert res.stability.stable
    assert res.eps_hat == pytest.approx(0.1, abs=0.02)
    assert len(res.prob_bad) == 900


def test_a_majority_and_few_rows_warn():
    endog, exog = one_sided_outliers(np.random.default_rng(0), 100)
    with pytest.warns(ModelWarning, match="eps_bar=0.6 lets the fit leave out a majority"):
        RRMOLS(endog, exog, 0.6).fit(steps=1)
    with pytest.warns(ModelWarning, match=r"nobs / k = 2.5 rows per parameter \(k = 4\)"):
        RRMOLS(endog[:20], np.c_[exog[:20], exog[20:40]][:, [0, 1, 2, 4]], 0.5).fit(steps=1)


@pytest.mark.slow
def test_clean_samples_hardly_ever_warn():
    alarms = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        for seed in range(40):
            sample = one_sided_outliers(np.random.default_rng([77, seed]), 100, np.ones(4), 0.0)
            alarms += not RRMOLS(*sample, 0.25).fit().stability.stable
    assert alarms <= 2
