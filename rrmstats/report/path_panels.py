"""The panels of the page of a path, as plotly takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rrmstats.plotting.names import short_names
from rrmstats.plotting.offers import Array, FittedPath
from rrmstats.plotting.path_arrays import (
    band_floor,
    checked_terms,
    ever_flagged,
    is_far,
    jump_places,
    residual_kind,
    row_values,
)
from rrmstats.plotting.path_explanations import BAND as BAND_HEIGHT
from rrmstats.plotting.path_explanations import explanation_colors, explanation_runs
from rrmstats.plotting.paths import MOST_TERMS, term_limits
from rrmstats.report.path_rows import ShownRow, hover_text, plotly_text

Json = dict[str, Any]

BLUE, BAND, GRAY, LIGHT, VERMILLION, GREEN = (
    "#0072B2",
    "rgba(86, 180, 233, 0.3)",
    "#666666",
    "#CFCFCF",
    "#D55E00",
    "#009E73",
)
# Level of the cutoffs.
LEVEL = 0.975
TERMS_PER_ROW = 4
# Letters that have room above a coefficient; hovering tells all.
LONGEST_TITLE = 28
# Share of a panel's width and of a row's height between panels, and pixels of a row's height.
BETWEEN, UNDER = 0.05, 0.3
ROW_HEIGHT = 230


def all_panels(path: FittedPath, rows: Sequence[ShownRow]) -> dict[str, Json]:
    """Return the data and layout of each panel, by name."""
    return {
        "coefficients": coefficients_panel(path),
        "rows": rows_panel(path, rows),
        "residuals": residuals_panel(path, rows),
        "fit": fit_panel(path),
    }


def numbers(values: npt.ArrayLike) -> list[float | None]:
    """Return values as JSON knows them, with six digits and None for what is not finite."""
    return [
        float(f"{value:.6g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=float)
    ]


def line(x: npt.ArrayLike, y: npt.ArrayLike, axis: int, color: str, **style: Any) -> Json:
    """Return a line on one pair of axes."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(x),
        "y": numbers(y),
        "xaxis": axis_name("x", axis),
        "yaxis": axis_name("y", axis),
        "line": {"color": color, "width": 2, **style},
        "showlegend": False,
    }


def axis_name(letter: str, axis: int) -> str:
    """Return plotly's name of an axis; the first has no number."""
    return letter if axis == 1 else f"{letter}{axis}"


def vertical_line(x: float, axis: int, color: str, dash: str, width: float) -> Json:
    """Return a line from the bottom to the top of one pair of axes."""
    return {
        "type": "line",
        "xref": axis_name("x", axis),
        "yref": axis_name("y", axis) + " domain",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "line": {"color": color, "dash": dash, "width": width},
    }


def frame_shape(axis: int) -> Json:
    """Return the frame of one pair of axes; plotly's own disappears behind highlighted lines."""
    return {
        "type": "rect",
        "xref": axis_name("x", axis) + " domain",
        "yref": axis_name("y", axis) + " domain",
        "x0": 0,
        "x1": 1,
        "y0": 0,
        "y1": 1,
        "line": {"color": GRAY, "width": 1},
    }


def places_shapes(path: FittedPath, axis: int) -> list[Json]:
    """Return the jumps and the chosen value as vertical lines on one pair of axes."""
    shapes = [vertical_line(float(x), axis, "black", "dash", 1) for x in jump_places(path)]
    if path.choice is None:
        return shapes
    return [*shapes, vertical_line(float(path.choice.eps_bar), axis, GREEN, "solid", 2.5)]


def explanation_shapes(path: FittedPath, axis: int) -> list[Json]:
    """Return the band above one pair of axes whose color tells the explanation of the rows."""
    runs = explanation_runs(path)
    colors = explanation_colors(runs)
    return [
        {
            "type": "rect",
            "xref": axis_name("x", axis),
            "yref": axis_name("y", axis) + " domain",
            "x0": run.left,
            "x1": run.right,
            "y0": 1,
            "y1": 1 + BAND_HEIGHT,
            "fillcolor": colors[run.name],
            "line": {"width": 0},
        }
        for run in runs
    ]


