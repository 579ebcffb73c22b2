"""Pictures of the tables of experiments; matplotlib is imported when the first is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replication.methods import ERM, METHODS
from rrmstats.plotting.canvas import WEIGHT_COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = dict(
    zip(
        METHODS,
        ("#a52a2a", "#7f7f7f", "#ff9f1c", "#2ca02c", "#1f77b4", "#6a3d9a", "#17becf"),
        strict=True,
    )
)


def new_figure(panels: int, size: tuple[float, float]) -> tuple[Figure, Sequence[Axes]]:
    """Return a matplotlib figure that no window shows, and its panels in a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def rendered(figure: Figure, form: str = "png", dpi: int = 100) -> bytes:
    """Return a matplotlib figure as the content of a file."""
    content = io.BytesIO()
    figure.savefig(content, format=form, dpi=dpi)
    return content.getvalue()


def draw_boxes(table: pd.DataFrame, title: str, measure: str) -> Figure:
    """Return boxes of the errors; whiskers reach to the extremes, red dots are means."""
    names = list(table["method"].unique())
    groups = [table.loc[table["method"] == name, "error"] for name in names]
    figure, (axes,) = new_figure(1, (1.2 + 1.1 * len(names), 4))
    axes.boxplot(groups, whis=(0, 100), medianprops={"color": "black"})
    places = np.arange(1, len(names) + 1)
    axes.scatter(places, [group.mean() for group in groups], color="red", zorder=3, label="mean")
    axes.set_xticks(places, [name.replace(" (", "\n(") for name in names])
    axes.set_yscale("log")
    axes.set(ylabel=measure, title=title)
    axes.legend()
    return figure


def draw_curves(table: pd.DataFrame, title: str, measure: str, level: str = "share") -> Figure:
    """Return the mean errors against a level, a curve for each method."""
    figure, (axes,) = new_figure(1, (6, 4))
    add_curves(axes, table, level)
    axes.set(xlabel="share of bad rows", ylabel=mean_of(measure), title=title)
    axes.set_ylim(bottom=0)
    return figure


def mean_of(measure: str) -> str:
    """Return the label of an axis of means over all levels, for a measure at one of them."""
    return f"mean {measure.partition(',')[0]}"


def add_curves(axes: Axes, table: pd.DataFrame, level: str) -> None:
    """Draw the mean error of each method against a level."""
    for name, group in table.groupby("method", sort=False):
        means = group.groupby(level)["error"].mean()
        axes.plot(means.index, means, "o-", ms=3, color=COLORS[str(name)], label=str(name))
    axes.legend(fontsize=8)


def draw_line(table: pd.DataFrame, title: str, measure: str) -> Figure:
    """Return points colored by weight, and the fitted lines."""
    figure, (axes,) = new_figure(1, (7, 4.5))
    weight = [column for column in table.columns if column.startswith("weight")][-1]
    dots = axes.scatter(
        table["x"], table["y"], c=table[weight], **WEIGHT_COLORS, edgecolors="black", zorder=3
    )
    figure.colorbar(dots, label=f"weight * n{weight.removeprefix('weight')}")
    add_lines(axes, table, "x", [c for c in table.columns if c in (ERM, "target") or "RRM" in c])
    axes.set(xlabel="x", ylabel="y", title=title)
    axes.legend(fontsize=8)
    return figure


def draw_plane(table: pd.DataFrame, title: str, measure: str) -> Figure:
    """Return labeled points, the bad ones as stars, and separating lines."""
    figure, (axes,) = new_figure(1, (6, 4.5))
    for label, color in ((0, "tab:blue"), (1, "tab:green")):
        for bad, marker, size in ((False, "o", 12), (True, "*", 70)):
            some = table[(table["y"] == label) & (table["bad"] == bad)]
            axes.scatter(some["x1"], some["x2"], s=size, marker=marker, color=color)
    add_lines(axes, table, "x1", [c for c in table.columns if c == "target" or c in METHODS])
    low, high = table["x2"].min(), table["x2"].max()
    axes.set(xlabel="x1", ylabel="x2", ylim=(low - 0.3, high + 0.3), title=title)
    axes.legend(fontsize=8)
    return figure


def add_lines(axes: Axes, table: pd.DataFrame, across: str, names: Sequence[str]) -> None:
    """Draw straight lines given at the points of the table."""
    ends = table.sort_values(across).iloc[[0, -1]]
    robust = iter(("#1f77b4", "#6a3d9a"))
    for name in names:
        style = ":" if name == "target" else "-"
        color = "black" if name == "target" else COLORS.get(name) or next(robust)
        axes.plot(ends[across], ends[name], style, color=color, label=name)


def draw_confusion(table: pd.DataFrame, title: str, measure: str) -> Figure:
    """Return the mean confusion matrix of each method."""
    names = list(table["method"].unique())
    figure, panels = new_figure(len(names), (2.2 * len(names), 3.4))
    for axes, name in zip(panels, names, strict=True):
        mean = table[table["method"] == name].mean(numeric_only=True)
        cells = mean[[f"actual {i}, predicted {j}" for i in (1, 0) for j in (1, 0)]]
        matrix = cells.to_numpy().reshape(2, 2)
        axes.imshow(matrix / matrix.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1.5)
        for (i, j), value in np.ndenumerate(matrix):
            axes.text(j, i, f"{value:.1f}", ha="center", va="center")
        axes.set_xticks([0, 1], ["1", "0"])
        axes.set_yticks([0, 1], ["1", "0"])
        axes.set(xlabel="predicted", title=f"{name}\naccuracy {mean['accuracy']:.4f}")
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("actual")
    figure.suptitle(title, fontsize=10)
    return figure
