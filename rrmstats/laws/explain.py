"""From rows to the explanation that is reported: chosen, solved to the last digit, with errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import in_blocks, row_sums
from rrmstats.core.blocks import sample_places
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Explained, best_of_each, of_groups
from rrmstats.core.rounds import decided_once
from rrmstats.laws.em import TINY, Fit, fitted
from rrmstats.laws.mixture import NO_BAD_ROWS, BadRows, GoodLaw, Mixture, Share
from rrmstats.laws.rows import Responses, Rows
from rrmstats.laws.stack import Moves, moves, rooted
from rrmstats.laws.together import BY_THEMSELVES

# Rows on which an explanation is chosen; it is then solved on all of them.
MOST_ROWS = 100_000
# Steps of EM towards the fit to counts above zero, from which others start.
TRUNCATED_STEPS = 20


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
        middle = float(np.log(max(float(np.mean(rows.seen.counts)), TINY)))
        together = BY_THEMSELVES if rows.groups is None else rows.together
        return Mixture(good, bad, eps_bar, rows.total, middle, together)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """The explanation that is reported.

    Attributes
    ----------
    fit : Fit
    converged : bool
    explained : Explained
    good : ndarray, shape (n,)
        Probability of each row to be good.
    moves : Moves
    """

    fit: Fit
    converged: bool
    explained: Explained
    good: Array
    moves: Moves

    @property
    def eps_error(self) -> float:
        """Standard error of the share of bad rows."""
        rows = self.fit.rows
        moves = rows.together.sums(self.moves.eps)
        return float(np.sqrt(row_sums(_squares, rows.together.decisions, moves))) / rows.total


def explained_rows(
    rows: Rows, laws: Laws, candidates: Sequence[Array], eps_bar: float
) -> ExplainedRows:
    """Return the best explanation of rows, in memory or in blocks.

    Parameters
    ----------
    rows : Rows
    laws : Laws
    candidates : sequence of ndarray, shape (k,)
        Parameters to start from, those of maximum likelihood first.
    eps_bar : float
        Largest share of bad rows.
    """
    n = len(rows.seen.endog)

    def decide() -> tuple[Fit, bool, Explained, bool]:
        some = rows
        if laws.divisible and rows.groups is None and (rows.in_blocks or n > MOST_ROWS):
            some = rows.take(sample_places(n))
        starts = [*candidates, *_without_zeros(some, laws, candidates)]
        fits = all_fits(some, laws, starts, eps_bar)
        best, converged = _best(fits)
        told = _explained(best, fits, len(laws.good.bounds[0]))
        return best, converged, told, some is rows

    best, converged, told, all_rows = decided_once(in_blocks(rows.seen.endog), decide)
    if not all_rows:
        best, converged = rooted(replace(best, rows=rows))
    good = rows.map(partial(_good, best.mixture), best.params)
    moved = moves(best)
    chosen = replace(told.chosen, prob_bad=of_groups(1.0 - good, rows.groups), eps=moved.share)
    return ExplainedRows(best, converged, replace(told, chosen=chosen), good, moved)


def _best(fits: Sequence[Fit]) -> tuple[Fit, bool]:
    """Return the root that is best among those that fits in their order lead to.

    The first where none is a root, which is then told.
    """
    best: Fit | None = None
    for fit in fits:
        if best is not None and fit.bic_gain <= best.bic_gain:
            break
        root, converged = rooted(fit)
        if converged and (best is None or root.bic_gain > best.bic_gain):
            best = root
    return (fits[0], False) if best is None else (best, True)


def _explained(best: Fit, fits: Sequence[Fit], n_plain: int) -> Explained:
    """Return what is told of the chosen fit, at its root, and of all."""
    chosen = best.explanation(n_plain)
    every = [fit.explanation(n_plain) for fit in fits]
    others = [each for each in every if each.name != chosen.name]
    return Explained(explanations=best_of_each([chosen, *others]), chosen=chosen)


def _without_zeros(rows: Rows, laws: Laws, candidates: Sequence[Array]) -> list[Array]:
    """Return the fit to counts above zero, whatever made zeros of others, where these may lie.

    It is that of a distribution without zeros: as many are added to each count as it stands for.
    """
    some = np.flatnonzero(rows.seen.endog != 0)
    zeros = any(bad.kind is Bad.FALSE_ZEROS for bad in laws.bad)
    if not zeros or len(some) in (0, len(rows.seen.endog)):
        return []
    part = rows.take(np.concatenate([some, some]))
    endog = np.where(np.arange(2 * len(some)) < len(some), part.seen.endog, 0.0)
    part = replace(part, seen=part.seen._replace(endog=endog))
    fit = fits_of(part, laws.mixture(part, 0.0, NO_BAD_ROWS), candidates[:1], laws.lower)[0]
    for _ in range(TRUNCATED_STEPS):
        zero = np.exp(fit.found.rows.log_density[len(some) :])
        mass = part.mass[: len(some)] * np.stack([np.ones(len(some)), zero / (1.0 - zero)])
        fit = replace(fit, rows=replace(part, mass=mass.ravel())).stepped()
    return [fit.theta]


def _good(mixture: Mixture, seen: Responses, predictors: Array, *designs: Any) -> Array:
    return mixture.probabilities(seen, predictors).good


def _squares(mass: Array, values: Array) -> float:
    return float(mass @ values**2)


def fits_of(
    rows: Rows, mixture: Mixture, candidates: Sequence[Array], lower: Array | None = None
) -> list[Fit]:
    """Return the fits of an explanation from candidates of theta, the likeliest first.

    The other parameters are fitted to theta before it moves.
    """
    fits = []
    for theta in candidates:
        starts = mixture.starts(rows.seen, rows.predictors(theta))
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
        if bad.share is not Share.NOTHING and rows.groups is not None:
            found.append([])  # rows of a group have one share
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