def base_layout(path: FittedPath, titles: Sequence[str], per_row: int, height: int) -> Json:
    """Return a layout of several pairs of axes in rows, with their titles."""
    rows = -(-len(titles) // per_row)
    layout: Json = {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 50, "b": 45},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"color": "black"}},
        "plot_bgcolor": "white",
        "shapes": [],
        "annotations": [],
    }
    wide = (1 - BETWEEN * (per_row - 1)) / per_row
    high = 1 / (rows + UNDER * (rows - 1))
    for number, title in enumerate(titles):
        row, column = divmod(number, per_row)
        left, top = column * (wide + BETWEEN), 1 - row * high * (1 + UNDER)
        domain = [left, left + wide], [max(top - high, 0.0), top]
        add_axes(layout, path, number + 1, domain, title)
    return layout


def add_axes(
    layout: Json, path: FittedPath, axis: int, domain: tuple[list[float], list[float]], title: str
) -> None:
    """Add one pair of axes to a layout."""
    ends = [float(path.eps_bars[0]), float(path.eps_bars[-1])]
    grid = {"gridcolor": "#EEEEEE"}
    number = "" if axis == 1 else str(axis)
    layout[f"xaxis{number}"] = {
        **grid,
        "domain": domain[0],
        "anchor": axis_name("y", axis),
        "title": {"text": "eps_bar", "standoff": 4},
        "range": [ends[0] - 0.01, ends[1] + 0.01],
        "zeroline": False,
    }
    layout[f"yaxis{number}"] = {
        **grid,
        "domain": domain[1],
        "anchor": axis_name("x", axis),
        "zerolinecolor": GRAY,
    }
    layout["shapes"] += [
        frame_shape(axis),
        *places_shapes(path, axis),
        *explanation_shapes(path, axis),
    ]
    layout["annotations"].append(
        {
            "text": f"<b>{plotly_text(title)}</b>",
            "xref": axis_name("x", axis) + " domain",
            "yref": axis_name("y", axis) + " domain",
            "x": 0.5,
            "y": 1 + BAND_HEIGHT,
            "yanchor": "bottom",
            "showarrow": False,
        }
    )


