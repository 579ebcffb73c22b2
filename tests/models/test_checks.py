"""Bad arguments, bad data and missing rows, for every model and both interfaces."""

import numpy as np
import pandas as pd
import pytest
from model_table import LABELS, RESPONSES, N, frame
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import MissingDataError


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_rows_are_dropped_with_their_weights(build, weighted):
    data, counts = frame(), pd.Series(1.0 + np.arange(N) % 3, index=LABELS)
    gone = ["row 3", "row 20", "row 79"]
    data.loc[gone[:2], "x"] = data.loc[gone[2], RESPONSES] = np.nan
    left = data.drop(gone)

    def fitted(rows, weights):
        given = {"freq_weights": weights} if weighted else {}
        return build(rows, eps_bar=0.2, missing="drop", **given).fit(steps=1)

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
    res = build(data, eps_bar=0.2, missing="drop", freq_weights=counts).fit(steps=1)
    expected = build(data[kept], eps_bar=0.2, freq_weights=counts[kept]).fit(steps=1)
    assert_allclose(res.params, expected.params, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"eps_bar": None}, TypeError, "got None; leave it out for the automatic choice, or give"),
        ({"eps_bar": "0.3a"}, TypeError, "must be a number in .* got '0.3a'"),
        ({"eps_bar": 1.0}, ValueError, r"must be in \[0, 1\), got 1"),
        ({"eps_bar": -0.1}, ValueError, r"must be in \[0, 1\), got -0.1"),
        ({"eps_bar": np.nan}, ValueError, r"must be in \[0, 1\), got nan"),
        (
            {"eps_bar": 0.2, "epsbar": 0.3},
            TypeError,
            "(unknown keywords: |unexpected keyword argument ')epsbar",
        ),
        (
            {"eps_bar": 0.2, "freq_weights": -np.ones(N)},
            ValueError,
            "weights must not be negative",
        ),
        (
            {"eps_bar": 0.2, "freq_weights": np.zeros(N)},
            ValueError,
            "weights must .* not all zero",
        ),
        (
            {"eps_bar": 0.2, "freq_weights": np.ones(7)},
            ValueError,
            r"freq_weights must have one number per row, shape \(80,\), got \(7,\)",
        ),
        ({"eps_bar": 0.985}, ValueError, r"eps_bar=0.985 leaves .* = 1.2 observations for"),
    ],
)
def test_bad_arguments(build, given, error, message):
    with pytest.raises(error, match=message):
        build(frame(), **given).fit(steps=1)


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
        (frame().iloc[:0], "no rows; give|is empty: no rows, or none without"),
        (
            frame().groupby("label").head(1),
            "observations for .* lower|n_components=2 is too large: .* must be smaller",
        ),
    ],
    ids=["text", "nan", "inf", "-inf", "empty", "too few"],
)
def test_bad_data(entry, data, message):
    with pytest.raises((ValueError, MissingDataError), match=message):
        entry.array(data, eps_bar=0.2).fit(steps=1)


@pytest.mark.parametrize("data", [frame().iloc[:0], frame().assign(x=np.nan)])
def test_no_rows_left_for_a_formula(entry, data):
    with pytest.raises(ValueError, match=r"no rows; give|is empty: no rows, or none without"):
        entry.formula(data, eps_bar=0.2).fit(steps=1)
