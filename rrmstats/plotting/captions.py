"""Captions of pictures: what a reader would otherwise wonder about."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from rrmstats.plotting.canvas import cutoff_level, flagged_rows
from rrmstats.plotting.legends import points_per_pixel
from rrmstats.plotting.offers import Flags, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE = 8.5
# Width of a letter in units of the font size.
LETTER = 0.52
# A relative weight above this is large for a flagged row.
LARGE = 0.5
# Relative weights that differ by no more are equal.
EQUAL = 1e-9


def write_caption(ax: Axes, *sentences: str) -> None:
    """Write sentences above axes, at the left; empty ones are left out."""
    wide = ax.bbox.width * points_per_pixel(ax)
    lines = [fill(text, max(int(wide / (LETTER * FONT_SIZE)), 20)) for text in sentences if text]
    if lines:
        ax.set_title("\n".join(lines), loc="left", fontsize=FONT_SIZE)


def write_caption_below(fig: Figure, text: str) -> None:
    """Write a text below all panels of a figure, at the left; nothing if it is empty."""
    if text:
        wide = fig.bbox.width * 72 / fig.dpi
        lines = fill(text, max(int(wide / (LETTER * FONT_SIZE)), 20))
        fig.supxlabel(lines, x=0.01, ha="left", fontsize=FONT_SIZE)


def take_captions(fig: Figure) -> str:
    """Remove the captions of a figure and its axes, and return them as one text."""
    found = [*(ax.get_title(loc="left") for ax in fig.axes), fig.get_supxlabel()]
    for ax in fig.axes:
        ax.set_title("", loc="left")
    fig.supxlabel("")
    return " ".join(" ".join(text.split()) for text in found if text)


def flags_note(results: Results, level: float | None = None) -> str:
    """Return why flagged rows have large weights, for pictures that do not show weights.

    The flags of a second step need no reason: they go by probabilities.
    """
    by_probability = level is None and getattr(results, "prob_bad", None) is not None
    return "" if by_probability else large_weights_note(results, level)


def inside_note(results: Results) -> str:
    """Return how many flagged rows a picture of distances off a subspace shows as near to it."""
    flagged = flagged_rows(results)
    count = int((flagged & _score_outliers(results, None)).sum())
    if not count or count == flagged.sum():
        return ""
    rows = "1 flagged row is" if count == 1 else f"{count:,} flagged rows are"
    return f"{rows} far from the center, but in the subspace."


def large_weights_note(results: Results, level: float | None = None, unit: str = "row") -> str:
    """Return why flagged rows have large weights; an empty text if none has.

    A weight says how much a row counts in the fit, a flag that it is unusual. Rows far out in the
    subspace of principal components are both.
    """
    relative = np.asarray(results.relative_weights)
    kept = flagged_rows(results, level) & (relative > LARGE)
    if kept.any() and np.ptp(relative) <= EQUAL:
        return _subject(int(kept.sum()), unit) + f": all {unit}s have equal weights here."
    inside = kept & _score_outliers(results, level)
    parts = [
        (
            inside,
            " (score outliers): far from the center, but in the subspace, and weights depend only "
            "on the distance from it.",
        ),
        (kept & ~inside, _other_reason(results, level)),
    ]
    return " ".join(_subject(int(rows.sum()), unit) + why for rows, why in parts if rows.any())


def _score_outliers(results: Results, level: float | None) -> Flags:
    """Return which rows are far from the center and not off the subspace, shape (n,)."""
    if "score_cutoff" not in dir(results):
        return np.zeros(np.size(results.losses), dtype=bool)
    components: Any = results
    each = float(
        np.sqrt(cutoff_level(level))
    )  # outliers() gives each of the two cutoffs this level
    far = np.asarray(components.score_distance) > components.score_cutoff(each)
    off = np.asarray(components.orthogonal_distance) > components.orthogonal_cutoff(each)
    return np.asarray(far & ~off)


def _other_reason(results: Results, level: float | None) -> str:
    if getattr(results, "group_view", None) is not None:
        return ": rows share the weight of their group."
    if level is None and getattr(results, "prob_bad", None) is not None:
        return ": more likely bad than good, but not surely bad."
    unusual = f": unusual at the level {cutoff_level(level):.1%}"
    return f"{unusual}, but not so far out that the fit gives up on them."


def _subject(count: int, unit: str) -> str:
    return f"{count:,} flagged {unit}{' has' if count == 1 else 's have'} a large weight"
