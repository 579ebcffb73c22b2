"""Counts and shares of successes are for `glm`, and `logit` says so."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats import RRMLogit

RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"x": RNG.standard_normal(60), "won": RNG.integers(0, 9, 60)})
DATA["lost"] = 9 - DATA["won"]
DATA["share"] = DATA["won"] / 9
EXOG = sm.add_constant(DATA[["x"]])
GLM = r"use rrmstats.glm\(..., family=sm.families.Binomial\(\)\)"


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("won + lost ~ x", r"got 2 \(won, lost\); for counts of successes and failures "),
        ("won ~ x", r"must be 0 and 1, got \[0. 1. 2. 3. 4.\]; for counts "),
        ("share ~ x", "must be 0 and 1, got .*; for shares of successes "),
    ],
)
def test_formulas_with_counts(formula, message):
    with pytest.raises(ValueError, match=message + GLM):
        rrmstats.logit(formula, DATA, 0.1)


@pytest.mark.parametrize("columns", [["won", "lost"], ["won"], ["share"]])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_arrays_of_counts(columns, kind):
    with pytest.raises(ValueError, match=GLM):
        RRMLogit(kind(DATA[columns]), EXOG, 0.1)


def test_two_other_numbers_are_levels():
    with pytest.raises(ValueError, match=r"for two other levels name the one .* level="):
        RRMLogit(1 + (DATA["won"] > 4), EXOG, 0.1)
    assert rrmstats.logit("won > 4 ~ x", DATA, 0.1).fit(steps=1).converged


def test_what_it_points_to_works():
    res = rrmstats.glm("won + lost ~ x", DATA, 0.1, family=sm.families.Binomial()).fit(steps=1)
    assert res.converged
