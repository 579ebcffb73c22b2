"""The fits along a grid of eps_bar as one interactive page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from rrmstats.files import check_target, write_whole
from rrmstats.optional import require
from rrmstats.plotting import paths
from rrmstats.plotting.any_model import axis_places, compressed_ticks
from rrmstats.plotting.canvas import BLUE, GRAY, LEVEL, VERMILLION, short_names
from rrmstats.plotting.catalog import Array, FittedPath, checked_picture
from rrmstats.report.page import (
    asset,
    document,
    pairs_table,
    provenance_pairs,
    section,
    table_html,
    value_text,
)

Json = dict[str, Any]

# Nothing is loaded from anywhere: scripts and styles are in the page.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)
# What is said besides where weights are of groups.
GROUP_NOTE = (
    " All rows of a group share its weight. Its distance is the mean loss of its rows as a "
    "standard normal score of good groups."
)
SKY, LIGHT, GREEN = "rgba(86, 180, 233, 0.3)", "#CFCFCF", "#009E73"


class ShownRow(NamedTuple):
    """A row that the page shows, or a group where groups have the weights.

    Attributes
    ----------
    position : int
    name : str
    leaves : float or None
        Where the row leaves: it becomes more likely bad than good, or in one step loses half its
        weight; None if nowhere.
    values : list of (str, str)
        Its variables by name; of a group the number of rows and their means.
    """

    position: int
    name: str
    leaves: float | None
    values: list[tuple[str, str]]


def write_path_report(
    path: FittedPath, file: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Write the fits along a grid of eps_bar as one interactive HTML page.

    Coefficients, how likely rows are bad (in one step their weights), residuals and the
    share of bad rows, with the data of each row on hovering; clicking a row highlights it in
    every panel. The file does not load anything else. Of more than 300 rows those most likely
    bad, or of smallest weight, are drawn.

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
    rows, shown, unit = shown_rows(path), paths.row_values(path), path.unit
    formula = getattr(path.model, "formula", None)
    heading = f"Path of {type(path.model).__name__}" + (f": {formula}" if formula else "")
    total, terms = len(path.weights), path.frame["term"].nunique()
    drawn = f"All {total} {unit}s are drawn."
    if len(rows) < total:
        drawn = f"{len(rows)} of {total} {unit}s are drawn: flagged ones and {shown.worst}."
    signs = "".join(f"<li>{escape(str(sign))}</li>\n" for sign in path.signs)
    changes = "<p>No coefficient changes its sign or its significance.</p>"
    cut = f"<p>{paths.MOST_TERMS} of {terms} coefficients, those that change most.</p>"
    heads = [unit, "", "leaves at", *(name for name, _ in rows[0].values)]
    content = {
        "unit": unit,
        "panels": all_panels(path, rows),
        "rows": [{**row._asdict(), "shown": plotly_text(row.name)} for row in rows],
    }
    body = Template(asset("path.html")).substitute(
        unit=unit,
        leave=shown.leave,
        values=shown.title,
        residuals=residuals_name(path),
        group_note=GROUP_NOTE if unit == "group" else "",
        choice="" if path.choice is None else f'<p id="choice">{escape(path.choice.reason)}</p>',
        drawn=drawn,
        names="".join(f'<option value="{escape(row.name)}"></option>' for row in rows),
        terms=cut if terms > paths.MOST_TERMS else "",
        explanations=explanations_section(path),
        chosen_head="".join(f"<th>{escape(name)}</th>" for name in heads),
        jumps=jumps_table(path, rows),
        signs=f'<ul id="signs">\n{signs}</ul>' if signs else changes,
        provenance=pairs_table(provenance_pairs(path.model)),
        plotly=import_module("plotly.offline").get_plotlyjs(),
        # A label could otherwise end the element.
        data=json.dumps(content, allow_nan=False).replace("<", "\\u003c"),
        script=asset("path.js"),
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return document(title or heading, [body], head, asset("style.css") + asset("path.css"))


def residuals_name(path: FittedPath) -> str:
    """Return what tells how far out rows or groups are."""
    return "residuals" if path.unit == "row" else "distances"


def explanations_section(path: FittedPath) -> str:
    """Return the explanations along the path as a table with their colors; nothing in one step."""
    runs, rows = paths.explanation_runs(path), []
    colors, fits = paths.explanation_colors(runs), path.frame.drop_duplicates("eps_bar")
    for run in runs:
        some = fits.iloc[[run.first, run.last]]
        told = {"": f'<span style="background: {colors[run.name]}">&emsp;</span>'}
        for name, form in (("eps_bar", "{:g}"), ("eps_hat", "{:.3f}"), ("n_flagged", "{}")):
            told[name] = " to ".join(dict.fromkeys(map(form.format, some[name])))
        rows.append({**told, "explanation": run.name})
    note = f"<p>What the second step says of the {path.unit}s, in the colors of the bands.</p>"
    table = table_html(pd.DataFrame(rows), "words", index=False, escape=False)
    return section("Explanations", note, table) if runs else ""


def jumps_table(path: FittedPath, rows: Sequence[ShownRow]) -> str:
    """Return the jumps as a table, with a button each that highlights what leaves."""
    if not len(path.jumps):
        return "<p>There are none: no estimate changes abruptly.</p>"
    unit, names, jumps = path.unit, paths.row_names(path), path.jumps
    leave, back = (
        [np.flatnonzero(path.weights.index.isin(list(some))) for some in jumps[f"{unit}s{end}"]]
        for end in ("", "_back")
    )
    table = pd.DataFrame(
        {
            "between": jumps["eps_bar_from"].map("{:g}".format),
            "and": jumps["eps_bar_to"].map("{:g}".format),
            "p-value": jumps["pvalue"].map("{:.2g}".format),
            "coefficients that jump": [", ".join(map(str, t)) or "none" for t in jumps["terms"]],
            f"{unit}s that leave": [paths.rows_text(some, names, unit) for some in leave],
            f"{unit}s that come back": [paths.rows_text(some, names, unit) for some in back],
        }
    ).map(escape)
    numbers = {row.position: k for k, row in enumerate(rows)}
    drawn = [[numbers[int(row)] for row in some if row in numbers] for some in leave]
    button = '<button type="button" data-rows="{}">highlight</button>'
    table[""] = [button.format(some) if some else "" for some in drawn]
    note = (
        f"<p>At a jump coefficients change by more than their errors allow, or {unit}s are lost "
        "because another minimum of the risk has become the lowest.</p>"
    )
    return note + table_html(table, "words", index=False, escape=False)


def shown_rows(path: FittedPath, most: int = 300) -> list[ShownRow]:
    """Return the rows to show in the order of the data: at most `most`, flagged ones first."""
    rows = np.sort(paths.most_suspicious(path, most))
    names, frame = paths.row_names(path), row_data(path.model, len(path.model.endog))
    if path.unit == "group":
        codes = path.weights.index.get_indexer(path.model.groups)
        frame = frame.select_dtypes("number").groupby(codes).mean().add_prefix("mean ")
        frame.insert(0, "rows", np.bincount(codes))
    below, shown = path.leaves["below_half"].to_numpy(float), []
    for row, values in zip(rows, frame.iloc[rows].itertuples(index=False), strict=True):
        texts = [value_text(value) for value in values]
        texts = [t if len(t) <= 60 else f"{t[:57]}..." for t in texts]
        leaves = None if np.isnan(below[row]) else float(below[row])
        pairs = list(zip(map(str, frame), texts, strict=True))
        shown.append(ShownRow(int(row), names[row], leaves, pairs))
    return shown


def row_data(model: Any, count: int) -> pd.DataFrame:
    """Return all variables of the rows of a fit: those of the user's frame, or of the arrays."""
    frame, labels = getattr(model.data, "frame", None), model.data.row_labels
    if isinstance(frame, pd.DataFrame) and frame.columns.is_unique:
        if len(frame) == count:
            return frame
        if labels is not None and frame.index.is_unique:
            return frame.loc[labels]
    exog = getattr(model, "exog", None)
    if np.ndim(model.endog) == 2 or exog is None:
        return pd.DataFrame(np.asarray(model.endog), columns=getattr(model, "variables", None))
    names = list(model.exog_names)
    if len(names) != np.shape(exog)[1]:  # parameters that are not one per column
        names = [f"x{i + 1}" for i in range(np.shape(exog)[1])]
    table = pd.DataFrame(np.asarray(exog), columns=names)
    table.insert(0, str(model.endog_names), np.asarray(model.endog), allow_duplicates=True)
    return table.iloc[:, np.flatnonzero((table.nunique() > 1).to_numpy())]


