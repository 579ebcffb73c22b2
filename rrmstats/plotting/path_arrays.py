"""What pictures of a path show, as functions of the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import chi2, norm

from rrmstats.plotting.canvas import PROBABILITY_COLORS, WEIGHT_COLORS, Style
from rrmstats.plotting.offers import Array, FittedPath, Flags

Rows = npt.NDArray[np.intp]
# A text names at most so many runs of rows, and calls the others "more".
MOST_RUNS = 4
# A run of at least so many rows is written as its first and last row.
SHORTEST_RUN = 3
# An explicit list of rows longer than this gives way to their number.
LONGEST_TEXT = 24
# Residuals this many times the cutoff are drawn on an axis that is logarithmic outside the band.
FAR = 20.0
# Values of eps_bar that differ by less are equal.
TINY = 1e-9
# More places than this are first put together in cells of this share of a gap.
MANY_PLACES, CELL = 500, 0.25


class Group(NamedTuple):
    """Rows that are drawn and labeled together.

    Attributes
    ----------
    rows : ndarray of int
        Their positions, in increasing order.
    at : int
        Position on the grid of the value at which they leave.
    """

    rows: Rows
    at: int


class RowValues(NamedTuple):
    """What a picture shows of each row along the path.

    Attributes
    ----------
    values : ndarray, shape (n, m)
    name : str
        The name of the values, for axes.
    title : str
        What they are, such as "Weights".
    worst : str
        The rows that are shown where not all are.
    leave : str
        What happens to rows that leave.
    colors : dict
        Colors of the values.
    kept : ndarray, shape (n, m)
        How far the fit keeps each row: smaller where the row is more suspicious.
    """

    values: Array
    name: str
    title: str
    worst: str
    leave: str
    colors: Style
    kept: Array


def row_values(path: FittedPath) -> RowValues:
    """Return the probabilities of the rows to be bad, or in one step their relative weights."""
    prob_bad = getattr(path, "prob_bad", None)
    if prob_bad is None:
        weights = np.asarray(path.relative_weights, dtype=float)
        return RowValues(
            values=weights,
            name="weight * n",
            title="Weights",
            worst="those of smallest weight",
            leave="lose half their weight",
            colors=WEIGHT_COLORS,
            kept=weights,
        )
    values = np.asarray(prob_bad, dtype=float)
    return RowValues(
        values=values,
        name="prob_bad",
        title="prob_bad",
        worst="those most likely bad",
        leave="become more likely bad than good",
        colors=PROBABILITY_COLORS,
        kept=1 - values,
    )


def row_names(path: FittedPath) -> list[str]:
    """Return the labels of the rows, or of the groups that have the weights."""
    return [str(label) for label in path.weights.index]


def some_lines(values: Array, most: int) -> Array:
    """Return at most so many of some lines, shape (p, m), spread evenly over their ends."""
    if len(values) <= most:
        return values
    order = np.argsort(values[:, -1], kind="stable")
    return values[order[np.linspace(0, len(order) - 1, most).astype(int)]]


def ever_flagged(path: FittedPath) -> Flags:
    """Return whether each row is flagged somewhere on the path, shape (n,)."""
    return np.array(path.flags.any(axis=1), dtype=bool)


def leaving_positions(path: FittedPath) -> Rows:
    """Return the position on the grid where each row leaves; m if nowhere.

    There it becomes more likely bad than good, or in one step loses half its weight.
    """
    below = path.leaves["below_half"].to_numpy(float)
    m = len(path.eps_bars)
    found = np.searchsorted(path.eps_bars, below - TINY)
    return np.where(np.isnan(below), m, np.minimum(found, m - 1))


def leaving_groups(path: FittedPath) -> list[Group]:
    """Return the rows that are flagged somewhere, grouped by where they leave.

    Rows of the first jump come first, then those of the next, then the rows of no jump by the
    value at which they leave. Flagged rows that do not leave belong to no group.
    """
    at, left = leaving_positions(path), ever_flagged(path)
    gone = path.leaves["below_1pct"].to_numpy(float)
    groups = []
    steps = path.jumps[["eps_bar_from", "eps_bar_to"]].to_numpy(float) + TINY
    for (after, until), labels in zip(steps, path.jumps[f"{path.unit}s"], strict=True):
        named = path.weights.index.isin(list(labels))
        # A row that was doubtful before the jump, and is gone there, belongs to it.
        rows = left & (named | ((gone > after) & (gone <= until)))
        end = int(np.searchsorted(path.eps_bars, until)) - 1
        groups.append(Group(np.flatnonzero(rows), end))
        left = left & ~rows
    places = np.unique(at[left & (at < len(path.eps_bars))])
    groups += [Group(np.flatnonzero(left & (at == k)), int(k)) for k in places]
    return [group for group in groups if len(group.rows)]


def flagged_that_stay(path: FittedPath) -> Flags:
    """Return whether each row is flagged somewhere but belongs to no group, shape (n,)."""
    stay = ever_flagged(path)
    for group in leaving_groups(path):
        stay[group.rows] = False
    return stay


def jump_places(path: FittedPath) -> Array:
    """Return the middle of the step of the grid at which each jump happens."""
    ends = path.jumps[["eps_bar_from", "eps_bar_to"]].to_numpy(float)
    return ends.mean(axis=1)


def rows_text(rows: Sequence[int] | Rows, names: Sequence[str], unit: str = "row") -> str:
    """Return the names of rows, or of other units, in a few words.

    Examples
    --------
    >>> from rrmstats.plotting.path_arrays import rows_text
    >>> names = [str(i) for i in range(30)]
    >>> rows_text(range(10), names), rows_text([3, 5, 7, 8, 9, 18], names)
    ('0-9', '3, 5, 7-9, 18')
    """
    if not len(rows):
        return "none"
    runs = _runs(np.asarray(rows, dtype=int))
    shown = runs if len(runs) <= MOST_RUNS else runs[: MOST_RUNS - 1]
    text = ", ".join("-".join(names[row] for row in sorted({run[0], run[-1]})) for run in shown)
    if len(text) > LONGEST_TEXT and len(rows) > 1:
        return f"{len(rows)} {unit}s"
    left = len(rows) - sum(len(run) for run in shown)
    return f"{text} and {left} more" if left else text


def _runs(rows: Rows) -> list[Rows]:
    """Return rows as runs of consecutive ones; runs of two count as single rows."""
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [
        part
        for run in runs
        for part in ([run] if len(run) >= SHORTEST_RUN else np.split(run, len(run)))
    ]


def most_changing_terms(frame: pd.DataFrame, most: int) -> list[str]:
    """Return the terms whose estimates move most in standard errors, in their own order."""
    by_term = frame.groupby("term", sort=False)
    spread = by_term["estimate"].max() - by_term["estimate"].min()
    unit = by_term["std_err"].median()
    change = (spread / unit.where(unit > 0)).fillna(0.0)
    kept = set(change.sort_values(ascending=False, kind="stable").index[:most])
    return [term for term in change.index if term in kept]


def checked_terms(frame: pd.DataFrame, terms: Sequence[str] | None, most: int) -> list[str]:
    """Return the terms to draw: those asked for, or those that change most."""
    known = list(frame["term"].unique())
    if terms is None:
        return most_changing_terms(frame, most)
    asked = [terms] if isinstance(terms, str) else list(terms)
    if not asked or set(asked) - set(known):
        raise ValueError(f"terms must be some of {', '.join(known)}, got {terms!r}")
    return asked


def most_suspicious(path: FittedPath, most: int) -> Rows:
    """Return at most so many rows, those most likely bad somewhere, as positions.

    In one step those of smallest weight. Rows that are flagged somewhere come before others, and
    rows that leave early before rows that leave late.
    """
    least = row_values(path).kept.min(axis=1)
    order = np.lexsort((least, leaving_positions(path), ~ever_flagged(path)))
    return order[:most]


def residual_kind(path: FittedPath, level: float) -> tuple[str, Array]:
    """Return what the residuals are called and their cutoff at each value, shape (m,)."""
    m = len(path.eps_bars)
    if path.unit == "group":
        return "mean loss as a normal score", np.full(m, norm.ppf(level))
    offered = set(dir(path.at(float(path.eps_bars[0]))))
    if "pred_table" in offered:
        # The deviance residual of a label that has the probability 1 - level.
        return "deviance residual", np.full(m, np.sqrt(-2 * np.log(1 - level)))
    if "score_cutoff" in offered:
        return "larger distance / its cutoff", np.ones(m)
    if "mahalanobis" in offered:
        return "robust distance", np.array(
            [path.at(float(e)).cutoff(level) for e in path.eps_bars]
        )
    return "standardized residual", np.full(m, np.sqrt(chi2.ppf(level, 1)))


def band_floor(path: FittedPath, cutoff: Array) -> Array:
    """Return the lower limit of clean residuals at each value, shape (m,).

    Distances begin at zero. A score of a group has no lower limit: the least is that of the path.
    """
    values = np.asarray(path.residuals, dtype=float)
    if path.unit == "group":
        return np.full_like(cutoff, min(np.min(values[np.isfinite(values)], initial=0.0), 0.0))
    return -cutoff if (values < 0).any() else np.zeros_like(cutoff)


def beyond_band(path: FittedPath, cutoff: Array) -> Flags:
    """Return which residuals are beyond those of clean rows or groups, shape (n, m)."""
    values = np.asarray(path.residuals, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    return np.array((values if path.unit == "group" else np.abs(values)) > cutoff)


def is_far(values: Array, cutoff: Array) -> bool:
    """Return whether some residual is so large that it would flatten the band of clean rows."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return bool(largest > FAR * cutoff.max())


def merged_places(values: Array, gap: float) -> list[Rows]:
    """Return positions of values in groups, whose means are at least a gap apart.

    Parameters
    ----------
    values : ndarray, shape (p,)
    gap : float
    """
    order = np.argsort(values, kind="stable")
    groups = [np.array([i]) for i in order]
    if len(values) > MANY_PLACES:
        cell = np.floor(values[order] / (CELL * gap))
        groups = np.split(order, np.flatnonzero(np.diff(cell)) + 1)
    while True:
        means = np.array([values[group].mean() for group in groups])
        distances = np.diff(means)
        if not len(distances) or distances.min() >= gap:
            return [np.sort(group) for group in groups]
        k = int(distances.argmin())
        groups[k : k + 2] = [np.concatenate(groups[k : k + 2])]


def value_edges(values: Array) -> Array:
    """Return the edges of cells whose middles are the values, shape (m + 1,)."""
    if len(values) == 1:
        return np.array([values[0] - 0.01, values[0] + 0.01])
    inner = (values[1:] + values[:-1]) / 2
    first, last = 2 * values[0] - inner[0], 2 * values[-1] - inner[-1]
    return np.r_[first, inner, last]
