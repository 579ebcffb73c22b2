"""What results tell of eps_bar: how it was chosen, and whether a larger one changes the fit."""

from __future__ import annotations

import inspect
import warnings
from functools import cached_property

from rrmstats.core.choice import Choice
from rrmstats.results.grouping import GroupResults
from rrmstats.results.stability import Stability, UnstableWarning

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
    """Results of a fit whose bound was given or chosen, and can be checked."""

    @property
    def choice(self) -> Choice | None:
        """How `eps_bar` was chosen, where it was "auto"; None where it was given."""
        return self.model.choice

    @property
    def term_names(self) -> list[str]:
        """Names of what the model estimates."""
        return list(self.model.data.param_names)

    @cached_property
    def stability(self) -> Stability | None:
        """The fit compared with one that has a larger `eps_bar`; None with ``stability=False``.

        The model makes that fit when it is first asked for, and warns where the two differ by
        more than chance. More than 100,000 rows are sampled.

        Examples
        --------
        >>> import rrmstats
        >>> hbk = rrmstats.datasets.hbk.load_pandas().data
        >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
        >>> res.stability.stable, res.stability.larger
        (True, 0.35)
        """
        if not self._estimate.setting.stability:
            return None
        found = self.model.stability_of(self._estimate)
        if not found.stable:
            warnings.warn(found.message, UnstableWarning, stacklevel=caller_level())
        return found

    def _bound_notes(self) -> list[str]:
        """Return how `eps_bar` was chosen, and whether a larger one changes the fit."""
        notes = []
        if self.choice is not None:
            notes.append(f"{self.choice.reason} Intervals are conditional on this value.")
        if self.stability is not None and not self.stability.stable:
            notes.append(self.stability.message)
        return notes
