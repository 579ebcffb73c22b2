"""What the rows of models with linear predictors may look like."""

from __future__ import annotations

import numpy as np

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad
from rrmstats.core.setting import Setting
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
from rrmstats.laws.explain import Laws
from rrmstats.laws.likelihood import KernelRows, WholeRows, unpredicted
from rrmstats.laws.mixture import BadRows, GoodLaw, Share
from rrmstats.laws.other_line import OtherLine
from rrmstats.laws.positive import Cluster, Dispersed, WideAround
from rrmstats.laws.rows import Responses, Rows
from rrmstats.losses.families import (
    Binomial,
    Counts,
    Family,
    Link,
    MeanFunction,
    NegativeBinomial,
    Poisson,
)
from rrmstats.losses.finite_differences import differences
from rrmstats.losses.kernels import PoissonKernel, ZeroInflatedKernel
from rrmstats.losses.likelihood_laws import CountLaw, Likelihood


def laws_of_family(family: Family, mean: MeanFunction, rows: Rows) -> Laws:
    """Return what rows of a family may look like."""
    if isinstance(family, Counts) and not family.dispersed:
        good = PlainCounts(family, mean)
        if isinstance(family, Binomial):
            if float(np.max(rows.seen.size)) < 2.0:  # labels vary as much as they can
                return Laws(good, None, (*bad_labels(rows), *other_lines(good, rows)))
            bad = (*bad_shares(), *other_lines(good, rows))
            return Laws(good, OverdispersedShares(mean), bad)
        given = family.alpha if isinstance(family, NegativeBinomial) else 0.0
        bad = (*bad_counts(), *other_lines(good, rows))
        return Laws(good, OverdispersedCounts(mean, given), bad)
    zeros = family.zeros and family.positive
    alone = rows.groups is None  # rows of a group have one share
    share = Share.FAR if alone and rows.seen.far.any() else Share.NOTHING
    wide, cluster = WideAround(family.positive, zeros), Cluster(family.positive)
    dispersed = Dispersed(family, mean, rows.n_params, rows.total)
    return Laws(
        dispersed,
        None,
        (
            BadRows(Bad.WIDE, (wide,), share),
            BadRows(Bad.CLUSTER, (cluster,), share),
            BadRows(Bad.WIDE_AND_CLUSTER, (cluster, wide), share, parts=(0, 1)),
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
        BadRows(Bad.FALSE_ZEROS, (false,), share=Share.CENTER, parts=(2,)),
        BadRows(both, (false, wide), parts=(0, 2)),
        BadRows(both, (false, wide), share=Share.CENTER, parts=(0, 3)),
        BadRows(both, (false, cluster), parts=(1, 2)),
        BadRows(both, (false, cluster), share=Share.CENTER, parts=(1, 3)),
    )


def bad_shares() -> tuple[BadRows, ...]:
    """Return what bad counts of successes may look like."""
    wide, false = AnyShare(), FalseZeros()
    return (
        BadRows(Bad.WIDE, (wide,)),
        BadRows(Bad.FALSE_ZEROS, (false,)),
        BadRows(Bad.FALSE_ZEROS, (false,), share=Share.CENTER, parts=(1,)),
    )


def rows_of_likelihood(likelihood: Likelihood, setting: Setting) -> Rows:
    """Return the rows of a likelihood as laws take them."""
    n, form = likelihood.n_obs, likelihood.closed
    ones = np.ones(n)
    mass = np.array(setting.counts(n))
    designs: tuple[Array, ...] = (ones[:, None],) * len(likelihood.start)
    offsets: tuple[Array, ...] = (np.zeros(n),) * len(designs)
    if form is not None:
        designs = form.designs
        offsets = tuple(np.broadcast_to(np.asarray(off, float), (n,)) for off in form.offsets)
    seen = Responses(likelihood.endog, ones, 0.0 * ones)
    return Rows(mass, setting.wnobs(n), seen, designs, offsets, setting.groups)


def laws_of_likelihood(likelihood: Likelihood, rows: Rows, unit: Array) -> Laws:
    """Return what the rows of a likelihood may look like.

    Parameters
    ----------
    likelihood : Likelihood
        With a law.
    rows : Rows
    unit : ndarray, shape (k,)
        Units of the parameters, for differences.
    """
    form, y = likelihood.closed, likelihood.endog
    if isinstance(form, CountLaw):
        kernel = form.kernel
        if isinstance(kernel, PoissonKernel):
            mean = MeanFunction.between(Link.log(), *Poisson().mean_bounds(y))
            return laws_of_family(Poisson(), mean, rows)
        bad = bad_counts(zeros=not isinstance(kernel, ZeroInflatedKernel))
        good = KernelRows(kernel.log_density, kernel.slopes, kernel.moments)
        bad = (*bad, *other_lines(good, rows, likelihood.start))
        return Laws(good, None, bad, likelihood.lower)
    counts = bool((y >= 0).all() and (y == np.round(y)).all())
    bad = (BadRows(Bad.WIDE, (WideCounts() if counts else unpredicted(y, rows.mass),)),)
    if form is not None:
        good = KernelRows(form.kernel.log_density, form.kernel.slopes)
        return Laws(good, None, (*bad, *other_lines(good, rows, likelihood.start)))
    scores = likelihood.scores

    def differenced(theta: Array) -> Array:
        return np.asarray(differences(likelihood.log_likelihood, theta, unit)).T

    whole = WholeRows(likelihood.log_likelihood, differenced if scores is None else scores)
    return Laws(whole, None, bad, likelihood.lower, divisible=False)
