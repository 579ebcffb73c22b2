"""Explanations of labels: none flipped, flipped at random by class, or flipped where sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import chdtri, expit

from rrmstats.core.block_array import aligned, blocked, taken
from rrmstats.core.blocks import decided_once, sample_places
from rrmstats.core.conventions import VERY_STRONG
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import FLAGGED, Bad, Explained, Explanation, Good, best_of_each
from rrmstats.core.frames import clipped_spread, median_under
from rrmstats.laws.labels import (
    BOTH_ENDS,
    BY_CLASS,
    NO_FLIPS,
    ONE_RATE,
    ONES,
    ZEROS,
    FlippedLabels,
    Flips,
    LabelFit,
)
from rrmstats.losses.logistic import LogisticProblem, separable

# Rows on which starts take their first steps, and those to which explanations are then fitted and
# on which they are compared; the best is fitted to all.
TRIAL_ROWS, DECIDING_ROWS = 2_000, 20_000
#: Share of clean samples in which label noise may be chosen, and the bound on what this choice may
#: add to the variance of their coefficients; see `noise_price`. `--calibrate` prints the errors at
#: several costs: at this one no clean sample is called noisy, at the next some are, and half as
#: much raises the error of labels flipped at random by a sixth.
#: Calibrated: benchmarks/dirty_labels.py.
LEVEL, COST = 0.05, 0.2
# Steepness of flips where the model is sure: the first one tried, and the range in which it is
# doubled or halved as long as the likelihood rises. Below 1 sure labels are no more likely to be
# both flipped and seen than others; past the largest a flip is a matter of a threshold.
# Convention: powers of two around one.
STEEPNESS, STEEPNESS_RANGE = 4.0, (1.0, 16.0)
# Shares of flips at which fits start, in units of eps_bar.
# Convention: starts, of which the best is taken.
START_SHARES = (0.5, 0.1)
# Shares of the rows, the most central ones, whose fits are starts.
# Convention: starts, of which the best is taken.
CENTRAL_SHARES = (0.25, 0.5, 0.75)
# Newton steps that show which start leads highest, and a difference that is rounding.
TRIAL_STEPS, TIED = 3, 1e-6
# Variants of label noise, and the ends at which the model is sure.
NOISE, ENDS = (ONE_RATE, BY_CLASS), (BOTH_ENDS, ONES, ZEROS)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelExplanation(Explanation):
    """One explanation of labels.

    Attributes
    ----------
    flips : Flips
    z : ndarray, shape (k + d,)
        Coefficients in the coordinates of the problem, and rates.
    """

    flips: Flips
    z: Array

    def as_start(self, flips: Flips) -> Array:
        """Return the coefficients, with rates of other flips that are like these, (k + d,)."""
        k = len(self.z) - self.flips.n_rates
        log_odds = self.flips.chain @ self.z[k:]
        return np.r_[self.z[:k], log_odds @ flips.chain / flips.chain.sum(axis=0)]


@dataclass(frozen=True, eq=False)
class ExplainedLabels:
    """The explanation of labels that is reported, fitted to all rows.

    Attributes
    ----------
    problem : LogisticProblem
    fit : LabelFit
    explained : Explained
    alternatives : tuple of ndarray, shape (2, k)
        Differences of the parameters under explanations that are nearly as good, and the variance
        that they add, in the units of the data; see `alternatives_of`.
    moves : ndarray, shape (n, k)
        Influence functions of the coefficients, which move by their sum.
    share_moves : ndarray, shape (n,)
        Those of the share of flipped labels.
    shift : ndarray, shape (k,)
        How far the prior moved the coefficients.
    """

    problem: LogisticProblem
    fit: LabelFit
    explained: Explained
    alternatives: tuple[Array, ...]
    moves: Array
    share_moves: Array
    shift: Array

    @property
    def separated(self) -> bool:
        """Whether a hyperplane separates the labels that are not called flipped."""
        return separable(self.problem, self.explained.chosen.prob_bad <= FLAGGED)

    def reported(
        self, first: Estimate, theta: Array, losses: Array, sound: bool
    ) -> dict[str, Any]:
        """Return what estimates of all models of labels have in common, by the names there.

        Parameters
        ----------
        first : Estimate
            That of the first step.
        theta : ndarray, shape (k,)
            Coefficients in the coordinates of its problem.
        losses : ndarray, shape (n,)
            Losses of its problem at these.
        sound : bool
            Whether the first step has converged, or need not.
        """
        setting, law = first.setting, self.fit.law
        kept = (1.0 - self.explained.chosen.prob_bad) * setting.spread(len(losses))
        solution = first.solution.continued(
            theta, losses, kept / kept.sum(), first.solution.lambda_, setting
        )
        error = float(np.sqrt(law.counts @ self.share_moves**2)) if self.fit.eps > 0 else 0.0
        return {
            "first": first,
            "setting": setting,
            "solution": replace(solution, converged=sound and self.fit.converged),
            "explained": self.explained,
            "eps_hat": self.fit.eps,
            "eps_hat_se": error,
            "alternatives": self.alternatives,
        }


def explained_labels(
    plain: LogisticProblem,
    design: Design,
    columns: Array,
    first: Estimate,
    theta: Array,
    offset: Array | float = 0.0,
) -> ExplainedLabels:
    """Return the best explanation of labels, in memory or in blocks.

    Of many rows a sample decides which is best, and it is then fitted to all of them.

    Parameters
    ----------
    plain : LogisticProblem
        The labels and the design in the coordinates of the problem.
    design : Design
    columns : ndarray or BlockArray, shape (n, k)
        The design in the units of the data.
    first : Estimate
        That of the first step. Fits start from explanations at another bound, its `robust`,
        where they can.
    theta : ndarray, shape (k,)
        Its coefficients.
    offset : ndarray or BlockArray, shape (n,), or float, optional
        Added to the linear predictor.
    """
    setting, robust = first.setting, first.robust
    near = () if robust is None or robust.explained is None else robust.explained.explanations
    counts = aligned(setting.counts(plain.n_obs), plain.blocks)
    back = design.to_params(np.eye(plain.n_params))
    law = FlippedLabels(
        plain.endog, plain.exog, counts, back, setting.eps_bar, NO_FLIPS, setting.maxiter, offset
    )

    def decide() -> tuple[FlippedLabels, Array, list[LabelFit], list[LabelExplanation]]:
        some, some_columns = some_rows(law, columns, DECIDING_ROWS)
        units = clipped_spread(some_columns, some.counts)[:, None] * back
        near_fits = [each for each in near if isinstance(each, LabelExplanation)]
        among = replace(some, units=units)
        return some, units, *explain_labels(among, some_columns, theta, near_fits)

    some, units, fits, found = decided_once(plain.blocks, decide)
    alternatives = alternatives_of(fits, found, design, some.total / law.total)
    whole = replace(law, units=units, flips=fits[0].law.flips)
    fit = replace(fits[0], law=whole) if some is law else whole.polished(fits[0].value.z)
    chosen = replace(found[0], eps=fit.eps, prob_bad=fit.prob_bad())
    others = [each for each in found if each.name != chosen.name]
    told = Explained(explanations=best_of_each([chosen, *others]), chosen=chosen)
    return ExplainedLabels(plain, fit, told, alternatives, *fit.influence())


def some_rows(law: FlippedLabels, columns: Array, most: int) -> tuple[FlippedLabels, Array]:
    """Return rows in memory, evenly spaced where there are many, and their columns."""
    n = len(columns)
    if not blocked(law.exog) and n <= most:
        return law, columns
    drawn = sample_places(n)
    count = min(len(drawn), most)
    return taken_rows(law, columns, drawn[np.arange(count) * len(drawn) // count])


def taken_rows(
    law: FlippedLabels, columns: Array, places: np.ndarray
) -> tuple[FlippedLabels, Array]:
    """Return given rows in memory, and their columns."""
    offsets = law.offset + 0.0 * law.endog
    endog, exog, counts, offset, columns = taken(
        places, law.endog, law.exog, law.counts, offsets, columns
    )
    return replace(law, endog=endog, exog=exog, counts=counts, offset=offset), columns


def explain_labels(
    plain: FlippedLabels, columns: Array, theta: Array, near: Sequence[LabelExplanation] = ()
) -> tuple[list[LabelFit], list[LabelExplanation]]:
    """Return fits to labels, the one to choose first, and what they say.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    columns : ndarray, shape (n, k)
        The design in the units of the data.
    theta : ndarray, shape (k,)
        Coefficients of the first step.
    near : sequence of LabelExplanation, optional
        Explanations at another bound.
    """
    known = {each.bad: each for each in near}
    none = plain.fit(known[Bad.NONE].z if Bad.NONE in known else np.zeros(plain.n_coef))
    few = some_rows(plain, columns, TRIAL_ROWS)
    search = LabelSearch(plain, *few, (none.theta, theta), known)
    noise, sure = [search.best(flips, Bad.LABEL_NOISE) for flips in NOISE], search.steepest()
    fits = [none, *noise, sure]
    sure_price = sure.law.flips.n_params * np.log(plain.total)
    prices = [0.0, *(noise_price(none, fit) for fit in noise), sure_price]
    kinds = Bad.NONE, Bad.LABEL_NOISE, Bad.LABEL_NOISE, Bad.UNLIKELY_LABELS
    found = [
        LabelExplanation(
            good=Good.PLAIN,
            bad=bad,
            log_likelihood=float(fit.value.log_likelihood),
            # The prior of its coefficients is a part of its cost.
            penalty=price - 2.0 * float(fit.value.log_prior),
            eps=fit.eps,
            prob_bad=fit.prob_bad(),
            theta=fit.theta,
            n_params=fit.law.flips.n_params,
            flips=fit.law.flips,
            z=fit.value.z,
        )
        for fit, bad, price in zip(fits, kinds, prices, strict=True)
    ]
    order = sorted(range(4), key=lambda i: (bool(fits[i].value.mirrored), found[i].bic))
    return [fits[i] for i in order], [found[i] for i in order]


def alternatives_of(
    fits: Sequence[LabelFit], found: Sequence[LabelExplanation], design: Design, part: float
) -> tuple[Array, ...]:
    """Return what explanations that are nearly as good as none say of the parameters.

    Flipped labels shrink slopes long before there are enough of them to be told. So where no
    labels are called flipped, intervals have to allow for it.

    Parameters
    ----------
    fits, found : sequence of LabelFit, of LabelExplanation
        The chosen one first.
    design : Design
    part : float
        Share of the rows to which they were fitted.

    Returns
    -------
    tuple of ndarray, shape (2, k)
        Differences from the parameters without flips, and the variance that flips add.
    """
    none, k, differences = fits[0], fits[0].law.n_coef, []
    for fit, each in zip(fits[1:], found[1:], strict=True):
        sound = fit.converged and not fit.value.mirrored
        if found[0].bad is Bad.NONE and sound and each.bic - found[0].bic < VERY_STRONG:
            added = fit.variance[:k, :k] - none.variance
            variance = np.diag(design.to_params(design.to_params(added).T))
            shift = design.to_params(fit.theta - none.theta)
            differences.append(np.array([shift * part**0.5, np.maximum(variance, 0.0) * part]))
    return tuple(differences)


def noise_price(none: LabelFit, noise: LabelFit) -> float:
    r"""Return the gain from which label noise is chosen.

    With d rates the coefficients have a variance :math:`1 + r` times as large as without, in the
    mean over them. On clean labels the gain is at most a :math:`\chi^2_d` variable, and zero in
    half of the samples, since rates are not negative. Choosing noise where it exceeds c therefore
    adds a part of at most :math:`r P(\chi^2_{d + 2} > c) / 2` to the variance. The price is the
    c where that is COST, and where noise is chosen in a share LEVEL of the samples at most.
    """
    k, d = none.law.n_coef, noise.law.flips.n_rates
    increase = float(np.trace(-none.value.hessian @ noise.variance[:k, :k])) / k - 1.0
    bounded = chdtri(d + 2, 2.0 * COST / increase) if increase > 2.0 * COST else 0.0
    return max(float(bounded), float(chdtri(d, 2.0 * LEVEL)))


@dataclass(frozen=True, eq=False)
class LabelSearch:
    """Fits of labels under several kinds of flips, each from the start that leads highest.

    Attributes
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    few : FlippedLabels
        Those on which starts are tried.
    columns : ndarray, shape (m, k)
        The design of these in the units of the data.
    thetas : tuple of ndarray, shape (k,)
        Coefficients to start from; fits to the rows with the most central predictors are others.
    known : dict of LabelExplanation
        Explanations at another bound. Fits start from these alone, where that leads anywhere.
    """

    plain: FlippedLabels
    few: FlippedLabels
    columns: Array
    thetas: tuple[Array, ...]
    known: Mapping[Bad, LabelExplanation]

    @cached_property
    def starts(self) -> Array:
        """Coefficients to start from, shape (m, k)."""
        few, spread = self.few, clipped_spread(self.columns, self.few.counts)
        rows = self.columns[:, spread > 0] / spread[spread > 0]
        distance = np.sum((rows - median_under(rows, few.counts)) ** 2, axis=1)
        central = []
        for share in CENTRAL_SHARES:
            last = nearest_rows(distance, few.counts, share)[-1]
            part, _ = taken_rows(few, rows, np.flatnonzero(distance <= distance[last]))
            value, _ = part.climb(np.zeros((1, part.n_coef)), TRIAL_STEPS)
            central.append(value.z[0])
        return np.array([*self.thetas, *central])

    def best(self, flips: Flips, kind: Bad) -> LabelFit:
        """Return the fit from the start that leads highest, on few of the rows, in a few steps.

        Where classes change places on the way, from the next one.
        """
        law, tried = replace(self.plain, flips=flips), replace(self.few, flips=flips)
        if kind in self.known:
            fit = law.fit(self.known[kind].as_start(flips))
            if fit.converged and not fit.value.mirrored:
                return fit
        starts = [
            start_rates(tried, theta, share * law.eps_bar)
            for theta in self.starts
            for share in START_SHARES
        ]
        trials, _ = tried.climb(np.array(starts), TRIAL_STEPS)
        order = np.lexsort([-trials.penalized, trials.mirrored])
        best = law.fit(trials.z[order[0]])
        if not best.value.mirrored:
            return best
        ends, converged = law.climb(trials.z[order], law.steps)
        i = int(np.argmin(ends.mirrored))
        return LabelFit(law, ends.at(i), bool(converged[i]))

    def steepest(self) -> LabelFit:
        """Return the best fit of flips where the model is sure, at one end or both."""
        kinds, sure = [Flips(ways, STEEPNESS) for ways in ENDS], Bad.UNLIKELY_LABELS
        if sure in self.known:
            kinds = [self.known[sure].flips]
        fits = [self.best(flips, sure) for flips in kinds]
        best = max(fits, key=preference)
        # Flips at both ends with none at one of them are those at the other, up to rounding.
        tied = [fit for fit in fits if not fit.value.penalized < best.value.penalized - TIED]
        return max((climb(fit, factor) for fit in tied for factor in (2.0, 0.5)), key=preference)


def preference(fit: LabelFit) -> tuple[bool, float]:
    """Return what is larger for a better fit; one whose classes changed places is worse."""
    return not fit.value.mirrored, float(fit.value.penalized)


def climb(fit: LabelFit, factor: float) -> LabelFit:
    """Return the fit at the steepness, multiplied by a factor again and again, that is best."""
    flips = fit.law.flips
    steepness = factor * flips.steepness
    if not STEEPNESS_RANGE[0] <= steepness <= STEEPNESS_RANGE[1]:
        return fit
    law = replace(fit.law, flips=replace(flips, steepness=steepness))
    k = law.n_coef
    other = law.fit(np.r_[fit.value.z[:k], factor * fit.value.z[k:]])
    return climb(other, factor) if other.value.penalized > fit.value.penalized else fit


def start_rates(law: FlippedLabels, theta: Array, share: float) -> Array:
    """Return coefficients, and rates that flip a share of the rows, shape (k + d,).

    They flip those at the ends where flips are steep, and others at random.
    """
    eta, flips = law.exog @ theta + law.offset, law.flips
    if flips.steepness:
        depth = np.abs(eta) if flips.ways == BOTH_ENDS else eta if flips.ways == ONES else -eta
        order = nearest_rows(-depth, law.counts, share)
        return np.r_[theta, -flips.steepness * depth[order[-1]]]
    ones = float(law.counts @ expit(eta)) / law.total
    reached = np.array([ones, 1.0 - ones]) @ flips.chain
    rates = np.minimum(share / (len(reached) * np.maximum(reached, share)), 0.5)
    return np.r_[theta, np.log(rates / (1.0 - rates))]


def nearest_rows(distance: Array, counts: Array, share: float) -> np.ndarray:
    """Return the rows of least distance, the nearest first, that make up a share of all."""
    order = np.argsort(distance, kind="stable")
    within = np.cumsum(counts[order])
    return order[: 1 + int(np.searchsorted(within, share * within[-1]))]
