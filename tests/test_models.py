"""What every model promises its user, over one table of models and two interfaces."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from statsmodels.tools.sm_exceptions import MissingDataError

import rrmstats
from rrmstats import RRMOLS, RRMPCA, RRMCov, RRMLogit

N = 80
LABELS = [f"row {i}" for i in range(N)]
BAD = LABELS[:8]
VARIABLES = ["x", "z", "y"]


def frame():
    """Return a frame with labelled rows, whose first eight are wrong in y and in the label."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame(rng.standard_normal((N, 2)), index=LABELS, columns=["x", "z"])
    data["y"] = 1 + 2 * data.x - data.z + 0.3 * rng.standard_normal(N)
    data["label"] = (rng.random(N) < 1 / (1 + np.exp(-2 * data.x))).astype(float)
    data.loc[BAD, ["x", "y", "label"]] = np.c_[3 + rng.random(8), -9 + rng.random(8), np.zeros(8)]
    return data


def regression(cls, response, data, **kwargs):
    exog = sm.add_constant(data[["x", "z"]], has_constant="add")
    return cls(data[response], exog, **kwargs)


def multivariate(cls, data, **kwargs):
    return cls(data[VARIABLES], **kwargs)


def clone(model):
    arrays = [values for values in (model.endog, model.exog) if values is not None]
    return type(model)(*arrays, **model._get_init_kwds())


def eigen(data):
    values, vectors = np.linalg.eigh(np.cov(data[VARIABLES].T, bias=True))
    return values[::-1][:2], vectors[:, ::-1][:, :2]


def logit_reference(data):
    exog = sm.add_constant(data[["x", "z"]])
    return sm.Logit(data.label, exog).fit(disp=0, method="newton", tol=1e-14).params


MODELS = {
    "ols": SimpleNamespace(
        array=partial(regression, RRMOLS, "y"),
        formula=partial(rrmstats.ols, "y ~ x + z"),
        classical=lambda data: sm.OLS(data.y, sm.add_constant(data[["x", "z"]])).fit().params,
        rows=["weights", "losses", "fittedvalues", "resid"],
        columns={"params": ["x", "z"]},
        options=[{}],
    ),
    "logit": SimpleNamespace(
        array=partial(regression, RRMLogit, "label"),
        formula=partial(rrmstats.logit, "label ~ x + z"),
        classical=logit_reference,
        rows=["weights", "losses", "fittedvalues"],
        columns={"params": ["x", "z"], "raw_params": ["x", "z"]},
        options=[{"alpha": 0.02}, {"alpha": 0.0}, {"penalty": "l2"}],
    ),
    "pca": SimpleNamespace(
        array=partial(multivariate, RRMPCA, n_components=2),
        formula=partial(rrmstats.pca, "~ x + z + y", n_components=2),
        classical=lambda data: eigen(data)[0],
        rows=["weights", "losses", "scores", "score_distance", "orthogonal_distance"],
        columns={"mean": VARIABLES, "loadings": VARIABLES, "params": ["comp_1", "comp_2"]},
        options=[{"demean": False}, {"standardize": True}, {"n_components": 1}],
    ),
    "cov": SimpleNamespace(
        array=partial(multivariate, RRMCov),
        formula=partial(rrmstats.cov, "~ x + z + y"),
        classical=lambda data: np.r_[
            data[VARIABLES].mean(),
            np.cov(data[VARIABLES].T, bias=True)[np.triu_indices(3)],
        ],
        rows=["weights", "losses"],
        columns={name: VARIABLES for name in ("mean", "cov", "corr", "raw_cov", "precision")},
        options=[{}],
    ),
}


@pytest.fixture(params=MODELS)
def entry(request):
    return MODELS[request.param]


@pytest.fixture(params=["array", "formula"])
def build(entry, request):
    """Return a function of a frame and keywords that makes the model by one interface."""
    return getattr(entry, request.param)


@pytest.fixture
def res(build):
    return build(frame(), eps_bar=0.3).fit()


def test_no_contamination_is_the_classical_estimate(entry, build):
    res = build(frame(), eps_bar=0.0).fit()
    assert_allclose(res.params, entry.classical(frame()), rtol=1e-8, atol=1e-9)
    assert_array_equal(res.weights, np.full(N, 1 / N))
    assert res.converged


