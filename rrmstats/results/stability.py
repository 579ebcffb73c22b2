"""The finding of the check whether a larger eps_bar changes a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statsmodels.tools.sm_exceptions import ModelWarning

# Terms and rows that a sentence names.
NAMED = 8


class UnstableWarning(ModelWarning):
    """A fit that a larger `eps_bar` changes by more than chance.

    Examples
    --------
    >>> import warnings, rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.05).fit()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     text = res.summary()
    >>> [each.category.__name__ for each in caught]
    ['UnstableWarning']
    """


@dataclass(frozen=True)
class Stability:
    """A fit compared with one that has a larger `eps_bar`.

    Efficient fits (in two steps) are compared, so that chance hides as little as possible, and
    where the reported fit has one step, fits in one step too. They differ where a term is further
    off than chance allows, in standard errors of the fit with the larger bound, or where that fit
    finds more rows corrupted than the smaller bound allows.

    Attributes
    ----------
    eps_bar : float
        The bound of the reported fit.
    larger : float or None
        The bound that it was compared with; None where the rows allow none.
    stable : bool
        Whether the two fits agree.
    pvalue : float
        P-value of the largest difference, corrected for the number of terms.
    terms : tuple of str
        Terms that differ by more than chance, the largest difference first.
    gained, lost : tuple
        Labels of rows that are outliers only with the larger bound, and only with the smaller.
    contamination : tuple of float, or None
        The corrupted fraction found with the larger bound and its standard error, where they
        show that `eps_bar` is too small.
    unit : {"rows", "groups"}
        What has weights, and is gained or lost.
    why : str
        Why there was no comparison, where `larger` is None.

    Examples
    --------
    >>> import rrmstats
    >>> hbk = rrmstats.datasets.hbk.load_pandas().data
    >>> res = rrmstats.ols("y ~ x1 + x2 + x3", hbk, eps_bar=0.2).fit()
    >>> res.stability.stable, res.stability.terms
    (True, ())
    """

    eps_bar: float
    larger: float | None
    stable: bool = True
    pvalue: float = 1.0
    terms: tuple[str, ...] = ()
    gained: tuple[Any, ...] = ()
    lost: tuple[Any, ...] = ()
    contamination: tuple[float, float] | None = None
    unit: str = "rows"
    why: str = "the data have too few rows for a larger eps_bar"

    @property
    def short(self) -> str:
        """The finding for a table."""
        if self.larger is None:
            return "not checked"
        return f"{self.larger:.3g}" if self.stable else f"NO, differs at {self.larger:.3g}"

    @property
    def message(self) -> str:
        """The finding in sentences."""
        if self.larger is None:
            return f"The fit was not compared with a more robust one: {self.why}."
        if self.stable:
            return f"The fit is the same, up to chance, with eps_bar = {self.larger:.3g}."
        text = f"A fit with eps_bar = {self.larger:.3g} differs."
        if self.terms:
            text = (
                f"The fit changes with eps_bar = {self.larger:.3g} by more than chance in "
                f"{listed(self.terms)} (p = {self.pvalue:.1g})."
            )
        if self.gained:
            text += f" Outliers only then: {self.unit} {listed(self.gained)}."
        if self.lost:
            text += f" Outliers no longer: {self.unit} {listed(self.lost)}."
        if self.contamination is not None:
            share, error = self.contamination
            text += (
                f" It finds {share:.2f} ({error:.2f}) of the rows corrupted, more than "
                f"eps_bar = {self.eps_bar:g} allows."
            )
        return f"{text} Raise eps_bar, and see path() for all its values."


def listed(names: Sequence[Any]) -> str:
    """Return names as a list in a sentence, the first few of many."""
    shown = ", ".join(str(name) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
