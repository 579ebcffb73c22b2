import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm

import rrmstats
from rrmstats.report import write_report
from rrmstats.report.page import page_text

from .html_outline import Outline


@pytest.mark.parametrize(
    ("name", "captions"),
    [
        ("stars", ["Fit", "Diagnostics", "Weights by loss", "Risk and lambda"]),
        ("hbk", ["Diagnostics", "Explanation", "Weights by loss", "Risk and lambda"]),
        (
            "cov",
            ["Distances", "Tolerance ellipse", "Weights by loss", "Risk and lambda"],
        ),
        ("pca", ["Variances", "Biplot", "Outlier map", "Weights by loss", "Risk and lambda"]),
        (
            "logit",
            ["Diagnostics", "Separation", "Reliability", "Weights by loss", "Risk and lambda"],
        ),
    ],
)
def test_pictures_of_each_model(name, captions, pages):
    text = pages[name]
    assert re.findall(r"<figcaption>\d\. ([\w ]*)", text) == captions
    assert re.findall(r'<svg role="img" aria-label="([^"]*)"', text) == captions
    assert "Not drawn" not in text


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
