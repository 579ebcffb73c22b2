"""The fits along a grid of eps_bar as one interactive page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from importlib import import_module
from pathlib import Path

from rrmstats.files import check_target, write_whole
from rrmstats.optional import require
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.offers import FittedPath
from rrmstats.plotting.path_arrays import row_names, row_values, rows_text
from rrmstats.plotting.path_explanations import explanation_colors, explanation_runs
from rrmstats.plotting.paths import MOST_TERMS
from rrmstats.report.page import document, section
from rrmstats.report.path_panels import all_panels
from rrmstats.report.path_rows import ShownRow, plotly_text, positions_by_label, shown_rows
from rrmstats.report.provenance import provenance_pairs
from rrmstats.report.style import PATH_STYLE
from rrmstats.report.tables import pairs_table, table_text

# Nothing is loaded from anywhere: scripts and styles are in the page.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)
HOW_TO_READ = """
<p>eps_bar is the largest fraction of corrupted rows that a fit allows for. At 0 it is the
classical fit; the larger it is, the more {unit}s may be bad. Estimates that stay the
same over a wide range of eps_bar can be trusted; where they jump, some {unit}s have left the
fit: they {leave}.{note}</p>
<ul>
<li>Hover over a line to see the {unit} and its data.</li>
<li>Click a line to highlight the {unit} in every panel; click it again to release it. Panels
without {unit}s show a highlighted {unit} by a dotted line where it leaves.</li>
<li>Drag to zoom in, double-click to zoom out.</li>
</ul>
<p>Orange {unit}s are outliers at some value of eps_bar, gray ones at none. Dashed vertical lines
are jumps; a solid green one is the chosen value. The bands are 95 % confidence intervals, and
among {residuals} where 97.5 % of clean {unit}s lie.</p>
"""
JUMP_NOTE = """
<p>At a jump coefficients change by more than their errors allow, or {unit}s are lost because
another minimum of the risk has become the lowest.</p>
"""
EXPLANATION_NOTE = """
<p>What the second step says of the {unit}s; the band above each panel has these colors.</p>
"""
# What is said besides where weights are of groups.
GROUP_NOTE = """ All rows of a group share its weight. Its distance is the mean loss of its rows as
a standard normal score of good groups."""


def write_path_report(
    path: FittedPath, file: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Write the fits along a grid of eps_bar as one interactive HTML page.

    Coefficients, how likely rows are bad (in one step their weights), residuals and
    contamination, with the data of each row on hovering; clicking a row highlights it in every
    panel. The file does not load anything else. Of more than 300 rows those most likely bad, or
    of smallest weight, are drawn.

    Parameters
    ----------
    path : path of any model
    file : str or path
        Path of the file. An existing file is replaced only after the new one has been written
        completely.
    title : str, optional
        Title of the page.

    Returns
    -------
    pathlib.Path
        Path of the file.

    Raises
    ------
    ImportError
        If plotly is not installed; ``pip install "rrmstats[interactive]"`` installs it.
    OSError
        If the directory does not exist or cannot be written to.

    Examples
    --------
    >>> import tempfile, rrmstats
    >>> from rrmstats.report import write_path_report
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> path = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).path([0, 0.1, 0.2, 0.3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_path_report(path, f"{folder}/path.html").read_text(encoding="utf-8")
    >>> text.count("<script src"), text.count("<link")
    (0, 0)
    """
    target = Path(file)
    check_target(target)
    write_whole(target, path_page(path, title))
    return target


def path_page(path: FittedPath, title: str | None = None) -> str:
    """Return the fits along a grid of eps_bar as the text of an HTML page."""
    checked_picture("plot_path", path)
    require("plotly", "interactive")
    rows = shown_rows(path)
    formula = getattr(path.model, "formula", None)
    model = type(path.model).__name__
    heading = title or f"Path of {model}" + ("" if formula is None else f": {formula}")
    sections = [
        section("How to read this page", how_to_read(path), choice_text(path)),
        section(f"Find a {path.unit}", finder_text(path, rows)),
        section("Coefficients", terms_note(path), panel_text("coefficients")),
        section(
            f"{row_values(path).title} and {residuals_name(path)}",
            pair_text("rows", "residuals"),
        ),
        section("Scale and contamination", panel_text("fit")),
        *explanations_section(path),
        section(f"Highlighted {path.unit}s", chosen_table(path, rows)),
        section("Jumps", jumps_table(path, rows)),
        section("What changes along the path", signs_text(path)),
        section("Provenance", pairs_table(provenance_pairs(path.model))),
    ]
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    scripts = scripts_text(path, rows)
    return document(heading, [*sections, scripts], head, PATH_STYLE)


def scripts_text(path: FittedPath, rows: Sequence[ShownRow]) -> str:
    """Return plotly, the data and the script of the page."""
    content = {
        "unit": path.unit,
        "panels": all_panels(path, rows),
        "rows": [
            {
                "name": row.name,
                "shown": plotly_text(row.name),
                "leaves": row.leaves,
                "values": row.values,
            }
            for row in rows
        ],
    }
    # A label could otherwise end the element.
    data = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    plotly = import_module("plotly.offline").get_plotlyjs()
    own = Path(__file__).with_name("path.js").read_text(encoding="utf-8")
    return (
        f"<script>{plotly}</script>\n"
        f'<script type="application/json" id="path-data">{data}</script>\n'
        f"<script>\n{own}</script>"
    )


def residuals_name(path: FittedPath) -> str:
    """Return what tells how far out rows or groups are."""
    return "residuals" if path.unit == "row" else "distances"