def coefficients_panel(path: FittedPath) -> Json:
    """Return the coefficients with their intervals, one pair of axes each."""
    terms = checked_terms(path.frame, None, MOST_TERMS)
    per_row = min(len(terms), TERMS_PER_ROW)
    rows = -(-len(terms) // per_row)
    layout = base_layout(path, short_names(terms, LONGEST_TITLE), per_row, 80 + ROW_HEIGHT * rows)
    data = []
    for axis, term in enumerate(terms, 1):
        frame = path.frame[path.frame["term"] == term]
        x, y = frame["eps_bar"].to_numpy(float), frame["estimate"].to_numpy(float)
        low, high = frame["lower"].to_numpy(float), frame["upper"].to_numpy(float)
        known = np.isfinite(low) & np.isfinite(high)
        around = np.r_[x[known], x[known][::-1]], np.r_[high[known], low[known][::-1]]
        band = line(*around, axis, "rgba(0, 0, 0, 0)", width=0)
        data.append({**band, "fill": "toself", "fillcolor": BAND, "hoverinfo": "skip"})
        estimate = line(x, y, axis, BLUE)
        estimate["customdata"] = [
            list(pair) for pair in zip(numbers(low), numbers(high), strict=True)
        ]
        estimate["meta"] = plotly_text(term)
        estimate["hovertemplate"] = (
            "<b>%{meta}</b><br>eps_bar = %{x}<br>estimate = %{y:.4g}<br>95 % interval: "
            "%{customdata[0]:.4g} to %{customdata[1]:.4g}<extra></extra>"
        )
        data.append(estimate)
        layout[f"yaxis{'' if axis == 1 else axis}"]["range"] = list(term_limits(y, low, high))
    return {"data": data, "layout": layout}


def row_lines(
    path: FittedPath, rows: Sequence[ShownRow], values: Array, heights: Array, name: str
) -> list[Json]:
    """Return the line of each row at given heights, in the order of the rows.

    Parameters
    ----------
    path : path of any model
    rows : sequence of ShownRow
    values, heights : ndarray, shape (n, m)
        What hovering tells, and where the line is drawn.
    name : str
        What the values are.
    """
    flagged = ever_flagged(path)
    data = []
    for row in rows:
        color, width = (VERMILLION, 1.2) if flagged[row.position] else (LIGHT, 0.9)
        drawn = line(path.eps_bars, heights[row.position], 1, color, width=width)
        drawn["customdata"] = numbers(values[row.position])
        drawn["meta"] = hover_text(row, path.unit)
        drawn["hovertemplate"] = (
            f"%{{meta}}<br><i>eps_bar = %{{x}}<br>{name} = %{{customdata:.4g}}</i><extra></extra>"
        )
        data.append(drawn)
    return data


def rows_panel(path: FittedPath, rows: Sequence[ShownRow]) -> Json:
    """Return how likely the rows or groups are bad, or their weights; trace k is the k-th row."""
    shown = row_values(path)
    layout = base_layout(path, [f"{shown.title} of the {path.unit}s"], 1, 480)
    layout["yaxis"] |= {"title": {"text": shown.name}, "rangemode": "tozero"}
    data = row_lines(path, rows, shown.values, shown.values, shown.name)
    return {"data": data, "layout": layout}


def residuals_panel(path: FittedPath, rows: Sequence[ShownRow]) -> Json:
    """Return the residuals of the rows with the band of clean ones; trace k is the k-th row."""
    name, cutoff = residual_kind(path, LEVEL)
    values = np.asarray(path.residuals, dtype=float)
    layout = base_layout(
        path, [f"{'Residuals' if path.unit == 'row' else 'Distances'} of the {path.unit}s"], 1, 480
    )
    layout["yaxis"]["title"] = {"text": name}
    layout["shapes"].insert(0, band_shape(path, band_floor(path, cutoff), cutoff))
    heights = values
    if is_far(values, cutoff):
        heights = log_outside(values, float(cutoff.max()))
        layout["yaxis"] |= log_ticks(values, float(cutoff.max()))
    return {"data": row_lines(path, rows, values, heights, name), "layout": layout}


def log_outside(values: Array, unit: float) -> Array:
    """Return heights of values on an axis that is logarithmic beyond a unit on either side."""
    far = np.maximum(np.abs(values) / unit, 1.0)
    return np.clip(values, -unit, unit) * (1 + np.log10(far))


def log_ticks(values: Array, unit: float) -> Json:
    """Return the ticks of an axis that is logarithmic beyond a unit on either side."""
    finite = values[np.isfinite(values)]
    powers = 10.0 ** np.arange(np.ceil(np.log10(unit)), np.log10(np.abs(finite).max()) + 1)
    ticks = np.r_[-powers[::-1], -unit, 0.0, unit, powers]
    ticks = ticks[(ticks >= min(finite.min(), 0.0)) & (ticks <= finite.max())]
    return {
        "tickvals": numbers(log_outside(ticks, unit)),
        "ticktext": [f"{tick:.3g}" for tick in ticks],
    }


def band_shape(path: FittedPath, low: Array, high: Array) -> Json:
    """Return the band between two limits at each value, shape (m,), below all lines."""
    x = np.asarray(path.eps_bars, dtype=float)
    corners = zip(numbers(np.r_[x, x[::-1]]), numbers(np.r_[high, low[::-1]]), strict=True)
    return {
        "type": "path",
        "path": "M" + " L".join(f"{a},{b}" for a, b in corners) + " Z",
        "layer": "below",
        "fillcolor": "rgba(240, 228, 66, 0.2)",
        "line": {"color": GRAY, "dash": "dot", "width": 1},
    }


def fit_panel(path: FittedPath) -> Json:
    """Return the scale, if there is one, and the contamination."""
    frame = path.frame.drop_duplicates("eps_bar")
    x = frame["eps_bar"].to_numpy(float)
    has_scale = frame["scale"].nunique() > 1
    titles = ["Scale", "Contamination"] if has_scale else ["Contamination"]
    layout = base_layout(path, titles, len(titles), 330)
    data = []
    if has_scale:
        data.append({**line(x, frame["scale"], 1, BLUE), "name": "scale"})
        layout["yaxis"]["rangemode"] = "tozero"
    axis = len(titles)
    share = frame["n_flagged"].to_numpy(float) / len(path.weights)
    lines = [
        ("eps_bar itself", x, GRAY, "dot"),
        ("estimated contamination, eps_hat", frame["eps_hat"].to_numpy(float), BLUE, "solid"),
        (f"share of {path.unit}s flagged", share, "black", "dashdot"),
    ]
    for name, y, color, dash in lines:
        if not np.isfinite(y).any():
            continue
        drawn = line(x, y, axis, color, dash=dash)
        data.append({**drawn, "name": name, "showlegend": True})
    layout["legend"] = {"orientation": "h", "x": 1, "xanchor": "right", "y": -0.25}
    for drawn in data:
        drawn["hovertemplate"] = "%{fullData.name}<br>eps_bar = %{x}<br>%{y:.4g}<extra></extra>"
    return {"data": data, "layout": layout}
