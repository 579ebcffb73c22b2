"""What results tell of eps_bar: how it was chosen, and whether a larger one changes the fit."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from rrmstats.core.choice import Choice
from rrmstats.results.grouping import GroupResults
from rrmstats.results.stability import Stability

if TYPE_CHECKING:
    from rrmstats.results.path_results import RRMPath

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

    def path(self, eps_bar: ArrayLike | None = None, *, progress: bool | None = None) -> RRMPath:
        """Fit the model at each of several bounds, with the steps and the options of this fit.

        Parameters
        ----------
        eps_bar : array_like, optional
            The bounds; see `path` of the model.
        progress : bool, optional
            Show a progress bar; see `path` of the model.

        Returns
        -------
        RRMPath

        Examples
        --------
        >>> import rrmstats
        >>> stars = rrmstats.datasets.stars_cyg.load_pandas().data
        >>> res = rrmstats.ols("log_light ~ log_te", stars).fit()
        >>> path = res.path([0, 0.1, 0.2])
        >>> path.steps, path.choice.eps_bar == res.eps_bar
        (2, True)
        """
        setting, inference = self._estimate.setting, self._inference
        found: RRMPath = self.model.path(
            eps_bar,
            steps=self.steps,
            n_starts=setting.n_starts,
            rng=setting.rng,
            tol=setting.tol,
            maxiter=setting.maxiter,
            cov_type=inference.cov_type,
            cov_kwds=inference.cov_kwds,
            use_t=inference.use_t,
            progress=progress,
        )
        return found

    def _bound_notes(self) -> list[str]:
        """Return how `eps_bar` was chosen, and whether a larger one changes the fit."""
        notes = []
        if self.choice is not None:
            notes.append(f"{self.choice.reason} Intervals are conditional on this value.")
        unknown = self.stability.largest is None and self.eps_bar > 0
        if not self.stability.stable or unknown:
            notes.append(self.stability.message)
        return notes
