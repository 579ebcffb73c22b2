"""The weights of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.canvas import CUTOFF, DrawnRows, draw_colored_rows, draw_rows, one_axes
from rrmstats.plotting.captions import large_weights_note, write_caption
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.names import name_rows
from rrmstats.plotting.offers import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_weights(
    results: Results, against: str = "index", ax: Axes | None = None, label: int = 5
) -> Figure:
    """Plot the weights of the rows, or of the groups of a model that has groups.

    In two steps the color of a row tells how likely it is bad.

    Parameters
    ----------
    results : results of any model
    against : {"index", "losses"}, optional
        What the horizontal axis shows: positions of the rows or their losses.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    label : int, optional
        How many of the flagged rows to label by their index, those most likely bad or of least
        weight first.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_weights
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> fig = plot_weights(res, against="losses")
    >>> fig.axes[0].get_xlabel()
    'loss'
    """
    if against not in ("index", "losses"):
        raise ValueError(f"against must be 'index' or 'losses', got {against!r}")
    picture = checked_picture("plot_weights", results)
    fig, ax = one_axes(ax, picture.size)
    drawn = draw_weights(ax, results, against, label)
    write_caption(ax, weights_note(drawn.results, results))
    name_rows(drawn)
    return fig


def weights_note(drawn: Results, results: Results, level: float | None = None) -> str:
    """Return why flagged rows, or groups where those are drawn, have large weights."""
    return large_weights_note(drawn, level, "row" if drawn is results else "group")


def draw_weights(ax: Axes, results: Results, against: str, label: int) -> DrawnRows:
    """Draw the weights by position of the row or group, or by loss."""
    groups: Results | None = getattr(results, "group_view", None)
    results, unit = (results, "row") if groups is None else (groups, "group")
    relative = np.asarray(results.relative_weights)
    by_index = against == "index"
    x = np.arange(float(len(relative))) if by_index else np.asarray(results.losses)
    ax.axhline(1.0, **CUTOFF, label="equal weights")
    top = 1.2 * max(relative.max(), 1.0)
    settings: dict[str, Any] = {
        "xlabel": unit if by_index else "loss",
        "ylabel": "weight * n",
        "ylim": (-0.06 * top, top),
    }
    if getattr(results, "prob_bad", None) is None:
        drawn = draw_rows(ax, results, x, relative, label=label, unit=unit, **settings)
    else:
        flagged = draw_colored_rows(ax, results, x, relative, unit)
        ax.set(**settings)
        drawn = DrawnRows(ax, results, x, relative, flagged, label)
    if by_index:
        ax.locator_params(axis="x", integer=True)
    ax.legend(loc="upper center", ncols=3)
    return drawn
