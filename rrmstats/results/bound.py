"""What results tell of eps_bar: how it was chosen, and whether a larger one changes the fit."""

from __future__ import annotations

import inspect

from rrmstats.core.choice import Choice
from rrmstats.results.grouping import GroupResults
from rrmstats.results.stability import Stability

# Packages whose code stands between a user and a warning.
WITHIN = {"rrmstats", "statsmodels", "functools"}


def caller_level() -> int:
    """Return how far up the stack the code is that uses this package, for its warnings."""
    level, frame = 0, inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in WITHIN:
            return level
        level, frame = level + 1, frame.f_back
    return level


class BoundResults(GroupResults):
    """Results of a fit whose bound was given or chosen, and was checked."""

    stability: Stability

    @property
    def choice(self) -> Choice | None:
        """How `eps_bar` was chosen, where it was "auto"; None where it was given."""
        return self.model.choice

    @property
    def term_names(self) -> list[str]:
        """Names of what the model estimates."""
        return list(self.model.data.param_names)

    def _bound_notes(self) -> list[str]:
        """Return how `eps_bar` was chosen, and whether a larger one changes the fit."""
        notes = []
        if self.choice is not None:
            notes.append(f"{self.choice.reason} Intervals are conditional on this value.")
        unknown = self.stability.largest is None and self.eps_bar > 0
        if not self.stability.stable or unknown:
            notes.append(self.stability.message)
        return notes
