"""From rows to the explanation that is reported: chosen, solved to the last digit, with errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rrmstats.core.block_array import row_sums
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Explained, best_of_each, of_groups
from rrmstats.laws.choice import Laws, all_fits, fits_of
from rrmstats.laws.em import Fit
from rrmstats.laws.mixture import NO_BAD_ROWS, Mixture
from rrmstats.laws.rows import Rows
from rrmstats.laws.stack import Moves, moves, rooted

# Rows on which an explanation is chosen; it is then solved on all of them.
MOST_ROWS = 100_000
# Steps of EM towards the fit to counts above zero, from which others start.
TRUNCATED_STEPS = 20


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
    rows: Rows,
    laws: Laws,
    candidates: Sequence[Array],
    eps_bar: float,
    agrees: Callable[[Array], bool],
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
    agrees : callable
        Tell whether theta may be that of the good rows. Where none are bad by the explanation that
        is preferred, and that is not true of it, one with bad rows takes its place that is
        likelier, before Schwarz's penalty, and of which it is true. (Where rows vary more than
        the model has it, the first step tells nothing.) It is not asked of groups, which tell
        more than single rows.
    """
    n = len(rows.endog)
    some = rows
    if laws.divisible and rows.groups is None and (rows.in_blocks or n > MOST_ROWS):
        some = rows.take(np.arange(0, n, max(1, -(-n // MOST_ROWS))))
    starts = [*candidates, *_without_zeros(some, laws, candidates)]
    fits = all_fits(some, laws, starts, eps_bar)
    best, converged = _best(fits)
    plain = best.mixture.bad is NO_BAD_ROWS and best.mixture.good is laws.good
    if plain and rows.groups is None and not agrees(best.theta):
        likelier = [fit for fit in fits if fit.log_likelihood > best.log_likelihood]
        best, converged = _best([fit for fit in likelier if agrees(fit.theta)] or [best])
    told = _explained(best, fits, len(laws.good.bounds[0]))
    if some is not rows:
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
    some = np.flatnonzero(rows.endog != 0)
    zeros = any(bad.kind is Bad.FALSE_ZEROS for bad in laws.bad)
    if not zeros or len(some) in (0, len(rows.endog)):
        return []
    part = rows.take(np.concatenate([some, some]))
    part = replace(part, endog=np.where(np.arange(2 * len(some)) < len(some), part.endog, 0.0))
    fit = fits_of(part, laws.mixture(part, 0.0, NO_BAD_ROWS), candidates[:1], laws.lower)[0]
    for _ in range(TRUNCATED_STEPS):
        zero = np.exp(fit.found.rows.log_density[len(some) :])
        mass = part.mass[: len(some)] * np.stack([np.ones(len(some)), zero / (1.0 - zero)])
        fit = replace(fit, rows=replace(part, mass=mass.ravel())).stepped()
    return [fit.theta]


def _good(mixture: Mixture, endog: Array, size: Array, predictors: Array, *designs: Any) -> Array:
    return mixture.probabilities(endog, size, predictors).good


def _squares(mass: Array, values: Array) -> float:
    return float(mass @ values**2)
