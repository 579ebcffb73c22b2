"""What pictures and the page of a path show, as functions of the path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from rrmstats.plotting.canvas import PROBABILITY_COLORS, WEIGHT_COLORS, Style
from rrmstats.plotting.catalog import Array, FittedPath, Flags, Rows

# Values of eps_bar that differ by less are equal.
TINY = 1e-9
# Colors of explanations, those of Paul Tol's muted scheme; rows without bad ones are gray.
COLORS = ("#332288", "#DDCC77", "#CC6677", "#44AA99", "#AA4499", "#88CCEE", "#999933", "#882255")
NO_BAD_ROWS, NO_COLOR = "none", "#BBBBBB"


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
        words = ("weight * n", "Weights", "those of smallest weight", "lose half their weight")
        return RowValues(weights, *words, WEIGHT_COLORS, weights)
    values = np.asarray(prob_bad, dtype=float)
    becoming = "become more likely bad than good"
    words = ("prob_bad", "prob_bad", "those most likely bad", becoming)
    return RowValues(values, *words, PROBABILITY_COLORS, 1 - values)


def row_names(path: FittedPath) -> list[str]:
    """Return the labels of the rows, or of the groups that have the weights."""
    return [str(label) for label in path.weights.index]


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


def most_suspicious(path: FittedPath, most: int) -> Rows:
    """Return at most `most` rows, those most likely bad somewhere, as positions.

    In one step those of smallest weight. Rows that are flagged somewhere come before others, and
    rows that leave early before rows that leave late.
    """
    least = row_values(path).kept.min(axis=1)
    return np.lexsort((least, leaving_positions(path), ~ever_flagged(path)))[:most]


def jump_places(path: FittedPath) -> Array:
    """Return the middle of the step of the grid at which each jump happens."""
    return path.jumps[["eps_bar_from", "eps_bar_to"]].to_numpy(float).mean(axis=1)


def rows_text(rows: Sequence[int] | Rows, names: Sequence[str], unit: str = "row") -> str:
    """Return the names of rows, or of other units, in a few words.

    Examples
    --------
    >>> from rrmstats.plotting.path_values import rows_text
    >>> names = [str(i) for i in range(30)]
    >>> rows_text(range(10), names), rows_text([3, 5, 7, 8, 9, 18], names)
    ('0-9', '3, 5, 7-9, 18')
    """
    if not len(rows):
        return "none"
    every = np.asarray(rows, dtype=int)
    runs = []
    for run in np.split(every, np.flatnonzero(np.diff(every) != 1) + 1):
        runs += [run] if len(run) > 2 else np.split(run, len(run))
    shown = runs if len(runs) <= 4 else runs[:3]
    text = ", ".join("-".join(names[row] for row in sorted({run[0], run[-1]})) for run in shown)
    if len(text) > 24 and len(rows) > 1:
        return f"{len(rows)} {unit}s"
    left = len(rows) - sum(len(run) for run in shown)
    return f"{text} and {left} more" if left else text


def shown_terms(frame: pd.DataFrame, terms: Sequence[str] | None, most: int) -> list[str]:
    """Return the terms asked for, or those whose estimates move most in standard errors."""
    by_term = frame.groupby("term", sort=False)
    spread = by_term["estimate"].max() - by_term["estimate"].min()
    unit = by_term["std_err"].median()
    change = (spread / unit.where(unit > 0)).fillna(0.0)
    if terms is None:
        kept = set(change.sort_values(ascending=False, kind="stable").index[:most])
        return [term for term in change.index if term in kept]
    asked = [terms] if isinstance(terms, str) else list(terms)
    if not asked or set(asked) - set(change.index):
        raise ValueError(f"terms must be some of {', '.join(change.index)}, got {terms!r}")
    return asked


def term_values(path: FittedPath, term: str) -> tuple[Array, Array, Array, tuple[float, float]]:
    """Return the estimates of a term, its lower and upper limits, and the limits of its panel.

    The panel has room for all estimates and most of their intervals: the few widest would
    otherwise flatten the estimates.
    """
    frame = path.frame[path.frame["term"] == term]
    y, low, high = frame[["estimate", "lower", "upper"]].to_numpy(float).T
    finite_low, finite_high = low[np.isfinite(low)], high[np.isfinite(high)]
    ends = [*y[np.isfinite(y)]]
    if len(finite_low) and len(finite_high):
        ends += [np.quantile(finite_low, 0.1), np.quantile(finite_high, 0.9)]
    room = 0.05 * float(np.ptp(ends))
    return y, low, high, (float(min(ends)) - room, float(max(ends)) + room)


class Residuals(NamedTuple):
    """Residuals or distances along a path.

    Attributes
    ----------
    values : ndarray, shape (n, m)
        NaN where they are infinite.
    name : str
    low, high : ndarray, shape (m,)
        Limits of clean rows or groups.
    outside : ndarray of bool, shape (n, m)
    far : bool
        Whether some value is so large that it would flatten the band of clean rows.
    """

    values: Array
    name: str
    low: Array
    high: Array
    outside: Flags
    far: bool


def path_residuals(path: FittedPath, level: float) -> Residuals:
    """Return the residuals with the band that holds a share `level` of clean ones."""
    values = np.asarray(path.residuals, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    offered = set(dir(path.at(float(path.eps_bars[0]))))
    high = np.ones(len(path.eps_bars))
    if path.unit == "group":
        name, high = "mean loss as a normal score", high * norm.ppf(level)
    elif "pred_table" in offered:  # the deviance residual of a label of probability 1 - level
        name, high = "deviance residual", high * np.sqrt(-2 * np.log(1 - level))
    elif "score_cutoff" in offered:
        name = "larger distance / its cutoff"
    elif "mahalanobis" in offered:
        name = "robust distance"
        high = np.array([path.at(float(eps_bar)).cutoff(level) for eps_bar in path.eps_bars])
    else:
        name, high = "standardized residual", high * np.sqrt(chi2.ppf(level, 1))
    smallest = min(np.nanmin(values, initial=0.0), 0.0)
    # Distances begin at zero; a score of a group has no lower limit.
    low = np.full_like(high, smallest) if path.unit == "group" or smallest == 0 else -high
    far = bool(np.nanmax(np.abs(values), initial=0.0) > 20 * high.max())
    return Residuals(values, name, low, high, (values > high) | (values < low), far)


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
    return {name: colors.get(name, NO_COLOR) for name in names}


def value_edges(values: Array) -> Array:
    """Return the edges of cells whose middles are the values, shape (m + 1,)."""
    if len(values) == 1:
        return np.array([values[0] - 0.01, values[0] + 0.01])
    inner = (values[1:] + values[:-1]) / 2
    first, last = 2 * values[0] - inner[0], 2 * values[-1] - inner[-1]
    return np.r_[first, inner, last]
