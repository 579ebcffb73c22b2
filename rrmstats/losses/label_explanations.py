"""Explanations of labels: none flipped, flipped at random by class, or flipped where sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import chdtri, expit

from rrmstats.core.block_array import aligned, blocked, taken
from rrmstats.core.blocks import sample_places
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import FLAGGED, Bad, Explained, Explanation, Good, best_of_each
from rrmstats.core.frames import clipped_spread, median_under
from rrmstats.core.rounds import decided_once
from rrmstats.core.setting import Setting
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
from rrmstats.losses.logistic import LogisticProblem
from rrmstats.losses.separation import separable

# Rows on which starts take their first steps, and those to which explanations are then fitted and
# on which they are compared; the best is fitted to all.
TRIAL_ROWS, DECIDING_ROWS = 2_000, 100_000
# Share of clean samples in which label noise may be chosen, and the bound on what this choice may
# add to the variance of their coefficients; see `noise_price`. `python benchmarks/dirty_labels.py
# --calibrate` prints the errors at several costs: at this one no clean sample is called noisy, at
# the next some are, and half as much raises the error of labels flipped at random by a sixth.
LEVEL, COST = 0.05, 0.2
# Steepness of flips where the model is sure: the first one tried, and the range in which it is
# doubled or halved as long as the likelihood rises. Below 1 sure labels are no more likely to be
# both flipped and seen than others; past the largest a flip is a matter of a threshold.
STEEPNESS, STEEPNESS_RANGE = 4.0, (1.0, 16.0)
# Shares of flips at which fits start, in units of eps_bar.
START_SHARES = (0.5, 0.1)
# Shares of the rows, the most central ones, whose fits are starts.
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
    fit : LabelFit
    """

    fit: LabelFit

    @property
    def z(self) -> Array:
        """Coefficients and rates, shape (k + d,)."""
        return self.fit.value.z

    def rates_of(self, flips: Flips) -> Array:
        """Return coefficients and rates of other flips that are nearest to these, (k + d,)."""
        k, own = self.fit.law.n_coef, self.fit.law.flips
        if own == flips:
            return self.z
        log_odds = own.chain @ self.z[k:]
        return np.r_[self.z[:k], log_odds @ flips.chain / flips.chain.sum(axis=0)]


@dataclass(frozen=True, eq=False)
class ExplainedLabels:
    """The explanation of labels that is reported, fitted to all rows.

    Attributes
    ----------
    problem : LogisticProblem
    fit : LabelFit
    explained : Explained
    added_variance, interval_shift : ndarray, shapes (k, k) and (k,)
        What flips that do not show add to the variance of the parameters, and how far intervals
        lie from them, in the units of the data; see `unseen_flips`.
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
    added_variance: Array
    interval_shift: Array
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
            "added_variance": self.added_variance,
            "interval_shift": self.interval_shift,
        }


def explained_labels(
    plain: LogisticProblem,
    design: Design,
    columns: Array,
    setting: Setting,
    theta: Array,
    offset: Array | float = 0.0,
    near: Sequence[LabelExplanation] = (),
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
    setting : Setting
    theta : ndarray, shape (k,)
        Coefficients of the first step.
    offset : ndarray or BlockArray, shape (n,), or float, optional
        Added to the linear predictor.
    """
    n, eps_bar = plain.n_obs, setting.eps_bar
    counts = aligned(setting.counts(n), plain.blocks)
    back = design.to_params(np.eye(plain.n_params))
    law = FlippedLabels(
        plain.endog, plain.exog, counts, back, eps_bar, NO_FLIPS, setting.maxiter, offset
    )

    def decide() -> tuple[FlippedLabels, Array, Any]:
        some, some_columns = some_rows(law, columns, DECIDING_ROWS)
        units = clipped_spread(some_columns, some.counts)[:, None] * back
        return some, units, explain_labels(replace(some, units=units), some_columns, theta, near)

    some, units, found = decided_once(plain.blocks, decide)
    chosen, fit = found[0], found[0].fit
    whole = replace(law, units=units, flips=fit.law.flips)
    shift, added = unseen_flips([each.fit for each in found])
    shrink = some.total / whole.total
    fit = replace(fit, law=whole) if some is law else whole.polished(fit.value.z)
    chosen = replace(chosen, eps=fit.eps, prob_bad=fit.prob_bad())
    others = [told for told in found if told.name != chosen.name]
    told = Explained(explanations=best_of_each([chosen, *others]), chosen=chosen)
    shift = design.to_params(np.sqrt(shrink) * shift)
    added = design.to_params(design.to_params(shrink * added).T) + np.outer(shift, shift)
    return ExplainedLabels(plain, fit, told, added, shift, *fit.influence())


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
) -> list[LabelExplanation]:
    """Return explanations of labels, the one to choose first.

    Of many rows a sample tells which starts to fit them from.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    columns : ndarray, shape (n, k)
        The design in the units of the data.
    theta : ndarray, shape (k,)
        Coefficients of the first step.
    near : sequence of LabelExplanation, optional
        Explanations at another bound, from which fits start where they can.
    """
    none = plain.fit(next((each.z for each in near if each.bad is Bad.NONE), 0.0 * theta))
    search = LabelSearch(plain, columns, (none.theta, theta), near)
    fits = [search.best(flips) for flips in NOISE]
    sure = search.steepest()
    found = [
        _explanation(none, Bad.NONE, 0.0),
        *(_explanation(fit, Bad.LABEL_NOISE, noise_price(none, fit)) for fit in fits),
        _explanation(sure, Bad.UNLIKELY_LABELS, sure.law.flips.n_params * np.log(plain.total)),
    ]
    return sorted(found, key=lambda each: (bool(each.fit.value.mirrored), each.bic))


