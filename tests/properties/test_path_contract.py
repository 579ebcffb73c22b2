"""What the path of every model promises, over one table of models and two interfaces."""

import pickle

import numpy as np
import pytest
from model_table import BAD, LABELS, N, clone, frame
from numpy.testing import assert_allclose, assert_array_equal

GRID = [0.0, 0.06, 0.14, 0.3]


@pytest.fixture(scope="module")
def model(build):
    return build(frame(), eps_bar=0.2)


@pytest.fixture(scope="module")
def path(model):
    return model.path(GRID, steps=1)


def test_a_value_of_the_path_is_the_fit(build, path):
    for eps_bar in GRID:
        fit, found = build(frame(), eps_bar=eps_bar).fit(steps=1), path.at(eps_bar)
        assert_allclose(found.risk, fit.risk, rtol=1e-8)
        assert_allclose(found.params, fit.params, rtol=1e-8, atol=1e-8)
        assert_allclose(found.weights, fit.weights, atol=1e-8)
        assert_allclose(found.bse, fit.bse, rtol=1e-6)
        assert list(found.params.index) == list(fit.params.index)
        assert found.eps_bar == found.model.eps_bar == eps_bar


def test_the_risk_falls(path):
    assert (np.diff([each.risk for each in path.results]) < 0).all()


def test_the_second_step_is_that_of_the_fit(entry):
    path = entry.array(frame(), eps_bar=0.2).path([0.14, 0.3])
    assert path.steps == 2
    for eps_bar in (0.14, 0.3):
        fit = entry.array(frame(), eps_bar=eps_bar).fit()
        assert_allclose(path.at(eps_bar).params, fit.params, rtol=1e-5, atol=1e-7)
        assert_allclose(path.at(eps_bar).first_step.risk, fit.first_step.risk, rtol=1e-8)


def test_tables_by_row_have_the_labels_of_the_data(path):
    for name in ("weights", "residuals", "flags"):
        table = getattr(path, name)
        assert list(table.index) == LABELS
        assert_array_equal(table.columns, GRID)
    for eps_bar in GRID:
        res = path.at(eps_bar)
        assert_array_equal(path.weights[eps_bar], res.weights)
        assert_array_equal(path.flags[eps_bar], res.outliers())
        assert_array_equal(path.residuals[eps_bar], res.weight_table(None).distance[LABELS])
    assert path.flags.dtypes.eq(bool).all()


def test_wrong_rows_leave(path):
    gone = path.leaves.loc[BAD, "below_1pct"]
    assert (gone <= 0.3).all()
    half, nearly_all = (path.leaves[name].fillna(1) for name in ("below_half", "below_1pct"))
    assert (half <= nearly_all).all()
    kept = path.weights[0.3] * N > 0.5
    assert path.leaves.loc[kept, "below_half"].isna().all()


def test_the_frame_holds_the_estimates(path):
    table = path.frame
    for eps_bar in GRID:
        res, part = path.at(eps_bar), table[table.eps_bar == eps_bar].set_index("term")
        names = list(res.model.data.param_names)
        assert_array_equal(part.loc[names, "estimate"], res.params)
        assert_array_equal(part.loc[names, "std_err"], res.bse)
        assert_array_equal(part.loc[names, ["lower", "upper"]], res.conf_int())
        for name in ("risk", "lambda_", "n_kish", "eps_hat"):
            assert_array_equal(part[name], np.full(len(part), getattr(res, name)))
        assert (part["n_flagged"] == res.outliers().sum()).all()


def test_the_path_writes_nothing_on_the_model(model, path):
    assert model.eps_bar == 0.2
    assert path.model.eps_bar == 0.2


def test_arrays_have_positions_for_labels(entry):
    path = clone(entry.array(frame(), eps_bar=0.2)).path([0.1, 0.3], steps=1)
    assert_array_equal(path.weights.index, np.arange(N))
    assert type(path.at(0.3).weights) is np.ndarray


def test_a_row_of_weight_two_is_the_row_twice(entry):
    counts = 1 + np.arange(N) % 2
    twice = frame().iloc[np.repeat(np.arange(N), counts)]
    weighted = entry.array(frame(), eps_bar=0.2, freq_weights=counts).path([0.1, 0.3], steps=1)
    repeated = entry.array(twice, eps_bar=0.2).path([0.1, 0.3], steps=1)
    for eps_bar in (0.1, 0.3):
        one, two = weighted.at(eps_bar), repeated.at(eps_bar)
        assert_allclose(one.risk, two.risk, rtol=1e-6)
        assert_allclose(one.params, two.params, rtol=1e-5, atol=1e-7)
    assert_array_equal(
        weighted.leaves["below_half"].to_numpy()[np.repeat(np.arange(N), counts)],
        repeated.leaves["below_half"],
    )


def test_pickle(path):
    text = str(path.summary())
    again = pickle.loads(pickle.dumps(path))
    assert_array_equal(again.frame["estimate"], path.frame["estimate"])
    assert_array_equal(again.weights, path.weights)
    assert str(again.summary()) == text
