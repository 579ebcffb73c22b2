import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels
import statsmodels.api as sm

import rrmstats
from rrmstats import datasets
from rrmstats.report import data_hash, page, report

VOID = {"meta", "br", "hr", "img", "link", "input"}
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def fits():
    stars = datasets.stars_cyg.load_pandas().data
    hbk = datasets.hbk.load_pandas().data
    cancer = datasets.breast_cancer.load_pandas().data
    formula = "malignant ~ clump_thickness + bland_chromatin"
    return {
        "stars": rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(),
        "hbk": rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit(efficiency=0.95),
        "cov": rrmstats.RRMCov(hbk, eps_bar=0.2).fit(),
        "pca": rrmstats.RRMPCA(hbk, 2, eps_bar=0.2).fit(),
        "logit": rrmstats.logit(formula, cancer, eps_bar=0.03).fit(),
    }


@pytest.fixture(scope="module")
def pages(fits):
    return {name: page(results) for name, results in fits.items()}


MODELS = ["stars", "hbk", "cov", "pca", "logit"]


class Outline(HTMLParser):
    """Read a page as a browser must: every element closed in turn, and every id unique."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("name", MODELS)
def test_pages_are_whole_and_need_nothing_else(name, pages):
    text = pages[name]
    outline = Outline(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(outline.ids) == len(set(outline.ids)) > 100
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(outline.tags)
    assert "http" not in text and "@import" not in text and "src=" not in text
    linked = {value for key, value in outline.attributes if key.endswith("href")}
    linked |= set(re.findall(r"url\(([^)]*)\)", text))
    within = {link for link in linked if not link.startswith("data:image/png;base64,")}
    assert {link[0] for link in within} == {"#"}
    assert {link[1:] for link in within} <= set(outline.ids)


@pytest.mark.parametrize(
    ("name", "captions"),
    [
        ("stars", ["Fit", "Diagnostics", "Weights by loss", "Risk and lambda"]),
        ("hbk", ["Diagnostics", "Weights by loss", "Risk and lambda"]),
        (
            "cov",
            ["Distances", "Tolerance ellipse", "Weights by loss", "Risk and lambda"],
        ),
        ("pca", ["Variances", "Biplot", "Outlier map", "Weights by loss", "Risk and lambda"]),
        ("logit", ["Separation", "Reliability", "Weights by loss", "Risk and lambda"]),
    ],
)
def test_pictures_of_each_model(name, captions, pages):
    text = pages[name]
    assert re.findall(r"<figcaption>\d\. (.*)</figcaption>", text) == captions
    assert re.findall(r'<svg role="img" aria-label="([^"]*)"', text) == captions
    assert "Not drawn" not in text


@pytest.mark.parametrize("name", MODELS)
def test_the_call_the_versions_and_the_hash(name, fits, pages):
    results, words = fits[name], Outline(pages[name]).words
    for word in (
        type(results.model).__name__,
        f"{results.eps_bar:g}",
        str(results.efficiency or "none: one step"),
        data_hash(results.model),
        rrmstats.__version__,
        np.__version__,
        pd.__version__,
        statsmodels.__version__,
    ):
        assert word in words
    assert ("log_light ~ log_te" in words) == (name == "stars")


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_of_the_summary_are_there(name, fits, pages):
    words = " ".join(Outline(pages[name]).words)
    table = fits[name].summary().tables[1]
    cells = [cell.format(0, "txt").strip() for row in table for cell in row]
    assert all(cell in words for cell in cells) and len(cells) > 5
    assert f"{fits[name].lambda_:.5g}" in words


def test_the_smallest_weights_come_first(fits, pages):
    rows = re.search(r"<h2>Smallest weights</h2>(.*?)</section>", pages["stars"], re.DOTALL)[1]
    names = re.findall(r'<th scope="row">(\d+)</th>', rows)
    assert names == [str(i) for i in np.argsort(fits["stars"].weights, kind="stable")[:20]]
    assert "27 rows of larger weight are not shown." in rows
    assert rows.count("<td>yes</td>") == fits["stars"].outliers().sum()


def test_options_of_the_model_are_told(fits, pages):
    words = Outline(pages["pca"]).words
    assert words[words.index("n_components") + 1] == "2"
    assert words[words.index("standardize") + 1] == "False"
    data = fits["cov"].model.endog
    weighted = rrmstats.RRMCov(data, 0.1, weights=np.ones(75)).fit(
        cov_type="bootstrap", cov_kwds={"n_boot": 10}
    )
    words = Outline(page(weighted)).words
    assert words[words.index("Prior weights") + 1] == "given"
    errors = words[words.index("Standard errors") + 1]
    assert errors == "pairs bootstrap, 10 samples, BCa intervals"


def test_names_from_the_data_are_escaped():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((40, 2)), columns=["a<b", "<script>&"])
    frame.index = [f"<i>{i}" for i in range(40)]
    text = page(rrmstats.RRMCov(frame, 0.1).fit(), title="<b> & co")
    outline = Outline(text)
    assert not {"script", "i", "b"} & set(outline.tags)
    assert "a<b" in outline.words and "<b> & co" in outline.words
    assert any(word.startswith("<i>") for word in outline.words)


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
        rrmstats.RRMOLS(y, design, 0.1, weights=np.arange(1, 31)),
        rrmstats.RRMOLS(y[:29], design[:29], 0.1),
    ]
    assert len({data_hash(model) for model in others} | {first}) == 5


def test_without_matplotlib_it_says_so(fits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = report(fits["stars"], tmp_path / "out.html").read_text(encoding="utf-8")
    Outline(text)
    assert "matplotlib is not installed; install it with: pip install" in text
    assert "<svg" not in text and "log_te" in text


def test_after_remove_data_the_tables_are_left():
    z = np.random.default_rng(0).standard_normal((40, 2))
    results = rrmstats.RRMCov(z, 0.1).fit()
    results.remove_data()
    text = page(results)
    Outline(text)
    assert "Mean and covariance" in text and text.count("remove_data dropped") == 3


def test_a_picture_that_cannot_be_drawn_says_why():
    z = np.random.default_rng(0).standard_normal((50, 2))
    z[:45, 1] = z[:45, 0]
    text = page(rrmstats.RRMCov(z, 0.2).fit())
    assert text.count("Not drawn: the covariance is singular") == 1
    assert text.count("<svg") == 3


def test_large_data_make_no_large_page():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20_000)
    y = 2 * x + rng.standard_normal(20_000)
    text = page(rrmstats.RRMOLS(y, sm.add_constant(x), 0.0).fit())
    Outline(text)
    assert text.count("<svg") == 4 and len(text) < 2e6


def test_no_figure_is_left_open(fits):
    before = plt.get_fignums()
    page(fits["cov"])
    assert plt.get_fignums() == before


def test_written_with_the_rights_of_any_new_file(fits, tmp_path):
    written = report(fits["cov"], str(tmp_path / "out.html"))
    plain = tmp_path / "plain"
    plain.touch()
    assert written == tmp_path / "out.html"
    assert written.stat().st_mode == plain.stat().st_mode


def test_an_error_leaves_the_old_file_and_nothing_else(fits, tmp_path, monkeypatch):
    target = tmp_path / "out.html"
    target.write_text("old")

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match=r"cannot write out\.html in .*: No space left"):
            report(fits["cov"], target)
    with monkeypatch.context() as patch:
        patch.setattr("rrmstats.report.drawings", fail)
        with pytest.raises(OSError, match="No space left"):
            report(fits["cov"], target)
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    assert target.read_text() == "old"
    report(fits["cov"], target)
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_bad_paths_are_named(fits, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"the directory .*none does not exist; create"):
        report(fits["cov"], tmp_path / "none" / "out.html")
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file in it"):
        report(fits["cov"], tmp_path)

    plain = Path.open

    def refuse(path, *args, **kwargs):
        if path.parent == tmp_path:
            raise PermissionError(13, "Permission denied")
        return plain(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot write out\.html in .*: Permission denied"):
        report(fits["cov"], tmp_path / "out.html")


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
    for colour in ([0, 0, 0], [1, 1, 1], [0xD5 / 255, 0x5E / 255, 0]):
        near = np.abs(image - colour).max(axis=-1) < 0.02
        assert near.sum() > 50
