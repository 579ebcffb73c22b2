import copy
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats.plotting.paths import explanation_colors, explanation_runs
from rrmstats.report import write_path_report
from rrmstats.report.paths import (
    hover_text,
    numbers,
    path_page,
    row_data,
    shown_rows,
)

from .html_outline import Outline

MODELS = ["hbk", "cov", "logit"]
PANELS = ["coefficients", "rows", "residuals", "fit"]


def content(text):
    """Return the data of a page as its script reads them."""
    return json.loads(re.search(r'id="path-data">(.*?)</script>', text, re.DOTALL)[1])


def section(text, heading):
    return re.search(rf"<h2>{heading}</h2>(.*?)</section>", text, re.DOTALL)[1]


@pytest.mark.parametrize("name", MODELS)
def test_pages_are_whole_and_need_nothing_else(name, path_pages):
    text = path_pages[name]
    outline = Outline(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert outline.tags.count("script") == text.count("</script>") == 3
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(outline.tags)
    assert not {"src", "href", "action", "srcset"} & {key for key, _ in outline.attributes}
    (policy,) = [value for key, value in outline.attributes if key == "content" and ";" in value]
    assert policy.startswith("default-src 'none';") and "http" not in policy
    assert set(PANELS) <= set(outline.ids) and len(outline.ids) == len(set(outline.ids))
    own = text[: text.index("<script>")] + text[text.index('id="path-data"') :]
    assert "http:" not in own and "https:" not in own and "@import" not in own


def test_panels_show_the_path(paths, path_pages):
    path, found = paths["hbk"], content(path_pages["hbk"])
    panels = found["panels"]
    assert list(panels) == PANELS
    estimates = [trace for trace in panels["coefficients"]["data"] if "customdata" in trace]
    assert [trace["meta"] for trace in estimates] == ["Intercept", "x1", "x2", "x3"]
    x1 = path.frame[path.frame["term"] == "x1"]
    np.testing.assert_allclose(estimates[1]["y"], x1["estimate"], rtol=1e-5)
    np.testing.assert_allclose(estimates[1]["customdata"], x1[["lower", "upper"]], rtol=1e-5)
    assert [row["name"] for row in found["rows"]] == [str(i) for i in range(75)]
    for panel, values in (("rows", path.weights * 75), ("residuals", path.residuals)):
        drawn = panels[panel]["data"]
        assert len(drawn) == 75
        for row in (0, 3, 74):
            np.testing.assert_allclose(drawn[row]["customdata"], values.iloc[row], rtol=1e-5)
            assert drawn[row]["meta"].startswith(f"<b>row {row}</b><br>x1 = ")
    colors = [trace["line"]["color"] for trace in panels["rows"]["data"]]
    flagged = path.flags.any(axis=1)
    assert len(set(colors)) == 2
    assert {color for color, bad in zip(colors, flagged, strict=True) if bad} == {"#D55E00"}


def test_jumps_are_in_every_panel(paths, path_pages):
    middles = paths["hbk"].jumps[["eps_bar_from", "eps_bar_to"]].mean(axis=1)
    assert len(middles) >= 1
    places = np.sort([*middles, paths["hbk"].choice.eps_bar])
    for name, panel in content(path_pages["hbk"])["panels"].items():
        axes = [key for key in panel["layout"] if key.startswith("xaxis")]
        shapes = [shape for shape in panel["layout"]["shapes"] if shape["type"] == "line"]
        found = sorted(shape["x0"] for shape in shapes)
        np.testing.assert_allclose(found, np.repeat(places, len(axes)), err_msg=name)


def test_the_chosen_value_and_its_reason(paths):
    path = copy.copy(paths["hbk"])
    path.choice = SimpleNamespace(eps_bar=0.2, reason="eps_hat < 0.2 & stable")
    text = path_page(path)
    words = " ".join(Outline(text).words)
    assert "eps_hat < 0.2 & stable" in words
    for panel in content(text)["panels"].values():
        places = {shape.get("x0") for shape in panel["layout"]["shapes"]}
        assert 0.2 in places
    assert paths["hbk"].choice.reason in path_page(paths["hbk"])


def test_the_table_of_jumps_and_the_changes(paths, path_pages):
    path, text = paths["hbk"], path_pages["hbk"]
    jumps = section(text, "Jumps")
    assert jumps.count("<tr") == 1 + len(path.jumps)
    assert re.search(r"<td>0.16</td>\s*<td>0.18</td>", jumps)
    numbers = re.findall(r'data-rows="([^"]*)"', jumps)
    assert [tuple(json.loads(rows)) for rows in numbers] == [
        rows for rows in path.jumps["rows"] if rows
    ]
    assert numbers
    changes = section(text, "What changes along the path")
    words = [word for word in Outline(changes).words if word.strip()]
    assert words == path.signs and words


def test_a_path_without_jumps_says_so(path_pages):
    assert "There are none: no estimate changes abruptly." in section(path_pages["logit"], "Jumps")


def test_of_many_rows_and_terms_some_are_drawn(paths, path_pages):
    text = path_pages["logit"]
    assert "300 of 699 rows are drawn: flagged ones and those of smallest weight." in text
    found = content(text)
    assert len(found["rows"]) == len(found["panels"]["rows"]["data"]) == 300
    flagged = paths["logit"].flags.any(axis=1)
    names = {str(label) for label in paths["logit"].weights.index[flagged]}
    assert names <= {row["name"] for row in found["rows"]}
    assert "12 of 14 coefficients, those that change most." in path_pages["cov"]
    assert "All 75 rows are drawn." in path_pages["cov"]


def test_without_plotly_it_says_how_to_install_it(paths, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError) as error:
        write_path_report(paths["hbk"], tmp_path / "path.html")
    assert str(error.value) == (
        "plotly is not installed; install it with: pip install 'rrmstats[interactive]'"
    )
    assert list(tmp_path.iterdir()) == []


def test_results_of_one_fit_are_refused(fits, tmp_path):
    with pytest.raises(TypeError, match=r"such as those of model.path\(\); got those of RRMOLS"):
        write_path_report(fits["hbk"], tmp_path / "path.html")


@pytest.mark.parametrize("broken", ["pathlib.Path.replace", "rrmstats.report.paths.path_page"])
def test_an_error_leaves_the_old_file_and_nothing_else(broken, paths, tmp_path, monkeypatch):
    target = tmp_path / "path.html"
    target.write_text("old")

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(broken, fail)
        write_path_report(paths["hbk"], target)
    assert [path.name for path in tmp_path.iterdir()] == ["path.html"]
    assert target.read_text() == "old"
    assert write_path_report(paths["hbk"], str(target), title="Stable?") == target
    assert "<h1>Stable?</h1>" in target.read_text(encoding="utf-8")


def test_a_bad_path_is_reported_before_the_page_is_made(paths, tmp_path, monkeypatch):
    monkeypatch.setattr("rrmstats.report.paths.path_page", lambda *args: pytest.fail("too late"))
    with pytest.raises(FileNotFoundError, match=r"the directory .*none does not exist; create"):
        write_path_report(paths["hbk"], tmp_path / "none" / "path.html")


def test_pages_of_two_steps_show_probabilities_and_explanations(fits):
    path = fits["hbk"].path([0, 0.02, 0.1, 0.2])
    text = path_page(path)
    Outline(text)
    panels = content(text)["panels"]
    assert list(panels) == PANELS
    for row in (0, 12, 74):
        drawn = panels["rows"]["data"][row]
        np.testing.assert_allclose(drawn["y"], path.prob_bad.iloc[row], rtol=1e-5, atol=1e-12)
    assert panels["rows"]["layout"]["yaxis"]["title"]["text"] == "prob_bad"
    runs = explanation_runs(path)
    colors = explanation_colors(runs)
    assert len(runs) > 1
    for panel in panels.values():
        axes = [key for key in panel["layout"] if key.startswith("xaxis")]
        shapes = [s for s in panel["layout"]["shapes"] if s.get("fillcolor") in colors.values()]
        found = [(s["x0"], s["x1"], s["fillcolor"]) for s in shapes]
        own = [(run.left, run.right, colors[run.name]) for run in runs]
        assert sorted(found) == sorted(own * len(axes))
        places = dict.fromkeys((s["xref"], s["yref"]) for s in shapes)
        assert list(places) == [(f"x{key[5:]}", f"y{key[5:]} domain") for key in axes]
    table = section(text, "Explanations")
    assert table.count("<tr") == 1 + len(runs)
    for run in runs:
        assert f"background: {colors[run.name]}" in table and f"<td>{run.name}</td>" in table
    assert "become more likely bad than good" in section(text, "How to read this page")


def test_pages_of_one_step_have_no_explanations(path_pages):
    assert "<h2>Explanations</h2>" not in path_pages["hbk"]
    assert "lose half their weight" in section(path_pages["hbk"], "How to read this page")


@pytest.fixture(scope="module")
def stars():
    return rrmstats.datasets.stars_cyg.load_pandas().data


def test_rows_have_all_variables_of_their_frame(stars):
    frame = stars.assign(name=[f"star {i}" for i in range(47)])
    path = rrmstats.ols("log_light ~ log_te", frame, eps_bar=0.2).path([0, 0.2], steps=1)
    row = shown_rows(path)[33]
    assert dict(row.values) == {
        "log_te": f"{frame['log_te'].iloc[33]:.4g}",
        "log_light": f"{frame['log_light'].iloc[33]:.4g}",
        "name": "star 33",
    }
    assert row.leaves == 0.2


def test_dropped_rows_do_not_shift_the_data(stars):
    frame = stars.assign(number=range(47))
    frame.loc[[3, 8], "log_te"] = np.nan
    path = rrmstats.ols("log_light ~ log_te", frame, eps_bar=0.2).path([0, 0.2], steps=1)
    rows = shown_rows(path)
    assert len(rows) == 45
    assert all(dict(row.values)["number"] == row.name for row in rows)


def test_arrays_have_the_names_of_the_model(stars):
    x, y = stars["log_te"].to_numpy(), stars["log_light"].to_numpy()
    model = rrmstats.RRMOLS(y, sm.add_constant(x), 0.2)
    data = row_data(model, 47)
    assert list(data) == ["y", "x1"]
    np.testing.assert_array_equal(data, np.c_[y, x])
    both = rrmstats.RRMCov(np.c_[x, y], 0.2)
    data = row_data(both, 47)
    assert list(data) == both.variables
    np.testing.assert_array_equal(data, np.c_[x, y])


def test_hovering_shows_a_limited_number_of_variables():
    data = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 20))).add_prefix("v")
    data["text"] = "long " * 50
    path = rrmstats.ols("v0 ~ v1", data, eps_bar=0.1).path([0, 0.1], steps=1)
    row = shown_rows(path)[0]
    assert len(row.values) == 21 and len(row.values[-1][1]) == 60
    lines = hover_text(row).split("<br>")
    assert len(lines) == 17 and lines[-1] == "and 6 more variables"


