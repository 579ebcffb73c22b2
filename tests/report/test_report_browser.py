"""The tables of a report in a browser."""

import numpy as np
import pytest

import rrmstats

from .chromium import CHROMIUM, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

TABLE = "document.querySelectorAll('table.sortable')[1]"
ROWS = f"[...{TABLE}.tBodies[0].rows]"


@pytest.fixture(scope="module")
def fit():
    z = np.random.default_rng(0).standard_normal((120, 2))
    z[:30] += 10
    return rrmstats.RRMCov(z, 0.3).fit(steps=1)


@pytest.fixture(scope="module")
def page(fit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    browser = Browser(folder)
    browser.open(fit.report(folder / "fit.html"))
    yield browser
    browser.close()


def column(page, number):
    return page.run(f"{ROWS}.map(row => row.cells[{number}].textContent)")


def test_clicks_and_keys_on_a_heading_sort_the_rows(page, fit):
    first = column(page, 0)
    assert first == [str(i) for i in fit.outlier_table().index]
    # Positions as numbers: 2 before 10.
    page.run(f"{TABLE}.tHead.rows[0].cells[0].querySelector('button').click()")
    assert column(page, 0) == sorted(first, key=int) != sorted(first)
    head = f"{TABLE}.tHead.rows[0].cells[1]"
    page.run(f"{head}.querySelector('button').focus()")
    for direction in ("ascending", "descending"):
        for kind in ("keyDown", "keyUp"):
            enter = {"key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}
            page.ask("Input.dispatchKeyEvent", type=kind, **enter)
        losses = [float(text) for text in column(page, 1)]
        assert losses == sorted(losses, reverse=direction == "descending")
        assert page.run(f"{head}.getAttribute('aria-sort')") == direction
    assert page.run(f"{TABLE}.querySelectorAll('[aria-sort]').length") == 1
    assert sorted(column(page, 0)) == sorted(first)


def test_rows_past_twenty_are_folded(page, fit):
    shown = f"{ROWS}.filter(row => row.offsetParent !== null).length"
    assert page.run(shown) == 20
    page.run("document.querySelector('details.fold summary').click()")
    assert page.run(shown) == fit.outliers().sum() > 20
    assert page.complaints == []


def test_headings_show_that_they_sort(page):
    mark = "getComputedStyle({}.tHead.rows[0].cells[3].querySelector('button'), '::after').content"
    assert page.run(mark.format(TABLE)) == '" \u2195"'
