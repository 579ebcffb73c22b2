"""Objects whose arrays lie in blocks, as seen on some of the rows in memory."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from rrmstats.core.block_array import blocked, taken

T = TypeVar("T")


def on_rows(thing: T, places: np.ndarray) -> T:
    """Return a copy of an object of the package with the arrays of some rows in memory.

    Parameters
    ----------
    thing : object
        Such as an estimate; arrays in blocks are looked for in its attributes, and in theirs.
    places : ndarray of int, shape (m,)
    """
    arrays: dict[int, Any] = {}
    _find(thing, arrays, set())
    found = dict(zip(arrays, taken(places, *arrays.values()), strict=True)) if arrays else {}
    return _copied(thing, found, {}, len(places))


def _attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object of the package; none for others."""
    if not type(thing).__module__.startswith("rrmstats.") or blocked(thing):
        return {}
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    return dict(getattr(thing, "__dict__", {}))


def _find(thing: Any, arrays: dict[int, Any], seen: set[int]) -> None:
    if blocked(thing):
        arrays[id(thing)] = thing
    if id(thing) in seen:
        return
    seen.add(id(thing))
    for value in _attributes(thing).values():
        _find(value, arrays, seen)


def _copied(thing: Any, found: dict[int, Any], known: dict[int, Any], count: int) -> Any:
    if id(thing) in found:
        return found[id(thing)]
    attributes = _attributes(thing)
    if not attributes:
        return thing
    if id(thing) not in known:
        known[id(thing)] = copied = copy(thing)
        if hasattr(copied, "__dict__"):  # without what was computed for all rows
            for name in set(vars(copied)) - set(attributes):
                del vars(copied)[name]
        for name, value in attributes.items():
            object.__setattr__(copied, name, _copied(value, found, known, count))
        if "n_obs" in attributes:
            copied.n_obs = count
    return known[id(thing)]
