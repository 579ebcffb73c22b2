"""Which explanation of Gaussian rows is best: EM from several candidates, compared by BIC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, gammaln

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import (
    Bad,
    Explained,
    Explanation,
    Good,
    best_of_each,
    of_groups,
)
from rrmstats.laws.gaussian import (
    CONTAMINATED,
    HEAVY,
    KINDS,
    NUMBER,
    OTHER_LINE,
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
from rrmstats.laws.gaussian_equations import Equations, polished

# Steps of EM from every candidate, and one more for every two dimensions, after which the best of
# each kind go on; steps in all.
SCREEN_STEPS, MAXITER = 10, 300
# Fits of a kind that go on, and the difference of log-likelihoods that tells two of them apart.
GO_ON, SAME = 2, 1e-3
# Change of the log-likelihood, relative to the root of the number of rows, at which EM stops: far
# below the differences that BIC compares.
TOL = 1e-4
# Fits to the rows on one side of the fit before.
SIDE_STEPS = 3
# Degrees of freedom from which Student fits start.
DEGREES = (1.5, 4.0, 12.0)
# Shapes of generalized normal noise: tails shorter than normal ones, up to nearly uniform noise,
# and heavier ones, up to Laplace noise.
SHORT_SHAPES, HEAVY_SHAPES = (2.0, 40.0), (1.0, 2.0)
# Rows in several dimensions: a likelihood without bound is that of a fit to few rows, which keeps
# less than this part of the rows that must be good; see also `Rows.refuses`.
LEAST_GOOD = 0.75
# Difference in BIC that is strong evidence (Kass and Raftery, 1995).
STRONG = 6.0
# Bad rows that may divide the good ones.
DIVIDING = (Bad.OTHER_LINE, Bad.TWO_CLUSTERS)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianExplanation(Explanation):
    """An explanation of Gaussian rows, with its mixture.

    Attributes
    ----------
    mixture : Mixtures
        A batch of one.
    candidate : int
        The start that it comes from; the number of candidates for the classical fit.
    entropy : float
        Entropy of which rows are bad.
    """

    mixture: Mixtures
    candidate: int
    entropy: float

    @property
    def icl(self) -> float:
        """Integrated classification likelihood on the scale of BIC."""
        return self.bic + 2 * self.entropy


def converged(rows: Rows, mixtures: Mixtures, eps_bar: float, steps: int = MAXITER) -> Mixtures:
    """Return mixtures after EM, until their log-likelihoods settle."""
    tol, done = TOL * float(np.sqrt(rows.total)), []
    for _ in range(steps):
        new = em_step(rows, mixtures, eps_bar)
        settled = np.abs(new.log_likelihood - mixtures.log_likelihood) < tol
        if settled.any():
            done.append(new.take(settled))
        mixtures = new.take(~settled) if settled.any() else new
        if not len(mixtures):
            break
    return Mixtures.join([*done, mixtures])


def criterion(rows: Rows, mixtures: Mixtures) -> Array:
    """Return the log-likelihood less half of what BIC takes for the parameters, shape (b,).

    A line of bad rows that are fewer than twice its coefficients is no explanation: it passes
    through any few rows. Nor is, in several dimensions, a cluster of fewer than two rows.
    """
    value = mixtures.log_likelihood - 0.5 * penalties(rows, mixtures)
    bad = (1 - mixtures.good) @ rows.counts
    few = mixtures.has(Part.LINE).any(axis=1) & (bad < 2 * rows.n_coef)
    if rows.dim > 1:
        small = mixtures.share[:, :, 0] * rows.total < 2 - TOL
        few |= (mixtures.has(Part.CLUSTER) & small).any(axis=1)
    return np.where(few, -np.inf, value)


def best_of_kind(rows: Rows, mixtures: Mixtures, kind: Kind, count: int) -> list[int]:
    """Return the places of the best mixtures of a kind that are different, at most `count`."""
    value = criterion(rows, mixtures)
    places = np.flatnonzero((mixtures.kind == NUMBER[kind]) & np.isfinite(value))
    found: list[int] = []
    for place in places[np.argsort(-value[places], kind="stable")]:
        if all(abs(value[place] - value[other]) > SAME for other in found):
            found.append(int(place))
        if len(found) == count:
            break
    return found


def tail_gain(rows: Rows, coef: Array, plain: Mixtures, shapes: tuple[float, float]) -> float:
    """Return what noise of a generalized normal distribution adds to the log-likelihood.

    To that of the classical fit, each distribution with the scale that fits its residuals best.

    Parameters
    ----------
    rows : Rows
        Of one dimension.
    coef : ndarray, shape (k, 1)
        The fit with that noise.
    plain : Mixtures
        The classical fit.
    shapes : tuple of float
        Least and largest shape: 1 has the tails of a Laplace distribution, 2 normal ones.
    """
    n, counts = rows.total, rows.counts

    def log_likelihood(resid: Array, shape: float) -> float:
        unit = (shape * float(counts @ resid**shape) / n) ** (1 / shape)
        return float(n * (np.log(shape) - np.log(2 * unit) - gammaln(1 / shape) - 1 / shape))

    classical, resid = (
        np.abs(rows.data - rows.fitted(each)[0])[:, 0] for each in (plain.coef, coef[None])
    )
    size = np.sqrt(counts @ classical**2 / n)
    found = minimize_scalar(
        lambda log_shape: -log_likelihood(resid / size, np.exp(log_shape)),
        bounds=(np.log(shapes[0]), np.log(shapes[1])), method="bounded",
    )  # fmt: skip
    return -float(found.fun) - log_likelihood(classical / size, 2.0)


def short_tails(rows: Rows, plain: Mixtures) -> Mixtures:
    """Return the classical fit with tails shorter than normal ones."""
    gain = np.full(1, max(tail_gain(rows, plain.coef[0], plain, SHORT_SHAPES), 0.0))
    number = np.array([NUMBER[SHORT]])
    return replace(plain, kind=number, gain=gain, log_likelihood=plain.log_likelihood + gain)


def with_laplace_tails(rows: Rows, heavy: Mixtures, plain: Mixtures) -> Mixtures:
    """Return fits with Student noise, with the likelihood of tails that fit better.

    Laplace noise has a peak that Student's distribution lacks; its fits serve both.
    """
    gain = [
        plain.log_likelihood[0] + tail_gain(rows, coef, plain, HEAVY_SHAPES) - likelihood
        for coef, likelihood in zip(heavy.coef, heavy.log_likelihood, strict=True)
    ]
    found = np.maximum(gain, 0.0)
    return replace(heavy, gain=found, log_likelihood=heavy.log_likelihood + found)


def heavy_tails(rows: Rows, candidates: Sequence[tuple[Array, Array]], eps_bar: float) -> Mixtures:
    """Return fits with Student noise, from the lowest minimum and from the classical fit."""
    starts = [
        replace(started(rows, *candidates[i], HEAVY, eps_bar, i), df=np.array([df]))
        for i in sorted({0, len(candidates) - 1})
        for df in DEGREES
    ]
    return sound(rows, converged(rows, Mixtures.join(starts), eps_bar), eps_bar)


def contaminated(
    rows: Rows, candidates: Sequence[tuple[Array, Array]], eps_bar: float
) -> Mixtures:
    """Return the best fits with bad rows, from all candidates."""
    lines = rows.n_coef > 1 or (rows.groups is not None and len(rows.whole.middle) > 0)
    kinds = [kind for kind in CONTAMINATED if kind != OTHER_LINE or lines]
    mixtures = Mixtures.join(
        [
            started(rows, *each, kind, eps_bar, i)
            for i, each in enumerate(candidates)
            for kind in kinds
        ]
    )
    for _ in range(SCREEN_STEPS + rows.dim // 2):
        mixtures = em_step(rows, mixtures, eps_bar)
    mixtures = sound(rows, mixtures, eps_bar)
    kept = [i for kind in kinds for i in best_of_kind(rows, mixtures, kind, GO_ON)]
    if not kept:
        return mixtures.take([])
    return sound(rows, converged(rows, mixtures.take(kept), eps_bar), eps_bar)


def sound(rows: Rows, mixtures: Mixtures, eps_bar: float) -> Mixtures:
    """Return the mixtures that are no fits to few rows, whose likelihood has no bound."""
    good = mixtures.good @ rows.counts >= LEAST_GOOD * (1 - eps_bar) * rows.total
    places = [
        int(i)
        for i in np.flatnonzero(good)
        if not rows.refuses(mixtures.coef[i], mixtures.scatter[i])
    ]
    return mixtures.take(places)


def changing_noise(rows: Rows, plain: Mixtures, bad: Mixtures, eps_bar: float) -> Mixtures:
    """Return fits whose noise changes with the rows, without bad rows and with them."""
    starts, sources = [], [(plain, Bad.NONE)]
    for place in np.argsort(-criterion(rows, bad), kind="stable")[:GO_ON]:
        sources.append((bad.take([int(place)]), KINDS[bad.kind[place]].bad))
    for good in (Good.GROWING_NOISE, Good.CHANGING_NOISE):
        for source, kind in sources:
            if kind not in DIVIDING:
                number = np.array([NUMBER[Kind(good, kind)]])
                unknown = np.full(1, -np.inf)
                starts.append(replace(source, kind=number, log_likelihood=unknown))
    return converged(rows, Mixtures.join(starts), eps_bar)


def heavy_beside_bad(rows: Rows, bad: Mixtures, eps_bar: float) -> Mixtures:
    """Return fits with bad groups, and Student noise of the rows of the others."""
    kinds = [KINDS[kind].bad for kind in bad.kind]
    starts = replace(
        bad,
        kind=np.array([NUMBER[Kind(Good.HEAVY_TAILS, kind)] for kind in kinds], dtype=int),
        df=np.full(len(bad), DEGREES[1]),
        log_likelihood=np.full(len(bad), -np.inf),
    )
    return sound(rows, converged(rows, starts, eps_bar), eps_bar)


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
    last = len(every) - 1
    plain = em_step(rows, started(rows, *every[-1], PLAIN, eps_bar, last), eps_bar)
    parts = [plain]
    if rows.dim == 1:
        parts.append(short_tails(rows, plain))
    heavy = heavy_tails(rows, every, eps_bar)
    parts.append(with_laplace_tails(rows, heavy, plain) if rows.dim == 1 else heavy)
    bad = contaminated(rows, every, eps_bar)
    parts.append(bad)
    if rows.groups is not None and len(bad):
        parts.append(heavy_beside_bad(rows, bad, eps_bar))
    if rows.dim == 1 and len(rows.whole.middle):
        parts.append(changing_noise(rows, plain, bad, eps_bar))
    mixtures = Mixtures.join(parts)
    mixtures = mixtures.take(np.isfinite(criterion(rows, mixtures)))
    if rows.dim > 1 and len(mixtures) > 1 and rows.refuses(plain.coef[0], plain.scatter[0]):
        mixtures = mixtures.take(np.arange(1, len(mixtures)))
    found = [explanation(rows, mixtures.take([i])) for i in range(len(mixtures))]
    return best_of_each(found)


def one_sided(rows: Rows, eps_bar: float) -> list[tuple[Array, Array]]:
    """Return fits to the rows on either side of the classical fit: coefficients and variances.

    Many bad rows on one side draw the classical fit between them and the good ones, so that none
    is far from it. Exact fits are left out.
    """
    if rows.dim > 1:
        return []
    found = []
    for side in (-1.0, 1.0):
        fit = rows.classical
        for _ in range(SIDE_STEPS):
            resid = (rows.data - rows.fitted(fit[0][None])[0])[:, 0]
            order = np.argsort(side * resid, kind="stable")
            kept = np.zeros(len(resid))
            inside = np.cumsum(rows.counts[order]) <= (1 - eps_bar) * rows.total
            kept[order] = inside * rows.counts[order]
            fit = rows.fit(kept)
        if not rows.refuses(*fit):
            found.append(fit)
    return found


def in_order(
    explanations: Sequence[GaussianExplanation], curve: float = np.inf
) -> list[GaussianExplanation]:
    """Return explanations in the order in which they are to be believed.

    By BIC, but that two lines through one cloud of rows explain much and tell none of them apart,
    and so does a second cluster among the good rows. Where such an explanation is best, the
    evidence for it must be strong, also against a curve through all rows, and where the next one
    has bad rows too, its classification likelihood must be larger (ICL; Biernacki, Celeux and
    Govaert, 2000): BIC less the entropy of which rows are bad.

    Parameters
    ----------
    explanations : sequence of GaussianExplanation
    curve : float, optional
        BIC of a curve through all rows; see `curve_gain`.
    """
    ranked = sorted(explanations, key=lambda each: each.bic)
    best = ranked[0]
    rival = next((each for each in ranked if each.bad not in DIVIDING), best)
    weak = best.bic > min(rival.bic, curve) - STRONG
    unsure = rival.bad is not Bad.NONE and rival.icl < best.icl
    if weak or unsure:
        return [rival, *(each for each in ranked if each is not rival)]
    return ranked


def curve_gain(rows: Rows) -> float:
    """Return by how much squares of the predictors lower the BIC of least squares."""
    varying, root = rows.whole.varying(rows.exog), np.sqrt(rows.counts)[:, None]
    curved = np.hstack([rows.exog, varying**2])
    left = []
    for exog in (rows.exog, curved):
        coef, _, rank, _ = np.linalg.lstsq(root * exog, root * rows.data, rcond=None)
        squares = float(np.sum((root * (rows.data - exog @ coef)) ** 2))
        left.append((max(squares, np.finfo(float).tiny), rank))
    (plain, few), (bent, many) = left
    return float(rows.total * np.log(plain / bent) - (many - few) * np.log(rows.total))


def best_explanation(
    rows: Rows,
    candidates: Sequence[tuple[Array, Array]],
    eps_bar: float,
) -> tuple[Explained, Equations, bool]:
    """Return the explanations of the rows, the equations of the best, and whether it converged.

    The best one that converges is chosen. In one dimension strong evidence for one that does not
    counts more; in several it may be that of a likelihood without bound.

    Parameters
    ----------
    rows, candidates, eps_bar
        As `compared` takes them.
    """
    ranked = compared(rows, candidates, eps_bar)
    curve = np.inf
    if ranked[0].bad is Bad.OTHER_LINE:
        plain = [each.bic for each in ranked if (each.good, each.bad) == PLAIN]
        curve = plain[0] - curve_gain(rows) if plain else np.inf
    tried: list[tuple[GaussianExplanation, Mixtures, bool]] = []
    margin = STRONG if rows.dim == 1 else np.inf
    for each in in_order(ranked, curve):
        if tried and (tried[-1][2] or each.bic > tried[0][0].bic + margin):
            break
        mixture, settled = polished(rows, each.mixture, eps_bar)
        if len(sound(rows, mixture, eps_bar)):
            tried.append((each, mixture, settled))
    if not tried:
        tried.append((each, mixture, settled))
    best, mixture, settled = next((found for found in tried if found[2]), tried[0])
    others = [each for each in ranked if each is not best]
    chosen = explanation(rows, mixture)
    explained = Explained(explanations=(chosen, *others), chosen=chosen)
    return explained, Equations(rows, mixture, eps_bar), settled


def explanation(rows: Rows, mixture: Mixtures) -> GaussianExplanation:
    """Return one mixture as an explanation."""
    kind, prob_bad = KINDS[int(mixture.kind[0])], 1 - mixture.good[0]
    return GaussianExplanation(
        good=kind.good,
        bad=kind.bad,
        log_likelihood=float(mixture.log_likelihood[0]),
        eps=float(rows.counts @ mixture.row_shares()[:, 0].sum(axis=0)) / rows.total,
        prob_bad=of_groups(prob_bad, rows.groups),
        mixture=mixture,
        candidate=int(mixture.candidate[0]),
        penalty=float(penalties(rows, mixture)[0]),
        entropy=float(rows.together.decisions @ (entr(prob_bad) + entr(1 - prob_bad))),
    )
