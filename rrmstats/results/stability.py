"""The finding of the check whether a larger eps_bar changes a fit."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statsmodels.tools.sm_exceptions import ModelWarning


class UnstableWarning(ModelWarning):
    """A fit that a larger `eps_bar` changes by more than chance.

    Examples
    --------
    >>> import warnings, rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.05).fit()
    >>> [each.category.__name__ for each in caught]
    ['UnstableWarning']
    """


@dataclass(frozen=True, kw_only=True)
class Stability:
    """A fit compared with those at larger values of `eps_bar`.

    Explanations are compared at the largest bound. Where the best one has no more bad rows than
    `eps_bar` allows, it is the fit, and the fit is the same at all bounds in between. Otherwise
    the rows are explained anew at 0.02, 0.04, ... above `eps_bar`, up to the first bound at which
    a term is further off than chance allows, in standard errors of the fit there, from the fit
    at the bound before. These are the jumps of a path in two steps.

    Attributes
    ----------
    eps_bar : float
        The bound of the fit.
    largest : float or None
        The largest bound at which explanations were compared; None where they were not.
    differs_at : float or None
        The first bound at which another fit explains the rows better; None for a stable fit.
    pvalue : float
        P-value of the largest difference, corrected for the number of terms.
    terms : tuple of str
        Terms that differ by more than chance, the largest difference first.
    explained_at, explanation : float and str, or None
        The first bound at which the rows have another explanation, and its name; None where they
        have none up to `differs_at`.
    gained, lost : tuple
        Labels of rows that are bad only with the larger bound, and only with the smaller.
    unit : {"rows", "groups"}
        What is good or bad.
    why : str
        Why nothing was compared, where `largest` is None.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> res.stability.stable, res.stability.terms
    (True, ())
    """

    eps_bar: float
    largest: float | None = None
    differs_at: float | None = None
    pvalue: float = 1.0
    terms: tuple[str, ...] = ()
    explained_at: float | None = None
    explanation: str | None = None
    gained: tuple[Any, ...] = ()
    lost: tuple[Any, ...] = ()
    unit: str = "rows"
    why: str = ""

    @property
    def stable(self) -> bool:
        """Whether no larger bound changes the fit, as far as they were compared."""
        return self.differs_at is None

    @property
    def short(self) -> str:
        """The finding for a table."""
        if self.differs_at is not None:
            return f"NO, differs at {self.differs_at:.2g}"
        return "not checked" if self.largest is None else f"{self.largest:.2g}"

    @property
    def message(self) -> str:
        """The finding in sentences."""
        if self.largest is None:
            return f"Larger values of eps_bar were not compared: {self.why}."
        if self.differs_at is None:
            most, other = f"{self.largest:.2g}", ""
            if self.explained_at is not None:
                other = (
                    f", but from {self.explained_at:.2g} on it has another explanation of the rows"
                )
                other += f", {self.explanation}"
            return f"No larger eps_bar up to {most} changes the fit by more than chance{other}."
        text = (
            f"The fit changes with eps_bar = {self.differs_at:.2g} by more than chance in "
            f"{listed(self.terms)} (p = {self.pvalue:.1g})."
        )
        if self.gained:
            text += f" Bad only then: {self._named(self.gained)}."
        if self.lost:
            text += f" Bad no longer: {self._named(self.lost)}."
        return f"{text} Raise eps_bar, and see the path for all its values."

    def _named(self, labels: tuple[Any, ...]) -> str:
        """Return rows or groups by their labels, such as "row 3" or "rows 3, 5"."""
        unit = self.unit[:-1] if len(labels) == 1 else self.unit
        return f"{unit} {listed(labels)}"


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Return names as a list in a sentence, the first few of many."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


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
