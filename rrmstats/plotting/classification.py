"""Models of labels 0 and 1: separation plots and reliability diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rrmstats.plotting.arrays import reliability, wilson_interval
from rrmstats.plotting.canvas import (
    CLASSICAL,
    CUTOFF,
    FLAGGED,
    ROBUST,
    SKY,
    Style,
    flagged_rows,
    is_many,
    one_axes,
)
from rrmstats.plotting.catalog import checked_picture
from rrmstats.plotting.offers import Array, LabelResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Groups of similar probability.
BINS = 10


def plot_separation(results: LabelResults, ax: Axes | None = None) -> Figure:
    """Plot labels in the order of their fitted probabilities.

    A blue band is a row labeled 1; if the model separates well, these gather on the right. The
    line is the fitted probability, and triangles at the top show the flagged rows. The number of
    rows to the right of the marker at the bottom is the number of ones that the fit expects.

    Parameters
    ----------
    results : results of RRMLogit
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Figure

    References
    ----------
    Greenhill, Ward and Sacks (2011), "The separation plot: a new visual method for evaluating
    the fit of binary models", American Journal of Political Science 55, 991-1002.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_separation
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> fig = plot_separation(res)
    >>> fig.axes[0].get_ylabel()
    'fitted probability'
    """
    picture = checked_picture("plot_separation", results)
    fig, ax = one_axes(ax, picture.size)
    probability = np.asarray(results.predict())
    order = np.argsort(probability, kind="stable")
    n, image = len(order), is_many(order)
    edges, labels = np.arange(n + 1) - 0.5, results.model.endog[np.r_[order, order[-1]]]
    bands = ax.fill_between(edges, labels, step="post", color=SKY, linewidth=0)
    bands.set(label="labeled 1", rasterized=image)
    ax.plot(probability[order], color="black", linewidth=1.4, label="fitted probability")
    places = np.flatnonzero(flagged_rows(results)[order])
    style = {**FLAGGED, "marker": "v", "linestyle": "none", "clip_on": False, "rasterized": image}
    if len(places):
        ax.plot(places, np.full(len(places), 1.04), **style, label=f"flagged ({len(places)})")
    expected = n - float(probability.sum())
    ax.plot(expected, -0.04, "^", color="black", clip_on=False, label="expected start of ones")
    ax.set(xlabel="rows by fitted probability", ylabel="fitted probability")
    ax.set(xlim=(-0.5, n - 0.5), ylim=(-0.08, 1.08))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.02), ncols=2)
    return fig


def plot_reliability(results: LabelResults, ax: Axes | None = None, bins: int = BINS) -> Figure:
    """Plot observed against fitted shares of ones, in groups of similar probability.

    Parameters
    ----------
    results : results of RRMLogit
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    bins : int, optional
        Number of groups, of about equal size.

    Returns
    -------
    matplotlib Figure
        One curve for all rows and one without the flagged rows. Bars are Wilson's 95 %
        intervals.

    Examples
    --------
    >>> import rrmstats
    >>> from rrmstats.plotting import plot_reliability
    >>> cancer = rrmstats.datasets.breast_cancer.load_pandas().data
    >>> res = rrmstats.logit("malignant ~ clump_thickness", cancer, eps_bar=0.05).fit()
    >>> fig = plot_reliability(res, bins=5)
    >>> fig.axes[0].get_xlabel()
    'fitted probability'
    """
    picture = checked_picture("plot_reliability", results)
    if bins < 1:
        raise ValueError(f"bins must be 1 or more, got {bins!r}")
    fig, ax = one_axes(ax, picture.size)
    draw_reliability(ax, results, bins)
    ax.set(aspect="equal")
    return fig


def draw_reliability(ax: Axes, results: LabelResults, bins: int) -> None:
    """Draw observed against fitted shares of ones, of all rows and without the flagged ones."""
    probability, labels = np.asarray(results.predict()), results.model.endog
    kept = ~flagged_rows(results)
    ax.plot([0, 1], [0, 1], **CUTOFF, label="perfect")
    every = {**CLASSICAL, "marker": "s", "mfc": "none", "label": "all rows"}
    _draw_curve(ax, probability, labels, bins, every)
    if not kept.all():
        clean = {**ROBUST, "marker": "o", "label": f"without {(~kept).sum()} flagged"}
        _draw_curve(ax, probability[kept], labels[kept], bins, clean)
    ax.set(xlabel="fitted probability", ylabel="observed share of ones")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend()


def _draw_curve(ax: Axes, probability: Array, labels: Array, bins: int, style: Style) -> None:
    mean, share, count = reliability(probability, labels, bins)
    low, high = wilson_interval(share, count)
    ax.errorbar(mean, share, [share - low, high - share], **style, capsize=2, elinewidth=0.8)