def _explanation(fit: LabelFit, bad: Bad, price: float) -> LabelExplanation:
    """Return a fit and what it says; the prior of its coefficients is a part of its cost."""
    return LabelExplanation(
        good=Good.PLAIN,
        bad=bad,
        log_likelihood=float(fit.value.log_likelihood),
        penalty=price - 2.0 * float(fit.value.log_prior),
        eps=fit.eps,
        prob_bad=fit.prob_bad(),
        fit=fit,
    )


def unseen_flips(found: Sequence[LabelFit]) -> tuple[Array, Array]:
    """Return how far flips that do not show may move coefficients, and the variance they add.

    Labels flipped at random shrink slopes long before there are enough of them to be told. So
    where the first of the fits, the one chosen, has no flips, intervals are those of flips by
    class: their center is off by a shift, and their variance larger.

    Returns
    -------
    shift : ndarray, shape (k,)
    added : ndarray, shape (k, k)
    """
    chosen, k = found[0], found[0].law.n_coef
    noise = next(fit for fit in found if fit.law.flips == BY_CLASS)
    if chosen.law.flips != NO_FLIPS or noise.value.mirrored or not noise.converged:
        return np.zeros(k), np.zeros((k, k))
    values, axes = np.linalg.eigh(noise.variance[:k, :k] - chosen.variance)
    return noise.theta - chosen.theta, (axes * np.maximum(values, 0.0)) @ axes.T


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


class LabelSearch:
    """Fits of labels under several kinds of flips, each from the start that leads highest.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    columns : ndarray, shape (n, k)
        The design in the units of the data.
    thetas : sequence of ndarray, shape (k,)
        Coefficients to start from; fits to the rows with the most central predictors are others.
    near : sequence of LabelExplanation
        Explanations at another bound. Fits start from these alone, where that leads anywhere.
    """

    def __init__(
        self,
        plain: FlippedLabels,
        columns: Array,
        thetas: Sequence[Array],
        near: Sequence[LabelExplanation],
    ) -> None:
        self.plain, self.thetas = plain, thetas
        self.few, self.few_columns = some_rows(plain, columns, TRIAL_ROWS)
        self.near = {each.bad: each for each in near}

    @cached_property
    def starts(self) -> Array:
        """Coefficients to start from, shape (m, k)."""
        spread = clipped_spread(self.few_columns, self.few.counts)
        rows = self.few_columns[:, spread > 0]
        distance = np.sum(
            ((rows - median_under(rows, self.few.counts)) / spread[spread > 0]) ** 2, axis=1
        )
        central = []
        for share in CENTRAL_SHARES:
            last = nearest_rows(distance, self.few.counts, share)[-1]
            part, _ = taken_rows(
                self.few, self.few_columns, np.flatnonzero(distance <= distance[last])
            )
            value, _ = part.climb(np.zeros((1, part.n_coef)), TRIAL_STEPS)
            central.append(value.z[0])
        return np.array([*self.thetas, *central])

    def best(self, flips: Flips) -> LabelFit:
        """Return the fit from the start that leads highest, on few of the rows, in a few steps.

        Where classes change places on the way, from the next one.
        """
        law, tried = replace(self.plain, flips=flips), replace(self.few, flips=flips)
        known = self.near.get(Bad.UNLIKELY_LABELS if flips.steepness else Bad.LABEL_NOISE)
        if known is not None:
            fit = law.fit(known.rates_of(flips))
            if fit.converged and not fit.value.mirrored:
                return fit
        starts = [
            start_rates(tried, theta, share * law.eps_bar)
            for theta in self.starts
            for share in START_SHARES
        ]
        trials, _ = tried.climb(np.array(starts), TRIAL_STEPS)
        found = []
        for i in np.lexsort([-trials.penalized, trials.mirrored]):
            found.append(law.fit(trials.z[i]))
            if not found[-1].value.mirrored:
                return found[-1]
        return found[0]

    def steepest(self) -> LabelFit:
        """Return the best fit of flips where the model is sure, at one end or both."""
        known = self.near.get(Bad.UNLIKELY_LABELS)
        kinds = (
            [Flips(ways, STEEPNESS) for ways in ENDS] if known is None else [known.fit.law.flips]
        )
        fits = [self.best(flips) for flips in kinds]
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
