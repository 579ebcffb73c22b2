"""The iterations of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rrmstats.plotting.canvas import BLUE, CUTOFF, VERMILLION, axes_grid, lay_out
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.legends import clear_legend
from rrmstats.plotting.names import FONT_SIZE, marker_boxes
from rrmstats.plotting.offers import Array, Flags, Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALL_EQUAL = "infinite: all rows have equal weights"
# Room above and below a curve in units of its height, and the least height in units of its values.
ROOM, LEAST_SPAN = 0.15, 2e-3
TINY = 1e-300
# Name and marker of each kind of step.
STEPS = {
    "start": ("start", "s"),
    "newton": ("Newton step", "o"),
    "quasi-newton": ("quasi-Newton step", "^"),
    "algorithm 1": ("Algorithm 1", "D"),
    "extrapolated": ("extrapolated step", "v"),
    "second step": ("second step", "*"),
}


def plot_trace(results: Results, fig: Figure | None = None) -> Figure:
    """Plot the risk and lambda by iteration; a dotted line marks where the second step begins.

    Parameters
    ----------
    results : results of any model
    fig : matplotlib Figure, optional
        Where to draw; by default a new one.

    Returns
    -------
    matplotlib Figure
        With two axes, the risk above lambda.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_trace
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit()
    >>> fig = plot_trace(res)
    >>> [ax.get_ylabel() for ax in fig.axes]
    ['risk', 'lambda']
    """
    picture = checked_picture("plot_trace", results)
    fig, (risk_ax, lambda_ax) = axes_grid(fig, (2, 1), picture.size, sharex=True)
    trace = results.trace
    _draw_column(risk_ax, trace, "risk", BLUE)
    _draw_column(lambda_ax, trace, "lambda_", VERMILLION)
    lambda_ax.set(xlabel="iteration", xlim=(-0.6, len(trace) - 0.4))
    lambda_ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    risk_ax.legend()
    if results.steps == 2:
        _mark_second_step(risk_ax, lambda_ax, trace["step"].to_numpy() == "second step")
    lay_out(risk_ax)
    clear_legend(risk_ax, marker_boxes(risk_ax, *risk_ax.lines[0].get_data()))
    return fig


def _mark_second_step(upper: Axes, lower: Axes, second: Flags) -> None:
    """Draw a line between the steps, or after the first where the second is the same.

    Parameters
    ----------
    upper, lower : matplotlib Axes
        The text is above the upper one, where no legend can cover it.
    second : ndarray of bool, shape (m,)
        Which iterations are of the second step.
    """
    where = (int(second.argmax()) if second.any() else len(second)) - 0.5
    text = "second step begins" if second.any() else "the second step kept the first"
    for ax in (upper, lower):
        ax.axvline(where, **CUTOFF)
    upper.annotate(
        text,
        (where, 1.0),
        xycoords=upper.get_xaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right" if where > len(second) / 2 else "left",
        va="bottom",
        fontsize=FONT_SIZE,
    )


def _draw_column(ax: Axes, trace: pd.DataFrame, column: str, color: str) -> None:
    values = trace[column].to_numpy(float)
    values = np.where(np.isfinite(values), values, np.nan)
    iteration = trace.index.to_numpy()
    ax.plot(iteration, values, color=color)
    for step, (name, marker) in STEPS.items():
        here = (trace["step"] == step).to_numpy()
        if here.any():
            ax.plot(iteration[here], values[here], marker, color=color, label=name)
    ax.set_ylabel(column.rstrip("_"))
    if np.isnan(values).all():
        ax.set_yticks([])
        ax.text(0.5, 0.5, ALL_EQUAL, transform=ax.transAxes, ha="center", va="center")
    else:
        ax.set_ylim(*value_limits(values))


def value_limits(values: Array) -> tuple[float, float]:
    """Return limits with room around the finite values, and not so close that ticks look equal."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = max(ROOM * (high - low), LEAST_SPAN * max(abs(low), abs(high)) / 2, TINY)
    return low - room, high + room
