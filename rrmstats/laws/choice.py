"""The explanation of rows that Schwarz's criterion prefers, among several fits of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.laws.em import TINY, Fit, fitted
from rrmstats.laws.mixture import NO_BAD_ROWS, BadRows, GoodLaw, Mixture
from rrmstats.laws.rows import Rows
from rrmstats.laws.together import BY_THEMSELVES


@dataclass(frozen=True, eq=False)
class Laws:
    """What rows may look like.

    Attributes
    ----------
    good : GoodLaw
        Good rows as the model has them.
    wider : GoodLaw or None
        Good rows that vary more.
    bad : tuple of BadRows
    lower : ndarray, shape (k,), or None
        Least values of theta.
    divisible : bool
        Whether some of the rows can be evaluated without the others.
    """

    good: GoodLaw
    wider: GoodLaw | None
    bad: tuple[BadRows, ...]
    lower: Array | None = None
    divisible: bool = True

    def mixture(self, rows: Rows, eps_bar: float, bad: BadRows, wider: bool = False) -> Mixture:
        """Return an explanation of rows."""
        good = self.wider if wider and self.wider is not None else self.good
        middle = float(np.log(max(float(np.mean(rows.size * rows.endog)), TINY)))
        together = BY_THEMSELVES if rows.groups is None else rows.together
        return Mixture(good, bad, eps_bar, rows.total, middle, together)


def fits_of(
    rows: Rows, mixture: Mixture, candidates: Sequence[Array], lower: Array | None = None
) -> list[Fit]:
    """Return the fits of an explanation from candidates of theta, the likeliest first.

    The other parameters are fitted to theta before it moves.
    """
    fits = []
    for theta in candidates:
        starts = mixture.starts(rows.endog, rows.size, rows.predictors(theta))
        held = [
            fitted(Fit(rows, mixture, np.concatenate([theta, start]), lower), held=True)
            for start in starts
        ]
        fits.append(fitted(max(held, key=lambda fit: fit.log_likelihood)))
    return sorted(fits, key=lambda fit: -fit.log_likelihood)


def all_fits(rows: Rows, laws: Laws, candidates: Sequence[Array], eps_bar: float) -> list[Fit]:
    """Return the fits of all explanations, that which Schwarz's criterion prefers first.

    Parameters
    ----------
    rows : Rows
        In memory.
    laws : Laws
    candidates : sequence of ndarray, shape (k,)
        Parameters to start from, those of maximum likelihood first.
    eps_bar : float
        Largest share of bad rows.
    """

    def fits(bad: BadRows, near: Sequence[Array], wider: bool = False) -> list[Fit]:
        return fits_of(rows, laws.mixture(rows, eps_bar, bad, wider), near, laws.lower)

    plain = fits(NO_BAD_ROWS, candidates[:1])
    starts, least = [plain[0].theta, *candidates[1:]], plain[0].bic_gain
    found: list[list[Fit]] = []
    for bad in laws.bad:
        parts = [found[i][0] for i in bad.parts if found[i]]
        if bad.sloped and rows.groups is not None:  # rows of a group have one share
            found.append([])
            continue
        tried = len(parts) == len(bad.parts) and all(fit.bic_gain > least for fit in parts)
        found.append(fits(bad, _near(parts, starts)) if tried else [])
    every = plain + [fit for each in found for fit in each]
    if laws.wider is not None:
        every += fits(NO_BAD_ROWS, [plain[0].theta], wider=True)
        best = max((each[0] for each in found if each), key=lambda fit: fit.bic_gain)
        if best.bic_gain > least:
            every += fits(best.mixture.bad, [best.theta], wider=True)
    return sorted(every, key=lambda fit: -fit.bic_gain)


def _near(parts: Sequence[Fit], starts: Sequence[Array]) -> list[Array]:
    """Return parameters to start from: where several parts meet, those of the best."""
    if len(parts) > 1:
        return [max(parts, key=lambda fit: fit.log_likelihood).theta]
    return [*(fit.theta for fit in parts), *starts]
