"""Fits to rows in blocks in few passes: sums of a sample, corrected by those of all rows.

A fit is run several times, its sums over rows answered by a sample in memory. Between two runs one
pass over all rows finds by how much the last answers were off, for all sums of the fit together.
In the next run each answer is the sample's plus this difference. What is off after that is the
change of the difference, so that each round makes the error smaller by about one over the square
root of the size of the sample (the surrogate of Jordan, Lee and Yang 2019, for every sum).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rrmstats.core.blocks import Blocks, Leaves, Reduction, added, fused, sample_places
from rrmstats.core.entropy import Array
from rrmstats.core.tolerances import TINY

T = TypeVar("T")

# Relative change of the parameters to expect of a further round that is not worth a pass.
SETTLED = 6e-9


class Asked(NamedTuple):
    """A sum that a run asked for.

    Attributes
    ----------
    task : Reduction
    of_sample : float, ndarray or tuple
        The sum over the sample, scaled up.
    off : float, ndarray or tuple
        The sum over all rows less that; zero before a pass found it.
    """

    task: Reduction
    of_sample: Any
    off: Any = None

    def distance(self, other: Asked) -> float:
        """Return how far apart the sums over the sample are, relative to them."""
        one, two = _flat(self.of_sample), _flat(other.of_sample)
        return float(np.linalg.norm(one - two)) / max(float(np.linalg.norm(one)), TINY)


class Rounds:
    """Answers sums over rows while a fit runs.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks, self.sample = blocks, blocks.sample
        self.factor = len(blocks) / len(sample_places(len(blocks)))
        self._asked: dict[Any, list[Asked]] = {}
        self._read: dict[Any, list[Asked]] = {}
        self._decided: dict[Any, Any] = {}

    def answer(self, task: Reduction) -> Any:
        """Return a sum over the rows: the sample's, and what it was off in the last pass.

        What was off is that of the nearest sum that the same place in the code asked for.
        """
        now = Asked(task, _each(lambda value: self.factor * value, task(self.sample)))
        place = _place_in_code(), len(_flat(now.of_sample))
        # A loop asks for a sum many times: those within 1 % are one, and the last few are kept.
        others = [one for one in self._asked.get(place, []) if now.distance(one) > 0.01]
        self._asked[place] = [*others[-3:], now]
        if place not in self._read:
            return _each(np.copy, now.of_sample)  # the caller may write on it
        nearest = min(self._read[place], key=now.distance)
        return _each(lambda one, two: one + two, now.of_sample, nearest.off)

    def reduced(self, task: Callable[[Leaves], T]) -> T:
        """Return what a task other than a sum gives for the sample."""
        return task(self.sample)

    def decided(self, function: Callable[[], T]) -> T:
        """Return what a function decided when a run first asked for it."""
        place = _place_in_code()
        if place not in self._decided:
            self._decided[place] = function()
        return self._decided[place]

    def read(self) -> None:
        """Find in one pass by how much the last answers were off."""
        asked = [(place, one) for place, several in self._asked.items() for one in several]
        totals = self.blocks.combined(fused([one.task for _, one in asked]), added)
        self._asked, self._read = {}, {}
        for (place, one), total in zip(asked, totals, strict=True):
            off = _each(lambda all_rows, few: all_rows - few, total, one.of_sample)
            self._read.setdefault(place, []).append(one._replace(off=off))


def in_rounds(
    blocks: Blocks, run: Callable[[], T], numbers: Callable[[T], tuple[Array, Array]]
) -> T:
    """Return what a fit gives for all rows.

    Parameters
    ----------
    blocks : Blocks
    run : callable
        The fit, from the beginning.
    numbers : callable
        What tells whether it has settled: parameters and standard errors.
    """
    blocks.rounds = rounds = Rounds(blocks)
    last, change = None, np.nan
    try:
        for _ in range(12):
            found = run()
            if rounds.factor == 1:
                return found
            now, before = numbers(found), change
            if last is not None:
                params, errors = map(_relative_change, last, now)
                change = max(params, 0.1 * errors)  # a digit less of the errors will do
                if change * np.fmin(change / before, 1.0) <= SETTLED:
                    break
            last = now
            rounds.read()
        else:
            blocks.rounds = None  # each sum by a pass of its own
            found = run()
        return found
    finally:
        blocks.rounds = None


def _relative_change(before: Array, after: Array) -> float:
    """Return the largest change of numbers relative to the largest of them."""
    size = np.abs(after).max(initial=TINY)
    return float(np.abs(after - before).max(initial=0.0) / size)


def _each(function: Callable[..., Any], *trees: Any) -> Any:
    """Return a function of numbers, arrays, or tuples of these, place by place."""
    if isinstance(trees[0], tuple):
        return tuple(_each(function, *parts) for parts in zip(*trees, strict=True))
    return function(*trees)


def _flat(tree: Any) -> Array:
    """Return numbers, arrays, or tuples of these as one array."""
    if isinstance(tree, tuple):
        return np.concatenate([np.empty(0), *(_flat(part) for part in tree)])
    return np.ravel(tree).astype(float)


def _place_in_code() -> tuple[Any, ...]:
    """Return the place of a call within a run: its line, and the functions above it.

    Not their lines: what a loop asks for before it and in it has one place.
    """
    frame: Any = sys._getframe(2)
    while frame.f_globals["__name__"] == "rrmstats.core.block_array":
        frame = frame.f_back
    line, found = frame.f_lineno, []
    while frame is not None and frame.f_code is not in_rounds.__code__:
        found.append(frame.f_code)
        frame = frame.f_back
    return line, *found
