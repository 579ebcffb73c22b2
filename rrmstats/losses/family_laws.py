"""What the rows of a generalized linear model may look like."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad
from rrmstats.laws.choice import Laws
from rrmstats.laws.counts import (
    AnyShare,
    CountCluster,
    EitherLabel,
    FalseZeros,
    OftenFlipped,
    OverdispersedCounts,
    OverdispersedShares,
    PlainCounts,
    WideCounts,
)
from rrmstats.laws.mixture import BadRows, GoodLaw
from rrmstats.laws.other_line import OtherLine
from rrmstats.laws.positive import Cluster, Dispersed, WideAround
from rrmstats.laws.rows import Rows
from rrmstats.losses.families import Binomial, Counts, Family, MeanFunction, NegativeBinomial


def laws_of_family(family: Family, mean: MeanFunction, rows: Rows) -> Laws:
    """Return what rows of a family may look like."""
    if isinstance(family, Counts) and not family.dispersed:
        good = PlainCounts(family, mean)
        if isinstance(family, Binomial):
            if float(np.max(rows.size)) < 2.0:  # labels vary as much as they can
                return Laws(good, None, (*bad_labels(rows), *other_lines(good, rows)))
            bad = (*bad_shares(), *other_lines(good, rows))
            return Laws(good, OverdispersedShares(mean), bad)
        given = family.alpha if isinstance(family, NegativeBinomial) else 0.0
        bad = (*bad_counts(), *other_lines(good, rows))
        return Laws(good, OverdispersedCounts(mean, given), bad)
    zeros = family.zeros and family.positive
    wide, cluster = WideAround(family.positive, zeros), Cluster(family.positive)
    dispersed = Dispersed(family, mean, rows.n_params, rows.total)
    return Laws(
        dispersed,
        None,
        (
            BadRows(Bad.WIDE, (wide,)),
            BadRows(Bad.CLUSTER, (cluster,)),
            BadRows(Bad.WIDE_AND_CLUSTER, (cluster, wide), parts=(0, 1)),
            *other_lines(dispersed, rows),
        ),
    )


def other_lines(good: GoodLaw, rows: Rows, start: Array | None = None) -> tuple[BadRows, ...]:
    """Return groups that follow another regression; none where rows are by themselves.

    A fit starts from given parameters of the designs, or from zero.
    """
    if rows.groups is None:
        return ()
    first = np.zeros(rows.n_params) if start is None else start
    return (BadRows(Bad.OTHER_LINE, (OtherLine(good, rows, first),)),)


def bad_labels(rows: Rows) -> tuple[BadRows, ...]:
    """Return what bad labels may look like."""
    if rows.groups is None:
        return (BadRows(Bad.WIDE, (EitherLabel(),)),)
    return (BadRows(Bad.LABEL_NOISE, (OftenFlipped(),)),)


def bad_counts(zeros: bool = True) -> tuple[BadRows, ...]:
    """Return what bad counts may look like."""
    wide, cluster, false = WideCounts(), CountCluster(), FalseZeros()
    far = (BadRows(Bad.WIDE, (wide,)), BadRows(Bad.CLUSTER, (cluster,)))
    if not zeros:
        return far
    both = Bad.WIDE_AND_ZEROS
    return (
        *far,
        BadRows(Bad.FALSE_ZEROS, (false,)),
        BadRows(Bad.FALSE_ZEROS, (false,), sloped=True, parts=(2,)),
        BadRows(both, (false, wide), parts=(0, 2)),
        BadRows(both, (false, wide), sloped=True, parts=(0, 3)),
        BadRows(both, (false, cluster), parts=(1, 2)),
        BadRows(both, (false, cluster), sloped=True, parts=(1, 3)),
    )


def bad_shares() -> tuple[BadRows, ...]:
    """Return what bad counts of successes may look like."""
    wide, false = AnyShare(), FalseZeros()
    return (
        BadRows(Bad.WIDE, (wide,)),
        BadRows(Bad.FALSE_ZEROS, (false,)),
        BadRows(Bad.FALSE_ZEROS, (false,), sloped=True, parts=(1,)),
    )