def plotly_text(text: str) -> str:
    """Return a text such that plotly shows it as it is: no tags, entities or templates."""
    return escape(text, quote=False).replace("%{", "&#37;{")


def hover_text(row: ShownRow, unit: str = "row") -> str:
    """Return what hovering over the line of a row or group shows, in the markup of plotly."""
    some, more = row.values[:15], len(row.values) - 15
    lines = [f"<b>{unit} {plotly_text(row.name)}</b>"]
    lines += [f"{plotly_text(name)} = {plotly_text(value)}" for name, value in some]
    return "<br>".join([*lines, f"and {more} more variables"] if more > 0 else lines)


def numbers(values: npt.ArrayLike) -> list[float | None]:
    """Return values as JSON knows them, with six digits and None for what is not finite."""
    return [
        float(f"{value:.6g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=float)
    ]


def all_panels(path: FittedPath, rows: Sequence[ShownRow]) -> dict[str, Json]:
    """Return the data and layout of each panel, by name; trace k of those of rows is the k-th."""
    shown, residuals = paths.row_values(path), paths.path_residuals(path, LEVEL)
    of_rows = subplots([f"{shown.title} of the {path.unit}s"])
    of_rows.add_traces(row_lines(path, rows, shown.values, shown.values, shown.name))
    of_rows.update_yaxes(title_text=shown.name, rangemode="tozero")
    far_out = subplots([f"{residuals_name(path).capitalize()} of the {path.unit}s"])
    unit, values = float(residuals.high.max()) if residuals.far else np.inf, residuals.values
    heights, low, high = (axis_places(a, unit) for a in (values, residuals.low, residuals.high))
    if residuals.far:
        ticks = compressed_ticks(float(np.nanmin(values)), float(np.nanmax(values)), unit)
        texts = [f"{tick:g}" for tick in ticks]
        far_out.update_yaxes(tickvals=numbers(axis_places(ticks, unit)), ticktext=texts)
    far_out.add_traces(row_lines(path, rows, residuals.values, heights, residuals.name))
    far_out.update_yaxes(title_text=residuals.name)
    around = np.r_[path.eps_bars, path.eps_bars[::-1]], np.r_[high, low[::-1]]
    corners = " L".join(f"{a},{b}" for a, b in zip(*map(numbers, around), strict=True))
    edge = {"color": GRAY, "dash": "dot", "width": 1}
    shape = {"type": "path", "path": f"M{corners} Z", "layer": "below", "line": edge}
    far_out.add_shape(**shape, fillcolor="rgba(240, 228, 66, 0.2)")
    return {
        "coefficients": coefficients_panel(path),
        "rows": finished(of_rows, path, 480),
        "residuals": finished(far_out, path, 480),
        "fit": fit_panel(path),
    }


def subplots(titles: Sequence[str], per_row: int = 1) -> Any:
    """Return a figure of plotly with a panel for each title, in rows."""
    rows = -(-len(titles) // per_row)
    cells = np.arange(rows * per_row).reshape(rows, per_row)
    return import_module("plotly.subplots").make_subplots(
        rows,
        per_row,
        specs=[[{} if cell < len(titles) else None for cell in line] for line in cells],
        subplot_titles=[f"<b>{plotly_text(title)}</b>" for title in titles],
        horizontal_spacing=0.05,
        vertical_spacing=0.3 / (rows + 0.3 * (rows - 1)),  # of the height of a row
    )


def finished(fig: Any, path: FittedPath, height: int) -> Json:
    """Return a figure as JSON, with jumps, the chosen value and explanations in every panel."""
    for place in paths.jump_places(path):
        fig.add_vline(float(place), line={"color": "black", "dash": "dash", "width": 1})
    if path.choice is not None:
        fig.add_vline(float(path.choice.eps_bar), line={"color": GREEN, "width": 2.5})
    runs = paths.explanation_runs(path)
    colors = paths.explanation_colors(runs)
    for run in runs:  # a band above each panel
        band: Json = {"y0": 1, "y1": 1 + paths.BAND, "line_width": 0}
        fig.add_vrect(run.left, run.right, fillcolor=colors[run.name], **band)
    for number in (axis.anchor[1:] for axis in fig.select_xaxes()):
        # The frame of plotly disappears behind highlighted lines.
        frame = {"xref": f"x{number} domain", "yref": f"y{number} domain", "type": "rect"}
        fig.add_shape(**frame, x0=0, x1=1, y0=0, y1=1, line={"color": GRAY, "width": 1})
    ends = [float(path.eps_bars[0]) - 0.01, float(path.eps_bars[-1]) + 0.01]
    below = {"text": "eps_bar", "standoff": 4}
    fig.update_xaxes(range=ends, title=below, gridcolor="#EEEEEE", zeroline=False)
    fig.update_yaxes(gridcolor="#EEEEEE", zerolinecolor=GRAY)
    fig.update_annotations(font_size=12, yshift=13)
    fig.update_layout(
        template=None,
        height=height,
        margin={"l": 60, "r": 20, "t": 50, "b": 45},
        hovermode="closest",
        hoverlabel={"align": "left", "bgcolor": "white", "font": {"color": "black"}},
        plot_bgcolor="white",
    )
    return fig.to_plotly_json()


def line(x: npt.ArrayLike, y: npt.ArrayLike, color: str, **style: Any) -> Json:
    """Return a line as plotly takes it."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(x),
        "y": numbers(y),
        "line": {"color": color, "width": 2, **style},
        "showlegend": False,
    }


def row_lines(
    path: FittedPath, rows: Iterable[ShownRow], values: Array, heights: Array, name: str
) -> list[Json]:
    """Return the line of each row at given heights, in the order of the rows.

    Parameters
    ----------
    path : path of any model
    rows : iterable of ShownRow
    values, heights : ndarray, shape (n, m)
        What hovering tells, and where the line is drawn.
    name : str
        What the values are.
    """
    flagged, data = paths.ever_flagged(path), []
    text = f"%{{meta}}<br><i>eps_bar = %{{x}}<br>{name} = %{{customdata:.4g}}</i><extra></extra>"
    for row in rows:
        color, width = (VERMILLION, 1.2) if flagged[row.position] else (LIGHT, 0.9)
        told = {"customdata": numbers(values[row.position]), "meta": hover_text(row, path.unit)}
        drawn = line(path.eps_bars, heights[row.position], color, width=width)
        data.append({**drawn, **told, "hovertemplate": text})
    return data


def coefficients_panel(path: FittedPath) -> Json:
    """Return the coefficients with their intervals, one pair of axes each."""
    terms = paths.shown_terms(path.frame, None, paths.MOST_TERMS)
    per_row = min(len(terms), 4)
    fig = subplots(short_names(terms), per_row)
    told = (
        "<b>%{meta}</b><br>eps_bar = %{x}<br>estimate = %{y:.4g}<br>95 % interval: "
        "%{customdata[0]:.4g} to %{customdata[1]:.4g}<extra></extra>"
    )
    for number, term in enumerate(terms):
        place = {"row": number // per_row + 1, "col": number % per_row + 1}
        y, low, high, limits = paths.term_values(path, term)
        known = np.isfinite(low) & np.isfinite(high)
        x = path.eps_bars[known]
        band = line(np.r_[x, x[::-1]], np.r_[high[known], low[known][::-1]], SKY, width=0)
        fig.add_trace({**band, "fill": "toself", "fillcolor": SKY, "hoverinfo": "skip"}, **place)
        between = [list(pair) for pair in zip(numbers(low), numbers(high), strict=True)]
        estimate = {"customdata": between, "meta": plotly_text(term), "hovertemplate": told}
        fig.add_trace({**line(path.eps_bars, y, BLUE), **estimate}, **place)
        fig.update_yaxes(range=list(limits), **place)
    return finished(fig, path, 80 + 230 * -(-len(terms) // per_row))


def fit_panel(path: FittedPath) -> Json:
    """Return the scale, if there is one, and the share of bad rows."""
    frame = path.frame.drop_duplicates("eps_bar")
    x, share = frame["eps_bar"], frame["n_flagged"].to_numpy(float) / len(path.weights)
    titles = ["Scale", "Share of bad rows"][frame["scale"].nunique() < 2 :]
    fig, last = subplots(titles, len(titles)), len(titles)
    told = {"hovertemplate": "%{fullData.name}<br>eps_bar = %{x}<br>%{y:.4g}<extra></extra>"}
    for column, name, y, color, dash in (
        (last - 1, "scale", frame["scale"], BLUE, "solid"),
        (last, "eps_bar itself", x, GRAY, "dot"),
        (last, "estimated share of bad rows, eps_hat", frame["eps_hat"], BLUE, "solid"),
        (last, f"share of {path.unit}s flagged", share, "black", "dashdot"),
    ):
        if column and np.isfinite(np.asarray(y, dtype=float)).any():
            drawn = {**line(x, y, color, dash=dash), "name": name, **told}
            fig.add_trace({**drawn, "showlegend": column == last}, row=1, col=column)
    if last == 2:
        fig.update_yaxes(rangemode="tozero", row=1, col=1)
    fig.update_layout(legend={"orientation": "h", "x": 1, "xanchor": "right", "y": -0.25})
    return finished(fig, path, 330)