def test_no_contamination_gives_the_classical_axes():
    res = RRMPCA(frame()[VARIABLES], 2, 0.0).fit()
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
    array, formula = (make(frame(), eps_bar=0.3).fit() for make in (entry.array, entry.formula))
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
    plain = clone(model).fit()
    labelled = model.fit()
    for name in [*entry.rows, *entry.columns]:
        values = getattr(plain, name)
        assert type(values) is np.ndarray, name
        assert_allclose(values, getattr(labelled, name), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_rows_are_dropped_with_their_weights(build, weighted):
    data, counts = frame(), pd.Series(1.0 + np.arange(N) % 3, index=LABELS)
    gone = ["row 3", "row 20", "row 79"]
    data.loc[gone[:2], "x"] = data.loc[gone[2], ["y", "label"]] = np.nan
    left = data.drop(gone)

    def fitted(rows, weights):
        given = {"freq_weights": weights} if weighted else {}
        return build(rows, eps_bar=0.2, missing="drop", **given).fit()

    res, expected = fitted(data, counts), fitted(left, counts.drop(gone))
    assert list(res.weights.index) == list(left.index)
    assert_allclose(res.params, expected.params, rtol=1e-9)
    assert_allclose(res.weights, expected.weights, rtol=1e-7)
    if weighted:
        assert_allclose(fitted(data, counts.to_numpy()).params, expected.params, rtol=1e-9)


def test_repeated_labels_do_not_confuse_missing_rows(build):
    data, counts = frame(), 1.0 + np.arange(N) % 3
    data.index = [f"pair {i // 2}" for i in range(N)]
    data.iloc[5, :] = np.nan
    kept = np.arange(N) != 5
    res = build(data, eps_bar=0.2, missing="drop", freq_weights=counts).fit()
    expected = build(data[kept], eps_bar=0.2, freq_weights=counts[kept]).fit()
    assert_allclose(res.params, expected.params, rtol=1e-9)


def test_a_row_of_weight_two_is_the_row_twice(build):
    counts = 1 + np.arange(N) % 3
    twice = frame().iloc[np.repeat(np.arange(N), counts)]
    weighted = build(frame(), eps_bar=0.2, freq_weights=counts).fit()
    repeated = build(twice, eps_bar=0.2).fit()
    assert_allclose(weighted.params, repeated.params, rtol=1e-6)
    for name in ("n_eff", "n_kish", "risk", "lambda_"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-6)


def test_fit_writes_nothing_on_the_model(build):
    model = build(frame(), eps_bar=0.3)

    def state():
        kept = vars(model).keys() - {"data", "design_info"}  # patsy's cannot be pickled
        return {name: pickle.dumps(getattr(model, name)) for name in kept}

    before = state()
    first = model.fit()
    model.fit(n_starts=0, rng=3)
    assert state() == before
    assert_array_equal(model.fit().params, first.params)


def test_clones_keep_eps_bar_and_options(entry):
    for options in entry.options:
        model = entry.array(frame(), eps_bar=0.25, freq_weights=1.0 + np.arange(N) % 2, **options)
        again = clone(model)
        assert again.eps_bar == 0.25
        for name, value in options.items():
            assert getattr(again, name) == value
        assert_allclose(again.fit().params, model.fit().params, rtol=1e-9)


def test_options_matter(entry):
    fits = [entry.array(frame(), eps_bar=0.25, **options).fit() for options in entry.options]
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
    alone = model.fit(n_starts=0, accelerate=accelerate)
    assert alone.converged
    assert len(alone.starts) == 1
    assert alone.risk >= model.fit().risk - 1e-9
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
    assert "nan" not in text


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, TypeError, "eps_bar is required.*eps_bar=0.2"),
        ({"eps_bar": None}, TypeError, "eps_bar is required"),
        ({"eps_bar": "0.3a"}, TypeError, "must be a number in .* got '0.3a'"),
        ({"eps_bar": 1.0}, ValueError, r"must be in \[0, 1\), got 1"),
        ({"eps_bar": -0.1}, ValueError, r"must be in \[0, 1\), got -0.1"),
        ({"eps_bar": np.nan}, ValueError, r"must be in \[0, 1\), got nan"),
        ({"eps_bar": 0.2, "epsbar": 0.3}, TypeError, "unknown keywords: epsbar"),
        ({"eps_bar": 0.2, "freq_weights": -np.ones(N)}, ValueError, "weights must not be negative"),
        ({"eps_bar": 0.2, "freq_weights": np.zeros(N)}, ValueError, "weights must .* not all zero"),
        ({"eps_bar": 0.2, "freq_weights": np.ones(7)}, ValueError, r"freq_weights must have one number per row, shape \(80,\), got \(7,\)"),
        ({"eps_bar": 0.985}, ValueError, r"eps_bar=0.985 leaves .* = 1.2 observations for"),
    ],
)
def test_bad_arguments(build, given, error, message):
    with pytest.raises(error, match=message):
        build(frame(), **given).fit()


def spoiled(value):
    data = frame().astype(object) if isinstance(value, str) else frame()
    data.loc["row 4", ["x", "z"]] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (spoiled("a"), "has non-numeric columns: x, z; convert them, or use a formula"),
        (spoiled(np.nan), "NaN|nan"),
        (spoiled(np.inf), "inf"),
        (spoiled(-np.inf), "inf"),
        (frame().iloc[:0], "(no rows|is empty); give at least"),
        (frame().groupby("label").head(1), "observations for .* lower|n_components=2 is too large: .* must be smaller"),
    ],
    ids=["text", "nan", "inf", "-inf", "empty", "too few"],
)
def test_bad_data(entry, data, message):
    with pytest.raises((ValueError, MissingDataError), match=message):
        entry.array(data, eps_bar=0.2).fit()


@pytest.mark.parametrize("data", [frame().iloc[:0], frame().assign(x=np.nan)])
def test_no_rows_left_for_a_formula(entry, data):
    with pytest.raises(ValueError, match=r"(no rows|is empty).*give at least"):
        entry.formula(data, eps_bar=0.2).fit()


@pytest.mark.parametrize("cls", [RRMPCA, RRMCov])
def test_rows_very_far_out(cls):
    data, options = frame()[VARIABLES], {"n_components": 1} if cls is RRMPCA else {}
    place, fits = 1 + np.random.default_rng(0).random((8, 3)), []
    for distance in (1e4, 1e8, 1e30):
        data.loc[BAD] = distance * place
        fits.append(cls(data, eps_bar=0.3, **options).fit())
        assert fits[-1].weights[BAD].sum() == 0
        assert_allclose(fits[-1].params, fits[0].params, rtol=1e-6)
    data.loc[BAD[0]] = 1e150
    with pytest.raises(ValueError, match=r"1 rows, the first of them row 0, .*too far to compute"):
        cls(data, eps_bar=0.3, **options).fit()
