"""Explanations of labels: none flipped, flipped at random by class, or flipped where sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, expit

from rrmstats.core.blocks import DECIDING_ROWS, decided_once
from rrmstats.core.conventions import VERY_STRONG
from rrmstats.core.design import Design
from rrmstats.core.entropy import Array
from rrmstats.core.estimate import Estimate
from rrmstats.core.explanations import FLAGGED, Bad, Explained, Explanation, Good, best_of_each
from rrmstats.core.frames import clipped_spread, median_under
from rrmstats.laws.explain import ExplainedRows
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
from rrmstats.laws.rows import PredictorRows
from rrmstats.losses.logistic import LogisticProblem, separable

# Rows on which flips are sought; what is found is then fitted to the rows that decide, and the
# best to all.
TRIAL_ROWS = 2_000
# The likeliest starts of a kind of flips from which it is fitted, until a fit converges.
TRIALS = 3
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
# The ends at which the model is sure.
ENDS = (ONES, ZEROS, BOTH_ENDS)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelExplanation(Explanation):
    """One explanation of labels.

    Attributes
    ----------
    z : ndarray, shape (k + d,)
        Coefficients in the coordinates of the problem, and rates.
    flips : Flips
    units : ndarray, shape (m, k)
        Takes coefficients to those that have priors; see `FlippedLabels`.
    bound : float
        Bound on the share of flipped labels.
    """

    z: Array
    flips: Flips
    units: Array
    bound: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedLabels(ExplainedRows):
    """The explanation of labels that is reported, fitted to all rows.

    Attributes
    ----------
    separated : bool
        Whether a hyperplane separates the labels that are not called flipped.
    shift : ndarray, shape (k,)
        How far the prior moved the coefficients.
    """

    separated: bool
    shift: Array


def explained_labels(
    plain: LogisticProblem, design: Design, rows: PredictorRows, first: Estimate
) -> ExplainedLabels:
    """Return the best explanation of labels, in memory or in blocks.

    It is that without a bound, where this has no more flipped labels than the bound of the fit. Of
    many rows a sample decides which is best, and it is then fitted to all of them.

    Parameters
    ----------
    plain : LogisticProblem
        The labels and the design in the coordinates of the problem, its `columns` in the units of
        the data.
    design : Design
    rows : PredictorRows
        The labels, the columns of their design in any coordinates.
    first : Estimate
        That of the first step. All rows have the explanation of a sample, its `decided`.
    """
    setting, back = first.setting, design.to_params(np.eye(plain.n_params))
    rows = replace(rows, designs=(plain.exog,))
    law = FlippedLabels(rows, back, setting.eps_bar, NO_FLIPS, setting.maxiter, plain.columns)

    def decide() -> tuple[Explained, tuple[Array, ...]]:
        sample = first.decided
        if sample is not None and sample.explained is not None:
            part = sample.wnobs / law.total
            scaled = (each * [[part**0.5], [part]] for each in sample.alternatives)
            return sample.explained, tuple(scaled)
        some = law.thinned(DECIDING_ROWS)
        some = replace(some, units=clipped_spread(some.columns, some.rows.mass)[:, None] * back)
        for bound in (0.5, setting.eps_bar):  # with more flips classes have changed places
            fits = all_fits(replace(some, eps_bar=bound))
            if fits[0][1].eps <= setting.eps_bar:
                break
        (_, chosen), *others = fits
        every = [chosen, *(each for _, each in others if each.name != chosen.name)]
        told = Explained(explanations=best_of_each(every), chosen=chosen)
        return told, alternatives_of(fits, design, some.total / law.total)

    told, alternatives = decided_once(plain.blocks, decide)
    chosen = told.chosen
    assert isinstance(chosen, LabelExplanation)
    law = replace(law, units=chosen.units, flips=chosen.flips, eps_bar=chosen.bound)
    fit = law.polished(chosen.z)
    # On all rows the share may exceed a bound that it keeps on a sample.
    share, bad = min(fit.eps, setting.eps_bar), fit.prob_bad()
    moves, share_moves, shift = fit.influence()
    return ExplainedLabels(
        theta=fit.theta,
        converged=fit.converged,
        explained=told.with_chosen(replace(chosen, eps=share, prob_bad=bad)),
        mass=rows.mass,
        good=1.0 - bad,
        eps_error=float(np.sqrt(rows.mass @ share_moves**2)) / law.total if share else 0.0,
        moves=moves,
        alternatives=alternatives,
        separated=separable(plain, bad <= FLAGGED),
        shift=shift,
    )


def all_fits(plain: FlippedLabels) -> list[tuple[LabelFit, LabelExplanation]]:
    """Return fits to labels with what they say, the one to choose first.

    Flips are sought where each class has more labels than there are coefficients: fewer do not
    tell flips from separated labels.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    """
    none = plain.fit(np.zeros(plain.n_coef))
    priced = [(none, Bad.NONE, 0.0)]
    ones = plain.rows.mass @ plain.rows.seen.endog
    if min(ones, plain.total - ones) > plain.n_coef:
        few = plain.thinned(TRIAL_ROWS)
        for fit in sought_flips(few, none.theta):
            flips = fit.law.flips
            if few is not plain:
                fit = replace(plain, flips=flips).fit(fit.z)
            if not fit.converged:
                continue
            if flips.steepness:
                price = flips.n_params * np.log(plain.total)
                priced.append((fit, Bad.UNLIKELY_LABELS, price))
            else:
                priced.append((fit, Bad.LABEL_NOISE, noise_price(none, fit)))
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
            z=fit.z,
            flips=fit.law.flips,
            units=plain.units,
            bound=plain.eps_bar,
        )
        for fit, bad, price in priced
    ]
    both = zip((fit for fit, *_ in priced), found, strict=True)
    return sorted(both, key=lambda pair: pair[1].bic)


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
        if each.bic - chosen.bic < VERY_STRONG:
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


def sought_flips(few: FlippedLabels, theta: Array) -> list[LabelFit]:
    """Return the fits of label noise, and the best one of flips where the model is sure.

    Parameters
    ----------
    few : FlippedLabels
        Rows in memory, without flips.
    theta : ndarray, shape (k,)
        Coefficients to start from. Fits to the rows with the most central predictors are others.
    """
    mass, starts = few.rows.mass, [theta]
    spread = clipped_spread(few.columns, mass)
    rows = few.columns[:, spread > 0] / spread[spread > 0]
    distance = np.sum((rows - median_under(rows, mass)) ** 2, axis=1)
    for share in (0.25, 0.5, 0.75):  # of the rows
        last = nearest_rows(distance, mass, share)[-1]
        part = few.take(np.flatnonzero(distance <= distance[last]))
        starts.append(part.fit(np.zeros(few.n_coef), steps=3).z)

    def best(flips: Flips) -> LabelFit | None:
        law = replace(few, flips=flips)
        trials = [
            law.values(start_rates(law, start, share * law.eps_bar))
            for start in starts
            for share in (0.5, 0.1)  # of the largest share
        ]
        trials.sort(key=lambda fit: -fit.penalized)
        fits = (law.fit(trial.z) for trial in trials[:TRIALS] if trial.penalized > -np.inf)
        return next((fit for fit in fits if fit.converged), None)

    noise = [best(ONE_RATE), best(BY_CLASS)]
    sure = [fit for ways in ENDS if (fit := best(Flips(ways, STEEPNESS)))]
    if sure:
        # Flips at both ends with none at one of them are those at the other, up to rounding.
        steep = max(sure, key=lambda fit: round(fit.penalized, 6))
        climbed = [climb(steep, factor) for factor in (2.0, 0.5)]
        noise.append(max(climbed, key=lambda fit: fit.penalized))
    return [fit for fit in noise if fit]


def climb(fit: LabelFit, factor: float) -> LabelFit:
    """Return the fit at the steepness, multiplied by a factor again and again, that is best."""
    flips, k = fit.law.flips, fit.law.n_coef
    steepness = factor * flips.steepness
    if not STEEPNESS_RANGE[0] <= steepness <= STEEPNESS_RANGE[1]:
        return fit
    law = replace(fit.law, flips=replace(flips, steepness=steepness))
    other = law.fit(np.r_[fit.z[:k], factor * fit.z[k:]])
    better = other.converged and other.penalized > fit.penalized
    return climb(other, factor) if better else fit


def start_rates(law: FlippedLabels, theta: Array, share: float) -> Array:
    """Return coefficients, and rates that flip a share of the rows, shape (k + d,).

    They flip those at the ends where flips are steep, and others at random.
    """
    eta, flips = law.rows.predictors(theta)[0], law.flips
    if flips.steepness:
        depth = np.abs(eta) if flips.ways == BOTH_ENDS else eta if flips.ways == ONES else -eta
        order = nearest_rows(-depth, law.rows.mass, share)
        return np.r_[theta, -flips.steepness * depth[order[-1]]]
    ones = float(law.rows.mass @ expit(eta)) / law.total
    reached = np.array([ones, 1.0 - ones]) @ flips.chain
    rates = np.minimum(share / (len(reached) * np.maximum(reached, share)), 0.5)
    return np.r_[theta, np.log(rates / (1.0 - rates))]


def nearest_rows(distance: Array, counts: Array, share: float) -> np.ndarray:
    """Return the rows of least distance, the nearest first, that make up a share of all."""
    order = np.argsort(distance, kind="stable")
    within = np.cumsum(counts[order])
    return order[: 1 + int(np.searchsorted(within, share * within[-1]))]
