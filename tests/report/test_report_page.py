import re
import shutil
import subprocess
import sys

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels
import statsmodels.api as sm

import rrmstats
from rrmstats.report import data_hash, write_report
from rrmstats.report.page import flagged_text, model_options, page_text, suspicious_text

from .html_outline import Outline

CHROMIUM = shutil.which("chromium")


CAPTIONS = {
    "stars": ["Fit", "Diagnostics"],
    "hbk": ["Diagnostics", "Explanation"],
    "cov": ["Distances", "Tolerance ellipse"],
    "pca": ["Variances", "Biplot", "Outlier map"],
    "logit": ["Diagnostics", "Separation", "Reliability"],
}


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_page_of_each_model(name, fits, pages):
    """It is whole, needs nothing else, and has the numbers, rows, pictures and versions."""
    results, text = fits[name], pages[name]
    outline = Outline(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(outline.ids) == len(set(outline.ids)) > 100
    assert not {"link", "img", "iframe", "object", "base"} & set(outline.tags)
    assert outline.tags.count("script") == 1
    assert "http" not in text and "@import" not in text and "src=" not in text
    linked = {value for key, value in outline.attributes if key.endswith("href")}
    linked |= set(re.findall(r"url\(([^)]*)\)", text))
    within = {link for link in linked if not link.startswith("data:image/png;base64,")}
    assert {link[0] for link in within} == {"#"}
    assert {link[1:] for link in within} <= set(outline.ids)
    captions = [*CAPTIONS[name], "Weights by loss", "Risk and lambda"]
    assert re.findall(r"<figcaption>\d\. ([\w ]*)", text) == captions
    assert re.findall(r'<svg role="img" aria-label="([^"]*)"', text) == captions
    assert "Not drawn" not in text
    words = " ".join(outline.words)
    table = results.summary().tables[1]
    cells = [cell.format(0, "txt").strip() for row in table for cell in row]
    assert all(cell in words for cell in cells) and len(cells) > 5
    for told in (
        f"{results.lambda_:.5g}",
        type(results.model).__name__,
        data_hash(results.model),
        rrmstats.__version__,
        np.__version__,
        pd.__version__,
        statsmodels.__version__,
    ):
        assert told in words
    for told in (f"{results.eps_bar:g}", str(results.steps)):
        assert told in outline.words
    assert ("log_light ~ log_te" in outline.words) == (name == "stars")
    flags, flagged = np.asarray(results.outliers()), flagged_section(text)
    assert sorted(map(int, listed(flagged))) == list(np.flatnonzero(flags))
    assert f"{flags.sum()} of {len(flags)} rows are flagged" in flagged
    assert ("<details" in flagged) == (flags.sum() > 20)


def flagged_section(text):
    return re.search(r"<h2>Flagged rows</h2>(.*?)</section>", text, re.DOTALL)[1]


def listed(text):
    return re.findall(r"<th>(\d+)</th>", text)


def test_names_from_the_data_are_escaped():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((40, 2)), columns=["a<b", "<script>&"])
    frame.index = [f"<i>{i}" for i in range(40)]
    text = page_text(rrmstats.RRMCov(frame, 0.1).fit(steps=1), title="<b> & co")
    outline = Outline(text)
    assert not {"i", "b"} & set(outline.tags) and outline.tags.count("script") == 1
    assert "a<b" in outline.words and "<b> & co" in outline.words
    assert any(word.startswith("<i>") for word in outline.words)


