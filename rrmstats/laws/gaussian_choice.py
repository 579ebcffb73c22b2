"""Which explanation of Gaussian rows is best: EM from several candidates, compared by BIC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr, gammaln

from rrmstats.core.conventions import STRONG
from rrmstats.core.design import WIDE
from rrmstats.core.entropy import Array
from rrmstats.core.explanations import (
    FLAGGED,
    Bad,
    Explained,
    Explanation,
    Good,
    of_groups,
)
from rrmstats.laws.gaussian import (
    CONTAMINATED,
    HEAVY,
    KINDS,
    LOG_2PI,
    PLAIN,
    SHORT,
    Kind,
    Mixtures,
    Part,
    Rows,
    em_step,
    penalties,
    started,
)
from rrmstats.laws.gaussian_equations import polished

# Fits of a kind that go on.
GO_ON = 2
# Change of the log-likelihood, relative to the root of the number of rows, at which EM stops: far
# below the differences that BIC compares.
TOL = 1e-4
# The same for samples of the rows.
RESAMPLED_TOL = 1e-9
# Degrees of freedom from which Student fits start.
DEGREES = (1.5, 4.0, 12.0)
# Shapes of generalized normal noise: tails shorter than normal ones, up to nearly uniform noise,
# and heavier ones, up to Laplace noise.
# Derived: Laplace has 1, normal noise 2, uniform noise infinity.
SHORT_SHAPES, HEAVY_SHAPES = (2.0, 40.0), (1.0, 2.0)
# Rows in several dimensions: a likelihood without bound is that of a fit to few rows, which keeps
# less than this part of the rows that must be good; see also `Rows.refuses`.
# Convention: a part of the rows that the bound leaves.
LEAST_GOOD = 0.75
# Bad rows that may divide the good ones.
DIVIDING = (Bad.OTHER_LINE, Bad.TWO_CLUSTERS)
# The same where there is but a mean and a variance to find, which a share of the good rows taken
# for a cluster makes much smaller.
DIVIDING_VALUES = (*DIVIDING, Bad.CLUSTER, Bad.WIDE_AND_CLUSTER)


#: Takes a mixture of rows, a batch of one, to its maximum, and tells whether it did.
Polish = Callable[[Any, Mixtures, float], tuple[Mixtures, bool]]


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianExplanation(Explanation):
    """An explanation of Gaussian rows, with its mixture.

    Attributes
    ----------
    mixture : Mixtures
        A batch of one.
    entropy : float
        Entropy of which rows are bad.
    """

    mixture: Mixtures
    entropy: float

    @property
    def consistent(self) -> bool:
        """Whether a row is flagged if there are bad ones."""
        return self.bad is Bad.NONE or bool((self.prob_bad > FLAGGED).any())

    @property
    def icl(self) -> float:
        """Integrated classification likelihood on the scale of BIC."""
        return self.bic + 2 * self.entropy


def converged(rows: Rows, mixtures: Mixtures, eps_bar: float, rival: float = -np.inf) -> Mixtures:
    """Return mixtures after EM, until their log-likelihoods settle.

    EM of a mixture also stops where it would not reach the best of them within the steps that are
    left, were it to rise as in the last one.

    Parameters
    ----------
    rows, mixtures, eps_bar
        As `em_step` takes them.
    rival : float, optional
        The `criterion` of another fit.
    """
    cost = 0.5 * penalties(rows, mixtures, roughly=True)

    def hopeless(places: np.ndarray, value: Array, rises: Array) -> np.ndarray:
        nonlocal rival
        rival = max(rival, float((value - cost[places]).max()))
        return np.asarray(value - cost[places] + rises < rival)

    return risen(rows, mixtures, eps_bar, TOL, hopeless)


def risen(
    rows: Rows,
    mixtures: Mixtures,
    eps_bar: float,
    tol: float,
    hopeless: Callable[[np.ndarray, Array, Array], np.ndarray] | None = None,
    by_noise: bool = False,
) -> Mixtures:
    """Return mixtures after EM, until log-likelihoods change by less than a tolerance.

    Parameters
    ----------
    rows, mixtures, eps_bar, by_noise
        As `em_step` takes them.
    tol : float
        Relative to the root of the number of rows.
    hopeless : callable, optional
        Tells which mixtures may stop before, given their places, their log-likelihoods and what
        these would rise by within the steps that are left, were they to rise as in the last one.
    """
    left, done, order = np.arange(len(mixtures)), [mixtures.take([])], [np.zeros(0, int)]
    for steps in range(300, 0, -1):
        if not len(left):
            break
        new = em_step(rows.of(left), mixtures, eps_bar, by_noise)
        rise = np.abs(new.log_likelihood - mixtures.log_likelihood)
        settled, mixtures = rise < tol * np.sqrt(rows.total), new
        if hopeless is not None:
            settled |= hopeless(left, new.log_likelihood, steps * rise)
        if settled.any():
            done.append(new.take(settled))
            order.append(left[settled])
            mixtures, left = new.take(~settled), left[~settled]
    found = Mixtures.join([*done, mixtures])
    return found.take(np.argsort(np.concatenate([*order, left])))


def criterion(rows: Rows, mixtures: Mixtures) -> Array:
    """Return the log-likelihood less half of what BIC takes for the parameters, shape (b,).

    Of many columns roughly. It is infinitely small where the mixture is no explanation.
    """
    value = mixtures.log_likelihood - 0.5 * penalties(rows, mixtures, roughly=True)
    return np.where(of_enough_rows(rows, mixtures), value, -np.inf)


def of_enough_rows(rows: Rows, mixtures: Mixtures) -> np.ndarray:
    """Tell which mixtures are explanations, shape (b,).

    A line of bad rows that are fewer than twice its coefficients is none: it passes through any
    few rows. Nor is, in several dimensions, a cluster of fewer than two rows.
    """
    bad = rows.summed(1 - mixtures.good)
    few = mixtures.has(Part.LINE).any(axis=1) & (bad < 2 * rows.n_coef)
    if rows.dim > 1:
        small = mixtures.share[:, :, 0] * rows.total < 2 - TOL
        few |= (mixtures.has(Part.CLUSTER) & small).any(axis=1)
    return ~few


def best_of_kinds(rows: Rows, mixtures: Mixtures) -> list[int]:
    """Return the places of the best different mixtures of each kind, at most GO_ON of each.

    Of heavy tails all that are different: their likelihood may rise late.
    """
    value, heavy = criterion(rows, mixtures), mixtures.noise(Good.HEAVY_TAILS)
    found: list[int] = []
    for place in np.argsort(-value, kind="stable"):
        same = [i for i in found if mixtures.kind[i] == mixtures.kind[place]]
        near = any(abs(value[place] - value[i]) <= 1e-3 for i in same)
        more = len(same) < GO_ON or heavy[place]
        if np.isfinite(value[place]) and more and not near:
            found.append(int(place))
    return found


def tail_gains(rows: Rows, coef: Array, plain: Mixtures, shapes: tuple[float, float]) -> Array:
    """Return what noise of a generalized normal distribution adds to log-likelihoods, (m,).

    To that of the classical fit, each distribution with the scale that fits its residuals best.

    Parameters
    ----------
    rows : Rows
        Of one dimension.
    coef : ndarray, shape (m, k, 1)
        Fits with that noise.
    plain : Mixtures
        The classical fit.
    shapes : tuple of float
        Least and largest shape: 1 has the tails of a Laplace distribution, 2 normal ones.
    """
    classical, resid = (
        np.abs(rows.data - rows.fitted(each))[:, :, 0] for each in (plain.coef[:1], coef)
    )
    size = np.sqrt(classical**2 @ rows.counts / rows.total)
    found = generalized_normal(resid / size, rows.counts, shapes)[2]
    return found + 0.5 * rows.total * (LOG_2PI + 1)


def generalized_normal(
    size: Array, counts: Array, shapes: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Return shapes and scales that fit sizes of residuals (m, n) best, with log-likelihoods."""
    n, (low, high) = float(counts.sum()), np.log(shapes)
    with np.errstate(divide="ignore"):
        logs = np.log(size)[:, None]

    def fitted(log_shape: Array) -> tuple[Array, Array, Array]:
        shape = np.exp(log_shape)
        scale = (shape * (np.exp(shape[..., None] * logs) @ counts) / n) ** (1 / shape)
        return shape, scale, -n * (np.log(2 * scale / shape) + gammaln(1 / shape) + 1 / shape)

    grid = np.linspace(low, high, 9)
    best = grid[fitted(np.tile(grid, (len(size), 1)))[2].argmax(axis=1)]
    width = grid[1] - grid[0]
    for _ in range(4):  # parabolas through three points
        below, here, above = fitted(best[:, None] + width * np.arange(-1, 2))[2].T
        bend = below - 2 * here + above
        move = 0.5 * (below - above) / np.where(bend < 0, bend, -np.inf)
        best = np.clip(best + width * np.clip(move, -1, 1), low, high)
        width /= 4
    shape, scale, value = fitted(best[:, None])
    return shape[:, 0], scale[:, 0], value[:, 0]


