"""What every model promises its user, over one table of models and two interfaces."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from model_table import BAD, LABELS, MODELS, VARIABLES, N, clone, eigen, frame
from numpy.testing import assert_allclose, assert_array_equal

import rrmstats
from replication.samples import extreme_flips, logistic_labels, random_flips
from rrmstats import RRMPCA, RRMCov


@pytest.fixture
def res(build):
    return build(frame(), eps_bar=0.3).fit(steps=1)


def test_no_contamination_is_the_classical_estimate(entry, build):
    res = build(frame(), eps_bar=0.0).fit(steps=1)
    assert_allclose(res.params, entry.classical(frame()), rtol=1e-8, atol=1e-9)
    assert_array_equal(res.weights, np.full(N, 1 / N))
    assert res.converged


def test_no_contamination_gives_the_classical_axes():
    res = RRMPCA(frame()[VARIABLES], 2, 0.0).fit(steps=1)
    assert_allclose(np.abs(eigen(frame())[1].T @ res.loadings), np.eye(2), atol=1e-8)
    assert_allclose(res.mean, frame()[VARIABLES].mean(), atol=1e-12)


def test_wrong_rows_lose_their_weight(res):
    assert_allclose(res.weights.sum(), 1)
    assert res.weights[BAD].max() < 0.02 / N
    assert_allclose(res.n_eff, 0.7 * N)
    assert_allclose(res.risk, res.weights @ res.losses, rtol=1e-9)
    assert_allclose(
        res.weights.iloc[20] / res.weights.iloc[30],
        np.exp((res.losses.iloc[30] - res.losses.iloc[20]) / res.lambda_),
        rtol=1e-6,
    )


def test_both_interfaces_agree(entry):
    array, formula = (
        make(frame(), eps_bar=0.3).fit(steps=1) for make in (entry.array, entry.formula)
    )
    assert_allclose(array.params, formula.params, rtol=1e-9)
    assert_allclose(array.weights, formula.weights, rtol=1e-7)


def test_labels_survive(entry, res):
    for name in entry.rows:
        assert list(getattr(res, name).index) == LABELS, name
    for name, expected in entry.columns.items():
        assert list(getattr(res, name).index)[-len(expected) :] == expected, name


def test_arrays_give_arrays(entry):
    data = frame()
    model = entry.array(data, eps_bar=0.3)
    plain = clone(model).fit(steps=1)
    labelled = model.fit(steps=1)
    for name in [*entry.rows, *entry.columns]:
        values = getattr(plain, name)
        assert type(values) is np.ndarray, name
        assert_allclose(values, getattr(labelled, name), rtol=1e-9)


def test_a_row_of_weight_two_is_the_row_twice(build):
    counts = 1 + np.arange(N) % 3
    twice = frame().iloc[np.repeat(np.arange(N), counts)]
    weighted = build(frame(), eps_bar=0.2, freq_weights=counts).fit(steps=1)
    repeated = build(twice, eps_bar=0.2).fit(steps=1)
    assert_allclose(weighted.params, repeated.params, rtol=1e-6)
    for name in ("n_eff", "n_kish", "risk", "lambda_"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-6)


def test_fit_writes_nothing_on_the_model(build):
    model = build(frame(), eps_bar=0.3)

    def state():
        kept = vars(model).keys() - {"data", "_formula_design"}  # numpy cannot be pickled
        return {name: pickle.dumps(getattr(model, name)) for name in kept}

    before = state()
    first = model.fit(steps=1)
    model.fit(n_starts=0, rng=3, steps=1)
    assert state() == before
    assert_array_equal(model.fit(steps=1).params, first.params)


def test_clones_keep_eps_bar_and_options(entry):
    for options in entry.options:
        model = entry.array(frame(), eps_bar=0.25, freq_weights=1.0 + np.arange(N) % 2, **options)
        again = clone(model)
        assert again.eps_bar == 0.25
        for name, value in options.items():
            assert np.all(getattr(again, name) == value)
        assert_allclose(again.fit(steps=1).params, model.fit(steps=1).params, rtol=1e-9)


@pytest.mark.parametrize("name", ["logit", "pca"])
def test_options_matter(name):
    entry = MODELS[name]
    fits = [
        entry.array(frame(), eps_bar=0.25, **options).fit(steps=1) for options in entry.options
    ]
    for i, first in enumerate(fits):
        for second in fits[:i]:
            assert len(first.params) != len(second.params) or not np.allclose(
                first.params, second.params, rtol=1e-4
            )


def test_pickle(res):
    again = pickle.loads(pickle.dumps(res))
    pd.testing.assert_series_equal(again.params, res.params)
    pd.testing.assert_series_equal(again.weights, res.weights)
    if hasattr(res, "transform"):
        pd.testing.assert_frame_equal(again.transform(frame()), res.scores)
    assert again.eps_bar == res.eps_bar
    assert "Smallest weights" in str(again.summary())


@pytest.mark.parametrize("accelerate", [True, False])
def test_descent_from_uniform_weights_alone(entry, accelerate):
    model = entry.array(frame(), eps_bar=0.3)
    alone = model.fit(n_starts=0, accelerate=accelerate, steps=1)
    assert alone.converged
    assert len(alone.starts) == 1
    assert alone.risk >= model.fit(steps=1).risk - 1e-9
    assert (alone.trace.risk.diff().dropna() <= 1e-10).all()
    kinds = set(alone.trace.step[1:])
    assert kinds == {"algorithm 1"} if not accelerate else "newton" in kinds


def test_summary(res):
    text = str(res.summary())
    for label, value in (
        ("eps_bar:", "0.3"),
        ("lambda:", f"{res.lambda_:.5g}"),
        ("Risk:", f"{res.risk:.5g}"),
        ("No. Observations:", str(N)),
        ("Converged:", "yes"),
    ):
        line = next(line for line in text.splitlines() if label in line)
        assert value in line.split(label)[1].split(), line
    for label in res.weight_table(5).index:
        assert label in text
    for name in ("x", "z"):
        assert any(line.split()[:1] == [name] for line in text.splitlines())
    assert ("nan" in text) == (not getattr(res, "identified", True))


@pytest.mark.parametrize("cls", [RRMPCA, RRMCov])
def test_rows_very_far_out(cls):
    data, options = frame()[VARIABLES], {"n_components": 1} if cls is RRMPCA else {}
    place, fits = 1 + np.random.default_rng(0).random((8, 3)), []
    for distance in (1e4, 1e8, 1e30):
        data.loc[BAD] = distance * place
        fits.append(cls(data, eps_bar=0.3, **options).fit(steps=1))
        assert fits[-1].weights[BAD].sum() == 0
        assert_allclose(fits[-1].params, fits[0].params, rtol=1e-6)
    data.loc[BAD[0]] = 1e150
    with pytest.raises(ValueError, match=r"1 rows, the first of them row 0, .*too far to compute"):
        cls(data, eps_bar=0.3, **options).fit(steps=1)


@pytest.mark.parametrize("eps_bar", [0.1, 0.3])
@pytest.mark.parametrize("dirty", [False, True])
def test_one_model_in_two_classes_has_one_answer(eps_bar, dirty):
    """A generalized linear model with Gaussian responses is a linear regression."""
    data = frame()
    if dirty:
        data.loc[BAD, "y"] += 15
    exog = sm.add_constant(data[["x", "z"]])
    plain = rrmstats.RRMOLS(data.y, exog, eps_bar).fit()
    general = rrmstats.RRMGLM(data.y, exog, eps_bar, family=sm.families.Gaussian()).fit()
    for name in ("params", "bse", "eps_hat", "eps_hat_se", "prob_bad", "scale"):
        assert_allclose(getattr(general, name), getattr(plain, name), rtol=1e-6, atol=1e-6)
    assert (general.outliers() == plain.outliers()).all()


@pytest.mark.parametrize("eps_bar", [0.1, 0.2])
@pytest.mark.parametrize(
    ("draw", "explanation"),
    [
        (logistic_labels, "none"),
        (partial(random_flips, share=0.05), "label noise"),
        (partial(extreme_flips, share=0.05), "unlikely labels"),
    ],
)
def test_labels_in_two_classes_have_one_answer(eps_bar, draw, explanation):
    """A binomial model of labels 0 and 1 with the logit link is a logistic regression.

    So is statsmodels' Logit.

    Their first steps have other losses; the explanations they lead to are the same.
    """
    truth = (0.0, 2.5, -2.5, 2.5) if explanation == "label noise" else (0.0, 1.0, -0.5)
    endog, exog = draw(np.random.default_rng(5), 1000, truth)
    plain = rrmstats.RRMLogit(endog, exog, eps_bar).fit()
    general = rrmstats.RRMGLM(endog, exog, eps_bar, family=sm.families.Binomial()).fit()
    others = [general]
    if plain.first_step.identified:  # without a penalty the other first step is not finite
        others.append(rrmstats.robustify(sm.Logit(endog, exog), eps_bar).fit())
    assert np.abs(plain.first_step.params - general.first_step.params).max() > 1e-4
    for other in others:
        assert plain.explanation == other.explanation == explanation
        for name in ("params", "bse", "eps_hat", "eps_hat_se", "prob_bad", "weights"):
            assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-6, atol=1e-6)
        assert_allclose(other.conf_int(), plain.conf_int(), rtol=1e-6, atol=1e-6)
        assert (other.outliers() == plain.outliers()).all()
        assert_allclose(other.explanations.bic, plain.explanations.bic, rtol=1e-6, atol=1e-6)
        assert other.converged
    data = pd.DataFrame(exog[:, 1:]).add_prefix("x").assign(y=endog)
    formula = "y ~ " + " + ".join(data.columns[:-1])
    named = rrmstats.glm(formula, data, eps_bar, family=sm.families.Binomial()).fit()
    assert_allclose(named.params, plain.params, rtol=1e-6)
