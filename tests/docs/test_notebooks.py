"""The notebooks: stored without outputs, and run cell by cell they find what their prose says."""

import json
import re
from pathlib import Path

import matplotlib
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NAMES = ["counts_and_groups", "noisy_labels", "outlier_maps", "regression_report"]


def stored(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def text(cell):
    return "".join(cell["source"])


def run(name, monkeypatch):
    """Return the names that the code cells make, run in order where the notebook lies."""
    monkeypatch.chdir(FOLDER)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {"__name__": name}
    for cell in stored(name)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(text(cell), f"{name}: {cell['id']}", "exec"), names)
            plt.close("all")
    return names


def test_every_notebook_is_listed():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in index and f"\n{name}\n" in index for name in NAMES)
    taken = re.findall(r"\{download\}`(?:[^`<]*<)?([^`>]+)", index)
    assert {f"{name}.ipynb" for name in NAMES} <= set(taken)
    assert all((FOLDER / file).is_file() for file in taken)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_stored_without_outputs(name):
    book = stored(name)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in ids)
    assert 10 <= len(ids) <= 25
    for cell in book["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert text(book["cells"][0]).startswith("# ")
    assert "## What to take away" in text(book["cells"][-1])


@pytest.mark.parametrize("name", NAMES)
def test_its_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#]+)", "\n".join(text(cell) for cell in stored(name)["cells"]))
    inside = [link for link in links if not link.startswith("https://")]
    assert inside and all((FOLDER / link).is_file() for link in inside)


@pytest.mark.slow
def test_the_regression_report_finds_the_wrong_numbers(monkeypatch):
    book = run("regression_report", monkeypatch)
    found = book["found"]
    for damage in ("kilograms", "centimeters", "swapped digits"):
        assert found.loc[damage, "sum"] == found.loc[damage, "count"]
    assert found.loc["wrong sex", "sum"] <= 1  # "Wrong sexes are not found"
    assert len(book["false_alarms"]) <= 1
    beside = book["beside"].drop(index="Intercept")
    errors = book["res"].bse[beside.index]
    off = beside.sub(beside["least squares, no errors"], axis=0).abs().div(errors, axis=0)
    assert off["robust"].max() < 1.96 < off["least squares"].max()
    low, high = book["classical"].conf_int().loc["flipper_length_mm"]
    assert low < 0 < high  # "the flipper seems not to matter"
    assert book["res"].stability.stable
    assert book["jump"].eps_bar_to <= book["res"].eps_bar
    # a path starts second steps from all minima that it follows, as a fit does
    again = book["path"].at(book["res"].eps_bar)
    assert again.explanation == book["res"].explanation
    assert again.params.sub(book["res"].params).abs().max() < 1e-3
    assert f"eps_bar = {book['res'].eps_bar:g}" in " ".join(book["paragraph"].split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Another explanation is about as good")
def test_noisy_labels_are_found_where_there_is_no_doubt(monkeypatch):
    book = run("noisy_labels", monkeypatch)
    assert 0.35 < book["share_found"] < 1 and book["share_right"] > 0.9
    assert 0.3 < book["steps"].loc["found"].median() < 0.8
    assert book["steps"].loc["flags right"].min() > 0.8
    assert abs(book["robust"].eps_hat - book["train"]["flipped"].mean()) < 0.05
    assert book["robust"].explanation == "label noise"
    assert book["robust"].identified and not book["robust"].first_step.identified
    flags = book["flags"][book["flipped"].index]
    assert book["likely"][flags].max() < book["likely"][~flags].median()
    slopes = {name: res.params.drop("Intercept") for name, res in book["fits"].items()}
    assert (slopes["likelihood"] < slopes["correct labels"]).all()
    assert (slopes["likelihood"] < slopes["robust"]).all()
    assert (slopes["robust"] < slopes["correct labels"]).all()  # "a little smaller"
    scores, curve = book["scores"], book["curve"]
    assert scores.loc["correct labels", "log loss"] < scores.loc["robust", "log loss"]
    assert scores.loc["robust", "log loss"] < 0.9 * scores.loc["likelihood", "log loss"]
    assert abs(scores.loc["robust", "error"] - scores.loc["likelihood", "error"]) < 0.02
    assert scores["AUC"].max() - scores["AUC"].min() < 0.01
    assert book["ratios"].median() < 0.85  # "in most of them"
    best = book["losses"].idxmin()
    assert (best >= 0.1).mean() > 0.5
    assert curve["log loss"][0.1] < curve["log loss"][0.05] < curve["log loss"][0]
    assert book["losses"].loc[0.3].sub(book["losses"].loc[0.15]).abs().max() < 0.005
    assert (book["steps"].loc["found"] == 0).any()  # "a split without a single label found"
    assert book["gaps"]["robust"] < 0.8 * book["gaps"]["likelihood"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit changes with eps_bar")
def test_outlier_maps_have_the_regions_that_they_name(monkeypatch):
    book = run("outlier_maps", monkeypatch)
    far, off = book["far"], book["off"]
    assert list(far.index[far]) == list(range(14))
    assert list(far.index[far & off]) == list(range(10))
    assert book["beyond"].sum() == 2 and book["masked"].sum() == 12
    assert not (book["wide"] & book["off_plane"]).any() and book["off_plane"].any()
    assert (book["malignant"].loc[book["farthest"], "mitoses"] == 10).all()
    outside = pd.crosstab(book["cancer"]["diagnosis"], book["flags"])
    assert outside.loc["malignant", True] > 10 * outside.loc["benign", True]
    plane, off_one = book["nine"].hyperplane, book["cancer"]["mitoses"] != 1
    assert plane.normal.abs().idxmax() == "mitoses" and plane.offset == pytest.approx(1)
    assert list(book["nine"].mahalanobis() == float("inf")) == list(off_one)


@pytest.mark.slow
def test_counts_and_groups_name_the_bad_hospitals(monkeypatch):
    book = run("counts_and_groups", monkeypatch)
    good, wrong = ~book["is_wrong"], book["is_wrong"]
    poisson, negbin = book["poisson"].outliers(0.999), book["flagged"]
    assert poisson[good].sum() > poisson[wrong].sum()
    assert book["poisson"].eps_hat == pytest.approx(0.15)  # "it stops at the bound"
    assert book["hidden"].sum() > book["missed"].sum()
    assert negbin[good].sum() <= 1 and negbin[wrong].mean() > 0.5
    alphas = book["table"].loc["alpha"]
    assert alphas["maximum likelihood"] > 2 * alphas["truth"]
    assert abs(alphas["robust"] - alphas["truth"]) < 2 * alphas["standard error"]
    found = book["found"]
    assert list(found.index[found]) == book["bad"]
    old = {name: res.params["old"] for name, res in book["fits"].items()}
    truth = old.pop("no errors")
    errors = {name: abs(value - truth) for name, value in old.items()}
    assert 5 * errors["a weight per hospital"] < errors["a weight per row"]
    assert errors["a weight per row"] < errors["maximum likelihood"]
    sizes = book["sizes"]
    found = sizes["bad flagged"].groupby("wards").sum()
    assert found[3] <= 4 and found[10] >= 15  # of 16
    assert sizes["good flagged"].sum() <= 2
    off = (sizes["old, robust"] - sizes["old, no errors"]).abs().groupby("wards").max()
    assert off[10] < 0.1 < off[3]  # "the slope stays as small"
