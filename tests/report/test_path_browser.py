"""The page of a path in a browser, with labels and data that would be markup if not escaped."""

import pytest

import rrmstats
from rrmstats.report import write_path_report

from .chromium import CHROMIUM, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

HOSTILE = "<script>document.title='hacked'</script>%{x}&amp;"
LINES = "#{panel} path.js-line"
# Where a point of a row's line is in the window.
PLACE = """(() => {{
  const panel = document.getElementById("{panel}");
  panel.scrollIntoView({{block: "center"}});
  const box = panel.getBoundingClientRect();
  const {{xaxis, yaxis}} = panel._fullLayout;
  const {{x, y}} = panel.data[{row}];
  const k = x.length - 1;
  return [box.left + xaxis._offset + xaxis.d2p(x[k]), box.top + yaxis._offset + yaxis.d2p(y[k])];
}})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    frame = rrmstats.datasets.stars_cyg.load_pandas().data
    frame.index = [f"{HOSTILE}{i}" for i in range(len(frame))]
    frame["<img src=x onerror=alert(1)>"] = "</script><b>bold</b>"
    path = rrmstats.ols("log_light ~ log_te", frame, eps_bar=0.2).path(
        [0, 0.04, 0.06, 0.1, 0.2], steps=1
    )
    file = write_path_report(path, folder / "path.html", title=HOSTILE)
    browser = Browser(folder)
    browser.open(file)
    browser.wait("document.body.classList.contains('ready')")
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def nothing_highlighted(page):
    page.run("document.getElementById('release').click()")


def highlighted(page):
    """Return how many thick lines each panel of rows has, and the others per pair of axes."""
    counts = {}
    for panel in ("rows", "residuals"):
        widths = f"[...document.querySelectorAll('{LINES.format(panel=panel)}')]"
        counts[panel] = page.run(f"{widths}.filter(e => e.style.strokeWidth === '4px').length")
    for panel in ("coefficients", "fit"):
        paths = f"[...document.querySelectorAll('#{panel} .shapelayer path')]"
        counts[panel] = page.run(f"{paths}.filter(e => e.style.strokeWidth === '3px').length")
    return counts


def test_hovering_shows_the_label_and_the_data(page):
    x, y = page.run(PLACE.format(panel="residuals", row=33))
    page.move(x - 2, y)
    page.move(x, y)
    label = "[...document.querySelectorAll('#residuals .hovertext .nums tspan.line')]"
    page.wait(f"{label}.length > 0")
    lines = page.run(f"{label}.map(e => e.textContent)")
    assert lines[0] == f"row {HOSTILE}33"
    frame = rrmstats.datasets.stars_cyg.load_pandas().data
    assert lines[1:4] == [
        f"log_te = {frame['log_te'][33]:.4g}",
        f"log_light = {frame['log_light'][33]:.4g}",
        "<img src=x onerror=alert(1)> = </script><b>bold</b>",
    ]
    assert lines[4] == "eps_bar = 0.2" and lines[5].startswith("standardized residual = ")


def test_clicking_highlights_the_row_in_every_panel_and_again_releases_it(page):
    x, y = page.run(PLACE.format(panel="residuals", row=33))
    assert highlighted(page) == {"rows": 0, "residuals": 0, "coefficients": 0, "fit": 0}
    page.move(x, y)
    page.click(x, y)
    page.wait("document.querySelectorAll('#chosen-rows tr').length === 1")
    assert highlighted(page) == {"rows": 1, "residuals": 1, "coefficients": 2, "fit": 2}
    for panel in ("rows", "residuals"):
        assert page.run(f"document.getElementById('{panel}').data[33].line.width") == 4
    assert page.run("document.querySelector('#chosen-rows th').textContent") == f"{HOSTILE}33"
    page.wait("new Promise(done => setTimeout(() => done(true), 600))")  # not a double click
    page.click(x, y)
    page.wait("document.querySelectorAll('#chosen-rows tr').length === 0")
    assert highlighted(page) == {"rows": 0, "residuals": 0, "coefficients": 0, "fit": 0}


def test_a_row_can_be_found_by_its_label(page):
    page.run(
        "(() => { const box = document.getElementById('find'); "
        f'box.value = "{HOSTILE}10"; box.dispatchEvent(new Event("change")); }})()'
    )
    assert highlighted(page) == {"rows": 1, "residuals": 1, "coefficients": 2, "fit": 2}
    assert page.run("document.getElementById('rows').data[10].line.width") == 4
    page.run("document.querySelector('#chosen-rows button').click()")
    assert highlighted(page)["rows"] == 0


def test_the_rows_of_a_jump_are_highlighted_together(page):
    rows = page.run("JSON.parse(document.querySelector('button[data-rows]').dataset.rows)")
    page.run("document.querySelector('button[data-rows]').click()")
    assert len(rows) > 1
    assert highlighted(page)["rows"] == highlighted(page)["residuals"] == len(rows)


def test_nothing_is_loaded_sent_or_run_but_the_page_itself(page):
    assert all(address.startswith(("file:", "data:", "blob:")) for address in page.requests)
    assert sum(address.startswith("file:") for address in page.requests) == 1
    assert page.complaints == []
    assert page.run("document.title") == HOSTILE
    titles = page.run("[...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)")
    assert len(titles) == 16 and not any("loud" in title for title in titles)
    assert page.run("document.querySelectorAll('a[href^=http], img, iframe').length") == 0


def test_a_phone_needs_no_sideways_scrolling_of_the_page(page):
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=400,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    page.wait("document.documentElement.scrollWidth <= 400")  # once plotly has noticed
    # The many small panels keep a size at which they can be read, and scroll by themselves.
    assert page.run("document.getElementById('coefficients').offsetWidth") > 800
    page.ask("Emulation.clearDeviceMetricsOverride")
