"""Right-hand cells of *Coming from* and *Guides* run; "the same" runs the cell on its left."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import rrmstats
from rrmstats import sklearn

FOLDER = Path(__file__).parents[2] / "docs" / "coming_from"
CODE = re.compile(r"`([^`]+)`")


def cells(page):
    """Return the code of the right-hand cells of the table at the top of a page."""
    top = (FOLDER / page).read_text(encoding="utf-8").split("What differs:")[0]
    lines = [line for line in top.splitlines() if line.startswith("| ")]
    rows = [[cell.replace(r"\|", "|") for cell in line.strip("| ").split(" | ")] for line in lines]
    found = [left if right.startswith("the same") else right for left, right in rows[1:]]
    return [code for cell in found for code in CODE.findall(cell)]


PAGES = [
    *sorted(path.name for path in FOLDER.glob("*.md") if path.name != "index.md"),
    "../guides.md",
]
CALLS = [(page, code) for page in PAGES for code in cells(page)]


@pytest.fixture(scope="module")
def names():
    """Return the names of the tables, by page: data, and results of each page's model."""
    rng = np.random.default_rng(0)
    n = 120
    columns = {name: rng.standard_normal(n) for name in ("x", "x2", "x3")}
    df = pd.DataFrame(columns | {"w": rng.uniform(0.5, 2, n), "time": rng.uniform(1, 3, n)})
    df["often"], df["firm"] = rng.integers(1, 4, n), np.arange(n) // 6
    df["y"] = 1 + 2 * df["x"] + rng.standard_normal(n) / np.sqrt(df["w"])
    df.loc[:5, "y"] -= 15
    df["label"] = (rng.random(n) < 1 / (1 + np.exp(-df["x"]))).astype(int)
    df["count"] = rng.poisson(df["time"] * np.exp(0.5 + 0.4 * df["x"]))
    df["s"] = rng.binomial(20, 1 / (1 + np.exp(-df["x"])))
    df["f"] = 20 - df["s"]
    data = df[["x", "x2", "x3"]]
    shared = {name: getattr(sklearn, name) for name in sklearn.__all__} | {
        **{"np": np, "sm": sm, "smf": smf, "rrmstats": rrmstats, "df": df, "new": df[:3]},
        **{"endog": df["y"], "exog": sm.add_constant(df[["x"]])},
        **{"X": data, "y": df["y"], "label": df["label"]},
        **{"cov": rrmstats.RRMCov(data).fit(), "pca": rrmstats.RRMPCA(data, 2).fit()},
        "f": lambda x, a, b: a + b * x,
        "counts": rrmstats.poisson("count ~ x", df).fit(),
        "model": sklearn.RRMRegressor().fit(data, df["y"]),
    }
    line = {
        "res": rrmstats.ols("y ~ x", df).fit(),
        "small": rrmstats.ols("y ~ 1", df).fit(stability=False),
    }
    labels = {
        "res": rrmstats.logit("label ~ x", df).fit(),
        "small": rrmstats.logit("label ~ 1", df).fit(),
    }
    return {page: shared | (labels if page == "glm.md" else line) for page in PAGES}


@pytest.mark.parametrize(("page", "code"), CALLS)
@pytest.mark.filterwarnings("ignore::rrmstats.UnstableWarning")
def test_the_cell_runs(page, code, names):
    assert eval(code, names[page]) is not None
    plt.close("all")


def test_every_page_has_a_table():
    assert all(len(cells(page)) > 8 for page in PAGES)
