"""The guides run from top to bottom, and what their prose says is what their cells find."""

import csv
import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import rrmstats

DOCS = Path(__file__).parents[2] / "docs"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def read(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def run(name):
    """Return what the cells of a page leave behind; no page shows a warning."""
    plt.switch_backend("Agg")
    found, cells = {}, CELL.findall(read(name))
    assert cells
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, cell in enumerate(cells):
            exec(compile(cell, f"{name}.md, cell {number}", "exec"), found)
    plt.close("all")
    return found


def labels(flags):
    return list(flags[flags].index)


def table(text):
    """Return the rows of the first table in a text, as lists of cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def of_stars(**given):
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    return rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2, **given)


TITLE = "Robust Risk Minimization"
SUMMARIES = {
    "groups": lambda: of_stars(groups=np.arange(47) // 4).path([0.0, 0.1, 0.2]),
    "path": lambda: of_stars().path([0.0, 0.1, 0.2]),
    "covariance": lambda: rrmstats.RRMCov(rrmstats.datasets.hbk.load_pandas().exog, 0.2).fit(),
}


@pytest.mark.slow
def test_linear_regression():
    found = run("linear_regression")
    stars = rrmstats.ols("log_light ~ log_te", found["stars"], 0.2).fit()
    assert stars.stability.stable
    # two steps: positive, about a standard error from the first step; four giants for certain
    first = stars.first_step
    assert stars.params["log_te"] - 1.96 * stars.bse["log_te"] > 0
    gap = first.params["log_te"] - stars.params["log_te"]
    assert 0.5 < gap / first.bse["log_te"] < 1.5
    assert labels(found["outliers"]) == [10, 19, 29, 33]
    assert labels(found["strict"]) == [10, 19, 29, 33]
    tests = stars.outlier_test()
    assert list(tests.index[tests["bonf(p)"] < 0.05]) == [10, 19, 29, 33]
    # schools: growing noise, the runner-up one bad row, two flags of the first step
    res = found["res"]
    assert res.explanation == "growing noise" and not res.outliers().any()
    runner_up = res.explanations.iloc[1]
    assert runner_up["explanation"] == "cluster" and runner_up["n_bad"] == 1
    assert runner_up["bic"] - res.explanations["bic"].iloc[0] < 10
    assert (res.bse / found["classical"].bse).between(0.6, 1.2).all()
    assert labels(found["flagged"]) == ["MN", "HI"]
    assert found["schools"].loc["HI", "urban"] == 484
    assert res.stability.stable and res.stability.short == "0.46"
    assert found["larger"].compare(res).pvalue < 0.05


@pytest.mark.slow
def test_logistic_regression():
    found = run("logistic_regression")
    gap = (found["res"].params - found["classical"].params).abs()
    assert (gap < 1.3 * found["res"].bse).all()
    odds = np.exp(found["res"].conf_int().loc["clump_thickness"])
    assert odds[0] > 2 and np.exp(found["res"].params["clump_thickness"]) < 3
    # wrong labels shrink coefficients, one step takes back a part, two steps more of it
    right, wrong, one, two = (fit.params.drop("Intercept") for fit in found["fits"].values())
    assert (wrong < one).all() and (one < right).all()
    assert ((two - right).abs() < (one - right).abs()).all()
    assert found["fits"]["two steps, wrong labels"].explanation.name == "label noise"
    assert len(found["wrong"]) == 34 and len(found["noisy"]) == 683
    suspects = found["fits"]["one step, wrong labels"].weight_table(34).index
    assert len(set(suspects) & set(found["wrong"])) > 17
    assert found["one"].eps_hat < len(found["wrong"]) / len(found["noisy"])
    assert found["one"].identified and not found["more"].identified
    assert found["more"].bse.isna().all()
    assert "only the direction" in " ".join(str(found["more"].summary()).split())
    assert found["agree"] > 0.9


def test_covariance():
    found = run("covariance")
    hbk = rrmstats.RRMCov(found["rows"], 0.25).fit()
    assert labels(hbk.outliers()) == list(range(14))
    classical = rrmstats.RRMCov(found["rows"], 0).fit()
    assert labels(classical.outliers(level=0.975)) == [11, 13]
    dinosaurs = ["Dipliodocus", "Triceratops", "Brachiosaurus"]
    # The second step flags what is more likely bad than good; the human is only unusual.
    assert labels(found["flagged"]) == labels(found["res"].outliers(0.999)) == dinosaurs
    assert set(labels(found["beyond"])) == {*dinosaurs, "Human"}
    assert found["res"].corr.iloc[0, 1] > found["classical"].corr.iloc[0, 1] + 0.05
    human = found["res"].weight_table(None).loc["Human", "relative_weight"]
    assert human > 1
    # one factor between the raw covariance and the corrected one, above one
    first = found["res"].first_step
    ratio = first.cov.to_numpy() / first.raw_cov.to_numpy()
    assert ratio.min() > 1 and np.ptp(ratio) < 1e-6


@pytest.mark.slow
def test_components():
    found = run("components")
    res, groups = found["res"], found["groups"]
    assert found["three"].explained_variance_ratio.iloc[:2].sum() > 0.98
    assert (res.loadings["comp_1"] > 0).all()
    assert res.loadings["comp_2"].iloc[0] < 0 < res.loadings["comp_2"].iloc[-1]
    assert res.explanation == "heavy tails, two clusters" and res.stability.stable
    assert groups.loc[found["apart"], "weight"].median() < 0.2
    assert groups.loc[~found["apart"], "weight"].median() > 1
    inside, sure = found["inside"]["weight"], found["inside"]["prob_bad"] > 0.99
    assert inside[sure].max() < 0.1 < inside[~sure].median()
    assert res.outliers()[found["inside"].index[-6:]].all()
    named = {"Cambodia", "Rwanda", "Zimbabwe", "South Africa", "Botswana"}
    assert named <= set(found["worst"].index)
    assert (found["life"] - found["fitted"]).loc["Rwanda"].abs().idxmax() == "y1992"
    ratio = found["classical"].eigenvals / res.eigenvals
    assert ratio.iloc[1] > 2


def test_groups():
    found = run("groups")
    assert found["res"].outlier_groups().sum() == 5
    assert found["res"].explanation == "other line"
    days = found["days"]
    assert {712, 713, 714} <= set(days.group_table(None).nlargest(8, "loss").index)
    assert days.outlier_groups().sum() == 0
    assert 5 <= days.outlier_groups(0.975).sum() <= 11
    assert 8.5 < days._design_effect < 9.5


@pytest.mark.slow
def test_likelihoods():
    found = run("likelihoods")
    narrow, wide = found["poisson"], found["res"]
    assert found["first"].eps_hat > 0.09 and wide.eps_hat < 0.005
    assert wide.outliers().mean() < 0.025 < found["first"].outliers().mean()
    assert narrow.explanation == "overdispersed" and narrow.eps_hat == 0
    gap = (wide.params - found["model"].fit(disp=0).params).abs()
    assert (gap < 0.5 * wide.bse).all()


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_reference_explains_every_line_of_a_summary(name):
    top, page = str(SUMMARIES[name]().summary().tables[0]), read("api/summary")
    cells = re.split(r"\n| {2,}|(?<=\d) (?=[A-Z])", top)
    told = [cell.split(":")[0] for cell in cells if ":" in cell and not cell.startswith(TITLE)]
    told = [line for line in told if not line.isdigit()]  # the time of day
    missing = [line for line in told if f"**{line}**" not in page]
    assert len(told) > 5 and not missing


def test_inference():
    found = run("inference")
    assert np.allclose(found["robust"].bse, found["hc3"].bse)
    right, *wrong = found["errors"].values()
    assert max(wrong) < 0.6 * right
    res = rrmstats.ols("log_light ~ log_te", found["stars"], eps_bar=0.2).fit()
    assert res.first_step.df_resid_inference < res.df_resid_inference < res.df_resid
    classical, *robust = found["fits"].values()
    for fit in robust:
        _, high = fit.conf_int().loc["Intercept"]
        assert high < 0 and abs(classical.params["Intercept"]) < 0.05
        assert abs(fit.params["x"] - 2) < 0.1
        assert fit.outliers().mean() > 0.025


def test_when_not():
    found = run("when_not")
    assert found["res"].params[0] < 0.7 * found["claims"].mean()
    assert 0.1 < found["res"].outliers().mean() < 0.2
    assert 1 - 0.95**13 < 0.5 < 1 - 0.95**14


# What the page on when not to use it quotes: page, line of a table, what that has, how it is told.
LABELS = "| Logit | flipped at {} | sandwich | 2000 | {} |"
QUOTED = [
    ("dirty_data", "| regression 400 4 40 % near |", "| 12.45 |", "two steps 12.45 times"),
    ("dirty_data", "| regression 400 4 40 % near |", "| 573.02 |", "was 573.02 times"),
    ("dirty_data", "| regression 400 4 30 % near |", "| 1.00 |", "two steps had 1.00"),
    ("dirty_data", "| small 30 2 20 % 5 |", "| 1.45 |", "1.45 times"),
    ("dirty_data", "| regression 100 4 20 % 5 |", "| 1.12 |", "1.12 times"),
    ("breakdown", "| RRMOLS | 0.4 | 0.4 | tight", "| 7.12 | 1.00 | 7.85 | 1.00 |", "and had 1.00"),
    ("breakdown", "| RRMPCA, plane | 0.4 | 0.4 | tight", "| 19.80 |", "19.80 times"),
    ("glm", "| 30% | 0.4 | 0.113 | 1.033 |", "| 1.993 | 0.149 |", "was 1.993"),
    ("glm", "| 20% | 0.4 | 0.096 | 0.724 |", "| 0.162 | 0.098 |", "0.162 in one step and 0.098"),
    ("coverage", LABELS.format("random", 0.05), "| 0.660 | 0.960 |", "0.660 of the cases"),
    ("coverage", LABELS.format("random", 0.05), "| -12.4% | -13.5% |", "and 13.5 % in two"),
    ("coverage", LABELS.format("extremes", 0.05), "| 0.040 | 0.900 |", "0.040, and at"),
    ("coverage", LABELS.format("extremes", 0.2), "| 0.980 | 0.880 |", "was 0.900 and 0.880"),
    ("likelihoods", "| second | 5 % |", "| 0.88 | 1.22 |", "1.22 against 0.88"),
    ("minimum", "| RRMCov, near cluster |", "| 5.51 |", "5.51 times"),
    ("minimum", "| RRMCov, far cluster |", "| 1.14 |", "is 1.14 times"),
    ("minimum", "| RRMLogit, one predictor |", "| 3.21 |", "3.21 times"),
]


@pytest.mark.parametrize("page, start, measured, told", QUOTED)
def test_when_not_quotes_the_measurements_of_other_pages(page, start, measured, told):
    tables = [path.read_text() for path in sorted((DOCS / "tables").glob(f"{page}*.csv"))]
    rows = [f"| {' | '.join(row)} |" for text in tables for row in csv.reader(text.splitlines())]
    [line] = [line for line in [*read(page).splitlines(), *rows] if line.startswith(start)]
    assert measured in line
    assert told in read("when_not")


def test_a_bound_above_one_half_warns():
    stars = rrmstats.datasets.stars_cyg.load_pandas().data
    with pytest.warns(match="0.5"):
        rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.6).fit()