def short_tails(rows: Rows, plain: Mixtures) -> Mixtures:
    """Return the classical fit with tails shorter than normal ones."""
    gain = np.maximum(tail_gains(rows, plain.coef, plain, SHORT_SHAPES), 0.0)
    found = plain.started_as([SHORT], gain=gain)
    return replace(found, log_likelihood=plain.log_likelihood + gain)


def with_laplace_tails(rows: Rows, heavy: Mixtures, plain: Mixtures) -> Mixtures:
    """Return fits with Student noise, with the mean likelihood of two families of tails.

    Laplace noise has a peak that Student's distribution lacks; its fits serve both. Neither family
    is more likely than the other before the rows are seen.
    """
    tails = plain.log_likelihood[0] + tail_gains(rows, heavy.coef, plain, HEAVY_SHAPES)
    both = np.logaddexp(tails, heavy.log_likelihood) - np.log(2)
    return replace(heavy, gain=both - heavy.log_likelihood, log_likelihood=both)


def first_starts(
    rows: Rows, candidates: Sequence[tuple[Array, Array]], eps_bar: float
) -> tuple[Mixtures, Mixtures]:
    """Return the classical fit, and starts with bad rows, from all candidates, or Student noise.

    The latter start from the lowest minimum and from the classical fit, the last candidate.
    """
    lines = rows.n_coef > 1 or (rows.groups is not None and len(rows.whole.middle) > 0)
    shapes = rows.whole.overall is not None
    none = [Bad.OTHER_LINE] * (not lines) + [Bad.OTHER_SHAPE] * (not shapes)
    kinds = [kind for kind in CONTAMINATED if kind.bad not in none]
    found = started(rows, candidates, [PLAIN, HEAVY, *kinds], eps_bar)
    places = np.arange(len(found)).reshape(len(candidates), -1)
    ends = places[sorted({0, len(candidates) - 1}), 1]
    heavy = found.take(np.repeat(ends, len(DEGREES)))
    heavy = replace(heavy, df=np.tile(DEGREES, len(ends)))
    return found.take(places[-1:, 0]), Mixtures.join([found.take(places[:, 2:].ravel()), heavy])