def test_the_rows_of_smallest_weight_are_kept_in_order(stars):
    path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2], steps=1)
    rows = shown_rows(path, 10)
    positions = [row.position for row in rows]
    assert positions == sorted(positions) and len(rows) == 10
    assert {10, 19, 29, 33} < set(positions)


def test_numbers_that_json_does_not_know_are_left_out():
    assert numbers([1.0, np.nan, -np.inf, 1 / 3]) == [1.0, None, None, 0.333333]


def test_far_residuals_are_on_an_axis_that_is_logarithmic_outside_of_the_band(paths):
    path = copy.copy(paths["hbk"])
    path.__dict__["residuals"] = path.residuals * 100
    panel = content(path_page(path))["panels"]["residuals"]
    drawn, axis = panel["data"][0], panel["layout"]["yaxis"]
    cutoff = np.sqrt(5.0239)
    heights = cutoff * np.arcsinh(np.array(drawn["customdata"]) / cutoff)
    np.testing.assert_allclose(drawn["y"], heights, rtol=1e-4)
    ticks = cutoff * np.arcsinh(np.array(axis["ticktext"], dtype=float) / cutoff)
    np.testing.assert_allclose(axis["tickvals"], ticks, rtol=1e-4)
    assert "100" in axis["ticktext"] and axis["tickvals"] == sorted(axis["tickvals"])
