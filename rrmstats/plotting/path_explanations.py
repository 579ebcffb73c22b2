"""The explanation of the rows along a grid of eps_bar, as a band of colors above the panels."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rrmstats.plotting.offers import FittedPath
from rrmstats.plotting.path_arrays import value_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colors of explanations, those of Paul Tol's muted scheme; rows without bad ones are gray.
COLORS = ("#332288", "#DDCC77", "#CC6677", "#44AA99", "#AA4499", "#88CCEE", "#999933", "#882255")
NO_BAD_ROWS, GRAY = "none", "#BBBBBB"
# Height of the band, relative to that of its panel, and what titles leave for it, in points.
BAND, TITLE_PAD = 0.03, 9.0
# Width of a letter and of what is beside a name in a legend, in points.
LETTER, BESIDE = 5.6, 42.0


class Run(NamedTuple):
    """Neighboring values of eps_bar with the same explanation.

    Attributes
    ----------
    name : str
        The explanation.
    first, last : int
        Positions on the grid.
    left, right : float
        Where its band begins and ends.
    """

    name: str
    first: int
    last: int
    left: float
    right: float


def explanation_runs(path: FittedPath) -> list[Run]:
    """Return the explanations along a path; none in one step."""
    names = path.frame.drop_duplicates("eps_bar")["explanation"].to_numpy()
    if all(name is None for name in names):
        return []
    edges = value_edges(path.eps_bars)
    if len(names) > 1:
        edges[[0, -1]] = path.eps_bars[[0, -1]]
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
    ends = np.r_[starts[1:], len(names)]
    return [
        Run(names[a] or "n/a", int(a), int(b) - 1, float(edges[a]), float(edges[b]))
        for a, b in zip(starts, ends, strict=True)
    ]


def explanation_colors(runs: Iterable[Run]) -> dict[str, str]:
    """Return a color for each explanation, in the order in which they first appear."""
    names = list(dict.fromkeys(run.name for run in runs))
    others = [name for name in names if name != NO_BAD_ROWS]
    colors = {name: COLORS[k % len(COLORS)] for k, name in enumerate(others)}
    return {name: colors.get(name, GRAY) for name in names}


def draw_explanations(
    fig: Any, axes: Iterable[Axes], path: FittedPath, pad: float = TITLE_PAD
) -> None:
    """Draw a band above axes whose color tells the explanation, and its legend below them.

    Titles of the axes are moved up, by so many points from their panels.
    """
    runs = explanation_runs(path)
    colors = explanation_colors(runs)
    if not runs:
        return
    for ax in axes:
        limits = ax.get_xlim()
        for run in runs:
            style: dict[str, Any] = {"color": colors[run.name], "linewidth": 0, "clip_on": False}
            ax.axvspan(run.left, run.right, 1.0, 1 + BAND, **style)
        ax.set_xlim(limits)
        ax.set_title(ax.get_title(), pad=pad)
    patch = import_module("matplotlib.patches").Patch
    wide = fig.get_size_inches()[0] * 72
    longest = max(len(name) for name in colors)
    fig.legend(
        handles=[patch(color=color, label=name) for name, color in colors.items()],
        loc="outside lower center",
        ncols=max(min(len(colors), int(wide / (LETTER * longest + BESIDE))), 1),
        title=f"explanation of the {path.unit}s (band above the panels)",
        frameon=False,
    )
