"""Picture of how few rows decide a term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.canvas import BLUE, CLASSICAL, CUTOFF, KEPT, one_axes
from rrmstats.plotting.catalog import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_few_rows(found: Any, ax: Axes | None = None) -> Figure:
    """Plot an estimate against the number of rows removed.

    Refits with their 95 % intervals, of those with as many rows the one that moved most, and what
    influence functions tell of the fit to all rows.

    Parameters
    ----------
    found : FewRows
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import rrmstats, statsmodels.formula.api as smf
    >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
    >>> few = rrmstats.few_rows(smf.ols("log_light ~ log_te", stars).fit(), "log_te")
    >>> few.plot().axes[0].get_ylabel()
    'log_te'
    """
    fig, ax = one_axes(ax, SMALL)
    side = 1.0 if found.after.estimate >= found.before.estimate else -1.0
    order = np.argsort(-side * found.refits["estimate"], kind="stable")
    best = found.refits.iloc[order].groupby("n_removed").first()
    moves = side * np.sort(side * found.moves)[::-1][: best.index.max()]
    told = found.before.estimate + np.r_[0.0, np.cumsum(moves)]
    ax.axhline(0.0, **CUTOFF)
    ax.plot(np.arange(len(told)), told, label="influence functions", **CLASSICAL)
    bars = 1.96 * best["bse"]
    ax.errorbar(best.index, best["estimate"], bars, fmt="none", ecolor=BLUE, elinewidth=1)
    ax.plot(best.index, best["estimate"], linestyle="none", label="refits", **KEPT)
    ax.set(xlabel="rows removed", ylabel=found.term)
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False)
    return fig
