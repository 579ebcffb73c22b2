"""Data and arguments that are wrong: an error that says what to do."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from statsmodels.tools.sm_exceptions import MissingDataError

import rrmstats
from rrmstats import RRMOLS

from .small_fit import ENDOG, EXOG, N, fit, replaced

FRAME = pd.DataFrame({"y": ENDOG, "x": EXOG[:, 1], "z": EXOG[:, 2], "s": ["a", "b"] * (N // 2)})


@pytest.mark.parametrize(
    ("eps_bar", "error", "message"),
    [
        (1.0, ValueError, r"eps_bar must be in \[0, 1\), got 1"),
        (1.2, ValueError, "got 1.2"),
        (-0.1, ValueError, "got -0.1"),
        (np.nan, ValueError, "got nan"),
        ("high", TypeError, r"a number in \[0, 1\) or 'auto', got 'high'"),
        ("0.2", TypeError, r"a number in \[0, 1\) or 'auto', got '0.2'"),
        ([0.2], TypeError, r"got \[0.2\]"),
        (None, TypeError, "got None; leave it out for .* such as eps_bar=0.2"),
    ],
)
def test_eps_bar(eps_bar, error, message):
    with pytest.raises(error, match=message):
        RRMOLS(ENDOG, EXOG, eps_bar)
    with pytest.raises(error, match=message):
        rrmstats.ols("y ~ x", FRAME, eps_bar)


def test_eps_bar_is_automatic_where_it_is_not_given():
    models = RRMOLS(ENDOG, EXOG), rrmstats.ols("y ~ x", FRAME)
    assert [model.eps_bar for model in models] == ["auto", "auto"]
    assert models[0].fit().choice is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, value)
            for name in ("endog", "exog", "freq_weights")
            for value in (np.nan, np.inf)
        ),
        ("endog", -np.inf),
        ("exog", -np.inf),
    ],
)
def test_not_finite(name, value):
    whole = {"endog": ENDOG, "exog": EXOG, "freq_weights": np.ones(N)}[name]
    bad = {name: replaced(whole, 3, value)}
    with pytest.raises((ValueError, MissingDataError), match=f"{name} contains"):
        fit(**bad)
    if np.isnan(value):
        dropped = np.delete(np.arange(N), 3)
        assert_allclose(
            fit(**bad, missing="drop").params, fit(ENDOG[dropped], EXOG[dropped]).params
        )
        with pytest.raises(MissingDataError, match="NaNs were encountered"):
            fit(**bad, missing="raise")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"eps_bar": 0.95}, r"eps_bar=0.95 leaves .* = 2.5 observations for 3 parameters; lower"),
        ({"endog": ENDOG[:4], "exog": EXOG[:4]}, "= 2.8 observations for 3 parameters"),
        ({"endog": ENDOG[:1], "exog": EXOG[:1, :1]}, "= 0.7 observations for 1 parameters"),
        ({"freq_weights": np.full(N, 0.01)}, "observations for 3 parameters"),
        (
            {"freq_weights": np.r_[99.0, 99.0, np.zeros(N - 2)]},
            "only 2 observations have a positive",
        ),
        ({"freq_weights": np.zeros(N)}, "observations for 3 parameters|not all zero"),
    ],
)
def test_too_few_observations(kwargs, message):
    with pytest.raises(ValueError, match=message):
        fit(**kwargs)


STRINGS = ["a"] * N

TEXT = {
    "endog list": ({"endog": STRINGS}, "endog must be numeric"),
    "endog array": ({"endog": np.array(STRINGS)}, "endog must be numeric"),
    "endog Series": ({"endog": pd.Series(STRINGS)}, "endog must be numeric"),
    "endog of numerals": ({"endog": ENDOG.astype(str)}, "endog must be numeric"),
    "exog array": (
        {"exog": np.array([STRINGS, STRINGS]).T},
        "exog must be numeric, got .* formula",
    ),
    "exog Series": ({"exog": FRAME["s"]}, "exog must be numeric, got .* formula"),
    "exog frame": ({"exog": FRAME[["x", "s"]]}, "exog has non-numeric columns: s; .* formula"),
    "exog categories": (
        {"exog": FRAME[["x", "s"]].astype({"s": "category"})},
        "non-numeric columns: s;",
    ),
    "exog dates": (
        {"exog": pd.DataFrame({"t": pd.date_range("2020", periods=N)})},
        "non-numeric columns: t;",
    ),
    "exog mixed": (
        {"exog": np.array([[1.0, "a"]] * N, dtype=object)},
        "exog must be numeric, got .* formula",
    ),
    "weights": ({"freq_weights": STRINGS}, "freq_weights must be numeric"),
}


@pytest.mark.parametrize(("kwargs", "message"), TEXT.values(), ids=TEXT)
def test_text_where_numbers_belong(kwargs, message):
    with pytest.raises(ValueError, match=message):
        fit(**kwargs)


def test_text_as_endog_of_a_formula():
    with pytest.raises(ValueError, match="variable converted to endog is non-numeric"):
        rrmstats.ols("s ~ x", FRAME, 0.3)


EMPTY = {
    "frame": lambda: rrmstats.ols("y ~ x", FRAME.iloc[:0], 0.3),
    "arrays": lambda: RRMOLS(ENDOG[:0], EXOG[:0], 0.3),
    "Series": lambda: RRMOLS(FRAME.y[:0], FRAME[["x"]][:0], 0.3),
    "no columns": lambda: RRMOLS(ENDOG, EXOG[:, :0], 0.3),
    "all missing": lambda: rrmstats.ols("y ~ x", FRAME.assign(x=np.nan), 0.3),
    "empty subset": lambda: rrmstats.ols("y ~ x", FRAME, 0.3, subset=FRAME.x > 100),
}


@pytest.mark.parametrize("call", EMPTY.values(), ids=EMPTY)
def test_no_data(call):
    with pytest.raises(ValueError, match=r"has no rows|is empty: no rows"):
        call()


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"endog": ENDOG[:-1]}, ValueError, "endog and exog .* different sizes"),
        ({"exog": EXOG[:, :, None]}, ValueError, "exog is not 1d or 2d"),
        ({"exog": None}, ValueError, "exog is required"),
        ({"bogus": 1, "other": 2}, TypeError, "RRMOLS got unknown keywords: bogus, other"),
    ],
)
def test_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        fit(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"start_params": [1.0, 2.0]}, ValueError, "must be 3 numbers, for const, x1, x2, got 2"),
        ({"start_params": 1.0}, ValueError, "must be 3 numbers"),
        ({"start_params": [np.nan] * 3}, ValueError, "finite numbers"),
        ({"n_starts": -1}, ValueError, "n_starts=-1"),
        ({"tol": -1.0}, ValueError, "tol=-1"),
        ({"bogus": 1}, TypeError, "bogus"),
    ],
)
def test_arguments_of_fit(kwargs, error, message):
    with pytest.raises(error, match=message):
        RRMOLS(ENDOG, EXOG, 0.3).fit(**kwargs, steps=1)


def test_columns_and_responses_beyond_computing():
    with pytest.raises(ValueError, match=r"column 1 of the design .* fix or drop the rows"):
        fit(exog=replaced(EXOG, (0, 1), 1e150))
    for unit in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"endog reaches .* in other units"):
            fit(ENDOG * unit)


BAD_ROWS = {
    "negative weight": (
        {"freq_weights": replaced(np.ones(N), 3, -1)},
        "weights must not be negative",
    ),
    "weight -inf": (
        {"freq_weights": replaced(np.ones(N), 3, -np.inf)},
        "weights must not be negative, got -inf",
    ),
    "length of weights": (
        {"freq_weights": np.ones(3)},
        r"freq_weights must have one number per row, shape \(50,\), got \(3,\)",
    ),
    "two responses": ({"endog": np.c_[ENDOG, ENDOG]}, "endog must .* one column"),
    "complex endog": ({"endog": ENDOG + 1j}, "endog must be numeric"),
    "exog NaN, what to do": ({"exog": replaced(EXOG, 3, np.nan)}, "missing='drop'"),
    "all rows dropped": ({"endog": np.full(N, np.nan), "missing": "drop"}, "no rows"),
}


@pytest.mark.parametrize(("kwargs", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_errors_say_what_is_wrong(kwargs, message):
    with pytest.raises((ValueError, MissingDataError), match=message):
        fit(**kwargs)
