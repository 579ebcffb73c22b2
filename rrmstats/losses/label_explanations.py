"""Explanations of labels: none flipped, flipped at random by class, or flipped where sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import chdtri, expit

from rrmstats.core.block_array import aligned
from rrmstats.core.blocks import DECIDING_ROWS, decided_once
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

# Rows on which starts are compared, and those to which explanations are then fitted and
# on which they are compared; the best is fitted to all.
TRIAL_ROWS = 2_000
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
    units : ndarray, shape (m, k)
        Takes coefficients to those that have priors; see `FlippedLabels`.
    """

    flips: Flips
    z: Array
    units: Array

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
        where they can; all rows have the explanation of a sample, its `decided`.
    theta : ndarray, shape (k,)
        Its coefficients.
    """
    setting, robust = first.setting, first.robust
    near = () if robust is None or robust.explained is None else robust.explained.explanations
    known = {each.bad: each for each in near if isinstance(each, LabelExplanation)}
    back = design.to_params(np.eye(plain.n_params))
    law = FlippedLabels(
        plain.endog,
        plain.exog,
        aligned(setting.counts(plain.n_obs), plain.blocks),
        back,
        setting.eps_bar,
        NO_FLIPS,
        setting.maxiter,
        0.0 if plain.offset is None else plain.offset,
        columns,
    )

    def decide() -> tuple[LabelFit | None, Explained, tuple[Array, ...]]:
        sample = first.decided
        if sample is not None and sample.explained is not None:
            part = sample.wnobs / law.total
            scaled = (each * [[part**0.5], [part]] for each in sample.alternatives)
            return None, sample.explained, tuple(scaled)
        some = law.thinned(DECIDING_ROWS)
        some = replace(some, units=clipped_spread(some.columns, some.counts)[:, None] * back)
        found = explained_fits(some, theta, known)
        (fit, chosen), *others = found
        every = [chosen, *(each for _, each in others if each.name != chosen.name)]
        told = Explained(explanations=best_of_each(every), chosen=chosen)
        alternatives = alternatives_of(found, design, some.total / law.total)
        return fit if some.endog is law.endog else None, told, alternatives

    of_all, told, alternatives = decided_once(plain.blocks, decide)
    chosen = told.chosen
    assert isinstance(chosen, LabelExplanation)
    fit = of_all or replace(law, units=chosen.units, flips=chosen.flips).polished(chosen.z)
    told = told.with_chosen(replace(chosen, eps=fit.eps, prob_bad=fit.prob_bad()))
    return ExplainedLabels(plain, fit, told, alternatives, *fit.influence())


def explained_fits(
    plain: FlippedLabels, theta: Array, known: Mapping[Bad, LabelExplanation]
) -> list[tuple[LabelFit, LabelExplanation]]:
    """Return fits to labels with what they say, the one to choose first.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    theta : ndarray, shape (k,)
        Coefficients of the first step.
    known : dict of LabelExplanation
        Explanations at another bound.
    """
    none = plain.fit(known[Bad.NONE].z if Bad.NONE in known else np.zeros(plain.n_coef))
    search = LabelSearch(plain, plain.thinned(TRIAL_ROWS), (none.theta, theta), known)
    noise, sure = [search.best(flips, Bad.LABEL_NOISE) for flips in NOISE], search.steepest()
    priced = [
        (none, Bad.NONE, 0.0),
        *((fit, Bad.LABEL_NOISE, noise_price(none, fit)) for fit in noise),
        (sure, Bad.UNLIKELY_LABELS, sure.law.flips.n_params * np.log(plain.total)),
    ]
    found = [
        LabelExplanation(
            good=Good.PLAIN,
            bad=bad,
            log_likelihood=fit.log_likelihood,
            # The prior of its coefficients is a part of its cost.
            penalty=price - 2.0 * fit.log_prior,
            eps=fit.eps,
            prob_bad=fit.prob_bad(),
            theta=fit.theta,
            n_params=fit.law.flips.n_params,
            flips=fit.law.flips,
            z=fit.z,
            units=plain.units,
        )
        for fit, bad, price in priced
    ]
    fits = [fit for fit, _, _ in priced]
    both = zip(fits, found, strict=True)
    return sorted(both, key=lambda pair: (pair[0].mirrored, pair[1].bic))


def alternatives_of(
    found: Sequence[tuple[LabelFit, LabelExplanation]], design: Design, part: float
) -> tuple[Array, ...]:
    """Return what explanations that are nearly as good as none say of the parameters.

    Flipped labels shrink slopes long before there are enough of them to be told. So where no
    labels are called flipped, intervals have to allow for it.

    Parameters
    ----------
    found : sequence of tuple
        Fits and what they say, the chosen one first.
    design : Design
    part : float
        Share of the rows to which they were fitted.

    Returns
    -------
    tuple of ndarray, shape (2, k)
        Differences from the parameters without flips, and the variance that flips add.
    """
    (none, chosen), *others = found
    k, differences = none.law.n_coef, []
    for fit, each in others if chosen.bad is Bad.NONE else ():
        if fit.converged and not fit.mirrored and each.bic - chosen.bic < VERY_STRONG:
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
    increase = float(np.trace(-none.hessian @ noise.variance[:k, :k])) / k - 1.0
    bounded = chdtri(d + 2, 2.0 * COST / increase) if increase > 2.0 * COST else 0.0
    return max(float(bounded), float(chdtri(d, 2.0 * LEVEL)))


@dataclass(frozen=True, eq=False)
class LabelSearch:
    """Fits of labels under several kinds of flips, each from the most likely start.

    Attributes
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    few : FlippedLabels
        Those on which starts are tried.
    thetas : tuple of ndarray, shape (k,)
        Coefficients to start from; fits to the rows with the most central predictors are others.
    known : dict of LabelExplanation
        Explanations at another bound. Fits start from these alone, where that leads anywhere.
    """

    plain: FlippedLabels
    few: FlippedLabels
    thetas: tuple[Array, ...]
    known: Mapping[Bad, LabelExplanation]

    @cached_property
    def starts(self) -> list[Array]:
        """Coefficients to start from, each of shape (k,)."""
        few, spread = self.few, clipped_spread(self.few.columns, self.few.counts)
        rows = few.columns[:, spread > 0] / spread[spread > 0]
        distance = np.sum((rows - median_under(rows, few.counts)) ** 2, axis=1)
        central = []
        for share in (0.25, 0.5, 0.75):  # of the rows
            last = nearest_rows(distance, few.counts, share)[-1]
            part = few.take(np.flatnonzero(distance <= distance[last]))
            central.append(part.fit(np.zeros(few.n_coef), steps=3).z)
        return [*self.thetas, *central]

    def best(self, flips: Flips, kind: Bad) -> LabelFit:
        """Return the fit from the most likely start, judged on few of the rows.

        Where classes change places on the way, from the next one.
        """
        law, tried = replace(self.plain, flips=flips), replace(self.few, flips=flips)
        if kind in self.known:
            fit = law.fit(self.known[kind].as_start(flips))
            if fit.converged and not fit.mirrored:
                return fit
        trials = [
            tried.values(start_rates(tried, theta, share * law.eps_bar))
            for theta in self.starts
            for share in (0.5, 0.1)  # of the largest share
        ]
        for trial in sorted(trials, key=preference, reverse=True):
            fit = law.fit(trial.z)
            if not fit.mirrored:
                break
        return fit

    def steepest(self) -> LabelFit:
        """Return the best fit of flips where the model is sure, at one end or both."""
        kinds, sure = [Flips(ways, STEEPNESS) for ways in ENDS], Bad.UNLIKELY_LABELS
        if sure in self.known:
            kinds = [self.known[sure].flips]
        fits = [self.best(flips, sure) for flips in kinds]
        best = max(fits, key=preference)
        # Flips at both ends with none at one of them are those at the other, up to rounding.
        tied = [fit for fit in fits if not fit.penalized < best.penalized - 1e-6]
        return max((climb(fit, factor) for fit in tied for factor in (2.0, 0.5)), key=preference)


def preference(fit: LabelFit) -> tuple[bool, float]:
    """Return what is larger for a better fit; one whose classes changed places is worse."""
    return not fit.mirrored, fit.penalized


def climb(fit: LabelFit, factor: float) -> LabelFit:
    """Return the fit at the steepness, multiplied by a factor again and again, that is best."""
    flips = fit.law.flips
    steepness = factor * flips.steepness
    if not STEEPNESS_RANGE[0] <= steepness <= STEEPNESS_RANGE[1]:
        return fit
    law = replace(fit.law, flips=replace(flips, steepness=steepness))
    k = law.n_coef
    other = law.fit(np.r_[fit.z[:k], factor * fit.z[k:]])
    return climb(other, factor) if other.penalized > fit.penalized else fit


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