def test_after_remove_data_the_tables_are_left():
    z = np.random.default_rng(0).standard_normal((40, 2))
    results = rrmstats.RRMCov(z, 0.1).fit(steps=1)
    results.remove_data()
    text = page_text(results)
    Outline(text)
    assert "std err" in text and text.count("remove_data dropped") == 4


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["pathlib.Path.replace", "rrmstats.report.page.page_text"])
def test_an_error_leaves_the_old_file_and_nothing_else(broken, fits, tmp_path, monkeypatch):
    target = tmp_path / "out.html"
    target.write_text("old")

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(broken, fail)
        write_report(fits["cov"], target)
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    assert target.read_text() == "old"
    assert fits["cov"].report(str(target)) == target
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_a_bad_path_is_reported_before_the_page_is_made(fits, tmp_path, monkeypatch):
    monkeypatch.setattr("rrmstats.report.page.page_text", lambda *args: pytest.fail("too late"))
    with pytest.raises(FileNotFoundError, match=r"the directory .*none does not exist; create"):
        write_report(fits["cov"], tmp_path / "none" / "out.html")
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file in it"):
        write_report(fits["cov"], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("name", ["stars", "logit"])
def test_a_browser_renders_it(name, pages, tmp_path):
    (tmp_path / "out.html").write_text(pages[name], encoding="utf-8")
    base = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1000,4000",
        "--hide-scrollbars",
    ]
    shot, address = tmp_path / "out.png", (tmp_path / "out.html").as_uri()
    dom = subprocess.run(
        [*base, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert dom.count("<svg") == pages[name].count("<svg")
    assert dom.count("<tr>") == pages[name].count("<tr>")
    subprocess.run(
        [*base, f"--screenshot={shot}", address], capture_output=True, timeout=120, check=True
    )
    image = matplotlib.image.imread(shot)[..., :3]
    assert image.shape[:2] == (4000, 1000)
    # Black text, white paper, and the vermillion of the flagged rows are on it.
    for color in ([0, 0, 0], [1, 1, 1], [0xD5 / 255, 0x5E / 255, 0]):
        near = np.abs(image - color).max(axis=-1) < 0.02
        assert near.sum() > 50


def test_a_note_of_several_lines_is_one_paragraph(fits, pages):
    notes = [note for note in fits["pca"]._notes() if len(note) > 95]
    words = [" ".join(word.split()) for word in Outline(pages["pca"]).words]
    assert notes and all(any(word.endswith(note) for word in words) for note in notes)


def test_the_caption_of_diagnostics_is_below_the_picture(fits, pages):
    assert "Diagnostics</figcaption>" in pages["stars"]
    sentence = fits["hbk"].explanation.sentence
    captions = re.findall(r"<figcaption>\d+\. (\w*)\. (.*)</figcaption>", pages["hbk"])
    assert captions == [("Diagnostics", sentence), ("Explanation", sentence)]


def test_captions_explain_flagged_rows_of_large_weight(pages):
    captions = dict(re.findall(r"<figcaption>\d\. ([\w ]*)(.*)</figcaption>", pages["pca"]))
    explained = [name for name, text in captions.items() if "(score outliers)" in text]
    assert explained == ["Biplot", "Outlier map", "Weights by loss"]
    assert "large weight" not in "".join(re.findall(r"<figcaption>.*", pages["stars"]))


def test_without_matplotlib_it_says_so(fits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = write_report(fits["stars"], tmp_path / "out.html").read_text(encoding="utf-8")
    Outline(text)
    assert "matplotlib is not installed; install it with: pip install" in text
    assert "<svg" not in text and "log_te" in text


def test_a_picture_that_cannot_be_drawn_says_why():
    z = np.random.default_rng(0).standard_normal((50, 2))
    z[:45, 1] = z[:45, 0]
    text = page_text(rrmstats.RRMCov(z, 0.2).fit(steps=1))
    assert text.count("Not drawn: the covariance is singular") == 1
    assert text.count("<svg") == 3


@pytest.mark.slow
def test_large_data_make_no_large_page():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20_000)
    y = 2 * x + rng.standard_normal(20_000)
    text = page_text(rrmstats.RRMOLS(y, sm.add_constant(x), 0.0).fit(steps=1))
    Outline(text)
    assert text.count("<svg") == 4 and len(text) < 2e6


@pytest.mark.slow
def test_no_figure_is_left_open(fits):
    before = plt.get_fignums()
    page_text(fits["cov"])
    assert plt.get_fignums() == before


@pytest.mark.parametrize("name", ["cov", "pca", "logit"])
def test_reports_of_two_steps_have_the_explanation(name, fits):
    results = fits[name].model.fit()
    text = page_text(results)
    captions = dict(re.findall(r"<figcaption>\d+\. ([\w ]*)\. (.*)</figcaption>", text))
    assert captions["Explanation"].startswith(results.explanation.sentence)
    assert "Not drawn" not in text


def test_options_of_the_model_are_told(fits, pages):
    words = Outline(pages["pca"]).words
    assert words[words.index("n_components") + 1] == "2"
    assert words[words.index("standardize") + 1] == "False"
    data = fits["cov"].model.endog
    weighted = rrmstats.RRMCov(data, 0.1, freq_weights=np.ones(75)).fit(
        cov_type="bootstrap", cov_kwds={"n_boot": 10}, stability=False, steps=1
    )
    words = Outline(page_text(weighted)).words
    assert words[words.index("Frequency weights") + 1] == "given"
    assert "freq_weights" not in words and words[words.index("groups") + 1] == "None"
    errors = words[words.index("Standard errors") + 1]
    assert errors == "pairs bootstrap, 10 samples, BCa intervals"


def test_arrays_and_families_are_told_in_a_word():
    unit, x = np.repeat(np.arange(12), 5), np.random.default_rng(0).standard_normal(60)
    y = np.random.default_rng(1).poisson(np.exp(x)).astype(float)
    model = rrmstats.RRMGLM(y, x[:, None], 0.1, family=sm.families.Poisson(), groups=unit)
    told = dict(model_options(model))
    assert told["groups"] == "given" and told["family"] == "Poisson"


def test_the_hash_is_that_of_the_rows():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, 30), rng.standard_normal(30)
    design = sm.add_constant(x)
    first = data_hash(rrmstats.RRMOLS(y, design, 0.1))
    assert re.fullmatch("[0-9a-f]{64}", first)
    frame = pd.DataFrame({"x": x, "y": y})
    same = [
        rrmstats.RRMOLS(y, design, 0.4),
        rrmstats.RRMOLS(y, np.asfortranarray(design, dtype=float), 0.1),
        rrmstats.ols("y ~ x", frame, eps_bar=0.1),
    ]
    assert {data_hash(model) for model in same} == {first}
    changed = design.copy()
    changed[3, 1] += 1
    others = [
        rrmstats.RRMOLS(y, changed, 0.1),
        rrmstats.RRMOLS(y[::-1], design, 0.1),
        rrmstats.RRMOLS(y, design, 0.1, freq_weights=np.arange(1, 31)),
        rrmstats.RRMOLS(y[:29], design[:29], 0.1),
    ]
    assert len({data_hash(model) for model in others} | {first}) == 5


def test_the_smallest_weights_come_first(fits, pages):
    rows = re.search(r"<h2>Smallest weights</h2>(.*?)</section>", pages["stars"], re.DOTALL)[1]
    names = re.findall(r"<th>(\d+)</th>", rows)
    assert names == [str(i) for i in np.argsort(fits["stars"].weights, kind="stable")[:20]]
    assert "27 rows of larger weight are not shown." in rows
    assert rows.count("<td>yes</td>") == fits["stars"].outliers().sum()


def test_rows_most_likely_bad_come_first_in_two_steps(fits, pages):
    assert "<h2>Smallest weights</h2>" not in pages["hbk"]
    assert "Most likely bad rows" not in pages["hbk"]  # the short table of the summary
    rows = re.search(r"<h2>Rows most likely bad</h2>(.*?)</section>", pages["hbk"], re.DOTALL)[1]
    names = re.findall(r"<th>(\d+)</th>", rows)
    likely = np.flatnonzero(np.asarray(fits["hbk"].prob_bad) >= 0.01)
    assert sorted(map(int, names)) == list(likely) == list(range(10))
    assert "<th>prob bad</th>" in rows
    assert "65 rows with a prob_bad below 0.01 are not shown." in rows


def test_clean_rows_are_no_suspects():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(50)
    results = rrmstats.RRMOLS(x + rng.standard_normal(50), np.c_[np.ones(50), x]).fit()
    assert results.explanation == "none"
    heading, text = suspicious_text(results)
    assert heading == "Rows most likely bad" and text.startswith("<p>None.</p>")


def test_the_list_tells_why_flagged_rows_have_large_weights(pages):
    assert "10 flagged rows have a large weight (score outliers)" in flagged_section(pages["pca"])
    assert "large weight" not in flagged_section(pages["stars"])


@pytest.fixture(scope="module")
def many():
    """Return a fit with more flagged rows than are shown unfolded."""
    z = np.random.default_rng(0).standard_normal((120, 2))
    z[:30] += 10
    return rrmstats.RRMCov(z, 0.3).fit(steps=1)


def test_many_flagged_rows_are_folded_and_very_many_cut_off(many, monkeypatch):
    count = int(many.outliers().sum())
    text = flagged_text(many)
    names = re.findall(r"<th>(\d+)</th>", text)
    assert count > 30 and names == [str(i) for i in many.outlier_table().index]
    assert f"Show all {count} rows" in text and "listed" not in text
    monkeypatch.setattr("rrmstats.report.page.MOST_LISTED", 25)
    text = flagged_text(many)
    assert re.findall(r"<th>(\d+)</th>", text) == names[:25]
    assert "The 25 of smallest weight are listed; outliers() has all." in text


def test_no_flagged_rows_are_no_table():
    z = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    assert flagged_text(rrmstats.RRMCov(z, 0.0).fit(steps=1)) == "<p>None at the level 97.5%.</p>"