def how_to_read(path: FittedPath) -> str:
    """Return what the page shows, of rows or of groups."""
    note = GROUP_NOTE if path.unit == "group" else ""
    return HOW_TO_READ.format(
        unit=path.unit, residuals=residuals_name(path), note=note, leave=row_values(path).leave
    )


def choice_text(path: FittedPath) -> str:
    """Return the chosen value with its reason."""
    return "" if path.choice is None else f'<p id="choice">{escape(path.choice.reason)}</p>'


def signs_text(path: FittedPath) -> str:
    """Return what the path shows, as a list."""
    if not path.signs:
        return "<p>No coefficient changes its sign or its significance.</p>"
    items = "\n".join(f"<li>{escape(str(sign))}</li>" for sign in path.signs)
    return f'<ul id="signs">\n{items}\n</ul>'


def terms_note(path: FittedPath) -> str:
    """Return which coefficients are shown, if not all of them."""
    known = path.frame["term"].nunique()
    if known <= MOST_TERMS:
        return ""
    return f"<p>{MOST_TERMS} of {known} coefficients, those that change most.</p>"


def finder_text(path: FittedPath, rows: Sequence[ShownRow]) -> str:
    """Return the box in which a row or group can be found, and how many there are."""
    total, unit = len(path.weights), path.unit
    options = "".join(f'<option value="{escape(row.name)}"></option>' for row in rows)
    note = f"All {total} {unit}s are drawn."
    if len(rows) < total:
        worst = row_values(path).worst
        note = f"{len(rows)} of {total} {unit}s are drawn: outliers and {worst}."
    return (
        f"<p>{note}</p>\n"
        f'<p><label>Highlight the {unit} <input id="find" type="search" list="names" '
        'placeholder="its label"></label> '
        '<button type="button" id="release">Release all</button> '
        f'<span id="not-found" hidden>No {unit} that is drawn has this label.</span></p>\n'
        f'<datalist id="names">{options}</datalist>'
    )


def chosen_table(path: FittedPath, rows: Sequence[ShownRow]) -> str:
    """Return the table of highlighted rows or groups, which the script fills."""
    names = [path.unit, "", "leaves at", *(name for name, _ in rows[0].values)]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return (
        '<p id="none-chosen">None. Click a line above.</p>\n'
        f'<div class="wide" id="chosen" hidden><table><thead><tr>{head}</tr></thead>'
        '<tbody id="chosen-rows"></tbody></table></div>'
    )


def explanations_section(path: FittedPath) -> list[str]:
    """Return the explanations along the path as a table with their colors; nothing in one step."""
    runs = explanation_runs(path)
    colors, fits = explanation_colors(runs), path.frame.drop_duplicates("eps_bar")
    if not runs:
        return []
    titles = ("", "eps_bar", "explanation", "eps_hat", "flagged")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = []
    for run in runs:
        some = fits.iloc[run.first : run.last + 1]
        square = f'<td style="background: {colors[run.name]}; width: 1.5rem"></td>'
        texts = [
            range_text([f"{value:g}" for value in some["eps_bar"]]),
            run.name,
            range_text([f"{value:.3f}" for value in some["eps_hat"]]),
            range_text([f"{value}" for value in some["n_flagged"]]),
        ]
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        body.append(f"<tr>{square}{cells}</tr>")
    table = table_text(f"<tr>{head}</tr>", body, kind="words")
    return [section("Explanations", EXPLANATION_NOTE.format(unit=path.unit) + table)]


def range_text(values: Sequence[str]) -> str:
    """Return the first and the last of some values, or the one that they share."""
    return values[0] if len(set(values)) == 1 else f"{values[0]} to {values[-1]}"


def panel_text(name: str) -> str:
    """Return the place of a panel."""
    return f'<div class="panel" id="{name}"></div>'


def pair_text(*names: str) -> str:
    """Return the places of panels side by side."""
    return f'<div class="pair">{"".join(panel_text(name) for name in names)}</div>'


def jumps_table(path: FittedPath, rows: Sequence[ShownRow]) -> str:
    """Return the jumps as a table, with a button each that highlights what leaves."""
    if not len(path.jumps):
        return "<p>There are none: no estimate changes abruptly.</p>"
    titles = (
        "between",
        "and",
        "p-value",
        "coefficients that jump",
        f"{path.unit}s that leave",
        f"{path.unit}s that come back",
        "",
    )
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = [jump_row(path, rows, k) for k in range(len(path.jumps))]
    return JUMP_NOTE.format(unit=path.unit) + table_text(f"<tr>{head}</tr>", body, kind="words")


def jump_row(path: FittedPath, rows: Sequence[ShownRow], number: int) -> str:
    """Return one jump as a row of a table."""
    jump = path.jumps.iloc[number]
    numbers = {row.position: k for k, row in enumerate(rows)}
    leave, back = (positions_by_label(path, jump[f"{path.unit}s{end}"]) for end in ("", "_back"))
    names = row_names(path)
    drawn = [numbers[row] for row in leave if row in numbers]
    texts = [
        f"{jump['eps_bar_from']:g}",
        f"{jump['eps_bar_to']:g}",
        f"{jump['pvalue']:.2g}",
        ", ".join(str(term) for term in jump["terms"]) or "none",
        rows_text(leave, names, path.unit),
        rows_text(back, names, path.unit),
    ]
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    button = f'<button type="button" data-rows="{drawn}">highlight</button>' if drawn else ""
    return f"<tr>{cells}<td>{button}</td></tr>"
