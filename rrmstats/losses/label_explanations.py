"""Explanations of labels: none flipped, flipped at random by class, or flipped where sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, expit

from rrmstats.core.entropy import Array
from rrmstats.core.explanations import Bad, Explained, Explanation, Good, best_of_each
from rrmstats.core.frames import clipped_spread, median_under
from rrmstats.laws.labels import (
    BOTH_ENDS,
    BY_CLASS,
    ONE_RATE,
    ONES,
    ZEROS,
    FlippedLabels,
    Flips,
    LabelFit,
    Value,
)

# Largest increase of the variance of coefficients, on clean labels, that the choice of label
# noise may cost, and the share of clean samples in which it may be chosen. Calibrated by
# benchmarks/dirty_labels.py: clean labels cost at most 1.05 times maximum likelihood.
COST, LEVEL = 0.2, 0.05
# Steepness of flips where the model is sure: the first one tried, and the range in which it is
# doubled or halved as long as the likelihood rises. Below 1 sure labels are no more likely to be
# both flipped and seen than others; past the largest a flip is a matter of a threshold.
STEEPNESS, STEEPNESS_RANGE = 4.0, (1.0, 16.0)
# Shares of flips at which fits start, in units of eps_bar.
START_SHARES = (0.5, 0.1)
# Newton steps that show which start leads highest.
TRIAL_STEPS = 3
# Largest linear predictor, in the median row, of coefficients that fits start from.
START_SIZE = 2.0
# Shares of the rows, the most central ones, whose fits are starts, and the number of starts that
# are tried.
CENTRAL_SHARES, TRIALS = (0.25, 0.5, 0.75), 2


@dataclass(frozen=True, slots=True, eq=False)
class LabelExplanation:
    """A fit, what it says about the rows, and what its flexibility is charged with.

    Attributes
    ----------
    fit : LabelFit
    told : Explanation
    price : float
        Twice the gain in log-likelihood, with the prior of the coefficients, that it has to show.
    prior_change : float
        Logarithm of Jeffreys' prior of the coefficients, less that without flips.
    """

    fit: LabelFit
    told: Explanation
    price: float
    prior_change: float

    @property
    def cost(self) -> float:
        """The criterion of the choice; the smallest is best.

        Besides the likelihood, the prior: coefficients that grow lose information. The mean over
        them counts once for each rate, and for location and size of the linear predictor.
        """
        value, law = self.fit.value, self.fit.law
        directions = (law.flips.n_rates + 2) / law.n_coef
        return self.price - 2.0 * (value.log_likelihood + directions * self.prior_change)


def explain_labels(plain: FlippedLabels, columns: Array, theta: Array) -> list[LabelExplanation]:
    """Return the explanations of labels, the one to choose first.

    Parameters
    ----------
    plain : FlippedLabels
        The rows, in memory, without flips.
    columns : ndarray, shape (n, k)
        The design in the units of the data.
    theta : ndarray, shape (k,)
        Coefficients of the first step.
    """
    none = plain.fit(np.zeros(plain.n_coef))
    starts = [none.theta, _bounded(plain, theta), *central_fits(plain, columns)]
    found = [_explanation(none, none, Bad.NONE, 0.0)]
    for flips in (ONE_RATE, BY_CLASS):
        fit = best_fit(replace(plain, flips=flips), starts)
        found.append(_explanation(none, fit, Bad.LABEL_NOISE, noise_price(none, fit)))
    steep = steepest_fit(plain, starts)
    price = steep.law.flips.n_params * float(np.log(plain.total))
    found.append(_explanation(none, steep, Bad.UNLIKELY_LABELS, price))
    return sorted(found, key=lambda each: each.cost)


def _explanation(none: LabelFit, fit: LabelFit, bad: Bad, price: float) -> LabelExplanation:
    told = Explanation(
        good=Good.PLAIN,
        bad=bad,
        log_likelihood=fit.value.log_likelihood,
        n_extra=fit.law.flips.n_params,
        eps=fit.eps,
        prob_bad=fit.law.prob_bad(fit.value),
    )
    return LabelExplanation(fit, told, price, fit.value.log_prior - none.value.log_prior)


def explained(chosen: Explanation, found: Sequence[LabelExplanation], wnobs: float) -> Explained:
    """Return the explanations, the best of each name, with the one chosen among them."""
    others = [each.told for each in found if each.told.name != chosen.name]
    return Explained(
        explanations=best_of_each([chosen, *others], wnobs), chosen=chosen, wnobs=wnobs
    )


def noise_price(none: LabelFit, noise: LabelFit) -> float:
    r"""Return the gain from which label noise is chosen.

    With it the coefficients have a variance :math:`1 + r` times as large as without; see
    `variance_increase`. On clean labels the gain is at most a :math:`\chi^2_d` variable, and zero
    in half of the samples, since rates are not negative. So choosing noise where the gain exceeds
    c costs a part of the variance of at most :math:`r P(\chi^2_{d + 2} > c) / 2`. The price is
    the c where that is COST, and where noise is chosen in a share LEVEL of the samples.
    """
    d = noise.law.flips.n_rates
    increase = variance_increase(none, noise)
    bounded = chdtri(d + 2, 2.0 * COST / increase) if increase > 2.0 * COST else 0.0
    return max(float(bounded), float(chdtri(d, 2.0 * LEVEL)))


def variance_increase(none: LabelFit, noise: LabelFit) -> float:
    """Return how much larger variances with unknown rates of noise are, relative to those without.

    The mean over coefficients.
    """
    k = none.law.n_coef
    variance = noise.law.bread(noise.value)[:k, :k]
    return float(np.trace(none.value.information @ variance)) / k - 1.0


def steepest_fit(plain: FlippedLabels, starts: Sequence[Array]) -> LabelFit:
    """Return the best fit of flips where the model is sure, at one end or both."""
    fits = [
        best_fit(replace(plain, flips=Flips(ways, STEEPNESS)), starts)
        for ways in (BOTH_ENDS, ONES, ZEROS)
    ]
    best = max(fits, key=lambda fit: fit.value.penalized)
    return max((climb(best, factor) for factor in (2.0, 0.5)), key=lambda fit: fit.value.penalized)


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


def best_fit(law: FlippedLabels, starts: Sequence[Array]) -> LabelFit:
    """Return the fit from the start that leads highest in a few steps."""
    values = sorted((start_rates(law, theta) for theta in starts), key=lambda at: -at.penalized)
    trials = [law.fit(at.z, TRIAL_STEPS) for at in values[:TRIALS]]
    best = max(trials, key=lambda fit: fit.value.penalized)
    return best if best.converged else law.fit(best.value.z)


def start_rates(law: FlippedLabels, theta: Array) -> Value:
    """Return a law at coefficients, with the best of several rates."""
    eta = law.exog @ theta
    shares = law.eps_bar * np.array(START_SHARES)
    rates = thresholds(law, eta, shares) if law.flips.steepness else constant(law, eta, shares)
    values = [law.value(np.r_[theta, rate]) for rate in rates]
    return max(values, key=lambda value: value.penalized)


def constant(law: FlippedLabels, eta: Array, shares: Array) -> Array:
    """Return rates that flip given shares of the rows at random, shape (m, d)."""
    ones = float(law.counts @ expit(eta)) / law.total
    reached = np.array([ones, 1.0 - ones]) @ np.reshape(law.flips.ways, (2, -1))
    rates = np.minimum(shares[:, None] / (len(reached) * np.maximum(reached, shares[0])), 0.5)
    return np.log(rates / (1.0 - rates))


def thresholds(law: FlippedLabels, eta: Array, shares: Array) -> Array:
    """Return rates that flip given shares of the rows, those at the ends, shape (m, 1)."""
    ways = law.flips.ways
    depth = np.abs(eta) if ways == BOTH_ENDS else eta if ways == ONES else -eta
    order = np.argsort(-depth, kind="stable")
    beyond = np.cumsum(law.counts[order])
    places = np.minimum(np.searchsorted(beyond, shares * law.total), len(eta) - 1)
    return -law.flips.steepness * depth[order[places]][:, None]


def _bounded(law: FlippedLabels, theta: Array) -> Array:
    """Return coefficients shrunk to linear predictors of moderate size."""
    size = float(median_under(np.abs(law.exog @ theta), law.counts))
    return theta * min(1.0, START_SIZE / max(size, START_SIZE))


def central_fits(plain: FlippedLabels, columns: Array) -> list[Array]:
    """Return coefficients of parts of the rows, those with the most central predictors."""
    spread = clipped_spread(columns, plain.counts)
    rows = columns[:, spread > 0]
    center = median_under(rows, plain.counts)
    distance = np.sum(((rows - center) / spread[spread > 0]) ** 2, axis=1)
    order = np.argsort(distance, kind="stable")
    within = np.cumsum(plain.counts[order])
    found = []
    for share in CENTRAL_SHARES:
        last = min(int(np.searchsorted(within, share * plain.total)), len(order) - 1)
        near = distance <= distance[order[last]]
        part = replace(plain, endog=plain.endog[near], exog=plain.exog[near])
        fit = replace(part, counts=plain.counts[near]).fit(np.zeros(plain.n_coef), TRIAL_STEPS)
        found.append(fit.theta)
    return found
