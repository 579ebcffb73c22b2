import re
import shutil
import subprocess

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import rrmstats
from rrmstats.report import write_report
from rrmstats.report.page import page_text

from .html_outline import Outline

CHROMIUM = shutil.which("chromium")
MODELS = ["stars", "hbk", "cov", "pca", "logit"]


@pytest.mark.parametrize("name", MODELS)
def test_pages_are_whole_and_need_nothing_else(name, pages):
    text = pages[name]
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


def test_the_caption_of_diagnostics_is_below_the_picture(fits):
    assert "Diagnostics</figcaption>" in page_text(fits["stars"])
    sentence = fits["hbk"].explanation.sentence
    captions = re.findall(r"<figcaption>\d+\. (\w*)\. (.*)</figcaption>", page_text(fits["hbk"]))
    assert captions == [("Diagnostics", sentence), ("Explanation", sentence)]