def screened(rows: Rows, starts: Mixtures, eps_bar: float) -> Mixtures:
    """Return the best of each kind after ten steps of EM, and one more for every two dimensions.

    Of many rows they are compared on some of them.
    """
    enough = max(1_000, 20 * rows.n_coef, 20 * rows.dim)
    step = max(len(rows.counts) // enough, 1) if rows.groups is None else 1
    few, starts, parts = rows.thinned(step), starts.thinned(step), []
    for some in few.portions(len(starts)):
        parts.append(starts.take(some))
        for _ in range(10 + rows.dim // 2):
            parts[-1] = em_step(few, parts[-1], eps_bar)
    mixtures = sound(few, Mixtures.join(parts), eps_bar)
    mixtures = mixtures.take(best_of_kinds(few, mixtures))
    return mixtures.on(rows) if step > 1 else mixtures


def sound(rows: Rows, mixtures: Mixtures, eps_bar: float) -> Mixtures:
    """Return the mixtures that are no fits to few rows, whose likelihood has no bound.

    The good rows of a sound one outnumber its coefficients.
    """
    return mixtures.take(are_sound(rows, mixtures, eps_bar, rows))


def are_sound(rows: Rows, mixtures: Mixtures, eps_bar: float, data: Rows) -> np.ndarray:
    """Tell which mixtures are sound, shape (b,); `data` tell what is the scatter of few rows."""
    least = max(LEAST_GOOD * (1 - eps_bar) * rows.total, rows.n_coef + 1 - TOL)
    found = rows.summed(mixtures.good) >= least
    for i in np.flatnonzero(found):
        found[i] = not data.refuses(mixtures.coef[i], mixtures.scatter[i])
    return found


def further_starts(rows: Rows, plain: Mixtures, bad: Mixtures) -> Mixtures:
    """Return starts like others, the best first, but that the noise of good rows is not plain.

    It changes with the rows, without bad rows or with them, unless effects were taken out: those
    of few rows follow the largest noise. Beside bad groups it has tails.
    """
    starts = [plain.take([])]
    if rows.dim == 1 and len(rows.whole.middle) and not rows.whole.absorbed:
        best = Mixtures.join([plain, bad.take(np.arange(min(GO_ON, len(bad))))])
        best = best.take([i for i, kind in enumerate(bads(best)) if kind not in DIVIDING])
        # Of many columns noise that changes with each has as many parameters as the fit.
        wide = len(rows.whole.middle) > WIDE
        for good in (Good.GROWING_NOISE, Good.CHANGING_NOISE)[: 1 if wide else 2]:
            starts.append(best.started_as([Kind(good, kind) for kind in bads(best)]))
    if rows.groups is not None:
        kinds = [Kind(Good.HEAVY_TAILS, kind) for kind in bads(bad)]
        starts.append(bad.started_as(kinds, df=np.full(len(bad), DEGREES[1])))
    return Mixtures.join(starts)


def bads(mixtures: Mixtures) -> list[Bad]:
    """Return what the bad rows of mixtures are like."""
    return [KINDS[kind].bad for kind in mixtures.kind]


def compared(
    rows: Rows, candidates: Sequence[tuple[Array, Array]], eps_bar: float
) -> tuple[GaussianExplanation, ...]:
    """Return the best fit of each explanation of the rows, the smallest BIC first.

    Parameters
    ----------
    rows : Rows
    candidates : sequence of tuples of ndarray, shapes (k, d) and (d, d)
        Coefficients and scatters to start from, the lowest minimum of the risk first.
    eps_bar : float
        Bound on the share of bad rows.
    """
    every = [*candidates, *one_sided(rows, eps_bar), rows.classical]
    plain, starts = first_starts(rows, every, eps_bar)
    plain, found = em_step(rows, plain, eps_bar), screened(rows, starts, eps_bar)
    least = float(criterion(rows, plain)[0])
    found = sound(rows, converged(rows, found, eps_bar, least), eps_bar)
    value = criterion(rows, found)
    found = found.take(np.argsort(-value, kind="stable"))
    heavy, bad = (found.take(found.noise(Good.HEAVY_TAILS) == each) for each in (True, False))
    further = further_starts(rows, plain, bad)
    further = converged(rows, further, eps_bar, float(value.max(initial=least)))
    if rows.groups is not None:
        further = sound(rows, further, eps_bar)
    if rows.dim == 1:
        plain = Mixtures.join([plain, short_tails(rows, plain)])
        heavy = with_laplace_tails(rows, heavy, plain)
    elif len(found) and rows.refuses(plain.coef[0], plain.scatter[0]):
        plain = plain.take([])
    mixtures = Mixtures.join([plain, heavy, bad, further])
    value = criterion(rows, mixtures)
    order = np.argsort(-value, kind="stable")[: np.isfinite(value).sum()]
    best = order[np.unique(mixtures.kind[order], return_index=True)[1]]
    return tuple(sorted(as_explanations(rows, mixtures.take(best)), key=lambda each: each.bic))


def one_sided(rows: Rows, eps_bar: float) -> list[tuple[Array, Array]]:
    """Return fits to the rows on either side of the classical fit: coefficients and variances.

    Many bad rows on one side draw the classical fit between them and the good ones, so that none
    is far from it. Exact fits are left out.
    """
    if rows.dim > 1:
        return []
    coef, scatter = (np.stack([each] * 2) for each in rows.classical)
    for _ in range(3):
        resid = (rows.data - rows.fitted(coef))[:, :, 0] * np.array([[-1.0], [1.0]])
        order = np.argsort(resid, axis=1, kind="stable")
        counts = rows.counts[order]
        inside = np.cumsum(counts, axis=1) <= (1 - eps_bar) * rows.total
        kept = np.zeros_like(resid)
        np.put_along_axis(kept, order, inside * counts, axis=1)
        coef, scatter = rows.fits(kept)
    return [fit for fit in zip(coef, scatter, strict=True) if not rows.refuses(*fit)]


def curved(rows: Rows, weights: Array) -> tuple[float, float, int]:
    """Return squared residuals without and with squares of the predictors, and how many are added.

    Of least squares with weights (n,); the squares that are added are not spanned by the others.
    """
    varying, root = rows.whole.varying(rows.exog), np.sqrt(weights)[:, None]
    left = []
    for exog in (rows.exog, np.hstack([rows.exog, varying**2])):
        size = np.linalg.norm(root * exog, axis=0)
        unit = root * exog / np.where(size > 0, size, 1.0)
        coef, _, rank, _ = np.linalg.lstsq(unit, root * rows.data, rcond=1e-6)
        squares = float(np.sum((root * rows.data - unit @ coef) ** 2))
        left.append((max(squares, np.finfo(float).tiny), int(rank)))
    (plain, few), (bent, many) = left
    return plain, bent, many - few


def best_explanation(
    rows: Rows,
    candidates: Sequence[tuple[Array, Array]],
    eps_bar: float,
    polish: Polish = polished,
) -> tuple[Explained, Mixtures, bool]:
    """Return the explanations of the rows, the mixture of the best, and whether it converged.

    The best one that converges is chosen. In one dimension strong evidence for one that does not
    counts more; in several it may be that of a likelihood without bound.

    Parameters
    ----------
    rows, candidates, eps_bar
        As `compared` takes them.
    polish : callable, optional
        What takes a mixture to its maximum, and tells whether it did.
    """
    ranked = compared(rows, candidates, eps_bar)
    tried: list[tuple[GaussianExplanation, GaussianExplanation, bool]] = []
    margin = STRONG if rows.dim == 1 else np.inf
    for each in believed(rows, ranked):
        if tried and (tried[-1][2] or each.bic > tried[0][0].bic + margin):
            break
        mixture, settled = polish(rows, each.mixture, eps_bar)
        last = each, as_explanations(rows, mixture)[0], settled
        if keeps_flags(each, last[1]) and len(sound(rows, mixture, eps_bar)):
            tried.append(last)
    tried = tried or [last]
    best, chosen, settled = next((found for found in tried if found[2]), tried[0])
    others = [each for each in ranked if each is not best]
    explained = Explained(explanations=(chosen, *others), chosen=chosen)
    return explained, chosen.mixture, settled


def believed(rows: Rows, ranked: Sequence[GaussianExplanation]) -> list[GaussianExplanation]:
    """Return explanations, the smallest BIC first, in the order in which to believe them.

    Those with bad rows of which none is flagged come last. But two lines through one cloud of
    rows explain much and tell none of them apart, and so does a second cluster among the good
    rows. Where such an explanation is best, the evidence for it must be strong, also against a
    curve through all rows, and where the next one has bad rows too, its classification likelihood
    must be larger (ICL; Biernacki, Celeux and Govaert, 2000): BIC less the entropy of which rows
    are bad.
    """
    others, values = [np.inf], rows.dim == 1 and not len(rows.whole.middle)
    if ranked[0].bad is Bad.OTHER_LINE:
        straight, bent, added = curved(rows, rows.counts)
        gain = rows.total * np.log(straight / bent) - added * np.log(rows.total)
        others += [each.bic - float(gain) for each in ranked if (each.good, each.bad) == PLAIN]
    ranked = sorted(ranked, key=lambda each: (not each.consistent, each.bic))
    best, dividing = ranked[0], DIVIDING_VALUES if values else DIVIDING
    rival = next((each for each in ranked if each.bad not in dividing), best)
    weak = best.bic > min(rival.bic, *others) - STRONG
    unsure = rival.bad is not Bad.NONE and rival.icl < best.icl
    return [rival, *(each for each in ranked if each is not rival)] if weak or unsure else ranked


def resampled(
    rows: Rows, explained: Explained, samples: Array, eps_bar: float
) -> tuple[Mixtures, np.ndarray]:
    """Return the mixture that explains each sample of rows, and which samples have one.

    EM starts from the explanations that were compared for the rows. The chosen one stays that of
    a sample unless another is better by half of its evidence: what chance added to the likelihood
    of the data is in a sample twice, once from the data, once from the draws.

    Parameters
    ----------
    rows : Rows
    explained : Explained
        Their explanations.
    samples : ndarray, shape (s, n)
        How often each row counts in each sample.
    eps_bar : float
    """
    told = [each for each in explained.explanations if isinstance(each, GaussianExplanation)]
    s, e = len(samples), len(told)
    own = next(i for i, each in enumerate(told) if each is explained.chosen)
    unseen = Mixtures.join([each.mixture for each in told]).take(np.tile(np.arange(e), s))
    unseen.log_likelihood[:] = -np.inf
    frame = rows.whole._replace(total=float(samples[0].sum()))
    drawn = replace(rows, counts=np.repeat(samples, e, axis=0), frame=frame)
    start_cost, least = penalties(drawn, unseen), np.full(s, -np.inf)

    def hopeless(places: np.ndarray, value: Array, rises: Array) -> np.ndarray:
        sample, evidence = places // e, value - start_cost[places]
        of_own = places % e == own
        least[sample[of_own]] = evidence[of_own]
        return np.asarray(evidence + rises < least[sample])

    found = risen(drawn, unseen, eps_bar, TOL, hopeless)
    likelihood = found.log_likelihood.reshape(s, e)
    cost = penalties(drawn, found).reshape(s, e)
    sound = are_sound(drawn, found, eps_bar, rows) & np.isfinite(criterion(drawn, found))
    sound = sound.reshape(s, e)
    better = likelihood - likelihood[:, [own]] >= cost - cost[:, [own]]
    better[:, own] = False
    chosen = np.full(s, own)
    for i in np.flatnonzero(sound.any(axis=1) & ~(sound[:, own] & ~(better & sound).any(axis=1))):
        places = np.flatnonzero(sound[i])
        alone = replace(drawn, counts=samples[i])
        each = as_explanations(alone, found.take(i * e + places))
        best = places[each.index(believed(alone, sorted(each, key=lambda one: one.bic))[0])]
        if better[i, best] or not sound[i, own]:
            chosen[i] = best
    found = found.take(np.arange(s) * e + chosen)
    drawn = replace(drawn, counts=samples)
    return risen(drawn, found, eps_bar, RESAMPLED_TOL, by_noise=True), np.asarray(
        sound.any(axis=1)
    )


def keeps_flags(before: GaussianExplanation, after: GaussianExplanation) -> bool:
    """Tell whether a polish keeps more of the flagged rows than it changes.

    Else it has left the explanation for another one. Where there are bad rows, one is flagged.
    """
    old, new = (each.prob_bad > FLAGGED for each in (before, after))
    return after.consistent and int((old ^ new).sum()) <= int((old & new).sum())


def as_explanations(rows: Rows, mixtures: Mixtures) -> list[GaussianExplanation]:
    """Return mixtures as explanations."""
    bad, costs = 1 - mixtures.good, penalties(rows, mixtures)
    numbers = mixtures.n_params(rows)
    eps = rows.summed(mixtures.row_shares().sum(axis=0)) / rows.total
    entropy = rows.together.total(entr(bad) + entr(1 - bad))
    return [
        GaussianExplanation(
            good=KINDS[kind].good,
            bad=KINDS[kind].bad,
            log_likelihood=float(mixtures.log_likelihood[i]),
            penalty=float(costs[i]),
            eps=float(eps[i]),
            prob_bad=of_groups(bad[i], rows.groups),
            n_params=int(numbers[i]),
            mixture=mixtures.take([i]),
            entropy=float(entropy[i]),
        )
        for i, kind in enumerate(mixtures.kind)
    ]
