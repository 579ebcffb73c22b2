import re

import numpy as np
import pytest

import rrmstats
from rrmstats.report.tables import flagged_text, suspicious_text

from .html_outline import Outline

MODELS = ["stars", "hbk", "cov", "pca", "logit"]


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


def test_rows_most_likely_bad_come_first_in_two_steps(fits, pages):
    assert "<h2>Smallest weights</h2>" not in pages["hbk"]
    assert "Most likely bad rows" not in pages["hbk"]  # the short table of the summary
    rows = re.search(r"<h2>Rows most likely bad</h2>(.*?)</section>", pages["hbk"], re.DOTALL)[1]
    names = re.findall(r'<th scope="row">(\d+)</th>', rows)
    likely = np.flatnonzero(np.asarray(fits["hbk"].prob_bad) >= 0.01)
    assert sorted(map(int, names)) == list(likely) == list(range(10))
    assert '<th scope="col">prob bad</th>' in rows
    assert "65 rows with a prob_bad below 0.01 are not shown." in rows


def test_clean_rows_are_no_suspects():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(50)
    results = rrmstats.RRMOLS(x + rng.standard_normal(50), np.c_[np.ones(50), x]).fit()
    assert results.explanation == "none"
    heading, text = suspicious_text(results)
    assert heading == "Rows most likely bad" and text.startswith("<p>None.</p>")


def flagged_section(text):
    return re.search(r"<h2>Flagged rows</h2>(.*?)</section>", text, re.DOTALL)[1]


def listed(text):
    return re.findall(r'<th scope="row">(\d+)</th>', flagged_section(text))


@pytest.mark.parametrize("name", MODELS)
def test_all_flagged_rows_are_listed(name, fits, pages):
    flags = np.asarray(fits[name].outliers())
    assert sorted(map(int, listed(pages[name]))) == list(np.flatnonzero(flags))
    assert f"{flags.sum()} of {len(flags)} rows are flagged" in flagged_section(pages[name])
    assert ("<details" in flagged_section(pages[name])) == (flags.sum() > 20)


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
    names = re.findall(r'<th scope="row">(\d+)</th>', text)
    assert count > 30 and names == [str(i) for i in many.outlier_table().index]
    assert f"Show all {count} rows" in text and "listed" not in text
    monkeypatch.setattr("rrmstats.report.tables.MOST_LISTED", 25)
    text = flagged_text(many)
    assert re.findall(r'<th scope="row">(\d+)</th>', text) == names[:25]
    assert "The 25 of smallest weight are listed; outliers() has all." in text


def test_no_flagged_rows_are_no_table():
    z = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    assert flagged_text(rrmstats.RRMCov(z, 0.0).fit(steps=1)) == "<p>None at the level 97.5%.</p>"
